/**
 * An MCP server under test, and a client of it that is the test.
 */
import * as Mcp from "effect-stdio/Mcp"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Watchdog from "effect-stdio/Watchdog"
import type * as McpServer from "effect/ai/McpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"

/** A message as the server sent it. */
export interface Message {
  readonly jsonrpc?: string
  readonly id?: number | string | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export type Options = Partial<
  Mcp.Options<never, never, McpServer.McpServer | McpServer.McpRequest<"Requires", McpServer.McpServer>>
>

/** A message as a line has it. */
export const text = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message })

/** Starts an MCP server on a transport whose other end is the test. */
export const open = Effect.fnUntraced(function*(options?: Options, transport?: Transport.Options) {
  // the transport ends first: a test that is over does not wait for tools that run
  const wireScope = yield* Scope.make()
  const wire = yield* Scope.provide(TestKit.make(transport), wireScope)
  const fiber = yield* Mcp.run({ name: "test", version: "1.0.0", ...options }).pipe(
    Effect.provide([Layer.succeed(Transport.Transport, wire.transport), Watchdog.layerNone, Logger.layer([])]),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer((exit) => Scope.close(wireScope, exit))
  // McpServer does what it does in its own time
  const settled = Effect.repeat(wire.settled, { times: 3 })
  yield* settled
  let seen = 0
  /** What was sent since this was asked last. */
  const news = Effect.andThen(
    settled,
    Effect.map(wire.sent, (sent) => {
      const fresh = sent.slice(seen)
      seen = sent.length
      return fresh as ReadonlyArray<Message>
    })
  )
  return {
    ...wire,
    settled,
    news,
    reason: Fiber.join(fiber),
    /** Feeds lines in one chunk, messages and raw text, and returns what is sent then. */
    ask: (...lines: ReadonlyArray<string | object>) =>
      Effect.andThen(
        wire.feed(lines.map((line) => `${typeof line === "string" ? line : text(line)}\n`).join("")),
        news
      )
  }
})

/** A server of these tools, and a client that has said hello: the server does what it does in its own time. */
export const session = Effect.fnUntraced(function*(registrations: NonNullable<Options["registrations"]>) {
  const wire = yield* TestKit.make()
  yield* Mcp.run({ name: "test", version: "1.0.0", registrations }).pipe(
    Effect.provide([Layer.succeed(Transport.Transport, wire.transport), Watchdog.layerNone, Logger.layer([])]),
    Effect.forkScoped
  )
  /** Waits for the reply to a request and returns all messages up to it. */
  const until = (id: number): Effect.Effect<ReadonlyArray<Message>> =>
    Effect.flatMap(wire.sent, (sent) => {
      const messages = sent as ReadonlyArray<Message>
      const at = messages.findIndex((message) => message.id === id && message.method === undefined)
      return at < 0 ? Effect.andThen(wire.next, until(id)) : Effect.succeed(messages.slice(0, at + 1))
    })
  yield* wire.receive({
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
  })
  yield* until(0)
  yield* wire.receive({ method: "notifications/initialized" })
  return {
    until,
    call: (id: number, name: string, args: object, meta?: object) =>
      wire.receive({ id, method: "tools/call", params: { name, arguments: args, ...(meta && { _meta: meta }) } }),
    cancel: (requestId: number) => wire.receive({ method: "notifications/cancelled", params: { requestId } })
  }
})

/** The reports of how far a call is, of those that were asked for with this token. */
export const progressOf = (messages: ReadonlyArray<Message>, token: string) =>
  messages.filter(({ params }) => params?.["progressToken"] === token)
    .map(({ params }) => ({ done: params?.["progress"], total: params?.["total"] }))

/** What a list of tools says of each, beside its words. */
export const described = (
  tools: ReadonlyArray<{
    readonly name: string
    readonly annotations?: object | undefined
    readonly inputSchema: Readonly<Record<string, unknown>>
    readonly outputSchema?: Readonly<Record<string, unknown>> | undefined
  }>
) =>
  tools.map((tool) => ({
    name: tool.name,
    annotations: JSON.parse(JSON.stringify(tool.annotations)) as unknown,
    parameters: Object.keys(tool.inputSchema["properties"] ?? {}),
    required: tool.inputSchema["required"],
    excess: tool.inputSchema["additionalProperties"],
    output: tool.outputSchema?.["type"]
  }))

/** Which request got which error code, or none. */
export const codes = (messages: ReadonlyArray<Message>) => messages.map(({ error, id }) => ({ id, code: error?.code }))

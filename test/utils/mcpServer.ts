/**
 * MCP servers that others wrote, as children of Effect's McpClient over our connection.
 */
import { assert } from "@effect/vitest"
import * as McpConnection from "effect-stdio/McpConnection"
import * as Process from "effect-stdio/Process"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Child from "./child.ts"

/** The folders of a client: tests that are a package of their own cannot import this one by its name. */
export type Roots = ReadonlyArray<McpConnection.Root>

/** What the user and the model of these tests say. */
export const hooks: McpConnection.Hooks = {
  createMessage: ({ messages }) =>
    Effect.succeed({
      role: "assistant",
      model: "test",
      stopReason: "endTurn",
      content: { type: "text", text: `${messages.length} message` }
    }),
  elicit: ({ message }) =>
    Effect.succeed(
      message === "Refuse?" ? { action: "decline" } : { action: "accept", content: { answer: "yes" } }
    )
}

/** Starts a server and connects a client to it, in a given revision or in the best that it speaks. */
export const connect = Effect.fnUntraced(function*(
  program: ReadonlyArray<string>,
  options?: Omit<McpConnection.ConnectOptions, "name" | "version"> & {
    readonly protocol?: McpConnection.Options["protocol"]
    readonly command?: string
  }
) {
  const { command = Child.runtime, protocol, ...rest } = options ?? {}
  const child = yield* Process.make(command, program, { env: { ...Child.environment } })
  const { client, connection } = yield* McpConnection.connect(child.transport, {
    name: "test",
    version: "1.0.0",
    // a busy machine takes its time to start one
    discoverTimeout: "20 seconds",
    ...(protocol === undefined ? {} : { protocols: [protocol] }),
    ...rest
  })
  const tools = yield* client.listTools()
  const call = (name: string, args: Record<string, string | number | ReadonlyArray<string>> = {}) =>
    Effect.suspend(() => {
      const tool = tools.find((tool) => tool.name === name)
      return tool === undefined ? Effect.die(new Error(`no tool ${name}`)) : client.callTool({ tool, arguments: args })
    })
  /** Ends it as a host does: its input ends, and it leaves by itself. */
  const end = Effect.gen(function*() {
    yield* child.transport.end
    const ended = yield* child.exited
    const stats = yield* Effect.flatMap(connection.peer, (peer) => peer.stats)
    return { ended, badInput: stats.badInput }
  })
  return { child, connection, client, tools, call, end }
})

export const text = ({ content }: McpSchema.CallToolResult): string =>
  content.map((block) => block.type === "text" ? block.text : block.type).join("\n")

/** Calls a tool and leaves it after its first report of progress. */
export const leave = (connection: McpConnection.McpConnection["Service"], name: string, args: object = {}) =>
  Effect.gen(function*() {
    const events = yield* Stream.runCollect(
      Stream.take(connection.callTool({ name, arguments: { ...args } }), 1)
    )
    assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["Progress"])
  })

/** How far a tool has come, report by report, and its result. */
export const follow = (connection: McpConnection.McpConnection["Service"], name: string, args: object = {}) =>
  Effect.map(Stream.runCollect(connection.callTool({ name, arguments: { ...args } })), (events) => ({
    reports: events.flatMap((event) => event._tag === "Progress" ? [event.progress] : []),
    results: events.flatMap((event) => event._tag === "Result" ? [text(event.result)] : [])
  }))

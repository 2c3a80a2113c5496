/**
 * Effect's McpClient over our connection, against Effect's McpServer over ours: both ends in this process, in each
 * revision of the protocol.
 */
import { assert, it } from "@effect/vitest"
import * as Mcp from "effect-stdio/Mcp"
import * as McpConnection from "effect-stdio/McpConnection"
import * as Transport from "effect-stdio/Transport"
import * as Watchdog from "effect-stdio/Watchdog"
import * as McpClient from "effect/ai/McpClient"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { registrations } from "../../examples/probe/mcp-tools.ts"

type Protocol = McpConnection.Options["protocol"]

const hooks: McpConnection.Hooks = {
  createMessage: ({ messages }) =>
    Effect.succeed({
      role: "assistant",
      model: "test",
      content: { type: "text", text: `${messages.length} message` }
    }),
  elicit: ({ message }) =>
    Effect.succeed(
      message === "Refuse?"
        ? { action: "decline" }
        : { action: "accept", content: { answer: `yes to ${message}` } }
    )
}

/** The probe, and a client of it. */
const connect = Effect.fnUntraced(function*(options: McpConnection.Options) {
  const [ours, theirs] = yield* Transport.makePair()
  const serverScope = yield* Scope.make()
  yield* Mcp.run({ name: "probe", version: "1.0.0", registrations }).pipe(
    Effect.provide([Layer.succeed(Transport.Transport, theirs), Watchdog.layerNone, Logger.layer([])]),
    Effect.forkIn(serverScope)
  )
  // the connection ends first, so that a test that is over does not wait for tools that run
  yield* Effect.addFinalizer((exit) => Scope.close(serverScope, exit))
  const connection = yield* McpConnection.make(ours, options)
  const client = yield* McpClient.make({ name: "test", version: "1.0.0" }).pipe(
    Effect.provideService(McpClient.Transport, connection.transport)
  )
  const tools = yield* client.listTools()
  const call = (name: string, args: Record<string, string | number> = {}) =>
    Effect.suspend(() => {
      const tool = tools.find((tool) => tool.name === name)
      return tool === undefined ? Effect.die(`no tool ${name}`) : client.callTool({ tool, arguments: args })
    })
  return { connection, client, tools, call }
})

const text = ({ content }: McpSchema.CallToolResult) =>
  content.map((block) => block.type === "text" ? block.text : block.type).join("\n")

const TextOfSum = Schema.fromJsonString(Schema.Struct({ sum: Schema.Finite }))

const revisions: ReadonlyArray<Protocol> = Mcp.protocols

for (const protocol of revisions) {
  const version = protocol.protocolVersion
  const isStateless = version === "2026-07-28"
  const hasElicitation = version >= "2025-06-18"

  it.effect(`lists and calls tools, resources and prompts in ${version}`, () =>
    Effect.gen(function*() {
      const { call, client, connection, tools } = yield* connect({ protocol })
      assert.strictEqual<string>(client.protocolVersion, version)
      assert.deepInclude(client.serverInfo, { name: "probe", version: "1.0.0" })
      assert.includeMembers(tools.map(({ name }) => name), ["add", "echo", "ask"])
      const sum = yield* Schema.decodeEffect(TextOfSum)(text(yield* call("add", { a: 1, b: 2 })))
      assert.deepStrictEqual(sum, { sum: 3 })
      const resources = yield* client.listResources()
      assert.deepStrictEqual(resources.map(({ uri }) => uri), ["probe://about", "probe://counter"])
      const { contents } = yield* client.readResource({ uri: "probe://about" })
      assert.deepInclude(contents[0], { text: "A server to test MCP clients against." })
      const [prompt] = yield* client.listPrompts()
      assert.isDefined(prompt)
      const { messages } = yield* client.getPrompt({ prompt, arguments: { topic: "pipes" } })
      assert.strictEqual(messages.length, 1)
      const { completion } = yield* connection.request(McpSchema.Complete, {
        ref: { type: "ref/prompt", name: "explain" },
        argument: { name: "topic", value: "fram" }
      })
      assert.deepStrictEqual(completion.values, ["frames", "framing"])
    }))

  it.effect(`answers from its hooks what a server of ${version} asks`, () =>
    Effect.gen(function*() {
      const { call } = yield* connect({ protocol, hooks })
      assert.strictEqual(text(yield* call("sample", { text: "Hello" })), "The model said: 1 message")
      if (hasElicitation) {
        assert.strictEqual(text(yield* call("ask", { question: "Sure?" })), "The user said: yes to Sure?")
        assert.strictEqual(text(yield* call("ask", { question: "Refuse?" })), "The user said nothing")
      }
    }))

  it.effect(`follows the progress of a tool in ${version}`, () =>
    Effect.gen(function*() {
      const { connection } = yield* connect({ protocol })
      const events = yield* Stream.runCollect(connection.callTool({ name: "count", arguments: { to: 3 } }))
      const message = (step: number) => version === "2024-11-05" ? {} : { message: `${step} of 3` }
      assert.deepStrictEqual(
        events.flatMap((event) => event._tag === "Progress" ? [event] : []),
        [1, 2, 3].map((progress) => ({ _tag: "Progress" as const, progress, total: 3, ...message(progress) }))
      )
      const last = events.at(-1)
      assert.strictEqual(last?._tag, "Result")
      assert.include(last?._tag === "Result" ? text(last.result) : "", "{\"counted\":3}")
    }))

  it.effect(`hears of changes and logs in ${version}`, () =>
    Effect.gen(function*() {
      const { call, connection } = yield* connect({ protocol, logLevel: "info" })
      const heard = yield* connection.subscribe()
      yield* connection.watch({ tools: true, resources: true, uris: ["probe://counter"] })
      yield* call("log", { level: "debug", text: "too quiet" })
      yield* call("log", { level: "warning", text: "loud" })
      yield* call("touch", { list: "tools" })
      yield* call("touch")
      const events = yield* Stream.runCollect(Stream.take(heard, 3))
      assert.deepStrictEqual(events.map(({ method }) => method).toSorted(), [
        "notifications/message",
        "notifications/resources/updated",
        "notifications/tools/list_changed"
      ])
      const log = events.find((event) => event.method === "notifications/message")
      assert.deepInclude(log?.params, { level: "warning", logger: "probe", data: "loud" })
      const update = events.find((event) => event.method === "notifications/resources/updated")
      assert.strictEqual(update?.params.uri, "probe://counter")
    }))

  it.effect(`tells a server of ${version} of a call that was interrupted`, () =>
    Effect.gen(function*() {
      const { call, client, connection } = yield* connect({ protocol })
      const interrupted = Effect.gen(function*() {
        const { contents } = yield* client.readResource({ uri: "probe://counter" })
        const [content] = contents
        assert.isTrue(content !== undefined && "text" in content)
        return content !== undefined && "text" in content ? JSON.parse(content.text).interrupted as number : 0
      })
      const before = yield* interrupted
      const fiber = yield* Effect.forkChild(call("sleep", { ms: 60_000 }), { startImmediately: true })
      const peer = yield* connection.peer
      assert.deepStrictEqual((yield* peer.inFlight).calls.map(({ method }) => method), ["tools/call"])
      // it has begun when it has told so
      const followed = yield* Stream.runHead(connection.callTool({ name: "sleep", arguments: { ms: 60_000 } }))
      assert.isTrue(followed._tag === "Some" && followed.value._tag === "Progress")
      yield* Fiber.interrupt(fiber)
      const after = yield* Effect.repeat(interrupted, { until: (count) => count === before + 2 })
      assert.strictEqual(after, before + 2)
    }))

  if (isStateless) {
    it.effect("leaves to McpClient what no hook answers in 2026-07-28", () =>
      Effect.gen(function*() {
        const { call } = yield* connect({ protocol, capabilities: { elicitation: { form: {} } } })
        const error = yield* Effect.flip(call("ask", { question: "Sure?" }))
        assert.strictEqual(error.reason._tag, "UnsupportedError")
      }))
  }
}

/** A server that speaks only these. */
const serve = Effect.fnUntraced(function*(protocols: NonNullable<Mcp.Options["protocols"]>) {
  const [ours, theirs] = yield* Transport.makePair()
  yield* Mcp.run({ name: "some", version: "1", protocols }).pipe(
    Effect.provide([Layer.succeed(Transport.Transport, theirs), Watchdog.layerNone, Logger.layer([])]),
    Effect.forkScoped
  )
  return ours
})

it.effect("fails with the revision that the server speaks where that is another one", () =>
  Effect.gen(function*() {
    const connection = yield* McpConnection.make(yield* serve([McpProtocol.v2025_03_26]), {
      protocol: McpProtocol.v2025_11_25
    })
    const error = yield* McpClient.make({ name: "test", version: "1" }).pipe(
      Effect.provideService(McpClient.Transport, connection.transport),
      Effect.flip
    )
    assert.strictEqual(error.reason._tag, "UnsupportedError")
    assert.strictEqual(error.message, "the server speaks \"2025-03-26\", this client 2025-11-25")
  }))

for (const protocol of revisions) {
  it.effect(`finds out that a server speaks ${protocol.protocolVersion}`, () =>
    Effect.gen(function*() {
      const { client, connection } = yield* McpConnection.connect(yield* serve([protocol]), {
        name: "test",
        version: "1"
      })
      assert.strictEqual<string>(client.protocolVersion, protocol.protocolVersion)
      assert.deepStrictEqual(yield* client.listTools(), [])
      const { completion } = yield* Effect.orElseSucceed(
        connection.request(McpSchema.Complete, {
          ref: { type: "ref/prompt", name: "none" },
          argument: { name: "a", value: "" }
        }),
        () => ({ completion: { values: [] } })
      )
      assert.deepStrictEqual(completion.values, [])
    }))
}

it.effect("speaks the best revision of those it may", () =>
  Effect.gen(function*() {
    const { client } = yield* McpConnection.connect(yield* serve(Mcp.protocols), {
      name: "test",
      version: "1",
      protocols: [McpProtocol.v2025_06_18, McpProtocol.v2025_03_26]
    })
    assert.strictEqual<string>(client.protocolVersion, "2025-06-18")
  }))

for (
  const [ours, theirs] of [
    [McpProtocol.v2025_11_25, McpProtocol.v2025_06_18],
    [McpProtocol.v2026_07_28, McpProtocol.v2025_06_18],
    [McpProtocol.v2025_06_18, McpProtocol.v2026_07_28]
  ] as const
) {
  it.effect(`fails where it may speak ${ours.protocolVersion} only, and the server ${theirs.protocolVersion}`, () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        McpConnection.connect(yield* serve([theirs]), { name: "test", version: "1", protocols: [ours] })
      )
      assert.include(["UnsupportedError", "ProtocolError"], error.reason._tag)
    }))
}

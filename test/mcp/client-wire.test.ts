/**
 * What a client says on the wire, and what it makes of servers that misbehave: the other end is the test.
 */
import { assert, it } from "@effect/vitest"
import * as McpConnection from "effect-stdio/McpConnection"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as McpClient from "effect/ai/McpClient"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { makeLog } from "../utils/peer.ts"

const v2025 = McpProtocol.v2025_11_25
const v2026 = McpProtocol.v2026_07_28

const clientInfo = { name: "test", version: "1.0.0" }
const initialized = { jsonrpc: "2.0", method: "notifications/initialized" }
const initialize = (id: number, capabilities: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities, clientInfo }
})
const session = (protocolVersion = "2025-11-25", capabilities: object = { tools: {}, resources: {} }) => ({
  protocolVersion,
  capabilities,
  serverInfo: { name: "server", version: "2.0.0" }
})
const discovered = {
  resultType: "complete",
  supportedVersions: ["2026-07-28"],
  capabilities: { tools: {} },
  ttlMs: 0,
  cacheScope: "private"
}
const meta = (extra: object = {}, capabilities: object = {}) => ({
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": capabilities,
  ...extra
})
const done = (text: string) => ({ content: [{ type: "text", text }] })

const tool = new McpSchema.Tool({ name: "work", inputSchema: { type: "object" } })

const makeClient = (transport: McpClient.Transport, timeout?: number) =>
  McpClient.make({ ...clientInfo, ...(timeout === undefined ? {} : { timeout }) }).pipe(
    Effect.provideService(McpClient.Transport, transport)
  )

/** A connection whose server is the test. */
const connect = Effect.fnUntraced(function*<R = never>(options?: Partial<McpConnection.Options<R>>) {
  const wire = yield* TestKit.make({ framing: "line" })
  const connection = yield* McpConnection.make(wire.transport, { protocol: v2025, ...options })
  return { ...wire, connection }
})

/** The same with a client whose session is open. */
const open = Effect.fnUntraced(function*<R = never>(options?: Partial<McpConnection.Options<R>>) {
  const wire = yield* connect(options)
  const fiber = yield* Effect.forkChild(makeClient(wire.connection.transport), { startImmediately: true })
  yield* wire.next
  const isStateless = options?.protocol === v2026
  yield* wire.receive({ id: 1, result: isStateless ? discovered : session(options?.protocol?.protocolVersion) })
  if (!isStateless) assert.deepStrictEqual(yield* wire.next, initialized)
  const client = yield* Fiber.join(fiber)
  const answers = (...messages: ReadonlyArray<object>) =>
    Effect.gen(function*() {
      yield* wire.receive(...messages)
      yield* wire.settled
      return yield* Effect.forEach(messages, () => wire.next)
    })
  return { ...wire, client, answers }
})

const closedBy = (reason: Transport.CloseReason) =>
  Effect.gen(function*() {
    const end = yield* Deferred.make<void>()
    const transport = yield* Transport.make({
      input: Stream.fromEffectDrain(Deferred.await(end)),
      output: Sink.drain,
      explain: () => Effect.succeed(reason)
    }, { framing: "line" })
    return { transport, end: Deferred.succeed(end, undefined) }
  })

// -----------------------------------------------------------------------------
// the session
// -----------------------------------------------------------------------------

it.effect("F172 says that it is initialized exactly once, after the result of initialize and before any request", () =>
  Effect.gen(function*() {
    const { connection, expectSent, next, receive, settled } = yield* connect()
    const fiber = yield* Effect.forkChild(
      Effect.flatMap(makeClient(connection.transport), (client) => client.listTools()),
      { startImmediately: true }
    )
    yield* next
    yield* settled
    yield* expectSent(initialize(1))
    yield* receive({ id: 1, result: session() })
    yield* expectSent(initialize(1), initialized, { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} })
    yield* receive({ id: 2, result: { tools: [] } })
    assert.deepStrictEqual(yield* Fiber.join(fiber), [])
  }))

it.effect("opens no second session for a second client", () =>
  Effect.gen(function*() {
    const { connection, expectSent } = yield* open()
    const second = yield* makeClient(connection.transport)
    assert.deepInclude(second.serverInfo, { name: "server" })
    yield* expectSent(initialize(1), initialized)
  }))

const declarations = [
  { protocol: McpProtocol.v2024_11_05, expected: { sampling: {}, roots: { listChanged: true } } },
  { protocol: McpProtocol.v2025_06_18, expected: { sampling: {}, roots: { listChanged: true }, elicitation: {} } },
  {
    protocol: v2025,
    expected: { sampling: {}, roots: { listChanged: true }, elicitation: { form: {}, url: {} } }
  }
]

const all: McpConnection.Hooks = {
  createMessage: () => Effect.succeed({ role: "assistant", model: "m", content: { type: "text", text: "hi" } }),
  elicit: () => Effect.succeed({ action: "accept", content: { name: "Ada", tags: ["a"] } }),
  elicitUrl: ({ elicitationId, url }) => Effect.succeed({ action: url === elicitationId ? "accept" : "cancel" }),
  listRoots: Effect.succeed([{ uri: "file:///tmp", name: "tmp" }])
}

for (const { expected, protocol } of declarations) {
  it.effect(`declares in ${protocol.protocolVersion} the capabilities that follow from the hooks`, () =>
    Effect.gen(function*() {
      const { connection, next } = yield* connect({ protocol, hooks: all })
      yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
      assert.deepNestedInclude(yield* next, { "params.capabilities": expected })
    }))
}

it.effect("declares the capabilities that are given, over those that follow from the hooks", () =>
  Effect.gen(function*() {
    const { createMessage } = all
    const { connection, next } = yield* connect({
      hooks: { createMessage },
      capabilities: { sampling: { tools: {} }, extensions: { "com.example/x": {} } }
    })
    yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    assert.deepNestedInclude(yield* next, {
      "params.capabilities": { sampling: { tools: {} }, extensions: { "com.example/x": {} } }
    })
  }))

it.effect("asks a server that has logs for those it wants", () =>
  Effect.gen(function*() {
    const { connection, next, receive } = yield* connect({ logLevel: "warning" })
    const fiber = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* next
    yield* receive({ id: 1, result: session(undefined, { logging: {} }) })
    assert.deepStrictEqual(yield* next, initialized)
    assert.deepInclude(yield* next, { method: "logging/setLevel", params: { level: "warning" } })
    yield* receive({ id: 2, error: { code: -32603, message: "not today" } })
    yield* Fiber.join(fiber)
  }).pipe(Effect.provide(makeLog().layer)))

// -----------------------------------------------------------------------------
// what the server asks
// -----------------------------------------------------------------------------

it.effect("answers ping, and refuses what it has no hook for", () =>
  Effect.gen(function*() {
    const { answers } = yield* open()
    assert.deepStrictEqual(
      yield* answers(
        { id: "p", method: "ping" },
        { id: 8, method: "roots/list" },
        { id: 9, method: "elicitation/create", params: { message: "?" } }
      ),
      [
        { jsonrpc: "2.0", id: "p", result: {} },
        { jsonrpc: "2.0", id: 8, error: { code: -32601, message: "Method not found: roots/list" } },
        { jsonrpc: "2.0", id: 9, error: { code: -32601, message: "Method not found: elicitation/create" } }
      ]
    )
  }))

it.effect("answers from its hooks, and reads what the server asked by the schemas of MCP", () =>
  Effect.gen(function*() {
    const asked: Array<unknown> = []
    const { answers } = yield* open({
      hooks: {
        ...all,
        createMessage: (request) => {
          asked.push(request)
          return Effect.succeed({ role: "assistant", model: "m", content: { type: "text", text: "hi" } })
        }
      }
    })
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } }
    const messages = [{ role: "user", content: { type: "image", data: "AQI=", mimeType: "image/png" } }]
    assert.deepStrictEqual(
      yield* answers(
        { id: 1, method: "sampling/createMessage", params: { maxTokens: 5, messages } },
        { id: 2, method: "elicitation/create", params: { message: "Who?", requestedSchema } },
        {
          id: 3,
          method: "elicitation/create",
          params: { mode: "url", message: "Go", url: "same", elicitationId: "same" }
        },
        { id: 4, method: "roots/list" }
      ),
      [
        { id: 1, result: { role: "assistant", model: "m", content: { type: "text", text: "hi" } } },
        { id: 2, result: { action: "accept", content: { name: "Ada", tags: ["a"] } } },
        { id: 3, result: { action: "accept" } },
        { id: 4, result: { roots: [{ uri: "file:///tmp", name: "tmp" }] } }
      ].map((response) => ({ jsonrpc: "2.0", ...response }))
    )
    assert.deepNestedInclude(asked[0], { "messages[0].content.data": new Uint8Array([1, 2]) })
  }))

it.effect("refuses a question that does not fit its schema, and a mode that was not declared", () =>
  Effect.gen(function*() {
    const { elicit } = all
    const { answers } = yield* open({ hooks: { elicit } })
    const codes = (yield* answers(
      { id: 1, method: "elicitation/create", params: { message: 5 } },
      { id: 2, method: "elicitation/create", params: { mode: "url", message: "", url: "u", elicitationId: "e" } }
    )).map((answer) => (answer as { readonly error?: { readonly code: number } }).error?.code)
    assert.deepStrictEqual(codes, [-32602, -32602])
  }))

it.effect("tells an answer to its own request from a question of the server under the same id", () =>
  Effect.gen(function*() {
    const { client, next, receive } = yield* open({ hooks: all })
    const fiber = yield* Effect.forkChild(client.callTool({ tool }), { startImmediately: true })
    assert.deepInclude(yield* next, { id: 2, method: "tools/call" })
    yield* receive({ id: 2, method: "roots/list" })
    assert.deepInclude(yield* next, { id: 2, result: { roots: [{ uri: "file:///tmp", name: "tmp" }] } })
    yield* receive({ id: 2, result: done("mine") })
    assert.deepStrictEqual((yield* Fiber.join(fiber)).content, [{ type: "text", text: "mine" }])
  }))

class Model extends Context.Service<Model, { readonly answer: string }>()("test/Model") {}

it.effect("runs a hook with the services of the program that made the connection, in a scope of its own", () =>
  Effect.gen(function*() {
    let released = 0
    const { answers } = yield* open({
      hooks: {
        createMessage: () =>
          Effect.gen(function*() {
            const { answer } = yield* Model
            yield* Effect.addFinalizer(() => Effect.sync(() => released++))
            return { role: "assistant", model: "m", content: { type: "text", text: answer } }
          })
      }
    }).pipe(Effect.provideService(Model, { answer: "42" }))
    const [answer] = yield* answers({ id: 1, method: "sampling/createMessage", params: { maxTokens: 1, messages: [] } })
    assert.deepNestedInclude(answer, { "result.content.text": "42" })
    assert.strictEqual(released, 1)
  }))

it.effect("closes the scope of a hook that answers a result of 2026-07-28 before the call goes on", () =>
  Effect.gen(function*() {
    let released = 0
    const { client, next, receive } = yield* open({
      protocol: v2026,
      hooks: {
        listRoots: Effect.as(Effect.addFinalizer(() => Effect.sync(() => released++)), [{ uri: "file:///tmp" }])
      }
    })
    yield* Effect.forkChild(client.callTool({ tool }), { startImmediately: true })
    yield* next
    yield* receive({ id: 2, result: inputRequired({ roots }) })
    yield* next
    assert.strictEqual(released, 1)
  }))

it.effect("interrupts a hook when the server no longer wants its answer", () =>
  Effect.gen(function*() {
    const interrupted = yield* Deferred.make<void>()
    const { receive, settled } = yield* open({
      hooks: { listRoots: Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)) }
    })
    yield* receive({ id: 7, method: "roots/list" })
    yield* settled
    yield* receive({ method: "notifications/cancelled", params: { requestId: 7 } })
    yield* Deferred.await(interrupted)
  }))

it.effect("tells that the roots have changed", () =>
  Effect.gen(function*() {
    const { connection, next } = yield* open({ hooks: all })
    yield* connection.rootsChanged
    assert.deepInclude(yield* next, { method: "notifications/roots/list_changed" })
  }))

// -----------------------------------------------------------------------------
// what the server tells
// -----------------------------------------------------------------------------

it.effect("hears of every notification in its order, and leaves out what does not fit its schema", () =>
  Effect.gen(function*() {
    const log = makeLog()
    const { connection, endInput, receive } = yield* Effect.provide(open(), log.layer)
    const heard = yield* connection.subscribe()
    yield* receive(
      { method: "notifications/tools/list_changed" },
      { method: "notifications/prompts/list_changed", params: {} },
      { method: "notifications/resources/list_changed" },
      { method: "notifications/message", params: { level: "loud", data: "the secret is 42" } },
      { method: "notifications/message", params: { level: "info", data: { a: 1 } } },
      { method: "notifications/resources/updated", params: { uri: "file:///x" } },
      { method: "notifications/progress", params: { progressToken: "unknown", progress: 1 } },
      { method: "notifications/elicitation/complete", params: { elicitationId: "e" } },
      { method: "notifications/else", params: {} }
    )
    yield* endInput
    const all = yield* Effect.provide(Stream.runCollect(heard), log.layer)
    assert.deepStrictEqual(all.map(({ method }) => method.slice("notifications/".length)), [
      "tools/list_changed",
      "prompts/list_changed",
      "resources/list_changed",
      "message",
      "resources/updated",
      "progress",
      "elicitation/complete"
    ])
    assert.deepStrictEqual(all.at(-1)?.params, { elicitationId: "e" })
    assert.isTrue(log.lines.some((line) => line.includes("notifications/message does not fit its schema")))
    assert.notInclude(log.lines.join(), "42")
  }))

it.effect("hears of some notifications only, and fails a subscriber that lags", () =>
  Effect.gen(function*() {
    const { connection, receive, settled } = yield* open()
    const updates = yield* connection.subscribe({ methods: ["notifications/resources/updated"], capacity: 1 })
    const message = { method: "notifications/message", params: { level: "info", data: "x" } }
    const update = { method: "notifications/resources/updated", params: { uri: "file:///x" } }
    yield* receive(message, message, update, update)
    yield* settled
    const error = yield* Effect.flip(Stream.runDrain(updates))
    assert.strictEqual(error.reason._tag, "LimitError")
  }))

it.effect("subscribes to resources where there is a session, and unsubscribes with its scope", () =>
  Effect.gen(function*() {
    const { connection, next, receive } = yield* open()
    const scope = yield* Scope.make()
    const fiber = yield* Effect.forkChild(
      Scope.provide(connection.watch({ tools: true, uris: ["file:///x"] }), scope),
      { startImmediately: true }
    )
    assert.deepInclude(yield* next, { id: 2, method: "resources/subscribe", params: { uri: "file:///x" } })
    yield* receive({ id: 2, result: {} })
    yield* Fiber.join(fiber)
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    assert.deepInclude(yield* next, { id: 3, method: "resources/unsubscribe", params: { uri: "file:///x" } })
    yield* receive({ id: 3, result: {} })
    yield* Fiber.join(closing)
  }))

it.effect("skips and counts what is no message, and goes on after an error without an id", () =>
  Effect.gen(function*() {
    const { client, connection, feed, next, receive, settled } = yield* open()
    yield* feed("Debugger attached.\n{\"half\": \n[1,2]\n")
    yield* feed("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n")
    yield* feed("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n")
    yield* settled
    const fiber = yield* Effect.forkChild(client.listTools(), { startImmediately: true })
    yield* next
    yield* receive({ id: 2, result: { tools: [] } })
    assert.deepStrictEqual(yield* Fiber.join(fiber), [])
    const { badInput, strayResponses } = yield* Effect.flatMap(connection.peer, (peer) => peer.stats)
    // a batch of two numbers counts as two
    assert.deepStrictEqual({ badInput, strayResponses }, { badInput: 4, strayResponses: 2 })
  }))

// -----------------------------------------------------------------------------
// calls, and what becomes of them
// -----------------------------------------------------------------------------

it.effect("tells the server of a call that McpClient gave up, and never of initialize", () =>
  Effect.gen(function*() {
    const { client, expectSent } = yield* open()
    const fiber = yield* Effect.forkChild(client.callTool({ tool }, { timeout: 100 }), { startImmediately: true })
    yield* TestClock.adjust(100)
    assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).reason._tag, "TimeoutError")
    const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "work" } }
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } }
    yield* expectSent(initialize(1), initialized, call, cancelled)

    const other = yield* connect()
    const opening = yield* Effect.forkChild(makeClient(other.connection.transport, 100), { startImmediately: true })
    yield* TestClock.adjust(100)
    assert.strictEqual((yield* Effect.flip(Fiber.join(opening))).reason._tag, "TimeoutError")
    yield* other.expectSent(initialize(1))
  }))

it.effect("has no deadline of its own for what McpClient sends", () =>
  Effect.gen(function*() {
    const { client, next, receive } = yield* open()
    const fiber = yield* Effect.forkChild(client.callTool({ tool }), { startImmediately: true })
    yield* next
    yield* TestClock.adjust("1 day")
    yield* receive({ id: 2, result: done("late") })
    assert.deepStrictEqual((yield* Fiber.join(fiber)).content, [{ type: "text", text: "late" }])
  }))

it.effect("fails with the code, the message and the data of an error that the server answers", () =>
  Effect.gen(function*() {
    const { client, connection, next, receive } = yield* open()
    const fiber = yield* Effect.forkChild(client.callTool({ tool }), { startImmediately: true })
    yield* next
    yield* receive({ id: 2, error: { code: -32602, message: "no such tool", data: { name: "work" } } })
    const { message, reason } = yield* Effect.flip(Fiber.join(fiber))
    assert.deepInclude(reason, { _tag: "ProtocolError", code: -32602, data: { name: "work" } })
    assert.strictEqual(message, "no such tool (code -32602)")

    const asking = yield* Effect.forkChild(connection.request(McpSchema.SetLevel, { level: "info" }), {
      startImmediately: true
    })
    yield* next
    yield* receive({ id: 3, error: { code: -32601, message: "no logs" } })
    assert.deepInclude((yield* Effect.flip(Fiber.join(asking))).reason, { _tag: "ProtocolError", code: -32601 })
  }))

it.effect("fails with a deadline, a result that does not fit, and a response that cannot be read", () =>
  Effect.gen(function*() {
    const { connection, feed, next, receive } = yield* open()
    const ask = Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(
        Effect.flip(connection.request(McpSchema.ListResourceTemplates, undefined, { timeout: 100 })),
        { startImmediately: true }
      )
      yield* next
      return Fiber.join(fiber)
    })
    const late = yield* ask
    yield* TestClock.adjust(100)
    assert.strictEqual((yield* late).message, "MCP resources/templates/list deadline exceeded")
    assert.deepInclude(yield* next, { method: "notifications/cancelled" })
    const misfit = yield* ask
    yield* receive({ id: 3, result: { resourceTemplates: "none" } })
    assert.strictEqual((yield* misfit).reason._tag, "ValidationError")
    const unreadable = yield* ask
    yield* feed("{\"jsonrpc\":\"2.0\",\"id\":4}\n")
    assert.strictEqual((yield* unreadable).reason._tag, "ProtocolError")
  }))

it.effect("fails a call whose arguments cannot be written as JSON, and sends nothing", () =>
  Effect.gen(function*() {
    const { client, expectSent } = yield* open()
    const error = yield* Effect.flip(client.callTool({ tool, arguments: { size: 1n } }))
    assert.strictEqual(error.reason._tag, "ValidationError")
    yield* expectSent(initialize(1), initialized)
  }))

it.effect("says how the process behind the connection ended", () =>
  Effect.gen(function*() {
    const { end, transport } = yield* closedBy(
      new Transport.ProcessExited({ command: "node server.js", exitCode: 3, stderrTail: "no API key\n" })
    )
    const connection = yield* McpConnection.make(transport, { protocol: v2025 })
    const fiber = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* end
    const { message, reason } = yield* Effect.flip(Fiber.join(fiber))
    assert.strictEqual(reason._tag, "TransportError")
    assert.include(message, "node server.js ended with code 3")
    assert.include(message, "no API key")
  }))

it.effect("fails what waits with ClosedError when this side ends", () =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const wire = yield* TestKit.make({ framing: "line" })
    const connection = yield* Scope.provide(McpConnection.make(wire.transport, { protocol: v2025 }), scope)
    const fiber = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* wire.next
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).reason._tag, "ClosedError")
    const late = yield* Effect.flip(connection.request(McpSchema.Ping, undefined))
    assert.strictEqual(late.reason._tag, "ClosedError")
  }))

it.effect("says that what answers is no MCP server", () =>
  Effect.gen(function*() {
    const { connection, feed } = yield* connect({ maxNoise: 20 })
    const fiber = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* feed("Usage: server [options] [arguments]\n")
    const { message, reason } = yield* Effect.flip(Fiber.join(fiber))
    assert.strictEqual(reason._tag, "ProtocolError")
    assert.include(message, "Usage: server")
  }))

it.effect("follows a call until its deadline, and cancels it when the stream is left", () =>
  Effect.gen(function*() {
    const { connection, next, receive } = yield* open()
    const follow = (options?: { readonly timeout: number }) =>
      Effect.forkChild(Stream.runCollect(connection.callTool({ name: "work" }, options)), { startImmediately: true })
    const silent = yield* follow({ timeout: 100 })
    const asked = yield* next
    assert.deepInclude(asked, { id: 2, method: "tools/call" })
    const { progressToken } = (asked as { readonly params: { readonly _meta: { readonly progressToken: string } } })
      .params._meta
    yield* receive({ method: "notifications/progress", params: { progressToken, progress: "much" } })
    yield* TestClock.adjust(100)
    assert.strictEqual((yield* Effect.flip(Fiber.join(silent))).reason._tag, "TimeoutError")
    assert.deepInclude(yield* next, { method: "notifications/cancelled", params: { requestId: 2 } })
    const left = yield* follow()
    yield* next
    yield* TestClock.adjust("1 day")
    yield* Fiber.interrupt(left)
    assert.deepInclude(yield* next, { method: "notifications/cancelled", params: { requestId: 3 } })
    const refused = yield* follow()
    yield* next
    yield* receive({ id: 4, error: { code: -32602, message: "no" } })
    assert.deepInclude((yield* Effect.flip(Fiber.join(refused))).reason, { _tag: "ProtocolError", code: -32602 })
  }))

// -----------------------------------------------------------------------------
// without sessions
// -----------------------------------------------------------------------------

it.effect("declares in each request of 2026-07-28 what it can and which logs it wants", () =>
  Effect.gen(function*() {
    const { listRoots } = all
    const { client, connection, next, sent } = yield* open({ protocol: v2026, hooks: { listRoots }, logLevel: "info" })
    const expected = meta({ "io.modelcontextprotocol/logLevel": "info" }, { roots: {} })
    assert.deepStrictEqual((yield* sent)[0], {
      jsonrpc: "2.0",
      id: 1,
      method: "server/discover",
      params: { _meta: expected }
    })
    yield* Effect.forkChild(client.listTools(), { startImmediately: true })
    assert.deepNestedInclude(yield* next, { "params._meta": expected })
    yield* Effect.forkChild(
      connection.request(McpSchema.Complete, {
        ref: { type: "ref/prompt", name: "p" },
        argument: { name: "a", value: "" }
      }),
      { startImmediately: true }
    )
    assert.deepNestedInclude(yield* next, { "params._meta": expected })
    yield* Effect.forkChild(Stream.runDrain(connection.callTool({ name: "work" })), { startImmediately: true })
    assert.deepNestedInclude(yield* next, { "params._meta": { ...expected, progressToken: "progress-1" } })
    yield* connection.rootsChanged
  }))

it.effect("has a client before it calls anything of 2026-07-28 by itself", () =>
  Effect.gen(function*() {
    const { connection } = yield* connect({ protocol: v2026 })
    const error = yield* Effect.flip(Stream.runDrain(connection.callTool({ name: "work" })))
    assert.strictEqual(error.message, "make the client of this connection first")
  }))

const inputRequired = (inputRequests: object, requestState?: string) => ({
  resultType: "input_required",
  inputRequests,
  ...(requestState === undefined ? {} : { requestState })
})
const roots = { method: "roots/list" }
const answeredRoots = { roots: [{ uri: "file:///tmp", name: "tmp" }] }

it.effect("asks again with the answers and the state, under a new id, until there is a result", () =>
  Effect.gen(function*() {
    const { client, next, receive } = yield* open({ protocol: v2026, hooks: all })
    const fiber = yield* Effect.forkChild(client.callTool({ tool, arguments: { a: 1 } }), { startImmediately: true })
    yield* next
    const elicitation = { method: "elicitation/create", params: { mode: "url", message: "Go", url: "key" } }
    yield* receive({ id: 2, result: inputRequired({ key: elicitation, roots }, "first") })
    const second = yield* next
    assert.deepInclude(second, { id: 3, method: "tools/call" })
    assert.deepNestedInclude(second, {
      "params.name": "work",
      "params.arguments": { a: 1 },
      // the key stands for the id that such a question has no more
      "params.inputResponses": { key: { action: "accept" }, roots: answeredRoots },
      "params.requestState": "first"
    })
    yield* receive({ id: 3, result: { resultType: "input_required", requestState: "second" } })
    const third = yield* next
    assert.deepNestedInclude(third, { "params.requestState": "second" })
    assert.notNestedProperty(third, "params.inputResponses")
    yield* receive({ id: 4, result: { resultType: "complete", ...done("thanks") } })
    assert.deepStrictEqual((yield* Fiber.join(fiber)).content, [{ type: "text", text: "thanks" }])
  }))

it.effect("asks again for a call that is followed", () =>
  Effect.gen(function*() {
    const { connection, next, receive } = yield* open({ protocol: v2026, hooks: all })
    const fiber = yield* Effect.forkChild(Stream.runCollect(connection.callTool({ name: "work" })), {
      startImmediately: true
    })
    yield* next
    yield* receive({ id: 2, result: inputRequired({ roots }) })
    assert.deepNestedInclude(yield* next, {
      "params.inputResponses": { roots: answeredRoots },
      "params._meta.progressToken": "progress-2"
    })
    yield* receive(
      { method: "notifications/progress", params: { progressToken: "progress-2", progress: 1 } },
      { id: 3, result: { resultType: "complete", ...done("thanks") } }
    )
    assert.deepStrictEqual((yield* Fiber.join(fiber)).map(({ _tag }) => _tag), ["Progress", "Result"])
  }))

it.effect("gives up a server that never stops asking", () =>
  Effect.gen(function*() {
    const { client, next, receive } = yield* open({ protocol: v2026, hooks: all })
    const fiber = yield* Effect.forkChild(client.callTool({ tool }), { startImmediately: true })
    for (let id = 2; id <= 18; id++) {
      assert.deepInclude(yield* next, { id, method: "tools/call" })
      yield* receive({ id, result: inputRequired({ roots }) })
    }
    assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).reason._tag, "LimitError")
  }))

it.effect("fails the call with the error of a hook", () =>
  Effect.gen(function*() {
    const { client, next, receive } = yield* open({
      protocol: v2026,
      hooks: { listRoots: Effect.fail(new JsonRpc.JsonRpcError({ code: -1, message: "the user said no" })) }
    })
    const fiber = yield* Effect.forkChild(client.callTool({ tool }), { startImmediately: true })
    yield* next
    yield* receive({ id: 2, result: inputRequired({ roots }) })
    assert.deepInclude((yield* Effect.flip(Fiber.join(fiber))).reason, { _tag: "ProtocolError", code: -1 })
  }))

it.effect("answers no request in 2026-07-28, where a server has none", () =>
  Effect.gen(function*() {
    const { expectSent, receive, sent } = yield* open({ protocol: v2026, hooks: all })
    const before = yield* sent
    yield* receive({ id: 1, method: "ping" }, { id: 2, method: "roots/list" }, { id: 3, method: "else" })
    yield* expectSent(...before)
  }))

it.effect("listens until its scope closes, from when the server has agreed", () =>
  Effect.gen(function*() {
    const { connection, next, receive } = yield* open({ protocol: v2026 })
    const heard = yield* connection.subscribe()
    const scope = yield* Scope.make()
    const fiber = yield* Effect.forkChild(
      Scope.provide(connection.watch({ tools: true, uris: ["file:///x"] }), scope),
      { startImmediately: true }
    )
    const notifications = { toolsListChanged: true, resourceSubscriptions: ["file:///x"] }
    assert.deepInclude(yield* next, {
      method: "subscriptions/listen",
      params: { notifications, _meta: meta() }
    })
    assert.isUndefined(fiber.pollUnsafe())
    const _meta = { "io.modelcontextprotocol/subscriptionId": 2 }
    yield* receive({ method: "notifications/subscriptions/acknowledged", params: { notifications, _meta } })
    yield* Fiber.join(fiber)
    yield* receive({ method: "notifications/tools/list_changed", params: { _meta } })
    const [change] = yield* Stream.runCollect(Stream.take(heard, 1))
    assert.strictEqual(change?.method, "notifications/tools/list_changed")
    yield* Scope.close(scope, Exit.void)
    assert.deepInclude(yield* next, { method: "notifications/cancelled", params: { requestId: 2 } })
  }))

it.effect("fails to listen where the server refuses", () =>
  Effect.gen(function*() {
    const { connection, next, receive } = yield* open({ protocol: v2026 })
    const fiber = yield* Effect.forkChild(Effect.scoped(connection.watch({ tools: true })), { startImmediately: true })
    yield* next
    yield* receive({ id: 2, error: { code: -32601, message: "no" } })
    assert.deepInclude((yield* Effect.flip(Fiber.join(fiber))).reason, { _tag: "ProtocolError", code: -32601 })
  }))

// -----------------------------------------------------------------------------
// which revision
// -----------------------------------------------------------------------------

/** A client that finds out, and its server, which is the test. */
const finding = Effect.fnUntraced(function*(options?: Partial<McpConnection.ConnectOptions>) {
  const wire = yield* TestKit.make({ framing: "line" })
  const fiber = yield* Effect.forkChild(McpConnection.connect(wire.transport, { ...clientInfo, ...options }), {
    startImmediately: true
  })
  return { ...wire, fiber }
})

it.effect("asks once whether a server knows 2026-07-28", () =>
  Effect.gen(function*() {
    const { expectSent, fiber, next, receive } = yield* finding({ hooks: { createMessage: all.createMessage } })
    const asked = yield* next
    assert.deepInclude(asked, {
      id: 1,
      method: "server/discover",
      params: { _meta: meta({}, { sampling: {} }) }
    })
    yield* receive({ id: 1, result: discovered })
    const { client } = yield* Fiber.join(fiber)
    assert.strictEqual(client.protocolVersion, "2026-07-28")
    yield* expectSent(asked)
  }))

const refusals = [
  { why: "it does not know the question", answer: { error: { code: -32601, message: "Method not found" } } },
  { why: "it speaks another", answer: { result: { ...discovered, supportedVersions: ["2030-01-01"] } } },
  { why: "it refuses", answer: { error: { code: -32022, message: "no", data: { supported: [], requested: "" } } } }
]

for (const { answer, why } of refusals) {
  it.effect(`opens a session where a server does not speak 2026-07-28, since ${why}`, () =>
    Effect.gen(function*() {
      const { expectSent, fiber, next, receive } = yield* finding()
      const asked = yield* next
      yield* receive({ id: 1, ...answer })
      assert.deepStrictEqual(yield* next, initialize(2))
      yield* receive({ id: 2, result: session("2025-03-26") })
      const { client } = yield* Fiber.join(fiber)
      assert.strictEqual<string>(client.protocolVersion, "2025-03-26")
      yield* expectSent(asked, initialize(2), initialized)
    }))
}

it.effect("opens a session with a server that is silent, and goes back where it was only slow", () =>
  Effect.gen(function*() {
    const { fiber, next, receive } = yield* finding({ discoverTimeout: "2 seconds" })
    yield* next
    yield* TestClock.adjust("2 seconds")
    assert.deepInclude(yield* next, { method: "notifications/cancelled" })
    assert.deepStrictEqual(yield* next, initialize(2))
    yield* receive({ id: 2, error: { code: -32022, message: "no", data: { supported: ["2026-07-28"] } } })
    assert.deepInclude(yield* next, { id: 3, method: "server/discover" })
    yield* receive({ id: 3, result: discovered })
    assert.strictEqual((yield* Fiber.join(fiber)).client.protocolVersion, "2026-07-28")
  }))

it.effect("opens a session with another one where a server ends because it was asked", () =>
  Effect.gen(function*() {
    const wires: Array<TestKit.Wire> = []
    const source = Effect.map(TestKit.make({ framing: "line" }), (wire) => {
      wires.push(wire)
      return wire.transport
    })
    const fiber = yield* Effect.forkChild(McpConnection.connect(source, clientInfo), { startImmediately: true })
    const [first] = wires
    assert.isDefined(first)
    assert.deepInclude(yield* first.next, { method: "server/discover" })
    yield* first.endInput
    yield* first.settled
    const second = wires[1]
    assert.isDefined(second)
    assert.deepStrictEqual(yield* second.next, initialize(1))
    yield* second.receive({ id: 1, result: session() })
    yield* Fiber.join(fiber)
    yield* second.expectSent(initialize(1), initialized)
  }))

it.effect("starts no second program where the first is no MCP server", () =>
  Effect.gen(function*() {
    const wires: Array<TestKit.Wire> = []
    const source = Effect.map(TestKit.make({ framing: "line" }), (wire) => {
      wires.push(wire)
      return wire.transport
    })
    const fiber = yield* Effect.forkChild(McpConnection.connect(source, { ...clientInfo, maxNoise: 5 }), {
      startImmediately: true
    })
    yield* wires[0]?.feed("Usage: server\n") ?? Effect.void
    const { message, reason } = yield* Effect.flip(Fiber.join(fiber))
    assert.strictEqual(reason._tag, "ProtocolError")
    assert.include(message, "Usage: server")
    assert.strictEqual(wires.length, 1)
  }))

it.effect("gives a server no longer than its time to open a session", () =>
  Effect.gen(function*() {
    const { fiber } = yield* finding({ timeout: "15 seconds" })
    yield* TestClock.adjust("15 seconds")
    assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).message, "MCP initialization deadline exceeded")
  }))

it.effect("fails where a server speaks no revision of ours, or refuses to open a session", () =>
  Effect.gen(function*() {
    const other = yield* finding({ protocols: [v2025, McpProtocol.v2025_06_18] })
    yield* other.next
    yield* other.receive({ id: 1, result: session("2030-01-01") })
    assert.strictEqual(
      (yield* Effect.flip(Fiber.join(other.fiber))).message,
      "the server speaks \"2030-01-01\", this client 2025-11-25, 2025-06-18"
    )
    const refusing = yield* finding({ protocols: [v2025] })
    yield* refusing.next
    yield* refusing.receive({ id: 1, error: { code: -32600, message: "go away" } })
    assert.deepInclude((yield* Effect.flip(Fiber.join(refusing.fiber))).reason, { _tag: "ProtocolError", code: -32600 })
    const stateless = yield* finding({ protocols: [v2026] })
    yield* stateless.next
    yield* stateless.receive({ id: 1, error: { code: -32601, message: "no" } })
    assert.strictEqual(
      (yield* Effect.flip(Fiber.join(stateless.fiber))).message,
      "the server does not speak 2026-07-28"
    )
  }))

// -----------------------------------------------------------------------------
// one server after the other
// -----------------------------------------------------------------------------

/** A program that starts a server again and again, each of which is the test. */
const restarting = Effect.fnUntraced(function*(options?: Partial<McpConnection.Options>) {
  const wires: Array<TestKit.Wire> = []
  let ended = 0
  const source = Effect.gen(function*() {
    yield* Effect.addFinalizer(() => Effect.sync(() => ended++))
    const wire = yield* TestKit.make({ framing: "line" })
    wires.push(wire)
    return wire.transport
  })
  const connection = yield* McpConnection.make(source, { protocol: v2025, ...options })
  const wire = (index: number) => {
    const found = wires[index]
    assert.isDefined(found)
    return found
  }
  return { connection, wires, wire, ended: () => ended }
})

it.effect("opens the session of a new server as McpClient opened the first, before anything else is sent", () =>
  Effect.gen(function*() {
    const { connection, ended, wire, wires } = yield* restarting({ hooks: all })
    const opening = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* wire(0).next
    yield* wire(0).receive({ id: 1, result: session() })
    const client = yield* Fiber.join(opening)
    const heard = yield* connection.subscribe()
    const lost = yield* Effect.forkChild(client.listTools(), { startImmediately: true })
    yield* wire(0).settled
    yield* wire(0).endInput
    assert.strictEqual((yield* Effect.flip(Fiber.join(lost))).reason._tag, "TransportError")
    assert.strictEqual(wires.length, 1)

    const calls = yield* Effect.forkChild(
      Effect.all([client.listTools(), connection.request(McpSchema.Ping, undefined)], { concurrency: 2 }),
      { startImmediately: true }
    )
    yield* Effect.yieldNow
    yield* wire(0).settled
    assert.deepStrictEqual([wires.length, ended()], [2, 1])
    const [expected] = yield* wire(0).sent
    yield* wire(1).expectSent(expected)
    yield* wire(1).receive({ id: 1, result: session() })
    yield* wire(1).settled
    assert.deepStrictEqual(
      (yield* wire(1).sent).slice(1).map((message) => (message as { readonly method: string }).method),
      ["notifications/initialized", "tools/list", "ping"]
    )
    yield* wire(1).receive({ id: 2, result: { tools: [] } }, { id: 3, result: {} })
    assert.deepStrictEqual((yield* Fiber.join(calls))[0], [])
    yield* wire(1).receive({ method: "notifications/tools/list_changed" })
    const [change] = yield* Stream.runCollect(Stream.take(heard, 1))
    assert.strictEqual(change?.method, "notifications/tools/list_changed")
    // what a program asks of a second client is what the server said already
    yield* makeClient(connection.transport)
    assert.strictEqual((yield* wire(1).sent).length, 4)
  }))

it.effect("asks a new server again to tell of changes", () =>
  Effect.gen(function*() {
    const { connection, wire } = yield* restarting()
    const opening = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* wire(0).next
    yield* wire(0).receive({ id: 1, result: session() })
    yield* Fiber.join(opening)
    yield* wire(0).next
    const scope = yield* Scope.make()
    const watching = yield* Effect.forkChild(Scope.provide(connection.watch({ uris: ["file:///x"] }), scope), {
      startImmediately: true
    })
    assert.deepInclude(yield* wire(0).next, { method: "resources/subscribe" })
    yield* wire(0).receive({ id: 2, result: {} })
    yield* Fiber.join(watching)
    yield* wire(0).endInput
    yield* wire(0).settled
    yield* Effect.forkChild(connection.request(McpSchema.Ping, undefined), { startImmediately: true })
    yield* wire(0).settled
    yield* wire(1).receive({ id: 1, result: session() })
    yield* wire(1).settled
    assert.sameMembers(
      (yield* wire(1).sent).map((message) => (message as { readonly method: string }).method),
      ["initialize", "notifications/initialized", "resources/subscribe", "ping"]
    )
    yield* wire(1).endInput
    yield* wire(1).settled
    // nobody is there to hear it
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual((yield* wire(1).sent).length, 4)
  }))

it.effect("listens again where there are no sessions", () =>
  Effect.gen(function*() {
    const { connection, wire } = yield* restarting({ protocol: v2026 })
    const opening = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* wire(0).next
    yield* wire(0).receive({ id: 1, result: discovered })
    yield* Fiber.join(opening)
    const heard = yield* connection.subscribe()
    const watching = yield* Effect.forkChild(connection.watch({ tools: true }), { startImmediately: true })
    yield* wire(0).next
    yield* wire(0).receive({ method: "notifications/subscriptions/acknowledged", params: { notifications: {} } })
    yield* Fiber.join(watching)
    yield* wire(0).endInput
    yield* wire(0).settled
    yield* connection.rootsChanged
    yield* Effect.forkChild(Stream.runDrain(connection.callTool({ name: "work" })), { startImmediately: true })
    yield* wire(0).settled
    assert.sameMembers(
      (yield* wire(1).sent).map((message) => (message as { readonly method: string }).method),
      ["subscriptions/listen", "tools/call"]
    )
    yield* wire(1).receive({ method: "notifications/tools/list_changed" })
    assert.strictEqual((yield* Stream.runCollect(Stream.take(heard, 1))).length, 1)
  }))

it.effect("tries again with the next request when a new server does not open a session", () =>
  Effect.gen(function*() {
    const { connection, wire, wires } = yield* restarting()
    const opening = yield* Effect.forkChild(makeClient(connection.transport), { startImmediately: true })
    yield* wire(0).next
    yield* wire(0).receive({ id: 1, result: session() })
    yield* Fiber.join(opening)
    yield* wire(0).endInput
    yield* wire(0).settled
    const ask = () =>
      Effect.forkChild(Effect.flip(connection.request(McpSchema.Ping, undefined)), { startImmediately: true })
    const refused = yield* ask()
    yield* wire(0).settled
    yield* wire(1).receive({ id: 1, error: { code: -32600, message: "go away" } })
    assert.deepInclude((yield* Fiber.join(refused)).reason, { _tag: "ProtocolError", code: -32600 })
    const silent = yield* ask()
    yield* wire(0).settled
    yield* TestClock.adjust("1 minute")
    assert.strictEqual((yield* Fiber.join(silent)).reason._tag, "TimeoutError")
    const other = yield* ask()
    yield* wire(0).settled
    yield* wire(3).receive({ id: 1, result: session("2025-06-18") })
    assert.strictEqual((yield* Fiber.join(other)).reason._tag, "UnsupportedError")
    assert.strictEqual(wires.length, 4)
  }))

it.effect("fails to be made with the error of its first start, and a request with that of a later one", () =>
  Effect.gen(function*() {
    class NoServer extends Error {}
    let isThere = true
    const source = Effect.suspend(() =>
      isThere ? TestKit.make({ framing: "line" }) : Effect.fail(new NoServer("no such program"))
    )
    const wires: Array<TestKit.Wire> = []
    const transports = Effect.map(source, (wire) => {
      wires.push(wire)
      return wire.transport
    })
    const connection = yield* McpConnection.make(transports, { protocol: v2025 })
    isThere = false
    assert.instanceOf(yield* Effect.flip(McpConnection.make(transports, { protocol: v2025 })), NoServer)
    yield* wires[0]?.endInput ?? Effect.void
    yield* wires[0]?.settled ?? Effect.void
    const error = yield* Effect.flip(makeClient(connection.transport))
    assert.deepStrictEqual([error.reason._tag, error.message], ["TransportError", "no such program"])
  }))

it.effect("starts one server for many, and goes on when the one that asked is gone", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    let starts = 0
    const wires: Array<TestKit.Wire> = []
    const source = Effect.gen(function*() {
      if (starts++ > 0) yield* Deferred.await(gate)
      const wire = yield* TestKit.make({ framing: "line" })
      wires.push(wire)
      return wire.transport
    })
    const connection = yield* McpConnection.make(source, { protocol: v2025 })
    yield* wires[0]?.endInput ?? Effect.void
    yield* wires[0]?.settled ?? Effect.void
    const first = yield* Effect.forkChild(connection.peer, { startImmediately: true })
    const second = yield* Effect.forkChild(connection.peer, { startImmediately: true })
    yield* Effect.yieldNow
    yield* Fiber.interrupt(first)
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(second)
    assert.deepStrictEqual([starts, wires.length], [2, 2])
  }))

it.effect("is a layer with a client of what the server speaks", () =>
  Effect.gen(function*() {
    const wire = yield* TestKit.make({ framing: "line" })
    const fiber = yield* Effect.forkChild(
      Effect.provide(
        Effect.map(McpClient.McpClient, ({ protocolVersion }) => protocolVersion),
        McpConnection.layerClient(wire.transport, clientInfo)
      ),
      { startImmediately: true }
    )
    yield* wire.next
    yield* wire.receive({ id: 1, result: discovered })
    assert.strictEqual(yield* Fiber.join(fiber), "2026-07-28")
  }))

it.effect("is a layer that gives McpClient its transport", () =>
  Effect.gen(function*() {
    const wire = yield* TestKit.make({ framing: "line" })
    const ClientLive = Layer.effect(McpClient.McpClient, McpClient.make(clientInfo)).pipe(
      Layer.provideMerge(McpConnection.layer(wire.transport, { protocol: v2025 }))
    )
    const fiber = yield* Effect.forkChild(
      Effect.gen(function*() {
        const client = yield* McpClient.McpClient
        const connection = yield* McpConnection.McpConnection
        return [client.serverInfo?.name, connection.transport.protocol.protocolVersion]
      }).pipe(Effect.provide(ClientLive)),
      { startImmediately: true }
    )
    yield* wire.next
    yield* wire.receive({ id: 1, result: session() })
    assert.deepStrictEqual(yield* Fiber.join(fiber), ["server", "2025-11-25"])
  }))

/**
 * Failures that were reported against other programs, replayed: what MCP servers do to their clients. Each name starts
 * with the number of the report; F124, F170, F174, F179, F181 and F187 are in `test/Mcp.test.ts` and
 * `test/Mcp.extras.test.ts` too.
 */
import { assert, it } from "@effect/vitest"
import * as Mcp from "effect-stdio/Mcp"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { codes, open, text } from "../utils/mcp.ts"
import type { Options } from "../utils/mcp.ts"

const connect = (registrations: NonNullable<Options["registrations"]>, options?: Pick<Options, "logToClient">) =>
  open({ version: "3.2.1", ...options, registrations })

const initialize = (protocolVersion: unknown = "2025-11-25", capabilities = {}) => ({
  id: 0,
  method: "initialize",
  params: { protocolVersion, capabilities, clientInfo: { name: "test", version: "1" } }
})
const initialized = { method: "notifications/initialized" }
const call = (id: number, name: string, args: object = {}) => ({
  id,
  method: "tools/call",
  params: { name, arguments: args }
})
const listTools = (id: number) => ({ id, method: "tools/list" })
const modern = (request: { readonly id: number; readonly method: string; readonly params?: object }) => ({
  ...request,
  params: {
    ...request.params,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {}
    }
  }
})

const answered = (...ids: ReadonlyArray<number>) => ids.map((id) => ({ id, code: undefined }))

const Echo = Toolkit.make(
  Tool.make("echo", {
    parameters: Schema.Struct({ text: Schema.String }),
    success: Schema.Struct({ text: Schema.String })
  })
)
const echo = McpServer.toolkit(Echo).pipe(
  Layer.provide(Echo.toLayer({ echo: ({ text }) => Effect.succeed({ text }) }))
)

/** Runs an effect when the server starts, or beside it. */
const atStart = (effect: (server: McpServer.McpServer["Service"]) => Effect.Effect<unknown, never, Scope.Scope>) =>
  Layer.effectDiscard(Effect.flatMap(McpServer.McpServer, effect))

// -----------------------------------------------------------------------------

it.effect("F170 refuses a request before initialize under its id, and goes on", () =>
  Effect.gen(function*() {
    const server = yield* connect(echo)
    assert.deepStrictEqual(codes(yield* server.ask(listTools(1))), [{ id: 1, code: -32600 }])
    assert.deepStrictEqual(codes(yield* server.ask(initialize(), listTools(2))), answered(0, 2))
    assert.deepStrictEqual(codes(yield* server.ask(initialized, listTools(3))), answered(3))
  }))

it.effect("F172 serves a client that forgets to say that it is initialized", () =>
  Effect.gen(function*() {
    const server = yield* connect(echo)
    yield* server.ask(initialize())
    const answers = yield* server.ask(listTools(1), call(2, "echo", { text: "x" }), { id: 3, method: "ping" })
    assert.sameDeepMembers(codes(answers), answered(1, 2, 3))
  }))

it.effect("F173 tells a client nothing that happened before it said initialize", () =>
  Effect.gen(function*() {
    const speak = ({ notifications }: McpServer.McpServer["Service"]) =>
      Effect.andThen(
        notifications["notifications/message"]({ level: "error", data: "starting" }),
        notifications["notifications/tools/list_changed"]({})
      )
    const server = yield* connect(
      Layer.mergeAll(
        echo,
        atStart((server) =>
          Effect.andThen(
            Effect.forkScoped(speak(server)),
            Effect.forkScoped(Effect.andThen(Effect.sleep("1 second"), speak(server)))
          )
        ),
        atStart(() => Effect.logError("started"))
      ),
      { logToClient: true }
    )
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* server.news, [])
    // the answer is the first that it hears, and nothing old comes after it
    assert.deepStrictEqual(codes(yield* server.ask(initialize(), initialized)), answered(0))
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* server.news, [])
  }))

it.effect("F174 offers its newest version for any other, and refuses what is no version", () =>
  Effect.gen(function*() {
    for (const version of ["2099-01-01", "2026-07-28", "2024-10-07", "1.0", ""]) {
      const server = yield* connect(echo)
      const [answer] = yield* server.ask(initialize(version))
      assert.strictEqual(answer?.result?.["protocolVersion"], "2025-11-25", version)
    }
    for (const version of [null, 20_251_125, {}]) {
      const server = yield* connect(echo)
      assert.deepStrictEqual(codes(yield* server.ask(initialize(version))), [{ id: 0, code: -32602 }])
      // a client that learnt of it may try again
      assert.deepStrictEqual(codes(yield* server.ask(initialize())), answered(0))
    }
  }))

it.effect("F177 answers a single request with a single object, in each revision", () =>
  Effect.gen(function*() {
    for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
      const server = yield* connect(echo)
      yield* server.ask(initialize(version))
      yield* server.ask(call(1, "echo", { text: "x" }), modern(listTools(2)))
      const lines = (yield* server.sentText).trimEnd().split("\n")
      assert.strictEqual(lines.length, 3)
      for (const line of lines) assert.match(line, /^\{"jsonrpc":"2\.0","id":[012],"result":\{/)
    }
  }))

it.effect("F178 writes a notification of a tool as a line of its own, without an id or other members", () =>
  Effect.gen(function*() {
    const Tools = Toolkit.make(Tool.make("change", {
      success: Schema.Struct({}),
      dependencies: [McpServer.McpServer]
    }))
    const registrations = McpServer.toolkit(Tools).pipe(Layer.provide(Tools.toLayer({
      change: () =>
        Effect.gen(function*() {
          const { notifications } = yield* McpServer.McpServer
          yield* notifications["notifications/tools/list_changed"]({})
          return {}
        })
    })))
    const changed = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{}}"
    for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
      const server = yield* connect(registrations)
      yield* server.ask(initialize(version), initialized)
      // in a batch, where a batch there is
      const request = text(call(1, "change"))
      yield* server.ask(version === "2025-03-26" ? `[${request}]` : request)
      const lines = (yield* server.sentText).trimEnd().split("\n").slice(1)
      assert.strictEqual(lines.length, 2)
      assert.include(lines, changed)
    }
  }))

it.effect("F179 refuses a token that is neither text nor a number, and tells no progress", () =>
  Effect.gen(function*() {
    const Tools = Toolkit.make(Tool.make("report", {
      success: Schema.Struct({}),
      dependencies: [McpServer.McpServer]
    }))
    const registrations = McpServer.toolkit(Tools).pipe(Layer.provide(Tools.toLayer({
      report: () =>
        Effect.gen(function*() {
          const progress = yield* Mcp.progress
          yield* progress.report(1)
          return {}
        })
    })))
    const server = yield* connect(registrations)
    yield* server.ask(initialize(), initialized)
    for (const progressToken of [null, true, {}, [0]]) {
      const request = { id: 1, method: "tools/call", params: { name: "report", _meta: { progressToken } } }
      assert.deepStrictEqual(codes(yield* server.ask(request)), [{ id: 1, code: -32602 }])
    }
  }))

it.effect("F182 answers a line that is no JSON with a parse error under null", () =>
  Effect.gen(function*() {
    for (const before of [[], [initialize(), initialized]]) {
      const server = yield* connect(echo)
      yield* server.ask(...before)
      yield* server.ask("{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"\"}")
      assert.strictEqual(
        (yield* server.sentText).split("\n").at(-2),
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error: the frame is not valid JSON\"}}"
      )
    }
  }))

it.effect("F183 answers under the request's id whatever kind of handler fails or dies, and goes on", () =>
  Effect.gen(function*() {
    const fails = { fail: Effect.fail(new Error("failed")), die: Effect.die(new Error("the secret is 42")) }
    const Tools = Toolkit.make(
      Tool.make("fail", { success: Schema.Struct({}), failure: Schema.String }),
      Tool.make("die", { success: Schema.Struct({}) })
    )
    const registrations = Layer.mergeAll(
      McpServer.toolkit(Tools).pipe(
        Layer.provide(Tools.toLayer({ fail: () => Effect.fail("failed"), die: () => fails.die }))
      ),
      McpServer.prompt({ name: "fail", content: () => fails.fail }),
      McpServer.prompt({
        name: "die",
        parameters: { topic: Schema.String },
        completion: { topic: () => fails.die },
        content: () => fails.die
      }),
      McpServer.prompt({
        name: "complete",
        parameters: { topic: Schema.String },
        completion: { topic: () => fails.fail },
        content: () => Effect.succeed("x")
      }),
      McpServer.resource({ uri: "test://fail", name: "fail", content: fails.fail }),
      McpServer.resource({ uri: "test://die", name: "die", content: fails.die }),
      McpServer.resource`test://of/${Schema.String}`({ name: "of", content: () => fails.die })
    )
    const complete = (id: number, name: string) => ({
      id,
      method: "completion/complete",
      params: { ref: { type: "ref/prompt", name }, argument: { name: "topic", value: "" } }
    })
    const requests = [
      call(1, "fail"),
      call(2, "die"),
      { id: 3, method: "prompts/get", params: { name: "fail" } },
      { id: 4, method: "prompts/get", params: { name: "die", arguments: { topic: "x" } } },
      { id: 5, method: "resources/read", params: { uri: "test://fail" } },
      { id: 6, method: "resources/read", params: { uri: "test://die" } },
      { id: 7, method: "resources/read", params: { uri: "test://of/x" } },
      complete(8, "die"),
      complete(9, "complete")
    ]
    const server = yield* connect(registrations)
    yield* server.ask(initialize(), initialized)
    for (const asked of [requests, requests.map(modern)]) {
      const answers = yield* server.ask(...asked)
      assert.sameDeepMembers(codes(answers), [
        ...answered(1, 2),
        ...[3, 4, 5, 6, 7, 8, 9].map((id) => ({ id, code: -32603 }))
      ])
      for (const { id, result } of answers) {
        if (result !== undefined) assert.strictEqual(result["isError"], true, String(id))
      }
    }
    assert.notInclude(yield* server.sentText, "secret")
    assert.deepStrictEqual(codes(yield* server.ask({ id: 10, method: "ping" })), answered(10))
  }))

it.effect("F184 lets a handler see that it is cancelled: its signal is aborted and its finalizers run", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const Tools = Toolkit.make(Tool.make("fetch", { success: Schema.Struct({}) }))
    const registrations = McpServer.toolkit(Tools).pipe(Layer.provide(Tools.toLayer({
      fetch: () =>
        Effect.acquireUseRelease(
          Effect.sync(() => log.push("acquired")),
          () =>
            Effect.promise((signal) =>
              new Promise<Record<string, never>>(() => {
                signal.addEventListener("abort", () => log.push("aborted"))
              })
            ),
          () => Effect.sync(() => log.push("released"))
        )
    })))
    const server = yield* connect(registrations)
    yield* server.ask(initialize(), initialized)
    for (const request of [call(1, "fetch"), modern(call(2, "fetch"))]) {
      log.length = 0
      yield* server.ask(request)
      assert.deepStrictEqual(log, ["acquired"])
      assert.deepStrictEqual(
        yield* server.ask({ method: "notifications/cancelled", params: { requestId: request.id, reason: "x" } }),
        []
      )
      assert.deepStrictEqual(log, ["acquired", "aborted", "released"])
    }
  }))

const Roots = Toolkit.make(Tool.make("roots", { success: Schema.Array(Schema.String) }))

/** A tool that asks the client for its roots, beside one that asks nobody. */
const asksForRoots = Layer.merge(
  echo,
  McpServer.toolkit(Roots).pipe(Layer.provide(Roots.toLayer({
    roots: () =>
      Effect.gen(function*() {
        const session = yield* Effect.flatMap(Effect.serviceOption(McpSchema.McpServerClient), Effect.fromOption)
        const client = yield* session.getClient
        return (yield* client.listRoots()).roots.map(({ uri }) => uri)
      }).pipe(Effect.scoped, Effect.orDie)
  })))
)

it.effect("F186 serves other calls while a client is mute that said it has roots", () =>
  Effect.gen(function*() {
    const server = yield* connect(asksForRoots)
    yield* server.ask(initialize(undefined, { roots: {} }), initialized)
    const [asked, ...more] = yield* server.ask(call(1, "roots"))
    assert.strictEqual(asked?.method, "roots/list")
    assert.deepStrictEqual(more, [])
    const answers = yield* server.ask(call(2, "echo", { text: "x" }), listTools(3))
    assert.sameDeepMembers(codes(answers), answered(2, 3))
    // it may speak up later
    const answer = { id: asked?.id, result: { roots: [{ uri: "file:///a" }] } }
    assert.include(JSON.stringify(yield* server.ask(answer)), "file:///a")
  }))

it.effect("F186 waits for the roots of a mute client no longer than for any call", () =>
  Effect.gen(function*() {
    const server = yield* connect(asksForRoots)
    yield* server.ask(initialize(undefined, { roots: {} }), initialized)
    yield* server.ask(call(1, "roots"))
    yield* TestClock.adjust("30 seconds")
    const answers = (yield* server.news).filter(({ id }) => id === 1)
    assert.deepStrictEqual(answers.map(({ result }) => result?.["isError"]), [true])
  }))

it.effect("F187 tells the version of its options wherever it says who it is", () =>
  Effect.gen(function*() {
    const server = yield* connect(echo)
    const [opened] = yield* server.ask(initialize())
    assert.deepStrictEqual(opened?.result?.["serverInfo"], { name: "test", version: "3.2.1" })
    for (const method of ["server/discover", "tools/list"]) {
      const [answer] = yield* server.ask(modern({ id: 1, method }))
      assert.deepInclude(answer?.result, {
        _meta: { "io.modelcontextprotocol/serverInfo": { name: "test", version: "3.2.1" } }
      })
    }
  }))

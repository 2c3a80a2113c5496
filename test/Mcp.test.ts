/**
 * MCP on a transport whose other end is the test: what stands between the pipe and Effect's McpServer.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Mcp from "effect-stdio/Mcp"
import type * as Server from "effect-stdio/Server"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Watchdog from "effect-stdio/Watchdog"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"

// -----------------------------------------------------------------------------
// a small server
// -----------------------------------------------------------------------------

const Tools = Toolkit.make(
  Tool.make("echo", {
    parameters: Schema.Struct({ text: Schema.String }),
    success: Schema.Struct({ text: Schema.String })
  }),
  Tool.make("wait", { parameters: Schema.Struct({ seconds: Schema.Finite }), success: Schema.Struct({}) }),
  Tool.make("stubborn", { parameters: Schema.Struct({ seconds: Schema.Finite }), success: Schema.Struct({}) }),
  Tool.make("crash", { parameters: Schema.Struct({ text: Schema.String }), success: Schema.Struct({}) })
)

let interrupted = 0

const registrations = McpServer.toolkit(Tools).pipe(Layer.provide(Tools.toLayer({
  echo: ({ text }) => Effect.succeed({ text }),
  wait: ({ seconds }) =>
    Effect.sleep(seconds * 1_000).pipe(
      Effect.as({}),
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          interrupted++
        })
      )
    ),
  stubborn: ({ seconds }) => Effect.as(Effect.uninterruptible(Effect.sleep(seconds * 1_000)), {}),
  crash: () => Effect.die(new Error("the secret is 42"))
})))

interface Running extends TestKit.Wire {
  readonly reason: Effect.Effect<Server.StopReason, unknown>
  /** The reply with this id, once everything has run that can. */
  readonly reply: (id: number | string) => Effect.Effect<Reply | undefined>
}

interface Reply {
  readonly id?: number | string | null
  readonly method?: string
  readonly params?: unknown
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

type Options = Partial<Mcp.Options<never, never, McpServer.McpServer>>

const start = (options?: Options): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function*() {
    const wire = yield* TestKit.make()
    const fiber = yield* Mcp.run({ name: "test", version: "1.0.0", registrations, ...options }).pipe(
      Effect.provide([Layer.succeed(Transport.Transport, wire.transport), Watchdog.layerNone, Logger.layer([])]),
      Effect.forkScoped
    )
    // McpServer builds its layers in its own time
    const settled = Effect.repeat(wire.settled, { times: 3 })
    yield* settled
    return {
      ...wire,
      settled,
      reason: Fiber.join(fiber),
      reply: (id) =>
        Effect.andThen(
          settled,
          Effect.map(wire.sent, (sent) =>
            (sent.flat() as Array<Reply>).find(({ id: replied, method }) => replied === id && method === undefined))
        )
    }
  })

const initialize = (id: number, protocolVersion = "2025-11-25") => ({
  id,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } }
})

const claim = (version: unknown) => ({
  _meta: {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" }
  }
})

const call = (id: number | string, name: string, args: object) => ({
  id,
  method: "tools/call",
  params: { name, arguments: args }
})

const initialized = Effect.fnUntraced(function*(protocolVersion?: string, options?: Options) {
  const server = yield* start(options)
  yield* server.receive(initialize(0, protocolVersion), { method: "notifications/initialized" })
  yield* server.reply(0)
  return server
})

// -----------------------------------------------------------------------------

describe("a session", () => {
  it.effect("is opened in the revision asked for, and serves", () =>
    Effect.gen(function*() {
      for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
        const server = yield* initialized(version)
        assert.strictEqual((yield* server.reply(0))?.result?.["protocolVersion"], version)
        yield* server.receive(call(1, "echo", { text: "日本" }))
        assert.include(JSON.stringify((yield* server.reply(1))?.result?.["content"]), "日本")
      }
    }))

  it.effect("F174 is offered the newest revision that has sessions when an unknown one is asked for", () =>
    Effect.gen(function*() {
      const server = yield* initialized("2099-01-01")
      assert.strictEqual((yield* server.reply(0))?.result?.["protocolVersion"], "2025-11-25")
    }))

  it.effect("F124 tells the instructions, and has no such member without them", () =>
    Effect.gen(function*() {
      const told = yield* initialized(undefined, { instructions: "Use tool A first" })
      assert.strictEqual((yield* told.reply(0))?.result?.["instructions"], "Use tool A first")
      const silent = yield* initialized()
      assert.notProperty((yield* silent.reply(0))?.result, "instructions")
    }))

  it.effect("F170 must be opened first: other requests are refused, ping is served", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive({ id: 1, method: "tools/list" }, { id: 2, method: "ping" })
      assert.deepStrictEqual((yield* server.reply(1))?.error, {
        code: -32600,
        message: "Invalid request: send initialize first"
      })
      assert.deepStrictEqual((yield* server.reply(2))?.result, {})
    }))

  it.effect("F170 serves requests that arrive while it is being opened, after that", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive(initialize(0), { id: 1, method: "tools/list" }, call(2, "echo", { text: "x" }))
      assert.isDefined((yield* server.reply(1))?.result)
      assert.isDefined((yield* server.reply(2))?.result)
      assert.strictEqual(((yield* server.sent)[0] as Reply).id, 0)
    }))

  it.effect("is opened once: a second initialize is refused, also one that was sent along", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive(initialize(0), initialize(1, "2024-11-05"))
      assert.isDefined((yield* server.reply(0))?.result)
      assert.strictEqual((yield* server.reply(1))?.error?.code, -32600)
      yield* server.receive(initialize(2))
      assert.strictEqual((yield* server.reply(2))?.error?.code, -32600)
    }))

  it.effect("may be asked for again after a request for one that was refused", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive({ id: 0, method: "initialize", params: {} }, initialize(1))
      assert.isDefined((yield* server.reply(0))?.error)
      assert.isDefined((yield* server.reply(1))?.result)
    }))

  it.effect("takes params that are an object", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive({ id: 1, method: "tools/list", params: [] })
      assert.strictEqual((yield* server.reply(1))?.error?.code, -32602)
    }))

  it.effect("serves batches in the revision 2025-03-26, and refuses them in all others", () =>
    Effect.gen(function*() {
      const batch = [
        { jsonrpc: "2.0", id: 1, method: "ping" },
        { jsonrpc: "2.0", id: 2, method: "tools/list" }
      ]
      const old = yield* initialized("2025-03-26")
      yield* old.receive(batch)
      assert.isDefined((yield* old.reply(2))?.result)
      assert.isTrue((yield* old.sent).some((frame) => Array.isArray(frame) && frame.length === 2))
      for (const server of [yield* initialized("2025-11-25"), yield* start()]) {
        yield* server.receive(batch)
        assert.strictEqual((yield* server.reply(null as never))?.error?.code, -32600)
      }
    }))

  it.effect("F187 tells the version it was given", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      assert.deepStrictEqual((yield* server.reply(0))?.result?.["serverInfo"], { name: "test", version: "1.0.0" })
    }))
})

describe("a message with a version of its own", () => {
  it.effect("is served without a session, beside one on the same pipe", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive(
        { id: "m1", method: "server/discover", params: claim("2026-07-28") },
        initialize(0),
        { id: "m2", method: "tools/list", params: claim("2026-07-28") },
        { id: 1, method: "tools/list" }
      )
      assert.deepStrictEqual((yield* server.reply("m1"))?.result?.["supportedVersions"], ["2026-07-28"])
      assert.strictEqual((yield* server.reply("m2"))?.result?.["resultType"], "complete")
      assert.notProperty((yield* server.reply(1))?.result, "resultType")
    }))

  it.effect("is refused with the versions there are when it is not served, on every request", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive(
        { id: 1, method: "tools/list", params: claim("1900-01-01") },
        { id: 2, method: "tools/list", params: claim("2025-11-25") }
      )
      assert.deepStrictEqual((yield* server.reply(1))?.error, {
        code: -32022,
        message: "Unsupported protocol version: 1900-01-01",
        data: { supported: ["2026-07-28"], requested: "1900-01-01" }
      })
      assert.strictEqual((yield* server.reply(2))?.error?.code, -32022)
    }))

  it.effect("is refused when the version is no text", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive({ id: 1, method: "tools/list", params: claim(20_260_728) })
      assert.strictEqual((yield* server.reply(1))?.error?.code, -32602)
    }))

  it.effect("is what discovery and subscriptions must be", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive({ id: 1, method: "server/discover" }, { id: 2, method: "subscriptions/listen" })
      assert.strictEqual((yield* server.reply(1))?.error?.code, -32602)
      assert.strictEqual((yield* server.reply(2))?.error?.code, -32602)
    }))
})

describe("a tool", () => {
  it.effect("that is cancelled is interrupted and never answered, and its id is free again", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      const before = interrupted
      yield* server.receive(call(1, "wait", { seconds: 60 }))
      yield* server.settled
      yield* server.receive({ method: "notifications/cancelled", params: { requestId: 1 } })
      yield* server.settled
      assert.strictEqual(interrupted, before + 1)
      assert.isUndefined(yield* server.reply(1))
      yield* server.receive(call(1, "echo", { text: "again" }))
      assert.include(JSON.stringify((yield* server.reply(1))?.result), "again")
    }))

  it.effect("that was cancelled and is still ending does not spoil its id", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive(call(1, "stubborn", { seconds: 5 }))
      yield* server.settled
      yield* server.receive({ method: "notifications/cancelled", params: { requestId: 1 } })
      yield* server.receive(call(1, "echo", { text: "second" }))
      yield* server.settled
      yield* TestClock.adjust("5 seconds")
      assert.include(JSON.stringify((yield* server.reply(1))?.result), "second")
      yield* server.receive(call(1, "echo", { text: "third" }))
      yield* server.settled
      assert.include(JSON.stringify((yield* server.sent).at(-1)), "third")
    }))

  it.effect("that dies tells the client nothing of the cause", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive(call(1, "crash", { text: "x" }))
      assert.strictEqual((yield* server.reply(1))?.result?.["isError"], true)
      assert.notInclude(yield* server.sentText, "secret")
    }))

  it.effect("F106 with a missing argument fails as a tool, an unknown one as a request", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive(call(1, "echo", {}), call(2, "no such tool", {}), call(3, "toString", {}))
      assert.strictEqual((yield* server.reply(1))?.result?.["isError"], true)
      assert.strictEqual((yield* server.reply(2))?.error?.code, -32602)
      assert.strictEqual((yield* server.reply(3))?.error?.code, -32602)
    }))

  it.effect("keeps ids apart that differ by type", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive(call(1, "wait", { seconds: 1 }), call("1", "echo", { text: "text" }))
      assert.include(JSON.stringify((yield* server.reply("1"))?.result), "text")
      assert.isUndefined(yield* server.reply(1))
      yield* TestClock.adjust("1 second")
      assert.isDefined((yield* server.reply(1))?.result)
    }))
})

describe("the end", () => {
  it.effect("waits for tools that run", () =>
    Effect.gen(function*() {
      const server = yield* initialized()
      yield* server.receive(call(1, "wait", { seconds: 5 }))
      yield* server.settled
      yield* server.endInput
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      assert.isDefined((yield* server.reply(1))?.result)
    }))

  it.effect("closes open subscriptions with a result, at once", () =>
    Effect.gen(function*() {
      const server = yield* start({ concurrency: 1, handlerTimeout: "1 second" })
      yield* server.receive({
        id: "sub",
        method: "subscriptions/listen",
        params: { ...claim("2026-07-28"), notifications: { toolsListChanged: true } }
      })
      yield* server.settled
      // it takes no place and has no time limit
      yield* TestClock.adjust("1 hour")
      yield* server.receive({ id: 1, method: "tools/list", params: claim("2026-07-28") })
      assert.isDefined((yield* server.reply(1))?.result)
      yield* server.endInput
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      assert.deepStrictEqual((yield* server.reply("sub"))?.result, {
        resultType: "complete",
        _meta: { "io.modelcontextprotocol/subscriptionId": "sub" }
      })
    }))
})

describe("a request to the client", () => {
  const Ask = Tool.make("ask", {
    parameters: Schema.Struct({ question: Schema.String }),
    success: Schema.Struct({ answer: Schema.String })
  })
  const AskTools = Toolkit.make(Ask)
  const asking = McpServer.toolkit(AskTools).pipe(Layer.provide(AskTools.toLayer({
    ask: ({ question }) =>
      Effect.gen(function*() {
        // requests without a session have no such service, so that it is optional
        const session = yield* Effect.flatMap(Effect.serviceOption(McpSchema.McpServerClient), Effect.fromOption)
        const client = yield* session.getClient
        const reply = yield* client.createMessage({
          messages: [{ role: "user", content: { type: "text", text: question } }],
          maxTokens: 10
        })
        return { answer: JSON.stringify(reply.content) }
      }).pipe(Effect.scoped, Effect.orDie)
  })))

  const session = Effect.fnUntraced(function*() {
    const server = yield* start({ registrations: asking })
    yield* server.receive({
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: { sampling: {} }, clientInfo: { name: "t", version: "1" } }
    }, { method: "notifications/initialized" })
    yield* server.reply(0)
    yield* server.receive(call(1, "ask", { question: "who?" }))
    yield* server.settled
    const request = ((yield* server.sent) as Array<Reply>).find(({ method }) => method === "sampling/createMessage")
    return { server, request }
  })

  it.effect("F87 is answered while the tool waits for it", () =>
    Effect.gen(function*() {
      const { request, server } = yield* session()
      assert.isDefined(request?.id)
      yield* server.receive({
        id: request?.id,
        result: { role: "assistant", model: "m", content: { type: "text", text: "Ada" } }
      })
      assert.include(JSON.stringify((yield* server.reply(1))?.result), "Ada")
    }))

  it.effect("is cancelled under the id it was sent with when the tool is", () =>
    Effect.gen(function*() {
      const { request, server } = yield* session()
      yield* server.receive({ method: "notifications/cancelled", params: { requestId: 1 } })
      yield* server.settled
      const cancelled = ((yield* server.sent) as Array<Reply>).filter(({ method }) =>
        method === "notifications/cancelled"
      )
      assert.deepStrictEqual(cancelled.map(({ params }) => params), [{ requestId: request?.id }])
    }))
})

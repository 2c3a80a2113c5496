/**
 * What an MCP server gets here beside Effect's McpServer: progress, logs for the client, limits of single tools.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Mcp from "effect-stdio/Mcp"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Watchdog from "effect-stdio/Watchdog"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
}

const Report = Tool.make("report", {
  parameters: Schema.Struct({ values: Schema.Array(Schema.Finite), seconds: Schema.optionalKey(Schema.Finite) }),
  success: Schema.Struct({ done: Schema.Boolean }),
  dependencies: [McpServer.McpServer]
})
const Late = Tool.make("late", {
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({}),
  dependencies: [McpServer.McpServer]
})
const Log = Tool.make("log", {
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({})
})
const Wait = Tool.make("wait", {
  parameters: Schema.Struct({ seconds: Schema.Finite }),
  success: Schema.Struct({ waited: Schema.Finite })
})
const Tools = Toolkit.make(Report, Late, Log, Wait)

const start = Effect.fnUntraced(
  function*(options?: Pick<Mcp.Options, "toolLimits" | "logToClient">) {
    const wire = yield* TestKit.make()
    const late = Deferred.makeUnsafe<void>()
    const begun: Array<number> = []
    const handlers = Tools.toLayer({
      report: ({ seconds, values }) =>
        Effect.gen(function*() {
          const progress = yield* Mcp.progress
          for (const value of values) yield* progress.report(value, { total: 100, message: `at ${value}` })
          if (seconds !== undefined) yield* Effect.sleep(seconds * 1_000)
          return { done: true }
        }),
      late: () =>
        Effect.gen(function*() {
          const progress = yield* Mcp.progress
          yield* Deferred.await(late).pipe(
            Effect.andThen(progress.report(99)),
            Effect.andThen(Effect.log("too late")),
            Effect.forkDetach
          )
          return {}
        }),
      log: ({ text }) =>
        Effect.gen(function*() {
          if (text === "odd") {
            const cycle: Record<string, unknown> = Object.create(null)
            cycle["self"] = cycle
            yield* Effect.logError(cycle)
            yield* Effect.logError("failed", new Error("disk full"))
            return {}
          }
          yield* Effect.logDebug(`debug ${text}`)
          yield* Effect.logInfo(`info ${text}`, { more: true })
          yield* Effect.logWarning(`warning ${text}`)
          return {}
        }),
      wait: ({ seconds }) =>
        Effect.suspend(() => {
          begun.push(seconds)
          return Effect.as(Effect.sleep(seconds * 1_000), { waited: seconds })
        })
    })
    yield* Mcp.run({
      name: "test",
      version: "1.0.0",
      registrations: McpServer.toolkit(Tools).pipe(Layer.provide(handlers)),
      ...options
    }).pipe(
      Effect.provide([Layer.succeed(Transport.Transport, wire.transport), Watchdog.layerNone, Logger.layer([])]),
      Effect.forkScoped
    )
    const settled = Effect.repeat(wire.settled, { times: 3 })
    const messages = Effect.andThen(settled, Effect.map(wire.sent, (sent) => sent as ReadonlyArray<Message>))
    yield* settled
    yield* wire.receive({
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
    }, { method: "notifications/initialized" })
    yield* settled
    return {
      ...wire,
      settled,
      begun,
      speakLate: Deferred.succeed(late, undefined),
      call: (id: number, name: string, args: object, meta?: object) =>
        Effect.andThen(
          wire.receive({
            id,
            method: "tools/call",
            params: { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }
          }),
          settled
        ),
      reply: (id: number) =>
        Effect.map(messages, (all) => all.find((message) => message.id === id && "result" in message)),
      notified: (method: string) => Effect.map(messages, (all) => all.filter((message) => message.method === method)),
      methods: Effect.map(messages, (all) => all.map(({ id, method }) => method ?? id))
    }
  }
)

const modern = (more: object) => ({
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  ...more
})

describe("progress", () => {
  it.effect("F179 is told with the token as it was given, before the reply", () =>
    Effect.gen(function*() {
      for (const token of [0, "", "abc"]) {
        const server = yield* start()
        yield* server.call(1, "report", { values: [10, 20] }, { progressToken: token })
        assert.deepStrictEqual((yield* server.notified("notifications/progress")).map(({ params }) => params), [
          { progressToken: token, progress: 10, total: 100, message: "at 10" },
          { progressToken: token, progress: 20, total: 100, message: "at 20" }
        ])
        assert.deepStrictEqual(yield* server.methods, [0, "notifications/progress", "notifications/progress", 1])
      }
    }))

  it.effect("F179 is not told where it was not asked for", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "report", { values: [10, 20] })
      assert.deepStrictEqual(yield* server.methods, [0, 1])
    }))

  it.effect("is told in a request without a session", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "report", { values: [10] }, modern({ progressToken: "t" }))
      assert.strictEqual((yield* server.notified("notifications/progress")).length, 1)
    }))

  it.effect("F181 only grows", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "report", { values: [1, 3, 2, 3, 5, -1, 6] }, { progressToken: 1 })
      const told = (yield* server.notified("notifications/progress")).map(({ params }) => params?.["progress"])
      assert.deepStrictEqual(told, [1, 3, 5, 6])
    }))

  it.effect("F181 does not flood the pipe, and tells the last of it", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "report", { values: Array.from({ length: 10_000 }, (_, index) => index) }, {
        progressToken: 1
      })
      while ((yield* server.reply(1)) === undefined) yield* server.settled
      const told = (yield* server.notified("notifications/progress")).map(({ params }) => params?.["progress"])
      assert.isBelow(told.length, 30)
      assert.strictEqual(told.at(-1), 9_999)
      assert.strictEqual((yield* server.methods).at(-1), 1)
    }))

  it.effect("is told when its time has come, although no other report follows", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(
        1,
        "report",
        { values: Array.from({ length: 30 }, (_, index) => index), seconds: 60 },
        { progressToken: 1 }
      )
      yield* server.settled
      assert.strictEqual((yield* server.notified("notifications/progress")).length, 20)
      yield* TestClock.adjust("50 millis")
      const told = (yield* server.notified("notifications/progress")).map(({ params }) => params?.["progress"])
      assert.strictEqual(told.at(-1), 29)
      assert.isUndefined(yield* server.reply(1))
      yield* TestClock.adjust("1 minute")
      assert.isDefined(yield* server.reply(1))
    }))

  it.effect("of two requests with one token goes on when one of them ends", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "report", { values: [1], seconds: 60 }, { progressToken: "t" })
      yield* server.call(2, "report", { values: [2] }, { progressToken: "t" })
      yield* server.call(3, "report", { values: [3] }, { progressToken: "t" })
      const told = (yield* server.notified("notifications/progress")).map(({ params }) => params?.["progress"])
      assert.deepStrictEqual(told, [1, 2, 3])
      yield* TestClock.adjust("1 minute")
    }))

  it.effect("is silent after the reply", () =>
    Effect.gen(function*() {
      const server = yield* start({ logToClient: true })
      yield* server.call(1, "late", { text: "x" }, { progressToken: 1 })
      assert.isDefined(yield* server.reply(1))
      yield* server.speakLate
      assert.deepStrictEqual(yield* server.methods, [0, 1])
    }))
})

describe("logs of a handler", () => {
  it.effect("go to the client where that is asked for, from the level it set", () =>
    Effect.gen(function*() {
      const server = yield* start({ logToClient: true })
      yield* server.receive({ id: 5, method: "logging/setLevel", params: { level: "warning" } })
      yield* server.settled
      yield* server.call(1, "log", { text: "x" })
      assert.deepStrictEqual((yield* server.notified("notifications/message")).map(({ params }) => params), [
        { level: "warning", logger: "test", data: "warning x" }
      ])
      yield* server.receive({ id: 6, method: "logging/setLevel", params: { level: "info" } })
      yield* server.settled
      yield* server.call(2, "log", { text: "y" })
      assert.deepStrictEqual((yield* server.notified("notifications/message")).slice(1).map(({ params }) => params), [
        { level: "info", logger: "test", data: ["info y", { more: true }] },
        { level: "warning", logger: "test", data: "warning y" }
      ])
    }))

  it.effect("go nowhere in a request without a session, unless it names a level", () =>
    Effect.gen(function*() {
      const server = yield* start({ logToClient: true })
      yield* server.call(1, "log", { text: "x" }, modern({}))
      assert.deepStrictEqual(yield* server.notified("notifications/message"), [])
      yield* server.call(2, "log", { text: "y" }, modern({ "io.modelcontextprotocol/logLevel": "warning" }))
      assert.deepStrictEqual((yield* server.notified("notifications/message")).map(({ params }) => params?.["data"]), [
        "warning y"
      ])
    }))

  it.effect("come before the reply", () =>
    Effect.gen(function*() {
      const server = yield* start({ logToClient: true })
      yield* server.call(1, "log", { text: "x" })
      assert.deepStrictEqual(yield* server.methods, [0, "notifications/message", "notifications/message", 1])
    }))

  it.effect("may hold what is no JSON", () =>
    Effect.gen(function*() {
      const server = yield* start({ logToClient: true })
      yield* server.call(1, "log", { text: "odd" })
      assert.deepStrictEqual((yield* server.notified("notifications/message")).map(({ params }) => params?.["data"]), [
        "unknown error",
        ["failed", "disk full"]
      ])
      assert.propertyVal((yield* server.reply(1))?.result, "isError", false)
    }))

  it.effect("stay here by default", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "log", { text: "x" })
      assert.deepStrictEqual(yield* server.notified("notifications/message"), [])
    }))
})

describe("limits of a tool", () => {
  it.effect("end a call that takes too long with a tool error, in both eras", () =>
    Effect.gen(function*() {
      const server = yield* start({ toolLimits: (tool) => tool === "wait" ? { timeout: "5 seconds" } : undefined })
      yield* server.call(1, "wait", { seconds: 60 })
      yield* server.call(2, "wait", { seconds: 60 }, modern({}))
      yield* TestClock.adjust("5 seconds")
      const error = {
        content: [{ type: "text", text: "The tool wait was stopped: it took longer than 5s" }],
        isError: true
      }
      assert.deepStrictEqual((yield* server.reply(1))?.result, error)
      assert.deepStrictEqual((yield* server.reply(2))?.result, { resultType: "complete", ...error })
    }))

  it.effect("let calls of one tool wait for each other, and no others", () =>
    Effect.gen(function*() {
      const server = yield* start({ toolLimits: (tool) => tool === "wait" ? { concurrency: 1 } : undefined })
      yield* server.call(1, "wait", { seconds: 2 })
      yield* server.call(2, "wait", { seconds: 1 })
      yield* server.call(3, "log", { text: "x" })
      assert.deepStrictEqual(server.begun, [2])
      assert.isDefined(yield* server.reply(3))
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(yield* server.reply(1))
      yield* server.settled
      assert.deepStrictEqual(server.begun, [2, 1])
      yield* TestClock.adjust("1 second")
      assert.isDefined(yield* server.reply(2))
    }))

  it.effect("count the wait towards the time", () =>
    Effect.gen(function*() {
      const server = yield* start({ toolLimits: () => ({ concurrency: 1, timeout: "3 seconds" }) })
      yield* server.call(1, "wait", { seconds: 2 })
      yield* server.call(2, "wait", { seconds: 2 })
      yield* TestClock.adjust("3 seconds")
      assert.propertyVal((yield* server.reply(1))?.result, "isError", false)
      assert.propertyVal((yield* server.reply(2))?.result, "isError", true)
    }))
})

describe("a structured result", () => {
  it.effect("has a copy as text", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.call(1, "report", { values: [] })
      assert.deepStrictEqual((yield* server.reply(1))?.result, {
        content: [{ type: "text", text: "{\"done\":true}" }],
        structuredContent: { done: true },
        isError: false
      })
    }))
})

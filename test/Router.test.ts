/**
 * What a handler is given, what it may return, and which handler is asked.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeLog, success } from "./utils/peer.ts"

const SECRET = "hunter2-planted"

const Nothing = Schema.Struct({})

const failure = (id: JsonRpc.Id, code: number, message: string) => ({ jsonrpc: "2.0", id, error: { code, message } })

/** Serves these requests and returns everything that was sent. */
const answers = <R>(router: Router.Router<R>, ...requests: ReadonlyArray<object>) =>
  Effect.gen(function*() {
    const server = yield* TestKit.serve({ router })
    yield* server.receive(...requests)
    yield* server.settled
    return yield* server.sent
  })

describe("typed requests", () => {
  it.effect("gives the handler decoded params and writes its result as JSON", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const router = Router.request(
        Router.empty,
        "later",
        {
          params: Schema.Struct({ at: Schema.Date, days: Schema.Finite }),
          result: Schema.Struct({ at: Schema.Date, bytes: Schema.Uint8Array })
        },
        ({ at, days }) =>
          Effect.sync(() => {
            seen.push(at, days)
            return { at: new Date(at.getTime() + days * 86_400_000), bytes: new Uint8Array([1, 2, 3]) }
          })
      )
      const sent = yield* answers(router, {
        id: 1,
        method: "later",
        params: { at: "2024-02-28T00:00:00.000Z", days: 2 }
      })
      assert.deepStrictEqual(seen, [new Date("2024-02-28T00:00:00.000Z"), 2])
      assert.deepStrictEqual(sent, [success(1, { at: "2024-03-01T00:00:00.000Z", bytes: "AQID" })])
    }))

  it.effect("accepts params by position where the schema is an array", () =>
    Effect.gen(function*() {
      const router = Router.request(
        Router.empty,
        "subtract",
        { params: Schema.Tuple([Schema.Finite, Schema.Finite]), result: Schema.Finite },
        ([a, b]) => Effect.succeed(a - b)
      )
      assert.deepStrictEqual(yield* answers(router, { id: 1, method: "subtract", params: [42, 23] }), [success(1, 19)])
    }))

  it.effect("tells the handler which request it serves", () =>
    Effect.gen(function*() {
      const router = Router.request(
        Router.empty,
        "who",
        { params: Nothing, result: Schema.Unknown },
        (_, info) => Effect.succeed(info)
      )
      assert.deepStrictEqual(yield* answers(router, { id: "a", method: "who" }), [
        success("a", { method: "who", id: "a" })
      ])
    }))

  it.effect.each<readonly [place: string, schema: Schema.Codec<unknown, unknown>, params: object]>([
    ["[\"age\"]", Schema.Struct({ age: Schema.Finite }), { age: SECRET }],
    ["[\"user\"][\"name\"]", Schema.Struct({ user: Schema.Struct({ name: Schema.Boolean }) }), {
      user: { name: SECRET }
    }],
    ["[\"kind\"]", Schema.Struct({ kind: Schema.Literals(["a", "b"]) }), { kind: SECRET }],
    ["[\"at\"]", Schema.Struct({ at: Schema.Date }), { at: SECRET }],
    ["[\"text\"]", Schema.Struct({ text: Schema.String.check(Schema.isMaxLength(3)) }), { text: SECRET }],
    ["[\"text\"]", Schema.Struct({ text: Schema.String.check(Schema.isPattern(/^\d+$/)) }), { text: SECRET }],
    ["[\"list\"][1]", Schema.Struct({ list: Schema.Array(Schema.Int) }), { list: [1, SECRET] }],
    ["[\"either\"]", Schema.Struct({ either: Schema.Union([Schema.Finite, Schema.Boolean]) }), { either: SECRET }],
    ["[\"missing\"]", Schema.Struct({ missing: Schema.String }), { other: SECRET }]
  ])(
    "answers params that do not fit with -32602, their place and not their value: %s",
    ([place, schema, params]) =>
      Effect.gen(function*() {
        const log = makeLog()
        let ran = false
        const router = Router.request(Router.empty, "take", { params: schema, result: Nothing }, () =>
          Effect.sync(() => {
            ran = true
            return {}
          }))
        const server = yield* Effect.provide(TestKit.serve({ router }), log.layer)
        yield* server.receive({ id: 1, method: "take", params })
        yield* server.settled
        const text = yield* server.sentText
        assert.deepStrictEqual(
          (yield* server.sent).map((reply) => (reply as { readonly error: { readonly code: number } }).error.code),
          [-32602]
        )
        assert.include(text, `at ${place.replaceAll("\"", "\\\"")}`)
        assert.notInclude(text + JSON.stringify([log.lines, yield* server.events]), SECRET)
        assert.isFalse(ran)
      })
  )

  it.effect.each(["absent", "null", "[]", "{}"])(
    "runs a method without params when they are %s",
    (written) =>
      Effect.gen(function*() {
        const router = Router.request(
          Router.empty,
          "list",
          { params: Nothing, result: Schema.String },
          () => Effect.succeed("done")
        )
        const params = written === "absent" ? {} : { params: JSON.parse(written) as unknown }
        assert.deepStrictEqual(yield* answers(router, { id: 1, method: "list", ...params }), [success(1, "done")])
      })
  )

  it.effect.each(["absent", "null", "[]", "{}"])(
    "leaves out optional params when they are %s",
    (written) =>
      Effect.gen(function*() {
        const router = Router.request(
          Router.empty,
          "list",
          { params: Schema.Struct({ cursor: Schema.optionalKey(Schema.String) }), result: Schema.Unknown },
          (params) => Effect.succeed({ cursor: params.cursor ?? "first page" })
        )
        const params = written === "absent" ? {} : { params: JSON.parse(written) as unknown }
        assert.deepStrictEqual(yield* answers(router, { id: 1, method: "list", ...params }), [
          success(1, { cursor: "first page" })
        ])
      })
  )

  it.effect("passes on the error a handler fails with, unchanged", () =>
    Effect.gen(function*() {
      const router = Router.request(
        Router.empty,
        "pay",
        { params: Nothing, result: Nothing },
        () => Effect.fail(new JsonRpc.JsonRpcError({ code: 4001, message: "no such account", data: { retry: false } }))
      )
      assert.deepStrictEqual(yield* answers(router, { id: 1, method: "pay" }), [
        { jsonrpc: "2.0", id: 1, error: { code: 4001, message: "no such account", data: { retry: false } } }
      ])
    }))

  it.effect("masks and logs a result that its schema cannot write", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const router = Router.request(
        Router.empty,
        "count",
        { params: Nothing, result: Schema.Int },
        () => Effect.succeed(1.5)
      )
      const sent = yield* Effect.provide(answers(router, { id: 1, method: "count" }), log.layer)
      assert.deepStrictEqual(sent, [failure(1, -32603, "Internal error")])
      assert.strictEqual(log.lines.length, 1)
      assert.include(log.lines[0], "Error: the handler of count died")
    }))

  it.effect("runs handlers with the services they were given", () =>
    Effect.gen(function*() {
      class Greeting extends Context.Service<Greeting, string>()("effect-stdio/test/Greeting") {}
      const router = Router.request(
        Router.empty,
        "greet",
        { params: Schema.Struct({ name: Schema.String }), result: Schema.String },
        ({ name }) => Effect.map(Greeting, (greeting) => `${greeting}, ${name}`)
      )
      const sent = yield* Effect.provideService(
        answers(router, { id: 1, method: "greet", params: { name: "Ada" } }),
        Greeting,
        "Hello"
      )
      assert.deepStrictEqual(sent, [success(1, "Hello, Ada")])
    }))
})

describe("typed notifications", () => {
  it.effect("gives the handler decoded params", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const router = Router.notification(Router.empty, "log", Schema.Struct({ at: Schema.Date }), ({ at }) =>
        Effect.sync(() => {
          seen.push(at)
        }))
      const sent = yield* answers(router, { method: "log", params: { at: "2024-02-28T00:00:00.000Z" } })
      assert.deepStrictEqual([seen, sent], [[new Date("2024-02-28T00:00:00.000Z")], []])
    }))

  it.effect("logs params that do not fit, without their value, and runs no handler", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const seen: Array<unknown> = []
      const router = Router.notification(Router.empty, "log", Schema.Struct({ level: Schema.Int }), (params) =>
        Effect.sync(() => {
          seen.push(params)
        }))
      const sent = yield* Effect.provide(answers(router, { method: "log", params: { level: SECRET } }), log.layer)
      assert.deepStrictEqual([seen, sent], [[], []])
      assert.strictEqual(log.lines.length, 1)
      assert.include(log.lines[0], "Warn: the handler of the notification log failed")
      assert.include(log.lines[0], "at [\"level\"]")
      assert.notInclude(log.lines[0] ?? "", SECRET)
    }))
})

describe("which handler is asked", () => {
  const says = (word: string) => () => Effect.succeed(word)

  it.effect.each(["toString", "constructor", "__proto__", "hasOwnProperty", "valueOf", "", "PING", "ping "])(
    "answers the unknown method %j with -32601",
    (method) =>
      Effect.gen(function*() {
        const router = Router.rawRequest(Router.empty, "ping", says("pong"))
        assert.deepStrictEqual(yield* answers(router, { id: 1, method }, { id: 2, method: "ping" }), [
          failure(1, -32601, `Method not found: ${method}`),
          success(2, "pong")
        ])
      })
  )

  it.effect("serves the names of inherited properties when they have a handler", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("__proto__", says("a")),
        Router.rawRequest("constructor", says("b"))
      )
      assert.deepStrictEqual(
        yield* answers(router, { id: 1, method: "__proto__" }, { id: 2, method: "constructor" }),
        [success(1, "a"), success(2, "b")]
      )
    }))

  it.effect("gives a raw handler the params as they came", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const router = Router.rawRequest(Router.empty, "take", (params) =>
        Effect.sync(() => {
          seen.push(params)
        }))
      yield* answers(
        router,
        { id: 1, method: "take" },
        { id: 2, method: "take", params: null },
        { id: 3, method: "take", params: [] },
        { id: 4, method: "take", params: { a: 1 } }
      )
      assert.deepStrictEqual(seen, [undefined, null, [], { a: 1 }])
    }))

  it.effect("gives every method to the handler of a raw router", () =>
    Effect.gen(function*() {
      const notified: Array<unknown> = []
      const router = Router.raw(
        (params, { id, method }) => Effect.succeed({ method, id, params }),
        (params, method) =>
          Effect.sync(() => {
            notified.push([method, params])
          })
      )
      const sent = yield* answers(
        router,
        { id: 1, method: "a", params: [1] },
        { method: "n", params: { b: 2 } },
        { id: 2, method: "toString" }
      )
      assert.deepStrictEqual(sent, [
        success(1, { method: "a", id: 1, params: [1] }),
        success(2, { method: "toString", id: 2 })
      ])
      assert.deepStrictEqual(notified, [["n", { b: 2 }]])
    }))

  it.effect("prefers the handler of a method to that of all methods", () =>
    Effect.gen(function*() {
      const router = Router.raw(says("any")).pipe(Router.rawRequest("ping", says("one")))
      assert.deepStrictEqual(yield* answers(router, { id: 1, method: "ping" }, { id: 2, method: "other" }), [
        success(1, "one"),
        success(2, "any")
      ])
    }))

  it.effect("replaces a handler added before and leaves the first router as it was", () =>
    Effect.gen(function*() {
      const first = Router.rawRequest(Router.empty, "ping", says("first"))
      const second = Router.rawRequest(first, "ping", says("second"))
      const request = { id: 1, method: "ping" }
      assert.deepStrictEqual(
        [yield* answers(first, request), yield* answers(second, request), yield* answers(Router.empty, request)],
        [[success(1, "first")], [success(1, "second")], [failure(1, -32601, "Method not found: ping")]]
      )
    }))

  it.effect("merges routers, where the later handler of a method stays", () =>
    Effect.gen(function*() {
      const notified: Array<string> = []
      const note = (word: string) => () =>
        Effect.sync(() => {
          notified.push(word)
        })
      const left = Router.raw(says("left, any"), note("left, any")).pipe(
        Router.rawRequest("a", says("left")),
        Router.rawRequest("b", says("left")),
        Router.notification("n", Nothing, note("left"))
      )
      const right = Router.empty.pipe(
        Router.rawRequest("b", says("right")),
        Router.notification("n", Nothing, note("right"))
      )
      const requests = [
        { id: 1, method: "a" },
        { id: 2, method: "b" },
        { id: 3, method: "c" },
        { method: "n" },
        { method: "m" }
      ]
      const expected = [success(1, "left"), success(2, "right"), success(3, "left, any")]
      assert.deepStrictEqual(yield* answers(Router.merge(left, right), ...requests), expected)
      assert.deepStrictEqual(yield* answers(left.pipe(Router.merge(right)), ...requests), expected)
      assert.deepStrictEqual(notified, ["right", "left, any", "right", "left, any"])
    }))

  it.effect("replaces the handler of all methods by that of the merged router", () =>
    Effect.gen(function*() {
      const router = Router.merge(Router.raw(says("left")), Router.raw(says("right")))
      assert.deepStrictEqual(yield* answers(router, { id: 1, method: "a" }), [success(1, "right")])
    }))
})

describe("wrapping all request handlers", () => {
  const Name = Context.Service<string>("test/Name")

  it.effect("reaches those of a method and that of all others, and leaves notifications and unknown methods alone", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const note = (entry: string) =>
        Effect.sync(() => {
          log.push(entry)
        })
      const handlers = Router.empty.pipe(
        Router.rawRequest("a", () => Effect.succeed("raw")),
        Router.request("b", { params: Nothing, result: Schema.String }, () => Effect.die(new Error("boom"))),
        Router.rawNotification("n", () => note("n"))
      )
      const noted = Router.mapRequests((handler: Router.RequestHandler) => (params, info) =>
        note(`${info.method} ${info.id}`).pipe(
          Effect.andThen(handler(params, info)),
          Effect.tapDefect((defect) => note(String(defect)))
        )
      )
      const requests = [{ id: 1, method: "a" }, { id: 2, method: "b" }, { method: "n" }, { id: 3, method: "c" }]
      assert.deepStrictEqual(yield* answers(noted(handlers), ...requests), [
        success(1, "raw"),
        failure(2, -32603, "Internal error"),
        failure(3, -32601, "Method not found: c")
      ])
      assert.deepStrictEqual(log.splice(0).toSorted(), ["Error: boom", "a 1", "b 2", "n"])
      yield* answers(noted(Router.raw(() => Effect.succeed("any"))), { id: 4, method: "c" })
      assert.deepStrictEqual(log, ["c 4"])
    }))

  it.effect("may need services of its own", () =>
    Effect.gen(function*() {
      const router = Router.mapRequests(
        Router.rawRequest(Router.empty, "hello", () => Effect.succeed("Hello")),
        (handler) => (params, info) =>
          Effect.flatMap(Name, (name) => Effect.map(handler(params, info), (word) => `${String(word)}, ${name}!`))
      )
      const sent = yield* Effect.provideService(answers(router, { id: 1, method: "hello" }), Name, "Ada")
      assert.deepStrictEqual(sent, [success(1, "Hello, Ada!")])
    }))
})

it.effect("a raw notification handler gets params as they came, and the method", () =>
  Effect.gen(function*() {
    const seen: Array<unknown> = []
    const router = Router.empty.pipe(
      Router.rawNotification("note", (params, method) =>
        Effect.sync(() => {
          seen.push([method, params])
        }))
    )
    const server = yield* TestKit.serve({ router })
    yield* server.receive({ method: "note", params: [1] }, { method: "other" }, { method: "note" })
    yield* server.settled
    assert.deepStrictEqual(seen, [["note", [1]], ["note", undefined]])
  }))

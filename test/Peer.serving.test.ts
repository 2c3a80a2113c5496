/**
 * The serving side of a peer: when a request is begun, how it is answered, and what is known of it meanwhile.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Framing from "effect-stdio/Framing"
import * as Lifecycle from "effect-stdio/Lifecycle"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { connect, failure, makeLog, success } from "./utils/peer.ts"

const SECRET = "hunter2-planted"

const requests = (method: string, from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ id: from + index, method }))

/** A router whose method "wait" ends when the test says so, with what the test says. */
const makeGates = () => {
  const gates = new Map<JsonRpc.Id, Deferred.Deferred<unknown, JsonRpc.JsonRpcError>>()
  const gate = (id: JsonRpc.Id) => {
    const known = gates.get(id) ?? Deferred.makeUnsafe<unknown, JsonRpc.JsonRpcError>()
    gates.set(id, known)
    return known
  }
  const started: Array<JsonRpc.Id> = []
  const router = Router.empty.pipe(
    Router.rawRequest("wait", (_, { id }) =>
      Effect.suspend(() => {
        started.push(id)
        return Deferred.await(gate(id))
      })),
    Router.rawRequest("ping", () => Effect.succeed("pong"))
  )
  return {
    router,
    started,
    open: (id: JsonRpc.Id, result: unknown = "done") => Effect.asVoid(Deferred.succeed(gate(id), result))
  }
}

describe("admission", () => {
  it.effect("serves all requests at the same time by default and answers in the order they end", () =>
    Effect.gen(function*() {
      const { open, router, started } = makeGates()
      const peer = yield* connect({ router })
      yield* peer.receive(...requests("wait", 1, 100))
      yield* peer.settled
      assert.strictEqual(started.length, 100)
      yield* Effect.forEach([3, 1, 2], (id) => open(id))
      yield* peer.expectSent(success(3, "done"), success(1, "done"), success(2, "done"))
    }))

  it.effect("answers a request while an earlier one runs for long", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("sleep", () => Effect.as(Effect.sleep("20 seconds"), "slept")),
        Router.rawRequest("ping", () => Effect.succeed("pong"))
      )
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "sleep" }, { id: 2, method: "ping" })
      yield* peer.expectSent(success(2, "pong"))
      yield* TestClock.adjust("20 seconds")
      yield* peer.expectSent(success(2, "pong"), success(1, "slept"))
    }))

  it.effect("begins no more requests than its concurrency, and the next when one ends", () =>
    Effect.gen(function*() {
      const { open, router, started } = makeGates()
      const peer = yield* connect({ router, concurrency: 2 })
      yield* peer.receive(...requests("wait", 1, 4))
      yield* peer.settled
      assert.deepStrictEqual(started, [1, 2])
      yield* open(2)
      yield* peer.settled
      assert.deepStrictEqual(started, [1, 2, 3])
      yield* open(1)
      yield* peer.settled
      assert.deepStrictEqual(started, [1, 2, 3, 4])
      yield* Effect.forEach([4, 3], (id) => open(id))
      yield* peer.expectSent(success(2, "done"), success(1, "done"), success(4, "done"), success(3, "done"))
    }))

  it.effect("serves one request after the other when its concurrency is 1", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const router = Router.rawRequest(Router.empty, "work", (_, { id }) =>
        Effect.gen(function*() {
          log.push(`${id} begins`)
          yield* Effect.sleep("1 second")
          log.push(`${id} ends`)
        }))
      const peer = yield* connect({ router, concurrency: 1 })
      yield* peer.receive(...requests("work", 1, 3))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(log, ["1 begins", "1 ends", "2 begins", "2 ends", "3 begins", "3 ends"])
      yield* peer.expectSent(success(1, null), success(2, null), success(3, null))
    }))

  it.effect.each([0, -1, Number.NaN])("dies of a concurrency of %d", (concurrency) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(connect({ concurrency }))
      assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
    }))

  it.effect("refuses requests beyond the queue and serves those in it", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const peer = yield* connect({ router, concurrency: 1, maxQueuedRequests: 2 })
      yield* peer.receive(...requests("wait", 1, 5))
      const refused = [failure(4, -32603, "too many requests"), failure(5, -32603, "too many requests")]
      yield* peer.expectSent(...refused)
      yield* Effect.forEach([1, 2, 3], (id) => open(id))
      yield* peer.expectSent(...refused, success(1, "done"), success(2, "done"), success(3, "done"))
    }))

  it.effect("queues 1,024 requests by default", () =>
    Effect.gen(function*() {
      const { router } = makeGates()
      const peer = yield* connect({ router, concurrency: 1 })
      yield* peer.receive(...requests("wait", 1, 1_026))
      yield* peer.expectSent(failure(1_026, -32603, "too many requests"))
    }))

  it.effect("frees the id of a refused request", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const peer = yield* connect({ router, concurrency: 1, maxQueuedRequests: 0 })
      yield* peer.receive({ id: 1, method: "wait" }, { id: 2, method: "ping" })
      yield* peer.settled
      yield* open(1)
      yield* peer.settled
      yield* peer.receive({ id: 2, method: "ping" })
      yield* peer.expectSent(failure(2, -32603, "too many requests"), success(1, "done"), success(2, "pong"))
    }))

  it.effect("lets responses, notifications and cancellations pass a full queue", () =>
    Effect.gen(function*() {
      const notified: Array<unknown> = []
      const started: Array<unknown> = []
      const router = Router.empty.pipe(
        Router.rawRequest("ask", (_, { id }) =>
          Effect.gen(function*() {
            started.push(id)
            const caller = yield* Peer.Caller
            return yield* Effect.orDie(caller.call("name"))
          })),
        Router.notification("note", Schema.Struct({ text: Schema.String }), ({ text }) =>
          Effect.sync(() => {
            notified.push(text)
          }))
      )
      const peer = yield* connect({
        router,
        concurrency: 1,
        maxQueuedRequests: 2,
        cancellation: Cancellation.mcp
      })
      yield* peer.receive(...requests("ask", 1, 4))
      const first = [{ jsonrpc: "2.0", id: 1, method: "name" }, failure(4, -32603, "too many requests")]
      yield* peer.expectSent(...first)
      yield* peer.receive(
        { method: "note", params: { text: "hello" } },
        { method: "notifications/cancelled", params: { requestId: 2 } },
        { id: 1, result: "Ada" }
      )
      yield* peer.settled
      assert.deepStrictEqual([notified, started], [["hello"], [1, 3]])
      yield* peer.expectSent(...first, success(1, "Ada"), { jsonrpc: "2.0", id: 2, method: "name" })
    }))
})

describe("open-ended methods", () => {
  const options = { concurrency: 1, openEnded: (method: string) => method === "listen" }

  it.effect("take no place of the concurrency", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("listen", () => Effect.never),
        Router.rawRequest("ping", () => Effect.succeed("pong"))
      )
      const peer = yield* connect({ router, ...options })
      yield* peer.receive(...requests("listen", 1, 3), { id: 4, method: "ping" })
      yield* peer.expectSent(success(4, "pong"))
    }))

  it.effect("are begun although other requests wait", () =>
    Effect.gen(function*() {
      const { router, started } = makeGates()
      const peer = yield* connect({
        router: Router.rawRequest(router, "listen", () => Effect.succeed("listening")),
        ...options
      })
      yield* peer.receive(...requests("wait", 1, 2), { id: 3, method: "listen" })
      yield* peer.expectSent(success(3, "listening"))
      assert.deepStrictEqual(started, [1])
    }))

  it.effect("have no time to keep", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "listen", () => Effect.as(Effect.sleep("1 day"), "done"))
      const peer = yield* connect({ router, ...options, handlerTimeout: "1 second" })
      yield* peer.receive({ id: 1, method: "listen" })
      yield* TestClock.adjust("1 day")
      yield* peer.expectSent(success(1, "done"))
    }))
})

describe("handlerTimeout", () => {
  it.effect("interrupts a handler that exceeds it and answers with -32603", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const router = Router.empty.pipe(
        Router.rawRequest("hang", () =>
          Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              interrupted++
            }))),
        Router.rawRequest("sleep", () => Effect.as(Effect.sleep("4 seconds"), "slept"))
      )
      const peer = yield* connect({ router, handlerTimeout: "5 seconds" })
      yield* peer.receive({ id: 1, method: "hang" }, { id: 2, method: "sleep" })
      yield* TestClock.adjust("4999 millis")
      yield* peer.expectSent(success(2, "slept"))
      yield* TestClock.adjust("1 millis")
      yield* peer.expectSent(success(2, "slept"), failure(1, -32603, "The handler took too long"))
      assert.strictEqual(interrupted, 1)
    }))

  it.effect("answers in time for a handler that cannot be interrupted, and drops what that ends with", () =>
    Effect.gen(function*() {
      const router = Router.raw(() => Effect.uninterruptible(Effect.as(Effect.sleep("1 minute"), "late")))
      const peer = yield* connect({ router, handlerTimeout: "5 seconds" })
      yield* peer.receive({ id: 1, method: "stubborn" })
      yield* TestClock.adjust("5 seconds")
      const answer = failure(1, -32603, "The handler took too long")
      yield* peer.expectSent(answer)
      yield* TestClock.adjust("1 minute")
      yield* peer.expectSent(answer)
    }))

  it.effect("frees the id with its answer, whatever the handler still does", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("stubborn", () => Effect.uninterruptible(Effect.sleep("1 minute"))),
        Router.rawRequest("ping", () => Effect.succeed("pong"))
      )
      const peer = yield* connect({ router, handlerTimeout: "5 seconds" })
      yield* peer.receive({ id: 1, method: "stubborn" })
      yield* TestClock.adjust("5 seconds")
      yield* peer.receive({ id: 1, method: "ping" })
      yield* TestClock.adjust("1 minute")
      yield* peer.expectSent(failure(1, -32603, "The handler took too long"), success(1, "pong"))
    }))

  it.effect("leaves no timer behind when a handler ends in time", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let sleeping = 0
      const sleep: Clock.Clock["sleep"] = (duration) =>
        Effect.suspend(() => {
          sleeping++
          return Effect.ensuring(
            clock.sleep(duration),
            Effect.sync(() => {
              sleeping--
            })
          )
        })
      const counting = Object.assign(Object.create(clock) as Clock.Clock, { sleep })
      const router = Router.raw(() => Effect.as(Effect.repeat(Effect.yieldNow, { times: 3 }), "done"))
      const peer = yield* Effect.provideService(connect({ router, handlerTimeout: "1 hour" }), Clock.Clock, counting)
      const before = sleeping
      yield* peer.receive(...requests("m", 1, 10))
      yield* peer.expectSent(...requests("m", 1, 10).map(({ id }) => success(id, "done")))
      assert.strictEqual(sleeping, before)
    }))

  it.effect("counts from the begin of the handler, not from the arrival of the request", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "sleep", () => Effect.as(Effect.sleep("4 seconds"), "slept"))
      const peer = yield* connect({ router, concurrency: 1, handlerTimeout: "5 seconds" })
      yield* peer.receive(...requests("sleep", 1, 2))
      yield* TestClock.adjust("8 seconds")
      yield* peer.expectSent(success(1, "slept"), success(2, "slept"))
    }))

  it.effect.each(["Infinity", undefined] as const)(
    "lets handlers run as long as they like when it is %s",
    (timeout) =>
      Effect.gen(function*() {
        const router = Router.rawRequest(Router.empty, "sleep", () => Effect.as(Effect.sleep("1 day"), "slept"))
        const peer = yield* connect({ router, handlerTimeout: timeout })
        yield* peer.receive({ id: 1, method: "sleep" })
        yield* TestClock.adjust("1 day")
        yield* peer.expectSent(success(1, "slept"))
      })
  )

  it.effect("goes on with the next notification when the handler of one exceeds it", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const router = Router.raw(() => Effect.succeed(null), (params, method) =>
        method === "hang" ? Effect.never : Effect.sync(() => {
          seen.push(params)
        }))
      const peer = yield* connect({ router, handlerTimeout: "5 seconds" })
      yield* peer.receive({ method: "hang" }, { method: "note", params: [1] })
      yield* TestClock.adjust("4999 millis")
      assert.deepStrictEqual(seen, [])
      yield* TestClock.adjust("1 millis")
      yield* peer.settled
      assert.deepStrictEqual(seen, [[1]])
    }))
})

describe("notifications", () => {
  it.effect("are handled one after the other, in the order they arrived", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const router = Router.raw(() => Effect.succeed(null), (_, method) =>
        Effect.gen(function*() {
          log.push(`${method} begins`)
          // the first takes longest
          yield* Effect.sleep(method === "a" ? "3 seconds" : "1 second")
          log.push(`${method} ends`)
        }))
      const peer = yield* connect({ router })
      yield* peer.receive({ method: "a" }, { method: "b" })
      yield* peer.settled
      yield* peer.receive({ method: "c" })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log, ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"])
    }))

  it.effect("do not hold the reader when their handler never ends", () =>
    Effect.gen(function*() {
      const router = Router.raw(() => Effect.succeed("pong"), () => Effect.never)
      const peer = yield* connect({ router })
      yield* peer.receive({ method: "hang" }, { method: "hang" }, { id: 1, method: "ping" })
      yield* peer.expectSent(success(1, "pong"))
    }))

  it.effect("are handed over before the requests that came after them begin", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const router = Router.raw(
        (_, { id }) =>
          Effect.sync(() => {
            log.push(`request ${id}`)
          }),
        (_, method) =>
          Effect.sync(() => {
            log.push(method)
          })
      )
      const peer = yield* connect({ router })
      yield* peer.receive({ method: "a" }, { id: 1, method: "m" }, { method: "b" }, { id: 2, method: "m" })
      yield* peer.settled
      assert.deepStrictEqual(log, ["a", "request 1", "b", "request 2"])
    }))

  it.effect("go on after one whose handler failed, died or threw, which is logged", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const seen: Array<string> = []
      const router = Router.raw(() => Effect.succeed(null), (_, method) => {
        seen.push(method)
        if (method === "throw") throw new Error("thrown")
        if (method === "die") return Effect.die(new Error("died"))
        if (method === "fail") return Effect.fail(new JsonRpc.JsonRpcError({ code: 1, message: "failed" }))
        return Effect.void
      })
      const peer = yield* Effect.provide(connect({ router }), log.layer)
      yield* peer.receive({ method: "throw" }, { method: "die" }, { method: "fail" }, { method: "note" })
      yield* peer.expectSent()
      assert.deepStrictEqual(seen, ["throw", "die", "fail", "note"])
      assert.deepStrictEqual(
        log.lines.map((line) => line.split(/[\n{]/)[0]?.trimEnd()),
        [
          "Warn: the handler of the notification throw failed Error: thrown",
          "Warn: the handler of the notification die failed Error: died",
          "Warn: the handler of the notification fail failed JsonRpcError: failed"
        ]
      )
    }))

  it.effect("go on after one whose handler interrupted itself", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const router = Router.raw(() => Effect.succeed(null), (_, method) =>
        Effect.gen(function*() {
          yield* Effect.sleep("1 second")
          if (method === "interrupt") return yield* Effect.interrupt
          seen.push(method)
        }))
      const peer = yield* connect({ router })
      yield* peer.receive({ method: "first" }, { method: "interrupt" }, { method: "second" }, { method: "third" })
      yield* TestClock.adjust("4 seconds")
      yield* peer.settled
      assert.deepStrictEqual(seen, ["first", "second", "third"])
    }))

  it.effect("end what they count as in flight when a handler interrupted itself", () =>
    Effect.gen(function*() {
      const router = Router.raw(() => Effect.succeed(null), () =>
        Effect.andThen(Effect.sleep("1 second"), Effect.interrupt))
      const { peer, ...wire } = yield* connect({ router })
      yield* wire.receive({ method: "a" }, { method: "b" })
      yield* wire.settled
      yield* TestClock.adjust("2 seconds")
      yield* wire.settled
      assert.isFalse(peer.activity.isBusyUnsafe())
    }))
})

describe("replies", () => {
  it.effect("are none for notifications, known, unknown or failing", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const router = Router.empty.pipe(
        Router.notification("notifications/initialized", Schema.Struct({}), () => Effect.void),
        Router.notification("fails", Schema.Struct({}), () => Effect.fail(JsonRpc.JsonRpcError.internal())),
        Router.rawRequest("request", () => Effect.succeed("done"))
      )
      const peer = yield* Effect.provide(connect({ router }), log.layer)
      yield* peer.receive(
        { method: "notifications/initialized" },
        { method: "no/such" },
        { method: "fails" },
        { method: "request" }
      )
      yield* peer.settled
      assert.strictEqual(yield* peer.sentText, "")
    }))

  it.effect("are none when the handler answers nothing, and the id is free again", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("nothing", () => Effect.succeed(Router.noReply)),
        Router.rawRequest("ping", () => Effect.succeed("pong"))
      )
      const { peer, ...wire } = yield* connect({ router })
      yield* wire.receive({ id: 1, method: "nothing" })
      yield* wire.expectSent()
      assert.deepStrictEqual(yield* peer.inFlight, { requests: [], calls: [] })
      assert.strictEqual((yield* peer.stats).noReplies, 1)
      yield* wire.receive({ id: 1, method: "ping" })
      yield* wire.expectSent(success(1, "pong"))
    }))

  it.effect.each<readonly [name: string, result: unknown, json: string]>([
    ["undefined", undefined, "null"],
    ["a function", () => 1, "null"],
    ["a symbol", Symbol("x"), "null"],
    ["an object whose toJSON returns undefined", { toJSON: () => undefined }, "null"],
    ["null", null, "null"],
    ["0", 0, "0"],
    ["false", false, "false"],
    ["an empty text", "", "\"\""],
    ["an empty array", [], "[]"],
    ["NaN", NaN, "null"],
    ["an object with members JSON does not know", { a: undefined, b: () => 1, c: 2 }, "{\"c\":2}"]
  ])("always have a result: %s", ([_, result, json]) =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "give", () => Effect.succeed(result))
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "give" })
      yield* peer.settled
      assert.strictEqual(yield* peer.sentText, `{"jsonrpc":"2.0","id":1,"result":${json}}\n`)
    }))

  it.effect("tell of a result that cannot be written, for that id alone", () =>
    Effect.gen(function*() {
      const cycle: { self?: unknown } = {}
      cycle.self = cycle
      const values = new Map<JsonRpc.Id, unknown>([
        [1, cycle],
        [2, { amount: 1n }],
        [3, {
          toJSON: () => {
            throw new Error(SECRET)
          }
        }],
        [4, {
          get text() {
            throw new Error(SECRET)
          }
        }],
        [5, "fine"]
      ])
      const router = Router.rawRequest(Router.empty, "give", (_, { id }) => Effect.succeed(values.get(id)))
      const peer = yield* connect({ router })
      yield* peer.receive(...requests("give", 1, 5))
      const message = "The result cannot be written as JSON"
      yield* peer.expectSent(
        failure(1, -32603, message),
        failure(2, -32603, message),
        failure(3, -32603, message),
        failure(4, -32603, message),
        success(5, "fine")
      )
    }))

  it.effect("tell of error data that cannot be written", () =>
    Effect.gen(function*() {
      const error = new JsonRpc.JsonRpcError({ code: 7, message: "no", data: { amount: 1n } })
      const router = Router.rawRequest(Router.empty, "fail", () => Effect.fail(error))
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "fail" })
      yield* peer.expectSent(failure(1, -32603, "The result cannot be written as JSON"))
    }))

  it.effect("mask what a handler dies of, which is logged", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const router = Router.empty.pipe(
        Router.rawRequest("die", () => Effect.die(new Error(SECRET))),
        Router.rawRequest("throw", (): Effect.Effect<never> => {
          throw new Error(SECRET)
        }),
        Router.rawRequest("reject", () => Effect.promise(() => Promise.reject(new Error(SECRET)))),
        Router.rawRequest("interrupt", () => Effect.interrupt)
      )
      const peer = yield* Effect.provide(connect({ router }), log.layer)
      for (const [id, method] of [[1, "die"], [2, "throw"], [3, "reject"], [4, "interrupt"]] as const) {
        yield* peer.receive({ id, method })
        assert.deepStrictEqual(yield* peer.next, failure(id, -32603, "Internal error"))
      }
      assert.notInclude(yield* peer.sentText, SECRET)
      assert.notInclude(JSON.stringify(peer.events), SECRET)
      assert.deepStrictEqual(
        log.lines.map((line) => line.split(/[\n{]/)[0]?.trimEnd()),
        [
          `Error: the handler of die died Error: ${SECRET}`,
          `Error: the handler of throw died Error: ${SECRET}`,
          `Error: the handler of reject died Error: ${SECRET}`,
          "Error: the handler of interrupt died InterruptError: All fibers interrupted without error"
        ]
      )
    }))

  it.effect("leave with half surrogate pairs replaced, and whole ones kept", () =>
    Effect.gen(function*() {
      const value = { text: "a\ud83db \ude00", "key\ud83d": 1, whole: "\u{1f600}", escaped: "\\ud83d" }
      const router = Router.empty.pipe(
        Router.rawRequest("give", () => Effect.succeed(value)),
        Router.rawRequest("fail", () => Effect.fail(new JsonRpc.JsonRpcError({ code: 1, message: "\ud83d" })))
      )
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "give" }, { id: 2, method: "fail" })
      yield* peer.expectSent(
        success(1, { text: "a\ufffdb \ufffd", "key\ufffd": 1, whole: "\u{1f600}", escaped: "\\ud83d" }),
        failure(2, 1, "\ufffd")
      )
      assert.notMatch(yield* peer.sentText, /(?<!\\)\\ud/)
    }))

  it.effect("carry the code, message and data of a handler's error unchanged", () =>
    Effect.gen(function*() {
      const errors = new Map<JsonRpc.Id, JsonRpc.JsonRpcError>([
        [1, new JsonRpc.JsonRpcError({ code: -32063, message: "later", data: { retry: 1 } })],
        [2, new JsonRpc.JsonRpcError({ code: 0, message: "" })],
        [3, new JsonRpc.JsonRpcError({ code: 4, message: "null data", data: null })],
        [4, new JsonRpc.JsonRpcError({ code: 5, message: "false data", data: false })]
      ])
      const router = Router.rawRequest(
        Router.empty,
        "fail",
        (_, { id }) => Effect.fail(errors.get(id) ?? JsonRpc.JsonRpcError.internal())
      )
      const peer = yield* connect({ router })
      yield* peer.receive(...requests("fail", 1, 4))
      yield* peer.expectSent(
        { jsonrpc: "2.0", id: 1, error: { code: -32063, message: "later", data: { retry: 1 } } },
        { jsonrpc: "2.0", id: 2, error: { code: 0, message: "" } },
        { jsonrpc: "2.0", id: 3, error: { code: 4, message: "null data", data: null } },
        { jsonrpc: "2.0", id: 4, error: { code: 5, message: "false data", data: false } }
      )
    }))

  it.effect("tell the size and the limit when they are too long for the connection", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(
        Router.empty,
        "give",
        (params) => Effect.succeed("\u00e9".repeat((params as ReadonlyArray<number>)[0] ?? 0))
      )
      const peer = yield* connect({ router, transport: { framing: "line", maxSendBytes: 200 } })
      // 36 bytes around the text, two bytes a letter
      yield* peer.receive({ id: 1, method: "give", params: [82] }, { id: 2, method: "give", params: [83] })
      yield* peer.expectSent(
        success(1, "\u00e9".repeat(82)),
        failure(2, -32603, "The result has 202 bytes, this connection sends at most 200")
      )
    }))

  it.effect.each([
    0,
    -1,
    2_147_483_648,
    1_501_691_352_102,
    Number.MAX_SAFE_INTEGER,
    "",
    "0",
    "1",
    "init-1",
    "\u{1f600}"
  ])(
    "echo the id %j",
    (id) =>
      Effect.gen(function*() {
        const peer = yield* connect({ router: Router.raw(() => Effect.succeed("done")) })
        yield* peer.receive({ id, method: "any" })
        yield* peer.expectSent(success(id, "done"))
      })
  )

  it.effect("leave in the framing of their request", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw(() => Effect.succeed("done")) })
      const text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"
      yield* peer.feed(
        Framing.encode([
          Framing.frameOfText(text, "content-length"),
          Framing.frameOfText(text.replace("1", "2"), "line")
        ])
      )
      yield* peer.settled
      assert.strictEqual(
        yield* peer.sentText,
        "Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"done\"}".replace("38", "40") +
          "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"done\"}\n"
      )
    }))

  it.effect("leave without the version in the profile that omits it", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw(() => Effect.succeed("done")), profile: "omit" })
      yield* peer.feed("{\"id\":1,\"method\":\"m\"}\n{\"id\":2,\"method\":7}\n")
      yield* peer.expectSent({ id: 1, result: "done" }, {
        id: 2,
        error: { code: -32600, message: "Invalid request: method must be a string" }
      })
    }))

  it.effect("leave together when they are ready together", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw(() => Effect.succeed("done")) })
      yield* peer.receive(...requests("m", 1, 50))
      yield* peer.settled
      assert.deepStrictEqual([(yield* peer.sent).length, yield* peer.writes], [50, 1])
    }))
})

describe("duplicate ids", () => {
  const refused = (id: JsonRpc.Id) => failure(id, -32600, "Invalid request: a request with this id is in flight")

  it.effect("are refused while the first is in flight, which is not affected", () =>
    Effect.gen(function*() {
      const { open, router, started } = makeGates()
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "wait" }, { id: 1, method: "ping" }, { id: 1, method: "ping" })
      yield* peer.expectSent(refused(1), refused(1))
      yield* open(1)
      yield* peer.expectSent(refused(1), refused(1), success(1, "done"))
      assert.deepStrictEqual(started, [1])
    }))

  it.effect("are refused while the first waits in the queue", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const peer = yield* connect({ router, concurrency: 1 })
      yield* peer.receive({ id: 1, method: "wait" }, { id: 2, method: "ping" }, { id: 2, method: "ping" })
      yield* peer.settled
      yield* open(1)
      yield* peer.expectSent(refused(2), success(1, "done"), success(2, "pong"))
    }))

  it.effect("are served both and in order where that is asked for", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const peer = yield* connect({ router, duplicateIds: "serve" })
      yield* peer.receive({ id: 1, method: "wait" }, { id: 1, method: "ping" }, { id: 2, method: "ping" })
      yield* peer.expectSent(success(2, "pong"))
      yield* open(1, "first")
      yield* peer.expectSent(success(2, "pong"), success(1, "first"), success(1, "pong"))
    }))

  it.effect("are served in order of arrival when there are many", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(
        Router.empty,
        "echo",
        (params) => Effect.as(Effect.sleep("1 second"), params)
      )
      const peer = yield* connect({ router, duplicateIds: "serve" })
      yield* peer.receive(...[1, 2, 3, 4].map((n) => ({ id: "same", method: "echo", params: [n] })))
      yield* TestClock.adjust("4 seconds")
      yield* peer.expectSent(...[1, 2, 3, 4].map((n) => success("same", [n])))
    }))

  it.effect("wait in the queue like all others", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const peer = yield* connect({ router, concurrency: 5, maxQueuedRequests: 1, duplicateIds: "serve" })
      yield* peer.receive({ id: 1, method: "wait" }, { id: 1, method: "ping" }, { id: 1, method: "ping" })
      yield* peer.settled
      yield* open(1)
      yield* peer.expectSent(failure(1, -32603, "too many requests"), success(1, "done"), success(1, "pong"))
    }))

  it.effect("differ by type", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "wait" }, { id: "1", method: "wait" })
      yield* peer.settled
      yield* open("1", "text")
      yield* open(1, "number")
      yield* peer.expectSent(success("1", "text"), success(1, "number"))
    }))

  it.effect("are none once the reply was sent", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw(() => Effect.succeed("done")) })
      yield* peer.receive({ id: 1, method: "a" }, { id: 1, method: "b" })
      yield* peer.settled
      yield* peer.receive({ id: 1, method: "c" })
      yield* peer.expectSent(success(1, "done"), success(1, "done"), success(1, "done"))
    }))

  it.effect("wait for a cancelled request that is still ending, even where they are refused", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const router = Router.empty.pipe(
        Router.rawRequest("slow", () =>
          Effect.never.pipe(Effect.onInterrupt(() =>
            Effect.gen(function*() {
              yield* Effect.sleep("1 second")
              log.push("cleaned up")
            })
          ))),
        Router.rawRequest("ping", () =>
          Effect.sync(() => {
            log.push("ping")
            return "pong"
          }))
      )
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      // a TestClock that was never moved lets the first sleep of an interrupted fiber's finalizer be interrupted
      yield* TestClock.adjust("1 second")
      yield* peer.receive({ id: 1, method: "slow" })
      yield* peer.settled
      yield* peer.receive(
        { method: "notifications/cancelled", params: { requestId: 1 } },
        { id: 1, method: "ping" }
      )
      yield* peer.expectSent()
      yield* TestClock.adjust("1 second")
      yield* peer.expectSent(success(1, "pong"))
      assert.deepStrictEqual(log, ["cleaned up", "ping"])
    }))
})

describe("a handler", () => {
  it.effect("has a scope of its own, closed when it ends", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const acquire = (name: string) =>
        Effect.addFinalizer(() =>
          Effect.sync(() => {
            log.push(`${name} is released`)
          })
        )
      const router = Router.raw(
        (_, { id, method }) =>
          Effect.andThen(acquire(`request ${id}`), method === "hang" ? Effect.never : Effect.succeed("done")),
        () => acquire("notification")
      )
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: 1, method: "m" }, { method: "n" }, { id: 2, method: "hang" })
      yield* peer.settled
      assert.deepStrictEqual(log, ["request 1 is released", "notification is released"])
      yield* peer.receive({ method: "notifications/cancelled", params: { requestId: 2 } })
      yield* peer.settled
      assert.deepStrictEqual(log.slice(2), ["request 2 is released"])
    }))

  it.effect("is named in messages, events and logs by a short and printable name", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const method = `\u0007${"m".repeat(10_000)}`
      const peer = yield* Effect.provide(connect(), log.layer)
      yield* peer.receive({ id: 1, method })
      yield* peer.settled
      const dying = yield* Effect.provide(connect({ router: Router.raw(() => Effect.die("dead")) }), log.layer)
      yield* dying.receive({ id: 1, method })
      yield* dying.settled
      for (const text of [yield* peer.sentText, JSON.stringify(peer.events), ...log.lines]) {
        assert.isBelow(text.length, 1_000)
        assert.notInclude(text, "\u0007")
      }
      assert.strictEqual(log.lines.length, 1)
    }))
})

describe("what is in flight", () => {
  it.effect("lists requests that run and wait, and calls of ours", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const { peer, ...wire } = yield* connect({ router, concurrency: 1, ownFraming: "line" })
      yield* wire.receive({ id: "a", method: "wait" }, { id: 2, method: "ping" })
      const call = yield* Effect.forkChild(peer.call("roots/list"), { startImmediately: true })
      yield* wire.settled
      assert.deepStrictEqual(yield* peer.inFlight, {
        requests: [{ id: "a", method: "wait" }, { id: 2, method: "ping" }],
        calls: [{ id: 1, method: "roots/list" }]
      })
      yield* open("a")
      yield* wire.receive({ id: 1, result: [] })
      yield* Fiber.join(call)
      yield* wire.settled
      assert.deepStrictEqual(yield* peer.inFlight, { requests: [], calls: [] })
    }))

  it.effect("makes the peer busy: a request, a notification's handler, a call", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const note = Deferred.makeUnsafe<void>()
      const wire = yield* TestKit.make()
      const peer = yield* Peer.make(wire.transport, {
        router: Router.notification(router, "note", Schema.Struct({}), () => Deferred.await(note)),
        ownFraming: "line"
      })
      const busy: Array<boolean> = []
      const look = Effect.andThen(
        wire.settled,
        Effect.sync(() => {
          busy.push(peer.activity.isBusyUnsafe())
        })
      )
      yield* look
      yield* wire.receive({ id: 1, method: "wait" })
      yield* look
      yield* open(1)
      yield* look
      yield* wire.receive({ method: "note" })
      yield* look
      yield* Deferred.succeed(note, undefined)
      yield* look
      const call = yield* Effect.forkChild(peer.call("x"))
      yield* look
      yield* Fiber.interrupt(call)
      yield* look
      assert.deepStrictEqual(busy, [false, true, false, true, false, true, false])
    }))

  it.effect("is waited for by `drained`", () =>
    Effect.gen(function*() {
      const { open, router } = makeGates()
      const { peer, ...wire } = yield* connect({ router, concurrency: 1 })
      yield* peer.drained
      yield* wire.receive(...requests("wait", 1, 2))
      yield* wire.settled
      const drained = yield* Effect.forkChild(peer.drained)
      yield* open(1)
      yield* wire.settled
      assert.isUndefined(drained.pollUnsafe())
      yield* open(2)
      yield* Fiber.join(drained)
    }))

  it.effect("is counted as activity, with the time of the last thing that happened", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "sleep", () => Effect.as(Effect.sleep("3 seconds"), 0))
      const { peer, ...wire } = yield* connect({ router })
      const { activity } = peer
      const seen: Array<readonly [last: number, arrivals: number]> = []
      const look = Effect.andThen(
        wire.settled,
        Effect.sync(() => {
          seen.push([activity.lastUnsafe(), activity.arrivalsUnsafe()])
        })
      )
      yield* look
      yield* TestClock.adjust("1 second")
      yield* wire.receive({ id: 1, method: "sleep" })
      yield* look
      // the reply
      yield* TestClock.adjust("3 seconds")
      yield* look
      yield* TestClock.adjust("1 second")
      yield* wire.feed("junk\n")
      yield* look
      assert.deepStrictEqual(seen, [[0, 0], [1_000, 1], [4_000, 1], [5_000, 2]])
    }))

  it.effect("is abandoned without an answer when the scope closes", () =>
    Effect.gen(function*() {
      const ended: Array<JsonRpc.Id> = []
      const started: Array<JsonRpc.Id> = []
      const router = Router.rawRequest(Router.empty, "hang", (_, { id }) =>
        Effect.suspend(() => {
          started.push(id)
          return Effect.ensuring(
            Effect.never,
            Effect.sync(() => {
              ended.push(id)
            })
          )
        }))
      const wire = yield* TestKit.make()
      const scope = yield* Scope.make()
      yield* Peer.make(wire.transport, { router, concurrency: 1 }).pipe(Scope.provide(scope))
      yield* wire.receive(...requests("hang", 1, 2))
      yield* wire.settled
      yield* Scope.close(scope, Exit.void)
      yield* wire.expectSent()
      assert.deepStrictEqual([started, ended], [[1], [1]])
    }))

  it.effect("is abandoned with the requests that wait for its id when the scope closes", () =>
    Effect.gen(function*() {
      const started: Array<unknown> = []
      const router = Router.rawRequest(Router.empty, "hang", (params) =>
        Effect.suspend(() => {
          started.push(params)
          return Effect.never
        }))
      const wire = yield* TestKit.make()
      const scope = yield* Scope.make()
      yield* Peer.make(wire.transport, { router, duplicateIds: "serve" }).pipe(Scope.provide(scope))
      yield* wire.receive({ id: 1, method: "hang", params: ["first"] }, { id: 1, method: "hang", params: ["second"] })
      yield* wire.settled
      yield* Scope.close(scope, Exit.void)
      yield* wire.expectSent()
      assert.deepStrictEqual(started, [["first"]])
    }))

  it.effect("goes on when the observer throws, which is logged", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const wire = yield* TestKit.make()
      yield* Peer.make(wire.transport, { router: Router.raw(() => Effect.succeed("done")) }).pipe(
        Effect.provideService(Lifecycle.Observer, () => {
          throw new Error("observer")
        }),
        Effect.provide(log.layer)
      )
      yield* wire.receive({ id: 1, method: "a" }, { id: 2, method: "b" })
      yield* wire.settled
      assert.deepStrictEqual(yield* wire.sent, [success(1, "done"), success(2, "done")])
      assert.isNotEmpty(log.lines)
    }))

  it.effect("tells its events: requests, and responses with whether they are errors", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("fine", () => Effect.succeed(SECRET)),
        Router.rawRequest("fail", () => Effect.fail(new JsonRpc.JsonRpcError({ code: 1, message: SECRET }))),
        Router.rawRequest("big", () => Effect.succeed(1n)),
        Router.rawRequest("nothing", () => Effect.succeed(Router.noReply))
      )
      const peer = yield* connect({ router })
      const methods = ["fine", "fail", "big", "nothing", "none"]
      yield* peer.receive(...methods.map((method, id) => ({ id, method, params: [SECRET] })))
      yield* peer.settled
      const expected: Array<Lifecycle.Event> = [
        { _tag: "Request", id: 0, method: "fine" },
        { _tag: "Response", id: 0, method: "fine", isError: false },
        { _tag: "Request", id: 1, method: "fail" },
        { _tag: "Response", id: 1, method: "fail", isError: true },
        { _tag: "Request", id: 2, method: "big" },
        { _tag: "Response", id: 2, method: "big", isError: true },
        { _tag: "Request", id: 3, method: "nothing" },
        { _tag: "Request", id: 4, method: "none" },
        { _tag: "Response", id: 4, method: "none", isError: true }
      ]
      assert.deepStrictEqual(
        peer.events.filter(({ _tag }) => _tag === "Request" || _tag === "Response"),
        expected
      )
    }))
})

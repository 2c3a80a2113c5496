/**
 * Calls whose progress is followed: reports and the result as one stream, and the time that each report gives.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Peer from "effect-stdio/Peer"
import * as Progress from "effect-stdio/Progress"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as Transport from "effect-stdio/Transport"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer, makeLog } from "./utils/peer.ts"

const connect = <R = never>(options?: Peer.Options<R> & { readonly transport?: Transport.Options }) =>
  connectPeer<R>({ ownFraming: "line", progress: Progress.mcp, ...options })

/** Follows a call, and collects what is heard of it and how it ends. */
const follow = Effect.fnUntraced(
  function*(stream: Stream.Stream<Peer.CallEvent, JsonRpc.JsonRpcError | Peer.PeerError>) {
    const events: Array<Peer.CallEvent> = []
    const fiber = yield* stream.pipe(
      Stream.runForEach((event) =>
        Effect.sync(() => {
          events.push(event)
        })
      ),
      Effect.result,
      Effect.forkChild({ startImmediately: true })
    )
    return { events, fiber, end: Fiber.join(fiber) }
  }
)

const asked = (id: number, method: string, token: string) => ({
  jsonrpc: "2.0",
  id,
  method,
  params: { _meta: { progressToken: token } }
})
const report = (progressToken: unknown, progress: number) => ({
  method: "notifications/progress",
  params: { progressToken, progress }
})
const progress = (value: number): Peer.CallEvent => ({ _tag: "Progress", value: { progress: value } })
const result = (value: unknown): Peer.CallEvent => ({ _tag: "Result", value })
const cancelled = (requestId: number) => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId }
})

const timeout = (method: string) => new Peer.PeerError({ reason: new Peer.Timeout({ method }) })
const closed = (method: string, reason: Transport.CloseReason) =>
  new Peer.PeerError({ reason: new Peer.Closed({ method, reason: new Transport.TransportError({ reason }) }) })

describe("a call that is followed", () => {
  it.effect("is heard of by its reports, and last by its result", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.expectSent(asked(1, "build", "progress-1"))
      yield* peer.receive(report("progress-1", 1))
      yield* peer.settled
      assert.deepStrictEqual(call.events, [progress(1)])
      yield* peer.receive(report("progress-1", 2), { id: 1, result: "done" })
      assert.deepStrictEqual(yield* call.end, Result.succeed(undefined))
      assert.deepStrictEqual(call.events, [progress(1), progress(2), result("done")])
    }))

  it.effect("keeps the params and the other members of their _meta", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* follow(peer.peer.follow("build", { all: true, _meta: { trace: 7 } }))
      yield* peer.expectSent({
        jsonrpc: "2.0",
        id: 1,
        method: "build",
        params: { all: true, _meta: { trace: 7, progressToken: "progress-1" } }
      })
    }))

  it.effect("asks by a work done token in the Language Server Protocol, and hears the value of each report", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ progress: Progress.lsp })
      const call = yield* follow(peer.peer.follow("workspace/symbol", { query: "a" }))
      yield* peer.expectSent({
        jsonrpc: "2.0",
        id: 1,
        method: "workspace/symbol",
        params: { query: "a", workDoneToken: "progress-1" }
      })
      const values = [{ kind: "begin", title: "search" }, { kind: "report", percentage: 50 }, { kind: "end" }]
      yield* peer.receive(
        ...values.map((value) => ({ method: "$/progress", params: { token: "progress-1", value } })),
        { id: 1, result: [] }
      )
      yield* call.end
      assert.deepStrictEqual(call.events, [
        ...values.map((value): Peer.CallEvent => ({ _tag: "Progress", value })),
        result([])
      ])
    }))

  it.effect("is a call like others where there is no progress", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ progress: undefined })
      const call = yield* follow(peer.peer.follow("build", { all: true }))
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "build", params: { all: true } })
      yield* peer.receive({ id: 1, result: "done" })
      yield* call.end
      assert.deepStrictEqual(call.events, [result("done")])
    }))

  it.effect("has a token of its own, also when the same stream runs twice", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = peer.peer.follow("build")
      const first = yield* follow(stream)
      const second = yield* follow(stream)
      yield* peer.expectSent(asked(1, "build", "progress-1"), asked(2, "build", "progress-2"))
      yield* peer.receive(
        report("progress-2", 2),
        report("progress-1", 1),
        { id: 1, result: "first" },
        { id: 2, result: "second" }
      )
      yield* first.end
      yield* second.end
      assert.deepStrictEqual(first.events, [progress(1), result("first")])
      assert.deepStrictEqual(second.events, [progress(2), result("second")])
    }))

  it.effect("is sent when its stream runs, not before", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      peer.peer.follow("build")
      yield* peer.expectSent()
    }))

  it.effect("hears a report that is a member of a batch", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.receive([
        { jsonrpc: "2.0", ...report("progress-1", 1) },
        { jsonrpc: "2.0", id: 1, result: "done" }
      ])
      yield* call.end
      assert.deepStrictEqual(call.events, [progress(1), result("done")])
    }))

  it.effect("fails its stream as a call fails, after the reports that came before", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.receive(report("progress-1", 1), { id: 1, error: { code: 5, message: "no" } })
      assert.deepStrictEqual(yield* call.end, Result.fail(new JsonRpc.JsonRpcError({ code: 5, message: "no" })))
      assert.deepStrictEqual(call.events, [progress(1)])
    }))

  it.effect("fails its stream with why the connection ended", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.receive(report("progress-1", 1))
      yield* peer.endInput
      assert.deepStrictEqual(yield* call.end, Result.fail(closed("build", new Transport.InputEnded())))
      assert.deepStrictEqual(call.events, [progress(1)])
    }))

  it.effect("dies of params that cannot be written", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const exit = yield* Effect.exit(Stream.runDrain(peer.peer.follow("build", { amount: 1n })))
      assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
      assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
    }))

  it.effect("never loses its result to reports that nobody takes, of which the newest are kept", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const open = yield* Deferred.make<void>()
      const events: Array<Peer.CallEvent> = []
      const fiber = yield* peer.peer.follow("build").pipe(
        Stream.runForEach((event) => Effect.andThen(Deferred.await(open), Effect.sync(() => events.push(event)))),
        Effect.forkChild({ startImmediately: true })
      )
      yield* peer.receive(report("progress-1", 0))
      yield* peer.settled
      yield* peer.receive(...Array.from({ length: 1_000 }, (_, index) => report("progress-1", index + 1)))
      yield* peer.receive({ id: 1, result: "done" })
      yield* peer.settled
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(events, [
        progress(0),
        ...Array.from({ length: 255 }, (_, index) => progress(746 + index)),
        result("done")
      ])
    }))
})

describe("the time of a call that is followed", () => {
  it.effect("is that of a call, begun anew by each report", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp })
      const call = yield* follow(peer.peer.follow("build"))
      for (let count = 1; count <= 3; count++) {
        yield* TestClock.adjust("29 seconds")
        yield* peer.receive(report("progress-1", count))
        yield* peer.settled
      }
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(call.fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* call.end, Result.fail(timeout("build")))
      assert.deepStrictEqual(call.events, [progress(1), progress(2), progress(3)])
      yield* peer.expectSent(asked(1, "build", "progress-1"), cancelled(1))
    }))

  it.effect("is its own where it says so", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build", undefined, { timeout: "1 second" }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* call.end, Result.fail(timeout("build")))
    }))

  it.effect("is never more than maxTime, whatever is reported", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp })
      const call = yield* follow(peer.peer.follow("build", undefined, { timeout: "10 seconds", maxTime: "25 seconds" }))
      for (const count of [1, 2, 3]) {
        yield* TestClock.adjust("8 seconds")
        yield* peer.receive(report("progress-1", count))
        yield* peer.settled
      }
      yield* TestClock.adjust("999 millis")
      assert.isUndefined(call.fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* call.end, Result.fail(timeout("build")))
      yield* peer.expectSent(asked(1, "build", "progress-1"), cancelled(1))
    }))

  it.effect("is maxTime alone where silence may last", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build", undefined, { timeout: "Infinity", maxTime: "1 hour" }))
      yield* TestClock.adjust("59 minutes")
      assert.isUndefined(call.fiber.pollUnsafe())
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* call.end, Result.fail(timeout("build")))
    }))

  it.effect.each(["Infinity", 0] as const)("has no end where both limits are %s", (limit) =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build", undefined, { timeout: limit, maxTime: limit }))
      yield* TestClock.adjust("30 days")
      yield* peer.receive({ id: 1, result: "at last" })
      yield* call.end
      assert.deepStrictEqual(call.events, [result("at last")])
    }))

  it.effect("includes that of waiting for its turn, and a call without a limit does not wait", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxCallsInFlight: 1 })
      yield* follow(peer.peer.follow("first", undefined, { timeout: "1 hour" }))
      const second = yield* follow(peer.peer.follow("second"))
      yield* follow(peer.peer.follow("endless", undefined, { timeout: 0 }))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* second.end, Result.fail(timeout("second")))
      yield* peer.expectSent(asked(1, "first", "progress-1"), asked(2, "endless", "progress-3"))
    }))
})

describe("a stream that ends early", () => {
  it.effect("cancels the request", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp })
      const call = yield* follow(Stream.take(peer.peer.follow("build"), 1))
      yield* peer.receive(report("progress-1", 1))
      yield* call.end
      yield* peer.expectSent(asked(1, "build", "progress-1"), cancelled(1))
      assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
    }))

  it.effect("cancels it in the words of the Language Server Protocol", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ progress: Progress.lsp, cancellation: Cancellation.lsp })
      const call = yield* follow(peer.peer.follow("build"))
      yield* Fiber.interrupt(call.fiber)
      yield* peer.expectSent(
        { jsonrpc: "2.0", id: 1, method: "build", params: { workDoneToken: "progress-1" } },
        { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } }
      )
    }))

  it.effect("cancels nothing that has not been sent", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp, maxCallsInFlight: 1 })
      yield* follow(peer.peer.follow("first"))
      const second = yield* follow(peer.peer.follow("second"))
      yield* Fiber.interrupt(second.fiber)
      yield* peer.expectSent(asked(1, "first", "progress-1"))
    }))

  it.effect("cancels nothing after the result", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp })
      const call = yield* follow(Stream.take(peer.peer.follow("build"), 1))
      yield* peer.receive({ id: 1, result: "done" })
      yield* call.end
      yield* peer.expectSent(asked(1, "build", "progress-1"))
    }))
})

describe("a report for nobody", () => {
  /** A peer whose router and subscriber note the reports they are given. */
  const connectNoting = Effect.gen(function*() {
    const routed: Array<unknown> = []
    const peer = yield* connect({
      router: Router.rawNotification(Router.empty, "notifications/progress", (params) =>
        Effect.sync(() => {
          routed.push(params)
        }))
    })
    const heard: Array<unknown> = []
    const stream = yield* peer.peer.subscribe()
    yield* Effect.forkScoped(Stream.runForEach(stream, ({ params }) => Effect.sync(() => heard.push(params))), {
      startImmediately: true
    })
    return { ...peer, routed, heard }
  })

  it.effect.each([
    { progressToken: "progress-9", progress: 1 },
    { progressToken: 1, progress: 1 },
    { progressToken: null },
    { progress: 1 },
    [1],
    undefined
  ])(
    "is a notification like others: %j",
    (params) =>
      Effect.gen(function*() {
        const peer = yield* connectNoting
        const call = yield* follow(peer.peer.follow("build"))
        yield* peer.receive({ method: "notifications/progress", ...(params === undefined ? {} : { params }) })
        yield* peer.settled
        assert.deepStrictEqual([peer.routed, peer.heard, call.events], [[params], [params], []])
      })
  )

  it.effect("is one that comes after the end of the stream", () =>
    Effect.gen(function*() {
      const peer = yield* connectNoting
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.receive({ id: 1, result: "done" })
      yield* call.end
      yield* peer.receive(report("progress-1", 1))
      yield* peer.settled
      const params = { progressToken: "progress-1", progress: 1 }
      assert.deepStrictEqual([peer.routed, peer.heard, call.events], [[params], [params], [result("done")]])
    }))

  it.effect("is not one that a followed call gets", () =>
    Effect.gen(function*() {
      const peer = yield* connectNoting
      yield* follow(peer.peer.follow("build"))
      yield* peer.receive(report("progress-1", 1))
      yield* peer.settled
      assert.deepStrictEqual([peer.routed, peer.heard], [[], []])
    }))

  it.effect("does not follow the result of its call when both come together", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.receive({ id: 1, result: "done" }, report("progress-1", 1))
      assert.deepStrictEqual(yield* call.end, Result.succeed(undefined))
      assert.deepStrictEqual(call.events.at(-1), result("done"))
    }))
})

describe("a strategy that throws", () => {
  const broken = (part: Partial<Progress.Progress>): Progress.Progress => ({ ...Progress.mcp, ...part })
  const fail = () => {
    throw new Error("broken")
  }

  it.effect("while it asks leaves the params as they are, and is logged", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const peer = yield* Effect.provide(connect({ progress: broken({ ask: fail }) }), log.layer)
      const call = yield* follow(peer.peer.follow("build", { all: true }))
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "build", params: { all: true } })
      yield* peer.receive({ id: 1, result: "done" })
      yield* call.end
      assert.deepStrictEqual(call.events, [result("done")])
      assert.match(log.lines.join("\n"), /an option of the peer threw.*broken/s)
    }))

  it.effect("while it reads leaves the report to the router, and the call as it is", () =>
    Effect.gen(function*() {
      const routed: Array<unknown> = []
      const log = makeLog()
      const peer = yield* Effect.provide(
        connect({
          progress: broken({ read: fail }),
          router: Router.rawNotification(Router.empty, "notifications/progress", (params) =>
            Effect.sync(() => {
              routed.push(params)
            }))
        }),
        log.layer
      )
      const call = yield* follow(peer.peer.follow("build"))
      yield* peer.receive(report("progress-1", 1), { id: 1, result: "done" })
      yield* call.end
      assert.deepStrictEqual(call.events, [result("done")])
      assert.deepStrictEqual(routed, [{ progressToken: "progress-1", progress: 1 }])
    }))
})

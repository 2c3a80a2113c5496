/**
 * Failures that were reported against other programs, replayed: how calls settle. Each name starts with the number of
 * the report.
 */
import { assert, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Framing from "effect-stdio/Framing"
import * as Peer from "effect-stdio/Peer"
import * as Progress from "effect-stdio/Progress"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

/** A peer whose other end is the test, one message a line. */
const connect = Effect.fnUntraced(function*<R = never>(options?: Peer.Options<R>) {
  const wire = yield* TestKit.make({ framing: "line" })
  const peer = yield* Peer.make<R>(wire.transport, options)
  return { ...wire, peer }
})

/** Starts a call, and returns how it settles. */
const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

const timedOut = (method: string) => Result.fail(new Peer.PeerError({ reason: new Peer.Timeout({ method }) }))
const closed = (method: string, reason: Transport.CloseReason) =>
  Result.fail(
    new Peer.PeerError({ reason: new Peer.Closed({ method, reason: new Transport.TransportError({ reason }) }) })
  )

it.effect("F126 settles a call to a mute side by its own timeout, and all others when this side closes", () =>
  Effect.gen(function*() {
    const wire = yield* TestKit.make({ framing: "line" })
    const scope = yield* Scope.make()
    const peer = yield* Scope.provide(Peer.make(wire.transport, { maxCallsInFlight: 2 }), scope)
    const short = yield* start(peer.call("short", undefined, { timeout: "50 millis" }))
    const waits = yield* start(peer.call("waits"))
    const queued = yield* start(peer.call("queued"))
    const endless = yield* start(peer.call("endless", undefined, { timeout: "Infinity" }))
    yield* wire.settled
    yield* TestClock.adjust("50 millis")
    assert.deepStrictEqual(yield* Fiber.join(short), timedOut("short"))
    yield* Scope.close(scope, Exit.void)
    const ended = new Transport.Ended()
    assert.deepStrictEqual(
      yield* Fiber.joinAll([waits, queued, endless]),
      [closed("waits", ended), closed("queued", ended), closed("endless", ended)]
    )
    assert.deepStrictEqual(yield* peer.inFlight, { requests: [], calls: [] })
  }))

it.effect("F142 drops a reply that comes after the timeout, and the next call is fine", () =>
  Effect.gen(function*() {
    const peer = yield* connect()
    const first = yield* start(peer.peer.call("first", undefined, { timeout: "50 millis" }))
    yield* TestClock.adjust("100 millis")
    yield* peer.receive({ id: 1, result: "late" })
    yield* TestClock.adjust("50 millis")
    const second = yield* start(peer.peer.call("second"))
    yield* peer.receive({ id: 2, result: "in time" })
    assert.deepStrictEqual(yield* Fiber.joinAll([first, second]), [timedOut("first"), Result.succeed("in time")])
    assert.deepStrictEqual(yield* peer.peer.stats, {
      messages: 2,
      badInput: 0,
      unanswered: 0,
      noReplies: 0,
      strayResponses: 1
    })
    yield* peer.expectSent(
      { jsonrpc: "2.0", id: 1, method: "first" },
      { jsonrpc: "2.0", id: 2, method: "second" }
    )
  }))

it.effect("F143 takes a reply that is there before the write of its request returns", () =>
  Effect.gen(function*() {
    const input = yield* Queue.unbounded<Framing.Frame, Cause.Done>()
    const wire = yield* TestKit.make({ framing: "line" })
    const reply = (frame: Framing.Frame) => {
      const { id } = JSON.parse(Result.getOrThrow(Framing.text(frame)))
      Queue.offerUnsafe(input, Framing.frameOfText(JSON.stringify({ jsonrpc: "2.0", id, result: "at once" }), "line"))
      return true
    }
    const peer = yield* Peer.make({
      ...wire.transport,
      incoming: Stream.fromQueue(input),
      trySendTextUnsafe: () => false,
      trySendUnsafe: reply
    })
    assert.deepStrictEqual(
      yield* Effect.all([peer.call("a"), peer.call("b")], { concurrency: "unbounded" }),
      ["at once", "at once"]
    )
    assert.strictEqual((yield* peer.stats).strayResponses, 0)
  }))

it.effect("F146 lives on with each report of progress, but never longer than the time for all", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ progress: Progress.mcp, cancellation: Cancellation.mcp })
    const heard: Array<unknown> = []
    const call = yield* start(
      peer.peer.follow("build", undefined, { timeout: "1 second", maxTime: "3 seconds" }).pipe(
        Stream.runForEach((event) => Effect.sync(() => heard.push(event.value)))
      )
    )
    yield* peer.settled
    for (let progress = 1; progress <= 5; progress++) {
      yield* TestClock.adjust("500 millis")
      yield* peer.receive({
        method: "notifications/progress",
        params: { progressToken: "progress-1", progress }
      })
      yield* peer.settled
    }
    yield* TestClock.adjust("499 millis")
    assert.isUndefined(call.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(yield* Fiber.join(call), timedOut("build"))
    assert.deepStrictEqual(heard, [1, 2, 3, 4, 5].map((progress) => ({ progress })))
  }))

it.effect("F148 settles a call that is cancelled while the server is mute, and runs its finalizers", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ cancellation: Cancellation.lsp })
    const finalized: Array<string> = []
    const call = yield* peer.peer.call("m", undefined, { timeout: "Infinity" }).pipe(
      Effect.ensuring(Effect.sync(() => finalized.push("finalized"))),
      Effect.forkChild({ startImmediately: true })
    )
    yield* peer.settled
    yield* Fiber.interrupt(call)
    assert.deepStrictEqual(finalized, ["finalized"])
    assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
    yield* peer.expectSent(
      { jsonrpc: "2.0", id: 1, method: "m" },
      { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } }
    )
  }))

it.effect("F150 tells the same id in both directions apart", () =>
  Effect.gen(function*() {
    const router = Router.rawRequest(Router.empty, "theirs", () => Effect.as(Effect.sleep("1 second"), "to them"))
    const peer = yield* connect({ router, cancellation: Cancellation.mcp })
    const call = yield* start(peer.peer.call("ours"))
    yield* peer.receive({ id: 1, method: "theirs" })
    yield* peer.settled
    assert.deepStrictEqual(yield* peer.peer.inFlight, {
      requests: [{ id: 1, method: "theirs" }],
      calls: [{ id: 1, method: "ours" }]
    })
    yield* TestClock.adjust("1 second")
    yield* peer.receive({ id: 1, result: "to us" })
    assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("to us"))
    yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "ours" }, { jsonrpc: "2.0", id: 1, result: "to them" })
  }))

it.effect("F152 leaves the jsonrpc member out and does without it, and still tells messages apart", () =>
  Effect.gen(function*() {
    const router = Router.rawRequest(
      Router.empty,
      "item/commandExecution/requestApproval",
      () => Effect.succeed({ decision: "accept" })
    )
    const peer = yield* connect({ profile: "omit", onBadInput: "count", router })
    const notes = yield* peer.peer.subscribe()
    const call = yield* start(peer.peer.call("initialize", { clientInfo: { name: "x" } }))
    yield* peer.feed([
      "{\"id\":1,\"result\":{\"userAgent\":\"x\"}}",
      "{\"method\":\"turn/started\",\"params\":{}}",
      "{\"id\":0,\"method\":\"item/commandExecution/requestApproval\",\"params\":{}}",
      ""
    ].join("\n"))
    assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed({ userAgent: "x" }))
    assert.deepStrictEqual(
      (yield* Stream.runCollect(Stream.take(notes, 1))).map(({ method, params }) => ({ method, params })),
      [{ method: "turn/started", params: {} }]
    )
    yield* peer.settled
    assert.strictEqual(
      yield* peer.sentText,
      "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"x\"}}}\n" +
        "{\"id\":0,\"result\":{\"decision\":\"accept\"}}\n"
    )
    assert.strictEqual((yield* peer.peer.stats).badInput, 0)
  }))

/**
 * A side that does not read: what is begun, what is still read, and that nothing is lost or waits for ever.
 */
import { assert, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import type * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer, success } from "./utils/peer.ts"

const KIB = 1_024

const requests = (from: number, to: number, method = "big") =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ id: from + index, method }))
const ids = (messages: ReadonlyArray<unknown>) => messages.map((message) => (message as JsonRpc.Success).id)

/** A router whose "big" answers with so many bytes at once, and which notes what was begun. */
const makeRouter = (bytes: number) => {
  const text = "x".repeat(bytes)
  const begun: Array<JsonRpc.Id> = []
  const router = Router.raw((_, { id }) =>
    Effect.sync(() => {
      begun.push(id)
      return text
    })
  )
  return { begun, router, text }
}

const connect = <R = never>(options?: Peer.Options<R> & { readonly transport?: Transport.Options }) =>
  connectPeer<R>({ ownFraming: "line", ...options })

/** A server that is not left behind, waiting for time to pass, by a test that fails. */
const serve = Effect.fnUntraced(function*(options: TestKit.ServeOptions) {
  const server = yield* TestKit.serve(options)
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkDetach(server.interrupt), TestClock.adjust("1 minute")))
  return server
})

it.effect("begins no request while the output holds too many bytes, and loses none", () =>
  Effect.gen(function*() {
    const { begun, router, text } = makeRouter(400)
    const peer = yield* connect({ router, transport: { maxQueuedBytes: 1_000 } })
    yield* peer.stall
    yield* peer.receive(...requests(1, 10))
    yield* peer.settled
    // the third reply fills it
    assert.deepStrictEqual(begun, [1, 2, 3])
    assert.deepStrictEqual((yield* peer.peer.inFlight).requests, requests(4, 10))
    yield* peer.resume
    yield* peer.settled
    assert.deepStrictEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert.deepStrictEqual(yield* peer.sent, requests(1, 10).map(({ id }) => success(id, text)))
  }))

it.effect("begins no open-ended request either while the output holds too many bytes", () =>
  Effect.gen(function*() {
    const { begun, router } = makeRouter(1_000)
    const peer = yield* connect({
      router,
      openEnded: (method) => method === "listen",
      transport: { maxQueuedBytes: 1_000 }
    })
    yield* peer.stall
    yield* peer.receive(...requests(1, 2), ...requests(3, 4, "listen"))
    yield* peer.settled
    assert.deepStrictEqual(begun, [1])
    yield* peer.resume
    while ((yield* peer.sent).length < 4) yield* peer.settled
    assert.sameMembers([...begun], [1, 2, 3, 4])
  }))

it.effect("begins requests again when half of what may wait has been taken", () =>
  Effect.gen(function*() {
    const maxQueuedBytes = 1_024 * KIB
    const { begun, router, text } = makeRouter(300 * KIB)
    const input = yield* Queue.unbounded<Uint8Array, Cause.Done>()
    const permits = yield* Queue.unbounded<void>()
    let taken = 0
    const transport = yield* Transport.make({
      input: Stream.fromQueue(input),
      // takes one piece a permit
      output: Sink.forEach((piece: Uint8Array) =>
        Effect.map(Queue.take(permits), () => {
          taken += piece.length
        })
      )
    }, { maxQueuedBytes })
    const wire = yield* TestKit.make()
    yield* Peer.make(transport, { router })
    const lines = requests(1, 10).map((request) => `${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`).join("")
    yield* Queue.offer(input, new TextEncoder().encode(lines))
    yield* wire.settled
    const reply = JSON.stringify(success(1, text)).length + 1
    assert.deepStrictEqual(begun, [1, 2, 3, 4])
    const waiting: Array<number> = []
    while (begun.length === 4 && waiting.length < 10) {
      yield* Queue.offer(permits, undefined)
      yield* wire.settled
      waiting.push(4 * reply - taken)
    }
    const last = waiting.at(-1) ?? 0
    const before = waiting.at(-2) ?? 0
    assert.isAbove(before, maxQueuedBytes / 2)
    assert.isAtMost(last, maxQueuedBytes / 2)
    assert.isAbove(begun.length, 4)
  }))

it.effect("still reads responses, notifications and cancellations while the output takes nothing", () =>
  Effect.gen(function*() {
    const { begun, router } = makeRouter(1_000)
    const noted: Array<unknown> = []
    const peer = yield* connect({
      router: Router.merge(
        router,
        Router.raw(
          (params, info) => router.otherRequests?.(params, info) ?? Effect.never,
          (params) =>
            Effect.sync(() => {
              noted.push(params)
            })
        )
      ),
      cancellation: Cancellation.mcp,
      transport: { maxQueuedBytes: 1_000 }
    })
    const call = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
    yield* peer.settled
    yield* peer.stall
    yield* peer.receive(...requests(1, 3))
    yield* peer.settled
    assert.deepStrictEqual(begun, [1])
    yield* peer.receive(
      { id: 1, result: ["a root"] },
      { method: "note", params: [1] },
      { method: "notifications/cancelled", params: { requestId: 2 } }
    )
    assert.deepStrictEqual(yield* Fiber.join(call), ["a root"])
    yield* peer.settled
    assert.deepStrictEqual(noted, [[1]])
    yield* peer.resume
    yield* peer.settled
    assert.deepStrictEqual(begun, [1, 3])
    assert.deepStrictEqual(ids((yield* peer.sent).slice(1)), [1, 3])
  }))

it.effect("pauses reading at the bytes that may be buffered, goes on as they are begun, and loses nothing", () =>
  Effect.gen(function*() {
    const { begun, router } = makeRouter(1_000)
    const peer = yield* connect({ router, maxBufferedInput: 3_000, transport: { maxQueuedBytes: 1_000 } })
    yield* peer.stall
    for (const request of requests(1, 100)) yield* Effect.andThen(peer.receive(request), peer.settled)
    assert.deepStrictEqual(begun, [1])
    const read = (yield* peer.peer.stats).messages
    assert.isAtMost(read, 20)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* peer.peer.stats).messages, read)
    yield* peer.resume
    while ((yield* peer.sent).length < 100) yield* peer.settled
    assert.deepStrictEqual(ids(yield* peer.sent), ids(requests(1, 100)))
  }))

it.effect("counts requests that wait for the concurrency as buffered", () =>
  Effect.gen(function*() {
    const gate = Deferred.makeUnsafe<void>()
    const router = Router.raw(() => Effect.as(Deferred.await(gate), "done"))
    const peer = yield* connect({ router, concurrency: 1, maxBufferedInput: 3_000 })
    for (const request of requests(1, 100)) yield* Effect.andThen(peer.receive(request), peer.settled)
    assert.isAtMost((yield* peer.peer.stats).messages, 20)
    yield* Deferred.succeed(gate, undefined)
    while ((yield* peer.sent).length < 100) yield* peer.settled
    assert.deepStrictEqual(ids(yield* peer.sent), ids(requests(1, 100)))
  }))

it.effect("counts notifications whose handlers lag as buffered", () =>
  Effect.gen(function*() {
    const gate = Deferred.makeUnsafe<void>()
    const noted: Array<unknown> = []
    const router = Router.raw(() => Effect.succeed("done"), (params) =>
      Effect.map(Deferred.await(gate), () => {
        noted.push(params)
      }))
    const peer = yield* connect({ router, maxBufferedInput: 3_000 })
    const sent = Array.from({ length: 100 }, (_, n) => [n])
    for (const params of sent) yield* Effect.andThen(peer.receive({ method: "note", params }), peer.settled)
    const read = (yield* peer.peer.stats).messages
    assert.isAtMost(read, 20)
    yield* Deferred.succeed(gate, undefined)
    while (noted.length < 100) yield* peer.settled
    assert.deepStrictEqual(noted, sent)
  }))

it.effect("pauses reading when answers that need no handler pile up, and loses none", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ maxBufferedInput: 2_000, transport: { maxQueuedBytes: 2_000 } })
    yield* peer.stall
    for (const { id } of requests(1, 200)) {
      yield* Effect.andThen(peer.feed(`{"jsonrpc":"2.0","id":${id},"method":5}\n`), peer.settled)
    }
    // an answer has about 100 bytes
    const read = (yield* peer.peer.stats).badInput
    assert.isAtMost(read, 60)
    yield* peer.resume
    while ((yield* peer.sent).length < 200) yield* peer.settled
    assert.deepStrictEqual(ids(yield* peer.sent), ids(requests(1, 200)))
  }))

it.effect("frees what a cancelled request has buffered", () =>
  Effect.gen(function*() {
    const gate = Deferred.makeUnsafe<void>()
    const router = Router.raw(() => Effect.as(Deferred.await(gate), "done"))
    const peer = yield* connect({ router, concurrency: 1, maxBufferedInput: 3_000, cancellation: Cancellation.mcp })
    const cancel = (requestId: number) => ({ method: "notifications/cancelled", params: { requestId } })
    // never more than two requests wait
    for (const { id } of requests(1, 101)) {
      yield* peer.receive({ id, method: "m" }, ...(id > 1 ? [cancel(id)] : []))
      yield* peer.settled
    }
    assert.strictEqual((yield* peer.peer.stats).messages, 201)
  }))

it.effect("suspends the one who calls or notifies while the output takes nothing, and no one else", () =>
  Effect.gen(function*() {
    const router = Router.raw(() => Effect.succeed("pong"))
    const peer = yield* connect({ router, transport: { maxQueuedBytes: 2_000 } })
    yield* peer.stall
    let notified = 0
    const flood = yield* Effect.forkChild(
      Effect.forEach(
        Array.from({ length: 100 }),
        () =>
          Effect.map(peer.peer.notify("progress", { text: "x".repeat(200) }), () => {
            notified++
          })
      ),
      { startImmediately: true }
    )
    yield* peer.settled
    const before = notified
    assert.isBelow(before, 10)
    // a request is still read, begun and answered
    yield* peer.receive({ id: 1, method: "ping" })
    yield* peer.settled
    assert.deepStrictEqual((yield* peer.peer.inFlight).requests, [])
    assert.strictEqual(notified, before)
    yield* peer.resume
    yield* Fiber.join(flood)
    while ((yield* peer.sent).length < 101) yield* peer.settled
    assert.strictEqual(notified, 100)
  }))

it.effect("sends a frame alone that is larger than what may wait", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ transport: { maxQueuedBytes: 100 } })
    const text = "x".repeat(10_000)
    yield* peer.peer.notify("large", { text })
    yield* peer.peer.notify("small", { text: "" })
    yield* peer.settled
    assert.deepStrictEqual(yield* peer.sent, [
      { jsonrpc: "2.0", method: "large", params: { text } },
      { jsonrpc: "2.0", method: "small", params: { text: "" } }
    ])
  }))

it.effect("fails the server when the output takes nothing for a minute while requests wait for it", () =>
  Effect.gen(function*() {
    const { router } = makeRouter(600)
    const server = yield* serve({ router, transport: { maxQueuedBytes: 1_000 } })
    yield* server.stall
    yield* server.receive(...requests(1, 3))
    yield* TestClock.adjust("59999 millis")
    const outcome = yield* Effect.forkChild(Effect.flip(server.reason))
    yield* server.settled
    assert.isUndefined(outcome.pollUnsafe())
    yield* TestClock.adjust("1 second")
    const error = yield* Fiber.join(outcome)
    // two replies of 637 bytes wait
    assert.deepStrictEqual(error.reason, new Transport.OutputStalled({ queuedBytes: 1_274 }))
    assert.deepStrictEqual(
      (yield* server.events).filter(({ _tag }) => _tag === "OutputError" || _tag === "Stopped"),
      [{ _tag: "OutputError", reason: "OutputStalled", message: error.message }]
    )
  }))

it.effect.each(["stalls", "breaks"])(
  "begins no request that waited for an output when that %s",
  (how) =>
    Effect.gen(function*() {
      const { begun, router } = makeRouter(600)
      const server = yield* serve({ router, transport: { maxQueuedBytes: 1_000 } })
      yield* server.stall
      yield* server.receive(...requests(1, 5))
      yield* server.settled
      if (how === "breaks") yield* server.breakOutput()
      yield* TestClock.adjust("1 minute")
      // it gets a moment more, in case the clock has jumped
      yield* TestClock.adjust("1 second")
      yield* Effect.exit(server.reason)
      assert.deepStrictEqual(begun, [1, 2])
    })
)

it.effect("does not call an output stalled that holds nothing back, or that moves", () =>
  Effect.gen(function*() {
    const { router } = makeRouter(600)
    const server = yield* serve({
      router,
      transport: { maxQueuedBytes: 1_000 },
      watchdog: { idle: "Infinity" }
    })
    yield* server.stall
    yield* server.receive(...requests(1, 1))
    yield* TestClock.adjust("1 day")
    yield* server.resume
    yield* server.settled
    // held back for 50 seconds, twice, with progress between
    for (const from of [2, 12]) {
      yield* server.stall
      yield* server.receive(...requests(from, from + 9))
      yield* TestClock.adjust("50 seconds")
      yield* server.resume
      yield* server.settled
    }
    assert.deepStrictEqual(ids(yield* server.sent), ids(requests(1, 21)))
  }))

it.effect("never calls an output stalled where the time for it is off", () =>
  Effect.gen(function*() {
    const { router } = makeRouter(600)
    const server = yield* serve({
      router,
      transport: { maxQueuedBytes: 1_000, stallTimeout: 0 },
      watchdog: { idle: "Infinity" }
    })
    yield* server.stall
    yield* server.receive(...requests(1, 10))
    yield* TestClock.adjust("1 day")
    yield* server.resume
    while ((yield* server.sent).length < 10) yield* server.settled
    assert.deepStrictEqual(ids(yield* server.sent), ids(requests(1, 10)))
  }))

it.effect("lets two peers send each other 100 MB of replies", () =>
  Effect.gen(function*() {
    const text = "x".repeat(1_000_000)
    const router = Router.raw(() => Effect.succeed(text))
    const [left, right] = yield* Transport.makePair({ left: { framing: "line" }, right: { framing: "line" } })
    const peers = [yield* Peer.make(left, { router }), yield* Peer.make(right, { router })]
    const received = yield* Effect.forEach(
      peers,
      (peer) =>
        Effect.forEach(
          Array.from({ length: 100 }),
          () => Effect.map(peer.call("big"), (result) => (result as string).length),
          { concurrency: "unbounded" }
        ),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(received.map((lengths) => lengths.reduce((sum, length) => sum + length, 0)), [
      100_000_000,
      100_000_000
    ])
  }), 20_000)

it.effect("lets two peers send each other replies that each exceed what may wait", () =>
  Effect.gen(function*() {
    const text = "x".repeat(10_000)
    const router = Router.raw(() => Effect.succeed(text))
    const options = { framing: "line", maxQueuedBytes: 4_000 } as const
    const [left, right] = yield* Transport.makePair({ left: options, right: options, capacity: 1 })
    const peers = [yield* Peer.make(left, { router }), yield* Peer.make(right, { router })]
    const received = yield* Effect.forEach(
      peers,
      (peer) => Effect.forEach(Array.from({ length: 200 }), () => peer.call("big"), { concurrency: "unbounded" }),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(
      received.map((replies) => replies.filter((reply) => reply === text).length),
      [200, 200]
    )
  }))

it.effect("fails two peers that wait for each other because both have buffered all they may", () =>
  Effect.gen(function*() {
    const router = Router.raw(() => Effect.succeed("x".repeat(10_000)))
    const transport = { framing: "line", maxQueuedBytes: 4_000 } as const
    const options = { router, maxBufferedInput: 3_000, callTimeout: "Infinity" } as const
    const [left, right] = yield* Transport.makePair({ left: transport, right: transport, capacity: 1 })
    const peers = [yield* Peer.make(left, options), yield* Peer.make(right, options)]
    const calls = yield* Effect.forkChild(Effect.forEach(
      peers,
      (peer) =>
        Effect.forEach(Array.from({ length: 200 }), () => Effect.result(peer.call("big")), {
          concurrency: "unbounded"
        }),
      { concurrency: "unbounded" }
    ))
    while (!left.isCongestedUnsafe() || !right.isCongestedUnsafe()) yield* Effect.yieldNow
    yield* TestClock.adjust("1 minute")
    // it gets a moment more, in case the clock has jumped
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(calls)
    const reasons = yield* Effect.forEach(peers, (peer) => Effect.map(peer.closed, ({ _tag }) => _tag))
    assert.include(reasons, "OutputStalled")
  }))

it.effect("begins sixteen of a burst whose handlers take their time, so that their replies can hold back the rest", () =>
  Effect.gen(function*() {
    let begun = 0
    const router = Router.raw(() => {
      begun++
      return Effect.as(Effect.yieldNow, "x".repeat(500))
    })
    const peer = yield* connect({ router, transport: { maxQueuedBytes: KIB } })
    yield* peer.stall
    yield* peer.receive(...requests(1, 40))
    yield* peer.settled
    const held = begun
    yield* peer.resume
    yield* peer.settled
    assert.deepStrictEqual([held, begun, (yield* peer.sent).length], [16, 40, 40])
  }))

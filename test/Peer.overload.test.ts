/**
 * Asking again when the other side says that it has too much to do.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Peer from "effect-stdio/Peer"
import * as JsonRpc from "effect-stdio/Schema"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer } from "./utils/peer.ts"

const connect = (options?: Peer.Options) => connectPeer({ ownFraming: "line", ...options })
const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

const request = (id: number, method = "m") => ({ jsonrpc: "2.0", id, method })
const requests = (...ids: ReadonlyArray<number>) => ids.map((id) => request(id))
const busy = (id: number, code = -32_001) => ({ id, error: { code, message: "overloaded" } })
const overloaded = (code = -32_001) => Result.fail(new JsonRpc.JsonRpcError({ code, message: "overloaded" }))
const timeout = (method: string) => new Peer.PeerError({ reason: new Peer.Timeout({ method }) })

const idempotent = { idempotent: true }
const everySecond = { schedule: Schedule.spaced("1 second") }

describe("a call that may be made again", () => {
  it.effect("is made again under a new id, and succeeds with the first result", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond })
      const call = yield* start(peer.peer.call("m", { a: 1 }, idempotent))
      yield* peer.receive(busy(1))
      yield* peer.settled
      assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
      yield* TestClock.adjust("1 second")
      yield* peer.expectSent({ ...request(1), params: { a: 1 } }, { ...request(2), params: { a: 1 } })
      yield* peer.receive({ id: 2, result: "at last" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("at last"))
    }))

  it.effect("is made four more times, after about 100, 200, 400 and 800 milliseconds", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      for (const [index, wait] of [100, 200, 400, 800].entries()) {
        const ids = Array.from({ length: index + 1 }, (_, index) => index + 1)
        yield* peer.receive(busy(index + 1))
        yield* peer.settled
        yield* TestClock.adjust(wait * 0.8 - 1)
        yield* peer.expectSent(...requests(...ids))
        yield* TestClock.adjust(wait * 0.4 + 1)
        yield* peer.expectSent(...requests(...ids, index + 2))
      }
      yield* peer.receive(busy(5))
      assert.deepStrictEqual(yield* Fiber.join(call), overloaded())
      yield* TestClock.adjust("1 minute")
      yield* peer.expectSent(...requests(1, 2, 3, 4, 5))
    }))

  it.effect("fails at once with an error of another code", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      yield* peer.receive(busy(1, -32_603))
      assert.deepStrictEqual(yield* Fiber.join(call), overloaded(-32_603))
    }))

  it.effect("fails at once with another error after it was made again", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond })
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      yield* peer.receive(busy(1))
      yield* peer.settled
      yield* TestClock.adjust("1 second")
      yield* peer.receive(busy(2, 5))
      assert.deepStrictEqual(yield* Fiber.join(call), overloaded(5))
    }))

  it.effect.each([429, 503])("is made again for code %d where the codes are others", (code) =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: { codes: [429, 503], ...everySecond } })
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      const other = yield* start(peer.peer.call("m", undefined, idempotent))
      yield* peer.receive(busy(1, code), busy(2))
      assert.deepStrictEqual(yield* Fiber.join(other), overloaded())
      yield* TestClock.adjust("1 second")
      yield* peer.receive({ id: 3, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("is never made again where there are no codes", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: { codes: [] } })
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      yield* peer.receive(busy(1))
      assert.deepStrictEqual(yield* Fiber.join(call), overloaded())
    }))

  it.effect("has one deadline for all", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond, cancellation: Cancellation.mcp })
      const call = yield* start(peer.peer.call("m", undefined, { ...idempotent, timeout: "2500 millis" }))
      for (const id of [1, 2]) {
        yield* peer.receive(busy(id))
        yield* peer.settled
        yield* TestClock.adjust("1 second")
      }
      yield* TestClock.adjust("499 millis")
      assert.isUndefined(call.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(timeout("m")))
      yield* peer.expectSent(...requests(1, 2, 3), {
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: 3 }
      })
    }))

  it.effect("times out while it waits to be made again, and is not", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond, cancellation: Cancellation.mcp })
      const call = yield* start(peer.peer.call("m", undefined, { ...idempotent, timeout: "500 millis" }))
      yield* peer.receive(busy(1))
      yield* peer.settled
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(timeout("m")))
      yield* TestClock.adjust("1 minute")
      yield* peer.expectSent(request(1))
    }))

  it.effect("is made again without a deadline too", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond })
      const call = yield* start(peer.peer.call("m", undefined, { ...idempotent, timeout: 0 }))
      for (let id = 1; id <= 100; id++) {
        yield* peer.receive(busy(id))
        yield* peer.settled
        yield* TestClock.adjust("1 second")
      }
      yield* peer.receive({ id: 101, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("takes no place among those in flight while it waits", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond, maxCallsInFlight: 1 })
      const first = yield* start(peer.peer.call("m", undefined, idempotent))
      const second = yield* start(peer.peer.call("other"))
      yield* peer.expectSent(request(1))
      yield* peer.receive(busy(1))
      yield* peer.expectSent(request(1), request(2, "other"))
      // its second try waits for its turn like any call
      yield* TestClock.adjust("1 second")
      yield* peer.expectSent(request(1), request(2, "other"))
      yield* peer.receive({ id: 2, result: 2 })
      yield* peer.expectSent(request(1), request(2, "other"), request(3))
      yield* peer.receive({ id: 3, result: 3 })
      assert.deepStrictEqual(yield* Fiber.joinAll([first, second]), [Result.succeed(3), Result.succeed(2)])
    }))

  it.effect("is not made again when its caller is interrupted while it waits", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond, cancellation: Cancellation.mcp })
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      yield* peer.receive(busy(1))
      yield* peer.settled
      yield* Fiber.interrupt(call)
      yield* TestClock.adjust("1 minute")
      yield* peer.expectSent(request(1))
    }))

  it.effect("fails with the end of the connection when it would be made again after it", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ overload: everySecond })
      const call = yield* start(peer.peer.call("m", undefined, idempotent))
      yield* peer.receive(busy(1))
      yield* peer.settled
      yield* peer.endInput
      yield* peer.settled
      yield* TestClock.adjust("1 second")
      const reason = new Transport.TransportError({ reason: new Transport.InputEnded() })
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(new Peer.PeerError({ reason: new Peer.Closed({ method: "m", reason }) }))
      )
    }))
})

describe("no other call is made again", () => {
  it.effect.each([undefined, {}, { idempotent: false }, { idempotent: undefined }])(
    "such as one with the options %j",
    (options) =>
      Effect.gen(function*() {
        const peer = yield* connect()
        const call = yield* start(peer.peer.call("m", undefined, options))
        yield* peer.receive(busy(1))
        assert.deepStrictEqual(yield* Fiber.join(call), overloaded())
        yield* peer.expectSent(request(1))
      })
  )

  it.effect("nor one that is followed", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(Stream.runDrain(peer.peer.follow("m")))
      yield* peer.receive(busy(1))
      assert.deepStrictEqual(yield* Fiber.join(call), overloaded())
    }))
})

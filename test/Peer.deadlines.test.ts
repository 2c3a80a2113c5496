/**
 * Many calls with deadlines of their own, of which one timer takes care.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Peer from "effect-stdio/Peer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { connect } from "./utils/peer.ts"

const Timeouts = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 })))

const timedOut = (method: string) => new Peer.PeerError({ reason: new Peer.Timeout({ method }) })

describe("deadlines", () => {
  it.effect.prop(
    "are met by each call, in any mixture",
    { timeouts: Timeouts },
    ({ timeouts }) =>
      Effect.scoped(Effect.gen(function*() {
        const { peer } = yield* connect({ ownFraming: "line", maxCallsInFlight: 3 })
        const expired: Array<readonly [index: number, at: number]> = []
        let now = 0
        const calls = yield* Effect.forEach(timeouts, (timeout, index) =>
          Effect.forkChild(
            Effect.catch(peer.call("m", {}, { timeout }), () => Effect.sync(() => expired.push([index, now]))),
            { startImmediately: true }
          ))
        while (now < 50) {
          now++
          yield* TestClock.adjust(1)
        }
        yield* Fiber.joinAll(calls)
        assert.deepStrictEqual(
          expired.toSorted(([a], [b]) => a - b),
          timeouts.map((timeout, index) => [index, timeout] as const)
        )
        assert.deepStrictEqual((yield* peer.inFlight).calls, [])
      }))
  )

  it.effect("of calls that wait for a place pass too, and nothing is sent or cancelled for them", () =>
    Effect.gen(function*() {
      const { expectSent, peer } = yield* connect({
        ownFraming: "line",
        maxCallsInFlight: 1,
        cancellation: Cancellation.lsp
      })
      const call = (method: string, timeout: number) =>
        Effect.forkChild(Effect.flip(peer.call(method, {}, { timeout })), { startImmediately: true })
      const first = yield* call("first", 20)
      const second = yield* call("second", 10)
      const third = yield* call("third", 30)
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(yield* Fiber.join(second), timedOut("second"))
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(yield* Fiber.join(first), timedOut("first"))
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(yield* Fiber.join(third), timedOut("third"))
      yield* expectSent(
        { jsonrpc: "2.0", id: 1, method: "first", params: {} },
        { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } },
        { jsonrpc: "2.0", id: 2, method: "third", params: {} },
        { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 2 } }
      )
    }))

  it.effect("give their place back, also when the caller is interrupted before it had one", () =>
    Effect.gen(function*() {
      const { peer, receive } = yield* connect({ ownFraming: "line", maxCallsInFlight: 1 })
      const begin = Effect.forkChild(peer.call("m"), { startImmediately: true })
      const first = yield* begin
      const second = yield* begin
      const third = yield* begin
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(first)
      yield* receive({ id: 2, result: "third" })
      assert.strictEqual(yield* Fiber.join(third), "third")
      const fourth = yield* begin
      yield* receive({ id: 3, result: "fourth" })
      assert.strictEqual(yield* Fiber.join(fourth), "fourth")
    }))

  it.effect("are met when the wall clock is set back in the meantime, by calls and by calls that are followed", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let setBack = 0
      // the TestClock in all else
      const wallClock: Clock.Clock = Object.assign(Object.create(clock), {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - setBack,
        currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() - setBack)
      })
      const { peer } = yield* Effect.provideService(connect({ ownFraming: "line" }), Clock.Clock, wallClock)
      const call = yield* Effect.forkChild(Effect.flip(peer.call("m", {}, { timeout: "10 seconds" })), {
        startImmediately: true
      })
      const followed = yield* Effect.forkChild(
        Effect.flip(Stream.runDrain(peer.follow("n", {}, { timeout: "10 seconds" }))),
        { startImmediately: true }
      )
      yield* TestClock.adjust("5 seconds")
      setBack = 3_600_000
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([call.pollUnsafe(), followed.pollUnsafe()], [
        Exit.succeed(timedOut("m")),
        Exit.succeed(timedOut("n"))
      ])
    }))
})

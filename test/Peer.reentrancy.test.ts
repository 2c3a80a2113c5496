/**
 * What happens when one thing a peer does sets off another in its midst.
 */
import { assert, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Router from "effect-stdio/Router"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { connect, success } from "./utils/peer.ts"

/** Handlers that take a second and note when they start and end. */
const makeRouter = () => {
  const log: Array<string> = []
  const router = Router.raw((_, { id }) =>
    Effect.gen(function*() {
      log.push(`start ${id}`)
      yield* Effect.sleep("1 second")
      log.push(`end ${id}`)
      return id
    })
  )
  return { log, router }
}

it.effect("reading that goes on while a request is begun does not overtake it", () =>
  Effect.gen(function*() {
    const { log, router } = makeRouter()
    const peer = yield* connect({ router, concurrency: 1, maxBufferedInput: 300 })
    // each in a chunk of its own, so that reading pauses between them
    for (const id of [1, 2, 3]) yield* peer.receive({ id, method: "work" })
    yield* peer.settled
    for (let second = 0; second < 3; second++) yield* Effect.andThen(TestClock.adjust("1 second"), peer.settled)
    yield* peer.expectSent(success(1, 1), success(2, 2), success(3, 3))
    assert.deepStrictEqual(log, ["start 1", "end 1", "start 2", "end 2", "start 3", "end 3"])
  }))

it.effect("a cancellation that is read while its request is begun counts once", () =>
  Effect.gen(function*() {
    const { router } = makeRouter()
    const peer = yield* connect({ router, concurrency: 1, maxBufferedInput: 300, cancellation: Cancellation.mcp })
    yield* peer.receive({ id: 1, method: "work" })
    yield* peer.receive({ id: 2, method: "work" })
    yield* peer.receive({ method: "notifications/cancelled", params: { requestId: 2 } })
    yield* peer.settled
    for (let second = 0; second < 3; second++) yield* Effect.andThen(TestClock.adjust("1 second"), peer.settled)
    yield* peer.expectSent(success(1, 1))
    assert.deepStrictEqual((yield* peer.peer.inFlight).requests, [])
    assert.isFalse(peer.peer.activity.isBusyUnsafe())
  }))

it.effect("requests that wait are dropped when nobody can hear of them any more", () =>
  Effect.gen(function*() {
    const { log, router } = makeRouter()
    const peer = yield* connect({ router, concurrency: 1 })
    yield* peer.receive({ id: 1, method: "work" }, { id: 2, method: "work" }, { id: 3, method: "no/such" })
    yield* peer.settled
    yield* peer.breakOutput()
    yield* TestClock.adjust("1 second")
    yield* peer.settled
    yield* peer.receive({ id: 4, method: "work" })
    yield* peer.settled
    assert.deepStrictEqual(log, ["start 1", "end 1", "start 2"])
    yield* TestClock.adjust("1 second")
    yield* peer.settled
    assert.isFalse(peer.peer.activity.isBusyUnsafe())
  }))

/**
 * The tests that docs/testing.md shows.
 */
import { assert, it } from "@effect/vitest"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

const router = Router.rawRequest(Router.empty, "slow", () => Effect.as(Effect.sleep("20 seconds"), "done"))

it.effect("finishes what is in flight when the input ends", () =>
  Effect.gen(function*() {
    const server = yield* TestKit.serve({ router })
    yield* server.receive({ id: 1, method: "slow" })
    yield* server.endInput
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
    yield* server.expectSent({ jsonrpc: "2.0", id: 1, result: "done" })
  }))

it.effect("leaves when its parent is gone", () =>
  Effect.gen(function*() {
    const parent = TestKit.makeParent(4_242)
    const server = yield* TestKit.serve({ parent })
    yield* parent.exit
    yield* TestClock.adjust("30 seconds")
    assert.strictEqual((yield* server.reason)._tag, "ParentExited")
  }))

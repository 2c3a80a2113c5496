/**
 * What a user's first tests look like: an idle timeout and a parent's exit, five lines each.
 */
import { assert, it } from "@effect/vitest"
import * as TestKit from "effect-stdio/TestKit"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

it.effect("an idle server leaves after its idle time", () =>
  Effect.gen(function*() {
    const server = yield* TestKit.serve({ watchdog: { idle: "1 minute" } })
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* server.reason, { _tag: "IdleTimeout" })
  }))

it.effect("a server whose parent is gone leaves", () =>
  Effect.gen(function*() {
    const parent = TestKit.makeParent(4_242)
    const server = yield* TestKit.serve({ parent })
    yield* parent.exit
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(yield* server.reason, { _tag: "ParentExited", pid: 4_242, why: "no such process" })
  }))

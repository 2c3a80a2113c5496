/**
 * Several conversations with one codex, which share its connection and its process: what one of them does harms no other.
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Codex from "effect-stdio/Codex"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Script from "./utils/scriptedCodex.ts"

const { started, turnCompleted } = Script

const start = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.tap(Effect.forkChild(effect, { startImmediately: true }), () => Script.settled)

/** More than may wait, of what cannot be joined. */
const FLOOD = Array.from(
  { length: 3_000 },
  (_, index) => started({ type: "commandExecution", id: `c${index}`, command: "ls", status: "inProgress" })
)

/** Two conversations with a turn each: nobody takes the events of the first until the gate opens, and a flood of them stops the reader. */
const besideSlow = Effect.fnUntraced(function*(second?: Codex.ThreadOptions) {
  const script = yield* Script.make()
  script.answers["thread/turns/list"] = Script.turns({ id: "turn-2", status: "inProgress", items: [] })
  const slow = yield* script.open()
  const thread = yield* script.open(second)
  const gate = yield* Deferred.make<void>()
  const fiber = yield* start(
    Stream.runForEachArray(slow.stream("Hi", { whenSlow: "suspend" }), () => Deferred.await(gate))
  )
  const turn = yield* Script.follow(thread)
  const flood = Effect.andThen(Effect.sync(() => FLOOD.forEach((one) => script.last().say(one))), Script.settled)
  return { ...script, thread, turn, flood, slow: fiber, go: Deferred.succeed(gate, undefined) }
})

describe("the same conversation", () => {
  it.effect("cannot be opened twice with one codex: the first goes on, and hears all that is said", () =>
    Effect.gen(function*() {
      const { codex, last, open, say } = yield* Script.make()
      const thread = yield* open({ resume: "thread-1" })
      const turn = yield* Script.follow(thread)
      const error = yield* Effect.flip(Effect.asVoid(Effect.scoped(codex.thread({ resume: "thread-1" }))))
      assert.strictEqual(error.reason._tag, "Refused")
      assert.include(error.message, "open already")
      // nor has the attempt closed it, whose scope has ended
      assert.deepStrictEqual(last().requests("thread/unsubscribe"), [])
      yield* say(Script.delta("m", "Hello"), turnCompleted())
      assert.deepInclude(Script.endOf(turn), { status: "completed", text: "Hello" })
    }))

  it.effect("may be opened again when the first has been closed", () =>
    Effect.gen(function*() {
      const { codex, open, say } = yield* Script.make()
      yield* Effect.scoped(codex.thread({ resume: "thread-1" }))
      const turn = yield* Script.follow(yield* open({ resume: "thread-1" }))
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("cannot be opened twice either after codex was started again", () =>
    Effect.gen(function*() {
      const { codex, crash, open, say } = yield* Script.make()
      const thread = yield* open({ resume: "thread-1" })
      yield* crash()
      const second = yield* open({ resume: "thread-1" })
      const error = yield* Effect.flip(thread.send("Hi"))
      assert.include(error.message, "open already")
      const turn = yield* Script.follow(second)
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
      assert.strictEqual(yield* codex.version, "0.171.0")
    }))
})

describe("a conversation that cannot be opened", () => {
  it.effect("leaves nothing in the scope of whoever tried, nor anything to be said to codex at its end", () =>
    Effect.gen(function*() {
      const { answers, codex, last } = yield* Script.make()
      answers["thread/resume"] = Script.refuse(-32600, "no rollout found")
      const scope = yield* Scope.make()
      for (let times = 0; times < 3; times++) {
        yield* Effect.exit(Scope.provide(codex.thread({ resume: "gone" }), scope))
        assert.strictEqual(scope.state._tag, "Empty")
      }
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(last().requests("thread/unsubscribe"), [])
    }))
})

describe("a conversation beside one whose events nobody takes, for which codex is not read", () => {
  it.effect("does not count as silent, and codex not as dead", () =>
    Effect.gen(function*() {
      const { flood, go, last, say, slow, turn } = yield* besideSlow({ quietTimeout: "1 minute" })
      yield* flood
      yield* Script.pass("10 minutes")
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      assert.deepStrictEqual(last().requests("thread/turns/list"), [])
      assert.isFalse(last().isClosed())
      yield* go
      yield* say(turnCompleted(), turnCompleted({ id: "turn-2" }, "thread-2"))
      yield* Fiber.join(slow)
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("does not count as silent either where the answer to how it stands is not read", () =>
    Effect.gen(function*() {
      const { answers, flood, go, last, say, slow, turn } = yield* besideSlow({ quietTimeout: "1 minute" })
      answers["thread/turns/list"] = Script.silent
      yield* Script.pass("1 minute")
      assert.strictEqual(last().requests("thread/turns/list").length, 1)
      yield* flood
      yield* Script.pass("10 minutes")
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      assert.isFalse(last().isClosed())
      yield* go
      yield* say(turnCompleted(), turnCompleted({ id: "turn-2" }, "thread-2"))
      yield* Fiber.join(slow)
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("can be interrupted: codex is read for that, and goes on", () =>
    Effect.gen(function*() {
      const { flood, go, last, say, slow, thread, turn } = yield* besideSlow()
      yield* flood
      yield* thread.interrupt
      yield* Fiber.join(turn.fiber)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
      assert.deepStrictEqual(last().requests("turn/interrupt"), [{ threadId: "thread-2", turnId: "turn-2" }])
      assert.isFalse(last().isClosed())
      yield* go
      yield* say(turnCompleted())
      yield* Fiber.join(slow)
    }))
})

describe("a conversation whose turn has ended, and whose last events nobody takes", () => {
  it.effect("is not asked after: codex works on for the others", () =>
    Effect.gen(function*() {
      const { last, open, say } = yield* Script.make({ answers: { "thread/turns/list": Script.silent } })
      const gate = yield* Deferred.make<void>()
      const slow = yield* open({ quietTimeout: "1 minute" })
      const fiber = yield* start(Stream.runForEachArray(slow.stream("Hi"), () => Deferred.await(gate)))
      const turn = yield* Script.follow(yield* open({ quietTimeout: 0 }))
      yield* say(turnCompleted())
      yield* Script.pass("10 minutes")
      assert.deepStrictEqual(last().requests("thread/turns/list"), [])
      assert.isFalse(last().isClosed())
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      yield* say(turnCompleted({ id: "turn-2" }, "thread-2"))
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))
})

/**
 * Turns whose end codex does not report: found out by asking, after long quiet or when codex is idle.
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Approval from "effect-stdio/Approval"
import * as Codex from "effect-stdio/Codex"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Script from "./utils/scriptedCodex.ts"

const { delta, message, notification, turnCompleted } = Script

const LIST = "thread/turns/list"

/** A turn as codex has it on record. */
const record = (status: string, more?: object) => ({ id: "turn-1", status, items: [], error: null, ...more })

describe("a codex that says nothing for long", () => {
  it.effect("is asked how the turn stands, and how it ended is how it ends", () =>
    Effect.gen(function*() {
      const { answers, last, say, turn } = yield* Script.turn()
      answers[LIST] = Script.turns(
        { id: "turn-2", status: "inProgress" },
        record("completed", { items: [message("m", "What nobody heard")] })
      )
      yield* say(delta("m", "What"))
      yield* Script.pass("299 seconds")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* Script.pass("1 second", 1)
      assert.strictEqual(last().requests(LIST).length, 1)
      assert.strictEqual(last().requests(LIST)[0]?.["threadId"], "thread-1")
      assert.deepStrictEqual(turn.events.slice(2), [
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "cancelled", text: "What" },
        { _tag: "TurnEnd", turnId: "turn-1", status: "completed", text: "What nobody heard" }
      ])
      yield* Fiber.join(turn.fiber)
    }))

  for (
    const [status, error, expected] of [
      ["interrupted", null, { status: "interrupted" }],
      ["failed", { message: "too much", codexErrorInfo: "contextWindowExceeded" }, {
        status: "failed",
        error: { message: "too much", kind: "contextWindowExceeded" }
      }]
    ] as const
  ) {
    it.effect(`may have ended the turn otherwise: ${status}`, () =>
      Effect.gen(function*() {
        const { answers, turn } = yield* Script.turn()
        answers[LIST] = Script.turns(record(status, { error }))
        yield* Script.pass("5 minutes")
        assert.deepStrictEqual(Script.endOf(turn), { _tag: "TurnEnd", turnId: "turn-1", text: "", ...expected })
      }))
  }

  it.effect("may still be at work: then it is asked again after as long, and the user is told", () =>
    Effect.gen(function*() {
      const { answers, last, say, turn } = yield* Script.turn()
      answers[LIST] = Script.turns(record("inProgress"))
      yield* Script.pass("5 minutes")
      assert.strictEqual(last().requests(LIST).length, 1)
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "Warning"])
      yield* Script.pass("299 seconds")
      assert.strictEqual(last().requests(LIST).length, 1)
      yield* Script.pass("1 second", 1)
      assert.strictEqual(last().requests(LIST).length, 2)
      // and it ends as always
      yield* say(delta("m", "At last"), turnCompleted())
      assert.deepInclude(Script.endOf(turn), { status: "completed", text: "At last" })
    }))

  it.effect("is given up when it does not answer either: its process is ended, and the turn fails", () =>
    Effect.gen(function*() {
      const { answers, generations, last, say, thread, turn } = yield* Script.turn()
      answers[LIST] = Script.silent
      yield* Script.pass("5 minutes")
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      yield* Script.pass("30 seconds")
      assert.deepInclude(Script.endOf(turn), { status: "failed" })
      assert.deepStrictEqual(Script.endOf(turn).error, {
        message: "nothing was heard for 5m, and codex does not answer",
        kind: "noAnswer"
      })
      assert.isTrue(last().isClosed())
      // the conversation goes on with another one
      const next = yield* Script.follow(thread)
      assert.strictEqual(generations.length, 2)
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("is alive when it refuses to say how the turn stands: older versions have no such request", () =>
    Effect.gen(function*() {
      const { answers, last, say, turn } = yield* Script.turn()
      answers[LIST] = Script.refuse(-32600, "Invalid request: unknown variant `thread/turns/list`")
      yield* Script.pass("20 minutes", 60)
      assert.isFalse(last().isClosed())
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("is not asked while it says something", () =>
    Effect.gen(function*() {
      const { last, say } = yield* Script.turn()
      for (let times = 0; times < 5; times++) {
        yield* Script.pass("4 minutes")
        yield* say(delta("m", "still here"))
      }
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* say(turnCompleted())
    }))

  it.effect("is asked although it speaks to another conversation", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      answers[LIST] = Script.turns(record("completed"))
      const first = yield* Script.follow(yield* open())
      yield* Script.follow(yield* open())
      yield* Script.pass("4 minutes")
      yield* say(delta("m", "busy", { threadId: "thread-2", turnId: "turn-2" }))
      yield* Script.pass("1 minute")
      assert.strictEqual(last().requests(LIST).length, 1)
      assert.strictEqual(Script.endOf(first).status, "completed")
      yield* say(turnCompleted({ id: "turn-2" }, "thread-2"))
    }))

  it.effect("is not asked while it waits for an answer of ours, and the time begins anew with that", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<Approval.Decision>()
      const { answers, last, say, turn } = yield* Script.turn({
        approvals: { command: () => Deferred.await(gate) },
        approvalTimeout: 0
      })
      answers[LIST] = Script.turns(record("completed"))
      yield* say({ ...notification("item/commandExecution/requestApproval", { itemId: "c", command: "ls" }), id: 0 })
      yield* Script.pass("1 hour")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* Deferred.succeed(gate, "accept")
      yield* Script.settled
      yield* Script.pass("299 seconds")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* Script.pass("1 second", 1)
      assert.strictEqual(last().requests(LIST).length, 1)
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("is not asked while a tool of ours is at work", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<string>()
      const Slow = Tool.make("slow", { description: "Takes its time", success: Schema.String })
      const toolkit = Toolkit.make(Slow)
      const tools = yield* Effect.provide(
        Codex.fromToolkit(toolkit),
        toolkit.toLayer({ slow: () => Deferred.await(gate) })
      )
      const { last, say } = yield* Script.turn({ tools })
      yield* say({ ...notification("item/tool/call", { callId: "t", tool: "slow", arguments: {} }), id: 0 })
      yield* Script.pass("1 hour")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* Deferred.succeed(gate, "done")
      yield* Script.settled
      assert.strictEqual(last().answers(0).length, 1)
      yield* Script.pass("5 minutes")
      assert.strictEqual(last().requests(LIST).length, 1)
      yield* say(turnCompleted())
    }))

  it.effect("is never asked when that is asked for", () =>
    Effect.gen(function*() {
      for (const quietTimeout of [0, "Infinity"] as const) {
        yield* Effect.scoped(Effect.gen(function*() {
          const { last, say, turn } = yield* Script.turn({ thread: { quietTimeout } })
          yield* Script.pass("10 days")
          assert.deepStrictEqual(last().requests(LIST), [])
          yield* say(turnCompleted())
          assert.strictEqual(Script.endOf(turn).status, "completed")
        }))
      }
    }))

  it.effect("is asked after the time that is asked for", () =>
    Effect.gen(function*() {
      const { answers, last, turn } = yield* Script.turn({ thread: { quietTimeout: "10 seconds" } })
      answers[LIST] = Script.turns(record("completed"))
      yield* Script.pass("9999 millis")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* Script.pass("1 millis", 1)
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("is not asked after the end", () =>
    Effect.gen(function*() {
      const { last, say } = yield* Script.turn()
      yield* say(turnCompleted())
      yield* Script.pass("1 hour")
      assert.deepStrictEqual(last().requests(LIST), [])
    }))

  it.effect("may say how the turn ended before it answers", () =>
    Effect.gen(function*() {
      const { answers, turn } = yield* Script.turn()
      answers[LIST] = (request, { reply, say }) => {
        say(turnCompleted({ status: "interrupted" }))
        reply(request, { data: [record("completed")] })
      }
      yield* Script.pass("5 minutes")
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))
})

describe("a codex that is idle and has not said how the turn ended", () => {
  it.effect("is asked after one second", () =>
    Effect.gen(function*() {
      const { answers, last, say, turn } = yield* Script.turn()
      answers[LIST] = Script.turns(record("completed", { items: [message("m", "Done")] }))
      yield* say(Script.status("idle"))
      yield* Script.pass("999 millis")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* Script.pass("1 millis", 1)
      assert.deepInclude(Script.endOf(turn), { status: "completed", text: "Done" })
      assert.isFalse(last().isClosed())
    }))

  it.effect("is not asked when it says so within that second", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn()
      yield* say(Script.status("idle"))
      yield* Script.pass("500 millis")
      yield* say(turnCompleted())
      yield* Script.pass("10 seconds")
      assert.deepStrictEqual(last().requests(LIST), [])
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  for (
    const [name, answer] of [
      ["has no such turn on record", Script.turns({ id: "turn-0", status: "completed" })],
      ["does not say", Script.refuse(-32600, "no")],
      ["does not answer", Script.silent]
    ] as const
  ) {
    it.effect(`has lost the turn when it ${name}`, () =>
      Effect.gen(function*() {
        const { answers, say, thread, turn } = yield* Script.turn()
        answers[LIST] = answer
        yield* say(Script.status("idle"))
        yield* Script.pass("2 minutes", 240)
        assert.deepStrictEqual(Script.endOf(turn).error, {
          message: "codex is idle and has not said how the turn ended",
          kind: "lost"
        })
        // the conversation is not
        const next = yield* Script.follow(thread)
        yield* say(turnCompleted({ id: "turn-2" }))
        assert.strictEqual(Script.endOf(next).status, "completed")
      }))
  }

  it.effect("may have been so before the turn: it goes on", () =>
    Effect.gen(function*() {
      const { answers, say, turn } = yield* Script.turn()
      answers[LIST] = Script.turns(record("inProgress"))
      // of the turn before, and late
      yield* say(Script.status("idle"), Script.status("active"))
      yield* Script.pass("1 minute", 60)
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      yield* say(Script.status("idle"), turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("is asked again at the next time that it is idle", () =>
    Effect.gen(function*() {
      const { answers, say, turn } = yield* Script.turn()
      answers[LIST] = Script.turns(record("inProgress"))
      yield* say(Script.status("idle"))
      yield* Script.pass("5 seconds")
      answers[LIST] = Script.turns(record("completed"))
      yield* say(Script.status("idle"))
      yield* Script.pass("1 second")
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("is found out although what it said of the end could not be read", () =>
    Effect.gen(function*() {
      const { answers, say, turn } = yield* Script.turn()
      answers[LIST] = Script.turns(record("completed"))
      yield* say(notification("turn/completed", { turn: { id: "turn-1", state: "done" } }), Script.status("idle"))
      yield* Script.pass("1 second")
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("in another conversation is none of this one's concern", () =>
    Effect.gen(function*() {
      const { last, say } = yield* Script.turn()
      yield* say(Script.status("idle", "thread-9"))
      yield* Script.pass("10 seconds")
      assert.deepStrictEqual(last().requests(LIST), [])
      yield* say(turnCompleted())
    }))
})

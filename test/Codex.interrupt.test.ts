/**
 * Turns that are not wanted any more: interrupted, left, closed; and a codex that does not listen.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Codex from "effect-stdio/Codex"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Script from "./utils/scriptedCodex.ts"

const { delta, turnCompleted } = Script

const start = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.tap(Effect.forkChild(effect, { startImmediately: true }), () => Script.settled)

const INTERRUPT = { threadId: "thread-1", turnId: "turn-1" }

/** Answers the interruption, and does not end the turn. */
const polite: Script.Answer = (request, { reply }) => reply(request, {})

describe("an interruption", () => {
  it.effect("in the midst of a turn returns when the turn has ended", () =>
    Effect.gen(function*() {
      const { answers, last, say, thread, turn } = yield* Script.turn()
      answers["turn/interrupt"] = polite
      yield* say(delta("m", "Hel"))
      const interruption = yield* start(thread.interrupt)
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      assert.isUndefined(interruption.pollUnsafe())
      yield* say(turnCompleted({ status: "interrupted" }))
      yield* Fiber.join(interruption)
      assert.deepInclude(Script.endOf(turn), { status: "interrupted", text: "Hel" })
    }))

  it.effect("before codex has said that the turn has started is remembered until then", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      answers["turn/start"] = (request, { reply }) => reply(request, { turn: { id: "turn-1" } })
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      assert.deepStrictEqual(last().requests("turn/interrupt"), [])
      yield* say(Script.turnStarted())
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      yield* Fiber.join(interruption)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("before codex has answered the request for the turn is remembered, too", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      answers["turn/start"] = Script.silent
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      const request = last().received.find(({ method }) => method === "turn/start")
      yield* say({ id: request?.id ?? "", result: { turn: { id: "turn-1" } } })
      assert.deepStrictEqual(last().requests("turn/interrupt"), [])
      yield* say(Script.turnStarted())
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      yield* Fiber.join(interruption)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("before codex is there is remembered, too", () =>
    Effect.gen(function*() {
      const { answers, crash, generations, last, open, say } = yield* Script.make()
      const thread = yield* open()
      yield* crash()
      const initialize = answers["initialize"] ?? Script.silent
      answers["initialize"] = Script.silent
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      const generation = generations[1] ?? assert.fail("codex was not started again")
      const request = generation.received.find(({ method }) => method === "initialize")
      if (request === undefined) return assert.fail("no handshake")
      initialize({ id: 1, method: "initialize", params: {}, ...request }, generation)
      yield* Script.settled
      yield* say(Script.turnStarted("turn-1", "thread-2"))
      yield* Script.settled
      assert.strictEqual(last().requests("turn/start").length, 1)
      assert.deepStrictEqual(last().requests("turn/interrupt"), [{ threadId: "thread-2", turnId: "turn-1" }])
      yield* Fiber.join(interruption)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("of no turn does nothing, before the first and after the end", () =>
    Effect.gen(function*() {
      const { last, open, say } = yield* Script.make()
      const thread = yield* open()
      yield* thread.interrupt
      const turn = yield* Script.follow(thread)
      yield* say(turnCompleted())
      yield* thread.interrupt
      assert.deepStrictEqual(last().requests("turn/interrupt"), [])
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("by two ends the turn once, and both return", () =>
    Effect.gen(function*() {
      const { answers, say, thread, turn } = yield* Script.turn()
      answers["turn/interrupt"] = polite
      const first = yield* start(thread.interrupt)
      const second = yield* start(thread.interrupt)
      yield* say(turnCompleted({ status: "interrupted" }))
      yield* Fiber.joinAll([first, second])
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("goes on when the caller does not wait for it", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      answers["turn/start"] = (request, { reply }) => reply(request, { turn: { id: "turn-1" } })
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      yield* Fiber.interrupt(interruption)
      yield* say(Script.turnStarted())
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("is late when the turn has just completed, which it then is", () =>
    Effect.gen(function*() {
      const { answers, thread, turn } = yield* Script.turn()
      answers["turn/interrupt"] = ({ id }, { say }) =>
        say(turnCompleted(), { id, error: { code: -32600, message: "no active turn to interrupt" } })
      yield* thread.interrupt
      yield* Fiber.join(turn.fiber)
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("of a codex that does not end the turn ends codex", () =>
    Effect.gen(function*() {
      for (const answer of [polite, Script.silent, Script.refuse(-32600, "no active turn to interrupt")]) {
        yield* Effect.scoped(Effect.gen(function*() {
          const { answers, generations, last, thread, turn } = yield* Script.turn()
          answers["turn/interrupt"] = answer
          const interruption = yield* start(thread.interrupt)
          yield* Script.pass("4999 millis")
          assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
          yield* Script.pass("1 millis", 1)
          yield* Fiber.join(interruption)
          assert.deepStrictEqual(Script.endOf(turn), {
            _tag: "TurnEnd",
            turnId: "turn-1",
            status: "interrupted",
            text: ""
          })
          assert.isTrue(last().isClosed())
          // the next one goes to another codex
          const next = yield* Script.follow(thread)
          assert.strictEqual(generations.length, 2)
          assert.deepStrictEqual(last().requests("thread/resume"), [{ threadId: "thread-1", excludeTurns: true }])
          yield* Effect.sync(() => last().say(turnCompleted({ id: "turn-2" })))
          yield* Script.settled
          assert.strictEqual(Script.endOf(next).status, "completed")
        }))
      }
    }))

  it.effect("waits as long for the end as is asked for", () =>
    Effect.gen(function*() {
      const { answers, last, thread, turn } = yield* Script.turn({ thread: { interruptTimeout: "1 minute" } })
      answers["turn/interrupt"] = polite
      yield* start(thread.interrupt)
      yield* Script.pass("59 seconds")
      assert.isFalse(last().isClosed())
      yield* Script.pass("1 second", 1)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("of a turn that never starts ends codex, too", () =>
    Effect.gen(function*() {
      const { answers, last, open } = yield* Script.make()
      answers["turn/start"] = (request, { reply }) => reply(request, { turn: { id: "turn-1" } })
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      yield* start(thread.interrupt)
      yield* Script.pass("5 seconds")
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
      assert.isTrue(last().isClosed())
    }))

  it.effect("of a turn that codex refuses returns at once, and is none of the next turn", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      const begin = answers["turn/start"] ?? Script.silent
      answers["turn/start"] = Script.silent
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      const request = last().received.find(({ method }) => method === "turn/start")
      yield* say({ id: request?.id ?? "", error: { code: -32600, message: "no such model" } })
      yield* Fiber.join(interruption)
      assert.strictEqual((yield* Effect.flip(Fiber.join(turn.fiber))).reason._tag, "Refused")
      answers["turn/start"] = begin
      const next = yield* Script.follow(thread)
      yield* Script.pass("1 minute")
      assert.deepStrictEqual(Script.tags(next), ["TurnStarted"])
      assert.deepStrictEqual(last().requests("turn/interrupt"), [])
      assert.isFalse(last().isClosed())
      // there is still only one at a time
      assert.strictEqual((yield* Effect.flip(thread.send("More"))).reason._tag, "TurnInProgress")
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("of a turn for which codex does not start returns at once, and is none of the next turn", () =>
    Effect.gen(function*() {
      const { answers, crash, generations, last, open, say } = yield* Script.make()
      const thread = yield* open()
      yield* crash()
      const initialize = answers["initialize"] ?? Script.silent
      answers["initialize"] = Script.silent
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      yield* crash()
      yield* Fiber.join(interruption)
      assert.strictEqual((yield* Effect.flip(Fiber.join(turn.fiber))).reason._tag, "NotStarted")
      answers["initialize"] = initialize
      const next = yield* Script.follow(thread)
      yield* Script.pass("1 minute")
      assert.deepStrictEqual(Script.tags(next), ["TurnStarted"])
      assert.strictEqual((yield* Effect.flip(thread.send("More"))).reason._tag, "TurnInProgress")
      assert.strictEqual(generations.length, 3)
      assert.isFalse(last().isClosed())
      yield* say(turnCompleted({}, "thread-2"))
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("that is cut off while codex still starts ends the turn, and the next one may follow", () =>
    Effect.gen(function*() {
      const { answers, crash, generations, open } = yield* Script.make()
      const thread = yield* open()
      yield* crash()
      answers["initialize"] = Script.silent
      const turn = yield* Script.follow(thread)
      const interruption = yield* start(thread.interrupt)
      yield* Script.pass("5 seconds")
      yield* Fiber.join(interruption)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
      yield* Fiber.join(turn.fiber)
      const next = yield* Script.follow(thread)
      assert.isUndefined(next.fiber.pollUnsafe())
      // nobody waits for the first start any longer
      assert.isTrue(generations[1]?.isClosed())
      yield* crash()
    }))

  it.effect("of a codex that does not listen fails the turns of its other conversations", () =>
    Effect.gen(function*() {
      const { answers, open } = yield* Script.make()
      const first = yield* open()
      const one = yield* Script.follow(first)
      const two = yield* Script.follow(yield* open())
      answers["turn/interrupt"] = polite
      yield* start(first.interrupt)
      yield* Script.pass("5 seconds")
      assert.strictEqual(Script.endOf(one).status, "interrupted")
      assert.deepInclude(Script.endOf(two), { status: "failed" })
      assert.strictEqual(Script.endOf(two).error?.kind, "noAnswer")
    }))
})

describe("a turn that nobody follows any longer", () => {
  it.effect("is interrupted when its stream ends early", () =>
    Effect.gen(function*() {
      const { last, open } = yield* Script.make()
      const thread = yield* open()
      const events = yield* Stream.runCollect(Stream.take(thread.stream("Hi"), 1))
      assert.deepStrictEqual(events, [{ _tag: "TurnStarted", turnId: "turn-1" }])
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      // it is over: the next one may begin
      yield* Stream.runDrain(Stream.take(thread.stream("Hi"), 1))
      assert.strictEqual(last().requests("turn/start").length, 2)
    }))

  it.effect("is interrupted when who follows it fails", () =>
    Effect.gen(function*() {
      const { last, open } = yield* Script.make()
      const thread = yield* open()
      const exit = yield* Effect.exit(Stream.runForEach(thread.stream("Hi"), () => Effect.fail("the disk is full")))
      assert.deepStrictEqual(exit, Exit.fail("the disk is full"))
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
    }))

  it.effect("is interrupted when the caller of send is, who waits for the end of it", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      answers["turn/interrupt"] = polite
      const thread = yield* open()
      const sending = yield* start(thread.send("Hi"))
      const leaving = yield* start(Fiber.interrupt(sending))
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      assert.isUndefined(leaving.pollUnsafe())
      yield* say(turnCompleted({ status: "interrupted" }))
      yield* Fiber.join(leaving)
    }))

  it.effect("is interrupted when the caller leaves before codex has answered the request for it", () =>
    Effect.gen(function*() {
      const { answers, last, open, say } = yield* Script.make()
      answers["turn/start"] = Script.silent
      const thread = yield* open()
      const sending = yield* start(thread.send("Hi"))
      const leaving = yield* start(Fiber.interrupt(sending))
      const request = last().received.find(({ method }) => method === "turn/start")
      yield* say({ id: request?.id ?? "", result: { turn: { id: "turn-1" } } }, Script.turnStarted())
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      yield* Fiber.join(leaving)
      // and the conversation is free
      answers["turn/start"] = (request, { reply }) => reply(request, { turn: { id: "turn-2" } })
      const turn = yield* Script.follow(thread)
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(turn).turnId, "turn-2")
    }))

  it.effect("is not interrupted when it has ended, although its last events were not taken", () =>
    Effect.gen(function*() {
      const { answers, last, open } = yield* Script.make()
      const thread = yield* open()
      const begin = answers["turn/start"] ?? Script.silent
      answers["turn/start"] = (request, generation) => {
        begin(request, generation)
        generation.say(delta("m", "Hello"), turnCompleted())
      }
      yield* Stream.runDrain(Stream.take(Stream.tap(thread.stream("Hi"), () => Script.settled), 1))
      assert.deepStrictEqual(last().requests("turn/interrupt"), [])
    }))
})

describe("a conversation that is closed", () => {
  it.effect("ends its turn as interrupted, and begins no other one", () =>
    Effect.gen(function*() {
      const { last, thread, turn } = yield* Script.turn()
      yield* thread.close
      yield* thread.close
      yield* Fiber.join(turn.fiber)
      assert.deepStrictEqual(last().requests("turn/interrupt"), [INTERRUPT])
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
      assert.strictEqual((yield* Effect.flip(thread.send("More"))).reason._tag, "Closed")
      assert.strictEqual((yield* Effect.flip(thread.steer("More"))).reason._tag, "NoTurn")
      assert.strictEqual(last().requests("turn/start").length, 1)
    }))

  it.effect("is forgotten by codex when its scope closes, and the others go on", () =>
    Effect.gen(function*() {
      const { codex, last, open, say } = yield* Script.make()
      const scope = yield* Scope.make()
      const first = yield* Script.follow(yield* Scope.provide(codex.thread(), scope))
      const second = yield* Script.follow(yield* open())
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(Script.endOf(first).status, "interrupted")
      assert.deepStrictEqual(last().requests("thread/unsubscribe"), [{ threadId: "thread-1" }])
      assert.isFalse(last().isClosed())
      yield* say(delta("m", "on", { threadId: "thread-2", turnId: "turn-2" }))
      yield* say(turnCompleted({ id: "turn-2" }, "thread-2"))
      assert.deepInclude(Script.endOf(second), { status: "completed", text: "on" })
    }))

  it.effect("does not wait for ever for a codex that does not forget it", () =>
    Effect.gen(function*() {
      const { answers, codex } = yield* Script.make()
      answers["thread/unsubscribe"] = Script.silent
      const scope = yield* Scope.make()
      yield* Scope.provide(codex.thread(), scope)
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* Script.pass("1 second")
      yield* Fiber.join(closing)
    }))
})

describe("a codex whose scope is closed", () => {
  it.effect("interrupts the turn first, then ends", () =>
    Effect.gen(function*() {
      const script = yield* Script.make()
      const scope = yield* Scope.make()
      // as in a program that has all of it in one scope
      const codex = yield* Scope.provide(Codex.make({ connect: script.connect }), scope)
      const turn = yield* Script.follow(yield* Scope.provide(codex.thread(), scope))
      let wasClosed: boolean | undefined
      const interrupt = script.answers["turn/interrupt"] ?? Script.silent
      script.answers["turn/interrupt"] = (request, generation) => {
        wasClosed = generation.isClosed()
        interrupt(request, generation)
      }
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(wasClosed)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
      assert.isTrue(script.last().isClosed())
      yield* Fiber.join(turn.fiber)
    }))

  it.effect("gives the turns of conversations that live longer one second", () =>
    Effect.gen(function*() {
      const script = yield* Script.make()
      script.answers["turn/interrupt"] = polite
      const scope = yield* Scope.make()
      const codex = yield* Scope.provide(Codex.make({ connect: script.connect }), scope)
      const thread = yield* codex.thread()
      const turn = yield* Script.follow(thread)
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* Script.pass("999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* Script.pass("1 millis", 1)
      yield* Fiber.join(closing)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
      assert.isTrue(script.last().isClosed())
    }))

  it.effect("is not started again by a conversation that lives longer, nor by anything else", () =>
    Effect.gen(function*() {
      const script = yield* Script.make()
      const scope = yield* Scope.make()
      const codex = yield* Scope.provide(Codex.make({ connect: script.connect }), scope)
      const thread = yield* codex.thread()
      yield* Scope.close(scope, Exit.void)
      const attempts = [thread.send("Hi"), Effect.asVoid(Effect.scoped(codex.thread())), codex.version, codex.peer]
      for (const attempt of attempts) {
        const result = yield* Effect.forkChild(Effect.flip(Effect.asVoid(attempt)), { startImmediately: true })
        yield* Script.settled
        assert.strictEqual(script.generations.length, 1)
        assert.strictEqual((yield* Fiber.join(result)).reason._tag, "Closed")
      }
    }))

  it.effect("while it is being started does not leave it running", () =>
    Effect.gen(function*() {
      const script = yield* Script.make({ answers: { initialize: Script.silent } })
      const scope = yield* Scope.make()
      const codex = yield* Scope.provide(Codex.make({ connect: script.connect }), scope)
      // by somebody who lives longer
      const version = yield* start(Effect.exit(codex.version))
      assert.strictEqual(script.generations.length, 1)
      const closing = yield* start(Scope.close(scope, Exit.void))
      const request = script.last().received.find(({ method }) => method === "initialize")
      yield* script.say({ id: request?.id ?? "", result: { userAgent: "codex/0.171.0" } })
      yield* Script.pass("1 minute")
      yield* Fiber.join(closing)
      yield* Fiber.join(version)
      assert.isTrue(script.last().isClosed())
    }))

  it.effect("while it is being ended, since it did not listen, waits for that", () =>
    Effect.gen(function*() {
      const script = yield* Script.make({ answers: { "turn/interrupt": Script.silent } })
      const scope = yield* Scope.make()
      let isGone = false
      const connect = Effect.andThen(
        Effect.addFinalizer(() =>
          Effect.andThen(
            Effect.sleep("2 seconds"),
            Effect.sync(() => {
              isGone = true
            })
          )
        ),
        script.connect
      )
      const codex = yield* Scope.provide(Codex.make({ connect }), scope)
      const thread = yield* Scope.provide(codex.thread(), scope)
      const turn = yield* Script.follow(thread)
      yield* start(thread.interrupt)
      yield* Script.pass("5 seconds")
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* Script.pass("1999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* Script.pass("1 millis", 1)
      yield* Fiber.join(closing)
      assert.isTrue(isGone)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("that was never needed was never started", () =>
    Effect.gen(function*() {
      const script = yield* Script.make()
      yield* Effect.scoped(Codex.make({ connect: script.connect }))
      assert.strictEqual(script.generations.length, 0)
    }))
})

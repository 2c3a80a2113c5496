/**
 * Events that are not taken as fast as they come.
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Agent from "effect-stdio/Agent"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { makeAgentEvents } from "../src/internal/adapters/agentEvents.ts"
import * as Script from "./utils/scriptedCodex.ts"

const { delta, message, notification, started, turnCompleted } = Script

type Events = ReadonlyArray<Agent.AgentEvent>

const textOf = (events: Events, itemId: string) =>
  events.map((event) => event._tag === "TextDelta" && event.itemId === itemId ? event.text : "").join("")

const words = (count: number) => Array.from({ length: count }, (_, index) => `${index} `)

/** A turn that nobody follows beyond its first event until the gate is opened. */
const behind = Effect.fnUntraced(function*(options?: Agent.StreamOptions) {
  const gate = yield* Deferred.make<void>()
  const script = yield* Script.make()
  const thread = yield* script.open()
  const events: Array<Agent.AgentEvent> = []
  const fiber = yield* Stream.runForEachArray(thread.stream("Hi", options), (chunk) =>
    Effect.sync(() => {
      events.push(...chunk)
    }).pipe(Effect.andThen(Deferred.await(gate)))).pipe(Effect.forkChild({ startImmediately: true }))
  yield* Script.settled
  assert.deepStrictEqual(Script.tags({ events, fiber }), ["TurnStarted"])
  return { ...script, thread, turn: { events, fiber }, go: Deferred.succeed(gate, undefined) }
})

describe("events that nobody takes", () => {
  it.effect("are joined where they are pieces of one text: nothing is lost, and few wait", () =>
    Effect.gen(function*() {
      const { go, say, turn } = yield* behind()
      const all = words(20_000)
      yield* say(started(message("m", "")), ...all.slice(0, 10_000).map((word) => delta("m", word)))
      yield* say(
        started({ type: "commandExecution", id: "c", command: "ls", cwd: "/p" }),
        ...all.slice(10_000).map((word) => delta("m", word)),
        Script.completed(message("m", all.join(""))),
        turnCompleted()
      )
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.strictEqual(textOf(turn.events, "m"), all.join(""))
      assert.isBelow(turn.events.length, 1_100)
      // and what happened in between is where it was
      const at = turn.events.findIndex(({ _tag }) => _tag === "ToolStart")
      assert.strictEqual(textOf(turn.events.slice(0, at), "m"), all.slice(0, 10_000).join(""))
      assert.strictEqual(Script.endOf(turn).text, all.join(""))
    }))

  it.effect("are joined for each text by itself, and each kind of it", () =>
    Effect.gen(function*() {
      const { go, say, turn } = yield* behind()
      const all = words(5_000)
      yield* say(...all.flatMap((word) => [
        delta("a", word),
        delta("b", word),
        notification("item/plan/delta", { itemId: "p", delta: word }),
        notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: word, summaryIndex: 0 }),
        notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: word, summaryIndex: 1 }),
        notification("item/reasoning/textDelta", { itemId: "r", delta: word, contentIndex: 0 }),
        notification("item/commandExecution/outputDelta", { itemId: "c", delta: word })
      ]))
      yield* say(turnCompleted())
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.isBelow(turn.events.length, 1_100)
      const texts = new Map<string, string>()
      for (const event of turn.events) {
        if (!("text" in event) || event._tag === "TextEnd" || event._tag === "TurnEnd") continue
        const key = event._tag === "ReasoningDelta"
          ? `${event.kind} ${event.part}`
          : `${event._tag} ${event.itemId}`
        texts.set(key, (texts.get(key) ?? "") + event.text)
      }
      assert.deepStrictEqual([...texts.keys()].toSorted(), [
        "PlanDelta p",
        "TextDelta a",
        "TextDelta b",
        "ToolOutput c",
        "raw 0",
        "summary 0",
        "summary 1"
      ])
      for (const text of texts.values()) assert.strictEqual(text, all.join(""))
    }))

  it.effect("are joined although the texts of many items come by turns", () =>
    Effect.gen(function*() {
      const { go, say, turn } = yield* behind()
      const all = words(1_000)
      const items = Array.from({ length: 50 }, (_, index) => `c${index}`)
      yield* say(
        ...all.flatMap((delta) =>
          items.map((itemId) => notification("item/commandExecution/outputDelta", { itemId, delta }))
        ),
        turnCompleted()
      )
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.isBelow(turn.events.length, 1_100)
      const outputs = Script.only(turn, "ToolOutput")
      for (const item of items) {
        const text = outputs.map(({ itemId, text }) => itemId === item ? text : "").join("")
        assert.strictEqual(text, all.join(""))
      }
    }))

  it.effect("are never joined across a Reset", () =>
    Effect.gen(function*() {
      const { go, say, turn } = yield* behind()
      const all = words(3_000)
      yield* say(started(message("m", "")), ...all.map((word) => delta("m", word)))
      yield* say(started(message("m", "")), ...all.map((word) => delta("m", word)), turnCompleted())
      yield* go
      yield* Fiber.join(turn.fiber)
      const at = turn.events.findIndex(({ _tag }) => _tag === "Reset")
      assert.strictEqual(textOf(turn.events.slice(0, at), "m"), all.join(""))
      assert.strictEqual(textOf(turn.events.slice(at), "m"), all.join(""))
    }))

  it.effect("are all kept where they are no texts", () =>
    Effect.gen(function*() {
      const { go, say, turn } = yield* behind()
      const count = 3_000
      yield* say(...Array.from({ length: count }, (_, index) => notification("warning", { message: `${index}` })))
      yield* say(turnCompleted())
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.deepStrictEqual(
        Script.only(turn, "Warning").map(({ message }) => message),
        Array.from({ length: count }, (_, index) => `${index}`)
      )
    }))

  it.effect("are as they came while few wait", () =>
    Effect.gen(function*() {
      const { go, say, turn } = yield* behind()
      const all = words(500)
      yield* say(...all.map((word) => delta("m", word)), turnCompleted())
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.deepStrictEqual(Script.only(turn, "TextDelta").map(({ text }) => text), all)
    }))

  it.effect("do not hold up an answer, another conversation, or an interruption", () =>
    Effect.gen(function*() {
      const { codex, go, open, say, thread, turn } = yield* behind()
      yield* say(...words(5_000).map((word) => delta("m", word)))
      yield* codex.reloadMcpServers
      const other = yield* Script.follow(yield* open())
      yield* say(turnCompleted({ id: "turn-2" }, "thread-2"))
      assert.strictEqual(Script.endOf(other).status, "completed")
      yield* thread.interrupt
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("that wait are bounded in number, whatever the number of deltas", () =>
    Effect.sync(() => {
      const events = makeAgentEvents()
      for (const text of words(200_000)) events.push({ _tag: "TextDelta", itemId: "m", text })
      assert.isAtMost(events.size(), 1_024)
    }))

  it.effect("are dropped after the end", () =>
    Effect.gen(function*() {
      const events = makeAgentEvents()
      events.push({ _tag: "TurnStarted", turnId: "t" })
      events.end()
      events.push({ _tag: "TextDelta", itemId: "m", text: "late" })
      assert.deepStrictEqual(yield* Stream.runCollect(events.stream), [{ _tag: "TurnStarted", turnId: "t" }])
    }))
})

describe("a codex that is held back while its events are not taken", () => {
  /** Says so much in many chunks, as a pipe would bring it, and returns how much of it was read. */
  const COUNT = 10_000

  it.effect("is not read any longer, and goes on when they are", () =>
    Effect.gen(function*() {
      const { codex, go, last, turn } = yield* behind({ whenSlow: "suspend" })
      const all = words(COUNT)
      for (const word of all) last().say(delta("m", word))
      last().say(turnCompleted())
      yield* Script.settled
      const stats = Effect.flatMap(codex.peer, (peer) => peer.stats)
      const { messages } = yield* stats
      assert.isBelow(messages, 4_000)
      // and it stays so
      yield* Script.pass("1 minute")
      assert.strictEqual((yield* stats).messages, messages)
      yield* go
      yield* Fiber.join(turn.fiber)
      // each as it came
      assert.deepStrictEqual(Script.only(turn, "TextDelta").map(({ text }) => text), all)
      assert.deepInclude(Script.endOf(turn), { status: "completed", text: all.join("") })
    }))

  it.effect("is read again when the turn is interrupted", () =>
    Effect.gen(function*() {
      const { go, last, thread, turn } = yield* behind({ whenSlow: "suspend" })
      for (const word of words(COUNT)) last().say(delta("m", word))
      yield* Script.settled
      yield* thread.interrupt
      assert.strictEqual(last().requests("turn/interrupt").length, 1)
      assert.isFalse(last().isClosed())
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.deepInclude(Script.endOf(turn), { status: "interrupted", text: words(COUNT).join("") })
    }))

  it.effect("is read again when the stream is left", () =>
    Effect.gen(function*() {
      const { last, turn } = yield* behind({ whenSlow: "suspend" })
      for (const word of words(COUNT)) last().say(delta("m", word))
      yield* Script.settled
      yield* Fiber.interrupt(turn.fiber)
      assert.strictEqual(last().requests("turn/interrupt").length, 1)
      assert.isFalse(last().isClosed())
    }))

  it.effect("is read again when the conversation is closed", () =>
    Effect.gen(function*() {
      const { go, last, thread, turn } = yield* behind({ whenSlow: "suspend" })
      for (const word of words(COUNT)) last().say(delta("m", word))
      yield* Script.settled
      yield* thread.close
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.strictEqual(Script.endOf(turn).status, "interrupted")
    }))

  it.effect("is not asked how the turn stands: it is us that are slow", () =>
    Effect.gen(function*() {
      const { go, last, turn } = yield* behind({ whenSlow: "suspend" })
      for (const word of words(COUNT)) last().say(delta("m", word))
      last().say(turnCompleted())
      yield* Script.pass("1 hour")
      assert.deepStrictEqual(last().requests("thread/turns/list"), [])
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("that ends meanwhile fails the turn, and nothing of what it had said is lost", () =>
    Effect.gen(function*() {
      const { crash, go, last, turn } = yield* behind({ whenSlow: "suspend" })
      const all = words(COUNT)
      for (const word of all) last().say(delta("m", word))
      yield* crash()
      yield* go
      yield* Fiber.join(turn.fiber)
      assert.deepInclude(Script.endOf(turn), { status: "failed", text: all.join("") })
    }))

  it.effect("is read as always in the next turn, which does not ask for that", () =>
    Effect.gen(function*() {
      const { go, last, say, thread, turn } = yield* behind({ whenSlow: "suspend" })
      yield* say(turnCompleted())
      yield* go
      yield* Fiber.join(turn.fiber)
      const gate = yield* Deferred.make<void>()
      const next = yield* Effect.forkChild(
        Stream.runForEachArray(thread.stream("Hi"), () => Deferred.await(gate)),
        { startImmediately: true }
      )
      yield* Script.settled
      for (const word of words(COUNT)) last().say(delta("m", word, { turnId: "turn-2" }))
      yield* say(turnCompleted({ id: "turn-2" }))
      // the end was read although nobody has taken what came before it
      assert.strictEqual((yield* Effect.flip(thread.steer("More"))).reason._tag, "NoTurn")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(next)
    }))
})

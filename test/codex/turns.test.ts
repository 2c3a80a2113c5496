/**
 * Turns of the real Codex app server that do more than say something, or less: thoughts, plans, output, errors, retries.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Stream from "effect/Stream"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type * as Agent from "../../src/Agent.ts"
import * as Codex from "../../src/Codex.ts"
import * as Child from "../utils/child.ts"
import { endOf, only, open, planMode, run, tags, textOf } from "./agent.ts"
import * as Scenarios from "./scenarios.ts"

describe("a turn of the real codex", () => {
  it.live("tells what the model thinks, its summary apart from the thoughts", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.reasoning, { home: { showRawReasoning: true } })
      const thread = yield* codex.thread({ approvalPolicy: "never", reasoningSummary: "detailed", effort: "high" })
      const events = yield* run(thread, "Think")
      const summary = only(events, "ReasoningDelta").filter(({ kind }) => kind === "summary")
      const parts = [0, 1].map((at) => summary.filter(({ part }) => part === at).map(({ text }) => text).join(""))
      assert.deepStrictEqual(parts, ["**First** this", "**Then** that"])
      const raw = only(events, "ReasoningDelta").filter(({ kind }) => kind === "raw")
      assert.strictEqual(raw.map(({ text }) => text).join(""), "what nobody should read")
      assert.deepStrictEqual(only(events, "TextEnd").map(({ kind, status }) => ({ kind, status })), [
        { kind: "reasoning", status: "completed" },
        { kind: "text", status: "completed" }
      ])
      assert.deepInclude(endOf(events), { status: "completed", text: "Forty-two" })
    }))

  it.live("has a plan beside its message, once the conversation is put into plan mode", () =>
    Effect.gen(function*() {
      // codex calls the mode experimental, and an adapter with tools asks for what is
      const { codex } = yield* open(Scenarios.plan, { tools: yield* Codex.fromToolkit(Toolkit.empty) })
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      yield* planMode(codex, thread)
      const events = yield* run(thread, "Plan it")
      const plan = "# Plan\n- first\n- second\n"
      assert.strictEqual(only(events, "PlanDelta").map(({ text }) => text).join(""), plan)
      assert.deepInclude(only(events, "TextEnd").find(({ kind }) => kind === "plan"), {
        status: "completed",
        text: plan
      })
      assert.strictEqual(textOf(events), "Before.\nAfter.")
      assert.deepInclude(endOf(events), { status: "completed", text: "Before.\nAfter." })
    }))

  it.live("tells what a command prints while it runs", () =>
    Effect.gen(function*() {
      const { codex, folder } = yield* open(
        // what is printed before codex follows the command comes only with its end
        Scenarios.command("while [ ! -e go ]; do echo first; sleep 0.05; done; echo last")
      )
      const thread = yield* codex.thread({ approvalPolicy: "never", sandbox: "danger-full-access" })
      const printed = yield* Deferred.make<void>()
      const turn = yield* thread.stream("Run it").pipe(
        Stream.tap((event) =>
          event._tag === "ToolOutput" && event.text.includes("first")
            ? Deferred.succeed(printed, undefined)
            : Effect.void
        ),
        Stream.runCollect,
        Effect.forkChild
      )
      yield* Deferred.await(printed)
      writeFileSync(join(folder, "go"), "")
      const events = yield* Fiber.join(turn)
      const [start] = only(events, "ToolStart")
      assert.strictEqual(start?.kind, "command")
      const output = only(events, "ToolOutput")
      assert.deepStrictEqual(new Set(output.map(({ itemId }) => itemId)), new Set([start?.itemId]))
      const [end] = only(events, "ToolEnd")
      assert.strictEqual(end?.status, "completed")
      const whole = String(Predicate.hasProperty(end?.output, "output") ? end.output.output : "")
      assert.match(whole, /^(first\n)+last\n$/)
      assert.isTrue(whole.endsWith(output.map(({ text }) => text).join("")))
      assert.isAbove(end?.duration ?? 0, 0)
      assert.include(endOf(events).text, "last")
    }))

  it.live("fails the command, and not the turn, when the command fails", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.command("echo broken; exit 3"))
      const thread = yield* codex.thread({ approvalPolicy: "never", sandbox: "danger-full-access" })
      const events = yield* run(thread, "Run it")
      const [end] = only(events, "ToolEnd")
      assert.deepInclude(end, { status: "failed", output: { output: "broken\n", exitCode: 3 } })
      assert.strictEqual(endOf(events).status, "completed")
    }))
})

describe("a turn whose model fails", () => {
  const cases: ReadonlyArray<{
    readonly status: number
    readonly retries: number
    readonly error: Partial<Agent.TurnError>
  }> = [
    { status: 500, retries: 1, error: { kind: "internalServerError" } },
    { status: 429, retries: 0, error: { kind: "responseTooManyFailedAttempts", httpStatus: 429 } },
    { status: 400, retries: 0, error: { kind: "other" } }
  ]
  for (const { error, retries, status } of cases) {
    it.live(`ends as failed when the model answers ${status}, and the conversation goes on`, () =>
      Effect.gen(function*() {
        let isWell = false
        const { codex, model } = yield* open((request) =>
          (isWell ? Scenarios.hello : Scenarios.httpError(status))(request)
        )
        const thread = yield* codex.thread({ approvalPolicy: "never" })
        const events = yield* run(thread, "Hi")
        assert.strictEqual(only(events, "Retrying").length, retries)
        const end = endOf(events)
        assert.strictEqual(end.status, "failed")
        assert.deepInclude(end.error, error)
        assert.notStrictEqual(end.error?.message, "")
        if (status === 400) assert.include(end.error?.message, "refused with 400")
        const asked = model.requests.length
        isWell = true
        assert.strictEqual((yield* thread.send("Again")).status, "completed")
        // and nobody has asked for the first once more
        assert.strictEqual(model.requests.length, asked + 1)
      }))
  }

  it.live("ends as failed when there is no room left in the context", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.failed("context_length_exceeded"))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      assert.deepInclude((yield* thread.send("Hi")).error, { kind: "contextWindowExceeded" })
    }))

  it.live("begins its text anew when an answer breaks off, and ends with the right one", () =>
    Effect.gen(function*() {
      const { codex, model } = yield* open(Scenarios.cutOnce(["one ", "two ", "three"], 2))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const events = yield* run(thread, "Hi")
      const [voided] = only(events, "TextDelta")
      assert.deepStrictEqual(only(events, "Reset").map(({ itemId }) => itemId), [voided?.itemId])
      assert.deepStrictEqual(
        tags(events).slice(0, 6),
        ["TurnStarted", "TextDelta", "Retrying", "Reset", "TextDelta", "TextEnd"]
      )
      // what a consumer has that drops the text at each reset
      assert.strictEqual(textOf(events), "one two three")
      const ends = only(events, "TextEnd")
      assert.deepStrictEqual(ends.filter(({ status }) => status === "completed").map(({ text }) => text), [
        "one two three"
      ])
      // what was begun is ended once, also what has come to nothing
      const begun = new Set(only(events, "TextDelta").map(({ itemId }) => itemId))
      assert.deepStrictEqual(ends.map(({ itemId }) => itemId).toSorted(), [...begun].toSorted())
      assert.deepInclude(endOf(events), { status: "completed", text: "one two three" })
      assert.strictEqual(model.requests.length, 2)
    }))

  it.live("closes what is half said when every answer breaks off", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.cut(["half a "]))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const events = yield* run(thread, "Hi")
      assert.strictEqual(textOf(events), "half a ")
      assert.isTrue(only(events, "TextEnd").every(({ status }) => status === "cancelled"))
      assert.deepInclude(endOf(events), { status: "failed", text: "half a " })
    }))
})

describe("a turn that is followed slowly", () => {
  const COUNT = 20_000
  const TEXT = Array.from({ length: COUNT }, (_, index) => `${index} `).join("")

  /** Waits for all of it before it takes the second event. */
  const takeLate = (thread: Codex.Thread, wait: Effect.Effect<unknown>, options?: Agent.StreamOptions) => {
    let taken = 0
    return Effect.gen(function*() {
      const events: Array<Agent.AgentEvent> = []
      yield* Stream.runForEach(
        Stream.rechunk(thread.stream("Go", options), 1),
        (event) => Effect.andThen(taken++ === 1 ? wait : Effect.void, Effect.sync(() => events.push(event)))
      )
      return events
    })
  }

  it.live("has its deltas joined, and loses nothing", () =>
    Effect.gen(function*() {
      const heardAll = yield* Deferred.make<void>()
      const { codex } = yield* open(Scenarios.many(COUNT), {
        tap: {
          onMessage: ({ direction, method }) => {
            if (direction === "in" && method === "turn/completed") Deferred.doneUnsafe(heardAll, Effect.void)
          }
        }
      })
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      // codex comes to the end of the turn although nobody takes its events
      const events = yield* takeLate(thread, Deferred.await(heardAll))
      assert.strictEqual(textOf(events), TEXT)
      assert.isBelow(events.length, COUNT / 2)
      assert.strictEqual(endOf(events).text, TEXT)
    }))

  it.live("makes codex wait on request, and loses nothing", () =>
    Effect.gen(function*() {
      let heard = 0
      let isOver = false
      const { codex } = yield* open(Scenarios.many(COUNT), {
        tap: {
          onMessage: ({ direction, method }) => {
            if (direction === "in") heard++
            if (method === "turn/completed") isOver = true
          }
        }
      })
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      let before = -1
      // until nothing more has come for a while
      const quiet = Effect.suspend(() => {
        const isQuiet = heard === before
        before = heard
        return Effect.as(isQuiet ? Effect.void : Effect.sleep("1 second"), isQuiet)
      }).pipe(Effect.repeat({ until: (isQuiet) => isQuiet }))
      const checked = Effect.andThen(
        quiet,
        Effect.sync(() => {
          assert.isFalse(isOver)
          assert.isBelow(heard, COUNT / 2)
        })
      )
      const events = yield* takeLate(thread, checked, { whenSlow: "suspend" })
      assert.strictEqual(textOf(events), TEXT)
      assert.strictEqual(endOf(events).text, TEXT)
    }), 60_000)

  it.live("can be interrupted while codex waits for it", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.many(COUNT))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const isHeld = yield* Deferred.make<void>()
      const letGo = yield* Deferred.make<void>()
      const turn = yield* Effect.forkChild(takeLate(
        thread,
        Effect.andThen(Deferred.succeed(isHeld, undefined), Deferred.await(letGo)),
        { whenSlow: "suspend" }
      ))
      yield* Deferred.await(isHeld)
      yield* thread.interrupt
      yield* Deferred.succeed(letGo, undefined)
      const end = endOf(yield* Fiber.join(turn))
      assert.notStrictEqual(end.status, "failed")
      assert.isTrue(TEXT.startsWith(end.text))
    }))
})

Child.leavesNothingBehind()

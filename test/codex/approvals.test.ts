/**
 * What the real Codex app server asks its user, and what comes of the answers: also of those that never come.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type * as Approval from "../../src/Approval.ts"
import * as Codex from "../../src/Codex.ts"
import * as Child from "../utils/child.ts"
import { endOf, only, open, planMode, run, tags } from "./agent.ts"
import type * as FakeModel from "./fakeModel.ts"
import * as Scenarios from "./scenarios.ts"

const ASKING = { approvalPolicy: "untrusted", sandbox: "danger-full-access" } as const

describe("a question of the real codex", () => {
  it.live("is declined when nobody answers it in time, and the model goes on", () =>
    Effect.gen(function*() {
      const wasInterrupted = yield* Deferred.make<void>()
      const { codex, folder, model } = yield* open(Scenarios.command("touch made.txt"), {
        approvals: {
          command: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(wasInterrupted, undefined))
        },
        approvalTimeout: "300 millis"
      })
      const thread = yield* codex.thread(ASKING)
      const events = yield* run(thread, "Make a file")
      yield* Deferred.await(wasInterrupted)
      assert.deepInclude(only(events, "ApprovalSettled")[0], { decision: "decline", by: "timeout" })
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "declined")
      assert.isFalse(existsSync(join(folder, "made.txt")))
      assert.strictEqual(model.requests.length, 2)
      assert.strictEqual(endOf(events).status, "completed")
    }))

  it.live("is declined when nobody is there to answer it", () =>
    Effect.gen(function*() {
      const { codex, folder } = yield* open(Scenarios.command("touch made.txt"))
      const events = yield* run(yield* codex.thread(ASKING), "Make a file")
      assert.deepInclude(only(events, "ApprovalSettled")[0], { decision: "decline", by: "default" })
      assert.isFalse(existsSync(join(folder, "made.txt")))
      assert.strictEqual(endOf(events).status, "completed")
    }))

  it.live("is withdrawn by an interruption, and the function that would answer it is interrupted", () =>
    Effect.gen(function*() {
      const isAsked = yield* Deferred.make<void>()
      const wasInterrupted = yield* Deferred.make<void>()
      const { codex, folder } = yield* open(Scenarios.command("touch made.txt"), {
        approvals: {
          command: () =>
            Effect.andThen(Deferred.succeed(isAsked, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => Deferred.succeed(wasInterrupted, undefined))
            )
        }
      })
      const thread = yield* codex.thread(ASKING)
      const turn = yield* Effect.forkChild(run(thread, "Make a file"))
      yield* Deferred.await(isAsked)
      yield* thread.interrupt
      const events = yield* Fiber.join(turn)
      yield* Deferred.await(wasInterrupted)
      const inOrder = tags(events).filter((tag) => tag !== "Usage")
      assert.deepStrictEqual(inOrder, [
        "TurnStarted",
        "ToolStart",
        "ApprovalAsked",
        "ApprovalWithdrawn",
        "ToolEnd",
        "TurnEnd"
      ])
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "cancelled")
      assert.strictEqual(endOf(events).status, "interrupted")
      assert.isFalse(existsSync(join(folder, "made.txt")))
      // nobody waits for an answer any longer: the conversation goes on
      const next = yield* Effect.forkChild(thread.send("Again"), { startImmediately: true })
      yield* thread.interrupt
      yield* Fiber.join(next)
    }))

  it.live("ends the turn when the answer is to cancel", () =>
    Effect.gen(function*() {
      const { codex, model } = yield* open(Scenarios.command("touch made.txt"), {
        approvals: { command: () => Effect.succeed("cancel") }
      })
      const events = yield* run(yield* codex.thread(ASKING), "Make a file")
      assert.deepInclude(only(events, "ApprovalSettled")[0], { decision: "cancel", by: "handler" })
      assert.strictEqual(endOf(events).status, "interrupted")
      assert.strictEqual(model.requests.length, 1)
    }))

  for (const decision of ["acceptForSession", "acceptAlways"] as const) {
    it.live(`is not asked again when the answer is ${decision}`, () =>
      Effect.gen(function*() {
        let asked = 0
        const { codex } = yield* open(Scenarios.command("touch made.txt"), {
          approvals: {
            command: () =>
              Effect.sync(() => {
                asked++
                return decision
              })
          }
        })
        const thread = yield* codex.thread(ASKING)
        for (const input of ["Make a file", "And again"]) {
          const events = yield* run(thread, input)
          assert.strictEqual(only(events, "ToolEnd")[0]?.status, "completed")
          assert.strictEqual(endOf(events).status, "completed")
        }
        assert.strictEqual(asked, 1)
      }))
  }

  for (const decision of ["accept", "decline"] as const) {
    it.live(`changes a file, or does not: ${decision}`, () =>
      Effect.gen(function*() {
        const asked: Array<Approval.FileChangeApproval> = []
        const { codex, folder } = yield* open(Scenarios.patch("größe.txt", "12 €"), {
          home: { model: "gpt-5.5" },
          approvals: {
            fileChange: (approval) => {
              asked.push(approval)
              return Effect.succeed(decision)
            }
          }
        })
        const thread = yield* codex.thread({ approvalPolicy: "untrusted", sandbox: "read-only" })
        const events = yield* run(thread, "Write it down")
        const [start] = only(events, "ToolStart")
        const file = join(folder, "größe.txt")
        assert.deepInclude(start, { kind: "file", name: file })
        // the changes are to be found under the id that the question has
        assert.strictEqual(asked[0]?.itemId, start?.itemId)
        assert.strictEqual(asked.length, 1)
        assert.include(JSON.stringify(start?.input), "12 €")
        assert.strictEqual(only(events, "ToolEnd")[0]?.status, decision === "accept" ? "completed" : "declined")
        assert.strictEqual(endOf(events).status, "completed")
        assert.strictEqual(existsSync(file), decision === "accept")
        if (decision === "accept") assert.strictEqual(readFileSync(file, "utf8"), "12 €\n")
      }))
  }

  const choices: ReadonlyArray<{
    readonly what: string
    readonly answer: Effect.Success<ReturnType<NonNullable<Approval.Approvals["questions"]>>>
    readonly told: boolean
  }> = [
    { what: "what the user chose", answer: { colour: ["Red"] }, told: true },
    { what: "nothing when the user declines", answer: "decline", told: false }
  ]
  for (const { answer, told, what } of choices) {
    it.live(`gives the model ${what}`, () =>
      Effect.gen(function*() {
        const asked: Array<Approval.Questions> = []
        const { codex, model } = yield* open(Scenarios.userInput, {
          // codex offers this in plan mode, which it calls experimental
          tools: yield* Codex.fromToolkit(Toolkit.empty),
          approvals: {
            questions: (questions) => {
              asked.push(questions)
              return Effect.succeed(answer)
            }
          }
        })
        const thread = yield* codex.thread({ approvalPolicy: "never" })
        yield* planMode(codex, thread)
        const events = yield* run(thread, "Ask me")
        assert.deepStrictEqual(asked[0]?.questions, [{
          id: "colour",
          header: "Colour",
          question: "Which colour do you like?",
          options: [{ label: "Blue", description: "As the sea" }, { label: "Red", description: "As a rose" }]
        }])
        assert.strictEqual(model.requests[1]?.outputs[0]?.text.includes("Red"), told)
        assert.deepInclude(endOf(events), { status: "completed", text: "A fine choice." })
      }))
  }

  it.live("gives no more permissions than are granted, and none by default", () =>
    Effect.gen(function*() {
      const asked: Array<Approval.PermissionApproval> = []
      for (const grants of [true, false]) {
        const { codex, model } = yield* open(Scenarios.permissions("/elsewhere"), {
          args: Scenarios.PERMISSIONS_ARGS,
          ...(grants && {
            approvals: {
              permission: (approval: Approval.PermissionApproval) => {
                asked.push(approval)
                return Effect.succeed({ grant: { network: { enabled: true } }, scope: "turn" as const })
              }
            }
          })
        })
        const thread = yield* codex.thread({ approvalPolicy: "on-request", sandbox: "read-only" })
        const events = yield* run(thread, "May I?")
        assert.deepInclude(
          only(events, "ApprovalSettled")[0],
          grants ? { decision: "accept", by: "handler" } : { decision: "decline", by: "default" }
        )
        const granted = model.requests[1]?.outputs[0]?.text ?? ""
        assert.strictEqual(granted.includes(`"network":{"enabled":true}`), grants)
        assert.notInclude(granted, "/elsewhere")
        assert.strictEqual(endOf(events).status, "completed")
      }
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(asked[0]?.reason, "to fetch it")
      assert.deepInclude(asked[0]?.permissions, { network: { enabled: true } })
    }))
})

describe("a tool of ours", () => {
  const Failure = Schema.Struct({ message: Schema.String })
  const Weather = Tool.make("weather", {
    description: "Tells the weather in a city",
    parameters: Schema.Struct({ city: Schema.String }),
    success: Schema.Struct({ degrees: Schema.Finite }),
    failure: Failure,
    failureMode: "return"
  })
  const Weathers = Toolkit.make(Weather)

  const using = (scenario: FakeModel.Scenario, handled: Array<string>) =>
    Effect.gen(function*() {
      const tools = yield* Codex.fromToolkit(Weathers)
      const { codex, model } = yield* open(scenario, { tools })
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      return { events: yield* run(thread, "How is the weather?"), model }
    }).pipe(
      Effect.provide(Weathers.toLayer({
        weather: ({ city }) =>
          Effect.suspend(() => {
            handled.push(city)
            if (city === "Atlantis") return Effect.fail({ message: "it has sunk" })
            return city === "Babel" ? Effect.die(new Error("the secret is a turtle")) : Effect.succeed({ degrees: 21 })
          })
      }))
    )

  it.live("is offered to the model by its name and called over the same pipe", () =>
    Effect.gen(function*() {
      const handled: Array<string> = []
      const { events, model } = yield* using(Scenarios.dynamicTool("weather", { city: "Oslo" }), handled)
      assert.deepStrictEqual(handled, ["Oslo"])
      assert.include(model.requests[0]?.tools.map(({ name }) => name) ?? [], "weather")
      assert.deepInclude(only(events, "ToolStart")[0], { kind: "dynamic", name: "weather", input: { city: "Oslo" } })
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "completed")
      assert.strictEqual(model.requests[1]?.outputs[0]?.text, `{"degrees":21}`)
      assert.deepInclude(endOf(events), { status: "completed", text: "The client has answered." })
    }))

  it.live.each([
    { what: "a failure of its own", input: { city: "Atlantis" }, told: "it has sunk" },
    { what: "an input that is not as it should be", input: { town: "Oslo" }, told: "city" },
    { what: "its death, but not of what", input: { city: "Babel" }, told: "fail" }
  ])("lets the model read of $what", ({ input, told }) =>
    Effect.gen(function*() {
      const { events, model } = yield* using(Scenarios.dynamicTool("weather", input), [])
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "failed")
      const output = model.requests[1]?.outputs[0]?.text ?? ""
      assert.include(output, told)
      assert.notInclude(JSON.stringify(events) + output, "turtle")
      assert.strictEqual(endOf(events).status, "completed")
    }))

  it.live("is interrupted with its turn", () =>
    Effect.gen(function*() {
      const isCalled = yield* Deferred.make<void>()
      const wasInterrupted = yield* Deferred.make<void>()
      const Slow = Toolkit.make(Tool.make("slow", { success: Schema.String }))
      const layer = Slow.toLayer({
        slow: () =>
          Effect.andThen(Deferred.succeed(isCalled, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Deferred.succeed(wasInterrupted, undefined))
          )
      })
      const { codex } = yield* open(Scenarios.dynamicTool("slow", {}), {
        tools: yield* Effect.provide(Codex.fromToolkit(Slow), layer)
      })
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const turn = yield* Effect.forkChild(Stream.runCollect(thread.stream("Be slow")))
      yield* Deferred.await(isCalled)
      yield* thread.interrupt
      const events = yield* Fiber.join(turn)
      // codex itself says that the call has failed
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "failed")
      assert.strictEqual(endOf(events).status, "interrupted")
      // that it no longer waits for the answer it does not say
      yield* Effect.timeout(Deferred.await(wasInterrupted), "10 seconds")
    }))
})

Child.leavesNothingBehind()

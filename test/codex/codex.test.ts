/**
 * What every change must leave intact: the real Codex app server as an agent.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { copyFileSync, existsSync } from "node:fs"
import { join } from "node:path"
import * as Agent from "../../src/Agent.ts"
import type * as Approval from "../../src/Approval.ts"
import * as Child from "../utils/child.ts"
import { endOf, only, open, run, tags } from "./agent.ts"
import * as Scenarios from "./scenarios.ts"

const TEXT = "Hello, größe – 🐢"

describe("a turn of the real codex", () => {
  it.live("comes as deltas, a whole text, usage and one end", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.hello)
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const events = yield* run(thread, "Hi")
      assert.deepStrictEqual(tags(events), ["TurnStarted", "TextDelta", "TextEnd", "Usage", "TurnEnd"])
      assert.strictEqual(only(events, "TextDelta").map(({ text }) => text).join(""), TEXT)
      const end = endOf(events)
      assert.deepInclude(end, { status: "completed", text: TEXT })
      assert.strictEqual(end.usage?.last.total, only(events, "Usage")[0]?.total.total)
      assert.strictEqual(yield* codex.version, "0.171.0")
      // and the conversation goes on
      assert.deepInclude(yield* thread.send("Again"), { status: "completed", text: TEXT })
      const stats = yield* Effect.flatMap(codex.peer, (peer) => peer.stats)
      assert.deepInclude(stats, { badInput: 0, strayResponses: 0 })
    }))

  for (const decision of ["accept", "decline"] as const) {
    it.live(`runs a command, or does not: ${decision}`, () =>
      Effect.gen(function*() {
        const asked: Array<Approval.CommandApproval> = []
        const { codex, folder } = yield* open(Scenarios.command("touch made.txt"), {
          approvals: {
            command: (approval) => {
              asked.push(approval)
              return Effect.succeed(decision)
            }
          }
        })
        const thread = yield* codex.thread({ approvalPolicy: "untrusted", sandbox: "danger-full-access" })
        const events = yield* run(thread, "Make a file")
        assert.strictEqual(asked.length, 1)
        assert.include(asked[0]?.command, "touch made.txt")
        assert.strictEqual(asked[0]?.cwd, folder)
        const inOrder = tags(events).filter((tag) => tag.startsWith("Tool") || tag.startsWith("Approval"))
        assert.deepStrictEqual(inOrder, ["ToolStart", "ApprovalAsked", "ApprovalSettled", "ToolEnd"])
        assert.deepInclude(only(events, "ApprovalSettled")[0], { decision, by: "handler" })
        assert.strictEqual(only(events, "ToolEnd")[0]?.status, decision === "accept" ? "completed" : "declined")
        assert.strictEqual(existsSync(join(folder, "made.txt")), decision === "accept")
        assert.strictEqual(endOf(events).status, "completed")
      }))
  }

  it.live("is interrupted although it has hardly been asked for", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.gated(Effect.never, ["never said"]))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const turn = yield* Effect.forkChild(run(thread, "Hi"), { startImmediately: true })
      // before codex has said anything of the turn
      yield* thread.interrupt
      const end = endOf(yield* Fiber.join(turn))
      assert.strictEqual(end.status, "interrupted")
      assert.notStrictEqual(end.turnId, "")
    }))

  it.live("is interrupted in the midst of its text, and leaves nothing open", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      let said = 0
      const { codex } = yield* open(
        Scenarios.gated(Effect.suspend(() => said++ < 2 ? Effect.void : Deferred.await(gate)), [
          "one ",
          "two ",
          "three"
        ])
      )
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const heard = yield* Deferred.make<void>()
      const turn = yield* thread.stream("Hi").pipe(
        Stream.tap((event) =>
          event._tag === "TextDelta" && event.text.includes("two") ? Deferred.succeed(heard, undefined) : Effect.void
        ),
        Stream.runCollect,
        Effect.forkChild
      )
      yield* Deferred.await(heard)
      yield* thread.interrupt
      const events = yield* Fiber.join(turn)
      assert.deepInclude(only(events, "TextEnd")[0], { status: "cancelled", text: "one two " })
      assert.deepInclude(endOf(events), { status: "interrupted", text: "one two " })
    }))

  it.live("is interrupted when nobody follows it any longer", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.gated(Effect.never, ["never said"]))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const first = yield* thread.stream("Hi").pipe(Stream.take(1), Stream.runCollect)
      assert.deepStrictEqual(first.map(({ _tag }) => _tag), ["TurnStarted"])
      yield* thread.interrupt
      // it is over: the next one may begin
      const next = yield* Effect.forkChild(thread.send("Hi"), { startImmediately: true })
      yield* thread.interrupt
      assert.strictEqual((yield* Fiber.join(next)).status, "interrupted")
    }))

  it.live("reads a workbook through the Excel server of this project", () =>
    Effect.gen(function*() {
      const books = yield* Child.temporaryFolder
      copyFileSync(Child.path("examples/excel/budget.xlsx"), join(books, "budget.xlsx"))
      const { codex } = yield* open(Scenarios.mcpTool("excel", "list_sheets", { file: "budget.xlsx" }))
      const thread = yield* codex.thread({
        approvalPolicy: "never",
        sandbox: "danger-full-access",
        mcpServers: {
          excel: {
            command: process.execPath,
            args: [Child.path("examples/excel/server.ts"), books],
            env: Child.environment
          }
        }
      })
      const events = yield* run(thread, "Which sheets are there?")
      const [start] = only(events, "ToolStart")
      assert.deepInclude(start, { kind: "mcp", name: "excel/list_sheets", input: { file: "budget.xlsx" } })
      const [end] = only(events, "ToolEnd")
      assert.strictEqual(end?.status, "completed")
      assert.include(JSON.stringify(end?.output), "Ausgaben 支出")
      assert.deepInclude(endOf(events), { status: "completed", text: "The tool has answered." })
    }))

  it.live("is not begun by a codex that cannot start, and the error says what codex has said", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.hello, { args: ["--no-such-flag"] })
      const error = yield* Effect.flip(Effect.asVoid(codex.thread()))
      assert.instanceOf(error, Agent.AgentError)
      assert.strictEqual(error.reason._tag, "NotStarted")
      assert.include(error.message, "--no-such-flag")
    }))
})

Child.leavesNothingBehind()

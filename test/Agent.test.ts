/**
 * What every agent has in common: errors that say what to do, and events that survive a wire.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Agent from "effect-stdio/Agent"
import * as Approval from "effect-stdio/Approval"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"

const error = (reason: Agent.AgentError["reason"]) => new Agent.AgentError({ reason })

describe("an error of an agent", () => {
  for (
    const [reason, message] of [
      [new Agent.NotStarted({ cause: new Error("no such file") }), "the agent cannot be started: no such file"],
      [
        new Agent.NotStarted({ cause: new Error("no such file"), hint: "Install it" }),
        "the agent cannot be started: no such file. Install it"
      ],
      [new Agent.NotStarted({ cause: "what?" }), "the agent cannot be started: unknown reason"],
      [new Agent.NotStarted({ cause: new Error("") }), "the agent cannot be started: unknown reason"],
      [
        new Agent.TurnInProgress(),
        "a turn is under way: wait for its end, interrupt it, or add to it with steer"
      ],
      [new Agent.NoTurn(), "no turn is under way that could be steered: send the input instead"],
      [
        new Agent.Refused({ method: "turn/start", code: -32600, message: "thread not found" }),
        "the agent refused turn/start with -32600: thread not found"
      ],
      [
        new Agent.NoAnswer({ method: "turn/start", cause: new Error("it took too long") }),
        "the agent did not answer turn/start: it took too long"
      ],
      [new Agent.Closed(), "the agent was closed"]
    ] as const
  ) {
    it(`says what is wrong: ${message}`, () => {
      assert.strictEqual(error(reason).message, message)
    })
  }

  it("has a method of any length, and a message of a bearable one", () => {
    const reason = new Agent.Refused({ method: "m".repeat(100_000), code: 1, message: "no" })
    assert.isBelow(error(reason).message.length, 1_000)
  })

  it.effect("is caught by its reason", () =>
    Effect.gen(function*() {
      const refusal = error(new Agent.Refused({ method: "turn/start", code: 7, message: "no", data: { why: "so" } }))
      const caught = yield* Effect.fail(refusal).pipe(
        Effect.catchReason("AgentError", "Refused", ({ code, data }) => Effect.succeed([code, data]))
      )
      assert.deepStrictEqual(caught, [7, { why: "so" }])
      const exit = yield* Effect.exit(
        Effect.fail(refusal).pipe(Effect.catchReason("AgentError", "Closed", () => Effect.void))
      )
      assert.deepStrictEqual(exit, Exit.fail(refusal))
    }))
})

describe("an event of an agent", () => {
  const tokens: Agent.Tokens = { input: 8, cachedInput: 1, output: 2, reasoning: 1, total: 10 }
  const usage: Agent.Usage = { _tag: "Usage", last: tokens, total: tokens, contextWindow: 1_000 }

  const events: ReadonlyArray<Agent.AgentEvent> = [
    { _tag: "TurnStarted", turnId: "t" },
    { _tag: "TextDelta", itemId: "m", text: "größe" },
    { _tag: "ReasoningDelta", itemId: "r", kind: "summary", part: 0, text: "so" },
    { _tag: "PlanDelta", itemId: "p", text: "- one" },
    { _tag: "TextEnd", itemId: "m", kind: "text", status: "cancelled", text: "" },
    { _tag: "ToolStart", itemId: "c", kind: "command", name: "ls", input: { command: "ls" } },
    { _tag: "ToolOutput", itemId: "c", text: "a" },
    { _tag: "ToolEnd", itemId: "c", status: "declined", output: null, duration: 5 },
    { _tag: "ApprovalAsked", approvalId: "0", approval: { _tag: "CommandApproval", itemId: "c", command: "ls" } },
    { _tag: "ApprovalSettled", approvalId: "0", decision: "acceptAlways", by: "handler" },
    { _tag: "ApprovalWithdrawn", approvalId: "0" },
    { _tag: "Reset", itemId: "m" },
    { _tag: "Retrying", message: "broke off", details: "so it did" },
    usage,
    { _tag: "Warning", message: "w" },
    { _tag: "TurnEnd", turnId: "t", status: "failed", text: "", usage, error: { message: "e", kind: "other" } },
    { _tag: "Unknown", method: "m", params: { a: 1 } }
  ]

  for (const event of events) {
    it(`survives a wire: ${event._tag}`, () => {
      const codec = Schema.fromJsonString(Agent.AgentEvent)
      assert.deepStrictEqual(Schema.decodeSync(codec)(Schema.encodeSync(codec)(event)), event)
    })
  }

  it("is one of those that there are", () => {
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag).toSorted(),
      Agent.AgentEvent.members.map(({ fields }) => fields._tag.schema.literal).toSorted()
    )
    assert.isFalse(Schema.is(Agent.AgentEvent)({ _tag: "TurnEnd", turnId: "t", status: "exploded", text: "" }))
    assert.isFalse(Schema.is(Agent.AgentEvent)({ _tag: "TextDelta", itemId: 5, text: "" }))
    assert.isFalse(Schema.is(Agent.AgentEvent)({ _tag: "Nonsense" }))
  })

  it("that asks has a question of one of six kinds", () => {
    const approvals: ReadonlyArray<Approval.Approval> = [
      { _tag: "CommandApproval", itemId: "c", command: "ls", cwd: "/p", reason: "r", rule: ["ls"] },
      { _tag: "FileChangeApproval", itemId: "f", reason: "r" },
      { _tag: "PermissionApproval", itemId: "p", permissions: { network: { enabled: true } } },
      { _tag: "ToolApproval", server: "s", tool: "t", input: {}, message: "m" },
      { _tag: "Questions", itemId: "q", questions: [{ id: "a", question: "b", options: [{ label: "c" }] }] },
      { _tag: "Elicitation", server: "s", message: "m", schema: {}, url: "u" }
    ]
    for (const approval of approvals) assert.isTrue(Schema.is(Approval.Approval)(approval), approval._tag)
    assert.isFalse(Schema.is(Approval.Approval)({ _tag: "FileChangeApproval" }))
  })
})

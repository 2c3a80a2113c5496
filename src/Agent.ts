/**
 * An agent behind a pipe, as an application programs against it: send it something, follow what it does, steer it,
 * interrupt it, close it. `Codex` is one; docs/agents.md says what another adapter has to do.
 *
 * The one idea to know: a turn is what an agent does between an input and its answer. It is a stream of events that ends
 * with exactly one {@link TurnEnd}, whatever happens: a turn that fails, is interrupted or loses its process ends with an
 * event, too, after all that it left open was closed. A stream fails only when there was no turn at all.
 *
 * @module
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import * as Approval from "./Approval.ts"
import { shorten } from "./internal/shorten.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * The agent's program cannot be started, or its handshake failed. `hint` says what to do, where that is known.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotStarted extends Schema.TaggedClass<NotStarted>()("NotStarted", {
  cause: Schema.Defect(),
  hint: Schema.optionalKey(Schema.String)
}) {}

/**
 * A turn is under way: wait for its end, interrupt it, or add to it with `steer`.
 *
 * @category errors
 * @since 0.1.0
 */
export class TurnInProgress extends Schema.TaggedClass<TurnInProgress>()("TurnInProgress", {}) {}

/**
 * No turn is under way that could be steered.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoTurn extends Schema.TaggedClass<NoTurn>()("NoTurn", {}) {}

/**
 * The agent has refused a request. `code`, `message` and `data` are its own.
 *
 * @category errors
 * @since 0.1.0
 */
export class Refused extends Schema.TaggedClass<Refused>()("Refused", {
  method: Schema.String,
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
}) {}

/**
 * A request was sent, and whether the agent has heard it is unknown: it ended, or did not answer in time.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoAnswer extends Schema.TaggedClass<NoAnswer>()("NoAnswer", {
  method: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * The agent was closed by us.
 *
 * @category errors
 * @since 0.1.0
 */
export class Closed extends Schema.TaggedClass<Closed>()("Closed", {}) {}

/**
 * Says why an agent did not do what it was asked. A turn that went wrong is none of these: it is a {@link TurnEnd}.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  reason: Schema.Union([NotStarted, TurnInProgress, NoTurn, Refused, NoAnswer, Closed])
}) {
  override get message(): string {
    return describe(this.reason)
  }
}

const describe = (reason: AgentError["reason"]): string => {
  switch (reason._tag) {
    case "NotStarted":
      return `the agent cannot be started: ${messageOf(reason.cause)}${
        reason.hint === undefined ? "" : `. ${reason.hint}`
      }`
    case "TurnInProgress":
      return "a turn is under way: wait for its end, interrupt it, or add to it with steer"
    case "NoTurn":
      return "no turn is under way that could be steered: send the input instead"
    case "Refused":
      return `the agent refused ${shorten(reason.method)} with ${reason.code}: ${reason.message}`
    case "NoAnswer":
      return `the agent did not answer ${shorten(reason.method)}: ${messageOf(reason.cause)}`
    case "Closed":
      return "the agent was closed"
  }
}

const messageOf = (cause: unknown) => cause instanceof Error && cause.message !== "" ? cause.message : "unknown reason"

// -----------------------------------------------------------------------------
// input
// -----------------------------------------------------------------------------

/**
 * A part of an input: text, an image somewhere on the web, or an image in a file of the machine that the agent runs on.
 *
 * @category models
 * @since 0.1.0
 */
export type InputPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly url: string }
  | { readonly type: "localImage"; readonly path: string }

/**
 * What is said to an agent.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | ReadonlyArray<InputPart>

// -----------------------------------------------------------------------------
// events
// -----------------------------------------------------------------------------

const ItemId = { itemId: Schema.String }

/**
 * Schema for the first event of a turn.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TurnStarted = Schema.TaggedStruct("TurnStarted", { turnId: Schema.String })

/**
 * Schema for a piece of a message of the agent.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TextDelta = Schema.TaggedStruct("TextDelta", { ...ItemId, text: Schema.String })

/**
 * Schema for a piece of what the agent thinks: a summary of it, or as it is. Either comes in parts, counted from 0.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ReasoningDelta = Schema.TaggedStruct("ReasoningDelta", {
  ...ItemId,
  kind: Schema.Literals(["summary", "raw"]),
  part: Schema.Int,
  text: Schema.String
})

/**
 * Schema for a piece of the plan that an agent proposes.
 *
 * @category schemas
 * @since 0.1.0
 */
export const PlanDelta = Schema.TaggedStruct("PlanDelta", { ...ItemId, text: Schema.String })

/**
 * Schema for the end of a message, of reasoning or of a plan, with its whole text; of reasoning that is its summary, where
 * there is one. One that was cut off by the end of the
 * turn is `cancelled`, and has the text that came.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TextEnd = Schema.TaggedStruct("TextEnd", {
  ...ItemId,
  kind: Schema.Literals(["text", "reasoning", "plan"]),
  status: Schema.Literals(["completed", "cancelled"]),
  text: Schema.String
})

/**
 * Schema for a tool that the agent begins to use. `kind` is "command", "file", "mcp", "dynamic" (a tool of ours) or a
 * word of the agent's; `name` is for people; the shape of `input` depends on the kind.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolStart = Schema.TaggedStruct("ToolStart", {
  ...ItemId,
  kind: Schema.String,
  name: Schema.String,
  input: Schema.Unknown
})

/**
 * Schema for a piece of what a tool prints while it runs.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolOutput = Schema.TaggedStruct("ToolOutput", { ...ItemId, text: Schema.String })

/**
 * Schema for the end of a tool. One that the turn's end has cut off is `cancelled`; it may still run. The shape of
 * `output` depends on the kind; the duration is in milliseconds.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolEnd = Schema.TaggedStruct("ToolEnd", {
  ...ItemId,
  status: Schema.Literals(["completed", "failed", "declined", "cancelled"]),
  output: Schema.Unknown,
  duration: Schema.optionalKey(Schema.Finite)
})

/**
 * Schema for a question of the agent; the `Approvals` of its adapter answer it.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ApprovalAsked = Schema.TaggedStruct("ApprovalAsked", {
  approvalId: Schema.String,
  approval: Approval.Approval
})

/**
 * Schema for the answer to a question: what was answered, and by whom. `default` is a kind without a function, `failure`
 * a function that failed, `timeout` one that took too long.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ApprovalSettled = Schema.TaggedStruct("ApprovalSettled", {
  approvalId: Schema.String,
  decision: Schema.Literals(["accept", "acceptForSession", "acceptAlways", "decline", "cancel"]),
  by: Schema.Literals(["handler", "default", "failure", "timeout"])
})

/**
 * Schema for a question that the agent no longer asks: somebody else has answered it, or the turn has ended.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ApprovalWithdrawn = Schema.TaggedStruct("ApprovalWithdrawn", { approvalId: Schema.String })

/**
 * Schema for the news that the text of an item so far is void: it comes again from its start.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Reset = Schema.TaggedStruct("Reset", ItemId)

/**
 * Schema for an error after which the agent tries again on its own.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Retrying = Schema.TaggedStruct("Retrying", {
  message: Schema.String,
  details: Schema.optionalKey(Schema.String)
})

/**
 * Schema for numbers of tokens. Cached input is a part of the input, and reasoning of the output.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Tokens = Schema.Struct({
  input: Schema.Finite,
  cachedInput: Schema.Finite,
  output: Schema.Finite,
  reasoning: Schema.Finite,
  total: Schema.Finite
})

/**
 * Type of `Tokens`.
 *
 * @category models
 * @since 0.1.0
 */
export type Tokens = typeof Tokens.Type

/**
 * Schema for what was used: by the last request to the model, and by all of the conversation. `contextWindow` is how many
 * tokens the model can take.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Usage = Schema.TaggedStruct("Usage", {
  last: Tokens,
  total: Tokens,
  contextWindow: Schema.optionalKey(Schema.Finite)
})

/**
 * Type of `Usage`.
 *
 * @category models
 * @since 0.1.0
 */
export type Usage = typeof Usage.Type

/**
 * Schema for something that the user should know, and that does not end the turn.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Warning = Schema.TaggedStruct("Warning", {
  message: Schema.String,
  details: Schema.optionalKey(Schema.String)
})

/**
 * Schema for why a turn failed. `kind` is the agent's word for it, or one of the adapter's: "processExited" (the agent's
 * process ended), "noAnswer" (nothing was heard for too long), "lost" (its end was not reported).
 *
 * @category schemas
 * @since 0.1.0
 */
export const TurnError = Schema.Struct({
  message: Schema.String,
  kind: Schema.String,
  details: Schema.optionalKey(Schema.String),
  httpStatus: Schema.optionalKey(Schema.Int)
})

/**
 * Type of `TurnError`.
 *
 * @category models
 * @since 0.1.0
 */
export type TurnError = typeof TurnError.Type

/**
 * Schema for the last event of a turn. `text` is the agent's last message, "" when there was none; `usage` is the last
 * that was reported; `error` is there when the turn failed.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TurnEnd = Schema.TaggedStruct("TurnEnd", {
  turnId: Schema.String,
  status: Schema.Literals(["completed", "interrupted", "failed"]),
  text: Schema.String,
  usage: Schema.optionalKey(Usage),
  error: Schema.optionalKey(TurnError)
})

/**
 * Type of `TurnEnd`.
 *
 * @category models
 * @since 0.1.0
 */
export type TurnEnd = typeof TurnEnd.Type

/**
 * Schema for what the adapter does not know, as it came.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Unknown = Schema.TaggedStruct("Unknown", { method: Schema.String, params: Schema.Unknown })

/**
 * Schema for everything that happens in a turn.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AgentEvent = Schema.Union([
  TurnStarted,
  TextDelta,
  ReasoningDelta,
  PlanDelta,
  TextEnd,
  ToolStart,
  ToolOutput,
  ToolEnd,
  ApprovalAsked,
  ApprovalSettled,
  ApprovalWithdrawn,
  Reset,
  Retrying,
  Usage,
  Warning,
  TurnEnd,
  Unknown
])

/**
 * Everything that happens in a turn.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentEvent = typeof AgentEvent.Type

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * Options of a stream of events.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamOptions {
  /**
   * What happens while the events are not taken as fast as they come. `merge`: pieces of one text are joined, nothing is
   * lost, and memory grows with the text alone. `suspend`: the agent is not read, so that it waits, and memory stays as it
   * is; its other conversations and the answers to our requests wait, too, until the events are taken or one of its
   * turns is interrupted.
   *
   * @default "merge"
   */
  readonly whenSlow?: "merge" | "suspend" | undefined
}

/**
 * One conversation with an agent. It has at most one turn at a time.
 *
 * **Example** (A question and its answer)
 *
 * ```ts
 * import * as Console from "effect/Console"
 * import * as Effect from "effect/Effect"
 * import * as Agent from "effect-stdio/Agent"
 *
 * const program = Effect.gen(function*() {
 *   const agent = yield* Agent.Agent
 *   const { status, text } = yield* agent.send("What does this project do?")
 *   yield* Console.error(`${status}: ${text}`)
 * })
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Agent extends Context.Service<Agent, {
  /** Says something, and returns how the turn ended. Interrupting the caller interrupts the turn. */
  readonly send: (input: Input) => Effect.Effect<TurnEnd, AgentError>
  /** Says something, and returns all that happens. Ending the stream early interrupts the turn. */
  readonly stream: (input: Input, options?: StreamOptions) => Stream.Stream<AgentEvent, AgentError>
  /** Adds to what was said in the turn that is under way. */
  readonly steer: (input: Input) => Effect.Effect<void, AgentError>
  /** Interrupts the turn that is under way, also one that has only just been asked for, and returns when it has ended. */
  readonly interrupt: Effect.Effect<void>
  /** Ends the conversation: a turn that is under way ends as interrupted. */
  readonly close: Effect.Effect<void>
}>()("effect-stdio/Agent") {}

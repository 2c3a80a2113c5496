/**
 * What an agent asks before it goes on, and who answers: may this command run, may these files be changed, may this tool
 * be called, what does the user say. An agent is told who answers when it is made, as in `Codex.make({ approvals })`.
 *
 * The one idea to know: {@link Approvals} has one function a kind, and what has no function is declined.
 *
 * @module
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Reason = Schema.optionalKey(Schema.String)

/**
 * Schema for the question whether a command may run. `rule` is what the agent would remember as allowed for good, if it
 * is told to.
 *
 * @category schemas
 * @since 0.1.0
 */
export const CommandApproval = Schema.TaggedStruct("CommandApproval", {
  itemId: Schema.String,
  command: Schema.String,
  cwd: Schema.optionalKey(Schema.String),
  reason: Reason,
  rule: Schema.optionalKey(Schema.Array(Schema.String))
})

/**
 * Type of `CommandApproval`.
 *
 * @category models
 * @since 0.1.0
 */
export type CommandApproval = typeof CommandApproval.Type

/**
 * Schema for the question whether files may be changed. The changes are the input of the tool with this `itemId`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const FileChangeApproval = Schema.TaggedStruct("FileChangeApproval", {
  itemId: Schema.String,
  reason: Reason
})

/**
 * Type of `FileChangeApproval`.
 *
 * @category models
 * @since 0.1.0
 */
export type FileChangeApproval = typeof FileChangeApproval.Type

/**
 * Schema for the question whether the agent gets more permissions. What they look like is the agent's own matter.
 *
 * @category schemas
 * @since 0.1.0
 */
export const PermissionApproval = Schema.TaggedStruct("PermissionApproval", {
  itemId: Schema.String,
  permissions: Schema.Record(Schema.String, Schema.Unknown),
  cwd: Schema.optionalKey(Schema.String),
  reason: Reason
})

/**
 * Type of `PermissionApproval`.
 *
 * @category models
 * @since 0.1.0
 */
export type PermissionApproval = typeof PermissionApproval.Type

/**
 * Schema for the question whether a tool of an MCP server may be called.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolApproval = Schema.TaggedStruct("ToolApproval", {
  server: Schema.String,
  tool: Schema.String,
  input: Schema.optionalKey(Schema.Unknown),
  message: Schema.String
})

/**
 * Type of `ToolApproval`.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolApproval = typeof ToolApproval.Type

/**
 * Schema for questions of the agent to the user, each with answers to choose from.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Questions = Schema.TaggedStruct("Questions", {
  itemId: Schema.String,
  questions: Schema.Array(Schema.Struct({
    id: Schema.String,
    header: Schema.optionalKey(Schema.String),
    question: Schema.String,
    options: Schema.Array(Schema.Struct({ label: Schema.String, description: Schema.optionalKey(Schema.String) }))
  }))
})

/**
 * Type of `Questions`.
 *
 * @category models
 * @since 0.1.0
 */
export type Questions = typeof Questions.Type

/**
 * Schema for what an MCP server of the agent wants to know from the user: a form whose content has a JSON Schema, or an
 * address to visit.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Elicitation = Schema.TaggedStruct("Elicitation", {
  server: Schema.String,
  message: Schema.String,
  schema: Schema.optionalKey(Schema.Unknown),
  url: Schema.optionalKey(Schema.String)
})

/**
 * Type of `Elicitation`.
 *
 * @category models
 * @since 0.1.0
 */
export type Elicitation = typeof Elicitation.Type

/**
 * Schema for everything that an agent may ask before it goes on.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Approval = Schema.Union([
  CommandApproval,
  FileChangeApproval,
  PermissionApproval,
  ToolApproval,
  Questions,
  Elicitation
])

/**
 * Type of `Approval`.
 *
 * @category models
 * @since 0.1.0
 */
export type Approval = typeof Approval.Type

/**
 * An answer to a yes-or-no question. `acceptForSession` also allows the like until the agent ends, `acceptAlways` for
 * good, where the agent can remember that, else for the session; `cancel` says no and interrupts the turn.
 *
 * @category models
 * @since 0.1.0
 */
export type Decision = "accept" | "acceptForSession" | "acceptAlways" | "decline" | "cancel"

/**
 * What is known of a question beside the question.
 *
 * @category models
 * @since 0.1.0
 */
export interface ApprovalInfo {
  /** The one in the events of this question. */
  readonly approvalId: string
}

/**
 * Answers what an agent asks, one function a kind. A kind without a function is declined, and so is a question whose
 * function fails or takes longer than the adapter allows. When the agent withdraws its question, the function is
 * interrupted.
 *
 * **Example** (Tools of one server, and nothing else)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import type * as Approval from "effect-stdio/Approval"
 *
 * export const approvals: Approval.Approvals = {
 *   tool: ({ server }) => Effect.succeed(server === "docs" ? "accept" : "decline")
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Approvals<in out R = never> {
  /** Whether a command may run. */
  readonly command?:
    | ((approval: CommandApproval, info: ApprovalInfo) => Effect.Effect<Decision, unknown, R>)
    | undefined
  /** Whether files may be changed. */
  readonly fileChange?:
    | ((approval: FileChangeApproval, info: ApprovalInfo) => Effect.Effect<Decision, unknown, R>)
    | undefined
  /** What is granted: a part of what was asked for, for this turn or until the agent ends. */
  readonly permission?:
    | ((approval: PermissionApproval, info: ApprovalInfo) => Effect.Effect<
      { readonly grant: PermissionApproval["permissions"]; readonly scope: "turn" | "session" } | "decline",
      unknown,
      R
    >)
    | undefined
  /** Whether a tool of an MCP server may be called. */
  readonly tool?: ((approval: ToolApproval, info: ApprovalInfo) => Effect.Effect<Decision, unknown, R>) | undefined
  /** The answers to each question, by its id. */
  readonly questions?:
    | ((
      questions: Questions,
      info: ApprovalInfo
    ) => Effect.Effect<Readonly<Record<string, ReadonlyArray<string>>> | "decline", unknown, R>)
    | undefined
  /** The content of the form. */
  readonly elicitation?:
    | ((
      elicitation: Elicitation,
      info: ApprovalInfo
    ) => Effect.Effect<{ readonly content?: unknown } | "decline" | "cancel", unknown, R>)
    | undefined
}

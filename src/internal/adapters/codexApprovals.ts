/**
 * What codex asks of its user, in the words of `Agent`, and the answers in the words of codex. Every question gets an
 * answer that codex understands: what is not allowed is declined, never refused as a request.
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ApprovalSettled } from "../../Agent.ts"
import type { Approval, ApprovalInfo, Approvals, Decision } from "../../Approval.ts"
import { leavable } from "../bounded.ts"
import { serverRequests } from "./codexProtocol.ts"

/** @internal */
export type By = (typeof ApprovalSettled.Type)["by"]

/** @internal */
export interface Answer {
  /** The result of the request. */
  readonly body: unknown
  readonly decision: Decision
  readonly by: By
}

/** A question that could be read. @internal */
export interface Question {
  readonly threadId: string
  readonly turnId: string | undefined
  readonly approval: Approval
  /** Answers it, in time and in any case. */
  readonly answer: Effect.Effect<Answer>
}

/** @internal */
export interface Options {
  readonly approvals: Approvals
  readonly timeout: Duration.Input
  /** Is told why a function has not answered. */
  readonly onFailure: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

type Handler<A, D> = ((approval: A, info: ApprovalInfo) => Effect.Effect<D, unknown>) | undefined

/** How one kind of question is read and answered. */
interface Kind<P, A extends Approval, D> {
  readonly params: Schema.Codec<P, unknown>
  readonly toApproval: (params: P) => A
  readonly handler: (approvals: Approvals) => Handler<A, D>
  readonly decision: (decision: D) => Decision
  readonly body: (decision: D, params: P) => unknown
  /** What is answered where nobody else does. */
  readonly declined: D
}

const orNothing = <K extends string, V>(key: K, value: V | null | undefined): { readonly [key in K]?: V } =>
  // the computed key has this name
  value == null ? {} : { [key]: value } as { readonly [key in K]: V }

const itself = (decision: Decision) => decision

const command: Kind<
  (typeof serverRequests)["item/commandExecution/requestApproval"]["Type"],
  Extract<Approval, { readonly _tag: "CommandApproval" }>,
  Decision
> = {
  params: serverRequests["item/commandExecution/requestApproval"],
  toApproval: ({ command, cwd, itemId, proposedExecpolicyAmendment, reason }) => ({
    _tag: "CommandApproval",
    itemId,
    command: command ?? "",
    ...orNothing("cwd", cwd),
    ...orNothing("reason", reason),
    ...orNothing("rule", proposedExecpolicyAmendment)
  }),
  handler: ({ command }) => command,
  decision: itself,
  body: (decision, { proposedExecpolicyAmendment: rule }) => ({
    decision: decision !== "acceptAlways"
      ? decision
      : rule == null
      ? "acceptForSession"
      : { acceptWithExecpolicyAmendment: { execpolicy_amendment: rule } }
  }),
  declined: "decline"
}

const fileChange: Kind<
  (typeof serverRequests)["item/fileChange/requestApproval"]["Type"],
  Extract<Approval, { readonly _tag: "FileChangeApproval" }>,
  Decision
> = {
  params: serverRequests["item/fileChange/requestApproval"],
  toApproval: ({ itemId, reason }) => ({ _tag: "FileChangeApproval", itemId, ...orNothing("reason", reason) }),
  handler: ({ fileChange }) => fileChange,
  decision: itself,
  body: (decision) => ({ decision: decision === "acceptAlways" ? "acceptForSession" : decision }),
  declined: "decline"
}

const permission: Kind<
  (typeof serverRequests)["item/permissions/requestApproval"]["Type"],
  Extract<Approval, { readonly _tag: "PermissionApproval" }>,
  Effect.Success<ReturnType<NonNullable<Approvals["permission"]>>>
> = {
  params: serverRequests["item/permissions/requestApproval"],
  toApproval: ({ cwd, itemId, permissions, reason }) => ({
    _tag: "PermissionApproval",
    itemId,
    permissions,
    ...orNothing("cwd", cwd),
    ...orNothing("reason", reason)
  }),
  handler: ({ permission }) => permission,
  decision: (decision) =>
    decision === "decline" ? decision : decision.scope === "session" ? "acceptForSession" : "accept",
  body: (decision) =>
    decision === "decline"
      ? { permissions: {}, scope: "turn" }
      : { permissions: decision.grant, scope: decision.scope },
  declined: "decline"
}

const questions: Kind<
  (typeof serverRequests)["item/tool/requestUserInput"]["Type"],
  Extract<Approval, { readonly _tag: "Questions" }>,
  Effect.Success<ReturnType<NonNullable<Approvals["questions"]>>>
> = {
  params: serverRequests["item/tool/requestUserInput"],
  toApproval: ({ itemId, questions }) => ({
    _tag: "Questions",
    itemId,
    questions: questions.map(({ header, id, options, question }) => ({
      id,
      question,
      options: (options ?? []).map(({ description, label }) => ({ label, ...orNothing("description", description) })),
      ...orNothing("header", header)
    }))
  }),
  handler: ({ questions }) => questions,
  decision: (decision) => decision === "decline" ? decision : "accept",
  body: (decision) => ({
    answers: decision === "decline"
      ? {}
      : Object.fromEntries(Object.entries(decision).map(([id, answers]) => [id, { answers }]))
  }),
  declined: "decline"
}

type ElicitationParams = (typeof serverRequests)["mcpServer/elicitation/request"]["Type"]

/** That a tool of an MCP server may be called is asked as an elicitation. */
const tool: Kind<ElicitationParams, Extract<Approval, { readonly _tag: "ToolApproval" }>, Decision> = {
  params: serverRequests["mcpServer/elicitation/request"],
  toApproval: ({ _meta, message, serverName }) => ({
    _tag: "ToolApproval",
    server: serverName,
    tool: _meta?.tool_name ?? "",
    message: message ?? "",
    ...orNothing("input", _meta?.tool_params)
  }),
  handler: ({ tool }) => tool,
  decision: itself,
  body: (decision) => {
    if (decision === "decline" || decision === "cancel") return { action: decision, content: null, _meta: null }
    const persist = decision === "acceptForSession" ? "session" : decision === "acceptAlways" ? "always" : undefined
    return { action: "accept", content: {}, _meta: persist === undefined ? null : { persist } }
  },
  declined: "decline"
}

const elicitation: Kind<
  ElicitationParams,
  Extract<Approval, { readonly _tag: "Elicitation" }>,
  Effect.Success<ReturnType<NonNullable<Approvals["elicitation"]>>>
> = {
  params: serverRequests["mcpServer/elicitation/request"],
  toApproval: ({ message, requestedSchema, serverName, url }) => ({
    _tag: "Elicitation",
    server: serverName,
    message: message ?? "",
    ...orNothing("schema", requestedSchema),
    ...orNothing("url", url)
  }),
  handler: ({ elicitation }) => elicitation,
  decision: (decision) => typeof decision === "string" ? decision : "accept",
  body: (decision) =>
    typeof decision === "string"
      ? { action: decision, content: null, _meta: null }
      : { action: "accept", content: decision.content ?? {}, _meta: null },
  declined: "decline"
}

const isToolApproval = (params: ElicitationParams) => params._meta?.codex_approval_kind === "mcp_tool_call"

const ask = <P extends { readonly threadId: string; readonly turnId?: string | null }, A extends Approval, D>(
  kind: Kind<P, A, D>,
  params: P,
  { approvals, onFailure, timeout }: Options,
  info: ApprovalInfo
): Question => {
  const approval = kind.toApproval(params)
  const toAnswer = (decision: D, by: By): Answer => ({
    body: kind.body(decision, params),
    decision: kind.decision(decision),
    by
  })
  const handler = kind.handler(approvals)
  const answer = handler === undefined
    ? Effect.succeed(toAnswer(kind.declined, "default"))
    : leavable(Effect.suspend(() => handler(approval, info))).pipe(
      Effect.map((decision) => toAnswer(decision, "handler")),
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.succeed(toAnswer(kind.declined, "timeout"))
      }),
      Effect.exit,
      Effect.flatMap((exit) => {
        if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
        // also one that was interrupted from inside: a question that was withdrawn does not come here
        return Effect.as(onFailure(exit.cause), toAnswer(kind.declined, "failure"))
      })
    )
  return { threadId: params.threadId, turnId: params.turnId ?? undefined, approval, answer }
}

const asking = <P extends { readonly threadId: string; readonly turnId?: string | null }, A extends Approval, D>(
  kind: Kind<P, A, D>
) => {
  const decode = Schema.decodeUnknownOption(kind.params)
  return (params: unknown, options: Options, info: ApprovalInfo): Question | undefined => {
    const decoded = decode(params)
    return Option.isSome(decoded) ? ask(kind, decoded.value, options, info) : undefined
  }
}

const decodeElicitation = Schema.decodeUnknownOption(serverRequests["mcpServer/elicitation/request"])

const kinds = new Map<string, (params: unknown, options: Options, info: ApprovalInfo) => Question | undefined>([
  ["item/commandExecution/requestApproval", asking(command)],
  ["item/fileChange/requestApproval", asking(fileChange)],
  ["item/permissions/requestApproval", asking(permission)],
  ["item/tool/requestUserInput", asking(questions)],
  ["mcpServer/elicitation/request", (params, options, info) => {
    const decoded = decodeElicitation(params)
    if (Option.isNone(decoded)) return undefined
    return isToolApproval(decoded.value)
      ? ask(tool, decoded.value, options, info)
      : ask(elicitation, decoded.value, options, info)
  }]
])

/** What declines a question that cannot be read, and those of older versions. */
const declined = new Map<string, unknown>([
  ["item/commandExecution/requestApproval", { decision: "decline" }],
  ["item/fileChange/requestApproval", { decision: "decline" }],
  ["item/permissions/requestApproval", { permissions: {}, scope: "turn" }],
  ["item/tool/requestUserInput", { answers: {} }],
  ["mcpServer/elicitation/request", { action: "decline", content: null, _meta: null }],
  ["applyPatchApproval", { decision: { denied: { rejection: "declined" } } }],
  ["execCommandApproval", { decision: { denied: { rejection: "declined" } } }]
])

/**
 * What a request of codex asks: a question, the answer that declines one that cannot be read, or nothing of this kind.
 *
 * @internal
 */
export const read = (
  method: string,
  params: unknown,
  options: Options,
  info: ApprovalInfo
): { readonly question: Question } | { readonly declined: unknown } | undefined => {
  const question = kinds.get(method)?.(params, options, info)
  if (question !== undefined) return { question }
  return declined.has(method) ? { declined: declined.get(method) } : undefined
}

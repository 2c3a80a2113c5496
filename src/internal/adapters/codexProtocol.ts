/**
 * What is used of codex's app-server protocol, as lenient schemas: members that are not named are left alone, and members
 * that are not needed may be missing or null. Measured with codex 0.171.0; `npm run test:codex` compares the names here
 * with what the installed codex says of itself.
 *
 * @since 0.1.0
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Thread = { threadId: Schema.String }
const Turn = { ...Thread, turnId: Schema.String }
const Item = { ...Turn, itemId: Schema.String }

/** Anything that names itself: codex has some twenty types of items, and adds to them. */
const AnyItem = Schema.StructWithRest(
  Schema.Struct({ id: Schema.String, type: Schema.String }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

const TurnError = Schema.Struct({
  message: Schema.String,
  codexErrorInfo: maybe(Schema.Unknown),
  additionalDetails: maybe(Schema.String)
})

/** @internal */
export type TurnError = typeof TurnError.Type

const TurnState = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  error: maybe(TurnError),
  items: maybe(Schema.Array(Schema.Unknown))
})

/** @internal */
export type TurnState = typeof TurnState.Type

const Tokens = Schema.Struct({
  totalTokens: Schema.Finite,
  inputTokens: Schema.Finite,
  cachedInputTokens: maybe(Schema.Finite),
  outputTokens: Schema.Finite,
  reasoningOutputTokens: maybe(Schema.Finite)
})

/** @internal */
export type Tokens = typeof Tokens.Type

/** What concerns a conversation, a turn of it, or neither. */
const Scope = Schema.Struct({ threadId: maybe(Schema.String), turnId: maybe(Schema.String) })

/** @internal */
export type Scope = typeof Scope.Type

/** The notifications that mean something to us. @internal */
export const notifications = {
  "turn/started": Schema.Struct({ ...Thread, turn: TurnState }),
  "turn/completed": Schema.Struct({ ...Thread, turn: TurnState }),
  "item/started": Schema.Struct({ ...Turn, item: AnyItem }),
  "item/completed": Schema.Struct({ ...Turn, item: AnyItem }),
  "item/agentMessage/delta": Schema.Struct({ ...Item, delta: Schema.String }),
  "item/plan/delta": Schema.Struct({ ...Item, delta: Schema.String }),
  "item/reasoning/summaryTextDelta": Schema.Struct({ ...Item, delta: Schema.String, summaryIndex: Schema.Int }),
  "item/reasoning/textDelta": Schema.Struct({ ...Item, delta: Schema.String, contentIndex: Schema.Int }),
  "item/commandExecution/outputDelta": Schema.Struct({ ...Item, delta: Schema.String }),
  "item/fileChange/outputDelta": Schema.Struct({ ...Item, delta: Schema.String }),
  "item/mcpToolCall/progress": Schema.Struct({ ...Item, message: Schema.String }),
  "thread/tokenUsage/updated": Schema.Struct({
    ...Turn,
    tokenUsage: Schema.Struct({ total: Tokens, last: Tokens, modelContextWindow: maybe(Schema.Finite) })
  }),
  "thread/status/changed": Schema.Struct({ ...Thread, status: Schema.Struct({ type: Schema.String }) }),
  "serverRequest/resolved": Schema.Struct({
    ...Thread,
    requestId: Schema.Union([Schema.String, Schema.Finite])
  }),
  "error": Schema.Struct({ ...Turn, error: TurnError, willRetry: Schema.Boolean }),
  "warning": Schema.Struct({ threadId: maybe(Schema.String), message: Schema.String }),
  "guardianWarning": Schema.Struct({ ...Thread, message: Schema.String }),
  "configWarning": Schema.Struct({
    threadId: maybe(Schema.String),
    summary: Schema.String,
    details: maybe(Schema.String)
  }),
  "deprecationNotice": Schema.Struct({
    threadId: maybe(Schema.String),
    summary: Schema.String,
    details: maybe(Schema.String)
  }),
  "mcpServer/startupStatus/updated": Schema.Struct({
    threadId: maybe(Schema.String),
    name: Schema.String,
    status: Schema.String,
    error: maybe(Schema.String)
  })
} as const

/** The requests of codex, all of which are answered. @internal */
export const serverRequests = {
  "item/commandExecution/requestApproval": Schema.Struct({
    ...Item,
    approvalId: maybe(Schema.String),
    command: maybe(Schema.String),
    cwd: maybe(Schema.String),
    reason: maybe(Schema.String),
    proposedExecpolicyAmendment: maybe(Schema.Array(Schema.String))
  }),
  "item/fileChange/requestApproval": Schema.Struct({ ...Item, reason: maybe(Schema.String) }),
  "item/permissions/requestApproval": Schema.Struct({
    ...Item,
    cwd: maybe(Schema.String),
    reason: maybe(Schema.String),
    permissions: Schema.Record(Schema.String, Schema.Unknown)
  }),
  "item/tool/requestUserInput": Schema.Struct({
    ...Item,
    questions: Schema.Array(Schema.Struct({
      id: Schema.String,
      header: maybe(Schema.String),
      question: Schema.String,
      options: maybe(Schema.Array(Schema.Struct({ label: Schema.String, description: maybe(Schema.String) })))
    }))
  }),
  "mcpServer/elicitation/request": Schema.Struct({
    ...Thread,
    turnId: maybe(Schema.String),
    serverName: Schema.String,
    mode: Schema.String,
    message: maybe(Schema.String),
    requestedSchema: maybe(Schema.Unknown),
    url: maybe(Schema.String),
    _meta: maybe(Schema.Struct({
      codex_approval_kind: maybe(Schema.String),
      tool_name: maybe(Schema.String),
      tool_params: maybe(Schema.Unknown),
      persist: maybe(Schema.Unknown)
    }))
  }),
  "item/tool/call": Schema.Struct({
    ...Turn,
    callId: Schema.String,
    tool: Schema.String,
    arguments: Schema.Unknown
  })
} as const

/** What our own requests are answered with. @internal */
export const results = {
  "initialize": Schema.Struct({ userAgent: Schema.String }),
  "thread/start": Schema.Struct({ thread: Schema.Struct({ id: Schema.String }), model: maybe(Schema.String) }),
  "thread/resume": Schema.Struct({ thread: Schema.Struct({ id: Schema.String }), model: maybe(Schema.String) }),
  "thread/turns/list": Schema.Struct({ data: Schema.Array(TurnState) }),
  "turn/start": Schema.Struct({ turn: Schema.Struct({ id: Schema.String }) })
} as const

/** Requests of ours whose results are not looked at. @internal */
export const commands = [
  "turn/steer",
  "turn/interrupt",
  "thread/unsubscribe",
  "config/mcpServer/reload"
] as const

/** Notifications that would only be dropped; codex can spare itself the work. @internal */
export const optedOut: ReadonlyArray<string> = [
  "account/rateLimits/updated",
  "remoteControl/status/changed",
  "thread/readState/changed",
  "thread/settings/updated",
  "app/list/updated",
  "skills/changed"
]

/** Known, and nothing that would help whoever follows a turn. @internal */
export const ignored: ReadonlySet<string> = new Set([
  ...optedOut,
  "thread/started",
  "item/reasoning/summaryPartAdded"
])

/** @internal */
export type NotificationMethod = keyof typeof notifications

/** @internal */
export type ServerRequestMethod = keyof typeof serverRequests

/** A notification that is known and could be read. @internal */
export type Known = {
  readonly [M in NotificationMethod]: { readonly method: M; readonly params: (typeof notifications)[M]["Type"] }
}[NotificationMethod]

const decoders = new Map<string, (params: unknown) => Option.Option<unknown>>(
  Object.entries(notifications).map(([method, schema]) => [method, Schema.decodeUnknownOption(schema)])
)

/** Reads a notification; `undefined` when it is unknown, or not as it was when this was written. @internal */
export const decode = (method: string, params: unknown): Known | undefined => {
  const decoded = decoders.get(method)?.(params)
  if (decoded === undefined || Option.isNone(decoded)) return undefined
  // the decoder of this method made them
  return { method, params: decoded.value } as Known
}

/** @internal */
export const decodeScope: (params: unknown) => Option.Option<Scope> = Schema.decodeUnknownOption(Scope)

/**
 * The vocabulary of JSON-RPC 2.0 as Effect Schemas: request ids, requests, notifications, responses, the error object
 * and one table of error codes, with the functions that turn text into messages and messages into text.
 *
 * The one idea to know: a message that is not valid is described as data ({@link InvalidMessage}: which rule it breaks
 * and which id it carries), so that its sender can always be answered and its neighbours are not touched.
 *
 * The barrel exports this module as `JsonRpc`, since programs import Effect's own `Schema` too.
 *
 * @module JsonRpc
 * @since 0.1.0
 */
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { shorten } from "./internal/shorten.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * The error codes of JSON-RPC 2.0 and the two that the protocols on top of it share.
 *
 * **Details**
 *
 * Emitted by this library: `ParseError`, `InvalidRequest`, `MethodNotFound`, `InvalidParams`, `InternalError` and, for
 * a request cancelled in the way of the Language Server Protocol, `RequestCancelled`. `Overloaded` is recognised only:
 * some servers answer with it when the same call may succeed later.
 *
 * @see https://www.jsonrpc.org/specification#error_object
 * @category errors
 * @since 0.1.0
 */
export const ErrorCode = {
  ParseError: -32700,
  InvalidRequest: -32600,
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  RequestCancelled: -32800,
  Overloaded: -32001
} as const

/**
 * The error object of a JSON-RPC response: what a handler fails with, and what a caller receives.
 *
 * **Details**
 *
 * `code`, `message` and `data` travel unchanged. `data` may be any JSON value; when it is absent, the member is absent
 * on the wire too.
 *
 * **Example** (Failing a handler)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as JsonRpc from "effect-stdio/Schema"
 *
 * const handler = Effect.fail(new JsonRpc.JsonRpcError({ code: 4001, message: "no such account" }))
 * ```
 *
 * @see https://www.jsonrpc.org/specification#error_object
 * @category errors
 * @since 0.1.0
 */
export class JsonRpcError extends Schema.TaggedError<JsonRpcError>()("JsonRpcError", {
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
}) {
  /** The requested method does not exist. */
  static methodNotFound(method: string): JsonRpcError {
    return new JsonRpcError({ code: ErrorCode.MethodNotFound, message: `Method not found: ${shorten(method)}` })
  }

  /** The params of a known method do not fit it. `detail` says where and what was expected. */
  static invalidParams(detail: string): JsonRpcError {
    return new JsonRpcError({ code: ErrorCode.InvalidParams, message: `Invalid params: ${detail}` })
  }

  /** Something went wrong on our side; the message must not carry what the other side may not see. */
  static internal(message = "Internal error"): JsonRpcError {
    return new JsonRpcError({ code: ErrorCode.InternalError, message })
  }
}

/**
 * Which rule a message breaks.
 *
 * @category errors
 * @since 0.1.0
 */
export type InvalidReason = typeof InvalidReasons.Type

const InvalidReasons = Schema.Literals([
  "InvalidJson",
  "NestedTooDeeply",
  "NotAMessage",
  "EmptyBatch",
  "BatchTooLong",
  "BatchRefused",
  "InvalidVersion",
  "InvalidId",
  "InvalidMethod",
  "InvalidParams",
  "InvalidResponse"
])

/**
 * Describes a frame that is not a valid message.
 *
 * **Details**
 *
 * `id` is the id to answer under: the one that could be read, else null. `responseShaped` is true for a frame with a
 * `result` or an `error` and without a method: such a frame is never answered, whatever is wrong with it. The message
 * names the rule and never repeats content of the frame.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidMessage extends Schema.TaggedError<InvalidMessage>()("InvalidMessage", {
  reason: InvalidReasons,
  id: Schema.NullOr(Schema.Union([Schema.String, Schema.Int])),
  responseShaped: Schema.Boolean
}) {
  override get message(): string {
    return describeInvalid[this.reason]
  }

  /** The JSON-RPC code that reports this fault. */
  get code(): number {
    return this.reason === "InvalidJson" ? ErrorCode.ParseError : ErrorCode.InvalidRequest
  }
}

const describeInvalid: Record<InvalidReason, string> = {
  InvalidJson: "Parse error: the frame is not valid JSON",
  NestedTooDeeply: "Invalid request: nested deeper than 1000 levels",
  NotAMessage: "Invalid request: not a JSON-RPC message (an object with a method, a result or an error)",
  EmptyBatch: "Invalid request: an empty batch",
  BatchTooLong: "Invalid request: a batch of more than 1000 messages",
  BatchRefused: "Invalid request: batches are not supported on this connection",
  InvalidVersion: "Invalid request: jsonrpc must be \"2.0\"",
  InvalidId: "Invalid request: id must be a string or an integer between -(2^53 - 1) and 2^53 - 1",
  InvalidMethod: "Invalid request: method must be a string",
  InvalidParams: "Invalid request: params must be an object or an array",
  InvalidResponse: "Invalid response: it must have either a result or an error with an integer code and a message"
}

/**
 * Says why a value could not be written as JSON: a cycle, a BigInt, a throwing `toJSON` or getter, or nesting that
 * exceeds the serialiser's stack.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotSerializable extends Schema.TaggedError<NotSerializable>()("NotSerializable", {
  cause: Schema.Defect()
}) {
  override readonly message = "The value cannot be written as JSON"
}

// -----------------------------------------------------------------------------
// schemas
// -----------------------------------------------------------------------------

/**
 * Schema for a request id: a string or a safe integer.
 *
 * **Details**
 *
 * `1` and `"1"` are two ids; `0`, `-1` and `""` are ids. Fractions and integers beyond 2^53 - 1 are refused rather than
 * rounded. Null is no id of a request; only an error response whose request could not be read carries it.
 *
 * @see https://www.jsonrpc.org/specification#request_object
 * @category schemas
 * @since 0.1.0
 */
export const Id: Schema.Codec<Id> = Schema.Union([Schema.String, Schema.Int])

/**
 * A request id: a string or a safe integer.
 *
 * @category models
 * @since 0.1.0
 */
export type Id = string | number

const ErrorObject = Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
})

// null and undefined params count as absent: clients of several languages write `"params": null` for "none"
const Params = Schema.optionalKey(Schema.NullishOr(Schema.ObjectKeyword))

const strictVersion = { jsonrpc: Schema.Literal("2.0") }
const lenientVersion = { jsonrpc: Schema.optionalKey(Schema.Literal("2.0")) }

const requestFields = { id: Id, method: Schema.String, params: Params }
const notificationFields = { method: Schema.String, params: Params }
const successFields = { id: Id, result: Schema.Unknown, error: Schema.optionalKey(Schema.Null) }
const failureFields = { id: Schema.optionalKey(Schema.NullOr(Id)), error: ErrorObject }

/**
 * Schema for a request: it has an id and wants exactly one response.
 *
 * @see https://www.jsonrpc.org/specification#request_object
 * @category schemas
 * @since 0.1.0
 */
export const Request = Schema.Struct({ ...strictVersion, ...requestFields })

/**
 * A request: it has an id and wants exactly one response.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly jsonrpc?: "2.0"
  readonly id: Id
  readonly method: string
  readonly params?: object | null | undefined
}

/**
 * Schema for a notification: no id, no response.
 *
 * @see https://www.jsonrpc.org/specification#notification
 * @category schemas
 * @since 0.1.0
 */
export const Notification = Schema.Struct({ ...strictVersion, ...notificationFields })

/**
 * A notification: no id, no response.
 *
 * @category models
 * @since 0.1.0
 */
export interface Notification {
  readonly jsonrpc?: "2.0"
  readonly method: string
  readonly params?: object | null | undefined
}

/**
 * Schema for a response with a result. An `error` member of null beside it is tolerated.
 *
 * @see https://www.jsonrpc.org/specification#response_object
 * @category schemas
 * @since 0.1.0
 */
export const Success = Schema.Struct({ ...strictVersion, ...successFields })

/**
 * A response with a result.
 *
 * @category models
 * @since 0.1.0
 */
export interface Success {
  readonly jsonrpc?: "2.0"
  readonly id: Id
  readonly result: unknown
}

/**
 * Schema for a response with an error. Its `id` may be null or missing when the request could not be read.
 *
 * @see https://www.jsonrpc.org/specification#error_object
 * @category schemas
 * @since 0.1.0
 */
export const Failure = Schema.Struct({ ...strictVersion, ...failureFields })

/**
 * A response with an error.
 *
 * @category models
 * @since 0.1.0
 */
export interface Failure {
  readonly jsonrpc?: "2.0"
  readonly id?: Id | null
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/**
 * Schema for any single message.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Message = Schema.Union([Request, Notification, Success, Failure])

/**
 * Any single message; tell them apart with {@link isRequest}, {@link isNotification}, {@link isSuccess} and
 * {@link isFailure}.
 *
 * @category models
 * @since 0.1.0
 */
export type Message = Request | Notification | Success | Failure

/**
 * How the `jsonrpc` member is treated.
 *
 * **Details**
 *
 * - `strict` (the default everywhere): it must be `"2.0"`, and is written.
 * - `lenient`: it may be missing, and is written.
 * - `omit`: it may be missing, and is not written (codex app-server).
 *
 * @category models
 * @since 0.1.0
 */
export type Profile = "strict" | "lenient" | "omit"

// -----------------------------------------------------------------------------
// guards
// -----------------------------------------------------------------------------

/**
 * Tells whether a decoded message is a request.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRequest = (message: Message): message is Request => "method" in message && "id" in message

/**
 * Tells whether a decoded message is a notification.
 *
 * @category guards
 * @since 0.1.0
 */
export const isNotification = (message: Message): message is Notification => "method" in message && !("id" in message)

/**
 * Tells whether a decoded message is a response with a result.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSuccess = (message: Message): message is Success => "result" in message

/**
 * Tells whether a decoded message is a response with an error.
 *
 * @category guards
 * @since 0.1.0
 */
export const isFailure = (message: Message): message is Failure => !("method" in message) && !("result" in message)

/**
 * Tells whether a value is a request id.
 *
 * @category guards
 * @since 0.1.0
 */
export const isId = (value: unknown): value is Id => typeof value === "string" || Number.isSafeInteger(value)

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * Returns the response that carries a result. A result of undefined becomes null: a response without a result member
 * is not a response.
 *
 * @category constructors
 * @since 0.1.0
 */
export const success = (id: Id, result: unknown): Success => ({ jsonrpc: "2.0", id, result: result ?? null })

/**
 * Returns the response that carries an error; without `data` there is no `data` member.
 *
 * @category constructors
 * @since 0.1.0
 */
export const failure = (
  id: Id | null,
  error: { readonly code: number; readonly message: string; readonly data?: unknown }
): Failure => ({
  jsonrpc: "2.0",
  id,
  error: error.data === undefined
    ? { code: error.code, message: error.message }
    : { code: error.code, message: error.message, data: error.data }
})

/**
 * Returns the id that a value can stand for in a response: strings and safe integers stay, anything else is null.
 *
 * @category constructors
 * @since 0.1.0
 */
export const idFrom = (value: unknown): Id | null => isId(value) ? value : null

/**
 * Returns a readable message for anything that was thrown.
 *
 * @category constructors
 * @since 0.1.0
 */
export const messageFrom = (thrown: unknown): string => {
  try {
    const message = Predicate.hasProperty(thrown, "message") ? thrown.message : undefined
    if (typeof message === "string" && message !== "") return message
    return thrown instanceof Error && message === "" ? thrown.name : String(thrown)
  } catch {
    // an object whose message or toString does not work
    return "unknown error"
  }
}

// -----------------------------------------------------------------------------
// decoding
// -----------------------------------------------------------------------------

/**
 * Deepest nesting of arrays and objects that {@link parse} accepts: 1,000 levels.
 *
 * @category decoding
 * @since 0.1.0
 */
export const maxDepth: number = 1_000

/**
 * Reads JSON text.
 *
 * **Details**
 *
 * Fails with `InvalidJson` or, where arrays and objects nest deeper than {@link maxDepth}, with `NestedTooDeeply`: the
 * engine reads such text but cannot write it again. When a key is doubled, the last one wins.
 *
 * @category decoding
 * @since 0.1.0
 */
export const parse = (text: string): Result.Result<unknown, InvalidMessage> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return Result.fail(invalid("InvalidJson", null))
  }
  // a level takes two characters at least, so that short text needs no look
  if (text.length > maxDepth * 2 && exceedsDepth(value, maxDepth)) {
    return Result.fail(new InvalidMessage({ reason: "NestedTooDeeply", ...salvage(value) }))
  }
  return Result.succeed(value)
}

/**
 * Largest number of messages that a peer accepts in one batch: 1,000.
 *
 * @category decoding
 * @since 0.1.0
 */
export const maxBatchLength: number = 1_000

/**
 * Decodes one JSON value as a message.
 *
 * **Details**
 *
 * Unknown members are dropped. The failure names the first rule that is broken, in the order version, method, id,
 * params, and carries the id where one can be read.
 *
 * **Example** (Decoding a line)
 *
 * ```ts
 * import * as Result from "effect/Result"
 * import * as JsonRpc from "effect-stdio/Schema"
 *
 * const message = Result.flatMap(JsonRpc.parse("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), JsonRpc.decode)
 * // Result.succeed({ jsonrpc: "2.0", id: 1, method: "ping" })
 * ```
 *
 * @category decoding
 * @since 0.1.0
 */
export const decode = (value: unknown): Result.Result<Message, InvalidMessage> => decodeStrict(value)

/**
 * Returns the decoder of a {@link Profile}; `decodeWith("strict")` is {@link decode}.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodeWith = (profile: Profile): (value: unknown) => Result.Result<Message, InvalidMessage> =>
  profile === "strict" ? decodeStrict : decodeLenient

const makeDecoder = (version: typeof strictVersion | typeof lenientVersion) => {
  const request = Schema.decodeUnknownExit(Schema.Struct({ ...version, ...requestFields }))
  const notification = Schema.decodeUnknownExit(Schema.Struct({ ...version, ...notificationFields }))
  const success = Schema.decodeUnknownExit(Schema.Struct({ ...version, ...successFields }))
  const failure = Schema.decodeUnknownExit(Schema.Struct({ ...version, ...failureFields }))
  const versionMissing = version === lenientVersion

  return (value: unknown): Result.Result<Message, InvalidMessage> => {
    if (!Predicate.isObject(value)) return Result.fail(invalid("NotAMessage", null))
    if (isPlainRequest(value)) return Result.succeed(value)
    // the members that decide the kind are read once; the schema of that kind then checks the rest
    const decoded: Exit.Exit<Message, unknown> = "method" in value
      ? "id" in value ? request(value) : notification(value)
      : isErrorShaped(value)
      ? "result" in value && value.result !== null ? Exit.fail(undefined) : failure(value)
      : success(value)
    if (Exit.isSuccess(decoded)) return Result.succeed(decoded.value)
    return Result.fail(diagnose(value, versionMissing))
  }
}

/** Whether a value is a request and nothing else: most are, and are spared the schemas. */
const isPlainRequest = (value: object): value is Request => {
  let members = 0
  for (const _ in value) members++
  return members === 4 && "jsonrpc" in value && value.jsonrpc === "2.0" && "id" in value && isId(value.id)
    && "method" in value && typeof value.method === "string"
    && "params" in value && typeof value.params === "object"
}

const isErrorShaped = (value: { readonly [x: PropertyKey]: unknown }) =>
  "error" in value && value.error !== null && value.error !== undefined

const invalid = (reason: InvalidReason, id: Id | null, responseShaped = false) =>
  new InvalidMessage({ reason, id, responseShaped })

/** What can be said of a value that is not a message: the id to answer under, and whether it must be answered. */
const salvage = (value: unknown): { readonly id: Id | null; readonly responseShaped: boolean } => ({
  id: Predicate.isObject(value) ? idFrom(value.id) : null,
  responseShaped: Predicate.isObject(value) && !("method" in value) && ("result" in value || "error" in value)
})

const diagnose = (value: { readonly [x: PropertyKey]: unknown }, versionMayBeMissing: boolean): InvalidMessage => {
  const { id, responseShaped } = salvage(value)
  if (value.jsonrpc !== "2.0" && !(versionMayBeMissing && !("jsonrpc" in value))) {
    return invalid("InvalidVersion", id, responseShaped)
  }
  if (responseShaped) {
    return invalid("id" in value && value.id !== null && id === null ? "InvalidId" : "InvalidResponse", id, true)
  }
  if (!("method" in value)) return invalid("NotAMessage", id)
  if (typeof value.method !== "string") return invalid("InvalidMethod", id)
  if ("id" in value && id === null) return invalid("InvalidId", null)
  return invalid("InvalidParams", id)
}

const decodeStrict = makeDecoder(strictVersion)
const decodeLenient = makeDecoder(lenientVersion)

/** Walks level by level instead of recursing: the depth is what is not known. */
const exceedsDepth = (value: unknown, limit: number): boolean => {
  let level: Array<object> = typeof value === "object" && value !== null ? [value] : []
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > limit) return true
    const next: Array<object> = []
    for (const parent of level) {
      for (const child of Array.isArray(parent) ? parent : Object.values(parent)) {
        if (typeof child === "object" && child !== null) next.push(child)
      }
    }
    level = next
  }
  return false
}

// -----------------------------------------------------------------------------
// encoding
// -----------------------------------------------------------------------------

/**
 * Writes a value as JSON text that every strict reader accepts.
 *
 * **Details**
 *
 * A value JSON has no text for (undefined, a function, a symbol) is written as null. Half of a surrogate pair, as a
 * string cut inside an emoji leaves it, is written as U+FFFD: several parsers refuse the escape that JavaScript would
 * write. Fails with {@link NotSerializable} where the value has no JSON text at all.
 *
 * @category encoding
 * @since 0.1.0
 */
export const stringify = (value: unknown): Result.Result<string, NotSerializable> => {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    return Result.fail(new NotSerializable({ cause }))
  }
  if (text === undefined) return Result.succeed("null")
  return Result.succeed(replaceLoneSurrogates(text))
}

// JSON.stringify escapes a surrogate only when it stands alone; an escaped backslash before "ud83d" is user text
const replaceLoneSurrogates = (json: string): string =>
  json.includes("\\ud")
    ? json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (match) => match === "\\\\" ? match : "\ufffd")
    : json

/**
 * Writes a message as JSON text in a {@link Profile}.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encode = (message: Message, profile: Profile = "strict"): Result.Result<string, NotSerializable> => {
  if (isSuccess(message)) {
    const head = profile === "omit" ? "{" : `{"jsonrpc":"2.0",`
    // a result without JSON text is written as null: a response without a result is none
    return Result.map(stringify(message.result), (result) => `${head}"id":${idText(message.id)},"result":${result}}`)
  }
  const { jsonrpc: _, ...members } = message
  return stringify(profile === "omit" ? members : { jsonrpc: "2.0", ...members })
}

// V8 keeps the text of a number that `String` made, and of the next thousands too
const idText = (id: Id): string => replaceLoneSurrogates(JSON.stringify(id))

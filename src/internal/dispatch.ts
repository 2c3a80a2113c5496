/**
 * The reading side of a peer: what comes in frames, and to whom each message goes. Nothing here waits.
 *
 * @since 0.1.0
 */
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { Cancellation } from "../Cancellation.ts"
import * as Framing from "../Framing.ts"
import type * as Peer from "../Peer.ts"
import * as JsonRpc from "../Schema.ts"
import type { Bad, BadInput } from "./badInput.ts"
import type { Calls } from "./calls.ts"
import type { Outgoing } from "./outgoing.ts"
import type { Batch, Replies } from "./replies.ts"
import type { Serving } from "./serving.ts"
import type { Tapping } from "./tapping.ts"

/** @internal */
export interface Options {
  readonly profile: JsonRpc.Profile
  readonly batch: Peer.Options["batch"]
  readonly cancellation: Cancellation
  readonly badInput: BadInput
  readonly calls: Calls<JsonRpc.JsonRpcError | Peer.PeerError>
  readonly outgoing: Outgoing
  readonly replies: Replies
  readonly serving: Serving
  readonly tapping: Tapping | undefined
  readonly onNotification: (message: JsonRpc.Notification, bytes: number) => void
  readonly safely: <A>(evaluate: () => A, otherwise: A) => A
}

/** @internal */
export interface Dispatch {
  readonly item: (item: Framing.Item) => void
  /** Valid messages so far. */
  readonly messages: () => number
  readonly requests: () => number
  readonly strayResponses: () => number
}

/** What a message takes beside its bytes, roughly. */
const MESSAGE_BYTES = 256

/** @internal */
export const makeDispatch = (options: Options): Dispatch => {
  const { badInput, calls, cancellation, onNotification, outgoing, replies, safely, serving, tapping } = options
  const decode = JsonRpc.decodeWith(options.profile)
  let messages = 0
  let requests = 0
  let strayResponses = 0

  const refuse = (bad: Bad, code: number, size: number, framing: Framing.Kind, batch?: Batch) => {
    tapping?.invalid(bad.id, size)
    badInput.refuse(bad, code, framing, batch)
  }

  const onMessage = (value: unknown, size: number, framing: Framing.Kind, batch: Batch | undefined) => {
    const decoded = decode(value)
    if (Result.isFailure(decoded)) return refuse(decoded.failure, decoded.failure.code, size, framing, batch)
    messages++
    const message = decoded.success
    tapping?.incoming(message, size)
    if (messages === 1) outgoing.learnFraming(framing)
    if (JsonRpc.isRequest(message)) {
      requests++
      serving.request(message, size + MESSAGE_BYTES, framing, batch)
    } else if (JsonRpc.isNotification(message)) {
      if (message.method !== cancellation.method) return onNotification(message, size + MESSAGE_BYTES)
      const id = safely(() => cancellation.requestId(message.params), undefined)
      if (id !== undefined) serving.cancel(id)
    } else if (!settleCall(message)) {
      strayResponses++
    }
  }

  const settleCall = (message: JsonRpc.Success | JsonRpc.Failure): boolean => {
    if (JsonRpc.isSuccess(message)) return calls.settle(message.id, () => Exit.succeed(message.result))
    if (message.id === undefined || message.id === null) return false
    return calls.settle(message.id, () => Exit.fail(new JsonRpc.JsonRpcError(message.error)))
  }

  const batchPolicy = () => {
    const { batch = "serve" } = options
    return typeof batch === "function" ? safely(batch, "refuse") : batch
  }

  const onBatch = (values: ReadonlyArray<unknown>, size: number, framing: Framing.Kind) => {
    const policy = batchPolicy()
    const reason = values.length === 0
      ? "EmptyBatch"
      : policy === "refuse"
      ? "BatchRefused"
      : values.length > JsonRpc.maxBatchLength
      ? "BatchTooLong"
      : undefined
    if (reason !== undefined) {
      const invalid = new JsonRpc.InvalidMessage({ reason, id: null, responseShaped: false })
      return refuse(invalid, invalid.code, size, framing)
    }
    const batch: Batch = { open: 1, replies: [] }
    for (const value of values) onMessage(value, Math.ceil(size / values.length), framing, batch)
    batch.open--
    replies.settleBatch(batch, framing)
  }

  const item = (item: Framing.Item) => {
    const { framing } = item
    if (item._tag === "Fault") {
      // one that has an id is a message, though none that can be read
      if (messages === 0 && item.id === null) badInput.addNoise(undefined, item.size, item.sample)
      return refuse(item, faultCode(item), item.size, framing)
    }
    const size = item.bytes.length
    const text = Framing.text(item)
    const parsed = Result.isSuccess(text) ? JsonRpc.parse(text.success) : undefined
    if (parsed !== undefined && Result.isSuccess(parsed)) {
      if (Array.isArray(parsed.success)) onBatch(parsed.success, size, framing)
      else onMessage(parsed.success, size, framing, undefined)
    } else if (Result.isFailure(text)) {
      refuse(text.failure, faultCode(text.failure), size, framing)
    } else if (parsed !== undefined) {
      refuse(parsed.failure, parsed.failure.code, size, framing)
    }
    if (messages === 0) badInput.addNoise(item.bytes, size)
  }

  return {
    item,
    messages: () => messages,
    requests: () => requests,
    strayResponses: () => strayResponses
  }
}

const faultCode = (fault: Framing.Fault) =>
  fault.reason === "TooLarge" ? JsonRpc.ErrorCode.InvalidRequest : JsonRpc.ErrorCode.ParseError

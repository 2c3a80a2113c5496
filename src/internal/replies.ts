/**
 * The way of a reply to the wire: as text, alone or with the others of its batch, in the framing of its request.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import type * as Framing from "../Framing.ts"
import * as JsonRpc from "../Schema.ts"
import type * as Transport from "../Transport.ts"
import type { Tapping } from "./tapping.ts"

/** @internal */
export interface ReplyTo {
  readonly framing: Framing.Kind
  readonly batch: Batch | undefined
}

/** Collects the replies of one batch; they leave together when the last member is settled. @internal */
export interface Batch {
  open: number
  readonly replies: Array<string>
}

// a class for the sake of V8's collector, see docs/performance.md
class Success implements JsonRpc.Success {
  readonly id: JsonRpc.Id
  readonly result: unknown

  constructor(id: JsonRpc.Id, result: unknown) {
    this.id = id
    this.result = result
  }
}

interface ErrorMembers {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** @internal */
export interface Replies {
  /** Sends a result, or keeps it for its batch; returns whether it had to become an error. */
  readonly succeed: (id: JsonRpc.Id, result: unknown, to: ReplyTo) => boolean
  /** Sends an error, or keeps it for its batch; returns true, as an error is one. */
  readonly fail: (id: JsonRpc.Id | null, error: ErrorMembers, to: ReplyTo) => boolean
  /** Sends the replies of a batch when none of its members is open. */
  readonly settleBatch: (batch: Batch, framing: Framing.Kind) => void
}

/** @internal */
export const makeReplies = (
  transport: Transport.Transport["Service"],
  profile: JsonRpc.Profile,
  touch: () => void,
  tapping?: Tapping
): Replies => {
  const write = (text: string, framing: Framing.Kind) => {
    transport.sendTextUnsafe(text, framing)
    touch()
  }

  const exceeds = (text: string): number | undefined => {
    // a UTF-16 code unit takes three bytes at most
    if (text.length * 3 <= transport.maxSendBytes) return undefined
    const size = new TextEncoder().encode(text).length
    return size > transport.maxSendBytes ? size : undefined
  }

  /** Tells the tap of a reply that will leave: a batch is not looked at again. */
  const tell = (message: JsonRpc.Message, text: string) => {
    if (!transport.isOutputClosedUnsafe()) tapping?.outgoing(message, text)
  }

  const put = (text: string, to: ReplyTo) => {
    if (to.batch === undefined) write(text, to.framing)
    else to.batch.replies.push(text)
  }

  /** Sends a message or, where that cannot be, the error that says so; returns whether it was the message. */
  const send = (id: JsonRpc.Id | null, message: JsonRpc.Message, to: ReplyTo): boolean => {
    const encoded = JsonRpc.encode(message, profile)
    const size = Result.isFailure(encoded) ? undefined : exceeds(encoded.success)
    if (Result.isSuccess(encoded) && size === undefined) {
      tell(message, encoded.success)
      put(encoded.success, to)
      return true
    }
    const problem = size === undefined
      ? "The result cannot be written as JSON"
      : `The result has ${size} bytes, this connection sends at most ${transport.maxSendBytes}`
    const error = JsonRpc.failure(id, JsonRpc.JsonRpcError.internal(problem))
    const text = Result.getOrThrow(JsonRpc.encode(error, profile))
    tell(error, text)
    put(text, to)
    return false
  }

  return {
    succeed: (id, result, to) => !send(id, new Success(id, result), to),
    fail: (id, error, to) => {
      send(id, JsonRpc.failure(id, error), to)
      return true
    },
    settleBatch: (batch, framing) => {
      if (batch.open !== 0 || batch.replies.length === 0) return
      const text = `[${batch.replies.join(",")}]`
      // too long together: one by one, which a client can tell apart by their ids
      const texts = exceeds(text) === undefined ? [text] : batch.replies
      for (const part of texts) write(part, framing)
    }
  }
}

/**
 * The way of a reply to the wire: as text, alone or with the others of its batch, in the framing of its request.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Framing from "../Framing.ts"
import * as JsonRpc from "../Schema.ts"
import type * as Transport from "../Transport.ts"

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

/** @internal */
export interface Replies {
  /** Sends a reply, or keeps it for its batch; returns whether it is an error. */
  readonly reply: (message: JsonRpc.Success | JsonRpc.Failure, to: ReplyTo) => boolean
  /** Sends the replies of a batch when none of its members is open. */
  readonly settleBatch: (batch: Batch, framing: Framing.Kind) => void
}

/** @internal */
export const makeReplies = (
  transport: Transport.Transport["Service"],
  profile: JsonRpc.Profile,
  touch: () => void
): Replies => {
  const write = (text: string, framing: Framing.Kind) => {
    transport.sendUnsafe(Framing.frameOfText(text, framing))
    touch()
  }

  const exceeds = (text: string): number | undefined => {
    // a UTF-16 code unit takes three bytes at most
    if (text.length * 3 <= transport.maxSendBytes) return undefined
    const size = new TextEncoder().encode(text).length
    return size > transport.maxSendBytes ? size : undefined
  }

  /** The text of a reply or, where that cannot be sent, of the error that says so. */
  const encode = (message: JsonRpc.Success | JsonRpc.Failure): { readonly text: string; readonly isError: boolean } => {
    const encoded = JsonRpc.encode(message, profile)
    if (Result.isFailure(encoded)) {
      return { text: encodeError(message.id, "The result cannot be written as JSON"), isError: true }
    }
    const size = exceeds(encoded.success)
    if (size === undefined) return { text: encoded.success, isError: JsonRpc.isFailure(message) }
    const problem = `The result has ${size} bytes, this connection sends at most ${transport.maxSendBytes}`
    return { text: encodeError(message.id, problem), isError: true }
  }

  const encodeError = (id: JsonRpc.Id | null | undefined, message: string) =>
    Result.getOrThrow(JsonRpc.encode(JsonRpc.failure(id ?? null, JsonRpc.JsonRpcError.internal(message)), profile))

  return {
    reply: (message, to) => {
      const { isError, text } = encode(message)
      if (to.batch === undefined) write(text, to.framing)
      else to.batch.replies.push(text)
      return isError
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

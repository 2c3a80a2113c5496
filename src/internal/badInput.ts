/**
 * What becomes of input that is no valid message: an answer where one can be given, a count in any case, and an end
 * where nothing else comes.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import type { Kind } from "../Framing.ts"
import type * as Lifecycle from "../Lifecycle.ts"
import type * as Peer from "../Peer.ts"
import * as JsonRpc from "../Schema.ts"
import * as Transport from "../Transport.ts"
import type { Batch, Replies } from "./replies.ts"

/** @internal */
export interface Bad {
  readonly reason: Lifecycle.BadInputReason
  readonly message: string
  readonly id: JsonRpc.Id | null
  readonly responseShaped: boolean
}

/** @internal */
export interface BadInput {
  readonly refuse: (bad: Bad, code: number, framing: Kind, batch: Batch | undefined) => void
  /** Counts bytes that held no message, before the first valid one. */
  readonly addNoise: (bytes: Uint8Array | undefined, size: number, sample?: string) => void
  /** The failure of a connection on which nothing else came. */
  readonly noise: () => Transport.TransportError | undefined
  readonly count: () => number
  readonly unanswered: () => number
}

/** @internal */
export interface Options {
  readonly policy: NonNullable<Peer.Options["onBadInput"]>
  /** Bytes without a message that are passed over at the start. */
  readonly maxNoise: number
  readonly clock: Clock.Clock
  readonly replies: Replies
  readonly observe: ((event: Lifecycle.Event) => void) | undefined
  readonly counted: () => void
  /** Fails the call that waits under this id; false when there is none. */
  readonly settleUnreadable: (id: JsonRpc.Id, detail: string) => boolean
  readonly safely: <A>(evaluate: () => A, otherwise: A) => A
}

const REPLIES_PER_SECOND = 10
const SAMPLE_BYTES = 64

/** @internal */
export const makeBadInput = (options: Options): BadInput => {
  const { clock, observe, policy, replies } = options
  let count = 0
  let unanswered = 0
  let windowStart = -Infinity
  let windowReplies = 0
  let noiseBytes = 0
  let sample: string | undefined
  let failure: Transport.TransportError | undefined

  /** Replies with id null are rationed: two sides that answer each other's errors must not do so for ever. */
  const mayAnswerNull = () => {
    const now = clock.currentTimeMillisUnsafe()
    // the wall clock may be set back
    if (Math.abs(now - windowStart) >= 1_000) {
      windowStart = now
      windowReplies = 0
    }
    return windowReplies++ < REPLIES_PER_SECOND
  }

  const answerTo = ({ id, reason }: Bad, error: { readonly code: number; readonly message: string }) => {
    if (policy === "reply") return error
    if (policy === "count") return undefined
    return options.safely(() => policy({ reason, id, error: new JsonRpc.JsonRpcError(error) }), error)
  }

  return {
    refuse: (bad, code, framing, batch) => {
      count++
      options.counted()
      observe?.({ _tag: "BadInput", reason: bad.reason, message: bad.message })
      const isAnswer = bad.responseShaped || bad.reason === "NotAMessage"
      if (bad.id !== null && isAnswer && options.settleUnreadable(bad.id, bad.message)) return
      if (bad.responseShaped) return
      const answer = answerTo(bad, { code, message: bad.message })
      if (answer !== undefined && (bad.id !== null || mayAnswerNull())) {
        replies.fail(bad.id, answer, { framing, batch })
      } else {
        unanswered++
      }
    },
    addNoise: (bytes, size, text) => {
      noiseBytes += size
      sample ??= bytes === undefined ? text : printable(bytes.subarray(0, SAMPLE_BYTES))
      if (noiseBytes < options.maxNoise || failure !== undefined) return
      const reason = new Transport.NotJsonRpc({ size: noiseBytes, sample: sample ?? "" })
      failure = new Transport.TransportError({ reason })
    },
    noise: () => failure,
    count: () => count,
    unanswered: () => unanswered
  }
}

const printable = (bytes: Uint8Array) => new TextDecoder().decode(bytes).replace(/[^\x20-\x7e\u00a0-\ufffc]/g, "\u00b7")

/**
 * The messages that a peer starts itself: encoded, in the framing that the other side reads, one after the other.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Framing from "../Framing.ts"
import * as JsonRpc from "../Schema.ts"
import type * as Transport from "../Transport.ts"
import type { Tapping } from "./tapping.ts"

/** @internal */
export interface Outgoing {
  /** Sends a message at once; false where `send` has to wait, or knows why it cannot be sent. */
  readonly trySendUnsafe: (message: JsonRpc.Request | JsonRpc.Notification) => boolean
  /** Sends a message; suspends while the other side does not read, until `giveUp` returns. */
  readonly send: (
    message: JsonRpc.Request | JsonRpc.Notification,
    giveUp?: Effect.Effect<void>
  ) => Effect.Effect<void, Transport.TransportError>
  /** Sends a notification at once. */
  readonly sendUnsafe: (message: JsonRpc.Notification) => void
  /** Says how the other side writes, and so reads. */
  readonly learnFraming: (framing: Framing.Kind) => void
  /** Fails those who wait for the framing. */
  readonly close: (error: Transport.TransportError) => void
}

/** @internal */
export const makeOutgoing = (
  transport: Transport.Transport["Service"],
  profile: JsonRpc.Profile,
  given: Framing.Kind | undefined,
  tapping: Tapping | undefined
): Outgoing => {
  let framing = given ?? (transport.framing === "auto" ? undefined : transport.framing)
  // nothing of ours is written in a framing that the other side may not read
  const known = Deferred.makeUnsafe<void, Transport.TransportError>()
  if (framing !== undefined) Deferred.doneUnsafe(known, Exit.void)

  const encode = (message: JsonRpc.Request | JsonRpc.Notification) => JsonRpc.encode(message, profile)

  const write = (message: JsonRpc.Request | JsonRpc.Notification, giveUp?: Effect.Effect<void>) =>
    Effect.suspend(() => {
      const encoded = encode(message)
      // params that cannot be written are a mistake of the program, not a state of the connection
      if (Result.isFailure(encoded)) return Effect.die(encoded.failure)
      const text = encoded.success
      const frame = Framing.frameOfText(text, framing ?? "line")
      if (transport.trySendUnsafe(frame)) {
        tapping?.outgoing(message, text)
        return Effect.void
      }
      // a tap is told of what leaves: not of what had to wait in vain
      const sent = tapping === undefined
        ? transport.send(frame)
        : Effect.map(transport.send(frame), () => tapping.outgoing(message, text))
      return giveUp === undefined ? sent : Effect.raceFirst(sent, giveUp)
    })

  return {
    trySendUnsafe: (message) => {
      if (framing === undefined) return false
      const encoded = encode(message)
      if (Result.isFailure(encoded) || !transport.trySendTextUnsafe(encoded.success, framing)) return false
      tapping?.outgoing(message, encoded.success)
      return true
    },
    send: (message, giveUp) =>
      Effect.suspend(() => {
        if (framing !== undefined) return write(message, giveUp)
        const sent = Effect.andThen(Deferred.await(known), write(message))
        return giveUp === undefined ? sent : Effect.raceFirst(sent, giveUp)
      }),
    sendUnsafe: (message) => {
      const text = Result.getOrThrow(encode(message))
      if (transport.sendTextUnsafe(text, framing ?? "line")) tapping?.outgoing(message, text)
    },
    learnFraming: (kind) => {
      if (framing !== undefined) return
      framing = kind
      Deferred.doneUnsafe(known, Exit.void)
    },
    close: (error) => {
      Deferred.doneUnsafe(known, Exit.fail(error))
    }
  }
}

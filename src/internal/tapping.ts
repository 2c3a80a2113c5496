/**
 * Tells the user's tap what goes by.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import type { Id, Message } from "../Schema.ts"
import { isNotification, isRequest, isSuccess } from "../Schema.ts"
import type { Entry, Tap } from "../Tap.ts"

/** @internal */
export interface Tapping {
  readonly incoming: (message: Message, bytes: number) => void
  readonly outgoing: (message: Message, text: string) => void
  readonly invalid: (id: Id | null, bytes: number) => void
}

/** `safely` keeps what the user's functions throw from ending the reader. @internal */
export const makeTapping = (
  tap: Tap,
  clock: Clock.Clock,
  safely: <A>(evaluate: () => A, otherwise: A) => A
): Tapping => {
  const tell = (entry: Omit<Entry, "time">, message?: Message) =>
    safely(() => {
      const time = clock.currentTimeMillisUnsafe()
      const payload: Pick<Entry, "payload"> = message === undefined || tap.payload === undefined
        ? {}
        // without it where it throws: the message still went by
        : safely<Pick<Entry, "payload">>(() => ({ payload: tap.payload?.(message) }), {})
      tap.onMessage({ ...entry, time, ...payload })
    }, undefined)

  return {
    incoming: (message, bytes) => tell({ direction: "in", bytes, ...envelope(message) }, message),
    outgoing: (message, text) =>
      tell({ direction: "out", bytes: new TextEncoder().encode(text).length, ...envelope(message) }, message),
    invalid: (id, bytes) => tell({ direction: "in", kind: "invalid", id, bytes })
  }
}

const envelope = (message: Message): Pick<Entry, "kind" | "method" | "id"> => {
  if (isRequest(message)) return { kind: "request", method: message.method, id: message.id }
  if (isNotification(message)) return { kind: "notification", method: message.method }
  return isSuccess(message) ? { kind: "success", id: message.id } : { kind: "failure", id: message.id ?? null }
}

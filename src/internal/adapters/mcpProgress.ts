/**
 * What a client may hear of the progress of its requests: only with the token it gave, only upwards, only until the
 * reply, and no more often than it can use.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import type { Id } from "../../Schema.ts"

// as many at once as a person can follow, and then one in 50 milliseconds
const BURST = 20
const INTERVAL = 50

/** @internal */
export interface McpProgress {
  /** Remembers the token that a request gave. */
  readonly begin: (id: Id, params: unknown) => void
  /** Sends what is held back, so that the last report comes before the reply. */
  readonly end: (id: Id) => Effect.Effect<void>
  /** Forgets the request: nothing is sent under its token any more, unless another gave the same. */
  readonly forget: (id: Id) => void
  /** Sends a notification of progress, holds it back for a better one, or drops it. */
  readonly report: (params: object) => Effect.Effect<void>
}

/** What was said under a token; requests that give the same token share it. */
interface Record {
  readonly token: unknown
  users: number
  last: number
  budget: number
  refilled: number
  /** The newest report that was not sent. */
  held: object | undefined
  /** Whether somebody waits to send it. */
  waiting: boolean
}

/** @internal */
export const makeMcpProgress = (
  clock: Clock.Clock,
  scope: Scope.Scope,
  send: (params: object) => Effect.Effect<void>
): McpProgress => {
  const byToken = new Map<unknown, Record>()
  const byRequest = new Map<Id, Record>()

  const refill = (record: Record) => {
    const intervals = Math.floor(Math.abs(clock.currentTimeMillisUnsafe() - record.refilled) / INTERVAL)
    if (intervals === 0) return
    record.budget = Math.min(BURST, record.budget + intervals)
    record.refilled = clock.currentTimeMillisUnsafe()
  }

  const sendHeld = (record: Record) =>
    Effect.suspend(() => {
      const { held } = record
      record.held = undefined
      return held === undefined || record.users === 0 ? Effect.void : send(held)
    })

  /** A report that no other follows is sent when its time has come. */
  const sendLater = (record: Record): Effect.Effect<void> => {
    if (record.waiting) return Effect.void
    record.waiting = true
    return Effect.sleep(INTERVAL).pipe(
      Effect.andThen(Effect.suspend(() => {
        record.waiting = false
        refill(record)
        if (record.held === undefined) return Effect.void
        if (record.budget === 0) return sendLater(record)
        record.budget--
        return sendHeld(record)
      })),
      Effect.forkIn(scope),
      Effect.asVoid
    )
  }

  return {
    begin: (id, params) => {
      const meta = Predicate.isObject(params) ? params._meta : undefined
      const token = Predicate.isObject(meta) ? meta.progressToken : undefined
      if (typeof token !== "string" && typeof token !== "number") return
      const record = byToken.get(token) ?? {
        token,
        users: 0,
        last: -Infinity,
        budget: BURST,
        refilled: clock.currentTimeMillisUnsafe(),
        held: undefined,
        waiting: false
      }
      record.users++
      byToken.set(token, record)
      byRequest.set(id, record)
    },
    end: (id) =>
      Effect.suspend(() => {
        const record = byRequest.get(id)
        return record === undefined ? Effect.void : sendHeld(record)
      }),
    forget: (id) => {
      const record = byRequest.get(id)
      if (record === undefined) return
      byRequest.delete(id)
      record.users--
      if (record.users === 0) byToken.delete(record.token)
    },
    report: (params) =>
      Effect.suspend(() => {
        const { progress, progressToken } = params as { readonly progress?: unknown; readonly progressToken?: unknown }
        const record = byToken.get(progressToken)
        if (record === undefined || typeof progress !== "number" || progress <= record.last) return Effect.void
        record.last = progress
        refill(record)
        if (record.budget === 0) {
          record.held = params
          return sendLater(record)
        }
        record.budget--
        record.held = undefined
        return send(params)
      })
  }
}

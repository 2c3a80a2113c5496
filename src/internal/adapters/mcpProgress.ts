/**
 * What a client may hear of the progress of its requests: only with the token it gave, only upwards, only until the
 * reply, and no more often than it can use.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Id } from "../../Schema.ts"

// as many at once as a person can follow, and then one in 50 milliseconds
const BURST = 20
const INTERVAL = 50

type Send = (params: object) => Effect.Effect<void>

/** @internal */
export interface McpProgress {
  /** Remembers the token that a request gave. */
  readonly begin: (id: Id, params: unknown) => void
  /** Sends what is held back, so that the last report comes before the reply. */
  readonly end: (id: Id) => Effect.Effect<void>
  /** Forgets the token: nothing is sent under it any more. */
  readonly forget: (id: Id) => void
  /** Sends a notification of progress, holds it back for a better one, or drops it. */
  readonly report: (params: object) => Effect.Effect<void>
}

interface Request {
  last: number
  budget: number
  refilled: number
  /** The newest report that was not sent. */
  held: object | undefined
}

/** @internal */
export const makeMcpProgress = (clock: Clock.Clock, send: Send): McpProgress => {
  const requests = new Map<unknown, Request>()
  const tokens = new Map<Id, unknown>()

  const tokenOf = (params: unknown): unknown => {
    const meta = Predicate.isObject(params) ? params._meta : undefined
    const token = Predicate.isObject(meta) ? meta.progressToken : undefined
    return typeof token === "string" || typeof token === "number" ? token : undefined
  }

  const refill = (request: Request) => {
    const intervals = Math.floor(Math.abs(clock.currentTimeMillisUnsafe() - request.refilled) / INTERVAL)
    if (intervals === 0) return
    request.budget = Math.min(BURST, request.budget + intervals)
    request.refilled = clock.currentTimeMillisUnsafe()
  }

  return {
    begin: (id, params) => {
      const token = tokenOf(params)
      if (token === undefined) return
      tokens.set(id, token)
      requests.set(token, {
        last: -Infinity,
        budget: BURST,
        refilled: clock.currentTimeMillisUnsafe(),
        held: undefined
      })
    },
    end: (id) =>
      Effect.suspend(() => {
        const token = tokens.get(id)
        const held = requests.get(token)?.held
        requests.delete(token)
        return held === undefined ? Effect.void : send(held)
      }),
    forget: (id) => {
      requests.delete(tokens.get(id))
      tokens.delete(id)
    },
    report: (params) =>
      Effect.suspend(() => {
        const { progress, progressToken } = params as { readonly progress?: unknown; readonly progressToken?: unknown }
        const request = requests.get(progressToken)
        if (request === undefined || typeof progress !== "number" || progress <= request.last) return Effect.void
        request.last = progress
        refill(request)
        if (request.budget === 0) {
          request.held = params
          return Effect.void
        }
        request.budget--
        request.held = undefined
        return send(params)
      })
  }
}

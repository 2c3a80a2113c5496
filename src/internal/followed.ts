/**
 * The calls whose progress somebody follows: which report belongs to which call, and how long each may still take.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type * as Peer from "../Peer.ts"
import type { Progress } from "../Progress.ts"

// what a slow follower may be behind: older reports are worth less than newer ones
const MAX_REPORTS = 256

/** @internal */
export interface Followed<E> {
  /** Runs a call that asks for progress, and ends it when its time is over. */
  readonly follow: (
    call: (params: object | undefined) => Effect.Effect<unknown, E>,
    params: object | undefined,
    limits: {
      /** Milliseconds without a report; undefined: no limit. */
      readonly silence: number | undefined
      /** Milliseconds in all; undefined: no limit. */
      readonly total: number | undefined
      readonly timedOut: () => E
    }
  ) => Stream.Stream<Peer.CallEvent, E>
  /** Hands a report to the call it belongs to; false when there is none. */
  readonly report: (params: unknown) => boolean
}

/** @internal */
export const makeFollowed = <E>(
  progress: Progress,
  clock: Clock.Clock,
  safely: <A>(evaluate: () => A, otherwise: A) => A
): Followed<E> => {
  // a wall clock that is set back must not lengthen a deadline
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000
  const followers = new Map<unknown, (value: unknown) => void>()
  let lastToken = 0

  const outOfTime = (lastSign: () => number, limits: Parameters<Followed<E>["follow"]>[2]) => {
    const begun = now()
    const { silence = Infinity, timedOut, total = Infinity } = limits
    const wait: Effect.Effect<never, E> = Effect.suspend(() => {
      const left = Math.min(lastSign() + silence, begun + total) - now()
      return left <= 0 ? Effect.fail(timedOut()) : Effect.andThen(Effect.sleep(left), wait)
    })
    return silence === Infinity && total === Infinity ? Effect.never : wait
  }

  return {
    follow: (call, params, limits) =>
      Stream.callback<Peer.CallEvent, E>((queue) =>
        Effect.gen(function*() {
          const token = `progress-${++lastToken}`
          let lastSign = now()
          yield* Effect.acquireRelease(
            Effect.sync(() =>
              followers.set(token, (value) => {
                lastSign = now()
                Queue.offerUnsafe(queue, { _tag: "Progress", value })
              })
            ),
            () => Effect.sync(() => followers.delete(token))
          )
          const exit = yield* Effect.exit(
            Effect.raceFirst(
              Effect.suspend(() => call(safely(() => progress.ask(params, token), params))),
              outOfTime(() => lastSign, limits)
            )
          )
          // the queue drops what is oldest, and this is what is newest
          if (exit._tag === "Success") {
            Queue.offerUnsafe(queue, { _tag: "Result", value: exit.value })
            Queue.endUnsafe(queue)
          } else {
            Queue.failCauseUnsafe(queue, exit.cause)
          }
        }), { bufferSize: MAX_REPORTS, strategy: "sliding" }),
    report: (params) => {
      const report = safely(() => progress.read(params), undefined)
      const follower = report === undefined ? undefined : followers.get(report.token)
      follower?.(report?.value)
      return follower !== undefined
    }
  }
}

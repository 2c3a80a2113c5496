/**
 * The current Observer, made safe to call from the reader: what it throws is logged, and stops nothing.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Event } from "../Lifecycle.ts"
import { Observer } from "../Lifecycle.ts"

/** @internal */
export const observer: Effect.Effect<((event: Event) => void) | undefined> = Effect.gen(function*() {
  const observe = yield* Observer
  if (observe === undefined) return undefined
  const runFork = Effect.runForkWith(yield* Effect.context())
  return (event) => {
    try {
      observe(event)
    } catch (error) {
      runFork(Effect.logError(`the lifecycle observer threw on ${event._tag}`, error))
    }
  }
})

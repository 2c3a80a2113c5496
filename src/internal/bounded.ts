/**
 * Waiting with a limit for what may not be interruptible.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Runs in a fiber of its own, since an interrupted fiber cannot wait with a limit, and waits for it. @internal */
export const own = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.flatMap(Effect.forkDetach(effect, { startImmediately: true }), Fiber.join)

/** Gives an effect some milliseconds; one that cannot be interrupted is left behind. @internal */
export const within = (limit: number, effect: Effect.Effect<unknown>): Effect.Effect<void> =>
  own(Effect.flatMap(
    Effect.forkDetach(effect, { startImmediately: true }),
    (fiber) =>
      Effect.andThen(
        Effect.raceFirst(Fiber.await(fiber), Effect.sleep(limit)),
        Effect.sync(() => fiber.interruptUnsafe())
      )
  ))

/** Waits for an effect; whoever is interrupted meanwhile does not wait for one that cannot be. @internal */
export const leavable = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.flatMap(
    Effect.forkDetach(effect, { startImmediately: true }),
    (fiber) => Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))
  )

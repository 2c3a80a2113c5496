/**
 * Ctrl-C and the other signals that ask the program to stop. The first Ctrl-C within a turn is for the turn; whatever
 * comes after it, or without a turn, is for the program.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"

/**
 * What becomes of signals.
 *
 * @category models
 * @since 0.1.0
 */
export interface Signals {
  /** Runs a turn, and this beside it when Ctrl-C is pressed for the first time. */
  readonly during: <A, E, R>(turn: Effect.Effect<A, E, R>, interrupt: Effect.Effect<void>) => Effect.Effect<A, E, R>
  /** Returns the exit code with which the program has been asked to leave. */
  readonly leaving: Effect.Effect<number>
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/**
 * Listens to the signals of this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Signals, never, Scope.Scope> = Effect.gen(function*() {
  const leaving = yield* Deferred.make<number>()
  let turn: Deferred.Deferred<void> | undefined

  const onSignal = (signal: NodeJS.Signals) => {
    const interrupted = turn
    turn = undefined
    if (signal === "SIGINT" && interrupted !== undefined) return Deferred.doneUnsafe(interrupted, Exit.void)
    const code = signal in EXIT_CODES ? EXIT_CODES[signal as keyof typeof EXIT_CODES] : 1 // just looked up
    Deferred.doneUnsafe(leaving, Exit.succeed(code))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => Object.keys(EXIT_CODES).forEach((signal) => process.on(signal, onSignal))),
    () => Effect.sync(() => Object.keys(EXIT_CODES).forEach((signal) => process.off(signal, onSignal)))
  )

  const during: Signals["during"] = (effect, interrupt) =>
    Effect.gen(function*() {
      const interrupted = yield* Deferred.make<void>()
      turn = interrupted
      yield* Effect.forkChild(Effect.andThen(Deferred.await(interrupted), interrupt))
      return yield* effect
    }).pipe(Effect.ensuring(Effect.sync(() => {
      turn = undefined
    })))

  return { during, leaving: Deferred.await(leaving) }
})

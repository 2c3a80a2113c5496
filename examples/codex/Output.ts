/**
 * Standard output and standard error of the program. Whoever reads them may leave at any time, as `head` does: that is no
 * error here, but something to wait for.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"

/**
 * A piece of text for one of the two.
 *
 * @category models
 * @since 0.1.0
 */
export interface Piece {
  readonly to: "out" | "err"
  readonly text: string
}

/**
 * Where the program writes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Output {
  /** Writes the pieces in their order, and returns when the system has taken them. */
  readonly write: (...pieces: ReadonlyArray<Piece>) => Effect.Effect<void>
  /** Returns when nobody reads standard output any more. */
  readonly closed: Effect.Effect<void>
}

const streams = { out: process.stdout, err: process.stderr }

/**
 * Makes the output of this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Output, never, Scope.Scope> = Effect.gen(function*() {
  const closed = yield* Deferred.make<void>()
  // what cannot be said on standard error cannot be said
  const listeners = { out: () => Deferred.doneUnsafe(closed, Exit.void), err: () => {} }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      streams.out.on("error", listeners.out)
      streams.err.on("error", listeners.err)
    }),
    () =>
      Effect.sync(() => {
        streams.out.off("error", listeners.out)
        streams.err.off("error", listeners.err)
      })
  )

  const write = ({ text, to }: Piece) =>
    text === "" ? Effect.void : Effect.callback<void>((resume) => {
      // a write that fails also calls back
      streams[to].write(text, () => resume(Effect.void))
    })

  return {
    write: (...pieces) => Effect.forEach(pieces, write, { discard: true }),
    closed: Deferred.await(closed)
  }
})

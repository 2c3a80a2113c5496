/**
 * Bytes of a stream to frames, in one step a pull: what happens per chunk is what a message alone in its chunk costs.
 *
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Decoder, Item } from "../Framing.ts"

// few enough that most of what a message costs is garbage before the collector looks for the first time
const MAX_BURST = 64

/** What the source of the chunks wants to know of the reading. @internal */
export interface Hooks<in E, out E2> {
  readonly onChunks: (count: number) => void
  /** The error to fail with, or undefined where the failure counts as an end. */
  readonly onError: (cause: Cause.Cause<E>) => Cause.Cause<E2> | undefined
  readonly onEnd: Effect.Effect<void>
}

/** @internal */
export const decodeStream = <E, R, E2>(
  self: Stream.Stream<Uint8Array, E, R>,
  makeDecoder: () => Decoder,
  hooks: Hooks<E, E2>
): Stream.Stream<Item, E2, R> =>
  Stream.transformPull(self, (pull) =>
    Effect.sync(() => {
      const decoder = makeDecoder()
      let ended = false
      let waiting: ReadonlyArray<Uint8Array> = []
      let index = 0
      let offset = 0

      const decodeWaiting = () => {
        const items: Array<Item> = []
        for (let chunk = waiting[index]; chunk !== undefined && items.length < MAX_BURST; chunk = waiting[index]) {
          offset = decoder.push(chunk, items, offset, MAX_BURST)
          if (offset < chunk.length) continue
          offset = 0
          index++
        }
        if (index === waiting.length) waiting = []
        return items
      }

      type Next = Pull.Pull<Arr.NonEmptyReadonlyArray<Item>, E2, void, R>

      const end = (): Next => {
        ended = true
        const items: Array<Item> = []
        decoder.end(items)
        return isNonEmpty(items) ? Effect.succeed(items) : done()
      }

      const done = () => Effect.andThen(hooks.onEnd, Cause.done())

      const read: Next = Effect.matchCauseEffect(pull, {
        onSuccess: (chunks): Next => {
          hooks.onChunks(chunks.length)
          waiting = chunks
          index = 0
          const items = decodeWaiting()
          return isNonEmpty(items) ? Effect.succeed(items) : read
        },
        onFailure: (cause): Next => {
          if (Pull.isDoneCause(cause)) return end()
          // not done, so that what is left are the errors of the source
          const failure = hooks.onError(cause as Cause.Cause<E>)
          return failure === undefined ? end() : Effect.failCause(failure)
        }
      })

      return Effect.suspend((): Next => {
        if (waiting.length === 0) return ended ? done() : read
        const items = decodeWaiting()
        return isNonEmpty(items) ? Effect.succeed(items) : read
      })
    }))

const isNonEmpty = <A>(items: Array<A>): items is Arr.NonEmptyArray<A> => items.length > 0

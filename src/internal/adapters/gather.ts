/**
 * Reads a stream of Node from now on, whether or not somebody consumes it yet: an end is seen at once, and a bounded
 * amount of input waits for its consumer.
 *
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import type { Readable } from "node:stream"

const MAX_BUFFERED_BYTES = 1_048_576

/** @internal */
export interface Gathered<E> {
  /** What has come since the last pull. */
  readonly pull: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, E>
  /** Reads on, whatever waits. */
  readonly unbind: () => void
  /** Drops what waits and what still comes. */
  readonly drop: () => void
  /** Ends after what was read. */
  readonly finish: () => void
}

/** `onEnd` is called once, when nothing more will come. @internal */
export const gather = <E>(
  readable: Readable,
  failure: (error: unknown) => E,
  onEnd: () => void = () => {}
): Gathered<E> => {
  let chunks: Array<Uint8Array> = []
  let bytes = 0
  let limit = MAX_BUFFERED_BYTES
  let isDropped = false
  let end: Effect.Effect<never, E | Cause.Done> | undefined
  let wake: (() => void) | undefined

  const changed = () => {
    // the consumer may run at once, and wait again
    const resume = wake
    wake = undefined
    resume?.()
  }
  const finish = (how: NonNullable<typeof end>) => {
    if (end !== undefined) return
    end = how
    onEnd()
    changed()
  }

  // for the life of the stream: an error without a listener would end the process
  readable.on("data", (chunk: Uint8Array) => {
    if (isDropped || end !== undefined) return
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= limit) readable.pause()
    changed()
  })
  readable.on("end", () => finish(Cause.done()))
  readable.on("close", () => finish(Cause.done()))
  readable.on("error", (error) => finish(Effect.fail(failure(error))))

  const pull: Gathered<E>["pull"] = Effect.suspend(() => {
    const [first, ...others] = chunks
    if (first !== undefined) {
      chunks = []
      bytes = 0
      if (readable.isPaused()) readable.resume()
      return Effect.succeed([first, ...others])
    }
    if (end !== undefined) return end
    return Effect.andThen(
      Effect.callback<void>((resume) => {
        wake = () => resume(Effect.void)
        return Effect.sync(() => {
          wake = undefined
        })
      }),
      pull
    )
  })

  return {
    pull,
    unbind: () => {
      limit = Infinity
      readable.resume()
    },
    drop: () => {
      chunks = []
      bytes = 0
      limit = Infinity
      isDropped = true
      readable.resume()
    },
    finish: () => finish(Cause.done())
  }
}

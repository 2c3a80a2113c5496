/**
 * Reads standard input from the first moment on, whether or not somebody consumes it yet: an end is seen even while
 * layers are being built, and a bounded amount of input waits for its consumer.
 *
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as PlatformError from "effect/PlatformError"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"

const MAX_BUFFERED_BYTES = 1_048_576

let opened: Stream.Stream<Uint8Array, PlatformError.PlatformError> | undefined

/** The one stream of standard input. @internal */
export const openStdin = (): Stream.Stream<Uint8Array, PlatformError.PlatformError> => opened ??= pump()

const pump = () => {
  const { stdin } = process
  let chunks: Array<Uint8Array> = []
  let bytes = 0
  let end: Effect.Effect<never, PlatformError.PlatformError | Cause.Done> | undefined
  let wake: (() => void) | undefined

  const changed = () => {
    // the consumer may run at once, and wait again
    const resume = wake
    wake = undefined
    resume?.()
  }
  const onEnd = (how: typeof end) => {
    end ??= how
    changed()
  }
  // for the life of the process: an error without a listener would end it
  stdin.on("data", (chunk: Uint8Array) => {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= MAX_BUFFERED_BYTES) stdin.pause()
    changed()
  })
  stdin.on("end", () => onEnd(Cause.done()))
  stdin.on("close", () => onEnd(Cause.done()))
  stdin.on(
    "error",
    (cause) =>
      onEnd(Effect.fail(PlatformError.systemError({ _tag: "Unknown", module: "Stdio", method: "stdin", cause })))
  )

  const pull: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, PlatformError.PlatformError> = Effect.suspend(() => {
    const [first, ...others] = chunks
    if (first !== undefined) {
      chunks = []
      bytes = 0
      if (stdin.isPaused()) stdin.resume()
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
  return Stream.fromPull(Effect.succeed(pull))
}

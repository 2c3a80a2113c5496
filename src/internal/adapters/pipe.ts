/**
 * The ends of a child's pipes that are ours, as a Sink and a Stream.
 *
 * Effect's own adapters read from a copy of the pipe, which stays open when its reader is gone, and do not say when
 * what was read has been consumed.
 *
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import type { Readable, Writable } from "node:stream"

const MAX_BUFFERED_BYTES = 1_048_576
const isNode = process.versions["bun"] === undefined

/** @internal */
export interface Source {
  /** The chunks, to be run once. What is still unread when that is over is read and dropped, so that nobody blocks. */
  readonly stream: Stream.Stream<Uint8Array, unknown>
  /** Reads on without a bound, or drops what nobody consumes: the writer must not block any more. */
  readonly release: () => void
  /** Ends the stream after what was read, and closes the pipe. */
  readonly close: () => void
}

/**
 * Reads a pipe from now on, up to a bound while nobody consumes it; `onEnd` is called once, when nothing more will come.
 *
 * @internal
 */
export const readPipe = (readable: Readable, onEnd: () => void): Source => {
  let chunks: Array<Uint8Array> = []
  let bytes = 0
  let limit = MAX_BUFFERED_BYTES
  let consumer: "none" | "there" | "gone" = "none"
  let end: Effect.Effect<never, Cause.Done> | Effect.Effect<never, unknown> | undefined
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
  const drop = () => {
    chunks = []
    bytes = 0
    limit = Infinity
    consumer = "gone"
    readable.resume()
  }

  readable.on("data", (chunk: Uint8Array) => {
    if (consumer === "gone" || end !== undefined) return
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= limit) readable.pause()
    changed()
  })
  readable.on("end", () => finish(Cause.done()))
  readable.on("close", () => finish(Cause.done()))
  readable.on("error", (error) => finish(Effect.fail(error)))

  const pull: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, unknown> = Effect.suspend(() => {
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
    stream: Stream.scoped(Stream.fromPull(Effect.as(
      Effect.acquireRelease(
        Effect.sync(() => {
          consumer = "there"
        }),
        () => Effect.sync(drop)
      ),
      pull
    ))),
    release: () => {
      if (consumer === "none") drop()
      limit = Infinity
      readable.resume()
    },
    close: () => {
      finish(Cause.done())
      readable.destroy()
    }
  }
}

/**
 * Writes to a pipe, one piece at a time, each taken when its callback came; ends the pipe when it is over. Fails when the
 * pipe is closed, also while there is nothing to write.
 *
 * @internal
 */
export const writePipe = (writable: Writable): Sink.Sink<void, Uint8Array, unknown, unknown> => {
  const write = (chunk: Uint8Array) =>
    Effect.callback<void, unknown>((resume) => {
      writable.write(
        chunk,
        (error) => resume(error === null || error === undefined ? Effect.void : Effect.fail(error))
      )
      // a pipe with room takes all at once, which a turn of the event loop later the callback says too
      if (isNode && writable.writableLength === 0 && writable.errored === null) resume(Effect.void)
    })
  const closed = Effect.callback<never, unknown>((resume) => {
    const onClose = () => resume(Effect.fail(writable.errored ?? { code: "ERR_STREAM_PREMATURE_CLOSE" }))
    if (writable.closed) onClose()
    else writable.once("close", onClose)
    return Effect.sync(() => writable.off("close", onClose))
  })
  const writes = Sink.forEachArray((chunks: Arr.NonEmptyReadonlyArray<Uint8Array>) =>
    chunks.length === 1 ? write(chunks[0]) : Effect.forEach(chunks, write, { discard: true })
  )
  return Sink.fromTransform((
    upstream: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, never, void>,
    scope
  ) => Effect.raceFirst(writes.transform(upstream, scope), closed)).pipe(
    Sink.ensuring(Effect.sync(() => writable.end()))
  )
}

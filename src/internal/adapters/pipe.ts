/**
 * The ends of a child's pipes that are ours, as a Sink and a Stream.
 *
 * Effect's own adapters read from a copy of the pipe, which stays open when its reader is gone, and do not say when
 * what was read has been consumed.
 *
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import type { Readable, Writable } from "node:stream"
import { gather } from "./gather.ts"

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
  const { drop, finish, pull, unbind } = gather(readable, (error) => error, onEnd)
  let isConsumed = false
  return {
    stream: Stream.scoped(Stream.fromPull(Effect.as(
      Effect.acquireRelease(
        Effect.sync(() => {
          isConsumed = true
        }),
        () => Effect.sync(drop)
      ),
      pull
    ))),
    release: () => {
      if (isConsumed) unbind()
      else drop()
    },
    close: () => {
      finish()
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

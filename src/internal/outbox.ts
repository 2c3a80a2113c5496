/**
 * The frames that wait to be written: counted in bytes, joined into few writes, bounded for those who can wait.
 *
 * The writer pulls; a pull is the sign that the piece before it has been taken by the output, and so the only place
 * where progress is made.
 *
 * @since 0.1.0
 */
import * as MutableList from "effect/MutableList"
import type { Frame } from "../Framing.ts"
import { encode, encodedLength } from "../Framing.ts"
import { bodyOf, headOf, tailOf } from "./frameParts.ts"

// frames are joined up to this size, and larger frames are cut into pieces of it, so that progress can be seen
const PIECE_BYTES = 262_144

/** @internal */
export interface Outbox {
  /** Bytes queued or handed to the output and not yet taken by it. */
  readonly size: () => number
  readonly isEmpty: () => boolean
  readonly isCongested: () => boolean
  readonly fits: (frame: Frame) => boolean
  readonly add: (frame: Frame) => void
  /** The next piece to write, or undefined when nothing is queued. Counts the piece before it as written. */
  readonly next: () => Uint8Array | undefined
  readonly clear: () => void
}

/** @internal */
export const makeOutbox = (maxBytes: number): Outbox => {
  const queue = MutableList.make<Frame>()
  let size = 0
  let congested = false
  let handedOver = 0
  // what is taken from the queue and not written yet; a large frame's bytes are passed on without a copy
  let rest: Array<Uint8Array> = []

  const release = (bytes: number) => {
    size -= bytes
    if (congested && size <= maxBytes / 2) congested = false
  }

  /** The next frames that make up a piece: one at least, more as far as they fit together. */
  const takeFrames = (): Array<Frame> => {
    const frames: Array<Frame> = []
    let bytes = 0
    while (queue.length > 0) {
      const frame = MutableList.take(queue)
      if (frame === MutableList.Empty) break
      bytes += encodedLength(frame)
      if (frames.length > 0 && bytes > PIECE_BYTES) {
        MutableList.prepend(queue, frame)
        break
      }
      frames.push(frame)
    }
    return frames
  }

  return {
    size: () => size,
    isEmpty: () => size === handedOver,
    isCongested: () => congested,
    fits: (frame) => size === 0 || size + encodedLength(frame) <= maxBytes,
    add: (frame) => {
      MutableList.append(queue, frame)
      size += encodedLength(frame)
      if (size >= maxBytes) congested = true
    },
    next: () => {
      release(handedOver)
      handedOver = 0
      if (rest.length === 0) rest = joined(takeFrames())
      const [part, ...others] = rest
      if (part === undefined) return undefined
      const piece = part.subarray(0, PIECE_BYTES)
      rest = part.length > PIECE_BYTES ? [part.subarray(PIECE_BYTES), ...others] : others
      handedOver = piece.length
      return piece
    },
    clear: () => {
      MutableList.clear(queue)
      rest = []
      release(size)
      handedOver = 0
    }
  }
}

/** Frames as few parts: small ones in one, a large one as it is, since a copy of it would be garbage soon. */
const joined = (frames: ReadonlyArray<Frame>): Array<Uint8Array> => {
  const [frame, ...others] = frames
  if (frame === undefined) return []
  return others.length === 0 && frame.bytes.length > PIECE_BYTES
    ? [headOf(frame), bodyOf(frame), tailOf(frame)].filter((part) => part.length > 0)
    : [encode(frames)]
}

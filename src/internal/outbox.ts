/**
 * The frames that wait to be written: counted in bytes, joined into few writes, bounded for those who can wait.
 *
 * The writer pulls; a pull is the sign that the piece before it has been taken by the output, and so the only place
 * where progress is made.
 *
 * @since 0.1.0
 */
import type { Frame } from "../Framing.ts"
import { encode, encodedLength } from "../Framing.ts"

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
  let queue: Array<Frame> = []
  let head = 0
  let size = 0
  let congested = false
  let handedOver = 0
  // the part of a large frame that is not written yet
  let rest: Uint8Array | undefined

  const release = (bytes: number) => {
    size -= bytes
    if (congested && size <= maxBytes / 2) congested = false
  }

  const takeFrames = (): Array<Frame> => {
    const frames: Array<Frame> = []
    let bytes = 0
    while (head < queue.length) {
      const frame = queue[head]
      if (frame === undefined) break
      const length = encodedLength(frame)
      if (frames.length > 0 && bytes + length > PIECE_BYTES) break
      frames.push(frame)
      bytes += length
      head++
    }
    if (head === queue.length) {
      queue = []
      head = 0
    } else if (head > 1_024) {
      queue = queue.slice(head)
      head = 0
    }
    return frames
  }

  return {
    size: () => size,
    isEmpty: () => size === handedOver,
    isCongested: () => congested,
    fits: (frame) => size === 0 || size + encodedLength(frame) <= maxBytes,
    add: (frame) => {
      queue.push(frame)
      size += encodedLength(frame)
      if (size >= maxBytes) congested = true
    },
    next: () => {
      release(handedOver)
      handedOver = 0
      if (rest === undefined) {
        const frames = takeFrames()
        if (frames.length === 0) return undefined
        rest = encode(frames)
      }
      const piece = rest.subarray(0, PIECE_BYTES)
      rest = rest.length > PIECE_BYTES ? rest.subarray(PIECE_BYTES) : undefined
      handedOver = piece.length
      return piece
    },
    clear: () => {
      queue = []
      head = 0
      rest = undefined
      release(size)
      handedOver = 0
    }
  }
}

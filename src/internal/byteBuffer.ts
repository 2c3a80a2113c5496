/**
 * Gathers the bytes of one frame over many chunks. Large pieces are kept as they are and copied once, when the frame is
 * complete; small ones are packed into blocks first, so that a frame that arrives a byte at a time does not cost an
 * object a byte.
 *
 * @since 0.1.0
 */
import { concat } from "./frameParts.ts"

/** @internal */
export interface ByteBuffer {
  readonly size: () => number
  readonly push: (piece: Uint8Array) => void
  /** Returns what was gathered, and starts again. */
  readonly take: () => Uint8Array
  readonly clear: () => void
}

const SMALL_BYTES = 4_096
const BLOCK_BYTES = 65_536

/** @internal */
export const makeByteBuffer = (): ByteBuffer => {
  let pieces: Array<Uint8Array> = []
  let total = 0
  let block: Uint8Array | undefined
  let used = 0

  const closeBlock = () => {
    if (block === undefined) return
    pieces.push(block.subarray(0, used))
    block = undefined
    used = 0
  }

  const clear = () => {
    pieces = []
    total = 0
    block = undefined
    used = 0
  }

  return {
    size: () => total,
    push: (piece) => {
      if (piece.length === 0) return
      total += piece.length
      if (piece.length > SMALL_BYTES) {
        closeBlock()
        pieces.push(piece)
        return
      }
      if (block !== undefined && used + piece.length > block.length) closeBlock()
      // the first block is small: most frames that are split over two chunks are small too
      block ??= new Uint8Array(pieces.length === 0 ? SMALL_BYTES : BLOCK_BYTES)
      block.set(piece, used)
      used += piece.length
    },
    take: () => {
      closeBlock()
      const first = pieces[0]
      const bytes = first !== undefined && pieces.length === 1 ? first : concat(pieces)
      clear()
      return bytes
    },
    clear
  }
}

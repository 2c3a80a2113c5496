/**
 * Passes over a body of known length, which may span chunks: kept when it is within the limit, else only scanned for
 * its id.
 *
 * @since 0.1.0
 */
import { makeByteBuffer } from "./byteBuffer.ts"
import type { Envelope, IdScanner } from "./idScanner.ts"
import { makeIdScanner, scanEnvelope } from "./idScanner.ts"

/** @internal */
export interface BodyReader {
  readonly start: (length: number) => void
  /** Takes what it needs of the chunk from `offset` on, and returns the offset behind it. */
  readonly read: (chunk: Uint8Array, offset: number) => number
  readonly missing: () => number
  /** Ends a body that is complete: its bytes, or the envelope of one that was too long. */
  readonly finish: () => { readonly bytes: Uint8Array } | { readonly size: number; readonly envelope: Envelope }
  /** The envelope and size of a body that will not become complete. */
  readonly abandon: () => { readonly size: number; readonly envelope: Envelope }
}

/** @internal */
export const makeBodyReader = (maxFrameBytes: number): BodyReader => {
  const buffer = makeByteBuffer()
  let length = 0
  let missing = 0
  let scanner: IdScanner | undefined
  let whole: Uint8Array | undefined

  return {
    start: (bytes) => {
      length = bytes
      missing = bytes
      scanner = bytes > maxFrameBytes ? makeIdScanner() : undefined
      whole = undefined
    },
    read: (chunk, offset) => {
      const end = Math.min(chunk.length, offset + missing)
      const piece = chunk.subarray(offset, end)
      missing -= piece.length
      if (scanner !== undefined) scanner.feed(piece)
      else if (missing === 0 && buffer.size() === 0) whole = piece
      else buffer.push(piece)
      return end
    },
    missing: () => missing,
    finish: () =>
      scanner === undefined
        ? { bytes: whole ?? buffer.take() }
        : { size: length, envelope: scanner.envelope() },
    abandon: () => ({ size: length - missing, envelope: scanner?.envelope() ?? scanEnvelope(buffer.take()) })
  }
}

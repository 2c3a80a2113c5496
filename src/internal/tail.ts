/**
 * The last bytes of something that is written without end, in bounded memory.
 *
 * @since 0.1.0
 */

/** @internal */
export interface Tail {
  readonly push: (chunk: Uint8Array) => void
  /** What was written last, as text, from the start of a character on. */
  readonly text: () => string
}

/** @internal */
export const makeTail = (maxBytes: number): Tail => {
  const ring = new Uint8Array(maxBytes)
  let size = 0
  // where the next byte goes
  let next = 0

  return {
    push: (chunk) => {
      const kept = chunk.length > maxBytes ? chunk.subarray(chunk.length - maxBytes) : chunk
      const first = kept.subarray(0, maxBytes - next)
      ring.set(first, next)
      ring.set(kept.subarray(first.length), 0)
      next = maxBytes === 0 ? 0 : (next + kept.length) % maxBytes
      size = Math.min(maxBytes, size + kept.length)
    },
    text: () => {
      const bytes = new Uint8Array(size)
      const start = (next - size + maxBytes) % Math.max(1, maxBytes)
      const first = ring.subarray(start, Math.min(maxBytes, start + size))
      bytes.set(first)
      bytes.set(ring.subarray(0, size - first.length), first.length)
      return new TextDecoder().decode(size === maxBytes ? bytes.subarray(characterStart(bytes)) : bytes)
    }
  }
}

/** The end of a text, from the start of a line where that leaves most of it. @internal */
export const lastOf = (text: string, maxLength: number): string => {
  if (text.length <= maxLength) return text
  const end = text.slice(-maxLength)
  const line = end.indexOf("\n") + 1
  return line > 0 && line < maxLength / 2 ? end.slice(line) : end
}

/** Where the first whole character begins: a cut may have left up to three bytes of another before it. */
const characterStart = (bytes: Uint8Array) => {
  let start = 0
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return start
}

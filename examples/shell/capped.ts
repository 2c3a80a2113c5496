/**
 * What a command wrote, without growing: its beginning and its end are kept, what is between them is counted.
 *
 * @since 0.1.0
 */

/**
 * Output of one kind.
 *
 * @category models
 * @since 0.1.0
 */
export interface Capped {
  /** Adds bytes. They are copied, as far as they are kept. */
  readonly push: (chunk: Uint8Array) => void
  /** What was kept as text, with a note where something is missing, and how many bytes are missing. */
  readonly read: () => { readonly text: string; readonly leftOut: number }
}

/**
 * Limits of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How much of the beginning is kept, in bytes. */
  readonly headBytes: number
  /** How much of the end is kept, in bytes. */
  readonly tailBytes: number
}

/**
 * Keeps the first `headBytes` and the last `tailBytes` of what is pushed.
 *
 * **Details**
 *
 * The text is UTF-8; what is no UTF-8 becomes U+FFFD. Where the middle is missing, no character is cut in two: what is
 * left of one is left out, and counted, too.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = ({ headBytes, tailBytes }: Options): Capped => {
  let head = new Uint8Array(0)
  // a ring: `total - head.length` bytes were written to it, the oldest of them overwritten
  let ring = new Uint8Array(0)
  let total = 0

  const pushTail = (chunk: Uint8Array) => {
    const begun = total - head.length
    const kept = chunk.subarray(Math.max(0, chunk.length - tailBytes))
    if (kept.length > 0 && ring.length === 0) ring = new Uint8Array(tailBytes)
    const at = (begun + chunk.length - kept.length) % tailBytes
    const first = kept.subarray(0, tailBytes - at)
    ring.set(first, at)
    ring.set(kept.subarray(first.length), 0)
    total += chunk.length
  }

  /** The end, oldest byte first. */
  const tail = (): Uint8Array => {
    const written = total - head.length
    if (written <= tailBytes) return ring.subarray(0, written)
    const at = written % tailBytes
    return concat(ring.subarray(at), ring.subarray(0, at))
  }

  return {
    push: (chunk) => {
      const room = head.length === total ? headBytes - head.length : 0
      const first = chunk.subarray(0, Math.max(0, room))
      if (first.length > 0) {
        head = concat(head, first)
        total += first.length
      }
      if (chunk.length > first.length) pushTail(chunk.subarray(first.length))
    },
    read: () => {
      const end = tail()
      if (head.length + end.length === total) return { text: decode(concat(head, end)), leftOut: 0 }
      const start = head.subarray(0, wholeLength(head))
      const rest = end.subarray(firstWhole(end))
      const leftOut = total - start.length - rest.length
      return { text: `${decode(start)}\n[… ${leftOut} bytes left out …]\n${decode(rest)}`, leftOut }
    }
  }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

const decode = (bytes: Uint8Array): string => decoder.decode(bytes)

const concat = (left: Uint8Array, right: Uint8Array): Uint8Array<ArrayBuffer> => {
  const both = new Uint8Array(left.length + right.length)
  both.set(left)
  both.set(right, left.length)
  return both
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

const sequenceLength = (byte: number): number => byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1

/** How many bytes there are without a character that is cut at the end. */
const wholeLength = (bytes: Uint8Array): number => {
  let start = bytes.length - 1
  // a character has at most three bytes after its first
  while (start > bytes.length - 4 && isContinuation(bytes[start])) start--
  const first = bytes[start]
  return first !== undefined && start + sequenceLength(first) > bytes.length ? start : bytes.length
}

/** Where the first character begins that is not cut. */
const firstWhole = (bytes: Uint8Array): number => {
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start++
  return start
}

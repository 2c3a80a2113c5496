/**
 * The frames that wait to be written: counted in bytes, joined into few writes, bounded for those who can wait.
 *
 * The writer pulls; a pull is the sign that the piece before it has been taken by the output, and so the only place
 * where progress is made.
 *
 * @since 0.1.0
 */
import * as MutableList from "effect/MutableList"
import type { Frame, Kind } from "../Framing.ts"
import { encodedLength, frameOfText } from "../Framing.ts"
import { concat, partsOf } from "./frameParts.ts"

// frames are joined up to this size, and larger frames are cut into pieces of it, so that progress can be seen
const PIECE_BYTES = 262_144
// text of small messages is joined up to this many code units and encoded at once, which is what makes them cheap
const TEXT_LENGTH = 140_000
const BLOCK_BYTES = 65_536
const SMALL_TEXT_LENGTH = 131_072
// eslint-disable-next-line no-control-regex -- the range is ASCII, whose characters are a byte each
const ASCII = /^[\x00-\x7f]*$/
const encoder = new TextEncoder()

/** @internal */
export interface Outbox {
  /** Bytes queued or handed to the output and not yet taken by it. */
  readonly size: () => number
  readonly isEmpty: () => boolean
  readonly isCongested: () => boolean
  readonly fits: (frame: Frame) => boolean
  /** Whether so many bytes would stay within the bound. */
  readonly hasRoom: (bytes: number) => boolean
  readonly add: (frame: Frame) => void
  /** Adds a message as text. Small ones are encoded together, and count by their code units until then. */
  readonly addText: (text: string, framing: Kind) => void
  /** The next piece to write, or undefined when nothing is queued. Counts the piece before it as written. */
  readonly next: () => Uint8Array | undefined
  readonly clear: () => void
}

/** @internal */
export const makeOutbox = (maxBytes: number): Outbox => {
  // frames, and the bytes of small ones that are encoded already
  const queue = MutableList.make<Frame | Uint8Array>()
  // the text of small messages, the newest of the queue
  let texts: Array<string> = []
  let textLength = 0
  let size = 0
  let congested = false
  let handedOver = 0
  // what is taken from the queue and not written yet; a large frame's bytes are passed on without a copy
  let rest: Array<Uint8Array> = []

  const grow = (bytes: number) => {
    size += bytes
    if (size >= maxBytes) congested = true
  }

  const release = (bytes: number) => {
    size -= bytes
    if (congested && size <= maxBytes / 2) congested = false
  }

  // small texts are encoded one behind the other: a buffer of its own costs more than the text
  let block = new Uint8Array(0)
  let used = 0

  const encodeText = (text: string): Uint8Array => {
    // a UTF-16 code unit takes three bytes at most
    const room = text.length * 3
    if (room > BLOCK_BYTES / 4) return encoder.encode(text)
    if (used + room > block.length) {
      block = new Uint8Array(BLOCK_BYTES)
      used = 0
    }
    const { written } = encoder.encodeInto(text, block.subarray(used))
    const bytes = block.subarray(used, used + written)
    used += written
    return bytes
  }

  const encodeTexts = () => {
    if (textLength === 0) return
    const bytes = encodeText(texts.length === 1 ? texts[0] ?? "" : texts.join(""))
    texts = []
    grow(bytes.length - textLength)
    textLength = 0
    MutableList.append(queue, bytes)
  }

  const add = (frame: Frame) => {
    encodeTexts()
    MutableList.append(queue, frame)
    grow(encodedLength(frame))
  }

  const addSmallText = (text: string) => {
    texts.push(text)
    textLength += text.length
    grow(text.length)
    if (textLength >= TEXT_LENGTH) encodeTexts()
  }

  /** The next items that make up a piece: one at least, more as far as they fit together. */
  const take = (): Array<Frame | Uint8Array> => {
    const items: Array<Frame | Uint8Array> = []
    let bytes = 0
    while (queue.length > 0) {
      const item = MutableList.take(queue)
      if (item === MutableList.Empty) break
      bytes += lengthOf(item)
      if (items.length > 0 && bytes > PIECE_BYTES) {
        MutableList.prepend(queue, item)
        break
      }
      items.push(item)
    }
    return items
  }

  return {
    size: () => size,
    isEmpty: () => size === handedOver,
    isCongested: () => congested,
    hasRoom: (bytes) => size + bytes <= maxBytes,
    fits: (frame) => size === 0 || size + encodedLength(frame) <= maxBytes,
    add,
    addText: (text, framing) => {
      if (text.length > SMALL_TEXT_LENGTH) add(frameOfText(text, framing))
      else if (framing === "line" && !text.includes("\n")) addSmallText(`${text}\n`)
      else if (framing === "content-length" && ASCII.test(text)) {
        addSmallText(`Content-Length: ${text.length}\r\n\r\n${text}`)
      } else add(frameOfText(text, framing))
    },
    next: () => {
      release(handedOver)
      handedOver = 0
      if (rest.length === 0) {
        if (queue.length === 0) encodeTexts()
        rest = joined(take())
      }
      const [part, ...others] = rest
      if (part === undefined) return undefined
      const piece = part.subarray(0, PIECE_BYTES)
      rest = part.length > PIECE_BYTES ? [part.subarray(PIECE_BYTES), ...others] : others
      handedOver = piece.length
      return piece
    },
    clear: () => {
      MutableList.clear(queue)
      texts = []
      textLength = 0
      rest = []
      release(size)
      handedOver = 0
    }
  }
}

const lengthOf = (item: Frame | Uint8Array) => item instanceof Uint8Array ? item.length : encodedLength(item)

/** Items as few parts: small ones in one, a large one as it is, since a copy of it would be garbage soon. */
const joined = (items: ReadonlyArray<Frame | Uint8Array>): Array<Uint8Array> => {
  const parts = items.flatMap((item) => item instanceof Uint8Array ? [item] : partsOf(item))
  const isLarge = items.length === 1 && parts.some((part) => part.length > PIECE_BYTES)
  return isLarge || parts.length <= 1 ? parts : [concat(parts)]
}

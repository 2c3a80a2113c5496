/**
 * Decodes the two text framings, alone or mixed: one message a line, and header blocks with a `Content-Length`.
 *
 * Both are read line by line; only the body behind a header block is counted. Where a header is damaged, reading goes on
 * at the next newline or, since a body has no newline of its own, at a `Content-Length: <n>` that ends a line: no JSON
 * text ends like that, so that it is a header whatever stands before it.
 *
 * @since 0.1.0
 */
import { makeBodyReader } from "./bodyReader.ts"
import { makeByteBuffer } from "./byteBuffer.ts"
import type { ByteDecoder, FrameSink, TextKind } from "./frameSink.ts"
import type { IdScanner } from "./idScanner.ts"
import { makeIdScanner, scanEnvelope } from "./idScanner.ts"

const MAX_HEADER_BYTES = 8_192
const SAMPLE_BYTES = 64
// enough for "Content-Length: " with a few spaces and the largest length
const TAIL_BYTES = 64

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const QUOTE = 0x22

const OPENS_BLOCK = /^content-(?:length|type)[ \t]*:/i
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TRAILING_HEADER = /content-length[ \t]*:[ \t]*\d+[ \t]*$/i
const LENGTH = /^\d{1,15}$/

type Reason = "TooLarge" | "InvalidHeader" | "HeaderTooLarge" | "UnexpectedHeader" | "Incomplete"

/** @internal */
export const makeTextDecoder = (
  mode: "auto" | TextKind,
  maxFrameBytes: number,
  sink: FrameSink<TextKind, Reason>
): ByteDecoder => {
  const line = makeByteBuffer()
  const body = makeBodyReader(maxFrameBytes)
  // header lines have their own limit, and what follows a lost header may be a whole body
  const maxLineBytes = mode === "line" ? maxFrameBytes : Math.max(maxFrameBytes, MAX_HEADER_BYTES * 2)
  const kind: TextKind = mode === "content-length" ? "content-length" : "line"
  let inBody = false
  // a line that is too long: scanned for its id, its end kept for a header that may follow without a newline
  let overlong: { readonly scanner: IdScanner; size: number; readonly tail: Uint8Array } | undefined
  // the header block that is open
  let block: { bytes: number; length: number | undefined; valid: boolean } | undefined
  // what is passed over in silence, since the block it belongs to has been reported: the rest of that block, its body
  let reported: "nothing" | "block" | "body" = "nothing"
  // bytes passed over as the rest of a block
  let skipped = 0

  // ---- complete lines

  const onLine = (bytes: Uint8Array): void => {
    // most lines are a message and nothing else
    if (mode !== "content-length" && block === undefined && reported === "nothing" && isMessage(bytes)) {
      return onMessage(bytes, "line")
    }
    const message = withoutCarriageReturn(withoutByteOrderMark(bytes))
    const text = trimEnd(message)
    if (block !== undefined) return onBlockLine(text, message, block)
    if (isBlank(text)) {
      if (reported === "block") reported = "body"
      return
    }
    if (mode === "line") {
      if (opensBlock(text)) sink.fault("UnexpectedHeader", "line", { size: text.length })
      else onMessage(message, "line")
      return
    }
    if (mode === "auto" || reported === "block" ? opensBlock(text) : isHeader(text)) return openBlock(text)
    const header = trailingHeader(text)
    if (header > 0) {
      onStray(trimEnd(text.subarray(0, header)))
      return openBlock(text.subarray(header))
    }
    if (reported === "block" && !startsMessage(text)) return skip(text)
    if (mode === "auto") onMessage(message, "line")
    else onStray(text)
    reported = "nothing"
  }

  const onMessage = (message: Uint8Array, framing: TextKind) => {
    if (message.length <= maxFrameBytes) return sink.frame(message, framing)
    sink.fault("TooLarge", framing, { size: message.length, envelope: scanEnvelope(message), limit: maxFrameBytes })
  }

  /** Text where a header block should stand. In auto mode it may be a message whose own header was damaged. */
  const onStray = (text: Uint8Array) => {
    if (mode === "auto" && startsMessage(text)) return onMessage(text, "content-length")
    if (reported === "nothing") {
      sink.fault("InvalidHeader", "content-length", { size: text.length, sample: sampleOf(text) })
    }
  }

  /** What goes on for longer than a block may was none, and is reported again: others count what is no message. */
  const skip = (text: Uint8Array) => {
    skipped += text.length
    if (skipped <= MAX_HEADER_BYTES) return
    sink.fault("InvalidHeader", "content-length", { size: skipped, sample: sampleOf(text) })
    skipped = 0
  }

  // ---- header blocks

  const openBlock = (text: Uint8Array) => {
    reported = "nothing"
    block = { bytes: 0, length: undefined, valid: true }
    onBlockLine(text, text, block)
  }

  const onBlockLine = (text: Uint8Array, message: Uint8Array, open: NonNullable<typeof block>): void => {
    if (isBlank(text)) return closeBlock(open)
    if (startsMessage(text)) {
      sink.fault("InvalidHeader", "content-length", { size: open.bytes })
      block = undefined
      reported = "body"
      return onLine(message)
    }
    open.bytes += text.length
    if (open.bytes > MAX_HEADER_BYTES) {
      sink.fault("HeaderTooLarge", "content-length", { size: open.bytes, limit: MAX_HEADER_BYTES })
      block = undefined
      reported = "block"
      skipped = 0
      return
    }
    const header = parseHeader(text)
    if (header === undefined) {
      // something printed into the block: reported, and the block goes on
      sink.fault("InvalidHeader", "content-length", { size: text.length, sample: sampleOf(text) })
    } else if (header.name.toLowerCase() === "content-length") {
      if (open.length !== undefined || !LENGTH.test(header.value)) open.valid = false
      open.length = Number(header.value)
    }
  }

  const closeBlock = (open: NonNullable<typeof block>) => {
    block = undefined
    if (!open.valid || open.length === undefined) {
      sink.fault("InvalidHeader", "content-length", { size: open.bytes })
      reported = "body"
      return
    }
    inBody = true
    body.start(open.length)
    if (open.length === 0) finishBody()
  }

  const finishBody = () => {
    inBody = false
    const done = body.finish()
    if ("bytes" in done) sink.frame(done.bytes, "content-length")
    else sink.fault("TooLarge", "content-length", { ...done, limit: maxFrameBytes })
  }

  // ---- lines that are too long

  const startOverlong = (piece: Uint8Array) => {
    block = undefined
    overlong = { scanner: makeIdScanner(), size: 0, tail: new Uint8Array(TAIL_BYTES) }
    continueOverlong(piece, overlong)
  }

  const continueOverlong = (piece: Uint8Array, long: NonNullable<typeof overlong>) => {
    long.scanner.feed(piece)
    long.size += piece.length
    const end = piece.subarray(-TAIL_BYTES)
    long.tail.copyWithin(0, end.length)
    long.tail.set(end, TAIL_BYTES - end.length)
  }

  const endOverlong = (long: NonNullable<typeof overlong>) => {
    overlong = undefined
    const tail = trimEnd(long.tail)
    const size = long.size - (long.tail.at(-1) === CARRIAGE_RETURN ? 1 : 0)
    if (reported === "nothing" || mode === "auto") {
      sink.fault("TooLarge", kind, { size, envelope: long.scanner.envelope(), limit: maxFrameBytes })
    }
    reported = "nothing"
    if (mode === "line") return
    const header = trailingHeader(tail)
    if (header >= 0) openBlock(tail.subarray(header))
  }

  /** Takes the last piece of a line. */
  const takeLine = (piece: Uint8Array) => {
    if (overlong === undefined && line.size() === 0 && piece.length <= maxLineBytes) return onLine(piece)
    if (overlong === undefined) {
      line.push(piece)
      const whole = line.take()
      // the CR of a CRLF does not count
      if (withoutCarriageReturn(whole).length <= maxLineBytes) return onLine(whole)
      startOverlong(whole)
    } else {
      continueOverlong(piece, overlong)
    }
    if (overlong !== undefined) endOverlong(overlong)
  }

  return {
    push: (bytes, start) => {
      // parts of a plain array are made several times faster than parts of a Node Buffer
      const chunk = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
      let offset = start
      while (offset < chunk.length && !sink.isFull()) {
        if (inBody) {
          offset = body.read(chunk, offset)
          if (body.missing() === 0) finishBody()
          continue
        }
        const newline = chunk.indexOf(NEWLINE, offset)
        if (newline >= 0) {
          takeLine(chunk.subarray(offset, newline))
          offset = newline + 1
          continue
        }
        const rest = chunk.subarray(offset)
        if (overlong !== undefined) {
          continueOverlong(rest, overlong)
        } else {
          line.push(rest)
          if (line.size() > maxLineBytes + 1) startOverlong(line.take())
        }
        return chunk.length
      }
      return offset
    },
    end: () => {
      if (inBody) {
        inBody = false
        sink.fault("Incomplete", "content-length", body.abandon())
        return
      }
      if (overlong !== undefined || line.size() > 0) takeLine(new Uint8Array(0))
      if (inBody || block !== undefined) sink.fault("Incomplete", "content-length", { size: block?.bytes ?? 0 })
      inBody = false
      block = undefined
    }
  }
}

/** Splits a header line, or returns undefined for what is none. */
const parseHeader = (text: Uint8Array): { readonly name: string; readonly value: string } | undefined => {
  const line = ascii(text, MAX_HEADER_BYTES)
  const colon = line.indexOf(":")
  const name = line.slice(0, colon).trimEnd()
  return colon > 0 && TOKEN.test(name) ? { name, value: line.slice(colon + 1).trim() } : undefined
}

/** Whether a line can open a block; a name that merely ends in `content-length` is text that was printed before it. */
const isHeader = (text: Uint8Array) => {
  const header = parseHeader(text)
  return header !== undefined && !/[^-]content-length$/i.test(header.name)
}

const trimEnd = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length
  while (end > 0 && isSpace(bytes[end - 1])) end--
  return end === bytes.length ? bytes : bytes.subarray(0, end)
}

const withoutCarriageReturn = (bytes: Uint8Array) => bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes

const isMessage = (bytes: Uint8Array) => bytes[0] === OPEN_BRACE && bytes[bytes.length - 1] === CLOSE_BRACE

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x09 || byte === CARRIAGE_RETURN

const isBlank = (text: Uint8Array) => text.length === 0

const withoutByteOrderMark = (bytes: Uint8Array) =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

const startsMessage = (text: Uint8Array) => {
  let start = 0
  while (isSpace(text[start])) start++
  return text[start] === OPEN_BRACE || text[start] === OPEN_BRACKET
}

const opensBlock = (text: Uint8Array) =>
  (text[0] === 0x43 || text[0] === 0x63) && OPENS_BLOCK.test(ascii(text, TAIL_BYTES))

/** Where a `Content-Length: <n>` begins that ends this text, or -1. A digit as last byte is the cheap first sign. */
const trailingHeader = (text: Uint8Array): number => {
  const last = text.at(-1)
  if (last === undefined || last < 0x30 || last > 0x39) return -1
  const start = Math.max(0, text.length - TAIL_BYTES)
  const match = TRAILING_HEADER.exec(ascii(text.subarray(start), TAIL_BYTES))
  return match === null ? -1 : start + match.index
}

/** The start of a text, to recognise it by; not where it looks like a piece of a message. */
const sampleOf = (text: Uint8Array) => {
  const sample = text.slice(0, SAMPLE_BYTES)
  return sample.some((byte) => byte === QUOTE || byte === OPEN_BRACE) ? undefined : sample
}

/** Bytes as characters of the same number: what header syntax is made of. */
const ascii = (bytes: Uint8Array, limit: number): string => latin1.decode(bytes.subarray(0, limit))

const latin1 = new TextDecoder("latin1")

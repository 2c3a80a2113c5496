/**
 * What stands before, for and behind the bytes of a message on the wire.
 *
 * @since 0.1.0
 */
import type { Frame } from "../Framing.ts"

const NEWLINE = 0x0a
const SPACE = 0x20
const NOTHING = new Uint8Array(0)
const LINE_END = Uint8Array.of(NEWLINE)
const encoder = new TextEncoder()

const headOf = ({ bytes, framing }: Frame): Uint8Array => {
  switch (framing) {
    case "line":
      return NOTHING
    case "content-length":
      return encoder.encode(`Content-Length: ${bytes.length}\r\n\r\n`)
    case "native": {
      const head = new Uint8Array(4)
      new DataView(head.buffer).setUint32(0, bytes.length, true)
      return head
    }
  }
}

/** The message itself; in a line, a newline between JSON's tokens becomes a space. */
const bodyOf = ({ bytes, framing }: Frame): Uint8Array =>
  framing === "line" && bytes.includes(NEWLINE) ? bytes.map((byte) => byte === NEWLINE ? SPACE : byte) : bytes

const tailOf = ({ framing }: Frame): Uint8Array => framing === "line" ? LINE_END : NOTHING

/** The parts of a frame on the wire that are not empty. @internal */
export const partsOf = (frame: Frame): Array<Uint8Array> =>
  [headOf(frame), bodyOf(frame), tailOf(frame)].filter((part) => part.length > 0)

/** @internal */
export const concat = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  let size = 0
  for (const part of parts) size += part.length
  const bytes = new Uint8Array(size)
  let offset = 0
  for (const part of parts) {
    bytes.set(part, offset)
    offset += part.length
  }
  return bytes
}

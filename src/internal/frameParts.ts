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

/** @internal */
export const headOf = ({ bytes, framing }: Frame): Uint8Array => {
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

/** The message itself; in a line, a newline between JSON's tokens becomes a space. @internal */
export const bodyOf = ({ bytes, framing }: Frame): Uint8Array =>
  framing === "line" && bytes.includes(NEWLINE) ? bytes.map((byte) => byte === NEWLINE ? SPACE : byte) : bytes

/** @internal */
export const tailOf = ({ framing }: Frame): Uint8Array => framing === "line" ? LINE_END : NOTHING

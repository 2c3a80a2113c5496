/**
 * Reads what a server wrote, strictly: any byte that does not belong to a frame is told.
 */
import { Buffer } from "node:buffer"

/** A message as it came; its members are what the test says they are. */
export interface Message {
  readonly jsonrpc: "2.0"
  readonly id?: unknown
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export interface FrameReader {
  readonly push: (chunk: Buffer) => void
  readonly messages: Array<Message>
  /** What is no frame: a sentence for each place. */
  readonly violations: Array<string>
  /** Bytes of a frame that is not complete. */
  readonly rest: () => number
}

const LF = 0x0a
const HEADER = /^Content-Length: (\d+)\r$/

/** Takes bytes in any pieces, of lines and of frames with a Content-Length header. */
export const makeFrameReader = (): FrameReader => {
  const messages: Array<Message> = []
  const violations: Array<string> = []
  let pieces: Array<Buffer> = []
  let size = 0
  // the bytes of the body whose header was read, and whether the empty line after the header was
  let body: number | undefined
  let inHeader = false

  const take = (): Buffer => {
    const bytes = Buffer.concat(pieces)
    pieces = []
    size = 0
    return bytes
  }

  const onBody = (text: string) => {
    try {
      const value: unknown = JSON.parse(text)
      // a batch comes as one frame
      for (const message of Array.isArray(value) ? value as Array<unknown> : [value]) {
        if (typeof message !== "object" || message === null || !("jsonrpc" in message) || message.jsonrpc !== "2.0") {
          violations.push(`no message: ${excerpt(text)}`)
        } else {
          messages.push(message as Message)
        }
      }
    } catch {
      violations.push(`no JSON: ${excerpt(text)}`)
    }
  }

  const onLine = (line: string) => {
    if (inHeader) {
      if (line !== "\r") violations.push(`no end of a header: ${excerpt(line)}`)
      inHeader = false
      return
    }
    const length = HEADER.exec(line)?.[1]
    if (length !== undefined) {
      inHeader = true
      body = Number(length)
    } else if (line.startsWith("{") || line.startsWith("[")) {
      if (line.endsWith("\r")) violations.push("a line ends in 0D 0A")
      onBody(line)
    } else {
      violations.push(`no frame: ${excerpt(line)}`)
    }
  }

  return {
    messages,
    violations,
    rest: () => size,
    push: (chunk) => {
      let rest = chunk
      while (rest.length > 0) {
        const inBody = body !== undefined && !inHeader
        const at = inBody ? (body ?? 0) - size : rest.indexOf(LF) + 1
        const isComplete = inBody ? at <= rest.length : at > 0
        const part = isComplete ? rest.subarray(0, at) : rest
        rest = rest.subarray(part.length)
        pieces.push(part)
        size += part.length
        if (!isComplete) return
        const text = take().toString("utf8")
        if (inBody) {
          body = undefined
          onBody(text)
        } else {
          onLine(text.slice(0, -1))
        }
      }
    }
  }
}

const excerpt = (text: string) => JSON.stringify(text.slice(0, 200))

// Bytes and frames in the form tests compare: text instead of bytes, plain objects instead of errors.
import type * as Framing from "effect-stdio/Framing"
import { makeDecoder } from "effect-stdio/Framing"

const encoder = new TextEncoder()

/** Joins texts, bytes and lists of byte values. */
export const bytes = (...parts: ReadonlyArray<string | Uint8Array | ReadonlyArray<number>>): Uint8Array => {
  const pieces = parts.map((part) => typeof part === "string" ? encoder.encode(part) : Uint8Array.from(part))
  const joined = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0))
  let offset = 0
  for (const piece of pieces) {
    joined.set(piece, offset)
    offset += piece.length
  }
  return joined
}

/** Text of bytes; those that are not UTF-8 become U+FFFD, and a byte order mark stays. */
export const text = (chunk: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(chunk)

/** A message behind its `Content-Length` header. */
export const counted = (body: string): string => `Content-Length: ${encoder.encode(body).length}\r\n\r\n${body}`

/** A message behind its four-byte length. */
export const prefixed = (body: string | Uint8Array): Uint8Array => {
  const content = bytes(body)
  const prefix = new Uint8Array(4)
  new DataView(prefix.buffer).setUint32(0, content.length, true)
  return bytes(prefix, content)
}

/** Cuts bytes into chunks of these sizes, which repeat; copies, so that nothing is shared between chunks. */
export const split = (whole: Uint8Array, sizes: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  for (let start = 0; start < whole.length;) {
    const size = Math.max(1, sizes[pieces.length % sizes.length] ?? 1)
    pieces.push(whole.slice(start, start + size))
    start += size
  }
  return pieces
}

/** A frame or fault as a plain object. */
export type Seen =
  | { readonly framing: Framing.Kind; readonly text: string }
  | {
    readonly fault: Framing.Fault["reason"]
    readonly framing: Framing.Kind
    readonly id: string | number | null
    readonly responseShaped: boolean
    readonly size: number
    readonly limit?: number
    readonly sample?: string
  }

/** Puts an item into the form that is compared. */
export const seen = (item: Framing.Item): Seen =>
  item._tag === "Frame"
    ? { framing: item.framing, text: text(item.bytes) }
    : {
      fault: item.reason,
      framing: item.framing,
      id: item.id,
      responseShaped: item.responseShaped,
      size: item.size,
      ...(item.limit === undefined ? {} : { limit: item.limit }),
      ...(item.sample === undefined ? {} : { sample: item.sample })
    }

/** A fault as it looks where nothing can be said of the message. */
export const fault = (
  reason: Framing.Fault["reason"],
  framing: Framing.Kind,
  size: number,
  more?: Partial<Omit<Extract<Seen, { readonly fault: unknown }>, "fault" | "framing" | "size">>
): Seen => ({ fault: reason, framing, id: null, responseShaped: false, size, ...more })

/** A frame as it is compared. */
export const line = (content: string): Seen => ({ framing: "line", text: content })
export const block = (content: string): Seen => ({ framing: "content-length", text: content })
export const native = (content: string): Seen => ({ framing: "native", text: content })

/** Decodes chunks without the end of the input. */
export const decodeOpen = (
  options: Framing.DecodeOptions | undefined,
  chunks: ReadonlyArray<Uint8Array>
): ReadonlyArray<Framing.Item> => {
  const decoder = makeDecoder(options)
  const items: Array<Framing.Item> = []
  for (const chunk of chunks) decoder.push(chunk, items)
  return items
}

/** Decodes chunks and the end of the input behind them. */
export const decodeChunks = (
  options: Framing.DecodeOptions | undefined,
  chunks: ReadonlyArray<Uint8Array>
): ReadonlyArray<Framing.Item> => {
  const decoder = makeDecoder(options)
  const items: Array<Framing.Item> = []
  for (const chunk of chunks) decoder.push(chunk, items)
  decoder.end(items)
  return items
}

/** What comes of an input: whole, a byte a chunk, and in odd chunks, which must all give the same. */
export const decodeAll = (
  options: Framing.DecodeOptions | undefined,
  input: string | Uint8Array
): ReadonlyArray<Seen> => {
  const whole = bytes(input)
  const results = [[whole.length], [1], [2, 1, 3], [7]].map((sizes) =>
    decodeChunks(options, split(whole, sizes)).map(seen)
  )
  for (const result of results) {
    if (JSON.stringify(result) !== JSON.stringify(results[0])) {
      throw new Error(`chunks make a difference:\n${JSON.stringify(results[0])}\n${JSON.stringify(result)}`)
    }
  }
  return results[0] ?? []
}

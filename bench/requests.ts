/**
 * Requests that are encoded before anything is measured: one buffer in which each has the same length, so that any
 * number of them in a row is one slice and one write.
 */

/** How messages are told apart. */
export type Framing = "line" | "content-length"

export interface Requests {
  readonly framing: Framing
  readonly bytes: Buffer
  readonly count: number
  /** Bytes of one request, framing included. */
  readonly size: number
}

export const encode = (message: object, framing: Framing): Buffer => {
  const text = JSON.stringify(message)
  return Buffer.from(
    framing === "line" ? `${text}\n` : `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
}

// ids of one length; they come again when as many requests were sent as there are
const FIRST_ID = 100_000

/** Encodes `count` requests that differ in nothing but their id. */
export const encodeRequests = (
  framing: Framing,
  request: { readonly method: string; readonly params?: object | undefined },
  count: number
): Requests => {
  const size = encode({ jsonrpc: "2.0", id: FIRST_ID, ...request }, framing).length
  const bytes = Buffer.alloc(size * count)
  for (let index = 0; index < count; index++) {
    encode({ jsonrpc: "2.0", id: FIRST_ID + index, ...request }, framing).copy(bytes, index * size)
  }
  return { framing, bytes, count, size }
}

/** Counts whole messages in chunks as they come. */
export type Counter = (chunk: Buffer) => number

export const makeCounter = (framing: Framing): Counter => framing === "line" ? countNewlines : makeHeaderCounter()

const countNewlines: Counter = (chunk) => {
  let count = 0
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) count++
  return count
}

const makeHeaderCounter = (): Counter => {
  // what is known of a header block that is not complete, and what of a body is still to come
  let header = ""
  let body = 0
  return (chunk) => {
    let count = 0
    let at = 0
    while (at < chunk.length) {
      if (body > 0) {
        const taken = Math.min(body, chunk.length - at)
        body -= taken
        at += taken
        if (body === 0) count++
        continue
      }
      const end = chunk.indexOf(10, at) + 1
      header += chunk.toString("latin1", at, end === 0 ? chunk.length : end)
      at = end === 0 ? chunk.length : end
      if (!header.endsWith("\r\n\r\n")) continue
      body = Number(/content-length: *(\d+)/i.exec(header)?.[1])
      if (!(body > 0)) throw new Error(`a header block without a length: ${JSON.stringify(header)}`)
      header = ""
    }
    return count
  }
}

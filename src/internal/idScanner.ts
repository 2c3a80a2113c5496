/**
 * Reads the top-level `id` of a JSON object byte by byte, in constant memory, without reading the rest: a frame that is
 * too long to keep, or whose text is not UTF-8, still belongs to somebody who waits for an answer.
 *
 * @since 0.1.0
 */
import type { Id } from "../Schema.ts"
import { isId } from "../Schema.ts"

/** @internal */
export interface Envelope {
  readonly id: Id | null
  readonly responseShaped: boolean
}

/** @internal */
export interface IdScanner {
  readonly feed: (bytes: Uint8Array) => void
  readonly envelope: () => Envelope
}

const MAX_KEY_BYTES = 16
const MAX_ID_BYTES = 1_024

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c

/** @internal */
export const makeIdScanner = (): IdScanner => {
  let depth = 0
  let inString = false
  let escaped = false
  // at depth 1: a key comes next, or the value of `key` is being passed
  let inValue = false
  let key = ""
  let id: Array<number> = []
  let idSeen = false
  let hasMethod = false
  let hasOutcome = false
  let isObject: boolean | undefined

  const startValue = () => {
    inValue = true
    if (key === "id") {
      idSeen = true
      id = []
    } else if (key === "method") {
      hasMethod = true
    } else if (key === "result" || key === "error") {
      hasOutcome = true
    }
  }

  const keep = (byte: number) => {
    if (depth !== 1) return
    if (inValue) {
      if (key === "id" && id.length <= MAX_ID_BYTES) id.push(byte)
    } else if (key.length <= MAX_KEY_BYTES) {
      key += String.fromCharCode(byte)
    }
  }

  const feed = (bytes: Uint8Array) => {
    for (const byte of bytes) {
      if (isObject === undefined) {
        if (byte === 0x7b) {
          isObject = true
          depth = 1
        } else if (byte > 0x20 && byte < 0x80) {
          isObject = false
        }
        continue
      }
      if (!isObject || depth === 0) continue
      if (inString) {
        if (escaped) {
          escaped = false
        } else if (byte === BACKSLASH) {
          escaped = true
        } else if (byte === QUOTE) {
          inString = false
          if (inValue) keep(byte)
          continue
        }
        keep(byte)
        continue
      }
      switch (byte) {
        case QUOTE:
          inString = true
          if (inValue) keep(byte)
          else if (depth === 1) key = ""
          break
        case 0x7b: // {
        case 0x5b: // [
          keep(byte) // an id that is an object or an array parses as nothing, hence null
          depth++
          break
        case 0x7d: // }
        case 0x5d: // ]
          depth--
          break
        case COLON:
          if (depth === 1 && !inValue) startValue()
          break
        case COMMA:
          if (depth === 1) inValue = false
          break
        default:
          if (inValue && byte > 0x20) keep(byte)
      }
    }
  }

  const readId = (): Id | null => {
    if (!idSeen || id.length === 0 || id.length > MAX_ID_BYTES) return null
    try {
      const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(id)))
      return isId(value) ? value : null
    } catch {
      // cut off, or not a value
      return null
    }
  }

  return { feed, envelope: () => ({ id: readId(), responseShaped: hasOutcome && !hasMethod }) }
}

/** @internal */
export const scanEnvelope = (bytes: Uint8Array): Envelope => {
  const scanner = makeIdScanner()
  scanner.feed(bytes)
  return scanner.envelope()
}

/**
 * Bytes to frames and back: how the messages of a pipe are told apart.
 *
 * Three framings are known: one message a line (MCP, codex), a `Content-Length` header block before each message
 * (Language Server Protocol), and a four-byte length before each message (browser native messaging). `auto` reads the
 * first two, mixed, on one pipe. The one idea to know: whatever is wrong with a frame becomes a {@link Fault} *in* the
 * stream, so that its neighbours live.
 *
 * @module
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { decodeStream } from "./internal/decodeStream.ts"
import { concat, partsOf } from "./internal/frameParts.ts"
import type { FrameSink } from "./internal/frameSink.ts"
import { scanEnvelope } from "./internal/idScanner.ts"
import { makeLengthPrefixDecoder } from "./internal/lengthPrefixDecoder.ts"
import { makeTextDecoder } from "./internal/textFramingDecoder.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/**
 * How one frame is delimited on the wire.
 *
 * - `line`: the message, then `\n`.
 * - `content-length`: `Content-Length: <bytes>\r\n\r\n`, then the message.
 * - `native`: the number of bytes as a little-endian 32-bit integer, then the message.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#baseProtocol
 * @see https://developer.chrome.com/docs/extensions/develop/concepts/native-messaging#native-messaging-host-protocol
 * @category models
 * @since 0.1.0
 */
export type Kind = "line" | "content-length" | "native"

/**
 * What a reader accepts: one {@link Kind}, or `auto` for `line` and `content-length`, told apart message by message.
 *
 * @category models
 * @since 0.1.0
 */
export type Mode = Kind | "auto"

/**
 * The bytes of exactly one message, without delimiter or header.
 *
 * **Details**
 *
 * The bytes are those that arrived: a relay can pass them on unchanged. `framing` says how they were delimited, and so
 * how a reply to them must be.
 *
 * @category models
 * @since 0.1.0
 */
export interface Frame {
  readonly _tag: "Frame"
  readonly bytes: Uint8Array
  readonly framing: Kind
}

/**
 * Says what is wrong with a piece of the input; it stands in the stream where the frame would have stood.
 *
 * **Details**
 *
 * - `TooLarge`: longer than `maxFrameBytes`; it was skipped without being kept.
 * - `InvalidUtf8`: the bytes of the message are not UTF-8.
 * - `InvalidHeader`: a header block without a usable length, or text where a header block must stand.
 * - `HeaderTooLarge`: a header block of more than 8 KiB.
 * - `UnexpectedHeader`: a `Content-Length` header where one message a line is expected.
 * - `Incomplete`: the input ended inside a frame.
 *
 * `id` is the top-level id of the frame where one could be read, `responseShaped` whether it looks like a response,
 * `size` the bytes seen, and `sample` up to 64 characters of text that stands where no text may stand (never the
 * content of a message).
 *
 * @category errors
 * @since 0.1.0
 */
export class Fault extends Schema.TaggedError<Fault>()("Fault", {
  reason: Schema.Literals([
    "TooLarge",
    "InvalidUtf8",
    "InvalidHeader",
    "HeaderTooLarge",
    "UnexpectedHeader",
    "Incomplete"
  ]),
  framing: Schema.Literals(["line", "content-length", "native"]),
  id: Schema.NullOr(Schema.Union([Schema.String, Schema.Int])),
  responseShaped: Schema.Boolean,
  size: Schema.Int,
  limit: Schema.optionalKey(Schema.Int),
  sample: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    const sample = this.sample === undefined ? "" : `: ${JSON.stringify(this.sample)}`
    switch (this.reason) {
      case "TooLarge":
        return `frame too large: more than the limit of ${this.limit} bytes`
      case "InvalidUtf8":
        return "the frame is not valid UTF-8"
      case "InvalidHeader":
        return `no valid Content-Length header (is the other side writing one message a line?)${sample}`
      case "HeaderTooLarge":
        return `the header block is larger than ${this.limit} bytes`
      case "UnexpectedHeader":
        return "a Content-Length header where one message a line is expected; set the framing to auto or content-length"
      case "Incomplete":
        return "the input ended inside a frame"
    }
  }
}

/**
 * One element of a framed input.
 *
 * @category models
 * @since 0.1.0
 */
export type Item = Frame | Fault

/**
 * Options of the decoders.
 *
 * @category models
 * @since 0.1.0
 */
export interface DecodeOptions {
  /** How messages are told apart. @default "auto" */
  readonly framing?: Mode | undefined
  /** Largest accepted frame, in bytes; a longer one is skipped. @default 33554432 (32 MiB) */
  readonly maxFrameBytes?: number | undefined
}

/**
 * A decoder that is fed by hand.
 *
 * **Details**
 *
 * `push` takes the next chunk and appends what it completes to `into`; `end` does the same for what the end of the input
 * completes. A consumer that wants few at a time says where in the chunk to start (`offset`, 0 by default) and how many
 * items `into` may hold (`maxItems`, no limit by default): `push` returns the offset it reached. The cost is linear in the
 * bytes, whatever the size of the chunks. Chunks are kept until the frames cut from
 * them are dropped, so they must not be written to afterwards.
 *
 * @category models
 * @since 0.1.0
 */
export interface Decoder {
  /** Takes the next chunk, and returns the offset it reached. */
  readonly push: (chunk: Uint8Array, into: Array<Item>, offset?: number, maxItems?: number) => number
  /** Takes the end of the input. */
  readonly end: (into: Array<Item>) => void
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * Largest frame accepted when nothing else is said: 32 MiB, in bytes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultMaxFrameBytes: number = 32 * 1024 * 1024

/**
 * Returns the frame of some bytes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const frame = (bytes: Uint8Array, framing: Kind): Frame => new FrameOf(bytes, framing)

// a class for the sake of V8's collector, see docs/performance.md
class FrameOf implements Frame {
  readonly _tag = "Frame"
  readonly bytes: Uint8Array
  readonly framing: Kind

  constructor(bytes: Uint8Array, framing: Kind) {
    this.bytes = bytes
    this.framing = framing
  }
}

/**
 * Returns the frame of some text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const frameOfText = (text: string, framing: Kind): Frame => frame(encoder.encode(text), framing)

// -----------------------------------------------------------------------------
// decoding
// -----------------------------------------------------------------------------

/**
 * Makes a {@link Decoder}.
 *
 * @category decoding
 * @since 0.1.0
 */
export const makeDecoder = (options?: DecodeOptions): Decoder => {
  const maxFrameBytes = options?.maxFrameBytes ?? defaultMaxFrameBytes
  const mode = options?.framing ?? "auto"
  let items: Array<Item> = []
  let enough = Infinity
  const sink: FrameSink<Kind, Fault["reason"]> = {
    isFull: () => items.length >= enough,
    frame: (bytes, framing) => {
      items.push(frame(bytes, framing))
    },
    fault: (reason, framing, details) => {
      items.push(
        new Fault({
          reason,
          framing,
          size: details.size,
          id: details.envelope?.id ?? null,
          responseShaped: details.envelope?.responseShaped ?? false,
          ...(details.limit === undefined ? {} : { limit: details.limit }),
          ...(details.sample === undefined ? {} : { sample: printable(details.sample) })
        })
      )
    }
  }
  const bytes = mode === "native"
    ? makeLengthPrefixDecoder(maxFrameBytes, sink)
    : makeTextDecoder(mode, maxFrameBytes, sink)
  return {
    push: (chunk, into, offset = 0, maxItems = Infinity) => {
      items = into
      enough = maxItems
      return bytes.push(chunk, offset)
    },
    end: (into) => {
      items = into
      bytes.end()
    }
  }
}

const printable = (sample: Uint8Array) =>
  new TextDecoder().decode(sample).replace(/[^\x20-\x7e\u00a0-\ufffc]/g, "\u00b7")

/**
 * Decodes a stream of chunks into frames and faults.
 *
 * **Details**
 *
 * The stream fails only when its source fails. Frames that arrive together come in arrays of up to 64, so that consumers
 * can work on arrays (`Stream.runForEachArray`).
 *
 * **Example** (Reading the messages of a stream)
 *
 * ```ts
 * import * as Stream from "effect/Stream"
 * import * as Framing from "effect-stdio/Framing"
 *
 * const items = Stream.make(new TextEncoder().encode("{\"a\":1}\n{\"a\":2}\n")).pipe(Framing.decode({ framing: "line" }))
 * ```
 *
 * @category decoding
 * @since 0.1.0
 */
export const decode =
  (options?: DecodeOptions) => <E, R>(self: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Item, E, R> =>
    decodeStream(self, () => makeDecoder(options), {
      onChunks: () => {},
      onError: (cause: Cause.Cause<E>) => cause,
      onEnd: Effect.void
    })

/**
 * Reads the text of a frame, strictly: bytes that are not UTF-8 are a {@link Fault}, never replacement characters.
 *
 * @category decoding
 * @since 0.1.0
 */
export const text = (self: Frame): Result.Result<string, Fault> => {
  try {
    return Result.succeed(decoder.decode(self.bytes))
  } catch {
    return Result.fail(
      new Fault({
        reason: "InvalidUtf8",
        framing: self.framing,
        size: self.bytes.length,
        ...scanEnvelope(self.bytes)
      })
    )
  }
}

// one of each serves all: neither keeps state between calls without `stream: true`
const decoder = new TextDecoder("utf-8", { fatal: true })
const encoder = new TextEncoder()

// -----------------------------------------------------------------------------
// encoding
// -----------------------------------------------------------------------------

/**
 * Number of bytes of a frame on the wire.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encodedLength = (self: Frame): number => {
  switch (self.framing) {
    case "line":
      return self.bytes.length + 1
    case "content-length":
      return `Content-Length: ${self.bytes.length}\r\n\r\n`.length + self.bytes.length
    case "native":
      return self.bytes.length + 4
  }
}

/**
 * Writes frames, each in its own framing, as one piece of bytes, so that frames queued together leave in one write.
 *
 * **Gotchas**
 *
 * A newline inside a message that leaves as a line becomes a space: both are white space between JSON's tokens.
 *
 * **Example** (Round trip)
 *
 * ```ts
 * import * as Framing from "effect-stdio/Framing"
 *
 * const bytes = Framing.encode([Framing.frameOfText("{}", "line"), Framing.frameOfText("{}", "content-length")])
 * // "{}\nContent-Length: 2\r\n\r\n{}"
 * ```
 *
 * @category encoding
 * @since 0.1.0
 */
export const encode = (frames: ReadonlyArray<Frame>): Uint8Array => concat(frames.flatMap(partsOf))

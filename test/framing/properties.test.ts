/**
 * What holds for all inputs: any messages in any mix of framings and any chunks, and any bytes at all.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { bytes, counted, decodeChunks, decodeOpen, seen, split } from "../utils/bytes.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Sizes = Arbitrary.array(Arbitrary.schema(Schema.Literals([1, 2, 3, 4, 5, 7, 11, 16, 40])), {
  minLength: 1,
  maxLength: 12
})

// text that looks like framing, and characters of every length in bytes
const Content = Schema.Union([
  Schema.Json,
  Schema.Literals([
    "Content-Length: 5\r\n\r\n",
    "\r\n",
    "\n\n",
    "\ufeff",
    "\u2028\u2029\u0085",
    "日本—🎉é",
    "{\"id\":1}",
    "\\",
    "\"",
    7
  ])
])

const Message = Schema.Struct({ id: Schema.Union([Schema.Int, Schema.String]), params: Schema.Array(Content) })

const texts = (items: ReadonlyArray<Framing.Item>) =>
  items.map((item) =>
    item._tag === "Frame"
      ? { framing: item.framing, text: Result.getOrElse(Framing.text(item), (fault): string => fault.message) }
      : seen(item)
  )

describe("any messages", () => {
  const Kind = Schema.Literals(["line", "content-length"])
  const runs = { arbitrary: { runs: 150, size: 8 } }

  it.effect.prop(
    "come out as they went in, in any mix of the text framings and any chunks",
    { messages: Arbitrary.array(Arbitrary.schema(Schema.Tuple([Kind, Message]))), sizes: Sizes },
    ({ messages, sizes }) =>
      Effect.gen(function*() {
        const frames = messages.map(([kind, message]) => Framing.frameOfText(JSON.stringify(message), kind))
        const items = yield* Stream.fromIterable(split(Framing.encode(frames), sizes)).pipe(
          Framing.decode(),
          Stream.runCollect
        )
        assert.deepStrictEqual(items, frames)
      }),
    runs
  )

  it.effect.prop(
    "come out as they went in, in one framing and any chunks",
    {
      framing: Schema.Literals(["line", "content-length", "native"]),
      messages: Schema.Array(Message),
      sizes: Sizes
    },
    ({ framing, messages, sizes }) =>
      Effect.gen(function*() {
        const frames = messages.map((message) => Framing.frameOfText(JSON.stringify(message), framing))
        const items = yield* Stream.fromIterable(split(Framing.encode(frames), sizes)).pipe(
          Framing.decode({ framing }),
          Stream.runCollect
        )
        assert.deepStrictEqual(items, frames)
      }),
    runs
  )

  it.effect.prop(
    "come out of what other programs write: headers in any form, line endings, blank lines and byte order marks",
    {
      messages: Schema.Array(Schema.Tuple([
        Message,
        Schema.Literals(["\n", "\r\n", "\n\n", "\r\n\r\n \t\n", "length", "LENGTH", "type", "both", "\ufeff"])
      ])),
      sizes: Sizes
    },
    ({ messages, sizes }) =>
      Effect.sync(() => {
        let wire = ""
        const expected: Array<unknown> = []
        for (const [message, style] of messages) {
          const text = JSON.stringify(message)
          const size = Buffer.byteLength(text)
          const header = {
            length: `content-length:${size}\n\n`,
            LENGTH: `CONTENT-LENGTH: \t${size} \r\n\r\n`,
            type: `Content-Type: a; charset=utf-8\r\nContent-Length: ${size}\r\n\r\n`,
            both: `Content-Length: ${size}\nX-Extra: a:b\r\n\n`
          }[style as string]
          expected.push({ framing: header === undefined ? "line" : "content-length", text })
          wire += header !== undefined ? header + text : style === "\ufeff" ? `\ufeff${text}\n` : text + style
        }
        assert.deepStrictEqual(texts(decodeChunks(undefined, split(bytes(wire), sizes))), expected)
      }),
    runs
  )
})

describe("any bytes", () => {
  // pieces that bring the decoders into each of their states
  const Piece = Schema.Literals([
    "Content-Length: ",
    "content-length:",
    "Content-Length: 5\r\n\r\n",
    "CONTENT-LENGTH: 21\n\n{\"id\":1,\"method\":\"m\"}",
    "Content-Length: 22\r\n",
    "Content-Type: x",
    "X-Other: y",
    "5",
    "40",
    "0",
    "99999999999",
    ":",
    " ",
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "{",
    "}",
    "[",
    "{\"id\":1,\"method\":\"m\"}",
    "{\"id\":\"a\",\"result\":[1,{\"id\":2}]}",
    "\"",
    "\\",
    "debug text",
    "\ufeff",
    "日🎉",
    "\0"
  ])
  // one part in five is random
  const Part = Arbitrary.map(
    Arbitrary.all([
      Arbitrary.schema(between(0, 4)),
      Arbitrary.schema(Piece),
      Arbitrary.schema(Schema.Array(between(0, 255)).check(Schema.isMaxLength(6)))
    ]),
    ([pick, piece, random]) => pick === 0 ? random : piece
  )
  const Soup = Arbitrary.array(Part, { maxLength: 40 })
  const Mode = Schema.Literals(["line", "content-length", "native", "auto"])
  const Limit = Schema.Literals([1, 2, 5, 11, 21, 40, 9_000])
  const runs = { arbitrary: { runs: 2_000, size: 40 } }

  it.effect.prop(
    "are decoded without an exception, into frames within the limit",
    { soup: Soup, framing: Mode, maxFrameBytes: Limit, sizes: Sizes },
    ({ framing, maxFrameBytes, sizes, soup }) =>
      Effect.gen(function*() {
        const items = yield* Stream.fromIterable(split(bytes(...soup), sizes)).pipe(
          Framing.decode({ framing, maxFrameBytes }),
          Stream.runCollect
        )
        for (const item of items) {
          if (item._tag === "Frame") assert.isAtMost(item.bytes.length, maxFrameBytes)
          // both are total functions of what came
          else assert.isString(item.message)
        }
      }),
    runs
  )

  it.effect.prop(
    "give the same frames and faults however they are cut into chunks",
    { soup: Soup, framing: Mode, maxFrameBytes: Limit, sizes: Sizes },
    ({ framing, maxFrameBytes, sizes, soup }) =>
      Effect.sync(() => {
        const whole = bytes(...soup)
        const options = { framing, maxFrameBytes }
        assert.deepStrictEqual(
          decodeChunks(options, split(whole, sizes)).map(seen),
          decodeChunks(options, [whole]).map(seen)
        )
      }),
    runs
  )

  it.effect.prop(
    "leave the text of the frames that they say belongs to them: nothing is invented or moved",
    { soup: Soup, framing: Schema.Literals(["line", "content-length", "auto"]), sizes: Sizes },
    ({ framing, sizes, soup }) =>
      Effect.sync(() => {
        const whole = Buffer.from(bytes(...soup))
        let from = 0
        for (const item of decodeChunks({ framing }, split(whole, sizes))) {
          if (item._tag === "Fault") continue
          const at = whole.indexOf(item.bytes, from)
          assert.isAtLeast(at, from)
          from = at + item.bytes.length
        }
      }),
    runs
  )

  // what follows a header with a number may be a body, which nothing can interrupt
  const COUNTED = /content-length[ \t]*:[ \t]*\d+[ \t\r]*(\n|$)/i

  it.effect.prop(
    "are forgotten after a blank line: the next message is read, unless they announced a body",
    { soup: Soup, framing: Schema.Literals(["line", "auto", "content-length"]), sizes: Sizes },
    ({ framing, sizes, soup }) =>
      Effect.sync(() => {
        const content = bytes(...soup)
        if (framing !== "line" && COUNTED.test(Buffer.from(content).toString("latin1"))) return
        const message = "{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}"
        const wire = framing === "content-length" ? counted(message) : `${message}\n`
        const items = decodeOpen({ framing, maxFrameBytes: 9_000 }, split(bytes(content, "\n\n", wire), sizes))
        const last = items.at(-1)
        assert.deepStrictEqual(last === undefined ? undefined : seen(last), {
          framing: framing === "content-length" ? "content-length" : "line",
          text: message
        })
      }),
    runs
  )

  it.effect.prop(
    "of too many in a line cost one fault, whatever they are",
    { soup: Soup, sizes: Sizes },
    ({ sizes, soup }) =>
      Effect.sync(() => {
        const long = Buffer.from(bytes(...soup)).map((byte) => byte === 0x0a ? 0x20 : byte)
        const items = decodeChunks(
          { framing: "line", maxFrameBytes: 9_000 },
          split(bytes("1\n", "x".repeat(9_000), long, "x\n2\n"), [4_000, ...sizes])
        )
        assert.deepStrictEqual(items.map((item) => item._tag === "Fault" ? item.reason : seen(item)), [
          { framing: "line", text: "1" },
          "TooLarge",
          { framing: "line", text: "2" }
        ])
      }),
    { arbitrary: { runs: 200, size: 40 } }
  )
})

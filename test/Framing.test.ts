import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { block, bytes, counted, decodeChunks, fault, line, prefixed, seen, text } from "./utils/bytes.ts"

const KINDS: ReadonlyArray<Framing.Kind> = ["line", "content-length", "native"]

describe("encode", () => {
  it("writes the exact bytes of each framing", () => {
    assert.deepStrictEqual(
      [
        text(Framing.encode([Framing.frameOfText("{\"a\":1}", "line")])),
        text(Framing.encode([Framing.frameOfText("{\"a\":1}", "content-length")])),
        [...Framing.encode([Framing.frameOfText("{\"a\":1}", "native")])]
      ],
      ["{\"a\":1}\n", "Content-Length: 7\r\n\r\n{\"a\":1}", [7, 0, 0, 0, ...bytes("{\"a\":1}")]]
    )
  })

  it("counts bytes of UTF-8", () => {
    const body = "{\"r\":\"你好—🎉\"}"
    assert.deepStrictEqual(
      [
        Framing.encode([Framing.frameOfText(body, "content-length")]),
        Framing.encode([Framing.frameOfText(body, "native")])
      ],
      [bytes(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`, body), prefixed(body)]
    )
  })

  it("joins frames, each in its own framing", () => {
    const frames = [
      Framing.frameOfText("{}", "line"),
      Framing.frameOfText("[1]", "content-length"),
      Framing.frameOfText("2", "native"),
      Framing.frameOfText("3", "line")
    ]
    assert.deepStrictEqual(Framing.encode(frames), bytes("{}\n", counted("[1]"), prefixed("2"), "3\n"))
  })

  it("writes nothing for no frames, and empty frames as such", () => {
    assert.deepStrictEqual(
      [Framing.encode([]), ...KINDS.map((kind) => Framing.encode([Framing.frameOfText("", kind)]))],
      [bytes(), bytes("\n"), bytes("Content-Length: 0\r\n\r\n"), bytes([0, 0, 0, 0])]
    )
  })

  it("writes a length of more than 65,535 bytes", () => {
    const frame = Framing.frame(new Uint8Array(0x0123_45), "native")
    assert.deepStrictEqual([...Framing.encode([frame]).subarray(0, 4)], [0x45, 0x23, 0x01, 0x00])
  })

  it("writes a space for a newline inside a line, and keeps the frame", () => {
    const pretty = "{\n  \"a\": [\n    1\n  ]\n}\n"
    const frames = [Framing.frameOfText(pretty, "line"), Framing.frameOfText(pretty, "content-length")]
    assert.strictEqual(text(Framing.encode(frames)), `{   "a": [     1   ] } \n${counted(pretty)}`)
    assert.deepStrictEqual(frames.map((frame) => text(frame.bytes)), [pretty, pretty])
  })

  it("leaves the bytes of a frame as they are", () => {
    const body = bytes("\"", [0xb0, 0xa1, 0x0d], "\"")
    const frame = Framing.frame(body, "line")
    assert.deepStrictEqual(Framing.encode([frame]), bytes("\"", [0xb0, 0xa1, 0x0d], "\"\n"))
    assert.strictEqual(frame.bytes, body)
  })
})

describe("encodedLength", () => {
  it("is the number of bytes that encode writes", () => {
    const sizes = [0, 1, 9, 10, 99, 100, 65_535, 65_536, 1_000_000]
    const frames = KINDS.flatMap((kind) => sizes.map((size) => Framing.frame(new Uint8Array(size), kind)))
    assert.deepStrictEqual(
      frames.map(Framing.encodedLength),
      frames.map((frame) => Framing.encode([frame]).length)
    )
  })
})

describe("frames", () => {
  it("say how they came and keep what came", () => {
    const items = decodeChunks(undefined, [bytes("{ \"a\" : 1.0 }\n", counted("[ 2 ]"))])
    assert.deepStrictEqual(items, [
      { _tag: "Frame", bytes: bytes("{ \"a\" : 1.0 }"), framing: "line" },
      { _tag: "Frame", bytes: bytes("[ 2 ]"), framing: "content-length" }
    ])
  })

  it("have text", () => {
    assert.deepStrictEqual(
      Framing.text(Framing.frameOfText("{\"s\":\"日🎉\"}", "line")),
      Result.succeed("{\"s\":\"日🎉\"}")
    )
  })

  it("have text without a byte order mark", () => {
    assert.deepStrictEqual(Framing.text(Framing.frameOfText("\ufeff{}", "native")), Result.succeed("{}"))
  })

  it("of half a surrogate pair are written as valid UTF-8", () => {
    assert.deepStrictEqual(Framing.text(Framing.frameOfText("\"\ud83d\"", "line")), Result.succeed("\"\ufffd\""))
  })
})

describe("faults", () => {
  const make = (reason: Framing.Fault["reason"], more: { readonly limit?: number; readonly sample?: string } = {}) =>
    new Framing.Fault({ reason, framing: "line", id: "hunter2", responseShaped: false, size: 5, ...more })

  it("say in words what is wrong, and nothing of the message", () => {
    assert.deepStrictEqual(
      [
        make("TooLarge", { limit: 4 }),
        make("InvalidUtf8"),
        make("InvalidHeader"),
        make("InvalidHeader", { sample: "debug \"text\"" }),
        make("HeaderTooLarge", { limit: 8_192 }),
        make("UnexpectedHeader"),
        make("Incomplete")
      ].map((fault) => fault.message),
      [
        "frame too large: more than the limit of 4 bytes",
        "the frame is not valid UTF-8",
        "no valid Content-Length header (is the other side writing one message a line?)",
        "no valid Content-Length header (is the other side writing one message a line?): \"debug \\\"text\\\"\"",
        "the header block is larger than 8192 bytes",
        "a Content-Length header where one message a line is expected; set the framing to auto or content-length",
        "the input ended inside a frame"
      ]
    )
  })
})

describe("decode", () => {
  it.effect("gives frames and faults in order, those of one chunk in one array", () =>
    Effect.gen(function*() {
      const arrays: Array<ReadonlyArray<unknown>> = []
      yield* Stream.make(bytes("1\n2\n123456\n3"), bytes("\n"), bytes("4")).pipe(
        Stream.rechunk(1),
        Framing.decode({ framing: "line", maxFrameBytes: 5 }),
        Stream.runForEachArray((items) => Effect.sync(() => arrays.push(items.map(seen))))
      )
      assert.deepStrictEqual(arrays, [
        [line("1"), line("2"), fault("TooLarge", "line", 6, { limit: 5 })],
        [line("3")],
        [line("4")]
      ])
    }))

  it.effect("gives nothing for an input without bytes", () =>
    Effect.gen(function*() {
      const items = yield* Stream.make(bytes(), bytes("")).pipe(Framing.decode(), Stream.runCollect)
      assert.deepStrictEqual([items, yield* Stream.empty.pipe(Framing.decode(), Stream.runCollect)], [[], []])
    }))

  it.effect("fails where the input fails, after the frames before it, without what is incomplete", () =>
    Effect.gen(function*() {
      const collected: Array<unknown> = []
      const exit = yield* Stream.make(bytes("1\n2")).pipe(
        Stream.concat(Stream.fail("broken")),
        Framing.decode({ framing: "line" }),
        Stream.runForEach((item) => Effect.sync(() => collected.push(seen(item)))),
        Effect.exit
      )
      assert.deepStrictEqual(collected, [line("1")])
      assert.deepStrictEqual(exit, Exit.failCause(Cause.fail("broken")))
    }))

  it.effect("begins anew each time the stream is run", () =>
    Effect.gen(function*() {
      const stream = Stream.make(bytes("1\nContent-Length: 9\r\n\r\n2")).pipe(Framing.decode())
      const first = (yield* Stream.runCollect(stream)).map(seen)
      assert.deepStrictEqual(first, [line("1"), fault("Incomplete", "content-length", 1)])
      assert.deepStrictEqual((yield* Stream.runCollect(stream)).map(seen), first)
    }))

  it.effect("reads on after a fault", () =>
    Effect.gen(function*() {
      const items = yield* Stream.make(bytes("Content-Length: x\r\n\r\n"), bytes(counted("{}"))).pipe(
        Framing.decode(),
        Stream.runCollect
      )
      assert.deepStrictEqual(items.map(seen), [fault("InvalidHeader", "content-length", 17), block("{}")])
    }))
})

import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import { bytes, decodeAll, decodeChunks, decodeOpen, fault, native, prefixed, seen, split } from "../utils/bytes.ts"

const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`

describe("frames behind a four-byte length", () => {
  const decode = (input: Uint8Array) => decodeAll({ framing: "native" }, input)

  it("are read in order, several in one chunk", () => {
    assert.deepStrictEqual(decode(bytes(prefixed(ping(1)), prefixed("[]"), prefixed("\"你好🎉\""))), [
      native(ping(1)),
      native("[]"),
      native("\"你好🎉\"")
    ])
  })

  it("read the length little-endian", () => {
    const body = "x".repeat(0x0102)
    assert.deepStrictEqual(decode(bytes([0x02, 0x01, 0x00, 0x00], body)), [native(body)])
  })

  it.each([[1, 3], [3, 1], [2, 2], [1, 1, 1, 1]])("may have their length split in chunks of %j", (...sizes) => {
    const whole = bytes(prefixed(ping(1)), prefixed(ping(2)))
    const sizesOfAll = [...sizes, ping(1).length, ...sizes, ping(2).length]
    assert.deepStrictEqual(decodeChunks({ framing: "native" }, split(whole, sizesOfAll)).map(seen), [
      native(ping(1)),
      native(ping(2))
    ])
  })

  it("keep newlines, header text and byte order marks as they are", () => {
    const body = "\ufeff\n\nContent-Length: 2\r\n\r\n{}"
    assert.deepStrictEqual(decode(bytes(prefixed(body), prefixed("{}"))), [native(body), native("{}")])
  })

  it("may be empty", () => {
    assert.deepStrictEqual(decode(bytes(prefixed(""), prefixed("{}"), prefixed(""))), [
      native(""),
      native("{}"),
      native("")
    ])
  })

  it.each([65_535, 65_536, 65_537, 1_048_576])("may have %i bytes", (size) => {
    const body = bytes("\"", new Uint8Array(size - 2).fill(0x61), "\"")
    const whole = bytes(prefixed(body), prefixed("{}"))
    for (const sizes of [[whole.length], [65_536], [3, 4_096, 100_000]]) {
      const items = decodeChunks({ framing: "native" }, split(whole, sizes))
      assert.deepStrictEqual(items.map((item) => item._tag === "Frame" ? item.bytes.length : item), [size, 2])
      assert.isTrue(items[0]?._tag === "Frame" && Buffer.compare(items[0].bytes, body) === 0)
    }
  })
})

describe("a length that is too large", () => {
  it("costs one fault with the id of the frame, and the next one is read", () => {
    const big = `{"method":"big","params":["${"x".repeat(100)}"],"id":"late"}`
    assert.deepStrictEqual(
      decodeAll({ framing: "native", maxFrameBytes: 50 }, bytes(prefixed(ping(1)), prefixed(big), prefixed(ping(2)))),
      [
        native(ping(1)),
        fault("TooLarge", "native", big.length, { id: "late", limit: 50 }),
        native(ping(2))
      ]
    )
  })

  it("is exact", () => {
    assert.deepStrictEqual(
      decodeAll({ framing: "native", maxFrameBytes: 4 }, bytes(prefixed("1234"), prefixed("12345"), prefixed("{}"))),
      [native("1234"), fault("TooLarge", "native", 5, { limit: 4 }), native("{}")]
    )
  })

  it("allocates nothing for FF FF FF FF", () => {
    const chunk = bytes([0xff, 0xff, 0xff, 0xff], "{\"id\":3,\"method\":\"m\"")
    const before = process.memoryUsage().arrayBuffers
    const items = decodeOpen({ framing: "native" }, [chunk])
    assert.isBelow(process.memoryUsage().arrayBuffers - before, 1024 * 1024)
    assert.deepStrictEqual(items.map(seen), [fault("TooLarge", "native", 4_294_967_295, { limit: 33_554_432 })])
  })

  it("keeps nothing of what it skips", () => {
    const chunk = new Uint8Array(65_536).fill(0x20)
    const decoder = Framing.makeDecoder({ framing: "native" })
    const items: Array<Framing.Item> = []
    decoder.push(bytes([0xff, 0xff, 0xff, 0xff]), items)
    const before = process.memoryUsage().arrayBuffers
    for (let count = 0; count < 1_024; count++) decoder.push(chunk, items)
    assert.isBelow(process.memoryUsage().arrayBuffers - before, 8 * 1024 * 1024)
    assert.strictEqual(items.length, 1)
  })

  it("is one fault when the input ends before it", () => {
    assert.deepStrictEqual(
      decodeAll({ framing: "native" }, bytes(prefixed("{}"), [0xff, 0xff, 0xff, 0xff], "{\"id\":3,\"method\":\"m\"")),
      // such a length is text on the pipe: it is reported at once, and not again
      [native("{}"), fault("TooLarge", "native", 4_294_967_295, { limit: 33_554_432 })]
    )
    assert.deepStrictEqual(
      decodeAll({ framing: "native" }, bytes(prefixed("{}"), [0, 0, 0, 3], "{\"id\":3,\"method\":\"m\"")),
      [native("{}"), fault("Incomplete", "native", 20, { id: 3 })]
    )
  })
})

describe("an input that ends inside a frame", () => {
  const decode = (input: Uint8Array) => decodeAll({ framing: "native" }, input)

  it("is one fault with what was read of it", () => {
    assert.deepStrictEqual(decode(bytes(prefixed("{}"), [100, 0, 0, 0], "{\"id\":\"a\",\"result\":1")), [
      native("{}"),
      fault("Incomplete", "native", 20, { id: "a", responseShaped: true })
    ])
  })

  it("is one fault inside a length and right behind it", () => {
    assert.deepStrictEqual([decode(bytes([1, 0])), decode(bytes([1, 0, 0, 0]))], [
      [fault("Incomplete", "native", 2)],
      [fault("Incomplete", "native", 0)]
    ])
  })

  it("is nothing between frames", () => {
    assert.deepStrictEqual(decode(prefixed("{}")), [native("{}")])
  })
})

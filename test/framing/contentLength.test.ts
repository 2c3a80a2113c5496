import { assert, describe, it } from "@effect/vitest"
import { block, bytes, counted, decodeAll, fault } from "../utils/bytes.ts"

const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`
const size = ping(1).length

describe("header blocks with a Content-Length", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it("reads bodies back to back", () => {
    assert.deepStrictEqual(decode(counted(ping(1)) + counted("[]") + counted(ping(2))), [
      block(ping(1)),
      block("[]"),
      block(ping(2))
    ])
  })

  it("reads newlines and headers inside a body as its text", () => {
    const body = `{\n  "a": 1\r\n}\n\n${counted("{}")}`
    assert.deepStrictEqual(decode(counted(body) + counted("[]")), [block(body), block("[]")])
  })

  it("counts bytes, not UTF-16 units", () => {
    const body = "{\"result\":\"你好—🎉\"}"
    assert.deepStrictEqual(decode(counted(body) + counted("{}")), [block(body), block("{}")])
  })

  it("reads a body of no bytes", () => {
    assert.deepStrictEqual(decode(`Content-Length: 0\r\n\r\n${counted("{}")}`), [block(""), block("{}")])
  })

  it("reads a body of no bytes at the end of the input", () => {
    assert.deepStrictEqual(decode("Content-Length: 0\r\n\r\n"), [block("")])
  })

  it("skips newlines between messages", () => {
    assert.deepStrictEqual(decode(`\r\n${counted("{}")}\n\r\n\n${counted("[]")}\n`), [block("{}"), block("[]")])
  })

  it("drops a byte order mark before a header", () => {
    assert.deepStrictEqual(decode(`\ufeff${counted("{}")}\ufeff${counted("[]")}`), [block("{}"), block("[]")])
  })

  it.each([
    "content-length: 2",
    "CONTENT-LENGTH: 2",
    "cOnTeNt-LeNgTh: 2",
    "Content-Length:2",
    "Content-Length:    2",
    "Content-Length:\t2",
    "Content-Length : 2",
    "Content-Length: 2   ",
    "Content-Length: 2\t",
    "Content-Length: 0002"
  ])("accepts %j", (header) => {
    assert.deepStrictEqual(decode(`${header}\r\n\r\n{}${header}\r\n\r\n[]`), [block("{}"), block("[]")])
  })

  it("accepts lines that end in a newline alone, and mixed endings", () => {
    assert.deepStrictEqual(
      decode("Content-Length: 2\n\n{}Content-Length: 2\r\n\n[]Content-Length: 2\n\r\n12"),
      [block("{}"), block("[]"), block("12")]
    )
  })

  it.each([
    "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n",
    "Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n",
    "X-First: 1\r\nContent-Length: 2\r\nX-Extra: a:b\r\n",
    "content-type:x\nX_y.z!: \ncontent-length:2\n",
    "Content-Length-Extra: 9\r\nContent-Length: 2\r\n"
  ])("accepts other headers in any order: %j", (headers) => {
    assert.deepStrictEqual(decode(`${headers}\r\n{}${headers}\r\n[]`), [block("{}"), block("[]")])
  })

  it("accepts other headers up to 8 KiB", () => {
    const pad = `X-Pad: ${"x".repeat(8_192 - "Content-Length: 2".length - "X-Pad: ".length)}`
    assert.deepStrictEqual(decode(`Content-Length: 2\r\n${pad}\r\n\r\n{}`), [block("{}")])
  })
})

const LENGTHS = [
  "abc",
  "-1",
  "",
  "+5",
  "4 0",
  "0x28",
  "40.0",
  "1e2",
  "99999999999999999999",
  "40\r\nContent-Length: 40",
  "40\r\nContent-Length: 41",
  "abc\r\nContent-Length: 40"
]

describe("a header block without a usable length", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it.each(LENGTHS)("is one fault, and the message after the next newline is found: %j", (length) => {
    const headers = `Content-Length: ${length}`
    // no body: what the length would have counted is not there
    assert.deepStrictEqual(decode(`${headers}\r\n\r\n${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", headers.replace("\r\n", "").trimEnd().length),
      block(ping(2))
    ])
  })

  it("is one fault where the header is missing", () => {
    assert.deepStrictEqual(decode(`Content-Type: text/plain\r\n\r\n${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 24),
      block(ping(2))
    ])
  })

  it("is one fault together with its body, and the message behind it is found", () => {
    assert.deepStrictEqual(decode(`Content-Length: abc\r\n\r\n${ping(1)}${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 19),
      block(ping(2))
    ])
  })

  it("is one fault together with its body that ends in a newline", () => {
    assert.deepStrictEqual(decode(`Content-Length: abc\r\n\r\n${ping(1)}\n${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 19),
      block(ping(2))
    ])
  })

  it("covers one body, and not the text behind it", () => {
    const lost = `Content-Length: x\r\n\r\n${ping(1)}`
    const stray = fault("InvalidHeader", "content-length", 10, { sample: "debug text" })
    assert.deepStrictEqual(
      [decode(`${lost}\ndebug text\n`), decode(`${lost}${counted(ping(2))}debug text\n`)],
      [
        [fault("InvalidHeader", "content-length", 17), stray],
        [fault("InvalidHeader", "content-length", 17), block(ping(2)), stray]
      ]
    )
  })

  it("never takes the message behind it along", () => {
    for (const length of LENGTHS) {
      const items = decode(`Content-Length: ${length}\r\n\r\n${ping(1)}${counted(ping(2))}${counted(ping(3))}`)
      assert.deepStrictEqual(items.filter((item) => "text" in item), [block(ping(2)), block(ping(3))])
    }
  })
})

describe("a header block of more than 8 KiB", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it("is one fault when one line is that long", () => {
    const pad = `X-Pad: ${"x".repeat(9_000)}`
    assert.deepStrictEqual(decode(`Content-Length: 2\r\n${pad}\r\n\r\n${counted(ping(2))}`), [
      fault("HeaderTooLarge", "content-length", 17 + pad.length, { limit: 8_192 }),
      block(ping(2))
    ])
  })

  it("is one fault however many lines follow", () => {
    const pad = `X-Pad: ${"x".repeat(93)}\r\n`
    assert.deepStrictEqual(decode(`Content-Length: 2\r\n${pad.repeat(90)}\r\n${counted(ping(2))}`), [
      fault("HeaderTooLarge", "content-length", 17 + 82 * 100, { limit: 8_192 }),
      block(ping(2))
    ])
  })
})

describe("text where a header block must stand", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it("is one fault a line that shows it", () => {
    assert.deepStrictEqual(decode(`debug text\n${counted(ping(1))}more text\r\n${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 10, { sample: "debug text" }),
      block(ping(1)),
      fault("InvalidHeader", "content-length", 9, { sample: "more text" }),
      block(ping(2))
    ])
  })

  it("shows at most 64 characters of it, and no control characters", () => {
    assert.deepStrictEqual(decode(`\u001b[31m${"x".repeat(100)}\n`), [
      fault("InvalidHeader", "content-length", 105, { sample: `·[31m${"x".repeat(59)}` })
    ])
  })

  it("costs no message when no newline ends it", () => {
    assert.deepStrictEqual(decode(`debug text${counted(ping(1))}(ok)${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 10, { sample: "debug text" }),
      block(ping(1)),
      fault("InvalidHeader", "content-length", 4, { sample: "(ok)" }),
      block(ping(2))
    ])
  })

  it("costs no message when no newline ends a single word", () => {
    assert.deepStrictEqual(decode(`debug${counted(ping(1))}${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 5, { sample: "debug" }),
      block(ping(1)),
      block(ping(2))
    ])
  })

  it("costs no message inside a header block", () => {
    assert.deepStrictEqual(decode(`Content-Type: x\r\ndebug text\nContent-Length: ${size}\r\n\r\n${ping(1)}`), [
      fault("InvalidHeader", "content-length", 10, { sample: "debug text" }),
      block(ping(1))
    ])
  })

  it("is a fault a line when the other side writes one message a line, even before the input ends", () => {
    const items = decode(`${ping(1)}\n${ping(2)}\n`)
    assert.deepStrictEqual(items.map((item) => "fault" in item ? [item.fault, item.size] : item), [
      ["InvalidHeader", size],
      ["InvalidHeader", size]
    ])
  })

  it("shows nothing of a message", () => {
    const items = decode(
      `{"token":"hunter2"}\n[{"token":"hunter2"}]\n{token:hunter2}\n"hunter2"\nContent-Length: x\r\n\r\n{"token":"hunter2"}\n`
    )
    assert.isAbove(items.length, 4)
    assert.notInclude(JSON.stringify(items), "hunter2")
  })
})

describe("a message in place of the rest of a header block", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it("ends the block with one fault", () => {
    assert.deepStrictEqual(decode(`Content-Type: x\r\n${ping(1)}\n${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 15),
      block(ping(2))
    ])
  })

  it("ends the block with one fault when no newline ends it", () => {
    assert.deepStrictEqual(decode(`Content-Length: ${size}\r\n${ping(1)}${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 18),
      block(ping(2))
    ])
  })
})

describe("a length that is not that of the body", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it("cuts the message where it is too short, and the next one is found", () => {
    assert.deepStrictEqual(decode(`Content-Length: ${size - 3}\r\n\r\n${ping(1)}${counted(ping(2))}`), [
      block(ping(1).slice(0, -3)),
      fault("InvalidHeader", "content-length", 3),
      block(ping(2))
    ])
  })

  it("takes a piece of the next message where it is too long, and one behind that is found", () => {
    const items = decode(`Content-Length: ${size + 5}\r\n\r\n${ping(1)}${counted(ping(2))}${counted(ping(3))}`)
    assert.deepStrictEqual([items[0], items.at(-1)], [block(`${ping(1)}Conte`), block(ping(3))])
  })
})

describe("an input that ends inside a message", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "content-length" }, input)

  it("is one fault inside a body, with the id that was read", () => {
    assert.deepStrictEqual(decode(`${counted("{}")}Content-Length: 100\r\n\r\n${ping(7)}`), [
      block("{}"),
      fault("Incomplete", "content-length", size, { id: 7 })
    ])
  })

  it("is one fault before the first byte of a body", () => {
    assert.deepStrictEqual(decode("Content-Length: 100\r\n\r\n"), [fault("Incomplete", "content-length", 0)])
  })

  it("is one fault behind a blank line that is not complete", () => {
    assert.deepStrictEqual(decode("Content-Length: 100\r\n \t"), [fault("Incomplete", "content-length", 0)])
  })

  it("is one fault inside a header block", () => {
    assert.deepStrictEqual(decode("Content-Length: 100\r\nX: 1\r\n"), [fault("Incomplete", "content-length", 23)])
  })

  it("is one fault inside a header line", () => {
    assert.deepStrictEqual(decode("Content-Length: 10"), [fault("Incomplete", "content-length", 18)])
  })

  it("recognises a response", () => {
    assert.deepStrictEqual(decode("Content-Length: 100\r\n\r\n{\"id\":\"a\",\"result\":["), [
      fault("Incomplete", "content-length", 20, { id: "a", responseShaped: true })
    ])
  })

  it("is nothing between messages", () => {
    assert.deepStrictEqual(decode(`${counted("{}")}\r\n`), [block("{}")])
  })

  it("is nothing after a body that is not UTF-8", () => {
    assert.deepStrictEqual(decode(bytes("Content-Length: 4\r\n\r\n\"", [0xb0, 0xa1], "\"")), [
      block("\"\ufffd\ufffd\"")
    ])
  })
})

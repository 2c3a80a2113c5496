import { assert, describe, it } from "@effect/vitest"
import { block, counted, decodeAll, fault, line } from "../utils/bytes.ts"

const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`
const size = ping(1).length
const decode = (input: string | Uint8Array) => decodeAll(undefined, input)

describe("both text framings on one pipe", () => {
  it("are told apart message by message", () => {
    assert.deepStrictEqual(
      decode(`${ping(1)}\n${counted(ping(2))}${counted(ping(3))}${ping(4)}\r\n\n${counted(ping(5))}${ping(6)}`),
      [line(ping(1)), block(ping(2)), block(ping(3)), line(ping(4)), block(ping(5)), line(ping(6))]
    )
  })

  it("are the default", () => {
    assert.deepStrictEqual(decodeAll({}, `${ping(1)}\n${counted(ping(2))}`), [line(ping(1)), block(ping(2))])
  })

  it.each([
    "content-length: 2\r\n",
    "CONTENT-LENGTH:2\n",
    "Content-Length : 2\r\n",
    "Content-Type: x\r\nContent-Length: 2\r\n",
    "content-type:x\nX-Other: y\ncontent-length: 2 \nX: z\n"
  ])("know a block by its first header: %j", (headers) => {
    assert.deepStrictEqual(decode(`${headers}\r\n{}[]\n${headers}\n12`), [block("{}"), line("[]"), block("12")])
  })

  it.each(["X-Other: 1", "Content-Encoding: gzip", "Content-Lengthy: 2", "Content: 2", "debug: text"])(
    "read %j at a border as a line",
    (text) => {
      assert.deepStrictEqual(decode(`${text}\n${counted("{}")}`), [line(text), block("{}")])
    }
  )

  it("tolerate a byte order mark before either", () => {
    assert.deepStrictEqual(decode(`\ufeff${counted("{}")}\ufeff[]\n`), [block("{}"), line("[]")])
  })

  it("keep newlines and headers inside a body", () => {
    const body = `{\n"a":\n\n1}\n${counted("{}")}`
    assert.deepStrictEqual(decode(`${counted(body)}[]\n`), [block(body), line("[]")])
  })
})

describe("a line that starts with { or [ inside a header block", () => {
  it("ends the block with one fault and is read as a line", () => {
    assert.deepStrictEqual(decode(`Content-Type: x\r\n${ping(1)}\n${counted(ping(2))}[3]\n`), [
      fault("InvalidHeader", "content-length", 15),
      line(ping(1)),
      block(ping(2)),
      line("[3]")
    ])
  })

  it("does so behind a length and for a batch", () => {
    assert.deepStrictEqual(decode(`Content-Length: 3\nX: y\n[${ping(1)}]\r\n${ping(2)}\n`), [
      fault("InvalidHeader", "content-length", 21),
      line(`[${ping(1)}]`),
      line(ping(2))
    ])
  })

  it("may be indented", () => {
    assert.deepStrictEqual(decode(`Content-Length: 3\n \t${ping(1)} \t\r\n`), [
      fault("InvalidHeader", "content-length", 17),
      line(` \t${ping(1)} \t`)
    ])
  })

  it("does so at the end of the input", () => {
    assert.deepStrictEqual(decode(`Content-Length: 3\n${ping(1)}`), [
      fault("InvalidHeader", "content-length", 17),
      line(ping(1))
    ])
  })

  it("is a message of the other framing when the next header follows at once", () => {
    assert.deepStrictEqual(decode(`Content-Length: ${size}\r\n${ping(1)}${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 18),
      block(ping(1)),
      block(ping(2))
    ])
  })
})

describe("a damaged header", () => {
  it.each(["abc", "-1", "", "+5", "4 0", "99999999999999999999", "40\r\nContent-Length: 40"])(
    "is one fault, and its own message and the next are found: %j",
    (length) => {
      const headers = `Content-Length: ${length}`
      const bad = fault("InvalidHeader", "content-length", headers.replace("\r\n", "").trimEnd().length)
      assert.deepStrictEqual(
        [
          decode(`${headers}\r\n\r\n${ping(1)}${counted(ping(2))}`),
          decode(`${headers}\r\n\r\n${ping(1)}\n${ping(2)}\n`)
        ],
        [[bad, block(ping(1)), block(ping(2))], [bad, line(ping(1)), line(ping(2))]]
      )
    }
  )

  it("is one fault where the length is missing", () => {
    assert.deepStrictEqual(decode(`Content-Type: x\r\n\r\n${ping(1)}${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 15),
      block(ping(1)),
      block(ping(2))
    ])
  })

  it("is a line where its name is not readable, and its own message and the next are found", () => {
    assert.deepStrictEqual(decode(`Content-Lenth: ${size}\r\n\r\n${ping(1)}${counted(ping(2))}`), [
      line(`Content-Lenth: ${size}`),
      block(ping(1)),
      block(ping(2))
    ])
  })

  it("is one fault where the block has more than 8 KiB in one line", () => {
    const pad = `X-Pad: ${"x".repeat(9_000)}`
    assert.deepStrictEqual(decode(`Content-Length: 2\r\n${pad}\r\n\r\n${ping(1)}\n${counted(ping(2))}`), [
      fault("HeaderTooLarge", "content-length", 17 + pad.length, { limit: 8_192 }),
      line(ping(1)),
      block(ping(2))
    ])
  })

  it("is one fault where the block has more than 8 KiB in many lines", () => {
    const pad = `X-Pad: ${"x".repeat(93)}\r\n`
    assert.deepStrictEqual(decode(`Content-Length: 2\r\n${pad.repeat(90)}\r\n${ping(1)}\n${counted(ping(2))}`), [
      fault("HeaderTooLarge", "content-length", 17 + 82 * 100, { limit: 8_192 }),
      line(ping(1)),
      block(ping(2))
    ])
  })
})

describe("a header block that was too large", () => {
  const pad = `X-Pad: ${"x".repeat(93)}\r\n`
  const large = `Content-Length: 2\r\n${pad.repeat(90)}`
  const tooLarge = fault("HeaderTooLarge", "content-length", 17 + 82 * 100, { limit: 8_192 })

  it("ends with a blank line", () => {
    assert.deepStrictEqual(decode(`${large}\r\ndebug text\n${pad}${ping(1)}\n`), [
      tooLarge,
      line("debug text"),
      line(pad.trimEnd()),
      line(ping(1))
    ])
  })

  it("ends with a message, and with the header of the next one", () => {
    assert.deepStrictEqual(
      [decode(`${large}${ping(1)}\n${pad}`), decode(`${large}${counted(ping(1))}${pad}`)],
      [[tooLarge, line(ping(1)), line(pad.trimEnd())], [tooLarge, block(ping(1)), line(pad.trimEnd())]]
    )
  })
})

describe("text between messages", () => {
  it("is a line of its own where a newline ends it", () => {
    assert.deepStrictEqual(decode(`debug text\n${counted(ping(1))}more\n${ping(2)}\n`), [
      line("debug text"),
      block(ping(1)),
      line("more"),
      line(ping(2))
    ])
  })

  it("is one fault where a header follows at once", () => {
    assert.deepStrictEqual(decode(`debug${counted(ping(1))}debug text${counted(ping(2))}`), [
      fault("InvalidHeader", "content-length", 5, { sample: "debug" }),
      block(ping(1)),
      fault("InvalidHeader", "content-length", 10, { sample: "debug text" }),
      block(ping(2))
    ])
  })

  it("is one fault inside a block, and the block goes on", () => {
    assert.deepStrictEqual(
      decode(`Content-Type: x\r\ndebug text\nContent-Length: ${size}\r\n\r\n${ping(1)}${ping(2)}\n`),
      [
        fault("InvalidHeader", "content-length", 10, { sample: "debug text" }),
        block(ping(1)),
        line(ping(2))
      ]
    )
  })

  it("is the rest of a message whose length was too short", () => {
    assert.deepStrictEqual(decode(`Content-Length: ${size - 3}\r\n\r\n${ping(1)}${counted(ping(2))}`), [
      block(ping(1).slice(0, -3)),
      fault("InvalidHeader", "content-length", 3),
      block(ping(2))
    ])
  })

  it("is the rest of the header that a length took along which was too long", () => {
    assert.deepStrictEqual(
      decode(`Content-Length: ${size + 5}\r\n\r\n${ping(1)}${counted(ping(2))}${counted(ping(3))}`),
      [block(`${ping(1)}Conte`), line(`nt-Length: ${size}`), block(ping(2)), block(ping(3))]
    )
  })
})

describe("an input that ends inside a message", () => {
  it("is one fault inside a body, with the id that was read", () => {
    assert.deepStrictEqual(decode(`${ping(1)}\nContent-Length: 100\r\n\r\n${ping(2)}`), [
      line(ping(1)),
      fault("Incomplete", "content-length", size, { id: 2 })
    ])
  })

  it("is one fault inside a header block", () => {
    assert.deepStrictEqual(decode("Content-Type: x\r\nContent-Length: 1"), [fault("Incomplete", "content-length", 32)])
  })

  it("is a message where a line has no newline", () => {
    assert.deepStrictEqual(decode(`${counted(ping(1))}${ping(2)}`), [block(ping(1)), line(ping(2))])
  })
})

import { assert, describe, it } from "@effect/vitest"
import { bytes, decodeAll, fault, line } from "../utils/bytes.ts"

const BOM = "\ufeff"

describe("one message a line", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "line" }, input)

  it("ends a frame at each newline", () => {
    assert.deepStrictEqual(decode("{\"a\":1}\n[2]\n\"x\"\n"), [line("{\"a\":1}"), line("[2]"), line("\"x\"")])
  })

  it("gives nothing for an empty input", () => {
    assert.deepStrictEqual(decode(""), [])
  })

  it("drops one carriage return before the newline, and no other", () => {
    assert.deepStrictEqual(decode("{}\r\n{\r}\n[]\r\r\n"), [line("{}"), line("{\r}"), line("[]\r")])
  })

  it("does not end a frame at a carriage return alone", () => {
    assert.deepStrictEqual(decode("{}\r{}\n"), [line("{}\r{}")])
  })

  it("skips blank lines and lines of spaces and tabs", () => {
    assert.deepStrictEqual(decode("\n\r\n{}\n\n \t \n\t\r\n[]\n\n"), [line("{}"), line("[]")])
  })

  it("keeps spaces around a message", () => {
    assert.deepStrictEqual(decode("  {} \t\n"), [line("  {} \t")])
  })

  it("drops a byte order mark at the start of any line", () => {
    assert.deepStrictEqual(decode(`${BOM}{}\n${BOM}[]\r\n${BOM}1`), [line("{}"), line("[]"), line("1")])
  })

  it("drops only one byte order mark, and only at the start", () => {
    assert.deepStrictEqual(decode(`${BOM}${BOM}1\n"${BOM}"\n`), [line(`${BOM}1`), line(`"${BOM}"`)])
  })

  it("takes a line of a byte order mark alone for blank", () => {
    assert.deepStrictEqual(decode(`${BOM}\n{}\n`), [line("{}")])
  })

  it("does not split at U+2028, U+2029 and U+0085, nor at other controls", () => {
    const content = "{\"x\":\"a\u2028b\u2029c\u0085d\u000be\u000cf\u001eg\"}"
    assert.deepStrictEqual(decode(`${content}\n`), [line(content)])
  })

  it("takes an unterminated last line", () => {
    assert.deepStrictEqual(decode("{}\n[1]"), [line("{}"), line("[1]")])
  })

  it("drops the carriage return of an unterminated last line", () => {
    assert.deepStrictEqual(decode("{}\n[1]\r"), [line("{}"), line("[1]")])
  })

  it("gives nothing for blanks at the end of the input", () => {
    assert.deepStrictEqual(decode("{}\n \t"), [line("{}")])
  })

  it("keeps characters of several bytes whole", () => {
    assert.deepStrictEqual(decode("\"日—🎉é\"\n"), [line("\"日—🎉é\"")])
  })

  it("passes on text that is no JSON, and a NUL", () => {
    assert.deepStrictEqual(decode("debug text\n\0\n"), [line("debug text"), line("\0")])
  })

  it("passes on a line that only mentions Content-Length", () => {
    const content = "{\"m\":\"Content-Length: 4\"}"
    assert.deepStrictEqual(decode(`${content}\nthe Content-Length: 4\n`), [
      line(content),
      line("the Content-Length: 4")
    ])
  })

  it.each(["Content-Length: 2", "content-length:2", "CONTENT-TYPE: application/json"])(
    "reports the header %s",
    (header) => {
      assert.deepStrictEqual(decode(`${header}\r\n\r\n{}\n`), [
        fault("UnexpectedHeader", "line", header.length),
        line("{}")
      ])
    }
  )

  it("keeps the bytes of a message that are not UTF-8", () => {
    assert.deepStrictEqual(decode(bytes("{\"s\":\"", [0xb0, 0xa1], "\"}\n{}\n")), [
      line("{\"s\":\"\ufffd\ufffd\"}"),
      line("{}")
    ])
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Result from "effect/Result"
import {
  block,
  bytes,
  counted,
  decodeAll,
  decodeChunks,
  decodeOpen,
  fault,
  line,
  prefixed,
  seen,
  split
} from "../utils/bytes.ts"

const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`

describe("the size limit of lines", () => {
  const decode = (input: string | Uint8Array) => decodeAll({ framing: "line", maxFrameBytes: 4 }, input)

  it("is exact", () => {
    assert.deepStrictEqual(decode("1234\n12345\n123\n"), [
      line("1234"),
      fault("TooLarge", "line", 5, { limit: 4 }),
      line("123")
    ])
  })

  it("does not count the carriage return of the line ending", () => {
    assert.deepStrictEqual(decode("1234\r\n{}\n"), [line("1234"), line("{}")])
  })

  it("counts a carriage return that is not part of the line ending", () => {
    assert.deepStrictEqual(decode("12\r34\n123\r\r\n"), [
      fault("TooLarge", "line", 5, { limit: 4 }),
      line("123\r")
    ])
  })

  it("counts bytes, not characters", () => {
    assert.deepStrictEqual(decode("\"é\"\n\"日\"\n{}\n"), [
      line("\"é\""),
      fault("TooLarge", "line", 5, { limit: 4 }),
      line("{}")
    ])
  })

  it("holds for an unterminated last line, with and without a carriage return", () => {
    assert.deepStrictEqual([decode("1234"), decode("12345"), decode("1234\r")], [
      [line("1234")],
      [fault("TooLarge", "line", 5, { limit: 4 })],
      [line("1234")]
    ])
  })

  it("skips a long line to its newline with one fault, however much longer it is", () => {
    assert.deepStrictEqual(decode(`1\n${"x".repeat(1_000)}\n2\n${"y".repeat(8)}\n${"z".repeat(9)}\n3`), [
      line("1"),
      fault("TooLarge", "line", 1_000, { limit: 4 }),
      line("2"),
      fault("TooLarge", "line", 8, { limit: 4 }),
      fault("TooLarge", "line", 9, { limit: 4 }),
      line("3")
    ])
  })

  it("reports nothing of a long line before its newline came", () => {
    const chunks = split(bytes("1\n", "x".repeat(100)), [3])
    assert.deepStrictEqual(decodeOpen({ framing: "line", maxFrameBytes: 4 }, chunks).map(seen), [line("1")])
  })
})

describe("the size limit of counted bodies", () => {
  it("is exact, and the body is skipped by its length", () => {
    const limit = 60
    const body = (size: number) => JSON.stringify("x".repeat(size - 2))
    assert.deepStrictEqual(
      decodeAll(
        { framing: "content-length", maxFrameBytes: limit },
        counted(body(limit)) + counted(body(limit + 1)) + counted(body(1_000).replace("x", "\n")) + counted("{}")
      ),
      [
        block(body(limit)),
        fault("TooLarge", "content-length", limit + 1, { limit }),
        fault("TooLarge", "content-length", 1_000, { limit }),
        block("{}")
      ]
    )
  })

  it("does not count headers", () => {
    assert.deepStrictEqual(
      [
        decodeAll(
          { framing: "content-length", maxFrameBytes: 4 },
          `${counted("1234")}${counted("12345")}${counted("[]")}`
        ),
        decodeAll({ maxFrameBytes: 4 }, `${counted("1234")}${counted("12345")}[]\n`)
      ],
      [
        [block("1234"), fault("TooLarge", "content-length", 5, { limit: 4 }), block("[]")],
        [block("1234"), fault("TooLarge", "content-length", 5, { limit: 4 }), line("[]")]
      ]
    )
  })

  it("leaves headers their own limit", () => {
    const headers = `X-Pad: ${"x".repeat(8_000)}\r\nContent-Length: 2\r\n\r\n`
    assert.deepStrictEqual(decodeAll({ framing: "content-length", maxFrameBytes: 4 }, `${headers}{}${headers}[]`), [
      block("{}"),
      block("[]")
    ])
  })

  it("holds for a message whose header was lost", () => {
    const limit = 20_000
    const lost = "Content-Length: x\r\n\r\n"
    // too long for a frame, and too long for a line
    for (const size of [limit + 1, 3 * limit]) {
      const long = ping(1).padEnd(size)
      const input = `${lost}${long}\n${counted(ping(2))}`
      assert.deepStrictEqual(
        [
          decodeAll({ framing: "content-length", maxFrameBytes: limit }, input),
          decodeAll({ maxFrameBytes: limit }, input)
        ],
        [
          [fault("InvalidHeader", "content-length", 17), block(ping(2))],
          [
            fault("InvalidHeader", "content-length", 17),
            fault("TooLarge", "line", size, { id: 1, limit }),
            block(ping(2))
          ]
        ]
      )
    }
  })

  it("holds for the text behind it", () => {
    const limit = 20_000
    const lost = "Content-Length: x\r\n\r\n"
    const long = "x".repeat(3 * limit)
    assert.deepStrictEqual(
      decodeAll({ framing: "content-length", maxFrameBytes: limit }, `${lost}${long}\n${long}\n${counted(ping(2))}`),
      [
        fault("InvalidHeader", "content-length", 17),
        fault("TooLarge", "content-length", 3 * limit, { limit }),
        block(ping(2))
      ]
    )
  })

  it("holds for both framings of one pipe", () => {
    const long = ping(1).padEnd(100)
    assert.deepStrictEqual(
      decodeAll({ maxFrameBytes: 50 }, `${long}\n${counted(long)}${ping(2)}\n${counted(ping(3))}`),
      [
        fault("TooLarge", "line", 100, { id: 1, limit: 50 }),
        fault("TooLarge", "content-length", 100, { id: 1, limit: 50 }),
        line(ping(2)),
        block(ping(3))
      ]
    )
  })

  it("finds a header that follows a long line without a newline", () => {
    const limit = 20_000
    const long = `{"id":1,"method":"m","params":"${"x".repeat(limit)}"}`
    const header = `Content-Length: ${ping(2).length}`
    assert.deepStrictEqual(decodeAll({ maxFrameBytes: limit }, `${long}${counted(ping(2))}${ping(3)}\n`), [
      fault("TooLarge", "line", long.length + header.length, { id: 1, limit }),
      block(ping(2)),
      line(ping(3))
    ])
  })

  it("is one fault where a long line stands inside a header block", () => {
    const limit = 10_000
    const long = ping(1).padEnd(20_000)
    assert.deepStrictEqual(decodeAll({ maxFrameBytes: limit }, `Content-Type: x\r\n${long}\n${ping(2)}\n`), [
      fault("TooLarge", "line", 20_000, { id: 1, limit }),
      line(ping(2))
    ])
  })

  it("is 32 MiB when nothing is said", () => {
    const limit = 32 * 1024 * 1024
    const exact = new Uint8Array(limit).fill(0x31)
    const items = decodeChunks({ framing: "line" }, [exact, bytes("\n"), exact, bytes("1\n{}\n")])
    assert.deepStrictEqual(items.map((item) => item._tag === "Frame" ? item.bytes.length : seen(item)), [
      limit,
      fault("TooLarge", "line", limit + 1, { limit }),
      2
    ])
  })
})

describe("the id of a frame that is too long", () => {
  const limit = 40
  const padding = `"params":{"data":"${"x".repeat(100)}"}`
  const id = (text: string) => {
    const items = [
      ...decodeAll({ framing: "line", maxFrameBytes: limit }, `${text}\n`),
      ...decodeAll({ framing: "native", maxFrameBytes: limit }, prefixed(text)),
      ...decodeAll({ framing: "content-length", maxFrameBytes: limit }, counted(text))
    ]
    const found = items.map((item) => "fault" in item ? [item.fault, item.id, item.responseShaped] : item)
    assert.deepStrictEqual(found, [found[0], found[0], found[0]])
    return found[0]
  }

  it.each<[text: string, id: string | number | null]>([
    [`{"jsonrpc":"2.0","id":7,"method":"m",${padding}}`, 7],
    [`{"jsonrpc":"2.0","method":"m",${padding},"id":7}`, 7],
    [`{"method":"m",${padding},"id":-1,"jsonrpc":"2.0"}`, -1],
    [`{"id":0,"method":"m",${padding}}`, 0],
    [`{"id":9007199254740991,"method":"m",${padding}}`, 9_007_199_254_740_991],
    [`{"id":"","method":"m",${padding}}`, ""],
    [`{"id":"7","method":"m",${padding}}`, "7"],
    [`{"id":"a\\"b\\\\,}:\\u0041\\n日🎉","method":"m",${padding}}`, "a\"b\\,}:A\n日🎉"],
    [` \t{ "id" : "x" , "method" : "m" , ${padding} } `, "x"],
    [`\ufeff{"id":"bom","method":"m",${padding}}`, "bom"],
    [`{"id":1,"method":"m",${padding},"id":2}`, 2]
  ])("is read from %s", (text, expected) => {
    assert.deepStrictEqual(id(text), ["TooLarge", expected, false])
  })

  it.each([
    `{"jsonrpc":"2.0","method":"m",${padding}}`,
    `{"method":"m","params":{"id":5,"data":"${"x".repeat(100)}"}}`,
    `{"method":"m","params":[{"id":5},{"id":6}],"data":"${"x".repeat(100)}"}`,
    `{"method":"m","data":"\\"id\\":5,${"x".repeat(100)}"}`,
    `{"method":"id","a":"id","b":5,${padding}}`,
    `{"method":"m","ids":5,"Id":6,"i":7,"":8,${padding}}`,
    `[{"id":5,"method":"m",${padding}}]`,
    `"{\\"id\\":5}${"x".repeat(100)}"`,
    `${"x".repeat(100)}{"id":5}`,
    `{"method":"m",${padding}}{"a":1,"id":5}`
  ])("is null where it has none at its top: %s", (text) => {
    assert.deepStrictEqual(id(text), ["TooLarge", null, false])
  })

  it.each([
    "null",
    "true",
    "1.5",
    "9007199254740993",
    "{\"id\":5}",
    "[5]",
    "\"" + "y".repeat(2_000) + "\"",
    "1e400",
    "nul"
  ])(
    "is null where it is %s",
    (value) => {
      assert.deepStrictEqual(
        [id(`{"id":${value},"method":"m",${padding}}`), id(`{"method":"m",${padding},"id":${value}}`)],
        [["TooLarge", null, false], ["TooLarge", null, false]]
      )
    }
  )

  it("is that behind a nested value", () => {
    const text = `{"params":{"id":5,"a":[{"id":6}]},"extra":{"method":1},"id":"own","method":"m",${
      padding.replace("params", "p")
    }}`
    assert.deepStrictEqual(id(text), ["TooLarge", "own", false])
  })

  it("comes with whether the frame looks like a response", () => {
    const data = "x".repeat(100)
    assert.deepStrictEqual(
      [
        id(`{"jsonrpc":"2.0","id":1,"result":"${data}"}`),
        id(`{"jsonrpc":"2.0","result":"${data}","id":1}`),
        id(`{"id":null,"error":{"code":1,"message":"${data}"}}`),
        id(`{"id":1,"method":"m","result":"${data}"}`),
        id(`{"id":1,"params":{"result":1},"x":"${data}"}`),
        id(`{"id":1,"result":"\\"method\\":${data}"}`)
      ],
      [
        ["TooLarge", 1, true],
        ["TooLarge", 1, true],
        ["TooLarge", null, true],
        ["TooLarge", 1, false],
        ["TooLarge", 1, false],
        ["TooLarge", 1, true]
      ]
    )
  })
})

describe("bytes that are not UTF-8", () => {
  /** What the frames of an input say as text: itself, or its fault. */
  const texts = (options: Framing.DecodeOptions, input: Uint8Array) =>
    decodeChunks(options, split(input, [3])).map((item) =>
      item._tag === "Fault"
        ? seen(item)
        : Result.match(Framing.text(item), { onSuccess: (content): unknown => content, onFailure: seen })
    )

  it("cost one fault with the id of their message, and its neighbours live", () => {
    const bad = bytes("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"s\":\"", [0xb0, 0xa1], "\"}}")
    const expected = (framing: Framing.Kind) => [
      ping(1),
      fault("InvalidUtf8", framing, bad.length, { id: 2, responseShaped: true }),
      ping(3)
    ]
    const header = `Content-Length: ${bad.length}\r\n\r\n`
    assert.deepStrictEqual(
      [
        texts({ framing: "line" }, bytes(ping(1), "\n", bad, "\n", ping(3), "\n")),
        texts({ framing: "content-length" }, bytes(counted(ping(1)), header, bad, counted(ping(3)))),
        texts({ framing: "native" }, bytes(prefixed(ping(1)), prefixed(bad), prefixed(ping(3)))),
        texts({}, bytes(ping(1), "\n", header, bad, ping(3), "\n"))
      ],
      [expected("line"), expected("content-length"), expected("native"), expected("content-length")]
    )
  })

  it.each<[name: string, content: ReadonlyArray<number>]>([
    ["a lone continuation byte", [0x80]],
    ["a character that is cut off", [0xe6, 0x97]],
    ["an overlong form", [0xc0, 0xaf]],
    ["half of a surrogate pair", [0xed, 0xa0, 0xbd]],
    ["a character beyond U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["the byte FF", [0xff]]
  ])("are refused: %s", (_, content) => {
    const bad = bytes("{\"method\":\"m\",\"id\":\"a\",\"s\":\"", content, "\"}")
    assert.deepStrictEqual(texts({ framing: "line" }, bytes(bad, "\n{}\n")), [
      fault("InvalidUtf8", "line", bad.length, { id: "a" }),
      "{}"
    ])
  })

  it("make an id unreadable that contains them", () => {
    const bad = bytes("{\"method\":\"m\",\"id\":\"", [0xff], "\"}")
    assert.deepStrictEqual(texts({ framing: "line" }, bytes(bad, "\n")), [fault("InvalidUtf8", "line", bad.length)])
  })

  it("leave the id readable of a frame that is too long as well", () => {
    const bad = bytes("{\"s\":\"", new Uint8Array(100).fill(0xb0), "\",\"id\":2,\"method\":\"m\"}")
    assert.deepStrictEqual(texts({ framing: "line", maxFrameBytes: 50 }, bytes(bad, "\n{}\n")), [
      fault("TooLarge", "line", bad.length, { id: 2, limit: 50 }),
      "{}"
    ])
  })

  it("do not disturb the text of valid frames that are read afterwards", () => {
    const cut = Framing.frame(bytes("\"", [0xe6, 0x97]), "line")
    assert.isTrue(Result.isFailure(Framing.text(cut)))
    assert.deepStrictEqual(Framing.text(Framing.frameOfText("\"日\"", "line")), Result.succeed("\"日\""))
  })
})

describe("the work of a large frame", () => {
  const MIB = 1024 * 1024
  // sizes that fit no block, buffer or page
  const odd = [4_096, 1, 17, 1_500, 3, 4_095, 777, 2, 65, 3_001]

  const feed = (options: Framing.DecodeOptions, whole: Uint8Array, sizes: ReadonlyArray<number>) => {
    const decoder = Framing.makeDecoder(options)
    const items: Array<Framing.Item> = []
    let chunk = 0
    for (let start = 0; start < whole.length; chunk++) {
      const size = sizes[chunk % sizes.length] ?? 1
      decoder.push(whole.subarray(start, start + size), items)
      start += size
    }
    decoder.end(items)
    return items.map((item) => item._tag === "Frame" ? item.bytes.length : [item.reason, item.id, item.size])
  }

  const content = (size: number) => bytes("{\"id\":1,\"x\":\"", new Uint8Array(size - 15).fill(0x78), "\"}")

  // a decoder that joins or scans anew a chunk would touch tens of gigabytes here, and run into the test's timeout
  it.each<[Framing.Kind, (body: Uint8Array) => Uint8Array]>([
    ["line", (body) => bytes(body, "\n")],
    ["content-length", (body) => bytes(`Content-Length: ${body.length}\r\n\r\n`, body)],
    ["native", (body) => prefixed(body)]
  ])("is linear for 32 MiB in odd chunks: %s", (framing, wire) => {
    assert.deepStrictEqual(feed({ framing }, wire(content(32 * MIB)), odd), [32 * MIB])
  })

  it("is linear for 4 MiB a byte a chunk", () => {
    assert.deepStrictEqual(feed({}, bytes(content(4 * MIB), "\n{}\n"), [1]), [4 * MIB, 2])
  })

  it("is linear for what is skipped", () => {
    const size = 16 * MIB
    assert.deepStrictEqual(
      [
        feed({ maxFrameBytes: MIB }, bytes(content(size), "\n{}\n"), odd),
        feed({ framing: "native", maxFrameBytes: MIB }, bytes(prefixed(content(size)), prefixed("{}")), odd)
      ],
      [[["TooLarge", 1, size], 2], [["TooLarge", 1, size], 2]]
    )
  })

  it("is linear for many small frames in one chunk", () => {
    const items = decodeChunks(undefined, [bytes("{}\n".repeat(300_000))])
    assert.strictEqual(items.length, 300_000)
  })

  it("is linear for a header of many spaces", () => {
    const header = `X-Pad: a${" ".repeat(8_000)}x\r\n\r\n`
    assert.strictEqual(decodeChunks({ framing: "content-length" }, [bytes(header.repeat(100))]).length, 100)
  })
})

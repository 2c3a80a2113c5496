import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "effect-stdio/Schema"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** A message, or what is said of one that is not valid, as plain values. */
const outcome = <A>(result: Result.Result<A, JsonRpc.InvalidMessage>): unknown =>
  Result.isSuccess(result)
    ? result.success
    : { reason: result.failure.reason, id: result.failure.id, responseShaped: result.failure.responseShaped }

const read = (text: string, profile: JsonRpc.Profile = "strict") =>
  outcome(Result.flatMap(JsonRpc.parse(text), JsonRpc.decodeWith(profile)))

const refused = (reason: JsonRpc.InvalidReason, id: JsonRpc.Id | null, responseShaped = false) => ({
  reason,
  id,
  responseShaped
})

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)

describe("ids", () => {
  const request = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"m"}`

  it.each<[written: string, id: JsonRpc.Id]>([
    ["0", 0],
    ["-1", -1],
    ["1", 1],
    ["\"\"", ""],
    ["\"1\"", "1"],
    ["\"日—🎉\"", "日—🎉"],
    ["2147483648", 2_147_483_648],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
    ["-9007199254740991", Number.MIN_SAFE_INTEGER],
    ["1.0", 1],
    ["1e3", 1_000]
  ])("accepts %s as the id of a request", (written, id) => {
    assert.deepStrictEqual(read(request(written)), { jsonrpc: "2.0", id, method: "m" })
  })

  it.each([
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "3.14",
    "1e400",
    "true",
    "false",
    "{}",
    "[]",
    "[1]",
    "{\"id\":1}",
    "null"
  ])("refuses %s as the id of a request and answers under null", (written) => {
    assert.deepStrictEqual(read(request(written)), refused("InvalidId", null))
  })

  it.each(["9007199254740993", "3.14", "true", "{}", "[]"])("refuses %s as the id of a response", (written) => {
    assert.deepStrictEqual(
      [
        read(`{"jsonrpc":"2.0","id":${written},"result":1}`),
        read(`{"jsonrpc":"2.0","id":${written},"error":{"code":1,"message":"m"}}`)
      ],
      [refused("InvalidId", null, true), refused("InvalidId", null, true)]
    )
  })

  it("keeps 1 and \"1\" apart", () => {
    assert.notStrictEqual<unknown>(JsonRpc.idFrom("1"), JsonRpc.idFrom(1))
  })

  it("tells ids from other values", () => {
    const values = [0, -1, 1.5, 2 ** 53, 2 ** 53 - 1, NaN, Infinity, "", "a", null, undefined, true, {}, [], 1n]
    assert.deepStrictEqual(values.filter(JsonRpc.isId), [0, -1, 2 ** 53 - 1, "", "a"])
  })

  it("keeps an id that can stand in a response and makes null of all others", () => {
    const values = [0, -1, "", "a", 2 ** 53 - 1, 2 ** 53, 1.5, NaN, null, undefined, true, {}, [1], 1n, Symbol("id")]
    assert.deepStrictEqual(values.map(JsonRpc.idFrom), [
      0,
      -1,
      "",
      "a",
      2 ** 53 - 1,
      ...new Array<null>(10).fill(null)
    ])
  })

  it.effect.prop(
    "decodes every id it can write",
    { id: Schema.Union([Schema.String, Schema.Int]) },
    ({ id }) =>
      Effect.sync(() => {
        const text = Result.getOrThrow(JsonRpc.encode({ id, method: "m" }))
        const isSafe = typeof id === "string" ? !/[\ud800-\udfff]/.test(id) : Number.isSafeInteger(id)
        if (isSafe) assert.deepStrictEqual(read(text), { jsonrpc: "2.0", id: id === 0 ? 0 : id, method: "m" })
      })
  )
})

describe("requests and notifications", () => {
  it("decodes a request", () => {
    assert.deepStrictEqual(read("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sum\",\"params\":{\"a\":[1,null]}}"), {
      jsonrpc: "2.0",
      id: 7,
      method: "sum",
      params: { a: [1, null] }
    })
  })

  it("decodes a notification", () => {
    assert.deepStrictEqual(read("{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":[\"x\"]}"), {
      jsonrpc: "2.0",
      method: "log",
      params: ["x"]
    })
  })

  it("drops members it does not know", () => {
    assert.deepStrictEqual(
      read(
        "{\"extra\":{\"id\":9},\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"kept\":1},\"trace\":null}"
      ),
      { jsonrpc: "2.0", id: 1, method: "m", params: { kept: 1 } }
    )
  })

  it.each<[written: string, params: unknown]>([
    ["{}", {}],
    ["[]", []],
    ["{\"a\":1}", { a: 1 }],
    ["[1]", [1]],
    ["null", null]
  ])("accepts params %s", (written, params) => {
    assert.deepStrictEqual(
      [
        read(`{"jsonrpc":"2.0","id":1,"method":"m","params":${written}}`),
        read(`{"jsonrpc":"2.0","method":"m","params":${written}}`)
      ],
      [{ jsonrpc: "2.0", id: 1, method: "m", params }, { jsonrpc: "2.0", method: "m", params }]
    )
  })

  it("accepts absent params and adds none", () => {
    assert.deepStrictEqual(read("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"), {
      jsonrpc: "2.0",
      id: 1,
      method: "m"
    })
  })

  it.each(["\"x\"", "5", "true", "0", "\"\""])("refuses params %s under the id of the request", (written) => {
    assert.deepStrictEqual(
      [
        read(`{"jsonrpc":"2.0","id":"a","method":"m","params":${written}}`),
        read(`{"jsonrpc":"2.0","method":"m","params":${written}}`)
      ],
      [refused("InvalidParams", "a"), refused("InvalidParams", null)]
    )
  })

  it.each(["5", "null", "{}", "[]", "true"])("refuses %s as a method under the id of the request", (written) => {
    assert.deepStrictEqual(
      [read(`{"jsonrpc":"2.0","id":3,"method":${written}}`), read(`{"jsonrpc":"2.0","method":${written}}`)],
      [refused("InvalidMethod", 3), refused("InvalidMethod", null)]
    )
  })

  it.each(["5", "\"x\"", "null", "true", "[]", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]"])(
    "says that %s is not a message",
    (written) => {
      assert.deepStrictEqual(read(written), refused("NotAMessage", null))
    }
  )

  it("says that an object without method, result and error is not a message, under its id", () => {
    assert.deepStrictEqual(read("{\"jsonrpc\":\"2.0\",\"id\":4}"), refused("NotAMessage", 4))
  })

  it("takes a message with a method and a result for a request", () => {
    assert.deepStrictEqual(read("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":2}"), {
      jsonrpc: "2.0",
      id: 1,
      method: "m"
    })
  })

  it("names the first rule that is broken: version, method, id, params", () => {
    assert.deepStrictEqual(
      [
        read("{\"jsonrpc\":\"1.0\",\"method\":5,\"id\":true,\"params\":5}"),
        read("{\"jsonrpc\":\"2.0\",\"method\":5,\"id\":true,\"params\":5}"),
        read("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":true,\"params\":5}"),
        read("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1,\"params\":5}")
      ],
      [
        refused("InvalidVersion", null),
        refused("InvalidMethod", null),
        refused("InvalidId", null),
        refused("InvalidParams", 1)
      ]
    )
  })

  it("takes the last of doubled keys, in any order of keys", () => {
    assert.deepStrictEqual(
      read(
        "{\"method\":\"ping\",\"id\":1,\"params\":{\"a\":1},\"id\":2,\"method\":\"list\",\"params\":{\"b\":2},\"jsonrpc\":\"2.0\"}"
      ),
      { jsonrpc: "2.0", id: 2, method: "list", params: { b: 2 } }
    )
  })
})

describe("responses", () => {
  it("decodes a response with a result of any JSON value", () => {
    const results = ["null", "0", "false", "\"\"", "[]", "{\"a\":1}"]
    assert.deepStrictEqual(
      results.map((result) => read(`{"jsonrpc":"2.0","id":0,"result":${result}}`)),
      [null, 0, false, "", [], { a: 1 }].map((result) => ({ jsonrpc: "2.0", id: 0, result }))
    )
  })

  it("decodes a response with an error, with and without data", () => {
    assert.deepStrictEqual(
      [
        read("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32601,\"message\":\"no\"}}"),
        read("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":4001,\"message\":\"no\",\"data\":{\"at\":[1]}}}"),
        read("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":4001,\"message\":\"no\",\"data\":null}}")
      ],
      [
        { jsonrpc: "2.0", id: "a", error: { code: -32_601, message: "no" } },
        { jsonrpc: "2.0", id: "a", error: { code: 4_001, message: "no", data: { at: [1] } } },
        { jsonrpc: "2.0", id: "a", error: { code: 4_001, message: "no", data: null } }
      ]
    )
  })

  it("decodes an error whose id is null or missing", () => {
    assert.deepStrictEqual(
      [
        read("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}"),
        read("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"m\"}}")
      ],
      [
        { jsonrpc: "2.0", id: null, error: { code: 1, message: "m" } },
        { jsonrpc: "2.0", error: { code: 1, message: "m" } }
      ]
    )
  })

  it("tolerates a null beside the member that counts", () => {
    assert.deepStrictEqual(
      [
        read("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2,\"error\":null}"),
        read("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null,\"error\":{\"code\":1,\"message\":\"m\"}}")
      ],
      [
        { jsonrpc: "2.0", id: 1, result: 2, error: null },
        { jsonrpc: "2.0", id: 1, error: { code: 1, message: "m" } }
      ]
    )
  })

  it.each<[written: string, id: JsonRpc.Id | null]>([
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"m\"}}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1.5,\"message\":\"m\"}}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"m\"}}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"m\"}}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"failed\"}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}", 1],
    ["{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}", null],
    ["{\"jsonrpc\":\"2.0\",\"result\":1}", null]
  ])("recognises %s as a response that is not valid", (written, id) => {
    assert.deepStrictEqual(read(written), refused("InvalidResponse", id, true))
  })

  it("recognises a response of another version as response-shaped", () => {
    assert.deepStrictEqual(
      [
        read("{\"id\":1,\"result\":1}"),
        read("{\"jsonrpc\":\"1.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"m\"}}")
      ],
      [refused("InvalidVersion", 1, true), refused("InvalidVersion", 1, true)]
    )
  })

  it("tells the four kinds of messages apart", () => {
    const kinds = [
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
      "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}",
      "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"m\"}}"
    ].map((text) => {
      const message = Result.getOrThrow(Result.flatMap(JsonRpc.parse(text), JsonRpc.decode))
      return [JsonRpc.isRequest, JsonRpc.isNotification, JsonRpc.isSuccess, JsonRpc.isFailure].map((is) => is(message))
    })
    assert.deepStrictEqual(kinds, [
      [true, false, false, false],
      [false, true, false, false],
      [false, false, true, false],
      [false, false, false, true]
    ])
  })
})

describe("profiles", () => {
  const versions = ["\"jsonrpc\":\"2.0\",", "", "\"jsonrpc\":\"1.0\",", "\"jsonrpc\":2.0,", "\"jsonrpc\":null,"]
  const requests = versions.map((version) => `{${version}"id":1,"method":"m"}`)

  it("strict demands jsonrpc \"2.0\"", () => {
    assert.deepStrictEqual(requests.map((text) => read(text)), [
      { jsonrpc: "2.0", id: 1, method: "m" },
      refused("InvalidVersion", 1),
      refused("InvalidVersion", 1),
      refused("InvalidVersion", 1),
      refused("InvalidVersion", 1)
    ])
  })

  it.each<JsonRpc.Profile>(["lenient", "omit"])(
    "%s accepts that jsonrpc is missing, and no other version",
    (profile) => {
      assert.deepStrictEqual(requests.map((text) => read(text, profile)), [
        { jsonrpc: "2.0", id: 1, method: "m" },
        { id: 1, method: "m" },
        refused("InvalidVersion", 1),
        refused("InvalidVersion", 1),
        refused("InvalidVersion", 1)
      ])
    }
  )

  it.each<JsonRpc.Profile>(["lenient", "omit"])("%s names the same rules as strict", (profile) => {
    const bad = [
      "{\"id\":true,\"method\":\"m\"}",
      "{\"id\":1,\"method\":5}",
      "{\"id\":1,\"result\":1,\"error\":1}",
      "{}"
    ]
    assert.deepStrictEqual(bad.map((text) => read(text, profile)), [
      refused("InvalidId", null),
      refused("InvalidMethod", 1),
      refused("InvalidResponse", 1, true),
      refused("NotAMessage", null)
    ])
  })

  it("strict and lenient write jsonrpc, omit does not", () => {
    const messages: ReadonlyArray<JsonRpc.Message> = [
      { id: 1, method: "m", params: { a: 1 } },
      { jsonrpc: "2.0", method: "m" },
      JsonRpc.success("a", 1),
      JsonRpc.failure(null, { code: 1, message: "m" })
    ]
    const written = (profile?: JsonRpc.Profile) =>
      messages.map((message) => Result.getOrThrow(JsonRpc.encode(message, profile)))
    const full = [
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":1}}",
      "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
      "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":1}",
      "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}"
    ]
    assert.deepStrictEqual([written(), written("strict"), written("lenient"), written("omit")], [
      full,
      full,
      full,
      full.map((text) => text.replace("\"jsonrpc\":\"2.0\",", ""))
    ])
  })
})

describe("constructors", () => {
  it("makes null of a result of undefined and keeps other falsy results", () => {
    assert.deepStrictEqual<unknown>(
      [undefined, null, 0, "", false].map((result) => JsonRpc.success(1, result)),
      [null, null, 0, "", false].map((result) => ({ jsonrpc: "2.0", id: 1, result }))
    )
  })

  it("gives an error no data member without data", () => {
    assert.deepStrictEqual(
      [
        JsonRpc.failure(1, { code: 1, message: "m" }),
        JsonRpc.failure(null, { code: 1, message: "m", data: undefined }),
        JsonRpc.failure("a", { code: 1, message: "m", data: null }),
        JsonRpc.failure(1, new JsonRpc.JsonRpcError({ code: 2, message: "n", data: { x: 1 } }))
      ],
      [
        { jsonrpc: "2.0", id: 1, error: { code: 1, message: "m" } },
        { jsonrpc: "2.0", id: null, error: { code: 1, message: "m" } },
        { jsonrpc: "2.0", id: "a", error: { code: 1, message: "m", data: null } },
        { jsonrpc: "2.0", id: 1, error: { code: 2, message: "n", data: { x: 1 } } }
      ]
    )
  })

  it("makes the errors of the specification", () => {
    const errors = [
      JsonRpc.JsonRpcError.methodNotFound("a/b"),
      JsonRpc.JsonRpcError.methodNotFound("x".repeat(128)),
      JsonRpc.JsonRpcError.methodNotFound(`a\n\u001b${"x".repeat(200)}`),
      JsonRpc.JsonRpcError.invalidParams("x is missing"),
      JsonRpc.JsonRpcError.internal(),
      JsonRpc.JsonRpcError.internal("busy")
    ]
    assert.deepStrictEqual(errors.map(({ code, message }) => ({ code, message })), [
      { code: -32_601, message: "Method not found: a/b" },
      { code: -32_601, message: `Method not found: ${"x".repeat(128)}` },
      { code: -32_601, message: `Method not found: a\\n\\u001b${"x".repeat(125)}…` },
      { code: -32_602, message: "Invalid params: x is missing" },
      { code: -32_603, message: "Internal error" },
      { code: -32_603, message: "busy" }
    ])
  })
})

describe("encode", () => {
  const written = (message: JsonRpc.Message) => Result.getOrThrow(JsonRpc.encode(message))

  it("writes null for a result that JSON has no text for", () => {
    assert.deepStrictEqual(
      [undefined, () => 1, Symbol("s"), { toJSON: () => undefined }].map((result) => written({ id: 1, result })),
      new Array<string>(4).fill("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}")
    )
  })

  it("fails for what has no JSON text at all, in a result, in params and in data", () => {
    const messages: ReadonlyArray<JsonRpc.Message> = [
      { id: 1, result: 1n },
      { id: 1, method: "m", params: { n: 1n } },
      { id: 1, error: { code: 1, message: "m", data: { n: 1n } } }
    ]
    assert.deepStrictEqual(messages.map((message) => Result.isFailure(JsonRpc.encode(message))), [true, true, true])
  })

  it("writes half of a surrogate pair as U+FFFD in every member", () => {
    assert.deepStrictEqual(
      [
        written({ id: 1, result: ["\ud83d"] }),
        written({ id: 1, method: "\ud83d", params: { "\ud83d": 1 } }),
        written({ id: 1, error: { code: 1, message: "\ud83d", data: "\ud83d" } })
      ],
      [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[\"\ufffd\"]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\ufffd\",\"params\":{\"\ufffd\":1}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\ufffd\",\"data\":\"\ufffd\"}}"
      ]
    )
  })

  it("writes such an id the same way in a result and in an error", () => {
    const success = written(JsonRpc.success("\ud83d", 1))
    const failure = written(JsonRpc.failure("\ud83d", { code: 1, message: "m" }))
    assert.strictEqual(
      success.slice(0, success.indexOf(",\"result\"")),
      failure.slice(0, failure.indexOf(",\"error\""))
    )
  })
})

describe("messageFrom", () => {
  it("reads the message of errors", () => {
    assert.deepStrictEqual(
      [
        new Error("broken"),
        new TypeError("wrong"),
        new RangeError(),
        new JsonRpc.JsonRpcError({ code: 1, message: "m" })
      ]
        .map(JsonRpc.messageFrom),
      ["broken", "wrong", "RangeError", "m"]
    )
  })

  it("reads the message of what is not an error", () => {
    const thrown = [{ message: "told" }, { message: 5 }, "text", "", 42, 1n, null, undefined, true, Symbol("s"), [1, 2]]
    assert.deepStrictEqual(thrown.map(JsonRpc.messageFrom), [
      "told",
      "[object Object]",
      "text",
      "",
      "42",
      "1",
      "null",
      "undefined",
      "true",
      "Symbol(s)",
      "1,2"
    ])
  })

  it("has a message for an object that cannot become a string", () => {
    assert.deepStrictEqual(
      [
        Object.create(null),
        {
          toString() {
            throw new Error("inner")
          }
        }
      ].map(JsonRpc.messageFrom),
      ["unknown error", "unknown error"]
    )
  })

  it("has a message for an object whose message cannot be read", () => {
    const hostile = {
      get message(): string {
        throw new Error("inner")
      }
    }
    assert.isString(JsonRpc.messageFrom(hostile))
  })

  it("returns a string when the message of an error is none", () => {
    assert.isString(JsonRpc.messageFrom(Object.assign(new Error("text"), { message: { not: "text" } })))
  })
})

describe("nesting", () => {
  it("accepts 1,000 levels and refuses 1,001", () => {
    assert.isTrue(Result.isSuccess(JsonRpc.parse(nested(1_000))))
    assert.deepStrictEqual(outcome(JsonRpc.parse(nested(1_001))), refused("NestedTooDeeply", null))
  })

  it("counts the message itself as a level", () => {
    const request = (levels: number) => `{"jsonrpc":"2.0","method":"m","params":${nested(levels)},"id":"deep"}`
    assert.deepStrictEqual(
      [Result.isSuccess(JsonRpc.parse(request(999))), outcome(JsonRpc.parse(request(1_000)))],
      [true, refused("NestedTooDeeply", "deep")]
    )
  })

  it("counts objects and arrays alike", () => {
    const text = "{\"a\":[".repeat(501) + "]}".repeat(501)
    assert.deepStrictEqual(outcome(JsonRpc.parse(text)), refused("NestedTooDeeply", null))
  })

  it("recognises a response that nests too deeply", () => {
    assert.deepStrictEqual(
      outcome(JsonRpc.parse(`{"jsonrpc":"2.0","id":8,"result":${nested(2_000)}}`)),
      refused("NestedTooDeeply", 8, true)
    )
  })

  it("survives 200,000 levels", () => {
    const text = `{"jsonrpc":"2.0","id":5,"method":"m","params":${nested(200_000)}}`
    const refusals = [refused("NestedTooDeeply", 5), refused("InvalidJson", null)]
    assert.deepInclude(refusals, outcome(JsonRpc.parse(text)))
  })

  it("accepts wide structures of any size", () => {
    const items = Array.from({ length: 20_000 }, (_, index) => ({ [`k${index}`]: [index] }))
    const text = `{"jsonrpc":"2.0","id":1,"method":"m","params":${JSON.stringify(items)}}`
    assert.deepStrictEqual(read(text), { jsonrpc: "2.0", id: 1, method: "m", params: items })
  })

  it("ignores brackets inside strings", () => {
    const value = "[".repeat(5_000)
    assert.deepStrictEqual(outcome(JsonRpc.parse(JSON.stringify({ value }))), { value })
  })
})

describe("parse", () => {
  it.each(["", " ", "{", "}{", "[1,", "\"x", "{\"a\":}", "{'a':1}", "NaN", "undefined", "{}{}", "\u00a0{}", "tru"])(
    "says that %j is not JSON",
    (text) => {
      assert.deepStrictEqual(outcome(JsonRpc.parse(text)), refused("InvalidJson", null))
    }
  )

  it("reports broken JSON as a parse error and everything else as an invalid request", () => {
    const codes = ([
      "InvalidJson",
      "NestedTooDeeply",
      "NotAMessage",
      "EmptyBatch",
      "BatchTooLong",
      "BatchRefused",
      "InvalidVersion",
      "InvalidId",
      "InvalidMethod",
      "InvalidParams",
      "InvalidResponse"
    ] as const).map((reason) => new JsonRpc.InvalidMessage({ reason, id: null, responseShaped: false }).code)
    assert.deepStrictEqual(codes, [-32_700, ...new Array<number>(10).fill(-32_600)])
  })

  it("tells nothing of what a bad message contains", () => {
    const secret = "hunter2"
    const messages = [
      `{"${secret}"`,
      `{"jsonrpc":"${secret}","id":"${secret}","method":"m"}`,
      `{"jsonrpc":"2.0","id":["${secret}"],"method":"m"}`,
      `{"jsonrpc":"2.0","id":1,"method":{"a":"${secret}"}}`,
      `{"jsonrpc":"2.0","id":1,"method":"m","params":"${secret}"}`,
      `{"jsonrpc":"2.0","id":1,"error":"${secret}"}`,
      `"${secret}"`,
      `{"jsonrpc":"2.0","id":1,"method":"m","params":["${secret}",${nested(1_000)}]}`
    ].map((text) => {
      const result = Result.flatMap(JsonRpc.parse(text), JsonRpc.decode)
      return Result.isFailure(result) ? result.failure : undefined
    })
    assert.deepStrictEqual(messages.map((error) => error?.reason), [
      "InvalidJson",
      "InvalidVersion",
      "InvalidId",
      "InvalidMethod",
      "InvalidParams",
      "InvalidResponse",
      "NotAMessage",
      "NestedTooDeeply"
    ])
    for (const error of messages) {
      assert.notInclude(error?.message, secret)
      assert.isUndefined(error?.cause)
    }
  })
})

describe("keys that mean something to JavaScript", () => {
  const text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":"
    + "{\"__proto__\":{\"admin\":true},\"constructor\":{\"prototype\":{\"x\":1}},\"a\":1}}"

  it("stay own keys and pollute nothing", () => {
    const message = Result.getOrThrow(Result.flatMap(JsonRpc.parse(text), JsonRpc.decode))
    const params = JsonRpc.isRequest(message) ? message.params ?? {} : {}
    assert.deepStrictEqual(Object.keys(params), ["__proto__", "constructor", "a"])
    assert.strictEqual(Object.getPrototypeOf(params), Object.prototype)
    assert.isUndefined(({} as { readonly admin?: boolean }).admin)
    assert.isUndefined((params as { readonly admin?: boolean }).admin)
  })

  it("are written as they were read", () => {
    const message = Result.getOrThrow(Result.flatMap(JsonRpc.parse(text), JsonRpc.decode))
    assert.strictEqual(Result.getOrThrow(JsonRpc.encode(message)), text)
  })

  it("lend no member to a message", () => {
    assert.deepStrictEqual(
      read("{\"jsonrpc\":\"2.0\",\"__proto__\":{\"id\":1,\"method\":\"m\"}}"),
      refused("NotAMessage", null)
    )
  })
})

describe("stringify", () => {
  const written = (value: unknown) => Result.getOrThrow(JsonRpc.stringify(value))

  it("writes JSON", () => {
    const value = { a: [1, "x", null, true], b: { c: "日\n\"\\" } }
    assert.strictEqual(written(value), "{\"a\":[1,\"x\",null,true],\"b\":{\"c\":\"日\\n\\\"\\\\\"}}")
  })

  it("writes null for what JSON has no text for", () => {
    assert.deepStrictEqual([undefined, () => 1, Symbol("s"), NaN].map(written), ["null", "null", "null", "null"])
  })

  it("fails for a cycle, a BigInt, a throwing toJSON and a throwing getter", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    const values = [
      cycle,
      { n: 1n },
      1n,
      {
        toJSON() {
          throw new Error("no")
        }
      },
      {
        get x() {
          throw new Error("no")
        }
      }
    ]
    assert.deepStrictEqual(
      values.map((value) => {
        const result = JsonRpc.stringify(value)
        return Result.isFailure(result) ? [result.failure._tag, result.failure.message] : result.success
      }),
      values.map(() => ["NotSerializable", "The value cannot be written as JSON"])
    )
  })

  it("fails for nesting that exceeds the stack", () => {
    let value: unknown = 1
    for (let level = 0; level < 200_000; level++) {
      const inner = value
      // Node 26 writes plain arrays and objects of any depth; where a getter runs, it recurses as others do
      value = {
        get inner() {
          return inner
        }
      }
    }
    assert.isTrue(Result.isFailure(JsonRpc.stringify(value)))
  })

  it("writes half of a surrogate pair as U+FFFD, in values and in keys", () => {
    assert.deepStrictEqual(
      [
        written({ t: "abc\ud83d" }),
        written({ t: "\udc00x" }),
        written({ "\ud83d": "\udfff\ud800" }),
        written(["\ud83d\ud83d\ude00"]),
        written("\udbff")
      ],
      ["{\"t\":\"abc\ufffd\"}", "{\"t\":\"\ufffdx\"}", "{\"\ufffd\":\"\ufffd\ufffd\"}", "[\"\ufffd😀\"]", "\"\ufffd\""]
    )
  })

  it("leaves pairs untouched", () => {
    assert.strictEqual(written({ "👍": "🎉😀\ud83d\ude00" }), "{\"👍\":\"🎉😀😀\"}")
  })

  it("leaves text untouched that looks like an escape", () => {
    const value = { path: "\\ud83d", deep: "\\\\ud83d", quoted: "\"\\udc00\"", key: { "\\ud800": 1 } }
    assert.strictEqual(written(value), JSON.stringify(value))
  })

  it("replaces half of a pair behind backslashes", () => {
    assert.deepStrictEqual(
      [JSON.parse(written("\\\ud83d")), JSON.parse(written("\\\\\ud83d\\ud83d"))],
      ["\\\ufffd", "\\\\\ufffd\\ud83d"]
    )
  })

  const Piece = Schema.Literals(["\\", "\"", "u", "d83d", "\ud83d", "\ude00", "a", "\n", "日"])

  it.effect.prop(
    "writes what a strict reader reads as the text with its lone halves replaced",
    { pieces: Arbitrary.array(Arbitrary.schema(Piece), { maxLength: 20 }) },
    ({ pieces }) =>
      Effect.sync(() => {
        const text = pieces.join("")
        const json = written({ [text]: text })
        assert.notMatch(json.replaceAll("\\\\", ""), /\\u[dD][89a-fA-F]/)
        const wellFormed = text.replace(/\p{Surrogate}/gu, "\ufffd")
        assert.deepStrictEqual(JSON.parse(json), { [wellFormed]: wellFormed })
      }),
    { arbitrary: { runs: 300, size: 20 } }
  )

  it.effect.prop("writes what parse reads back", { value: Schema.Json }, ({ value }) =>
    Effect.sync(() => {
      // -0 has no JSON text of its own
      const expected: unknown = JSON.parse(JSON.stringify(value))
      const wellFormed = JSON.stringify(expected).includes("\\ud") ? undefined : expected
      const read = Result.getOrThrow(JsonRpc.parse(written(value)))
      if (wellFormed !== undefined) assert.deepStrictEqual(read, wellFormed)
    }), { arbitrary: { runs: 200 } })
})

describe("any JSON value", () => {
  const Member = Schema.Literals(["jsonrpc", "id", "method", "params", "result", "error", "extra"])
  const Value = Schema.Union([
    Schema.Literals(["2.0", "m", "", 0, 1, 1.5, 2 ** 53]),
    Schema.Boolean,
    Schema.Null,
    Schema.Literals(["{}", "[]", "error"])
  ])
  const fill = (value: typeof Value.Type): unknown =>
    value === "{}" ? {} : value === "[]" ? [] : value === "error" ? { code: 1, message: "m" } : value

  it.effect.prop(
    "is a message of exactly one kind, or refused with the id to answer under",
    { members: Schema.Array(Schema.Tuple([Member, Value])) },
    ({ members }) =>
      Effect.sync(() => {
        const value: Record<string, unknown> = {}
        for (const [key, content] of [["jsonrpc", "2.0"] as const, ...members]) value[key] = fill(content)
        const result = JsonRpc.decode(value)
        if (Result.isFailure(result)) {
          const isResponse = !("method" in value) && ("result" in value || "error" in value)
          assert.deepStrictEqual([result.failure.id, result.failure.responseShaped], [
            JsonRpc.idFrom(value["id"]),
            isResponse
          ])
        } else {
          const message = result.success
          const kinds = [JsonRpc.isRequest, JsonRpc.isNotification, JsonRpc.isSuccess, JsonRpc.isFailure]
          assert.strictEqual(kinds.filter((is) => is(message)).length, 1)
          assert.isTrue(Schema.is(JsonRpc.Message)(message))
        }
      }),
    { arbitrary: { runs: 500, size: 12 } }
  )
})

/**
 * The edges of JSON-RPC and of MCP, on a transport whose other end is the test: what each message gets that a client
 * should not send, may send, or sends at an odd moment.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Mcp from "effect-stdio/Mcp"
import type * as Transport from "effect-stdio/Transport"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { codes, open as openServer, text } from "../utils/mcp.ts"
import type { Message, Options } from "../utils/mcp.ts"

// -----------------------------------------------------------------------------
// a server with a tool for each edge
// -----------------------------------------------------------------------------

const MB = 1_000_000
const ODD_NAMES = ["constructor", "__proto__", "toString", "hasOwnProperty"]

const Tools = Toolkit.make(
  Tool.make("echo", {
    parameters: Schema.Struct({ text: Schema.String }),
    success: Schema.Struct({ text: Schema.String })
  }),
  Tool.make("wait", {
    parameters: Schema.Struct({ seconds: Schema.Finite }),
    success: Schema.Struct({ waited: Schema.Finite })
  }),
  Tool.make("big", { parameters: Schema.Struct({ size: Schema.Finite }), success: Schema.String }),
  Tool.make("hold", { parameters: Schema.Struct({ seconds: Schema.Finite }), success: Schema.Struct({}) }),
  Tool.make("touch", {
    parameters: Schema.Struct({ after: Schema.optionalKey(Schema.Finite) }),
    success: Schema.Struct({}),
    dependencies: [McpServer.McpServer]
  }),
  Tool.make("flood", {
    parameters: Schema.Struct({ reports: Schema.Finite, pause: Schema.Finite }),
    success: Schema.Struct({}),
    dependencies: [McpServer.McpServer]
  })
)

const handlers = Tools.toLayer({
  echo: ({ text }) => Effect.succeed({ text }),
  wait: ({ seconds }) => Effect.as(Effect.sleep(seconds * 1_000), { waited: seconds }),
  big: ({ size }) => Effect.succeed("x".repeat(size)),
  hold: ({ seconds }) => Effect.uninterruptible(Effect.as(Effect.sleep(seconds * 1_000), {})),
  touch: ({ after = 0 }) =>
    Effect.gen(function*() {
      if (after > 0) yield* Effect.sleep(after * 1_000)
      const { notifications } = yield* McpServer.McpServer
      yield* notifications["notifications/tools/list_changed"]({})
      yield* notifications["notifications/resources/updated"]({ uri: "test://text" })
      return {}
    }),
  flood: ({ pause, reports }) =>
    Effect.gen(function*() {
      const { report } = yield* Mcp.progress
      for (let step = 1; step <= reports; step++) {
        yield* report(step)
        if (pause > 0) yield* Effect.sleep(pause)
      }
      return {}
    })
})

/** Asks the user, which a client can only do that said so. */
const asking = Layer.effectDiscard(Effect.flatMap(McpServer.McpServer, (server) =>
  server.addTool({
    tool: new McpSchema.Tool({ name: "ask", inputSchema: { type: "object" } }),
    annotations: Context.empty(),
    handle: () =>
      Effect.succeed(
        new McpSchema.InputRequired({
          inputRequests: {
            answer: {
              method: "elicitation/create",
              params: { mode: "form", message: "who?", requestedSchema: { type: "object", properties: {} } }
            }
          }
        })
      )
  })))

const registrations = Layer.mergeAll(
  McpServer.toolkit(Tools).pipe(Layer.provide(handlers)),
  asking,
  McpServer.resource({ uri: "test://text", name: "text", content: Effect.succeed("some text") })
)

// -----------------------------------------------------------------------------
// connections
// -----------------------------------------------------------------------------

const open = (options?: Options, transport?: Transport.Options) => openServer({ registrations, ...options }, transport)

const initialize = (id: number | string, protocolVersion = "2025-11-25", capabilities = {}) => ({
  id,
  method: "initialize",
  params: { protocolVersion, capabilities, clientInfo: { name: "test", version: "1" } }
})

const session = Effect.fnUntraced(function*(version?: string, options?: Options, transport?: Transport.Options) {
  const server = yield* open(options, transport)
  yield* server.ask(initialize("open", version), { method: "notifications/initialized" })
  return server
})

const KEY = "io.modelcontextprotocol"
const metadata = {
  [`${KEY}/protocolVersion`]: "2026-07-28",
  [`${KEY}/clientCapabilities`]: {},
  [`${KEY}/clientInfo`]: { name: "test", version: "1" }
}

/** A request of the revision 2026-07-28, which brings along what a session would know. */
const modern = (request: { readonly id?: unknown; readonly method: string; readonly params?: object }, more = {}) => ({
  ...request,
  params: { ...request.params, _meta: { ...metadata, ...more } }
})

const call = (id: number | string, name: string, args: object = {}, meta?: object) => ({
  id,
  method: "tools/call",
  params: { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }
})

const success = (id: number | string, result: Readonly<Record<string, unknown>>): Message => ({
  jsonrpc: "2.0",
  id,
  result
})
const failure = (id: number | string | null, code: number, message: string, data?: object): Message => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) }
})

const parseError = failure(null, -32700, "Parse error: the frame is not valid JSON")
const invalid = (id: number | string | null, detail: string) => failure(id, -32600, `Invalid request: ${detail}`)
const wrongId = invalid(null, "id must be a string or an integer between -(2^53 - 1) and 2^53 - 1")
const noMessage = invalid(null, "not a JSON-RPC message (an object with a method, a result or an error)")
const inFlight = (id: number | string) => invalid(id, "a request with this id is in flight")

/** The result of `echo`. */
const echoed = (value: string) => ({
  content: [{ type: "text", text: JSON.stringify({ text: value }) }],
  structuredContent: { text: value },
  isError: false
})

const statelessResult = (result: object) => ({
  _meta: { [`${KEY}/serverInfo`]: { name: "test", version: "1.0.0" } },
  resultType: "complete",
  ...result
})

/** The two ways to be served on one pipe, with a request that has no side effect in each. */
const eras = [
  {
    era: "in a session",
    connect: (transport?: Transport.Options) => session(undefined, undefined, transport),
    request: (id: string, more = "") => `{"jsonrpc":"2.0","id":${id},"method":"ping"${more}}`,
    result: {}
  },
  {
    era: "without a session",
    connect: (transport?: Transport.Options) => open(undefined, transport),
    request: (id: string, more = "") =>
      `{"jsonrpc":"2.0","id":${id},"method":"resources/templates/list","params":${
        JSON.stringify({ _meta: metadata })
      }${more}}`,
    result: statelessResult({ ttlMs: 0, cacheScope: "private", resourceTemplates: [] })
  }
] as const

// -----------------------------------------------------------------------------
// JSON-RPC
// -----------------------------------------------------------------------------

for (const { connect, era, request, result } of eras) {
  describe(`a message ${era}`, () => {
    it.effect("that is no JSON gets a parse error, and its neighbours in the chunk their answers", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        const answers = yield* server.ask(request("1"), "{\"jsonrpc\":\"2.0\",\"id\":2,", "nonsense", request("3"))
        assert.sameDeepMembers([...answers], [success(1, result), parseError, parseError, success(3, result)])
      }))

    it.effect("that is no JSON is answered ten times a second, requests always", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        const flood = Array.from({ length: 30 }, () => "}{")
        const first = yield* server.ask(...flood, request("1"))
        assert.strictEqual(first.filter(({ id }) => id === null).length, 10)
        assert.deepInclude(first, success(1, result))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* server.ask("}{"), [parseError])
      }))

    it.effect("that is blank gets nothing", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        assert.deepStrictEqual(yield* server.ask("", "   ", "\t", "\r"), [])
        assert.deepStrictEqual(yield* server.ask(request("1")), [success(1, result)])
      }))

    it.effect("with an id that is no string and no safe integer is refused with null, nothing rounded", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const id of ["null", "1.5", "9007199254740993", "-9007199254740992", "1e300", "true", "{}", "[1]"]) {
          assert.deepStrictEqual(yield* server.ask(request(id)), [wrongId], id)
          yield* TestClock.adjust("1 second")
        }
      }))

    it.effect("with the id \"\", 0, -1 or the largest integer is answered under it", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const id of ["", 0, -1, Number.MAX_SAFE_INTEGER, "0", "日本"]) {
          assert.deepStrictEqual(yield* server.ask(request(JSON.stringify(id))), [success(id, result)])
        }
      }))

    it.effect("without jsonrpc 2.0 is refused under its id", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const version of ["\"jsonrpc\":\"1.0\",", "\"jsonrpc\":2,", ""]) {
          const line = request("1").replace("\"jsonrpc\":\"2.0\",", version)
          assert.deepStrictEqual(yield* server.ask(line), [invalid(1, "jsonrpc must be \"2.0\"")])
        }
      }))

    it.effect("without a method that is a string is refused under its id", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const method of [5, null, {}]) {
          assert.deepStrictEqual(yield* server.ask({ id: 1, method }), [invalid(1, "method must be a string")])
        }
        assert.deepStrictEqual(yield* server.ask({ id: 1 }), [{ ...noMessage, id: 1 }])
      }))

    it.effect("with params that are an array has invalid params, with a scalar is no request", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const params of [[], [metadata]]) {
          assert.deepStrictEqual(yield* server.ask({ id: 1, method: "ping", params }), [
            failure(1, -32602, "Invalid params: MCP params are an object")
          ])
        }
        for (const params of [5, "x", true]) {
          assert.deepStrictEqual(yield* server.ask({ id: 1, method: "ping", params }), [
            invalid(1, "params must be an object or an array")
          ])
        }
      }))

    it.effect("with params null is one without params", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const method of ["ping", "tools/list", "nope"]) {
          const absent = yield* server.ask({ id: 1, method })
          assert.deepStrictEqual(yield* server.ask({ id: 1, method, params: null }), absent)
        }
      }))

    it.effect("with members that JSON-RPC does not know is answered as if they were not there", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        assert.deepStrictEqual(yield* server.ask(request("1", ",\"extra\":{\"__proto__\":1},\"trace\":null")), [
          success(1, result)
        ])
      }))

    it.effect("that is a scalar, null or {} gets an error with null", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const line of ["42", "\"s\"", "null", "true"]) {
          assert.deepStrictEqual(yield* server.ask(line), [noMessage])
        }
        assert.deepStrictEqual(codes(yield* server.ask("{}")), [{ id: null, code: -32600 }])
      }))

    it.effect("that is an empty batch, or any batch, gets one error with null", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        assert.deepStrictEqual(yield* server.ask("[]"), [invalid(null, "an empty batch")])
        for (const line of ["[1]", `[${request("1")}]`, `[${request("1")},${request("2")}]`]) {
          assert.deepStrictEqual(yield* server.ask(line), [
            invalid(null, "batches are not supported on this connection")
          ])
        }
      }))

    it.effect("without an id gets nothing, whatever its method", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        assert.deepStrictEqual(
          yield* server.ask(
            { method: "notifications/nope" },
            { method: "tools/list" },
            { method: "initialize" },
            { method: "ping", params: [] },
            modern({ method: "notifications/nope" }),
            modern({ method: "tools/call", params: { name: "echo", arguments: { text: "x" } } }),
            { method: "notifications/roots/list_changed", params: { _meta: 5 } },
            { method: "notifications/progress", params: { progressToken: {} } }
          ),
          []
        )
        assert.deepStrictEqual(yield* server.ask(request("1")), [success(1, result)])
      }))

    it.effect("that has the shape of a response to nothing gets nothing", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        assert.deepStrictEqual(
          yield* server.ask(
            { id: 99, result: {} },
            { id: "x", error: { code: 1, message: "x" } },
            { id: null, error: { code: -32700, message: "x" } },
            { error: { code: -32700, message: "x" } },
            { id: 99, result: {}, error: { code: 1, message: "x" } },
            { id: 1.5, result: {} },
            "{\"id\":99,\"result\":{}}"
          ),
          []
        )
      }))

    it.effect("arrives in any pieces, with CRLF, a byte order mark, U+2028 and emoji", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        for (const sizes of [[1], [2, 3], [7]]) {
          yield* server.feed(`\uFEFF${request("\"\u2028🚆\"")}\r\n\r\n${request("2")}\n`, sizes)
          const answers = yield* Effect.andThen(Effect.repeat(server.settled, { times: 10 }), server.news)
          assert.deepStrictEqual(answers, [success("\u2028🚆", result), success(2, result)])
        }
      }))

    it.effect("above the limit gets one error under its id, and the next one its answer", () =>
      Effect.gen(function*() {
        const server = yield* connect({ maxFrameBytes: 1_000 })
        const answers = yield* server.ask(request("7", `,"padding":"${"x".repeat(5_000)}"`), request("8"))
        assert.sameDeepMembers(codes(answers), [{ id: 7, code: -32600 }, { id: 8, code: undefined }])
      }))

    it.effect("with an id that is in flight is refused, and the first is answered", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        const meta = era === "in a session" ? undefined : metadata
        yield* server.ask(call(1, "wait", { seconds: 5 }, meta))
        assert.deepStrictEqual(yield* server.ask(request("1")), [inFlight(1)])
        assert.deepStrictEqual(yield* server.ask(request("\"1\"")), [success("1", result)])
        yield* TestClock.adjust("5 seconds")
        const [answer, ...more] = yield* server.news
        assert.deepStrictEqual(more, [])
        assert.deepInclude(answer?.result, { structuredContent: { waited: 5 }, isError: false })
        assert.deepStrictEqual(yield* server.ask(request("1")), [success(1, result)])
      }))

    it.effect("that calls an unknown method, or a notification as a request, gets that there is none", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        const params = era === "in a session" ? {} : { _meta: metadata }
        for (
          const method of [
            "nope",
            "",
            ...ODD_NAMES,
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
            "notifications/nope"
          ]
        ) {
          assert.deepStrictEqual(yield* server.ask({ id: 1, method, params }), [
            failure(1, -32601, `Method not found: ${method}`)
          ])
        }
      }))

    it.effect("that names a tool, prompt or resource like a member of every object finds none", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        const meta = era === "in a session" ? {} : { _meta: metadata }
        // 2026-07-28 moved the code of a missing resource to that of invalid params
        const noResource = era === "in a session" ? -32002 : -32602
        for (const name of ODD_NAMES) {
          const answers = yield* server.ask(
            `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":{"__proto__":{}},"_meta":${
              JSON.stringify(meta._meta ?? {})
            }}}`,
            { id: 2, method: "prompts/get", params: { name, ...meta } },
            { id: 3, method: "resources/read", params: { uri: name, ...meta } }
          )
          assert.sameDeepMembers(codes(answers), [
            { id: 1, code: -32602 },
            { id: 2, code: -32602 },
            { id: 3, code: noResource }
          ])
        }
      }))

    it.effect("with half a surrogate pair is answered with text that every client can read", () =>
      Effect.gen(function*() {
        const server = yield* connect()
        const meta = era === "in a session" ? {} : metadata
        yield* server.ask(
          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\\ud83d"},"_meta":${
            JSON.stringify(meta)
          }}}`
        )
        const sent = yield* server.sentText
        assert.include(sent, "\"structuredContent\":{\"text\":\"a\uFFFD\"}")
        // an escape of the wire itself; text that looks like one has its backslash doubled
        assert.notMatch(sent, /(?<!\\)\\ud[89a-f]/i)
      }))
  })
}

describe("a batch in a session of 2025-03-26", () => {
  it.effect("is answered in one frame, member by member", () =>
    Effect.gen(function*() {
      const server = yield* session("2025-03-26")
      const answers = yield* server.ask(
        `[1,${text({ id: 1, method: "ping" })},${text({ id: 2, method: "nope" })},${text({ method: "ping" })}]`
      )
      assert.deepStrictEqual<unknown>(answers, [
        [noMessage, success(1, {}), failure(2, -32601, "Method not found: nope")]
      ])
    }))

  it.effect("that is empty is refused, one of notifications gets nothing", () =>
    Effect.gen(function*() {
      const server = yield* session("2025-03-26")
      assert.deepStrictEqual(yield* server.ask("[]"), [invalid(null, "an empty batch")])
      assert.deepStrictEqual(yield* server.ask(`[${text({ method: "notifications/initialized" })}]`), [])
    }))

  it.effect("does not wait for a member that was cancelled", () =>
    Effect.gen(function*() {
      const server = yield* session("2025-03-26")
      assert.deepStrictEqual(
        yield* server.ask(`[${text(call(1, "wait", { seconds: 60 }))},${text({ id: 2, method: "ping" })}]`),
        []
      )
      assert.deepStrictEqual<unknown>(
        yield* server.ask({ method: "notifications/cancelled", params: { requestId: 1 } }),
        [[success(2, {})]]
      )
    }))

  it.effect("opens no session", () =>
    Effect.gen(function*() {
      const server = yield* open()
      assert.deepStrictEqual(yield* server.ask(`[${text(initialize(1, "2025-03-26"))}]`), [
        invalid(null, "batches are not supported on this connection")
      ])
      assert.deepStrictEqual(yield* server.ask({ id: 2, method: "tools/list" }), [
        invalid(2, "send initialize first")
      ])
    }))
})

// -----------------------------------------------------------------------------
// MCP: the opening of a session
// -----------------------------------------------------------------------------

const initializedAlready = (id: number | string) => invalid(id, "this connection is initialized already")

describe("the opening of a session", () => {
  it.effect("comes first, then what was sent along with it", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(
        initialize(0),
        { method: "notifications/initialized" },
        { id: 1, method: "ping" },
        call(2, "echo", { text: "x" }),
        { id: 3, method: "resources/templates/list" }
      )
      assert.sameDeepMembers(answers.slice(1), [
        success(1, {}),
        success(2, echoed("x")),
        success(3, { resourceTemplates: [] })
      ])
      assert.deepStrictEqual(answers[0]?.result, {
        protocolVersion: "2025-11-25",
        capabilities: {
          logging: {},
          resources: { subscribe: true, listChanged: true },
          tools: { listChanged: true },
          completions: {}
        },
        serverInfo: { name: "test", version: "1.0.0" }
      })
    }))

  it.effect("happens once of two at the same time, in the revision of the first", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(initialize(0, "2025-06-18"), initialize(1, "2024-11-05"))
      assert.strictEqual(answers.length, 2)
      assert.strictEqual(answers[0]?.result?.["protocolVersion"], "2025-06-18")
      assert.deepStrictEqual(answers[1], initializedAlready(1))
    }))

  it.effect("is left to a later one where the first of three is refused", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(
        { id: 0, method: "initialize" },
        initialize(1, "2025-06-18"),
        initialize(2),
        { id: 3, method: "ping" }
      )
      assert.sameDeepMembers(codes(answers), [
        { id: 0, code: -32602 },
        { id: 1, code: undefined },
        { id: 2, code: -32600 },
        { id: 3, code: undefined }
      ])
    }))

  it.effect("that is refused leaves what was sent along with it without a session", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(
        { id: 0, method: "initialize" },
        { method: "notifications/initialized" },
        call(1, "echo", { text: "x" }),
        { id: 2, method: "tools/list" }
      )
      assert.deepStrictEqual(codes(answers.slice(0, 1)), [{ id: 0, code: -32602 }])
      assert.deepStrictEqual(answers.slice(1), [1, 2].map((id) => invalid(id, "send initialize first")))
    }))

  it.effect("cannot be done again in another revision", () =>
    Effect.gen(function*() {
      const server = yield* session("2025-11-25")
      assert.deepStrictEqual(yield* server.ask(initialize(1, "2025-03-26")), [initializedAlready(1)])
      // the session is the one it was: no batches
      assert.deepStrictEqual(codes(yield* server.ask(`[${text({ id: 1, method: "ping" })}]`)), [
        { id: null, code: -32600 }
      ])
    }))

  it.effect("cannot be cancelled", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(
        initialize(0),
        { method: "notifications/cancelled", params: { requestId: 0 } },
        { id: 1, method: "resources/templates/list" }
      )
      assert.deepStrictEqual(codes(answers), [{ id: 0, code: undefined }, { id: 1, code: undefined }])
    }))

  it.effect("does not hold a request that is cancelled while it waits for it", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(
        initialize(0),
        call(1, "wait", { seconds: 60 }),
        { method: "notifications/cancelled", params: { requestId: 1 } },
        { id: 1, method: "ping" }
      )
      assert.deepStrictEqual(codes(answers), [{ id: 0, code: undefined }, { id: 1, code: undefined }])
      assert.deepStrictEqual(answers[1]?.result, {})
    }))

  it.effect("is no matter for requests without a session, before, during and after it", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const list = (id: string) => modern({ id, method: "resources/templates/list" })
      const { result } = eras[1]
      const answers = yield* server.ask(list("a"), initialize(0), list("b"), call(1, "echo", { text: "x" }), list("c"))
      assert.sameDeepMembers([...answers].filter(({ id }) => id !== 0), [
        success("a", result),
        success("b", result),
        success("c", result),
        success(1, echoed("x"))
      ])
      assert.sameDeepMembers(
        [...yield* server.ask(modern(call(2, "echo", { text: "y" })), call(3, "echo", { text: "z" }), list("d"))],
        [success(2, statelessResult(echoed("y"))), success(3, echoed("z")), success("d", result)]
      )
    }))

  it.effect("is not there for a request with an id that one without a session has in flight", () =>
    Effect.gen(function*() {
      const server = yield* session()
      yield* server.ask(modern(call(1, "wait", { seconds: 5 })))
      assert.deepStrictEqual(yield* server.ask({ id: 1, method: "ping" }), [inFlight(1)])
    }))

  it.effect("may be followed by requests before the client says that it is initialized", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.ask(initialize(0))
      assert.deepStrictEqual(yield* server.ask(call(1, "echo", { text: "x" })), [success(1, echoed("x"))])
    }))

  it.effect("that the client leaves at, before it says that it is initialized, ends the server", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const answers = yield* server.ask(initialize(0))
      assert.deepStrictEqual(codes(answers), [{ id: 0, code: undefined }])
      yield* server.endInput
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
    }))

  it.effect("is answered when the client leaves right behind it, and so is what came along", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.feed(`${text(initialize(0))}\n${text(call(1, "echo", { text: "x" }))}\n`)
      yield* server.endInput
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      assert.deepStrictEqual(codes(yield* server.news), [{ id: 0, code: undefined }, { id: 1, code: undefined }])
    }))

  it.effect("is offered the first revision that has sessions, of those that are served", () =>
    Effect.gen(function*() {
      const server = yield* open({
        protocols: [McpProtocol.v2026_07_28, McpProtocol.v2025_03_26, McpProtocol.v2024_11_05]
      })
      const [answer] = yield* server.ask(initialize(0, "2025-11-25"))
      assert.strictEqual(answer?.result?.["protocolVersion"], "2025-03-26")
    }))

  it.effect("is refused where no revision has sessions", () =>
    Effect.gen(function*() {
      const server = yield* open({ protocols: [McpProtocol.v2026_07_28] })
      const [refusal] = yield* server.ask(initialize(0))
      assert.deepStrictEqual(refusal?.error, {
        code: -32022,
        message: "Unsupported protocol version: 2025-11-25",
        data: { supported: ["2026-07-28"], requested: "2025-11-25" }
      })
      assert.deepStrictEqual(
        codes(
          yield* server.ask({ jsonrpc: "2.0", id: 2, method: "tools/list" }, { jsonrpc: "2.0", id: 3, method: "ping" })
        ),
        [{ id: 2, code: -32602 }, { id: 3, code: -32602 }]
      )
      assert.deepStrictEqual(codes(yield* server.ask(modern({ id: 1, method: "server/discover" }))), [
        { id: 1, code: undefined }
      ])
    }))

  it.effect("is what a client goes on with that finds no discovery, where all revisions have sessions", () =>
    Effect.gen(function*() {
      const server = yield* open({ protocols: [McpProtocol.v2025_11_25] })
      assert.deepStrictEqual(codes(yield* server.ask(modern({ id: 1, method: "server/discover" }))), [
        { id: 1, code: -32601 }
      ])
      assert.deepStrictEqual(codes(yield* server.ask(initialize(0))), [{ id: 0, code: undefined }])
    }))
})

// -----------------------------------------------------------------------------
// MCP: requests without a session
// -----------------------------------------------------------------------------

describe("a request without a session", () => {
  const without = (key: string, request: { readonly id: number; readonly method: string; readonly params?: object }) =>
    modern(request, { [`${KEY}/${key}`]: undefined })
  const badMetadata = (id: number) => failure(id, -32602, "Invalid request metadata")

  it.effect("says what its client can, and may leave out what its client is", () =>
    Effect.gen(function*() {
      const server = yield* open()
      for (const method of ["tools/list", "server/discover", "subscriptions/listen"]) {
        assert.deepStrictEqual(
          yield* server.ask(without("clientCapabilities", { id: 1, method, params: { notifications: {} } })),
          [badMetadata(1)]
        )
      }
      const list = without("clientInfo", { id: 2, method: "resources/templates/list" })
      assert.deepStrictEqual(yield* server.ask(list), [success(2, eras[1].result)])
    }))

  it.effect("has metadata of the right types", () =>
    Effect.gen(function*() {
      const server = yield* open()
      for (
        const more of [
          { [`${KEY}/clientCapabilities`]: 5 },
          { [`${KEY}/clientInfo`]: "me" },
          { [`${KEY}/logLevel`]: "loud" },
          { progressToken: {} }
        ]
      ) {
        assert.deepStrictEqual(yield* server.ask(modern({ id: 1, method: "tools/list" }, more)), [badMetadata(1)])
      }
      for (const version of [null, 20_260_728, {}]) {
        assert.deepStrictEqual(
          yield* server.ask(modern({ id: 1, method: "tools/list" }, { [`${KEY}/protocolVersion`]: version })),
          [failure(1, -32602, `Invalid params: ${KEY}/protocolVersion must be a string`)]
        )
      }
    }))

  it.effect("in a version that is not served learns which are, also after others were served", () =>
    Effect.gen(function*() {
      const server = yield* session()
      for (const requested of ["", "1900-01-01", "2025-11-25", "2099-01-01"]) {
        for (const method of ["tools/list", "server/discover", "initialize", "ping", "nope"]) {
          assert.deepStrictEqual(
            yield* server.ask(modern({ id: 1, method }, { [`${KEY}/protocolVersion`]: requested })),
            [
              failure(1, -32022, `Unsupported protocol version: ${requested}`, {
                supported: ["2026-07-28"],
                requested
              })
            ]
          )
        }
      }
    }))

  it.effect("has no methods of a session", () =>
    Effect.gen(function*() {
      const server = yield* session()
      for (const method of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]) {
        assert.deepStrictEqual(yield* server.ask(modern({ id: 1, method })), [
          failure(1, -32601, `Method not found: ${method}`)
        ])
      }
    }))

  it.effect("for a tool that asks gets the question, or which capability its client lacks", () =>
    Effect.gen(function*() {
      const server = yield* open()
      const [refused] = yield* server.ask(modern(call(1, "ask")))
      assert.deepInclude(refused?.error, {
        code: -32021,
        data: { requiredCapabilities: { elicitation: { form: {} } } }
      })
      const [asked] = yield* server.ask(modern(call(2, "ask"), { [`${KEY}/clientCapabilities`]: { elicitation: {} } }))
      assert.strictEqual(asked?.result?.["resultType"], "input_required")
      assert.deepStrictEqual(Object.keys(asked?.result?.["inputRequests"] as object), ["answer"])
    }))

  it.effect("is refused in the way of MCP where its params do not fit", () =>
    Effect.gen(function*() {
      const server = yield* open()
      assert.deepStrictEqual(
        codes(
          yield* server.ask(
            modern({ id: 1, method: "tools/call" }),
            modern({ id: 2, method: "subscriptions/listen" }),
            modern({ id: 3, method: "subscriptions/listen", params: { notifications: 5 } }),
            modern({ id: 4, method: "resources/read", params: { uri: 5 } })
          )
        ),
        [1, 2, 3, 4].map((id) => ({ id, code: -32602 }))
      )
    }))
})

// -----------------------------------------------------------------------------
// MCP: cancellation
// -----------------------------------------------------------------------------

describe("a cancellation", () => {
  const malformed = [
    { method: "notifications/cancelled" },
    { method: "notifications/cancelled", params: null },
    { method: "notifications/cancelled", params: [1] },
    ...[undefined, null, true, 1.5, {}, [1], "1", "nope", 999, Number.MAX_SAFE_INTEGER].map((requestId) => ({
      method: "notifications/cancelled",
      params: { requestId }
    }))
  ]

  it.effect("that names no request in flight changes nothing", () =>
    Effect.gen(function*() {
      const server = yield* session()
      yield* server.ask(call(1, "wait", { seconds: 5 }))
      assert.deepStrictEqual(yield* server.ask(...malformed), [])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(codes(yield* server.news), [{ id: 1, code: undefined }])
    }))

  it.effect("of a request that is answered already changes nothing", () =>
    Effect.gen(function*() {
      const server = yield* session()
      yield* server.ask(call(1, "echo", { text: "x" }))
      assert.deepStrictEqual(yield* server.ask({ method: "notifications/cancelled", params: { requestId: 1 } }), [])
      assert.deepStrictEqual(yield* server.ask(call(1, "echo", { text: "y" })), [success(1, echoed("y"))])
    }))

  it.effect("in the same chunk as its request ends it without an answer", () =>
    Effect.gen(function*() {
      const server = yield* session()
      for (const meta of [undefined, metadata]) {
        assert.deepStrictEqual(
          yield* server.ask(
            call(1, "wait", { seconds: 5 }, meta),
            { method: "notifications/cancelled", params: { requestId: 1 } }
          ),
          []
        )
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual(yield* server.news, [])
      }
    }))

  it.effect("may itself carry a version", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.ask(modern(call(1, "wait", { seconds: 5 })))
      yield* server.ask(modern({ method: "notifications/cancelled", params: { requestId: 1 } }))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.news, [])
    }))

  it.effect("is followed by no progress of the request", () =>
    Effect.gen(function*() {
      const server = yield* session()
      const [first] = yield* server.ask(call(1, "flood", { reports: 100, pause: 1_000 }, { progressToken: "t" }))
      assert.deepStrictEqual(first?.params, { progressToken: "t", progress: 1 })
      yield* server.ask({ method: "notifications/cancelled", params: { requestId: 1 } })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* server.news, [])
    }))
})

// -----------------------------------------------------------------------------
// MCP: progress, and much of anything
// -----------------------------------------------------------------------------

describe("progress", () => {
  const progressOf = (messages: ReadonlyArray<Message>) =>
    messages.filter(({ method }) => method === "notifications/progress").map(({ params }) => params)

  for (const [era, meta, connect] of [["in a session", {}, session()], ["without one", metadata, open()]] as const) {
    it.effect(`has the token that was given, ${era}`, () =>
      Effect.gen(function*() {
        const server = yield* connect
        for (const progressToken of [0, "", "abc", "0"]) {
          const answers = yield* server.ask(call(1, "flood", { reports: 2, pause: 0 }, { ...meta, progressToken }))
          assert.deepStrictEqual(progressOf(answers), [
            { progressToken, progress: 1 },
            { progressToken, progress: 2 }
          ])
          assert.strictEqual(answers.length, 3)
        }
        const answers = yield* server.ask(call(1, "flood", { reports: 2, pause: 0 }, meta))
        assert.deepStrictEqual(codes(answers), [{ id: 1, code: undefined }])
      }))

    it.effect(`of a handler that reports 10,000 times is bounded, and the last is told, ${era}`, () =>
      Effect.gen(function*() {
        const server = yield* connect
        yield* server.ask(call(1, "flood", { reports: 10_000, pause: 0 }, { ...meta, progressToken: 1 }))
        const messages = Effect.map(server.sent, (sent) => sent as ReadonlyArray<Message>)
        while ((yield* messages).every(({ id }) => id !== 1)) yield* server.settled
        const told = progressOf(yield* messages)
        assert.isBelow(told.length, 30)
        assert.deepStrictEqual(told.at(-1), { progressToken: 1, progress: 10_000 })
        assert.strictEqual((yield* messages).at(-1)?.id, 1)
      }))
  }

  it.effect("of a handler that reports every millisecond is told twenty times a second", () =>
    Effect.gen(function*() {
      const server = yield* session()
      yield* server.ask(call(1, "flood", { reports: 2_000, pause: 1 }, { progressToken: 1 }))
      yield* TestClock.adjust("2 seconds")
      yield* server.settled
      const told = progressOf((yield* server.sent) as Array<Message>).map((params) => params?.["progress"])
      assert.isAtLeast(told.length, 50)
      assert.isAtMost(told.length, 62)
      assert.strictEqual(told.at(-1), 2_000)
    }))

  it.effect("of two requests at a time keeps to its own token", () =>
    Effect.gen(function*() {
      const server = yield* session()
      yield* server.ask(
        call(1, "flood", { reports: 2, pause: 1_000 }, { progressToken: 1 }),
        call(2, "flood", { reports: 3, pause: 1_000 }, { progressToken: "1" })
      )
      yield* TestClock.adjust("3 seconds")
      yield* server.settled
      const told = progressOf((yield* server.sent) as Array<Message>)
      assert.sameDeepMembers(told, [
        { progressToken: 1, progress: 1 },
        { progressToken: 1, progress: 2 },
        { progressToken: "1", progress: 1 },
        { progressToken: "1", progress: 2 },
        { progressToken: "1", progress: 3 }
      ])
    }))
})

describe("a result of 30 MB", () => {
  it.effect("arrives whole, and the next request is served", () =>
    Effect.gen(function*() {
      const server = yield* session()
      const [big] = yield* server.ask(call(1, "big", { size: 30 * MB }))
      // a difference of this size is better not printed
      assert.isTrue(
        JSON.stringify(big?.result) ===
          `{"content":[{"type":"text","text":"${"x".repeat(30 * MB)}"}],"isError":false}`
      )
      assert.deepStrictEqual(yield* server.ask({ id: 2, method: "ping" }), [success(2, {})])
    }))
})

// -----------------------------------------------------------------------------
// MCP: subscriptions
// -----------------------------------------------------------------------------

describe("a subscription", () => {
  const listen = (id: number | string, notifications: object) =>
    modern({ id, method: "subscriptions/listen", params: { notifications } })
  const metaOf = (id: number | string) => ({ _meta: { [`${KEY}/subscriptionId`]: id } })
  const acknowledged = (id: number | string, notifications: object) => ({
    jsonrpc: "2.0",
    method: "notifications/subscriptions/acknowledged",
    params: { ...metaOf(id), notifications }
  })
  const toolsChanged = (id: number | string) => ({
    jsonrpc: "2.0",
    method: "notifications/tools/list_changed",
    params: metaOf(id)
  })
  const textUpdated = (id: number | string) => ({
    jsonrpc: "2.0",
    method: "notifications/resources/updated",
    params: { ...metaOf(id), uri: "test://text" }
  })
  const closing = (id: number | string) => success(id, { resultType: "complete", ...metaOf(id) })
  const touch = modern(call("touch", "touch"))

  it.effect("is acknowledged first, then gets what it asked for under its id", () =>
    Effect.gen(function*() {
      const server = yield* open()
      assert.deepStrictEqual(
        yield* server.ask(listen(0, { toolsListChanged: true, resourceSubscriptions: ["test://text"] })),
        [acknowledged(0, { toolsListChanged: true, resourceSubscriptions: ["test://text"] })]
      )
      const messages = yield* server.ask(touch)
      assert.deepStrictEqual(messages.slice(0, 2), [toolsChanged(0), textUpdated(0)])
      assert.deepStrictEqual(codes(messages.slice(2)), [{ id: "touch", code: undefined }])
    }))

  it.effect("gets nothing that it did not ask for, and is acknowledged for what there is", () =>
    Effect.gen(function*() {
      const server = yield* open()
      // this server has no prompts
      assert.deepStrictEqual(
        yield* server.ask(
          listen("all", { promptsListChanged: true, resourcesListChanged: true }),
          listen("other", { resourceSubscriptions: ["test://other"] }),
          listen("none", {})
        ),
        [
          acknowledged("all", { resourcesListChanged: true }),
          acknowledged("other", { resourceSubscriptions: ["test://other"] }),
          acknowledged("none", {})
        ]
      )
      assert.deepStrictEqual(codes(yield* server.ask(touch)), [{ id: "touch", code: undefined }])
    }))

  it.effect("that is cancelled is never answered and gets nothing more, others do", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.ask(listen(0, { toolsListChanged: true }), listen("0", { toolsListChanged: true }))
      assert.deepStrictEqual(yield* server.ask({ method: "notifications/cancelled", params: { requestId: 0 } }), [])
      assert.deepStrictEqual((yield* server.ask(touch)).slice(0, -1), [toolsChanged("0")])
      // its id is free
      assert.deepStrictEqual(yield* server.ask(listen(0, {})), [acknowledged(0, {})])
    }))

  it.effect("keeps its id", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.ask(listen("sub", {}))
      assert.deepStrictEqual(yield* server.ask(listen("sub", {}), modern({ id: "sub", method: "tools/list" })), [
        inFlight("sub"),
        inFlight("sub")
      ])
    }))

  it.effect("gets its closing result at the end of the input, while a tool is still waited for", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.ask(listen("a", {}), listen(2, { toolsListChanged: true }), modern(call(3, "wait", { seconds: 5 })))
      yield* server.endInput
      assert.deepStrictEqual(yield* server.news, [closing("a"), closing(2)])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      assert.deepStrictEqual(codes(yield* server.news), [{ id: 3, code: undefined }])
    }))

  it.effect("that was sent right before the end of the input gets its closing result too", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.feed(`${text(listen("late", {}))}\n`)
      yield* server.endInput
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      assert.deepStrictEqual((yield* server.news).at(-1), closing("late"))
    }))

  it.effect("gets nothing more after its closing result", () =>
    Effect.gen(function*() {
      const server = yield* open()
      yield* server.ask(listen("sub", { toolsListChanged: true }), modern(call(1, "touch", { after: 5 })))
      yield* server.endInput
      assert.deepStrictEqual(yield* server.news, [closing("sub")])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(codes(yield* server.news), [{ id: 1, code: undefined }])
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
    }))

  it.effect("that begins when the server is ending already gets its closing result", () =>
    Effect.gen(function*() {
      const server = yield* open()
      // its id is busy until the tool ends, which cannot be interrupted
      yield* server.ask(modern(call(1, "hold", { seconds: 5 })))
      const cancelled = { method: "notifications/cancelled", params: { requestId: 1 } }
      assert.deepStrictEqual(yield* server.ask(cancelled, listen(1, { toolsListChanged: true })), [])
      yield* server.endInput
      yield* server.settled
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      assert.deepStrictEqual(yield* server.news, [closing(1)])
    }))

  it.effect("does not make a session hear more than it would, or less", () =>
    Effect.gen(function*() {
      const server = yield* session()
      yield* server.ask({ id: 1, method: "resources/subscribe", params: { uri: "test://text" } }, listen("sub", {}))
      const messages = yield* server.ask(call("touch", "touch"))
      assert.deepStrictEqual(messages.slice(0, -1), [
        { jsonrpc: "2.0", method: "notifications/tools/list_changed", params: {} },
        { jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: "test://text" } }
      ])
    }))
})

// -----------------------------------------------------------------------------
// MCP: names
// -----------------------------------------------------------------------------

describe("what is named like a member of every object", () => {
  const named = ODD_NAMES.map((name) =>
    Layer.mergeAll(
      McpServer.prompt({ name, content: () => Effect.succeed(`prompt ${name}`) }),
      McpServer.resource({ uri: `test://${name}`, name, content: Effect.succeed(`resource ${name}`) }),
      Layer.effectDiscard(Effect.flatMap(McpServer.McpServer, (server) =>
        server.addTool({
          tool: new McpSchema.Tool({ name, inputSchema: { type: "object" } }),
          annotations: Context.empty(),
          handle: () =>
            Effect.succeed(new McpSchema.CallToolResult({ content: [{ type: "text", text: `tool ${name}` }] }))
        })))
    )
  ).reduce((all, more) => Layer.merge(all, more))

  it.effect("is found where it is registered", () =>
    Effect.gen(function*() {
      // limits by name, looked up in a plain object as a program would
      const limits: Readonly<Record<string, Mcp.ToolLimits>> = { echo: { concurrency: 1 } }
      const toolLimits = (tool: string) => Object.hasOwn(limits, tool) ? limits[tool] : undefined
      const server = yield* session(undefined, { registrations: named, toolLimits })
      for (const name of ODD_NAMES) {
        const answers = yield* server.ask(
          call(1, name),
          { id: 2, method: "prompts/get", params: { name } },
          { id: 3, method: "resources/read", params: { uri: `test://${name}` } }
        )
        assert.deepStrictEqual(answers.map(({ id }) => id), [1, 2, 3])
        const told = JSON.stringify(answers)
        for (const kind of ["tool", "prompt", "resource"]) assert.include(told, `"${kind} ${name}"`)
      }
    }))
})

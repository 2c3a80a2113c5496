/**
 * docs/from-mcp-stdio-core.md against the sources: each name it gives exists, and what it claims is true.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import type * as Lifecycle from "effect-stdio/Lifecycle"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as McpSchema from "effect/ai/McpSchema"
import * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { PassThrough } from "node:stream"
import * as Shim from "../examples/from-mcp-stdio-core/shim.ts"
import { bytes, counted, decodeAll, text } from "./utils/bytes.ts"
import { failure, makeLog, success } from "./utils/peer.ts"
import * as Shown from "./utils/shown.ts"

const page = Shown.read("docs/from-mcp-stdio-core.md")
const withoutPrograms = page.replaceAll(/```[^]*?```/g, "")

/** The rows of all tables, each cell as it stands between its bars. */
const rows = withoutPrograms.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| -"))
  .map((line) => line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim()))

const code = (markdown: string) => Array.from(markdown.matchAll(/`([^`]+)`/g), ([, inline = ""]) => inline)

describe("the page", () => {
  // everything that the original exports, the options of its server, and the events of its log
  const original = [
    ["JsonRpcId", "JsonRpcError", "JsonRpcResult", "JsonRpcResponse", "McpToolDescriptor", "TextContent"],
    ["McpLifecycleLog", "McpRequestHandler", "JsonRpcStdioServerConfig", "ParentWatchdogConfig"],
    ["StdioJsonRpcMessage", "StdioJsonRpcResponseMode", "responseMode", "kind", "payload", "message"],
    ["isPlainRecord", "successResponse", "errorResponse", "jsonRpcId", "messageFromError"],
    ["readStdioJsonRpcMessages", "writeStdioJsonRpcResponse", "runJsonRpcStdioServer"],
    ["isProcessAlive", "createParentWatchdog", "input", "output", "handler", "handlerOptions"],
    ["idleTimeoutMs", "onIdleTimeout", "parentWatchdog", "parentPid", "pollIntervalMs", "probeAlive", "onPoll"],
    ["onParentExit", "log", "parseErrorResponse", "onHandlerError"],
    ["stdio_started", "request", "response", "parse_error", "output_error", "idle_timeout", "parent_exit"],
    ["stdio_stopped"]
  ].flat()
  const named = rows.flatMap(([there = ""]) => code(there))

  it.each(original)("says once what stands for %s", (name) => {
    assert.strictEqual(named.filter((other) => other === name).length, 1)
    const [, here = ""] = rows.find(([there = ""]) => code(there).includes(name)) ?? []
    assert.isAbove(code(here).length, 0)
  })

  it("shows a server as it was, and four programs in its place", () => {
    assert.deepStrictEqual(Shown.programs(page).map(({ file }) => file), [
      "examples/from-mcp-stdio-core/before.mjs",
      "examples/from-mcp-stdio-core/server.ts",
      "examples/from-mcp-stdio-core/mcp.ts",
      "examples/from-mcp-stdio-core/shim.ts",
      "examples/from-mcp-stdio-core/reading.ts"
    ])
  })

  const references = Array.from(new Set(code(withoutPrograms).filter((inline) => /^[A-Z]\w+\.\w/.test(inline))))
  const ofEffect: Record<string, object> = { Context, Effect, McpSchema, Predicate, Tool }
  // where the options of a module's functions are declared that are those of another module too
  const inherited: Record<string, string> = { Server: "Peer" }

  it("names more than forty things of the library", () => {
    assert.isAbove(references.length, 40)
  })

  it.each(references)("%s exists", (reference) => {
    const [, module = "", name = "", options = ""] = /^(\w+)\.(\w+)(?:\(.*?\{ (.*) \}\))?/.exec(reference) ?? []
    const foreign = ofEffect[module]
    if (foreign !== undefined) return assert.property(foreign, name)
    const source = Shown.read(`src/${module}.ts`)
    assert.match(source, new RegExp(`^export (const|type|interface|class) ${name}\\b`, "m"))
    const declared = source + (inherited[module] === undefined ? "" : Shown.read(`src/${inherited[module]}.ts`))
    for (const option of options.split(", ").filter((option) => option !== "")) {
      assert.match(declared, new RegExp(`^  readonly ${option.replace(/:.*/, "")}\\?: `, "m"))
    }
  })

  it("gives events that exist to those of the original, and names all others as new", () => {
    const tags: Record<Lifecycle.Event["_tag"], true> = {
      Started: true,
      Request: true,
      Response: true,
      BadInput: true,
      ParentPoll: true,
      ParentWatchDisabled: true,
      ParentExit: true,
      IdleTimeout: true,
      OutputError: true,
      CutOff: true,
      Unflushed: true,
      Stopped: true,
      Failed: true
    }
    const [, log = ""] = /## The lifecycle log\n([^]*?)\n## /.exec(withoutPrograms) ?? []
    const mentioned = new Set(code(log).filter((inline) => /^[A-Z]\w+$/.test(inline) && inline !== "StopReason"))
    assert.deepStrictEqual([...mentioned].toSorted(), Object.keys(tags).toSorted())
  })
})

describe("a value", () => {
  class Dated {
    readonly date = 1
  }

  it("is an object where it is neither an array nor null nor a primitive", () => {
    const values = [{ method: "x" }, new Dated(), [], null, undefined, "text", 1, true, () => 1]
    assert.deepStrictEqual(values.map(Predicate.isObject), [true, true, ...values.slice(2).map(() => false)])
  })

  it("that is undefined is a result of null", () => {
    assert.deepStrictEqual(JsonRpc.success(1, undefined), { jsonrpc: "2.0", id: 1, result: null })
    assert.deepStrictEqual(JsonRpc.success("a", { ok: true }), { jsonrpc: "2.0", id: "a", result: { ok: true } })
  })

  it("that is undefined is no data member of an error, and any other is one", () => {
    assert.deepStrictEqual(
      JsonRpc.failure(1, { code: -32601, message: "Method not found", data: undefined }),
      { jsonrpc: "2.0", id: 1, error: { code: -32601, message: "Method not found" } }
    )
    for (const data of [null, 0, "", "not-json", { at: 1 }]) {
      assert.deepStrictEqual(
        JsonRpc.failure(null, { code: -32700, message: "Parse error", data }),
        { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error", data } }
      )
    }
  })

  it("is an id where it is a string or a safe integer, and null otherwise", () => {
    const ids = ["abc", "", 7, 0, -1, Number.MAX_SAFE_INTEGER]
    assert.deepStrictEqual(ids.map(JsonRpc.idFrom), ids)
    for (const none of [null, undefined, true, {}, [], 1.5, Number.NaN, Infinity, 2 ** 53, 1n, Symbol("id")]) {
      assert.isNull(JsonRpc.idFrom(none))
    }
  })

  it("that was thrown has a message, whatever it is", () => {
    const unreadable = {
      get message() {
        throw new Error("no")
      }
    }
    const messages: ReadonlyArray<readonly [unknown, string]> = [
      [new Error("boom"), "boom"],
      [new TypeError(""), "TypeError"],
      [{ message: "from elsewhere" }, "from elsewhere"],
      ["plain", "plain"],
      [42, "42"],
      [null, "null"],
      [undefined, "undefined"],
      [Object.create(null), "unknown error"],
      [unreadable, "unknown error"]
    ]
    assert.deepStrictEqual(messages.map(([thrown]) => JsonRpc.messageFrom(thrown)), messages.map(([, said]) => said))
  })
})

describe("a message", () => {
  const body = JSON.stringify(success(1, { text: "é😀" }))

  it("is written as before, byte for byte, and its length counts bytes", () => {
    const write = (framing: Framing.Kind, message: string) =>
      text(Framing.encode([Framing.frameOfText(message, framing)]))
    assert.strictEqual(write("line", body), `${body}\n`)
    assert.strictEqual(
      write("content-length", JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} })),
      "Content-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
    )
    // é has two bytes, 😀 four
    assert.strictEqual(write("content-length", body), `Content-Length: ${body.length + 3}\r\n\r\n${body}`)
  })

  it("has text where there is text for it, and a value that says so where there is none", () => {
    const cycle: Array<unknown> = []
    cycle.push(cycle)
    assert.deepStrictEqual(JsonRpc.stringify({ a: 1 }), Result.succeed("{\"a\":1}"))
    assert.instanceOf(Result.getOrElse(JsonRpc.stringify(cycle), (error) => error), JsonRpc.NotSerializable)
  })

  it("has the framing in which to answer it, each its own", () => {
    assert.deepStrictEqual(decodeAll(undefined, `{"a":1}\n${counted("{\"b\":2}")}oops\n${counted("{}")}`), [
      { framing: "line", text: "{\"a\":1}" },
      { framing: "content-length", text: "{\"b\":2}" },
      { framing: "line", text: "oops" },
      { framing: "content-length", text: "{}" }
    ])
  })

  it("is read behind a byte order mark, other headers, and headers that end in LF alone", () => {
    const length = bytes(body).length
    const input = `\ufeff${body}\nContent-Type: x\r\nContent-Length: ${length}\r\n\r\n${body}`
      + `Content-Length: ${length}\n\n${body}`
    assert.deepStrictEqual(decodeAll(undefined, input), [
      { framing: "line", text: body },
      { framing: "content-length", text: body },
      { framing: "content-length", text: body }
    ])
  })

  it("that is not UTF-8, or longer than the limit, is a fault", () => {
    const [badUtf8] = decodeRaw(bytes([0x22, 0xff, 0x22, 0x0a]))
    assert.strictEqual(badUtf8, "InvalidUtf8")
    const long = JSON.stringify("x".repeat(100))
    assert.deepStrictEqual(decodeRaw(`${long}\n{}\n`, { maxFrameBytes: 50 }), ["TooLarge", {}])
    assert.strictEqual(Framing.defaultMaxFrameBytes, 32 * 1024 * 1024)
  })

  it("that is no JSON is described without a word of it", () => {
    const described = Result.getOrElse(JsonRpc.parse("hunter2"), (error) => error.message)
    assert.strictEqual(described, "Parse error: the frame is not valid JSON")
  })

  /** The value of each item, or the reason of its fault. */
  const decodeRaw = (input: string | Uint8Array, options?: Framing.DecodeOptions) => {
    const items: Array<Framing.Item> = []
    Framing.makeDecoder(options).push(bytes(input), items)
    return items.map((item) => {
      const read = item._tag === "Fault" ? Result.fail(item) : Result.flatMap(Framing.text(item), JsonRpc.parse)
      return Result.getOrElse(read, ({ reason }): unknown => reason)
    })
  }
})

/** A handler as servers had them: from the whole message to the whole response. */
const handler: Shim.Config["handler"] = async (message) => {
  if (!JsonRpc.isRequest(message)) return undefined
  switch (message.method) {
    case "echo":
      return JsonRpc.success(message.id, message.params)
    case "silent":
      return undefined
    case "nothing":
      return JsonRpc.success(message.id, undefined)
    case "crash":
      throw new Error("boom")
    case "never":
      return new Promise(() => {})
    default:
      return JsonRpc.failure(message.id, { code: -32601, message: "Method not found" })
  }
}

/** Starts the server of the shim on a transport whose other end is the test. */
const start = Effect.fnUntraced(function*(config?: Partial<Shim.Config>) {
  const scope = yield* Scope.make()
  const wire = yield* Scope.provide(TestKit.make(), scope)
  const log: Array<object> = []
  const fiber = yield* Shim.serve({ handler, log: (event, fields) => log.push({ event, ...fields }), ...config }).pipe(
    Effect.provideService(Transport.Transport, wire.transport),
    Effect.forkScoped
  )
  // before the server, which does not wait for anybody then
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  yield* TestClock.adjust(0)
  return {
    ...wire,
    log,
    reason: Fiber.join(fiber),
    hasEnded: Effect.andThen(wire.settled, Effect.sync(() => fiber.pollUnsafe() !== undefined))
  }
})

describe("a server with the handler it had", () => {
  it.effect("answers what the handler answers, each in the framing of its request", () =>
    Effect.gen(function*() {
      const server = yield* start()
      const request = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "echo", params: { text: "é" } })
      yield* server.feed(`{"jsonrpc":"2.0","id":1,"method":"unknown"}\n${counted(request)}`)
      yield* server.settled
      assert.strictEqual(
        yield* server.sentText,
        `${JSON.stringify(failure(1, -32601, "Method not found"))}\n`
          + counted(JSON.stringify(success(2, { text: "é" })))
      )
    }))

  it.effect("writes no reply when the handler returns nothing, and null when its result is undefined", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive({ id: 1, method: "silent" }, { method: "note" }, { id: 2, method: "nothing" })
      yield* server.expectSent(success(2, null))
    }))

  it.effect("never answers a notification, whatever its handler does", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const server = yield* start({
        handler: async ({ method }) => {
          seen.push(method)
          if (method === "crash") throw new Error("boom")
          return JsonRpc.success(1, method)
        }
      })
      yield* server.receive({ method: "note" }, { method: "crash" }, { method: "note" })
      yield* server.expectSent()
      assert.deepStrictEqual(seen, ["note", "crash", "note"])
    }))

  it.effect("answers -32603 for a handler that died, tells who asked to hear of it, and goes on", () =>
    Effect.gen(function*() {
      const errors: Array<unknown> = []
      const log = makeLog()
      const server = yield* Effect.provide(start({ onHandlerError: (error) => errors.push(error) }), log.layer)
      yield* server.receive({ id: 1, method: "crash" }, { id: 2, method: "echo", params: [] })
      yield* server.expectSent(failure(1, -32603, "Internal error"), success(2, []))
      assert.deepStrictEqual(errors.map(String), ["Error: boom"])
      assert.match(log.lines.join("\n"), /the handler of crash died.*boom/)
    }))

  it.effect("answers -32603 for a result that cannot be written as JSON, and goes on", () =>
    Effect.gen(function*() {
      const cycle: Array<unknown> = []
      cycle.push(cycle)
      const server = yield* start({
        handler: async (message) => JsonRpc.isRequest(message) ? JsonRpc.success(message.id, cycle) : undefined
      })
      yield* server.receive({ id: 1, method: "x" }, { id: 2, method: "x" })
      const message = "The result cannot be written as JSON"
      yield* server.expectSent(failure(1, -32603, message), failure(2, -32603, message))
    }))

  it.effect("handles one request after the other, in the order of their arrival", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const server = yield* start({
        handler: async (message) => {
          const id = JsonRpc.isRequest(message) ? message.id : 0
          order.push(`${id} begins`)
          for (let turn = 0; turn < (id === 1 ? 20 : 0); turn++) await Promise.resolve()
          order.push(`${id} ends`)
          return JsonRpc.success(id, null)
        }
      })
      yield* server.receive({ id: 1, method: "x" }, { id: 2, method: "x" })
      yield* server.expectSent(success(1, null), success(2, null))
      assert.deepStrictEqual(order, ["1 begins", "1 ends", "2 begins", "2 ends"])
    }))

  it.effect("answers all of many requests that wait for one another", () =>
    Effect.gen(function*() {
      const server = yield* start()
      const ids = Array.from({ length: 3_000 }, (_, id) => id)
      yield* server.receive(...ids.map((id) => ({ id, method: "echo", params: [id] })))
      yield* server.endInput
      yield* server.reason
      assert.deepStrictEqual(yield* server.sent, ids.map((id) => success(id, [id])))
    }))

  it.effect("tells its log each event by its name and fields", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive({ id: 7, method: "echo", params: [] }, { method: "note" }, { id: "7", method: "unknown" })
      yield* server.feed("oops\n")
      yield* server.settled
      yield* server.endInput
      yield* server.reason
      const [bad] = server.log.filter((entry) => "reason" in entry && entry.reason === "InvalidJson")
      assert.deepStrictEqual(bad, {
        event: "BadInput",
        reason: "InvalidJson",
        message: "Parse error: the frame is not valid JSON"
      })
      assert.deepStrictEqual(server.log.filter((entry) => entry !== bad), [
        { event: "Started", cwd: process.cwd(), idleTimeout: 600_000 },
        { event: "Request", id: 7, method: "echo" },
        { event: "Request", id: "7", method: "unknown" },
        { event: "Response", id: 7, method: "echo", isError: false },
        { event: "Response", id: "7", method: "unknown", isError: true },
        { event: "Stopped", reason: { _tag: "InputEnded" } }
      ])
    }))

  it.effect("ends without an error when its output breaks, and says so", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.breakOutput()
      yield* server.receive({ id: 1, method: "echo", params: [] })
      yield* server.settled
      assert.deepStrictEqual(yield* server.reason, { _tag: "OutputClosed", code: "EPIPE" })
      assert.deepInclude(server.log, {
        event: "OutputError",
        reason: "OutputClosed",
        message: "the other side does not read any more (EPIPE)"
      })
    }))
})

describe("input that is no message", () => {
  const malformed = "oops\n{\"jsonrpc\":\"2.0\",\"method\":5}\n5\n"
  const valid = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[]}\n"

  it.effect("is answered -32700 or -32600, and its neighbours are served", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.feed(malformed + valid)
      yield* server.expectSent(
        failure(null, -32700, "Parse error: the frame is not valid JSON"),
        failure(null, -32600, "Invalid request: method must be a string"),
        failure(
          null,
          -32600,
          "Invalid request: not a JSON-RPC message (an object with a method, a result or an error)"
        ),
        success(1, [])
      )
    }))

  it.effect("may be answered with nothing where it is no JSON, as all else is answered", () =>
    Effect.gen(function*() {
      const messages: Array<string> = []
      const server = yield* start({
        parseErrorResponse: (message) => {
          messages.push(message)
          return undefined
        }
      })
      yield* server.feed(`oops\n{"jsonrpc":"2.0","method":5}\n${valid}`)
      yield* server.expectSent(failure(null, -32600, "Invalid request: method must be a string"), success(1, []))
      assert.deepStrictEqual(messages, ["Parse error: the frame is not valid JSON"])
    }))

  it.effect("may be answered with another error, in the framing it came in", () =>
    Effect.gen(function*() {
      const error = { code: -32601, message: "Method not found", data: ["try again"] }
      const server = yield* start({ parseErrorResponse: () => JsonRpc.failure(null, error) })
      yield* server.feed(counted("oops"))
      yield* server.settled
      assert.strictEqual(yield* server.sentText, counted(JSON.stringify({ jsonrpc: "2.0", id: null, error })))
    }))

  it.effect("is a batch where it is an array, and lacks its version where that is missing", () =>
    Effect.gen(function*() {
      const server = yield* start()
      yield* server.receive([{ jsonrpc: "2.0", id: 1, method: "echo", params: [] }])
      yield* server.settled
      yield* server.feed("{\"id\":2,\"method\":\"echo\"}\n")
      yield* server.expectSent([success(1, [])], failure(2, -32600, "Invalid request: jsonrpc must be \"2.0\""))
    }))
})

describe("the idle time", () => {
  it.effect("is ten minutes when nothing is said, and what was asked for then runs", () =>
    Effect.gen(function*() {
      let idle = 0
      const server = yield* start({ onIdleTimeout: () => idle++ })
      yield* TestClock.adjust("599999 millis")
      assert.deepStrictEqual([yield* server.hasEnded, idle], [false, 0])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* server.reason, { _tag: "IdleTimeout" })
      assert.strictEqual(idle, 1)
      assert.deepInclude(server.log, { event: "IdleTimeout", idleTimeout: 600_000 })
    }))

  it.effect.each([0, -1])("of %d is off", (idleTimeoutMs) =>
    Effect.gen(function*() {
      const server = yield* start({ idleTimeoutMs })
      yield* TestClock.adjust("30 days")
      assert.isFalse(yield* server.hasEnded)
    }))

  it.effect("begins anew with a message, and does not pass while a handler runs", () =>
    Effect.gen(function*() {
      const server = yield* start({ idleTimeoutMs: 60_000 })
      yield* TestClock.adjust("59 seconds")
      yield* server.receive({ id: 1, method: "echo", params: [] })
      yield* server.settled
      yield* TestClock.adjust("59 seconds")
      assert.isFalse(yield* server.hasEnded)
      yield* server.receive({ id: 2, method: "never" })
      yield* server.settled
      yield* TestClock.adjust("1 hour")
      assert.isFalse(yield* server.hasEnded)
    }))
})

describe("the parent", () => {
  /** A probe whose answer can be changed, and what it was asked. */
  const makeProbe = () => {
    const state = { alive: true, asked: new Array<number>() }
    const probeAlive = (pid: number) => {
      state.asked.push(pid)
      return state.alive
    }
    return { state, probeAlive }
  }

  it.effect("is the process that was chosen, looked at as often as was chosen; each look is told with what was seen", () =>
    Effect.gen(function*() {
      const { probeAlive, state } = makeProbe()
      const told: Array<string> = []
      const server = yield* start({
        idleTimeoutMs: 0,
        parentWatchdog: {
          parentPid: 4242,
          pollIntervalMs: 5_000,
          probeAlive,
          onPoll: (isAlive) => told.push(isAlive ? "alive" : "gone")
        },
        onParentExit: () => told.push("exit")
      })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([yield* server.hasEnded, told], [false, ["alive", "alive"]])
      state.alive = false
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.reason, { _tag: "ParentExited", pid: 4242, why: "no such process" })
      assert.deepStrictEqual(told, ["alive", "alive", "gone", "exit"])
      // once at the start, so that a parent that was never there ends nothing
      assert.deepStrictEqual(state.asked, [4242, 4242, 4242, 4242])
      assert.deepInclude(server.log, { event: "ParentExit", pid: 4242, why: "no such process" })
    }))

  it.effect("is looked at every 30 seconds when nothing is said", () =>
    Effect.gen(function*() {
      const { probeAlive, state } = makeProbe()
      const server = yield* start({ parentWatchdog: { parentPid: 4242, probeAlive } })
      state.alive = false
      yield* TestClock.adjust("29999 millis")
      assert.isFalse(yield* server.hasEnded)
      yield* TestClock.adjust("1 millis")
      assert.isTrue(yield* server.hasEnded)
    }))

  it.effect.each([undefined, { pollIntervalMs: 0 }])(
    "is not looked at when the watch is off: %j",
    (options) =>
      Effect.gen(function*() {
        const { probeAlive, state } = makeProbe()
        const parentWatchdog = options === undefined
          ? {}
          : { parentWatchdog: { ...options, parentPid: 42, probeAlive } }
        const server = yield* start({ idleTimeoutMs: 0, ...parentWatchdog })
        state.alive = false
        yield* TestClock.adjust("1 day")
        assert.deepStrictEqual([yield* server.hasEnded, state.asked], [false, []])
      })
  )

  it.effect("has a probe that never ends the server by throwing, and is watched on", () =>
    Effect.gen(function*() {
      let alive: boolean | undefined = true
      const probeAlive = () => {
        if (alive === undefined) throw new Error("not permitted")
        return alive
      }
      const server = yield* start({ idleTimeoutMs: 0, parentWatchdog: { parentPid: 4242, probeAlive } })
      alive = undefined
      yield* TestClock.adjust("5 minutes")
      yield* server.receive({ id: 1, method: "echo", params: [] })
      yield* server.expectSent(success(1, []))
      assert.isFalse(yield* server.hasEnded)
      alive = false
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* server.reason)._tag, "ParentExited")
    }))
})

describe("two streams of Node", () => {
  it.live("are served, and have no listener left when the server has ended", () =>
    Effect.gen(function*() {
      const [input, output] = [new PassThrough(), new PassThrough()]
      const written: Array<Buffer> = []
      output.on("data", (chunk: Buffer) => written.push(chunk))
      const listeners = () => output.eventNames().map((name) => [name, output.listenerCount(name)])
      const before = listeners()
      const requests = Array.from({ length: 50 }, (_, id) => ({ jsonrpc: "2.0", id, method: "echo", params: [id] }))
      input.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(""))
      const reason = yield* Effect.provide(Shim.serve({ handler }), Shim.layerStreams(input, output))
      assert.deepStrictEqual(reason, { _tag: "InputEnded" })
      assert.strictEqual(
        Buffer.concat(written).toString(),
        requests.map(({ id }) => `${JSON.stringify(success(id, [id]))}\n`).join("")
      )
      assert.deepStrictEqual(listeners(), before)
      assert.isFalse(output.writableEnded)
    }))

  it.live("have none left when the one that is written to broke", () =>
    Effect.gen(function*() {
      const [input, output] = [new PassThrough(), new PassThrough()]
      output.on("error", () => {})
      const before = output.listenerCount("error")
      output.destroy(Object.assign(new Error("broken"), { code: "EPIPE" }))
      input.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n")
      const reason = yield* Effect.provide(Shim.serve({ handler }), Shim.layerStreams(input, output))
      assert.strictEqual(reason._tag, "OutputClosed")
      assert.strictEqual(output.listenerCount("error"), before)
    }))
})

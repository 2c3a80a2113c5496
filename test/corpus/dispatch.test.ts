/**
 * Failures that were reported against other programs, replayed: which request is answered, how, and how often. Each
 * name starts with the number of the report.
 */
import { assert, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const ping = Router.rawRequest(Router.empty, "ping", () => Effect.succeed({}))

/** A peer whose other end is the test, one message a line. */
const connect = Effect.fnUntraced(function*<R = never>(options?: Peer.Options<R>) {
  const wire = yield* TestKit.make({ framing: "line" })
  const peer = yield* Peer.make<R>(wire.transport, options)
  return { ...wire, peer }
})

/** Feeds these lines and returns the text that was sent. */
const sentFor = <R>(options: Peer.Options<R>, ...lines: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const connection = yield* connect(options)
    yield* connection.feed(lines.map((line) => `${line}\n`).join(""))
    yield* connection.settled
    return yield* connection.sentText
  })

const success = (id: string, result = "{}") => `{"jsonrpc":"2.0","id":${id},"result":${result}}\n`
const failure = (id: string, code: number, message: string) =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":${JSON.stringify(message)}}}\n`

const wrongId = failure(
  "null",
  -32600,
  "Invalid request: id must be a string or an integer between -(2^53 - 1) and 2^53 - 1"
)
const wrongVersion = (id: string) => failure(id, -32600, "Invalid request: jsonrpc must be \"2.0\"")
const cancelled = (requestId: unknown) => ({
  method: "notifications/cancelled",
  params: { requestId, reason: "x" }
})

it.effect("F75 refuses ids that it cannot echo exactly", () =>
  Effect.gen(function*() {
    const text = yield* sentFor(
      { router: ping },
      "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}",
      "{\"jsonrpc\":\"2.0\",\"id\":3.14,\"method\":\"ping\"}"
    )
    assert.strictEqual(text, wrongId + wrongId)
  }))

it.effect.each(["2147483648", "1501691352102"])(
  "F76 echoes the id %s, which has more than 32 bits",
  (id) =>
    Effect.gen(function*() {
      const text = yield* sentFor({ router: ping }, `{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
      assert.strictEqual(text, success(id))
    })
)

it.effect("F77 matches a response whose id is another spelling of the number, and answers in the integer form", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: ping })
    const call = yield* Effect.forkChild(connection.peer.call("m"), { startImmediately: true })
    yield* connection.feed("{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":\"yes\"}\n")
    assert.strictEqual(yield* Fiber.join(call), "yes")
    assert.strictEqual(
      yield* sentFor({ router: ping }, "{\"jsonrpc\":\"2.0\",\"id\":1e2,\"method\":\"ping\"}"),
      success("100")
    )
  }))

it.effect.each(["\"1\"", "\"init-1\"", "\"\"", "\"0\""])(
  "F78 keeps the type and text of the id %s",
  (id) =>
    Effect.gen(function*() {
      const text = yield* sentFor({ router: ping }, `{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
      assert.strictEqual(text, success(id))
    })
)

it.effect("F80 echoes the id of each request, 0 and -1 included", () =>
  Effect.gen(function*() {
    const ids = ["42", "\"abc\"", "0", "-1"]
    const text = yield* sentFor({ router: ping }, ...ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`))
    assert.strictEqual(text, ids.map((id) => success(id)).join(""))
  }))

it.effect("F81 answers a fractional id with one error and goes on", () =>
  Effect.gen(function*() {
    const text = yield* sentFor(
      { router: ping },
      "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"nope\"}",
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"
    )
    assert.strictEqual(text, wrongId + success("2"))
  }))

const slowAndFast = Router.empty.pipe(
  Router.rawRequest("slow", () => Effect.as(Effect.sleep("1 second"), "slow")),
  Router.rawRequest("fast", () => Effect.succeed("fast"))
)

it.effect("F83 refuses a second request with the id of one in flight, which is not affected", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: slowAndFast })
    yield* connection.receive({ id: 1, method: "slow" }, { id: 1, method: "fast" })
    yield* TestClock.adjust("1 second")
    assert.strictEqual(
      yield* connection.sentText,
      failure("1", -32600, "Invalid request: a request with this id is in flight") + success("1", "\"slow\"")
    )
  }))

it.effect("F83 serves both in order where that is asked for", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: slowAndFast, duplicateIds: "serve" })
    yield* connection.receive({ id: 1, method: "slow" }, { id: 1, method: "fast" })
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* connection.sentText, success("1", "\"slow\"") + success("1", "\"fast\""))
  }))

it.effect("F85 answers a ping while a slow request runs", () =>
  Effect.gen(function*() {
    const router = Router.rawRequest(ping, "sleep30s", () => Effect.as(Effect.sleep("30 seconds"), {}))
    const connection = yield* connect({ router })
    yield* connection.receive({ id: 1, method: "sleep30s" }, { id: 2, method: "ping" })
    yield* connection.settled
    assert.strictEqual(yield* connection.sentText, success("2"))
    yield* TestClock.adjust("30 seconds")
    assert.strictEqual(yield* connection.sentText, success("2") + success("1"))
  }))

const roots = Router.rawRequest(ping, "tool", () =>
  Effect.gen(function*() {
    const caller = yield* Peer.Caller
    return yield* Effect.orDie(caller.call("roots/list", undefined, { timeout: "Infinity" }))
  }))

it.effect("F87 serves a handler that asks its client", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: roots })
    yield* connection.receive({ id: 1, method: "tool" })
    assert.deepStrictEqual(yield* connection.next, { jsonrpc: "2.0", id: 1, method: "roots/list" })
    yield* connection.receive({ id: 1, result: ["root"] })
    assert.deepStrictEqual(yield* connection.next, { jsonrpc: "2.0", id: 1, result: ["root"] })
  }))

it.effect("F87 makes only that call wait where the client is mute", () =>
  Effect.gen(function*() {
    const mute = yield* connect({ router: roots })
    const other = yield* connect({ router: roots })
    yield* mute.receive({ id: 1, method: "tool" }, { id: 2, method: "ping" })
    yield* other.receive({ id: 1, method: "ping" })
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual(yield* mute.sent, [
      { jsonrpc: "2.0", id: 1, method: "roots/list" },
      { jsonrpc: "2.0", id: 2, result: {} }
    ])
    assert.deepStrictEqual(yield* other.sent, [{ jsonrpc: "2.0", id: 1, result: {} }])
  }))

it.effect.each<readonly [name: string, cancellation: Cancellation.Cancellation, text: string]>([
  [
    "MCP",
    Cancellation.mcp,
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n"
  ],
  ["LSP", Cancellation.lsp, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}}\n"]
])(
  "F89 tells the other side once when a caller is interrupted: %s",
  ([_, cancellation, text]) =>
    Effect.gen(function*() {
      const connection = yield* connect({ cancellation })
      const call = yield* Effect.forkChild(connection.peer.call("m"), { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      yield* Fiber.interrupt(call)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* connection.sentText, `{"jsonrpc":"2.0","id":1,"method":"m"}\n${text}`)
    })
)

it.effect("F90 settles a cancelled call at once and ignores a late reply", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ cancellation: Cancellation.mcp })
    const call = yield* Effect.forkChild(connection.peer.call("m"), { startImmediately: true })
    yield* connection.settled
    call.interruptUnsafe()
    yield* connection.settled
    const exit = call.pollUnsafe()
    assert.isTrue(exit !== undefined && Exit.hasInterrupts(exit))
    yield* connection.receive({ id: 1, result: "late" })
    yield* connection.settled
    assert.deepStrictEqual(yield* connection.peer.inFlight, { requests: [], calls: [] })
    assert.strictEqual((yield* connection.peer.stats).strayResponses, 1)
  }))

it.effect("F91 sends nothing for a cancelled request in MCP", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: slowAndFast, cancellation: Cancellation.mcp })
    yield* connection.receive({ id: 5, method: "slow" })
    yield* connection.settled
    yield* connection.receive(cancelled(5))
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* connection.sentText, "")
  }))

it.effect("F91 sends one -32800 for a cancelled request in LSP", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: slowAndFast, cancellation: Cancellation.lsp })
    yield* connection.receive({ id: 5, method: "slow" })
    yield* connection.settled
    yield* connection.receive({ method: "$/cancelRequest", params: { id: 5 } })
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* connection.sentText, failure("5", -32800, "Request cancelled"))
  }))

it.effect.each<readonly [name: string, params: unknown]>([
  ["an unknown request", { requestId: 999 }],
  ["no request", undefined],
  ["nothing", {}],
  ["the id as text", { requestId: "6" }],
  ["initialize", { requestId: 0 }]
])("F93 ignores a cancellation of %s", ([_, params]) =>
  Effect.gen(function*() {
    const slow = () => Effect.as(Effect.sleep("1 second"), {})
    const router = Router.empty.pipe(Router.rawRequest("initialize", slow), Router.rawRequest("slow", slow))
    const connection = yield* connect({ router, cancellation: Cancellation.mcp })
    yield* connection.receive({ id: 0, method: "initialize" }, { id: 6, method: "slow" })
    yield* connection.settled
    yield* connection.receive({ method: "notifications/cancelled", params })
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* connection.sentText, success("0") + success("6"))
  }))

it.effect("F94 neither answers a cancellation nor dies of it", () =>
  Effect.gen(function*() {
    for (const cancellation of [Cancellation.mcp, Cancellation.lsp, Cancellation.none]) {
      const text = yield* sentFor(
        { router: ping, cancellation },
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1,\"reason\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
      )
      assert.strictEqual(text, success("1"))
    }
  }))

it.effect("F95 writes nothing for notifications, known, unknown or failing", () =>
  Effect.gen(function*() {
    const router = Router.empty.pipe(
      Router.notification("notifications/initialized", Schema.Struct({}), () => Effect.void),
      Router.notification("fails", Schema.Struct({}), () => Effect.die(new Error("it does"))),
      Router.rawRequest("known", () => Effect.fail(JsonRpc.JsonRpcError.internal()))
    )
    const text = yield* sentFor(
      { router },
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
      "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}",
      "{\"jsonrpc\":\"2.0\",\"method\":\"fails\"}",
      "{\"jsonrpc\":\"2.0\",\"method\":\"known\"}"
    ).pipe(Effect.provide(Logger.layer([])))
    assert.strictEqual(text, "")
  }))

it.effect.each(["toString", "constructor", "__proto__", "hasOwnProperty"])(
  "F99 does not know the inherited method %s",
  (method) =>
    Effect.gen(function*() {
      const text = yield* sentFor({ router: ping }, `{"jsonrpc":"2.0","id":1,"method":"${method}"}`)
      assert.strictEqual(text, failure("1", -32601, `Method not found: ${method}`))
    })
)

it.effect.each<readonly [result: unknown, json: string]>([
  [undefined, "null"],
  [() => 1, "null"],
  [Symbol("s"), "null"],
  [0, "0"],
  [false, "false"],
  ["", "\"\""]
])("F100 always writes a result: %s", ([result, json]) =>
  Effect.gen(function*() {
    const router = Router.rawRequest(Router.empty, "give", () => Effect.succeed(result))
    const text = yield* sentFor({ router }, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"give\"}")
    assert.strictEqual(text, success("1", json))
  }))

it.effect.each([
  "{\"jsonrpc\":\"2.0\",\"id\":1}",
  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
  "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"x\"}}"
])("F101 fails the call of a response that is none: %s", (line) =>
  Effect.gen(function*() {
    const connection = yield* connect()
    const call = yield* Effect.forkChild(Effect.result(connection.peer.call("m")), { startImmediately: true })
    yield* connection.feed(`${line}\n`)
    const result = yield* Fiber.join(call)
    const error = Result.isFailure(result) ? result.failure : undefined
    assert.strictEqual(error?._tag === "PeerError" ? error.reason._tag : undefined, "DecodeFailure")
  }))

it.effect("F101 accepts an error of null beside a result", () =>
  Effect.gen(function*() {
    const connection = yield* connect()
    const call = yield* Effect.forkChild(connection.peer.call("m"), { startImmediately: true })
    yield* connection.feed("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":null}\n")
    assert.strictEqual(yield* Fiber.join(call), 1)
  }))

it.effect("F102 answers a result that cannot be written with -32603, and the other calls as ever", () =>
  Effect.gen(function*() {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const results = [
      cycle,
      1n,
      {
        toJSON: () => {
          throw new Error("toJSON")
        }
      },
      {
        get a() {
          throw new Error("getter")
        }
      },
      "fine"
    ]
    const router = Router.rawRequest(Router.empty, "give", (_, { id }) => Effect.succeed(results[Number(id)]))
    const text = yield* sentFor(
      { router },
      ...results.map((_, id) => `{"jsonrpc":"2.0","id":${id},"method":"give"}`)
    )
    const message = "The result cannot be written as JSON"
    assert.strictEqual(
      text,
      [0, 1, 2, 3].map((id) => failure(String(id), -32603, message)).join("") + success("4", "\"fine\"")
    )
  }))

it.effect("F104 passes on code, message and data of a handler's error", () =>
  Effect.gen(function*() {
    const error = new JsonRpc.JsonRpcError({ code: -32063, message: "try later", data: { retry: 1 } })
    const router = Router.rawRequest(Router.empty, "fail", () => Effect.fail(error))
    const text = yield* sentFor({ router }, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fail\"}")
    assert.strictEqual(
      text,
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32063,\"message\":\"try later\",\"data\":{\"retry\":1}}}\n"
    )
  }))

it.effect("F106 reports a missing argument as -32602, not as an internal error", () =>
  Effect.gen(function*() {
    const router = Router.request(
      Router.empty,
      "tools/call",
      { params: Schema.Struct({ name: Schema.String }), result: Schema.Unknown },
      ({ name }) => Effect.fail(JsonRpc.JsonRpcError.invalidParams(`no tool ${name}`))
    )
    const text = yield* sentFor(
      { router },
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}",
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}"
    )
    assert.strictEqual(
      text,
      failure("1", -32602, "Invalid params: Missing key at [\"name\"]") +
        failure("2", -32602, "Invalid params: no tool x")
    )
  }))

it.effect("F107 echoes nesting of 200 levels and refuses more than 1,000, without harm", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const router = Router.rawRequest(ping, "echo", (params) => Effect.succeed(params))
    const line = (id: number, depth: number) =>
      `{"jsonrpc":"2.0","id":${id},"method":"echo","params":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`
    const text = yield* sentFor(
      { router },
      line(1, 200),
      line(2, 5_000),
      line(3, 200_000),
      "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}"
    ).pipe(Effect.provide(Logger.layer([
      Logger.make(({ cause, message }) => {
        lines.push(`${String(message)} ${Cause.pretty(cause)}`)
      })
    ])))
    const tooDeep = "Invalid request: nested deeper than 1000 levels"
    assert.strictEqual(
      text,
      success("1", `{"a":${"[".repeat(200)}${"]".repeat(200)}}`) + failure("2", -32600, tooDeep) +
        failure("3", -32600, tooDeep) + success("4")
    )
    assert.deepStrictEqual(lines, [])
  }))

it.effect("F108 answers an empty batch with one error and [1,2] with two", () =>
  Effect.gen(function*() {
    const notAMessage = failure(
      "null",
      -32600,
      "Invalid request: not a JSON-RPC message (an object with a method, a result or an error)"
    ).trim()
    assert.strictEqual(
      yield* sentFor({ router: ping }, "[]", "[1,2]"),
      `${failure("null", -32600, "Invalid request: an empty batch")}[${notAMessage},${notAMessage}]\n`
    )
  }))

it.effect("F109 writes nothing for a batch of notifications", () =>
  Effect.gen(function*() {
    const text = yield* sentFor(
      { router: Router.raw(() => Effect.succeed({}), () => Effect.void) },
      "[{\"jsonrpc\":\"2.0\",\"method\":\"n1\"},{\"jsonrpc\":\"2.0\",\"method\":\"n2\"}]"
    )
    assert.strictEqual(text, "")
  }))

it.effect("F112 answers valid JSON that is no message under its id", () =>
  Effect.gen(function*() {
    const lines = [
      "{\"id\":7,\"method\":\"ping\"}",
      "{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"ping\"}",
      "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":42}"
    ]
    const wrongMethod = failure("9", -32600, "Invalid request: method must be a string")
    assert.deepStrictEqual(
      [
        yield* sentFor({ router: ping }, ...lines),
        yield* sentFor({ router: ping, profile: "lenient" }, ...lines)
      ],
      [wrongVersion("7") + wrongVersion("8") + wrongMethod, success("7") + wrongVersion("8") + wrongMethod]
    )
  }))

it.effect("F114 neither answers a response nor lets it touch other calls", () =>
  Effect.gen(function*() {
    const connection = yield* connect({ router: ping })
    const call = yield* Effect.forkChild(connection.peer.call("m"), { startImmediately: true })
    yield* connection.feed(
      "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}\n" +
        "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n"
    )
    yield* connection.settled
    assert.isUndefined(call.pollUnsafe())
    assert.strictEqual((yield* connection.peer.stats).strayResponses, 2)
    yield* connection.receive({ id: 1, result: "mine" })
    assert.strictEqual(yield* Fiber.join(call), "mine")
    assert.strictEqual(yield* connection.sentText, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n")
  }))

/**
 * MCP servers as processes: what a server on Effect's own stdio layer gets wrong, one by one.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Child from "../utils/child.ts"
import type { Message } from "../utils/frames.ts"
import * as Os from "../utils/os.ts"

const ended = { code: 0, signal: null }
const MB = 1_000_000
const STACK_TRACE = /^\s+at /m

const FIXTURE = "test/fixtures/mcp-server.ts"
const HELLO = "examples/hello/mcp.ts"

const initialize = {
  id: "open",
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
}
const ping = (id: string | number) => ({ id, method: "ping" })
const tool = (id: string | number, name: string, args: object = {}) => ({
  id,
  method: "tools/call",
  params: { name, arguments: args }
})
const line = (message: object) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`

const pong = (id: string | number): Message => ({ jsonrpc: "2.0", id, result: {} })
const code = ({ error, id }: Message) => ({ id, code: error?.code })

/** Starts a server and opens a session. */
const session = (args: ReadonlyArray<string> = [], options?: Child.Options) =>
  Effect.tap(Child.node(FIXTURE, args, options), (child) =>
    Effect.andThen(
      child.send(initialize, { method: "notifications/initialized" }),
      child.reply("open")
    ))

/** What was answered after the session was opened. */
const answers = (child: Child.Child) => child.messages.filter(({ id }) => id !== "open")

/** Opens a subscription and returns when it is acknowledged. */
const listen = (child: Child.Child) =>
  Effect.andThen(
    child.send({
      id: "sub",
      method: "subscriptions/listen",
      params: {
        notifications: { toolsListChanged: true },
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {}
        }
      }
    }),
    child.until("the acknowledgement", () =>
      child.messages.find(({ method }) => method === "notifications/subscriptions/acknowledged"))
  )

const subscriptionEnded: Message = {
  jsonrpc: "2.0",
  id: "sub",
  result: { resultType: "complete", _meta: { "io.modelcontextprotocol/subscriptionId": "sub" } }
}

/** Milliseconds that something takes. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([time]) => Duration.toMillis(time))

describe("bad input", () => {
  it.live("between two requests in one chunk costs neither of them, and no time (F21)", () =>
    Effect.gen(function*() {
      const child = yield* session()
      const time = yield* timed(Effect.gen(function*() {
        yield* child.write(`${line(ping(1))}{"jsonrpc":"2.0","id":\n${line(ping(2))}`)
        yield* child.reply(2)
        yield* child.call("ping")
      }))
      assert.deepStrictEqual(answers(child).map(code), [
        { id: 1, code: undefined },
        { id: null, code: -32700 },
        { id: 2, code: undefined },
        { id: "call-1", code: undefined }
      ])
      // the pause that Effect's own reader makes
      assert.isBelow(time, 500)
    }))

  it.live("gets an error each, under its id where it has one, and ends nothing", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.write(
        [
          "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
          "{\"id\":1,\"method\":\"ping\"}",
          "{\"jsonrpc\":\"1.0\",\"id\":2,\"method\":\"ping\"}",
          "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":5}",
          "42",
          "\"s\"",
          "null",
          "{}",
          "[]",
          ""
        ].join("\n")
      )
      assert.deepStrictEqual(yield* child.call("ping"), pong("call-1"))
      assert.deepStrictEqual(answers(child).slice(0, -1).map(code), [
        ...Array.from({ length: 4 }, () => ({ id: null, code: -32600 })),
        { id: 1, code: -32600 },
        { id: 2, code: -32600 },
        { id: 3, code: -32600 },
        ...Array.from({ length: 5 }, () => ({ id: null, code: -32600 }))
      ])
    }))

  it.live("such as an id that is in flight does not end the first request, nor delay the next", () =>
    Effect.gen(function*() {
      const child = yield* session(["200"])
      yield* child.send(tool(1, "hang"))
      yield* child.event("Hanging")
      const time = yield* timed(Effect.gen(function*() {
        yield* child.send(ping(2), tool(1, "hang"), ping(3))
        yield* child.reply(3)
        yield* child.call("ping")
      }))
      assert.deepStrictEqual(answers(child).map(code), [
        { id: 2, code: undefined },
        { id: 1, code: -32600 },
        { id: 3, code: undefined },
        { id: "call-1", code: undefined }
      ])
      assert.isFalse(child.events.some(({ _tag }) => _tag === "Interrupted"))
      assert.isBelow(time, 500)
    }))

  it.live("such as a request before initialize, or a second initialize, is refused", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(HELLO)
      yield* child.send({ id: 1, method: "tools/list" }, ping(2))
      yield* child.reply(2)
      yield* child.send(initialize)
      yield* child.reply("open")
      yield* child.send({ ...initialize, id: 3 })
      assert.deepStrictEqual((yield* child.reply(1)).error, {
        code: -32600,
        message: "Invalid request: send initialize first"
      })
      assert.deepStrictEqual((yield* child.reply(3)).error, {
        code: -32600,
        message: "Invalid request: this connection is initialized already"
      })
      assert.deepStrictEqual(yield* child.call("ping"), pong("call-1"))
    }))
})

describe("a line", () => {
  for (const size of [4, 24]) {
    it.live(`of ${size} MB is answered (F16)`, () =>
      Effect.gen(function*() {
        const child = yield* session()
        yield* child.send(tool(1, "length", { text: "x".repeat(size * MB) }))
        assert.deepInclude((yield* child.reply(1)).result, { structuredContent: { length: size * MB } })
        assert.deepStrictEqual(yield* child.call("ping"), pong("call-1"))
      }))
  }

  it.live("of 50 MB gets one error under its id, and the next line its answer (F17)", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.send(tool(1, "length", { text: "x".repeat(50 * MB) }), ping(2))
      assert.deepStrictEqual(yield* child.reply(2), pong(2))
      assert.deepStrictEqual(answers(child).map(code), [{ id: 1, code: -32600 }, { id: 2, code: undefined }])
    }))
})

describe("a client that writes Content-Length headers", () => {
  it.live("is served in its framing (F28)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(HELLO)
      for (const message of [initialize, tool(1, "add", { a: 2, b: 3 })]) {
        const body = JSON.stringify({ jsonrpc: "2.0", ...message })
        yield* child.write(`Content-Length: ${body.length}\r\n\r\n${body}`)
        yield* child.reply(message.id)
      }
      assert.deepInclude((yield* child.reply(1)).result, { structuredContent: { sum: 5 } })
      assert.match(
        child.stdout().toString(),
        /^Content-Length: \d+\r\n\r\n\{[^\n]*\}Content-Length: \d+\r\n\r\n\{[^\n]*\}$/
      )
    }))
})

describe("standard output", () => {
  it.live("carries nothing of what a tool prints or logs; it is on standard error (F36)", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.send(tool(1, "print", { text: "a stray line" }))
      yield* child.reply(1)
      yield* child.until("all that was printed", () =>
        ["console", "write", "log", "error"].every((way) =>
          child.stderr().includes(`${way}: a stray line`)
        ) || undefined)
      assert.notInclude(child.stdout().toString(), "stray")
      assert.strictEqual(child.stdout().toString().split("\n").length, 3)
    }))

  it.live("carries nothing of why a tool died; it is on standard error", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.send(tool(1, "crash"))
      assert.deepInclude((yield* child.reply(1)).result, { isError: true })
      yield* child.until("the log", () => child.stderr().includes("the secret is 42") || undefined)
      assert.notInclude(child.stdout().toString(), "secret")
    }))
})

describe("the end of the input", () => {
  it.live("ends an idle server at once with 0, before and in a session", () =>
    Effect.gen(function*() {
      for (const child of [yield* session(), yield* Child.node(HELLO)]) {
        yield* child.call("ping")
        yield* child.endInput
        const [time, exit] = yield* Effect.timed(child.closed)
        assert.deepStrictEqual(exit, ended)
        assert.isBelow(Duration.toMillis(time), 500)
      }
    }))

  it.live("cuts off a tool that hangs when the time to drain is over (F52)", () =>
    Effect.gen(function*() {
      const child = yield* session(["300"])
      yield* child.send(tool(1, "hang"), ping(2))
      yield* child.event("Hanging")
      yield* child.endInput
      const [time, exit] = yield* Effect.timed(child.closed)
      assert.deepStrictEqual(exit, ended)
      assert.deepStrictEqual(answers(child), [
        pong(2),
        { jsonrpc: "2.0", id: 1, error: { code: -32603, message: "server stopping" } }
      ])
      assert.deepInclude(child.events, { _tag: "Interrupted" })
      assert.isAtLeast(Duration.toMillis(time), 250)
      assert.isBelow(Duration.toMillis(time), 1_500)
    }))

  it.live("cuts off a tool that cannot even be interrupted (F52)", () =>
    Effect.gen(function*() {
      const child = yield* session(["300"])
      yield* child.send(tool(1, "hold"))
      yield* child.event("Hanging")
      yield* child.endInput
      const [time, exit] = yield* Effect.timed(child.closed)
      assert.deepStrictEqual(exit, ended)
      assert.deepStrictEqual(answers(child).map(code), [{ id: 1, code: -32603 }])
      assert.isBelow(Duration.toMillis(time), 3_000)
    }))

  it.live("ends a last line that has no end of its own (F26)", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.write(line(ping(9)).trimEnd())
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(answers(child), [pong(9)])
    }))

  it.live("is answered for all that was sent before it, the session included (F50)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(FIXTURE)
      yield* child.send(initialize, tool(1, "big", { size: 500_000 }), ping(2))
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.sameMembers(child.messages.map(({ id }) => id), ["open", 1, 2])
    }))

  it.live("closes open subscriptions with their result, and ends the server at once", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(HELLO)
      yield* listen(child)
      yield* child.endInput
      const [time, exit] = yield* Effect.timed(child.closed)
      assert.deepStrictEqual(exit, ended)
      assert.isBelow(Duration.toMillis(time), 500)
      assert.deepStrictEqual(child.messages.slice(1), [subscriptionEnded])
    }))
})

describe("a host that does not read any more", () => {
  it.live("ends the server with 0 at the next write, although the input stays open", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.send(tool(1, "hang"))
      yield* child.event("Hanging")
      yield* child.destroy("stdout")
      yield* child.send(ping(2))
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepInclude(child.events, { _tag: "Interrupted" })
      assert.deepNestedInclude(child.events.at(-1), { _tag: "Stopped", "reason._tag": "OutputClosed" })
      assert.notMatch(child.stderr(), STACK_TRACE)
    }))

  const CALLS = 3_000

  it.live.runIf(Os.isLinux)(
    "for a while gets all replies in the end, and does not fill the memory meanwhile (F72)",
    () =>
      Effect.gen(function*() {
        const child = yield* session([], { keep: ({ id, jsonrpc }: Message) => ({ id, jsonrpc }) })
        const before = Os.memory(child.pid, "VmRSS")
        const count = (tag: string) => child.events.filter(({ _tag }) => _tag === tag).length - 1
        yield* child.stopReading("stdout")
        yield* child.send(...Array.from({ length: CALLS }, (_, id) => tool(id, "big", { size: 50_000 })))
        yield* child.until("all requests to be read", () => count("Request") === CALLS || undefined)
        // as many replies of 50 kB as fit into the 64 MiB that may wait to be written
        yield* child.until("the queue to be full", () => count("Response") >= 1_300 || undefined)
        assert.isBelow(Os.memory(child.pid, "VmHWM") - before, 350)
        yield* child.readOn
        yield* child.until("all replies", () => child.messages.length > CALLS || undefined)
        assert.sameMembers(
          answers(child).map(({ id }) => id),
          Array.from({ length: CALLS }, (_, id) => id)
        )
      })
  )
})

describe.concurrent("a signal", () => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    it.live(`${signal} ends an idle server with 0 (F55)`, () =>
      Effect.gen(function*() {
        const child = yield* session()
        yield* child.kill(signal)
        const [time, exit] = yield* Effect.timed(child.closed)
        assert.deepStrictEqual(exit, ended)
        assert.isBelow(Duration.toMillis(time), 1_000)
      }))

    it.live(`${signal} interrupts a tool that hangs, and ends in time (F55)`, () =>
      Effect.gen(function*() {
        const child = yield* session()
        yield* child.send(tool(1, "hang"))
        yield* child.event("Hanging")
        yield* child.kill(signal)
        const [time, exit] = yield* Effect.timed(child.closed)
        assert.deepStrictEqual(exit, ended)
        assert.deepStrictEqual(answers(child), [
          { jsonrpc: "2.0", id: 1, error: { code: -32603, message: "server stopping" } }
        ])
        assert.deepInclude(child.events, { _tag: "Interrupted" })
        assert.isBelow(Duration.toMillis(time), 1_900)
      }))
  }
})

describe("a signal in a session", () => {
  it.live("is heeded in time although a tool cannot be interrupted (F55)", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.send(tool(1, "hold"))
      yield* child.event("Hanging")
      yield* child.kill("SIGTERM")
      const [time, exit] = yield* Effect.timed(child.closed)
      // 143 when the 1.5 seconds were over first
      assert.include([0, 143], exit.code)
      assert.deepStrictEqual(answers(child).map(code), [{ id: 1, code: -32603 }])
      assert.isBelow(Duration.toMillis(time), 2_000)
    }))

  it.live("closes open subscriptions with their result, and ends the server at once", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(HELLO)
      yield* listen(child)
      yield* child.kill("SIGTERM")
      const [time, exit] = yield* Effect.timed(child.closed)
      assert.deepStrictEqual(exit, ended)
      assert.isBelow(Duration.toMillis(time), 500)
      assert.deepStrictEqual(child.messages.slice(1), [subscriptionEnded])
    }))
})

describe("a cancelled tool", () => {
  it.live("ends the program that it started, and is not answered (F184)", () =>
    Effect.gen(function*() {
      const child = yield* session()
      yield* child.send(tool(1, "spawn"))
      const { pid } = yield* child.event("Spawned")
      yield* child.send({ method: "notifications/cancelled", params: { requestId: 1 } })
      yield* Os.gone(Number(pid))
      assert.deepStrictEqual(yield* child.call("ping"), pong("call-1"))
      assert.deepStrictEqual(answers(child), [pong("call-1")])
    }))
})

Child.leavesNothingBehind()

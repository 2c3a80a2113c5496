/**
 * MCP servers as children: what a client hears when they die, print, or are no MCP servers.
 */
import { assert, describe, it } from "@effect/vitest"
import * as McpConnection from "effect-stdio/McpConnection"
import * as Process from "effect-stdio/Process"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { spawnSync } from "node:child_process"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

const PROBE = Child.path("examples/probe/mcp.ts")

/** Starts a program each time a connection needs one. */
const server = (...args: ReadonlyArray<string>) => {
  const pids: Array<number> = []
  const source = Effect.map(
    // only Node has scripts in a URL that come first
    Process.make(args[0] === "--import" ? process.execPath : Child.runtime, args, { env: { ...Child.environment } }),
    (child) => {
      pids.push(child.pid)
      return child.transport
    }
  )
  return { source, pids, last: () => pids.at(-1) ?? 0 }
}

/** Runs a program with something that it does first. */
const first = (script: string) => ["--import", `data:text/javascript,${encodeURIComponent(script)}`]

const legacy = [McpProtocol.v2025_11_25] as const
const options = { name: "test", version: "1.0.0", discoverTimeout: "20 seconds" } as const

const call = ({ client }: McpConnection.Connected, name: string, args: Record<string, string | number>) =>
  Effect.gen(function*() {
    const tool = (yield* client.listTools()).find((tool) => tool.name === name)
    assert.isDefined(tool)
    return yield* client.callTool({ tool, arguments: args })
  })

describe("a client of an MCP server that is a child", () => {
  it.live("hears with which code it left before there was a session, and what it said last", () =>
    Effect.gen(function*() {
      const { source } = server("-e", "console.error('no API key'); process.exit(3)")
      const { message, reason } = yield* Effect.flip(McpConnection.connect(source, options))
      assert.strictEqual(reason._tag, "TransportError")
      assert.match(message, /ended with code 3.*no API key/s)
    }))

  it.live("hears what it said last when it crashes in the midst of a call", () =>
    Effect.gen(function*() {
      const { last, source } = server(
        ...first("process.on('SIGUSR2', () => { console.error('out of cheese'); process.exit(1) })"),
        PROBE
      )
      const connected = yield* McpConnection.connect(source, options)
      const sleeping = yield* Effect.forkChild(call(connected, "sleep", { ms: 60_000 }), { startImmediately: true })
      yield* Stream.runHead(connected.connection.callTool({ name: "sleep", arguments: { ms: 60_000 } }))
      yield* Effect.sync(() => process.kill(last(), "SIGUSR2"))
      const { message, reason } = yield* Effect.flip(Fiber.join(sleeping))
      assert.strictEqual(reason._tag, "TransportError")
      assert.match(message, /tools\/call cannot be settled: the process .* ended with code 1.*out of cheese/s)
    }))

  it.live("has another one when the first was killed, and still hears of changes", () =>
    Effect.gen(function*() {
      const { last, pids, source } = server(PROBE)
      for (const protocols of [undefined, legacy] as const) {
        const before = pids.length
        const connected = yield* McpConnection.connect(source, {
          ...options,
          ...(protocols === undefined ? {} : { protocols })
        })
        const heard = yield* connected.connection.subscribe({ methods: ["notifications/tools/list_changed"] })
        yield* connected.connection.watch({ tools: true })
        assert.deepStrictEqual((yield* call(connected, "add", { a: 1, b: 2 })).structuredContent, { sum: 3 })
        const killed = last()
        const sleeping = yield* Effect.forkChild(call(connected, "sleep", { ms: 60_000 }), { startImmediately: true })
        yield* Stream.runHead(connected.connection.callTool({ name: "sleep", arguments: { ms: 60_000 } }))
        yield* Effect.sync(() => process.kill(killed, "SIGKILL"))
        assert.include((yield* Effect.flip(Fiber.join(sleeping))).message, "ended by SIGKILL")
        assert.deepStrictEqual((yield* call(connected, "add", { a: 2, b: 2 })).structuredContent, { sum: 4 })
        assert.strictEqual(pids.length, before + 2)
        yield* call(connected, "touch", { list: "tools" })
        assert.strictEqual((yield* Stream.runCollect(Stream.take(heard, 1))).length, 1)
      }
    }))

  it.live("does not notice that a supervised one was killed, but for the call that waited", () =>
    Effect.gen(function*() {
      const pids: Array<number> = []
      const start = Effect.tap(
        Process.make(Child.runtime, [PROBE], { env: { ...Child.environment } }),
        ({ pid }) =>
          Effect.sync(() => {
            pids.push(pid)
          })
      )
      const connected = yield* McpConnection.connect(McpConnection.supervised(start), options)
      yield* Effect.sync(() => process.kill(pids[0] ?? 0, "SIGKILL"))
      const again = Effect.retry(call(connected, "add", { a: 2, b: 2 }), { times: 1 })
      assert.deepStrictEqual((yield* again).structuredContent, { sum: 4 })
      assert.strictEqual(pids.length, 2)
    }))

  it.live("ends it with its scope", () =>
    Effect.gen(function*() {
      const { last, source } = server(PROBE)
      const scoped = Effect.scoped(Effect.asVoid(McpConnection.connect(source, options)))
      yield* scoped
      assert.isTrue(Os.isGone(last()))
    }))

  it.live("passes over what it prints before and between its messages", () =>
    Effect.gen(function*() {
      const { source } = server(
        ...first(
          "import fs from 'fs'; const say = (text) => fs.writeSync(1, text + '\\n'); say('Welcome!')"
            + "; setInterval(say, 5, 'tick').unref()"
        ),
        PROBE
      )
      const connected = yield* McpConnection.connect(source, options)
      yield* Effect.repeat(connected.client.listTools(), { times: 20 })
      const { badInput } = yield* Effect.flatMap(connected.connection.peer, (peer) => peer.stats)
      assert.isAbove(badInput, 0)
    }))

  it.live("hears that a program is no MCP server, with what it printed, and that a command does not exist", () =>
    Effect.gen(function*() {
      const { source } = server("-e", "console.log('Usage: thing <file>\\n'.repeat(9_999)); setInterval(() => {}, 1e6)")
      const { message, reason } = yield* Effect.flip(McpConnection.connect(source, options))
      assert.strictEqual(reason._tag, "ProtocolError")
      assert.include(message, "Usage: thing <file>")
      const missing = Effect.map(Process.make("no-such-mcp-server"), (child) => child.transport)
      const error = yield* Effect.flip(McpConnection.connect(missing, options))
      assert.strictEqual(error._tag, "ProcessError")
    }))
})

describe("docs/mcp-client.md", () => {
  it("has a client that follows a tool and hears its logs, and whose server leaves with it", () => {
    const { status, stdout } = spawnSync(Child.runtime, [Child.path("examples/docs/mcp-client.ts")], {
      encoding: "utf8",
      env: { ...process.env, ...Child.environment },
      timeout: 20_000
    })
    assert.strictEqual(status, 0)
    assert.deepStrictEqual(stdout.trimEnd().split("\n"), [
      "words speaks 2026-07-28: count_words",
      "1 of 2",
      "2 of 2",
      "{\"words\":3}",
      "log: {\"level\":\"info\",\"logger\":\"words\",\"data\":\"2 words so far\"}",
      "log: {\"level\":\"info\",\"logger\":\"words\",\"data\":\"3 words so far\"}"
    ])
  })
})

Child.leavesNothingBehind()

import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

const ended = { code: 0, signal: null }

const STACK_TRACE = /^\s+at /m

const initialize =
  "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n"
const sleeps = [1, 2, 3].map((id) => `{"jsonrpc":"2.0","id":${id},"method":"sleep","params":{"ms":200}}\n`).join("")

/** An open file in a folder of its own. */
const openFile = (folder: string, name: string, flags: "r" | "w") =>
  Effect.acquireRelease(
    Effect.sync(() => openSync(join(folder, name), flags)),
    (file) => Effect.sync(() => closeSync(file))
  )

describe("the end of the input", () => {
  it.live("lets what is in flight finish: all answers arrive, then exit code 0 (F50)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write(initialize + sleeps)
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(child.messages.map(({ id }) => id), [0, 1, 2, 3])
      for (const { result } of child.messages.slice(1)) assert.deepStrictEqual(result, { slept: 200 })
      assert.deepStrictEqual(child.events.at(-1), { _tag: "Stopped", reason: { _tag: "InputEnded" } })
    }))

  it.live("lets what is in flight finish from file to file (F50)", () =>
    Effect.gen(function*() {
      const folder = yield* Child.temporaryFolder
      writeFileSync(join(folder, "in.jsonl"), initialize + sleeps)
      const child = yield* Child.probe([], {
        stdin: yield* openFile(folder, "in.jsonl", "r"),
        stdout: yield* openFile(folder, "out.jsonl", "w")
      })
      assert.deepStrictEqual(yield* child.closed, ended)
      const lines = readFileSync(join(folder, "out.jsonl"), "utf8").split("\n")
      assert.strictEqual(lines.pop(), "")
      assert.deepStrictEqual(lines.map((line) => (JSON.parse(line) as { readonly id: unknown }).id), [0, 1, 2, 3])
    }))

  it.live("cuts off a call that never ends when the time to drain is over (F52)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe(["--drain", "300ms"])
      yield* child.send({ id: 1, method: "sleep", params: { ms: 600_000 } })
      yield* child.event("Request")
      yield* child.endInput
      const [time, exit] = yield* Effect.timed(child.closed)
      assert.deepStrictEqual(exit, ended)
      assert.deepStrictEqual(child.messages, [
        { jsonrpc: "2.0", id: 1, error: { code: -32603, message: "server stopping" } }
      ])
      assert.deepInclude(child.events, { _tag: "CutOff", requests: 1 })
      assert.isAtLeast(Duration.toMillis(time), 250)
    }))

  it.live("right after a reply of 500,000 bytes was asked for loses none of it (F13)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.send({ id: 1, method: "big", params: { bytes: 500_000 } })
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual((yield* child.reply(1)).result, "x".repeat(500_000))
    }))

  it.live("waits for a reader of the last reply that is slow (F13)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.stopReading("stdout")
      yield* child.send({ id: 1, method: "big", params: { bytes: 500_000 } })
      yield* child.endInput
      yield* child.event("Response")
      // nothing to wait for: this is how slow the reader is
      yield* Effect.sleep("1 second")
      yield* child.readOn
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual((yield* child.reply(1)).result, "x".repeat(500_000))
    }))

  it.live("does not wait for ever for a reader of the last reply that does not read", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe(["--drain", "300ms"])
      yield* child.stopReading("stdout")
      yield* child.send({ id: 1, method: "big", params: { bytes: 500_000 } })
      yield* child.endInput
      assert.deepStrictEqual(yield* child.exit, ended)
      yield* child.destroy("stdout")
    }))

  it.live("at the very start ends the server, whatever it does while starting (F43, F44, F45, F73)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("test/fixtures/busy-start.ts", [], { stdin: "ignore" })
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual(child.stderr(), "")
    }))

  it.live("ends a server whose program left a timer running (F44)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("test/fixtures/busy-start.ts")
      yield* child.call("ping")
      yield* child.endInput
      const [time, exit] = yield* Effect.timed(child.closed)
      assert.deepStrictEqual(exit, ended)
      assert.isBelow(Duration.toMillis(time), 1_000)
    }))

  it.live("is seen where there never was an input (F67)", () =>
    Effect.gen(function*() {
      const child = yield* Child.shell(`exec ${Child.commandLine([])} <&-`)
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(child.events.at(-1), { _tag: "Stopped", reason: { _tag: "InputEnded" } })
    }))

  it.live("is seen when the parent is killed in the moment it started the server (F62)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("test/fixtures/dies-after-spawn.ts", [
        Child.runtime,
        Child.path(Child.PROBE),
        "--events"
      ])
      const { server } = yield* child.event("Spawned")
      assert.deepStrictEqual(yield* child.exit, { code: null, signal: "SIGKILL" })
      yield* Os.gone(Number(server))
      yield* child.closed
      assert.deepStrictEqual(child.events.at(-1), { _tag: "Stopped", reason: { _tag: "InputEnded" } })
    }))
})

describe("a host that closes both pipes at once", () => {
  it.live("after its first request gets no crash: exit code 0, nothing on standard error (F49)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(Child.PROBE)
      yield* child.write(initialize)
      yield* child.destroy("stdin", "stdout")
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual(child.stderr(), "")
    }))

  it.live("while a large reply is on its way gets no crash either (F49)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node(Child.PROBE)
      yield* child.call("ping")
      yield* child.stopReading("stdout")
      yield* child.send({ id: 1, method: "big", params: { bytes: 8_000_000 } })
      yield* child.destroy("stdin", "stdout")
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual(child.stderr(), "")
    }))

  it.live("while a call is in flight is waited for no longer than the time to drain (F49, F52)", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe(["--drain", "300ms"])
      yield* child.send({ id: 1, method: "sleep", params: { ms: 600_000 } })
      yield* child.event("Request")
      yield* child.destroy("stdin", "stdout")
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.notMatch(child.stderr(), STACK_TRACE)
    }))
})

Child.leavesNothingBehind()

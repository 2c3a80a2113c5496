import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { closeSync, existsSync, openSync } from "node:fs"
import * as Child from "../utils/child.ts"
import type { Message } from "../utils/frames.ts"
import * as Os from "../utils/os.ts"

const ended = { code: 0, signal: null }

const MIB = 1_024 * 1_024
const STACK_TRACE = /^\s+at /m

describe("a host that does not read any more", () => {
  it.live("ends the server with the next write, although the input stays open", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* child.destroy("stdout")
      yield* child.send({ id: 1, method: "ping" })
      assert.deepStrictEqual(yield* child.closed, ended)
      const [error, stopped] = child.events.slice(-2)
      assert.deepInclude(error, { _tag: "OutputError", reason: "OutputClosed" })
      assert.deepNestedInclude(stopped, { _tag: "Stopped", "reason._tag": "OutputClosed" })
      assert.notMatch(child.stderr(), STACK_TRACE)
    }))

  it.live("ends the server also when it was the next program of a pipeline", () =>
    Effect.gen(function*() {
      const child = yield* Child.shell(`(${Child.commandLine()}; echo "exit code $?" >&2) | head -n 1`)
      yield* child.call("ping")
      // head is gone when its pipe breaks, and not before
      yield* child.send({ id: 1, method: "big", params: { bytes: MIB } })
      yield* child.until("the exit code", () => child.stderr().includes("exit code") || undefined)
      assert.include(child.stderr(), "exit code 0\n")
      assert.deepNestedInclude(child.events.at(-1), { _tag: "Stopped", "reason._tag": "OutputClosed" })
      assert.notMatch(child.stderr(), STACK_TRACE)
    }))

  it.live("ends the server also while it waits for this host to read", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* child.stopReading("stdout")
      yield* child.send({ id: 1, method: "big", params: { bytes: 8 * MIB } })
      yield* child.until("the reply to be queued", () =>
        child.events.find(({ _tag, id }) => _tag === "Response" && id === 1))
      yield* child.destroy("stdout")
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepNestedInclude(child.events.at(-1), { _tag: "Stopped", "reason._tag": "OutputClosed" })
      assert.notMatch(child.stderr(), STACK_TRACE)
    }))

  it.live("ends the server at once while calls are in flight", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* child.send({ id: 1, method: "sleep", params: { ms: 600_000 } })
      yield* child.destroy("stdout")
      yield* child.send({ id: 2, method: "ping" })
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepInclude(child.events, { _tag: "CutOff", requests: 1 })
    }))

  it.live("ends a server that only notifies, although its program swallows uncaught exceptions (F46)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("test/fixtures/notifies-for-ever.ts")
      yield* child.call("watch")
      yield* child.until("a notification", () => child.messages.find(({ method }) => method === "tick"))
      yield* child.destroy("stdout")
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual(child.stderr(), "")
    }))
})

describe("an output that fails", () => {
  it.live.runIf(existsSync("/dev/full"))(
    "with something that is no end ends the server with 1 and says why",
    () =>
      Effect.gen(function*() {
        const full = yield* Effect.acquireRelease(
          Effect.sync(() => openSync("/dev/full", "w")),
          (file) => Effect.sync(() => closeSync(file))
        )
        const child = yield* Child.probe([], { stdout: full })
        yield* child.send({ id: 1, method: "ping" })
        assert.deepStrictEqual(yield* child.closed, { code: 1, signal: null })
        assert.include(child.stderr(), "writing failed: ENOSPC")
      })
  )
})

describe("a host that reads nothing for a while", () => {
  const CALLS = 400

  it.live.runIf(Os.isLinux)(
    "gets all replies in the end, and does not fill the memory meanwhile (F72)",
    () =>
      Effect.gen(function*() {
        const child = yield* Child.readyProbe([], {
          keep: ({ result, ...message }: Message) => ({ ...message, result: String(result).length })
        })
        const before = Os.memory(child.pid, "VmRSS")
        const count = (tag: string) => child.events.filter((event) => event._tag === tag).length - 1
        yield* child.stopReading("stdout")
        yield* child.send(...Array.from({ length: CALLS }, (_, id) => ({ id, method: "big", params: { bytes: MIB } })))
        // all requests are read; served are those whose replies fit into the 64 MiB that may wait to be written
        yield* child.until("all requests to be read", () => count("Request") === CALLS || undefined)
        yield* child.until("the queue to be full", () => count("Response") >= 64 || undefined)
        assert.isBelow(count("Response"), 72)
        assert.isBelow(Os.memory(child.pid, "VmRSS") - before, 160)
        yield* child.readOn
        yield* child.until("all replies", () => child.messages.length > CALLS || undefined)
        assert.deepStrictEqual(
          child.messages.slice(1).map(({ id, result }) => ({ id, result })),
          Array.from({ length: CALLS }, (_, id) => ({ id, result: MIB }))
        )
        // what was written is let go: beside the queue there is only what waits to be collected
        assert.isBelow(Os.memory(child.pid, "VmHWM") - before, 350)
      })
  )
})

Child.leavesNothingBehind()

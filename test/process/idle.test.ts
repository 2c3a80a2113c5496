import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

const ended = { code: 0, signal: null }
const reasonOf = (child: Child.Child) => child.events.at(-1)?.["reason"]

describe("a server with an idle limit", () => {
  it.live("ends with exit code 0 when nothing comes for that long", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe(["--idle", "300ms"])
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(child.events.slice(-2), [
        { _tag: "IdleTimeout", idleTimeout: 300 },
        { _tag: "Stopped", reason: { _tag: "IdleTimeout" } }
      ])
    }))

  it.live("ends also when nothing ever came", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe(["--idle", "300ms"])
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(reasonOf(child), { _tag: "IdleTimeout" })
    }))

  it.live("is not idle while a call is in flight", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe(["--idle", "200ms"])
      assert.deepStrictEqual((yield* child.call("sleep", { ms: 600 })).result, { slept: 600 })
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(reasonOf(child), { _tag: "IdleTimeout" })
    }))

  it.live.runIf(Os.isLinux)(
    "answers the request that came while it was stopped for longer (F68)",
    () =>
      Effect.gen(function*() {
        const limit = ["--idle", "300ms"]
        const stopped = yield* Child.readyProbe(limit)
        yield* stopped.kill("SIGSTOP")
        yield* Os.eventually("the server to be stopped", () => Os.isStopped(stopped.pid) || undefined)
        // another one with the same limit, started later, leaves: more than the limit has passed
        const other = yield* Child.readyProbe(limit)
        assert.deepStrictEqual(yield* other.closed, ended)
        yield* stopped.send({ id: 1, method: "ping" })
        yield* stopped.kill("SIGCONT")
        assert.deepStrictEqual((yield* stopped.reply(1)).result, {})
        assert.deepStrictEqual(yield* stopped.closed, ended)
        assert.deepStrictEqual(reasonOf(stopped), { _tag: "IdleTimeout" })
      })
  )
})

describe("a server with a limit for the first message", () => {
  it.live("ends with exit code 0 when none comes", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe(["--startup", "300ms"])
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(reasonOf(child), { _tag: "StartupTimeout" })
    }))

  it.live("stays once a message came", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe(["--startup", "300ms"])
      // longer than the limit
      assert.deepStrictEqual((yield* child.call("sleep", { ms: 500 })).result, { slept: 500 })
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.deepStrictEqual(reasonOf(child), { _tag: "InputEnded" })
    }))
})

describe("idle servers", () => {
  // MiB for a server that is not bundled; Node itself takes 45. Node 22 strips types anew at every start
  const BUDGET = process.versions.node.startsWith("22.") ? 140 : 110

  it.live.runIf(Os.isLinux)(`take less than ${BUDGET} MiB each (F70)`, () =>
    Effect.gen(function*() {
      // an installed server has no types to strip, which alone takes 25 MiB: neither has one that is in the cache
      const first = yield* Child.readyProbe()
      yield* first.endInput
      yield* first.closed
      for (const child of yield* Effect.all([Child.readyProbe(), Child.readyProbe()])) {
        assert.isBelow(Os.memory(child.pid, "VmRSS"), BUDGET)
      }
    }))
})

Child.leavesNothingBehind()

import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

const ended = { code: 0, signal: null }
const SIGNALS = ["SIGTERM", "SIGHUP", "SIGINT"] as const

/** Calls a method and returns when the server has begun to serve it. */
const begin = (child: Child.Child, method: string, ms: number) =>
  Effect.andThen(
    child.send({ id: 1, method, params: { ms } }),
    child.until("the request", () => child.events.find(({ _tag, id }) => _tag === "Request" && id === 1))
  )

/** How a child ended, and how many milliseconds that took. */
const timed = (child: Child.Child) =>
  Effect.map(Effect.timed(child.closed), ([time, exit]) => ({ exit, time: Duration.toMillis(time) }))

describe.concurrent("a signal, with the input still open", () => {
  for (const signal of SIGNALS) {
    it.live(`${signal} ends an idle server with exit code 0 (F55)`, () =>
      Effect.gen(function*() {
        const child = yield* Child.readyProbe()
        yield* child.kill(signal)
        const { exit, time } = yield* timed(child)
        assert.deepStrictEqual(exit, ended)
        assert.isBelow(time, 1_000)
        assert.deepStrictEqual(child.events.at(-1), { _tag: "Stopped", reason: { _tag: "Requested", exitCode: 0 } })
      }))

    it.live(`${signal} lets a call finish that takes less than a second (F55)`, () =>
      Effect.gen(function*() {
        const child = yield* Child.readyProbe()
        yield* begin(child, "sleep", 200)
        yield* child.kill(signal)
        assert.deepStrictEqual(yield* child.closed, ended)
        assert.deepStrictEqual((yield* child.reply(1)).result, { slept: 200 })
      }))

    it.live(`${signal} cuts off a call that takes longer, and ends in time (F55)`, () =>
      Effect.gen(function*() {
        const child = yield* Child.readyProbe()
        yield* begin(child, "sleep", 600_000)
        yield* child.kill(signal)
        const { exit, time } = yield* timed(child)
        assert.deepStrictEqual(exit, ended)
        assert.deepStrictEqual((yield* child.reply(1)).error, { code: -32603, message: "server stopping" })
        assert.isAtLeast(time, 900)
        assert.isBelow(time, 1_900)
      }))
  }

  it.live("does not wait longer for a handler that cannot be interrupted (F55)", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* begin(child, "hold", 600_000)
      yield* child.kill("SIGTERM")
      const { exit, time } = yield* timed(child)
      assert.deepStrictEqual((yield* child.reply(1)).error, { code: -32603, message: "server stopping" })
      assert.include([0, 143], exit.code)
      assert.isAtLeast(time, 900)
      assert.isBelow(time, 2_000)
    }))

  it.live("is heeded in time although the host does not read and replies wait for it", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* child.stopReading("stdout")
      yield* child.send({ id: 1, method: "big", params: { bytes: 8_000_000 } }, {
        id: 2,
        method: "sleep",
        params: { ms: 600_000 }
      })
      yield* child.until("the requests", () => child.events.find(({ _tag, id }) => _tag === "Request" && id === 2))
      yield* child.kill("SIGTERM")
      const [time, exit] = yield* Effect.timed(child.exit)
      // 0 when what can be written was, 143 when the 1.5 seconds were over first
      assert.include([0, 143], exit.code)
      assert.isBelow(Duration.toMillis(time), 2_000)
      // the rest of a frame that nobody wanted
      yield* child.destroy("stdout")
    }))

  it.live("ends the wait for what is in flight after the end of the input", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* begin(child, "sleep", 600_000)
      yield* child.endInput
      yield* child.kill("SIGTERM")
      const { exit, time } = yield* timed(child)
      assert.deepStrictEqual(exit, ended)
      assert.isBelow(time, 1_900)
    }))
})

describe.concurrent("a program that does not end", () => {
  for (const [signal, code] of [["SIGTERM", 143], ["SIGHUP", 129], ["SIGINT", 130]] as const) {
    it.live(`is left with ${code} 1.5 seconds after ${signal} (F55)`, () =>
      Effect.gen(function*() {
        const child = yield* Child.node("test/fixtures/never-ends.ts")
        yield* child.event("Ready")
        yield* child.kill(signal)
        const { exit, time } = yield* timed(child)
        assert.deepStrictEqual(exit, { code, signal: null })
        assert.isAtLeast(time, 1_400)
        assert.isBelow(time, 2_000)
      }))
  }
})

describe("a second signal", () => {
  const pairs = [
    ["SIGTERM", "SIGTERM", 143],
    ["SIGINT", "SIGINT", 130],
    ["SIGTERM", "SIGINT", 130],
    ["SIGTERM", "SIGHUP", 129]
  ] as const
  for (const [first, second, code] of pairs) {
    it.live.runIf(Os.isLinux)(
      `${second} after ${first} exits at once with ${code} (F55)`,
      () =>
        Effect.gen(function*() {
          const child = yield* Child.readyProbe()
          yield* begin(child, "hold", 600_000)
          yield* child.kill(first)
          yield* Os.delivered(child.pid, first)
          yield* child.kill(second)
          const { exit, time } = yield* timed(child)
          assert.deepStrictEqual(exit, { code, signal: null })
          assert.isBelow(time, 900)
        })
    )
  }
})

Child.leavesNothingBehind()

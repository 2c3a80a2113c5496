import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Child from "../utils/child.ts"

// each test also asserts that nothing but frames was on standard output: the harness looks at every byte

describe("standard output", () => {
  it.live("carries nothing of what a handler prints; it is on standard error (F36)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      assert.deepStrictEqual((yield* child.call("print", { text: "a stray line" })).result, {})
      yield* child.until("what was printed", () => child.stderr().split("a stray line\n").length === 3 || undefined)
      assert.strictEqual(child.stdout().toString(), "{\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"result\":{}}\n")
    }))

  it.live("carries nothing of a defect, whose cause is logged on standard error", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      const { error } = yield* child.call("crash")
      assert.strictEqual(error?.code, -32603)
      yield* child.until("the log", () => child.stderr().includes("the secret is 42") || undefined)
      assert.notInclude(child.stdout().toString(), "secret")
    }))

  const printed = ["write", "log", "info", "debug", "table", "dir", "group"]

  for (
    const [how, start] of [
      ["a guard that is imported before it", Child.node("test/fixtures/guarded.ts")],
      [
        "node --import of the guard",
        Child.start(Child.runtime, [
          "--import",
          Child.url("src/stdout-guard.ts"),
          Child.path("test/fixtures/unguarded.ts")
        ])
      ]
    ] as const
  ) {
    it.live(`carries nothing of what a dependency prints while it loads, with ${how} (F36)`, () =>
      Effect.gen(function*() {
        const child = yield* start
        assert.strictEqual((yield* child.call("name")).result, "prints-while-loading")
        yield* child.until(
          "all banners",
          () => printed.every((way) => child.stderr().includes(way)) || undefined
        )
        assert.strictEqual(
          child.stdout().toString(),
          "{\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"result\":\"prints-while-loading\"}\n"
        )
      }))
  }

  it.live("carries nothing of consoles that were taken before the guard, nor of node:console (F36)", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("test/fixtures/prints-through-others.ts")
      assert.strictEqual((yield* child.call("print")).result, "printed")
      yield* child.until("all that was printed", () => child.stderr().includes("printed\n") || undefined)
      for (const text of ["held: log\n", "module: log\n"]) assert.include(child.stderr(), text)
      assert.strictEqual(child.stdout().toString(), "{\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"result\":\"printed\"}\n")
    }))
})

describe("a failure that nobody looks at", () => {
  const start = (mode = "log") => Child.node("test/fixtures/fails-late.ts", [mode])

  it.live("in a promise is logged and survived (F98)", () =>
    Effect.gen(function*() {
      const child = yield* start()
      assert.strictEqual((yield* child.call("reject")).result, "ok")
      yield* child.until("the log", () =>
        child.stderr().includes("unhandled rejection: Error: rejected late") || undefined)
      assert.deepStrictEqual((yield* child.call("ping")).result, {})
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
    }))

  it.live("in a promise ends the server with 1 where that was asked for (F98)", () =>
    Effect.gen(function*() {
      const child = yield* start("fail")
      assert.strictEqual((yield* child.call("reject")).result, "ok")
      assert.deepStrictEqual(yield* child.closed, { code: 1, signal: null })
      assert.include(child.stderr(), "unhandled rejection: Error: rejected late")
    }))

  it.live("in a timer ends the server with 1", () =>
    Effect.gen(function*() {
      const child = yield* start()
      assert.strictEqual((yield* child.call("throw")).result, "ok")
      assert.deepStrictEqual(yield* child.closed, { code: 1, signal: null })
      assert.include(child.stderr(), "uncaught exception: Error: thrown late")
    }))
})

describe("standard error", () => {
  it.live("may be closed", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* child.destroy("stderr")
      yield* child.call("print", { text: "nobody reads this" })
      yield* child.call("crash")
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
    }))

  it.live("may be left unread", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      yield* child.stopReading("stderr")
      // more than any pipe holds
      yield* child.call("print", { text: "x".repeat(4_000_000) })
      assert.deepStrictEqual((yield* child.call("ping")).result, {})
      yield* child.endInput
      assert.deepStrictEqual(yield* child.exit, { code: 0, signal: null })
    }))
})

Child.leavesNothingBehind()

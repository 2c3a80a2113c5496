import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundle } from "../../scripts/bundle.ts"
import * as Child from "../utils/child.ts"

// each test also asserts that nothing but frames was on standard output: the harness looks at every byte

const ended = { code: 0, signal: null }

/** Bundles a program into a folder where there is nothing else. */
const bundled = (entry: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Child.temporaryFolder
    const file = join(folder, "server.mjs")
    yield* Effect.promise(() => bundle(Child.path(entry), file))
    assert.deepStrictEqual(readdirSync(folder), ["server.mjs"])
    return file
  })

const start = (entry: string): Effect.Effect<Child.Child, never, Scope.Scope> =>
  Effect.flatMap(bundled(entry), (file) => Child.start(Child.runtime, [file]))

describe("a server bundled into one file", () => {
  it.live("answers a request, and ends with 0 when its input ends", () =>
    Effect.gen(function*() {
      const child = yield* start("examples/hello/server.ts")
      assert.deepStrictEqual((yield* child.call("greet", { name: "Ada" })).result, "Hello, Ada!")
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual(
        child.stdout().toString(),
        "{\"jsonrpc\":\"2.0\",\"id\":\"call-1\",\"result\":\"Hello, Ada!\"}\n"
      )
      assert.strictEqual(child.stderr(), "")
    }))

  it.live("calls an MCP tool, and ends with 0 when its input ends", () =>
    Effect.gen(function*() {
      const child = yield* start("examples/hello/mcp.ts")
      yield* child.call("initialize", {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "test", version: "1" }
      })
      const { result } = yield* child.call("tools/call", { name: "add", arguments: { a: 2, b: 3 } })
      assert.deepInclude(result, { structuredContent: { sum: 5 } })
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.strictEqual(child.stderr(), "")
    }))

  it.live("ends with 0 after a signal", () =>
    Effect.gen(function*() {
      const child = yield* start("examples/hello/server.ts")
      yield* child.call("greet", { name: "Ada" })
      yield* child.kill("SIGTERM")
      assert.deepStrictEqual(yield* child.closed, ended)
    }))

  it.live("loads its guard first: what a dependency prints while it loads is on standard error", () =>
    Effect.gen(function*() {
      const child = yield* start("test/fixtures/guarded-main.ts")
      assert.deepStrictEqual((yield* child.call("name")).result, "prints-while-loading")
      for (const way of ["write", "log", "info", "debug", "table", "dir", "group"]) assert.include(child.stderr(), way)
    }))
})

describe("bundling", () => {
  it.live("keeps the first line, by which a shell finds what runs the file", () =>
    Effect.gen(function*() {
      const file = yield* bundled("test/fixtures/guarded-main.ts")
      assert.isTrue(readFileSync(file, "utf8").startsWith("#!/usr/bin/env node\n"))
    }))

  it.live("refuses an import that it cannot put into the file", () =>
    Effect.gen(function*() {
      const folder = yield* Child.temporaryFolder
      const entry = join(folder, "entry.ts")
      writeFileSync(entry, "import \"not-installed\"")
      const error = yield* Effect.flip(Effect.tryPromise(() => bundle(entry, join(folder, "server.mjs"))))
      assert.match(String(error.cause), /cannot be one file: it needs not-installed$/)
      assert.deepStrictEqual(readdirSync(folder), ["entry.ts"])
    }))
})

Child.leavesNothingBehind()

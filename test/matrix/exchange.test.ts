/**
 * The example servers on one runtime, in each form that a server is shipped in: the TypeScript sources, JavaScript that
 * imports the built package by name, and bundles of one file.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { bundle } from "../../scripts/bundle.ts"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

// each test also asserts that nothing but frames was on standard output: the harness looks at every byte

const ended = { code: 0, signal: null }
const MB = 1_000_000

const isBun = /\bbun(\.exe)?$/.test(Child.runtime)

const programs = {
  hello: "examples/hello/server.ts",
  mcp: "examples/hello/mcp.ts",
  probe: "examples/probe/server.ts"
} as const

type Program = keyof typeof programs

// inside the project, so that `effect-stdio` means the project itself
let built = ""
let bundles = ""

/** Writes a program as its user would have it in JavaScript: without types, importing the package by name. */
const writeBuilt = (name: string, source: string) => {
  const text = stripTypeScriptTypes(readFileSync(Child.path(source), "utf8"))
    .replaceAll(/"\.\.\/\.\.\/src\/(\w+)\.ts"/g, "\"effect-stdio/$1\"")
    .replaceAll(/"\.\/(\w+)\.ts"/g, "\"./$1.js\"")
  writeFileSync(join(built, name), text)
}

beforeAll(async () => {
  assert(existsSync(Child.path("dist/index.js")), "run `npm run build` first")
  built = mkdtempSync(Child.path(".matrix-"))
  bundles = mkdtempSync(join(tmpdir(), "effect-stdio-matrix-"))
  writeBuilt("flags.js", "examples/probe/flags.ts")
  for (const [name, source] of Object.entries(programs)) {
    writeBuilt(`${name}.js`, source)
    await bundle(Child.path(source), join(bundles, `${name}.mjs`))
  }
})

afterAll(() => {
  for (const folder of [built, bundles]) rmSync(folder, { recursive: true, force: true })
})

const forms: ReadonlyArray<readonly [form: string, file: (program: Program) => string]> = [
  ["its TypeScript", (program) => Child.path(programs[program])],
  ["JavaScript on the built package", (program) => join(built, `${program}.js`)],
  ["one bundled file", (program) => join(bundles, `${program}.mjs`)]
]

/** Starts a server below a host, below a shell that holds the pipes of both. */
const startBelow = (server: ReadonlyArray<string>) =>
  Child.start("/bin/sh", [
    "-c",
    "\"$@\"; exec sleep 600",
    "holder",
    process.execPath,
    Child.path("test/fixtures/host.ts"),
    ...server
  ])

/** Kills the host, and returns when the server has left for that reason. */
const leavesWithItsHost = (child: Child.Child) =>
  Effect.gen(function*() {
    yield* child.call("ping")
    const { host, server } = yield* child.event("Spawned")
    yield* Effect.sync(() => process.kill(Number(host), "SIGKILL"))
    const stopped = yield* child.event("Stopped")
    assert.deepNestedInclude(stopped, { "reason._tag": "ParentExited", "reason.pid": host })
    yield* Os.gone(Number(server))
    yield* child.kill("SIGKILL")
  })

for (const [form, file] of forms) {
  const start = (program: Program, args: ReadonlyArray<string> = []) =>
    Child.start(Child.runtime, [file(program), ...args])
  const startProbe = Effect.tap(
    Effect.suspend(() => start("probe", ["--events"])),
    (child) => child.call("ping")
  )

  describe(`a server from ${form}`, () => {
    it.live("answers, and ends with 0 when its input ends", () =>
      Effect.gen(function*() {
        const child = yield* start("hello")
        assert.strictEqual((yield* child.call("greet", { name: "Ada" })).result, "Hello, Ada!")
        yield* child.endInput
        assert.deepStrictEqual(yield* child.closed, ended)
        assert.strictEqual(child.stderr(), "")
      }))

    it.live("calls an MCP tool, and ends with 0 when its input ends", () =>
      Effect.gen(function*() {
        const child = yield* start("mcp")
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

    it.live("ends with 0 after SIGTERM", () =>
      Effect.gen(function*() {
        const child = yield* startProbe
        yield* child.kill("SIGTERM")
        assert.deepStrictEqual(yield* child.closed, ended)
        assert.deepStrictEqual(child.events.at(-1), { _tag: "Stopped", reason: { _tag: "Requested", exitCode: 0 } })
      }))

    it.live("ends with 0 when nobody reads any more", () =>
      Effect.gen(function*() {
        const child = yield* startProbe
        yield* child.destroy("stdout")
        yield* child.send({ id: 1, method: "ping" })
        assert.deepStrictEqual(yield* child.closed, ended)
        assert.deepNestedInclude(child.events.at(-1), { _tag: "Stopped", "reason._tag": "OutputClosed" })
      }))

    it.live("keeps what a handler prints away from standard output", () =>
      Effect.gen(function*() {
        const child = yield* startProbe
        yield* child.call("print", { text: "a stray line" })
        yield* child.until("what was printed", () => child.stderr().split("a stray line\n").length === 3 || undefined)
        assert.notInclude(child.stdout().toString(), "stray")
      }))

    it.live("answers a message of 1 MB", () =>
      Effect.gen(function*() {
        const child = yield* startProbe
        const params = { text: "x".repeat(MB) }
        assert.deepStrictEqual((yield* child.call("echo", params)).result, params)
      }))

    it.live.runIf(Os.isLinux)(
      "leaves when its parent is killed, while somebody else holds its pipes",
      () =>
        Effect.gen(function*() {
          const child = yield* startBelow([Child.runtime, file("probe"), "--events", "--parent-poll", "200ms"])
          yield* leavesWithItsHost(child)
        })
    )
  })
}

describe.runIf(isBun && Os.isLinux)("a server behind bun run", () => {
  it.live("leaves when its host is killed, while the runner holds its pipes", () =>
    Effect.gen(function*() {
      const command = [Child.runtime, Child.path(programs.probe), "--events", "--parent-poll", "200ms"]
      const scripts = { serve: command.map((word) => `'${word}'`).join(" ") }
      writeFileSync(join(bundles, "package.json"), JSON.stringify({ scripts }))
      const child = yield* startBelow([Child.runtime, "--silent", "run", "--cwd", bundles, "serve"])
      yield* leavesWithItsHost(child)
    }))
})

describe.runIf(isBun)("a server compiled into one program by bun", () => {
  it.live("answers, and ends with 0 when its input ends", () =>
    Effect.gen(function*() {
      const program = join(bundles, "hello")
      yield* Effect.promise(() =>
        promisify(execFile)(Child.runtime, ["build", "--compile", Child.path(programs.hello), "--outfile", program])
      )
      const child = yield* Child.start(program, [])
      assert.strictEqual((yield* child.call("greet", { name: "Ada" })).result, "Hello, Ada!")
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
    }))
})

Child.leavesNothingBehind()

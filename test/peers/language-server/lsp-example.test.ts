/**
 * The language server example as a host runs it: the official client, the example as a process, and behind it a language
 * server that many editors use.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Child from "../../utils/child.ts"
import * as Official from "../../utils/officialClient.ts"
import * as Os from "../../utils/os.ts"
import * as Project from "../../utils/project.ts"

const LIMIT = 60_000
const cli = fileURLToPath(new URL("node_modules/typescript-language-server/lib/cli.mjs", import.meta.url))
const [[name, value] = []] = Object.entries(Child.environment)
/** What all processes of this file have in their environment. */
const MARKED = `${name}=${value}`
const servers = { typescript: { command: process.execPath, args: [cli, "--stdio"] } }

interface Result {
  readonly error?: string
  // the results of the tools, as far as a test looks at them
  readonly value: Record<string, unknown>
}

interface Location {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly preview?: string
}

interface ServerStatus {
  readonly server: string
  readonly state: string
  readonly pid?: number
  readonly restarts?: number
  readonly openDocuments?: number
  readonly reason?: string
}

interface CallOptions {
  readonly signal?: AbortSignal
  readonly onprogress?: (progress: { readonly message?: string | undefined }) => void
}

/** A project, the example on it, and a client that is connected. */
const open = Effect.fnUntraced(function*(config: object = { servers }) {
  const project = yield* Project.make
  const file = join(yield* Child.temporaryFolder, "config.json")
  writeFileSync(file, JSON.stringify(config))
  const { client, close, errors, stderr } = yield* Official.connect([
    process.execPath,
    Child.path("examples/lsp/server.ts"),
    "--config",
    file,
    project.folder
  ])
  const call = (name: string, args: object, options?: CallOptions): Effect.Effect<Result> =>
    Effect.promise(async () => {
      const request = { name, arguments: { ...args } }
      const { content, isError, structuredContent } = await client.callTool(request, { timeout: LIMIT, ...options })
      const [first] = content
      return {
        ...(isError === true ? { error: first?.type === "text" ? first.text : "" } : {}),
        value: (structuredContent ?? {}) as Record<string, unknown>
      }
    })
  const status = Effect.map(call("status", {}), ({ value }) => {
    const list = value["servers"] as ReadonlyArray<ServerStatus>
    return list.find(({ server }) => server === "typescript") ?? assert.fail("no status of typescript")
  })
  /** The pid of the language server. */
  const pid = Effect.map(status, ({ pid }) => pid ?? assert.fail("it does not run"))
  return {
    project,
    client,
    call,
    status,
    pid,
    close,
    errors,
    stderr
  }
})

const places = ({ error, value }: Result) => {
  assert.isUndefined(error)
  return (value["locations"] as ReadonlyArray<Location>).map(({ column, file, line }) => `${file}:${line}:${column}`)
}

const UNICODE = "src/größe 支出.ts"
const FORMAT = { file: "src/report.ts", line: 7, symbol: "format" }

/** The processes that a process has started, and theirs. */
const descendants = (pid: number): ReadonlyArray<number> =>
  Os.withEnvironment(MARKED).filter((other) => {
    for (let at: number | undefined = other; at !== undefined && at > 1; at = Os.parentOf(at)) {
      if (at === pid && other !== pid) return true
    }
    return false
  })

const kill = (pid: number, signal: NodeJS.Signals) => Effect.sync(() => process.kill(pid, signal))

describe("the language server example", () => {
  it.live("lists its tools, of which one changes files", () =>
    Effect.gen(function*() {
      const { client } = yield* open()
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepStrictEqual(tools.map(({ name }) => name), [
        "definition",
        "references",
        "hover",
        "document_symbols",
        "workspace_symbols",
        "diagnostics",
        "rename",
        "status"
      ])
      const changing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)
      assert.deepStrictEqual(changing.map(({ name }) => name), ["rename"])
      assert.deepInclude(changing[0]?.annotations, { destructiveHint: true, openWorldHint: false })
    }))

  it.live("finds definitions and uses, behind wide characters and in files with CRLF too", () =>
    Effect.gen(function*() {
      const { call, errors } = yield* open()
      const definition = yield* call("definition", { file: UNICODE, line: 5, symbol: "sum" })
      assert.deepStrictEqual(definition.value, {
        locations: [{
          file: "src/ledger.ts",
          line: 8,
          column: 14,
          preview: "export const sum = (entries: ReadonlyArray<Entry>): number =>"
        }],
        total: 1
      })
      assert.deepStrictEqual(places(yield* call("definition", { file: UNICODE, line: 5, column: 35 })), [
        `${UNICODE}:4:14`
      ])
      assert.deepStrictEqual(places(yield* call("references", { file: UNICODE, line: 5, symbol: "größe" })), [
        `${UNICODE}:5:14`,
        `${UNICODE}:6:26`
      ])
      assert.deepStrictEqual(places(yield* call("references", { file: "src/windows.ts", line: 5, symbol: "second" })), [
        "src/windows.ts:4:14",
        "src/windows.ts:5:20"
      ])
      const format = { file: "src/ledger.ts", line: 12, symbol: "format" }
      assert.include(places(yield* call("references", format)), "src/ledger.ts:12:17")
      const uses = places(yield* call("references", { ...format, includeDeclaration: false }))
      assert.deepStrictEqual([uses.length, uses.includes("src/ledger.ts:12:17")], [10, false])
      const outside = yield* call("definition", { file: "src/report.ts", line: 7, symbol: "log" })
      assert.deepNestedInclude(outside.value, {
        "locations[0].file": "typescript/lib/lib.dom.d.ts",
        "locations[0].outside": true
      })
      assert.notNestedProperty(outside.value, "locations[0].preview")
      assert.deepStrictEqual(errors, [])
    }))

  it.live("tells what a name is, and what a file and the project define", () =>
    Effect.gen(function*() {
      const { call, project } = yield* open()
      const hover = yield* call("hover", FORMAT)
      assert.deepInclude(hover.value, { file: "src/report.ts", line: 7, column: 22 })
      assert.include(String(hover.value["text"]), "format(amount: number): string")
      assert.include(String(hover.value["text"]), "Writes an amount as a person reads it.")
      const module = yield* call("hover", { file: "src/report.ts", line: 1, column: 37 })
      assert.notInclude(JSON.stringify(module.value), project.folder)
      const nothing = yield* call("hover", { file: "src/report.ts", line: 2, column: 1 })
      assert.isNull(nothing.value["text"])
      const { value } = yield* call("document_symbols", { file: "src/ledger.ts" })
      const symbols = value["symbols"] as ReadonlyArray<
        { name: string; kind: string; container?: string; line: number }
      >
      assert.deepStrictEqual(
        symbols.map(({ container = "", kind, line, name }) => `${line} ${kind} ${container}/${name}`),
        [
          "2 interface /Entry",
          "3 property Entry/text",
          "4 property Entry/amount",
          "8 constant /sum",
          "9 function sum/entries.reduce() callback",
          "12 function /format",
          "16 class /Ledger",
          "17 property Ledger/entries",
          "19 method Ledger/add",
          "24 method Ledger/total"
        ]
      )
      for (const args of [{ query: "支出" }, { query: "支出", file: "src/report.ts" }]) {
        const found = yield* call("workspace_symbols", args)
        assert.deepNestedInclude(found.value, { "symbols[0].file": UNICODE, "symbols[0].line": 4 })
      }
    }))

  it.live("searches symbols in the language of a file when nothing runs yet, and asks for one without", () =>
    Effect.gen(function*() {
      const { call, status } = yield* open()
      assert.include((yield* call("workspace_symbols", { query: "sum" })).error, "No language server is running.")
      assert.strictEqual((yield* status).state, "not started")
      const { value } = yield* call("workspace_symbols", { query: "Ledger", file: "src/report.ts" })
      assert.include(JSON.stringify(value), "\"name\":\"Ledger\",\"kind\":\"class\"")
      assert.deepInclude(yield* status, { state: "running", restarts: 0, openDocuments: 1 })
    }))

  it.live("sees what changes on the disk with the next call: changed, new and deleted files", () =>
    Effect.gen(function*() {
      const { call, project } = yield* open()
      assert.include(JSON.stringify((yield* call("hover", FORMAT)).value), "format(amount: number): string")
      const clean = yield* call("diagnostics", { file: "src/report.ts" })
      assert.deepInclude(clean.value, { fresh: true, total: 0 })
      const ledger = project.read("src/ledger.ts")
      project.write("src/ledger.ts", ledger.replace("format(amount: number): string {", "format(amount: string) {"))
      assert.include(JSON.stringify((yield* call("hover", FORMAT)).value), "format(amount: string): string")
      const { value } = yield* call("diagnostics", { file: "src/report.ts" })
      assert.deepInclude(value, { fresh: true, total: 2 })
      assert.deepNestedInclude(value, {
        "diagnostics[0].line": 7,
        "diagnostics[0].column": 29,
        "diagnostics[0].severity": "error",
        "diagnostics[0].code": "2345"
      })
      project.write("src/new.ts", "import { format } from \"./ledger.ts\"\nformat(\"1\")\n")
      assert.include(places(yield* call("references", FORMAT)), "src/new.ts:2:1")
      rmSync(project.path("src/new.ts"))
      assert.notInclude(places(yield* call("references", FORMAT)).join(), "src/new.ts")
      renameSync(project.path("src/ledger.ts"), project.path("src/moved.ts"))
      const moved = yield* call("diagnostics", { file: "src/report.ts" })
      assert.include(JSON.stringify(moved.value), "Cannot find module './ledger.ts'")
    }))

  it.live("finds the one error of the project", () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      const { value } = yield* call("diagnostics", { file: "src/broken.ts" })
      assert.deepStrictEqual(value, {
        file: "src/broken.ts",
        fresh: true,
        diagnostics: [{
          severity: "error",
          message: "Type 'string' is not assignable to type 'number'.",
          line: 3,
          column: 14,
          endLine: 3,
          endColumn: 19,
          code: "2322",
          source: "typescript",
          preview: "export const wrong: number = format(100)"
        }],
        total: 1
      })
    }))

  it.live("renames in all files, those with CRLF and wide characters too, and in nothing else", () =>
    Effect.gen(function*() {
      const { call, project } = yield* open()
      const before = project.files()
      const rename = { file: "src/ledger.ts", line: 12, symbol: "format", newName: "schreibe" }
      const dry = yield* call("rename", rename)
      assert.isFalse(dry.value["written"])
      assert.deepStrictEqual(project.files(), before)
      const wet = yield* call("rename", { ...rename, dryRun: false })
      assert.deepStrictEqual(wet.value, { ...dry.value, written: true })
      const files = wet.value["files"] as ReadonlyArray<string>
      assert.deepStrictEqual(files, ["src/broken.ts", UNICODE, "src/ledger.ts", "src/report.ts", "src/windows.ts"])
      const expected = Object.entries(before).map(([name, text]) =>
        [name, files.includes(name) ? text.replaceAll(/\bformat\b/g, "schreibe") : text] as const
      )
      assert.deepStrictEqual(project.files(), Object.fromEntries(expected))
      // the server knows the new text
      const uses = yield* call("references", { file: UNICODE, line: 6, symbol: "schreibe" })
      assert.strictEqual(places(uses).length, 11)
      const refused = yield* call("rename", { file: "src/report.ts", line: 7, symbol: "log", newName: "x" })
      assert.match(refused.error ?? "", /refused textDocument\/prepareRename: .*You cannot rename/)
    }))

  it.live("refuses bad input with an error that says what to do", () =>
    Effect.gen(function*() {
      const { call, project, stderr } = yield* open()
      project.write("src/large.ts", `// ${"x".repeat(5 * 1024 * 1024)}\n`)
      project.write("src/latin.ts", new Uint8Array([0x2f, 0x2f, 0xe4, 0x0a]))
      const at = (file: string) => ({ file, line: 1, column: 1 })
      const rename = { file: "src/ledger.ts", line: 12, symbol: "format" }
      const cases: ReadonlyArray<readonly [tool: string, args: object, error: RegExp]> = [
        ["hover", at("src/gone.ts"), /There is no "src\/gone\.ts"/],
        ["hover", at("../elsewhere/outside.ts"), /leads out of the server's folder/],
        ["hover", at(project.outside), /leads out of the server's folder/],
        ["hover", at("outside.ts"), /leads out of the server's folder/],
        ["diagnostics", { file: "elsewhere/outside.ts" }, /leads out of the server's folder/],
        ["document_symbols", { file: "src" }, /"src" is not a file/],
        ["hover", at("tsconfig.xyz"), /There is no/],
        ["hover", at(".gitignore"), /No language server is known for "\.gitignore"/],
        ["hover", at("src/large.ts"), /files of at most 4194304 are read/],
        ["hover", at("src/latin.ts"), /is not text in UTF-8/],
        ["hover", { file: "src/report.ts", line: 0, column: 1 }, /line/],
        ["hover", { file: "src/report.ts", line: 1.5, column: 1 }, /line/],
        ["hover", { file: "src/report.ts", line: 10, column: 1 }, /has 9 lines, there is no line 10/],
        ["hover", { file: "src/report.ts", line: 7, column: 0 }, /column/],
        ["hover", { file: "src/report.ts", line: 7, column: 99 }, /there is no column 99/],
        ["hover", { file: "src/report.ts", line: 7 }, /Give column, or symbol/],
        ["hover", { ...FORMAT, column: 1 }, /not both/],
        ["hover", { ...FORMAT, symbol: "forma" }, /What stands there: "console", "log", "Total", "format"/],
        ["hover", { ...FORMAT, symbol: "" }, /symbol/],
        ["hover", { ...FORMAT, colum: 1 }, /colum/],
        ["references", { ...FORMAT, includeDeclaration: "yes" }, /includeDeclaration/],
        ["workspace_symbols", { query: 7 }, /query/],
        ["workspace_symbols", { query: "a", file: "src/gone.ts" }, /There is no "src\/gone\.ts"/],
        ["rename", rename, /newName/],
        ["rename", { ...rename, newName: "" }, /a name on one line/],
        ["rename", { ...rename, newName: " a" }, /a name on one line/],
        ["rename", { ...rename, newName: "a\nb" }, /a name on one line/],
        ["rename", { ...rename, newName: "format" }, /Everything has that name already/],
        ["status", { extra: 1 }, /extra/]
      ]
      for (const [tool, args, expected] of cases) {
        const { error } = yield* call(tool, args)
        assert.match(error ?? "no error", expected, `${tool} ${JSON.stringify(args)}`)
        if (!JSON.stringify(args).includes(project.folder)) assert.notInclude(error, project.folder)
        assert.notInclude(error, Project.SECRET)
      }
      assert.notInclude(stderr(), Project.SECRET)
    }))

  it.live("says what to install when a language server is not there", () =>
    Effect.gen(function*() {
      const typescript = { command: "no-such-language-server", install: "Install it with: make it" }
      const { call, status } = yield* open({ servers: { typescript } })
      assert.deepInclude(yield* status, { state: "not installed", reason: "Install it with: make it" })
      assert.strictEqual(
        (yield* call("hover", FORMAT)).error,
        "The language server \"typescript\" is not installed: there is no program \"no-such-language-server\". " +
          "Install it with: make it"
      )
      assert.deepInclude(yield* status, { state: "not installed" })
    }))

  it.live("gives up a language server that does not answer, and one that ends at once", () =>
    Effect.gen(function*() {
      const silent = { command: process.execPath, args: ["-e", "process.stdin.resume()"] }
      const hanging = yield* open({ servers: { typescript: silent }, initializeTimeout: "500ms" })
      assert.include(
        (yield* hanging.call("hover", FORMAT)).error,
        "The language server \"typescript\" is not ready: the handshake failed: not over in 500ms"
      )
      const ends = { command: process.execPath, args: ["-e", "console.error('I cannot'); process.exit(3)"] }
      const crashing = yield* open({ servers: { typescript: ends } })
      const { error } = yield* crashing.call("hover", FORMAT)
      assert.match(error ?? "", /is not ready: .* ended with code 3[^]*I cannot[^]*The next call starts it anew\./)
      const { reason, state } = yield* crashing.status
      assert.strictEqual(state, "crashed")
      assert.include(reason, "I cannot")
    }), LIMIT)

  it.live("reports what the language server does to a client that wants to know", () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      const steps: Array<string> = []
      yield* call("hover", FORMAT, { onprogress: ({ message = "" }) => steps.push(message) })
      assert.include(steps[0], "Initializing JS/TS language features")
    }))

  it.live("serves calls at the same time", () =>
    Effect.gen(function*() {
      const { call, status } = yield* open()
      const [hover, definition, diagnostics, references] = yield* Effect.all([
        call("hover", FORMAT),
        call("definition", FORMAT),
        call("diagnostics", { file: "src/broken.ts" }),
        call("references", FORMAT)
      ], { concurrency: "unbounded" })
      assert.include(JSON.stringify(hover.value), "format(amount: number): string")
      assert.deepStrictEqual(places(definition), ["src/ledger.ts:12:17"])
      assert.strictEqual(diagnostics.value["total"], 1)
      assert.strictEqual(places(references).length, 11)
      assert.deepInclude(yield* status, { restarts: 0, openDocuments: 2 })
    }))
})

describe.runIf(Os.isLinux)("the language server behind the example", () => {
  it.live("is asked again after it was killed, and has its documents as they are then", () =>
    Effect.gen(function*() {
      const { call, pid, project, status } = yield* open()
      yield* call("hover", FORMAT)
      const first = yield* pid
      yield* kill(first, "SIGKILL")
      project.write("src/report.ts", `// one line more\n${project.read("src/report.ts")}`)
      const { value } = yield* call("hover", { ...FORMAT, line: 8 })
      assert.deepInclude(value, { line: 8, column: 22 })
      assert.notStrictEqual(yield* pid, first)
      assert.deepInclude(yield* status, { state: "running", restarts: 1, openDocuments: 1 })
      yield* Os.gone(first)
    }))

  it.live("is asked again when it is killed in the midst of a call, and its own children go with it", () =>
    Effect.gen(function*() {
      const { call, client, pid } = yield* open()
      yield* call("hover", FORMAT)
      const first = yield* pid
      const children = descendants(first)
      assert.isNotEmpty(children)
      // nothing is answered any more
      for (const child of children) yield* kill(child, "SIGSTOP")
      const [result] = yield* Effect.all([
        call("references", FORMAT),
        // the call has been read once a later one is answered
        Effect.andThen(Effect.promise(() => client.ping()), kill(first, "SIGKILL"))
      ], { concurrency: "unbounded" })
      assert.strictEqual(places(result).length, 11)
      for (const process of [first, ...children]) yield* Os.gone(process)
    }))

  it.live("is told when the client cancels, and serves on", () =>
    Effect.gen(function*() {
      const { call, client, pid, status } = yield* open()
      yield* call("hover", FORMAT)
      const children = descendants(yield* pid)
      for (const child of children) yield* kill(child, "SIGSTOP")
      const controller = new AbortController()
      const exit = yield* Effect.exit(Effect.raceFirst(
        call("references", FORMAT, { signal: controller.signal }),
        // the call has been read once a later one is answered
        Effect.promise(() => client.ping()).pipe(
          Effect.andThen(Effect.sync(() => controller.abort())),
          Effect.andThen(Effect.never)
        )
      ))
      assert.strictEqual(exit._tag, "Failure")
      for (const child of children) yield* kill(child, "SIGCONT")
      assert.strictEqual(places(yield* call("references", FORMAT)).length, 11)
      assert.deepInclude(yield* status, { restarts: 0 })
    }))

  it.live("ends in order with the client, and nothing is left", () =>
    Effect.gen(function*() {
      const { call, close, pid } = yield* open()
      yield* call("hover", FORMAT)
      const first = yield* pid
      const all = [first, ...descendants(first)]
      assert.isAbove(all.length, 1)
      yield* close
      for (const process of all) yield* Os.gone(process)
    }))
})

const initialize = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "test", version: "1.0.0" }
}

/** The example without a client of its own, with a call that hangs since a process behind it is stopped. */
const hanging = Effect.fnUntraced(function*(
  stopped: "language server" | "tsserver",
  start: (command: ReadonlyArray<string>) => ReturnType<typeof Child.start>
) {
  const project = yield* Project.make
  const file = join(yield* Child.temporaryFolder, "config.json")
  writeFileSync(file, JSON.stringify({ servers }))
  const child = yield* start([
    process.execPath,
    Child.path("examples/lsp/server.ts"),
    "--events",
    "--parent-poll",
    "200ms",
    "--config",
    file,
    project.folder
  ])
  yield* child.call("initialize", initialize)
  yield* child.send({ method: "notifications/initialized" })
  const tool = (name: string, args: object) => ({ method: "tools/call", params: { name, arguments: args } })
  const { method, params } = tool("hover", FORMAT)
  yield* child.call(method, params)
  const status = yield* child.call("tools/call", { name: "status", arguments: {} })
  const pid = Number(/"state":"running","pid":(\d+)/.exec(JSON.stringify(status))?.[1])
  const children = descendants(pid)
  assert.isNotEmpty(children)
  for (const process of stopped === "tsserver" ? children : [pid]) yield* kill(process, "SIGSTOP")
  yield* child.send({ id: "hangs", ...tool("references", FORMAT) })
  // the call has been read once a later one is answered
  yield* child.call("ping")
  return { child, all: [pid, ...children] }
})

describe.runIf(Os.isLinux)("in the midst of a call, the language server example", () => {
  it.live.each(["language server", "tsserver"] as const)(
    "ends with SIGTERM, and nothing is left: the %s hangs",
    (stopped) =>
      Effect.gen(function*() {
        const { all, child } = yield* hanging(stopped, ([command = "", ...args]) => Child.start(command, args))
        yield* child.kill("SIGTERM")
        const { code, signal } = yield* child.exit
        assert.isNull(signal)
        assert.include([0, 143], code)
        for (const process of all) yield* Os.gone(process)
      })
  )

  it.live("ends with its input, and nothing is left", () =>
    Effect.gen(function*() {
      const { all, child } = yield* hanging("tsserver", ([command = "", ...args]) => Child.start(command, args))
      yield* child.endInput
      assert.deepStrictEqual(yield* child.exit, { code: 0, signal: null })
      for (const process of all) yield* Os.gone(process)
    }))

  it.live("leaves behind npm exec when the host is killed, and nothing is left", () =>
    Effect.gen(function*() {
      const holder = ["-c", "\"$@\"; exec sleep 600", "holder"]
      const host = [process.execPath, Child.path("test/fixtures/host.ts")]
      const { all, child } = yield* hanging("tsserver", (command) =>
        Child.start("/bin/sh", [...holder, ...host, "npm", "exec", "--offline", "-c", command.join(" ")]))
      const spawned = yield* child.event("Spawned")
      yield* kill(Number(spawned["host"]), "SIGKILL")
      const { reason } = yield* child.event("Stopped")
      assert.strictEqual((reason as { readonly _tag: string })._tag, "ParentExited")
      for (const process of all) {
        yield* Os.gone(process)
      }
      yield* Os.gone(Number(spawned["server"]))
      yield* child.kill("SIGKILL")
    }))
})

describe("the command line of the example", () => {
  const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, message: string, code: number]> = [
    [["--parent-poll", "soon"], "--parent-poll is soon; write it like 200ms, 5s or 1m", 2],
    [["--no-such-flag"], "--no-such-flag", 2],
    [["a", "b"], "there is more than one folder", 2],
    [
      ["--config", "no-such-file.json"],
      "the configuration \"no-such-file.json\" cannot be used: there is no such file",
      1
    ]
  ]
  for (const [args, message, code] of wrong) {
    it.live(`refuses ${args.join(" ")}`, () =>
      Effect.gen(function*() {
        const child = yield* Child.node("examples/lsp/server.ts", args)
        assert.deepStrictEqual(yield* child.closed, { code, signal: null })
        assert.include(child.stderr(), message)
      }))
  }
})

Child.leavesNothingBehind()

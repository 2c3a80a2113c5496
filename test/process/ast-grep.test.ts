// The ast-grep example as a process of its own, with the client of the protocol's authors.
import { assert, describe, it } from "@effect/vitest"
import type { RequestOptions } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import { chmodSync, readdirSync, readFileSync, utimesSync } from "node:fs"
import * as Child from "../utils/child.ts"
import * as Official from "../utils/officialClient.ts"
import * as Os from "../utils/os.ts"
import * as Project from "../utils/project.ts"

interface Match {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly text: string
  readonly captures: Readonly<Record<string, unknown>>
}

/** What the tests read of results. */
interface Content {
  readonly matches?: ReadonlyArray<Match>
  readonly nextCursor?: string
  readonly truncated?: boolean
  readonly filesSearched?: number
  readonly skipped?: ReadonlyArray<{ readonly file: string; readonly reason: string }>
  readonly diff?: string
  readonly version?: string
  readonly written?: boolean
  readonly replacements?: number
  readonly files?: ReadonlyArray<{ readonly file: string }>
}

interface Result {
  readonly isError: boolean
  readonly text: string
  readonly content: Content
}

/** A client on a server of its own for the project. */
const connect = Effect.fnUntraced(function*(project: Project.Project) {
  const { client, close, ...connected } = yield* Official.connect(
    [process.execPath, Child.path("examples/ast-grep/server.ts"), project.folder],
    // The client hands notifications to their listeners a moment later than replies: of progress that comes in one chunk
    // with the reply it says so, and after it has cancelled, too.
    { tolerates: (message) => message.includes("progress notification for an unknown") }
  )
  const call: (...args: Parameters<typeof connected.call>) => Effect.Effect<Result> = (...args) =>
    Effect.map(connected.call(...args), ({ content, isError, structuredContent }) => ({
      isError: isError === true,
      text: JSON.stringify(content),
      // the client has checked it against the schema of the tool
      content: (structuredContent ?? {}) as Content
    }))
  return {
    client,
    close,
    call,
    ok: (name: string, args: Record<string, unknown>) =>
      Effect.map(call(name, args), ({ content, isError, text }) => {
        assert.isFalse(isError, text)
        return content
      })
  }
})

const search = { pattern: "format($A)", language: "typescript" }
const replace = { ...search, rewrite: "show($A)" }

const manyFiles = (project: Project.Project, count: number) => {
  for (let index = 0; index < count; index++) {
    project.write(`many/${index % 50}/${index}.ts`, `export const v${index} = format(${index})\n`.repeat(20))
  }
}

/** Starts a call with a progress token, aborts it at the first report, and returns how it ended. */
const abortInTheMidst = (call: (options: RequestOptions) => Effect.Effect<unknown>) =>
  Effect.gen(function*() {
    const controller = new AbortController()
    let done = 0
    const exit = yield* Effect.exit(call({
      signal: controller.signal,
      onprogress: ({ progress, total }) => {
        done = Math.max(done, progress / (total ?? 1))
        controller.abort()
      }
    }))
    assert.strictEqual(exit._tag, "Failure")
    return done
  })

describe("the ast-grep server and the official client", () => {
  it.live("find code with positions and captures, non-ASCII and CRLF", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const { client, close, ok } = yield* connect(project)
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.deepStrictEqual(tools.map(({ name }) => name), ["search", "replace", "languages"])
      const { matches = [] } = yield* ok("search", { pattern: "console.log($A, $$$REST)", language: "ts" })
      assert.deepStrictEqual(
        matches.map(({ captures, column, file, line }) => [file, line, column, captures]),
        [
          ["src/größe 支出.ts", 6, 1, { A: "\"🚆\"", REST: ["format(größe)"] }],
          ["src/report.ts", 7, 1, { A: "\"Total\"", REST: ["format(ledger.total)"] }],
          ["src/report.ts", 8, 1, {
            A: "\"Half\"",
            REST: ["format(sum([{ text: \"Half\", amount: ledger.total / 2 }]))"]
          }],
          ["src/windows.ts", 5, 1, { A: "first", REST: ["second"] }]
        ]
      )
      const inner = yield* ok("search", { pattern: "sum([$A])", language: "ts", globs: ["größe 支出.ts"] })
      assert.deepStrictEqual(inner.matches?.map(({ column, line }) => [line, column]), [[5, 30]])
      yield* close
    }))

  it.live("give the same in pages as one search does", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      for (let file = 0; file < 30; file++) project.write(`pages/${file}.ts`, "f(1); f(f(2));\n".repeat(5))
      const { close, ok } = yield* connect(project)
      const query = { pattern: "f($A)", language: "ts" }
      const found: Array<Match> = []
      const sizes: Array<number> = []
      for (let cursor: string | undefined = ""; cursor !== undefined;) {
        const page: Content = yield* ok("search", { ...query, ...(cursor !== "" && { cursor }) })
        found.push(...page.matches ?? [])
        sizes.push(page.matches?.length ?? 0)
        assert.strictEqual(page.truncated, page.nextCursor !== undefined)
        cursor = page.nextCursor
      }
      assert.deepStrictEqual(sizes, [100, 100, 100, 100, 50])
      const expected = Array.from({ length: 30 }, (_, file) => `pages/${file}.ts`).toSorted().flatMap((file) =>
        [1, 2, 3, 4, 5].flatMap((line) => [[file, line, 1], [file, line, 7], [file, line, 9]])
      )
      assert.deepStrictEqual(found.map(({ column, file, line }) => [file, line, column]), expected)
      yield* close
    }))

  it.live("replace nothing in a dry run, and then exactly what it shows", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const before = project.files()
      const { close, ok } = yield* connect(project)
      const shown = yield* ok("replace", replace)
      assert.deepStrictEqual(project.files(), before)
      assert.include(shown.diff, "-export const first = format(100)\r\n")
      const written = yield* ok("replace", { ...replace, dryRun: false, version: shown.version })
      const names = ["src/broken.ts", "src/größe 支出.ts", "src/report.ts", "src/windows.ts"]
      assert.deepStrictEqual(written.files?.map(({ file }) => file), names)
      assert.deepStrictEqual(
        project.files(),
        Object.fromEntries(
          Object.entries(before).map(([name, text]) => [
            name,
            names.includes(name) ? text.replaceAll("format(", "show(") : text
          ])
        )
      )
      yield* close
    }))

  it.live("get a tool error for each bad parameter, and nothing is written", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      chmodSync(project.path("src/windows.ts"), 0o444)
      const before = project.files()
      const { call, close, ok } = yield* connect(project)
      const refusals: ReadonlyArray<readonly [tool: string, params: Record<string, unknown>, part: string]> = [
        ["search", { ...search, language: "cobol" }, "There is no language"],
        ["search", { ...search, pattern: "format(" }, "The pattern is not valid TypeScript"],
        ["search", { ...search, pattern: "format($a)" }, "is no metavariable"],
        ["search", { ...search, pattern: "f(".repeat(4_000) }, "more than 5000 characters"],
        ["search", { ...search, globs: ["../**"] }, "leads out of the server's folder"],
        ["search", { ...search, globs: [project.folder] }, "is absolute"],
        ["search", { ...search, globs: ["[a"] }, "has [ without ]"],
        ["search", { ...search, cursor: "x" }, "The cursor is not valid"],
        ["search", { ...search, selector: "x" }, "no kind of node"],
        ["search", { ...search, file: "x" }, "Invalid parameters"],
        ["replace", { ...replace, rewrite: "show($B)", dryRun: false }, "The rewrite uses"],
        ["replace", { ...replace, version: "x", dryRun: false }, "not those of the dry run"],
        ["replace", { ...replace, dryRun: false }, "may not be read or written"],
        ["replace", { ...replace, dry: false }, "Invalid parameters"],
        ["languages", { x: 1 }, "Invalid parameters"]
      ]
      for (const [name, params, part] of refusals) {
        const { isError, text } = yield* call(name, params)
        assert.isTrue(isError, text)
        assert.include(text, part)
        assert.notInclude(
          text.replaceAll(JSON.stringify(JSON.stringify(project.folder)).slice(1, -1), ""),
          project.folder
        )
      }
      assert.deepStrictEqual(project.files(), before)
      assert.lengthOf((yield* ok("search", search)).matches ?? [], 6)
      yield* close
    }))

  it.live("see nothing that is outside, ignored, or too large", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("large.ts", "format(1)\n".repeat(500_000))
      project.write("src/nested/.gitignore", "*\n!kept.ts\n")
      project.write("src/nested/kept.ts", "format(1)")
      project.write("src/nested/lost.ts", "format(1)")
      const { call, close, ok } = yield* connect(project)
      for (const globs of [["**"], ["outside.ts"], ["elsewhere/**"], ["inside.ts"], ["dist/**"], ["node_modules/**"]]) {
        const { text } = yield* call("search", { pattern: "export const $N = $V", language: "ts", globs })
        assert.notInclude(text, Project.SECRET)
      }
      const { filesSearched, matches = [], skipped } = yield* ok("search", search)
      assert.deepStrictEqual(skipped, [{ file: "large.ts", reason: "larger than 1048576 bytes" }])
      assert.deepStrictEqual([filesSearched, matches.length], [6, 7])
      const js = yield* ok("search", { pattern: "export const $N = $V", language: "js" })
      assert.deepStrictEqual(js.matches, [])
      yield* ok("replace", {
        pattern: "export const $N = $V",
        rewrite: "export let $N = $V",
        language: "ts",
        dryRun: false
      })
      assert.strictEqual(readFileSync(project.outside, "utf8"), `export const secret = "${Project.SECRET}"\n`)
      assert.strictEqual(project.read("src/table.generated.ts"), "export const sum = 1\n")
      yield* close
    }))

  it.live("make two calls at once, and pings are answered meanwhile", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      manyFiles(project, 1_500)
      const { call, client, close } = yield* connect(project)
      const order: Array<string> = []
      const listen = (name: string): RequestOptions => ({ onprogress: () => void order.push(name) })
      const ping = Effect.promise(() => client.ping()).pipe(Effect.andThen(Effect.sync(() => order.push("ping"))))
      const nothing = { ...replace, pattern: "nothing($A)" }
      yield* Effect.all([
        Effect.tap(call("replace", nothing, listen("first")), () => Effect.sync(() => order.push("first is over"))),
        Effect.tap(call("replace", nothing, listen("second")), () => Effect.sync(() => order.push("second is over"))),
        Os.eventually("a call makes progress", () => order.length > 0 || undefined).pipe(Effect.andThen(ping))
      ], { concurrency: 3 })
      const over = order.findIndex((name) => name.endsWith("over"))
      const meanwhile = new Set(order.slice(0, over))
      assert.deepStrictEqual([...meanwhile].toSorted(), ["first", "ping", "second"])
      yield* close
    }))

  it.live("stop a search and a replacement of many files when the client cancels, and nothing is written", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      manyFiles(project, 3_000)
      const before = project.files()
      const { call, close, ok } = yield* connect(project)
      const nothing = { ...search, pattern: "nothing($A)" }
      const globs = ["many/1*/**", "many/2*/**"]
      assert.isBelow(yield* abortInTheMidst((options) => call("search", nothing, options)), 0.9)
      assert.isBelow(
        yield* abortInTheMidst((options) =>
          call("replace", { ...replace, globs: ["many/?/**"], dryRun: false }, options)
        ),
        0.9
      )
      assert.lengthOf((yield* ok("search", { ...search, globs })).matches ?? [], 100)
      // a write waits for the one before: it is over
      yield* ok("replace", { ...replace, globs: ["nothing.ts"], dryRun: false })
      assert.deepStrictEqual(project.files(), before)
      yield* close
    }))

  it.live("tell of a file that changes between the dry run and the write", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const { call, close, ok } = yield* connect(project)
      const { version } = yield* ok("replace", replace)
      project.write("src/windows.ts", "format(1)\r\n")
      const before = project.files()
      const { isError, text } = yield* call("replace", { ...replace, dryRun: false, version })
      assert.isTrue(isError)
      assert.include(text, "Make a dry run again")
      assert.deepStrictEqual(project.files(), before)
      yield* close
    }))
})

describe("the ast-grep server, killed in the midst of a write", () => {
  const FILES = 60
  const moments: ReadonlyArray<
    readonly [what: string, hasCome: (temporary: ReadonlyArray<string>, project: Project.Project) => boolean]
  > = [
    ["before files are exchanged", (temporary) => temporary.length > 10],
    ["while they are", (_, project) => project.read("many/0.ts").startsWith("show")]
  ]
  for (const [what, hasCome] of moments) {
    it.live(`leaves each file old or new, ${what}, and a later write removes what it left beside them`, () =>
      Effect.gen(function*() {
        const project = yield* Project.make
        for (let index = 0; index < FILES; index++) project.write(`many/${index}.ts`, "format(1)\n".repeat(1_000))
        const before = project.files()
        const server = yield* Child.node("examples/ast-grep/server.ts", [project.folder])
        yield* server.call("initialize", {
          protocolVersion: "2025-11-25",
          capabilities: {},
          clientInfo: { name: "test", version: "1" }
        })
        yield* server.send({ method: "notifications/initialized" })
        yield* server.send({
          id: 1,
          method: "tools/call",
          params: { name: "replace", arguments: { ...replace, globs: ["many/**"], dryRun: false } }
        })
        const temporary = () => readdirSync(project.path("many")).filter((name) => name.endsWith(".tmp"))
        yield* Os.eventually("the moment comes", () => hasCome(temporary(), project) || undefined)
        yield* server.kill("SIGKILL")
        yield* server.exit
        const after = project.files()
        for (const [name, text] of Object.entries(before)) {
          const isOld = after[name] === text
          assert.isTrue(isOld || after[name] === text.replaceAll("format(1)", "show(1)"), name)
        }
        // as if an hour had passed
        for (const name of temporary()) utimesSync(project.path(`many/${name}`), 1, 1)
        const { close, ok } = yield* connect(project)
        yield* ok("replace", {
          pattern: "$F(1)",
          rewrite: "again(1)",
          language: "ts",
          globs: ["many/**"],
          dryRun: false
        })
        assert.deepStrictEqual(temporary(), [])
        const many = Object.fromEntries(
          Object.entries(before).map(([name, text]) => [name, text.replaceAll("format(1)\n", "again(1)\n")])
        )
        assert.deepStrictEqual(project.files(), many)
        yield* close
      }))
  }
})

describe("a file that takes hours to parse", () => {
  it.live("is named, and does not keep the server from ending", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("slow.html", "<!--".repeat(100_000))
      const server = yield* Child.node("examples/ast-grep/server.ts", [project.folder])
      yield* server.call("initialize", {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "test", version: "1" }
      })
      yield* server.send({ method: "notifications/initialized" })
      const reply = yield* server.call("tools/call", {
        name: "search",
        arguments: { pattern: "<p>$A</p>", language: "html" }
      })
      assert.include(JSON.stringify(reply), "takes too long to parse")
      yield* server.endInput
      yield* server.exit
    }).pipe(Effect.timeout("40 seconds")))
})

Child.leavesNothingBehind()

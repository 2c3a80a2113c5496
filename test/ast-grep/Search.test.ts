import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as PlatformError from "effect/PlatformError"
import * as TestClock from "effect/testing/TestClock"
import { chmodSync, rmSync, symlinkSync } from "node:fs"
import * as Search from "../../examples/ast-grep/Search.ts"
import * as Project from "../utils/project.ts"
import { open, searchAll, services } from "./support.ts"

const ts = (pattern: string) => ({ pattern, language: "ts" })

describe("a search", () => {
  it.effect("gives files, positions in UTF-16 code units, text, line and captures", () =>
    Effect.gen(function*() {
      const { search } = yield* open()
      assert.deepStrictEqual(yield* search({ ...ts("console.log($A, $$$REST)"), globs: ["größe*"] }), {
        language: "TypeScript",
        matches: [{
          file: "src/größe 支出.ts",
          line: 6,
          column: 1,
          end: { line: 6, column: 33 },
          text: "console.log(\"🚆\", format(größe))",
          lineText: "console.log(\"🚆\", format(größe))",
          captures: { A: "\"🚆\"", REST: ["format(größe)"] }
        }],
        filesSearched: 1,
        skipped: [],
        partlyParsed: [],
        truncated: false
      })
      const { matches } = yield* search({ ...ts("sum([$A])"), globs: ["größe*"] })
      // behind a character of two code units
      assert.deepStrictEqual(matches.map(({ column, end, line }) => [line, column, end]), [[
        5,
        30,
        { line: 5, column: 39 }
      ]])
    }).pipe(Effect.provide(services)))

  it.effect("counts lines and columns as editors do: with CRLF, and without the byte order mark", () =>
    Effect.gen(function*() {
      const { search } = yield* open({ "bom.ts": "\uFEFFf(1)\r\n  f(\r\n  2)" })
      const { matches } = yield* search(ts("f($A)"))
      assert.deepStrictEqual(matches.map(({ column, end, line, lineText }) => [line, column, end, lineText]), [
        [1, 1, { line: 1, column: 5 }, "f(1)"],
        [2, 3, { line: 3, column: 5 }, "  f("]
      ])
    }).pipe(Effect.provide(services)))

  for (
    const options of [{ maxMatches: 1 }, { maxMatches: 3 }, { maxResultBytes: 1 }, { maxFiles: 1 }, { maxTime: 0 }]
  ) {
    it.effect(`in pages gives the same as at once: ${JSON.stringify(options)}`, () =>
      Effect.gen(function*() {
        const files = {
          "many.ts": "f(f(f(1)), f(2));\n".repeat(5),
          "none.ts": "",
          "a/b.ts": "f(1)",
          "a.ts": "f(2)"
        }
        const all = yield* (yield* open(files)).search(ts("f($$$A)"))
        assert.strictEqual(all.matches.length, 22)
        const { search } = yield* open(files, options)
        const pages = yield* searchAll(search, ts("f($$$A)"))
        assert.isAbove(pages.length, 2)
        assert.deepStrictEqual(pages.flatMap(({ matches }) => matches), all.matches)
        assert.deepStrictEqual(
          pages.map(({ truncated }) => truncated),
          pages.map((_, index) => index < pages.length - 1)
        )
        const [stoppedBy] = pages.map(({ stoppedBy }) => stoppedBy)
        const expected = "maxMatches" in options ?
          "matches"
          : "maxFiles" in options
          ? "files"
          : "maxTime" in options
          ? "time"
          : "bytes"
        assert.strictEqual(stoppedBy, expected)
      }).pipe(Effect.provide(services)))
  }

  it.effect("names the files that are too large, no text, unreadable, or have syntax errors", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("large.ts", "f(1)\n".repeat(1_000_000))
      project.write("latin.ts", new Uint8Array([0x66, 0x28, 0xe4, 0x29]))
      project.write("locked.ts", "f(1)")
      project.write("wrong.ts", "f(1)\nclass {")
      const fs = yield* FileSystem.FileSystem
      const search = yield* Search.make({ root: project.folder }).pipe(
        Effect.provideService(FileSystem.FileSystem, {
          ...fs,
          readFile: (path) =>
            path.endsWith("locked.ts")
              ? Effect.fail(PlatformError.systemError({
                _tag: "PermissionDenied",
                module: "FileSystem",
                method: "readFile",
                pathOrDescriptor: path
              }))
              : fs.readFile(path)
        })
      )
      const page = yield* search.search({ ...ts("f($A)"), globs: ["*.ts", "!src"] })
      assert.deepStrictEqual(page.matches.map(({ file }) => file), ["wrong.ts"])
      assert.deepStrictEqual(page.skipped, [
        { file: "large.ts", reason: "larger than 1048576 bytes" },
        { file: "latin.ts", reason: "not text in UTF-8" },
        { file: "locked.ts", reason: "may not be read by this server" }
      ])
      assert.deepStrictEqual([page.filesSearched, page.partlyParsed], [1, ["wrong.ts"]])
    }).pipe(Effect.provide(services)))

  it.effect("says how many it does not name", () =>
    Effect.gen(function*() {
      const { search } = yield* open(
        Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`bad/${index}.ts`, new Uint8Array([0xff])]))
      )
      const { more, skipped } = yield* search(ts("f($A)"))
      assert.deepStrictEqual([more, skipped.length], ["40 more were skipped.", 20])
    }).pipe(Effect.provide(services)))

  it.effect("cuts what is long, between characters", () =>
    Effect.gen(function*() {
      const { search } = yield* open({ "long.ts": `f("${"🚆".repeat(2_000)}", ${"1,".repeat(100)} 2)` })
      const { matches } = yield* search({ ...ts("f($A, $$$B)"), globs: ["long.ts"] })
      const [match] = matches
      assert.strictEqual(match?.text, `f("${"🚆".repeat(498)}…`)
      assert.isAtMost(match?.lineText.length ?? 999, 201)
      assert.strictEqual(match?.captures["B"]?.at(-1), "… and 51 more")
      assert.notMatch(JSON.stringify(match), /\\ud/)
    }).pipe(Effect.provide(services)))

  it.effect("explains why there is nothing", () =>
    Effect.gen(function*() {
      const { search } = yield* open()
      const note = (request: Search.SearchOptions) => Effect.map(search(request), ({ note }) => note)
      assert.include(
        yield* note({ pattern: "f($A)", language: "tsx" }),
        "There is no Tsx file: none that ends with .tsx"
      )
      assert.include(yield* note({ ...ts("f($A)"), globs: ["lib/**"] }), "There is no TypeScript file for these globs")
      assert.include(yield* note(ts("f($a, $B)")), "$a was taken as a name")
      assert.isUndefined(yield* note(ts("nothing($A)")))
      assert.isUndefined(yield* note(ts("format($A)")))
    }).pipe(Effect.provide(services)))

  it.effect("refuses cursors that are none, and those of another search", () =>
    Effect.gen(function*() {
      const { search } = yield* open({}, { maxMatches: 1 })
      const { nextCursor = "" } = yield* search(ts("format($A)"))
      const refused = (request: Search.SearchOptions) =>
        Effect.map(Effect.flip(search(request)), ({ message }) => message)
      const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
      const { search: key } = JSON.parse(Buffer.from(nextCursor, "base64url").toString()) as { readonly search: string }
      for (
        const cursor of [
          "x",
          "%",
          nextCursor.slice(1),
          encode({}),
          encode({ search: key, file: "a", skip: -1 }),
          encode({ search: key, file: 1, skip: 0 })
        ]
      ) {
        assert.include(yield* refused({ ...ts("format($A)"), cursor }), "The cursor is not valid. ")
      }
      for (
        const request of [
          ts("sum($A)"),
          { ...ts("format($A)"), language: "js" },
          { ...ts("format($A)"), globs: ["src/**"] },
          { ...ts("format($A)"), selector: "call_expression" }
        ]
      ) {
        assert.include(yield* refused({ ...request, cursor: nextCursor }), "The cursor belongs to another search. ")
      }
      // what it names is only compared, never opened
      const cursor = encode({ search: key, file: "../../../etc/passwd", skip: 99 })
      assert.strictEqual((yield* search({ ...ts("format($A)"), cursor })).matches.length, 1)
      const other = yield* search({ pattern: "format($A)", language: "TypeScript", globs: [], cursor: nextCursor })
      assert.strictEqual(other.matches.length, 1)
    }).pipe(Effect.provide(services)))

  it.effect("sees nothing outside of the folder", () =>
    Effect.gen(function*() {
      const { project, search } = yield* open()
      symlinkSync("elsewhere", project.path("inner"))
      symlinkSync("..", project.path("src/up"))
      for (const globs of [[], ["**"], ["elsewhere/**"], ["outside.ts"], ["inside.ts"], ["inner"], ["src/up/**"]]) {
        const page = yield* search({ ...ts("export const $N = $V"), globs })
        assert.notInclude(JSON.stringify(page), Project.SECRET)
        const files = page.matches.map(({ file }) => file)
        assert.isTrue(files.every((file) => file.startsWith("src/") && !file.includes("up/")), files.join())
      }
    }).pipe(Effect.provide(services)))

  it.effect("tells how far it is, from the first file to the last", () =>
    Effect.gen(function*() {
      const { replace, search } = yield* open()
      const told: Array<unknown> = []
      const listen = (progress: unknown) => Effect.sync(() => void told.push(progress))
      const expected = [1, 2, 3, 4, 5].map((done) => ({ done, total: 5 }))
      yield* search(ts("format($A)"), listen)
      assert.deepStrictEqual(told.splice(0), expected)
      yield* replace({ ...ts("format($A)"), rewrite: "$A" }, listen)
      assert.deepStrictEqual(told, expected)
    }).pipe(Effect.provide(services)))
})

describe("a replacement", () => {
  it.effect("shows a diff and changes nothing, unless it is told to", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open()
      const before = project.files()
      const request = { ...ts("format($A)"), rewrite: "show($A)", globs: ["src/windows.ts"] }
      const { version, ...shown } = yield* replace(request)
      assert.deepStrictEqual(project.files(), before)
      assert.deepStrictEqual(shown, {
        language: "TypeScript",
        written: false,
        replacements: 2,
        nested: 0,
        files: [{ file: "src/windows.ts", replacements: 2 }],
        filesSearched: 1,
        skipped: [],
        partlyParsed: [],
        diff:
          "--- a/src/windows.ts\n+++ b/src/windows.ts\n@@ -1,5 +1,5 @@\n import { format } from \"./ledger.ts\"\r\n \r\n" +
          "-export const first = format(100)\r\n-export const second = format(200)\r\n" +
          "+export const first = show(100)\r\n+export const second = show(200)\r\n console.log(first, second)\r\n"
      })
      const written = yield* replace({ ...request, dryRun: false, version })
      assert.deepStrictEqual([written.written, written.replacements, written.files, "diff" in written], [
        true,
        2,
        shown.files,
        false
      ])
      const text = before["src/windows.ts"] ?? ""
      assert.deepStrictEqual(project.files(), {
        ...before,
        "src/windows.ts": text.replace("= format(100)", "= show(100)").replace("= format(200)", "= show(200)")
      })
    }).pipe(Effect.provide(services)))

  it.effect("keeps the byte order mark, the ends of lines, and a last line without one", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open({ "bom.ts": "\uFEFF'🚆';\r\nf('支出🚆', 2)" })
      yield* replace({ ...ts("f($A, $B)"), rewrite: "g(\n  $B,\n  $A\n)", dryRun: false })
      assert.strictEqual(project.read("bom.ts"), "\uFEFF'🚆';\r\ng(\r\n  2,\r\n  '支出🚆'\r\n)")
    }).pipe(Effect.provide(services)))

  it.effect("is refused when it would not do what its dry run showed", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open()
      const request = { ...ts("format($A)"), rewrite: "show($A)" }
      const { version } = yield* replace(request)
      project.write("src/more.ts", "format(1)")
      const before = project.files()
      const { message } = yield* Effect.flip(replace({ ...request, dryRun: false, version }))
      assert.include(message, "are not those of the dry run")
      const other = yield* Effect.flip(replace({ ...request, rewrite: "g($A)", dryRun: false, version }))
      assert.include(other.message, "are not those of the dry run")
      assert.deepStrictEqual(project.files(), before)
    }).pipe(Effect.provide(services)))

  it.effect("writes nothing when a file changed since it was read", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const fs = yield* FileSystem.FileSystem
      const { replace } = yield* Search.make({ root: project.folder }).pipe(
        Effect.provideService(FileSystem.FileSystem, {
          ...fs,
          // the first thing a write does
          open: (...args) =>
            Effect.andThen(Effect.sync(() => project.write("src/windows.ts", "format(3)")), fs.open(...args))
        })
      )
      const before = project.files()
      const { message } = yield* Effect.flip(replace({ ...ts("format($A)"), rewrite: "show($A)", dryRun: false }))
      assert.include(message, "\"src/windows.ts\" changed in the meantime. Nothing was written.")
      assert.deepStrictEqual(project.files(), { ...before, "src/windows.ts": "format(3)" })
    }).pipe(Effect.provide(services)))

  it.effect("writes nothing when one of the files is read-only, and the dry run names it", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open()
      chmodSync(project.path("src/report.ts"), 0o444)
      const before = project.files()
      const request = { ...ts("format($A)"), rewrite: "show($A)" }
      assert.deepStrictEqual((yield* replace(request)).readOnly, ["src/report.ts"])
      const { message } = yield* Effect.flip(replace({ ...request, dryRun: false }))
      assert.include(message, "\"src/report.ts\" may not be read or written")
      assert.deepStrictEqual(project.files(), before)
      const { written } = yield* replace({ ...request, globs: ["!report.ts"], dryRun: false })
      assert.isTrue(written)
    }).pipe(Effect.provide(services)))

  it.effect("does not touch what a link leads to outside, nor the link", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open()
      yield* replace({ ...ts("export const $N = $V"), rewrite: "const $N = $V", dryRun: false })
      assert.include(project.read("outside.ts"), "export const secret")
      assert.include(project.read("elsewhere/outside.ts"), "export const secret")
    }).pipe(Effect.provide(services)))

  it.effect("says that nothing changes where nothing does", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open()
      const before = project.files()
      for (const rewrite of ["format($A)", "sum($A)"]) {
        const pattern = rewrite === "sum($A)" ? "nothing($A)" : rewrite
        const shown = yield* replace({ ...ts(pattern), rewrite })
        assert.deepStrictEqual([shown.files, shown.diff], [[], ""])
        const { replacements, written } = yield* replace({ ...ts(pattern), rewrite, dryRun: false })
        assert.deepStrictEqual([replacements, written], [0, false])
      }
      assert.deepStrictEqual(project.files(), before)
    }).pipe(Effect.provide(services)))

  it.effect("cuts a long diff, and says what is left out", () =>
    Effect.gen(function*() {
      const { replace } = yield* open({}, { maxResultBytes: 1_000 })
      const shown = yield* replace({ ...ts("format($A)"), rewrite: "show($A)" })
      assert.strictEqual(shown.diff?.match(/^\+\+\+ /gm)?.length, 3)
      assert.strictEqual(shown.diffCut, "1 file more. Name them with globs to see what changes there.")
      const { replace: tiny } = yield* open({}, { maxResultBytes: 300 })
      const cut = yield* tiny({ ...ts("format($A)"), rewrite: "show($A)", globs: ["report.ts", "windows.ts"] })
      assert.match(cut.diff ?? "", /^--- a\/src\/report.ts\n(.*\n)*$/)
      assert.include(cut.diffCut, "The rest of src/report.ts, and 1 file more.")
    }).pipe(Effect.provide(services)))

  it.effect("fails at a limit and writes nothing", () =>
    Effect.gen(function*() {
      const limits: ReadonlyArray<readonly [options: Search.Options, message: string]> = [
        [{ maxFiles: 3 }, "One replacement may take 3 files looked at, "],
        [{ maxChangedFiles: 1 }, "One replacement may take 1 files changed, "],
        [{ maxChangedBytes: 300 }, "One replacement may take 300 bytes changed, "],
        [{ maxTime: 0 }, "One replacement may take 0 seconds, "]
      ]
      for (const [options, start] of limits) {
        const { project, replace } = yield* open({}, options)
        const before = project.files()
        const { message } = yield* Effect.flip(replace({ ...ts("format($A)"), rewrite: "show($A)", dryRun: false }))
        assert.strictEqual(message.slice(0, start.length), start)
        assert.deepStrictEqual(project.files(), before)
      }
    }).pipe(Effect.provide(services)))

  it.effect("fails when its time is over", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const fs = yield* FileSystem.FileSystem
      const reached = yield* Deferred.make<void>()
      const { replace } = yield* Search.make({ root: project.folder }).pipe(
        Effect.provideService(FileSystem.FileSystem, {
          ...fs,
          readFile: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
        })
      )
      rmSync(project.path(".gitignore"))
      const fiber = yield* Effect.forkChild(Effect.flip(replace({ ...ts("format($A)"), rewrite: "$A" })))
      yield* Deferred.await(reached)
      yield* TestClock.adjust("60 seconds")
      assert.include((yield* Fiber.join(fiber)).message, "One replacement may take 60 seconds, ")
    }).pipe(Effect.provide(services)))

  it.effect("waits for the one before, and starts from what that has made", () =>
    Effect.gen(function*() {
      const { project, replace } = yield* open()
      const one = (rewrite: string) => replace({ ...ts("format($A)"), rewrite, globs: ["windows.ts"], dryRun: false })
      const results = yield* Effect.all([one("format($A + 1)"), one("format($A + 2)")], { concurrency: 2 })
      assert.deepStrictEqual(results.map(({ replacements }) => replacements), [2, 2])
      assert.include(project.read("src/windows.ts"), "format(100 + 1 + 2)")
    }).pipe(Effect.provide(services)))
})

// Renames of a language server that the test writes: all of it, or nothing.
import { assert, describe, it } from "@effect/vitest"
import { JsonRpcError } from "effect-stdio/Schema"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Project from "../utils/project.ts"
import * as Support from "./support.ts"

const { open, range, services, silent } = Support

const AT = { file: "src/windows.ts", line: 3, symbol: "first", newName: "erste" }

/** A server that renames with this edit. */
const renaming = (edit: (uri: (name: string) => string, project: Project.Project) => unknown) =>
  open((project, uri) => ({
    "textDocument/prepareRename": () => Effect.succeed(range(2, 13, 18)),
    "textDocument/rename": () => Effect.succeed(edit(uri, project))
  }))

const edit = (line: number, from: number, to: number, newText = "erste") => ({ range: range(line, from, to), newText })

/** The two places of the name in the file with CRLF. */
const both = [edit(4, 12, 17), edit(2, 13, 18)]

describe("a rename", () => {
  it.effect("shows a diff, and writes when it is told to: exactly that, and the server hears of it", () =>
    Effect.gen(function*() {
      const { code, heard, project, received } = yield* renaming((uri) => ({
        changes: { [uri("src/windows.ts")]: both }
      }))
      const before = project.files()
      const dry = yield* code.rename(AT, silent)
      assert.deepStrictEqual(project.files(), before)
      assert.deepInclude(dry, { written: false, files: ["src/windows.ts"] })
      assert.include(dry.diff, "-export const first = format(100)\r\n")
      assert.include(dry.diff, "+console.log(erste, second)\r\n")
      received.length = 0
      const wet = yield* code.rename({ ...AT, dryRun: false }, silent)
      assert.deepStrictEqual(wet, { ...dry, written: true })
      const text = before["src/windows.ts"]?.replaceAll("first", "erste") ?? ""
      assert.deepStrictEqual(project.files(), { ...before, "src/windows.ts": text })
      const { params } = yield* heard("didChange", ({ method }) => method === "textDocument/didChange")
      assert.deepStrictEqual(params["contentChanges"], [{ text }])
    }).pipe(Effect.provide(services)))

  it.effect("keeps a byte order mark, and asks for a new name of the version that the server has", () =>
    Effect.gen(function*() {
      const { code, project } = yield* renaming((uri) => ({
        documentChanges: [{ textDocument: { uri: uri("src/windows.ts"), version: 1 }, edits: both }]
      }))
      project.write("src/windows.ts", `\uFEFF${project.read("src/windows.ts")}`)
      const before = project.read("src/windows.ts")
      yield* code.rename({ ...AT, dryRun: false }, silent)
      assert.strictEqual(project.read("src/windows.ts"), before.replaceAll("first", "erste"))
    }).pipe(Effect.provide(services)))

  it.effect("edits a file once that the server knows by two names", () =>
    Effect.gen(function*() {
      const edits = [edit(11, 16, 22, "write")]
      const { code } = yield* renaming((uri) => ({
        changes: { [uri("src/ledger.ts")]: edits, [uri("inside.ts")]: edits }
      }))
      const { diff, files } = yield* code.rename(AT, silent)
      assert.deepStrictEqual(files, ["src/ledger.ts"])
      assert.include(diff, "+export function write(amount: number): string {")
    }).pipe(Effect.provide(services)))

  const refused: ReadonlyArray<
    readonly [why: string, edit: Parameters<typeof renaming>[0], message: string]
  > = [
    [
      "changes a file outside",
      (uri, { outside }) => ({ changes: { [uri("src/windows.ts")]: both, [`file://${outside}`]: [edit(0, 0, 1)] } }),
      "The rename would change \"outside.ts\", which is outside of the server's folder."
    ],
    [
      "changes a file behind a link that leads out",
      (uri) => ({ changes: { [uri("src/windows.ts")]: both, [uri("elsewhere/outside.ts")]: [edit(0, 0, 1)] } }),
      "The rename would change \"outside.ts\", which is outside of the server's folder."
    ],
    [
      "would also create a file",
      (uri) => ({
        documentChanges: [
          { textDocument: { uri: uri("src/windows.ts"), version: null }, edits: both },
          { kind: "create", uri: uri("src/erste.ts") }
        ]
      }),
      "The rename would also \"create\" a file, which this server does not do."
    ],
    [
      "has changes that overlap",
      (uri) => ({ changes: { [uri("src/windows.ts")]: [...both, edit(2, 15, 20)] } }),
      "The language server gave changes of \"src/windows.ts\" that overlap."
    ],
    [
      "has a change that is not in the file",
      (uri) => ({ changes: { [uri("src/windows.ts")]: [...both, edit(99, 0, 1)] } }),
      "The language server gave a change of \"src/windows.ts\" that is not in the file."
    ],
    [
      "belongs to another version",
      (uri) => ({ documentChanges: [{ textDocument: { uri: uri("src/windows.ts"), version: 0 }, edits: both }] }),
      "\"src/windows.ts\" changed while the language server worked. Call again."
    ],
    [
      "belongs to a text that is not on the disk any more",
      (uri, project) => {
        project.write("src/windows.ts", "const other = 1\r\n".repeat(5))
        return { changes: { [uri("src/windows.ts")]: both } }
      },
      "\"src/windows.ts\" changed while the language server worked. Call again."
    ],
    [
      "belongs to a closed file that was changed meanwhile",
      (uri, project) => {
        project.write("src/ledger.ts", "const other = 1\n".repeat(30))
        return { changes: { [uri("src/windows.ts")]: both, [uri("src/ledger.ts")]: [edit(11, 0, 1)] } }
      },
      "\"src/ledger.ts\" changed while the language server worked. Call again."
    ],
    [
      "changes a file that is not there",
      (uri) => ({ changes: { [uri("src/windows.ts")]: both, [uri("src/gone.ts")]: [edit(0, 0, 1)] } }),
      "There is no \"src/gone.ts\" below the server's folder."
    ],
    ["changes nothing", () => ({ changes: {} }), "There is nothing at this position that can be renamed."],
    ["has no answer", () => null, "There is nothing at this position that can be renamed."],
    [
      "changes a name into itself",
      (uri) => ({ changes: { [uri("src/windows.ts")]: [edit(2, 13, 18, "first")] } }),
      "Everything has that name already."
    ]
  ]
  for (const [why, edit, expected] of refused) {
    it.effect(`is refused as a whole when it ${why}`, () =>
      Effect.gen(function*() {
        const { code, project } = yield* renaming(edit)
        const before = project.files()
        const { message } = yield* Effect.flip(code.rename({ ...AT, dryRun: false }, silent))
        assert.include(message, expected)
        const changed = Object.entries(project.files()).filter(([name, text]) => before[name] !== text)
        assert.notInclude(JSON.stringify(changed), "erste")
      }).pipe(Effect.provide(services)))
  }

  it.effect("is refused in the words of the server when it says beforehand that it cannot be done", () =>
    Effect.gen(function*() {
      const { code, methods } = yield* open({
        "textDocument/prepareRename": () =>
          Effect.fail(new JsonRpcError({ code: -32602, message: "You cannot rename this element." }))
      })
      const { message } = yield* Effect.flip(code.rename(AT, silent))
      assert.include(message, "refused textDocument/prepareRename: You cannot rename this element.")
      assert.notInclude(methods(), "textDocument/rename")
    }).pipe(Effect.provide(services)))

  it.effect("is refused without asking when the new name is the old one", () =>
    Effect.gen(function*() {
      const { code, methods } = yield* renaming(() => null)
      for (const at of [{ symbol: "first" }, { column: 14 }, { column: 16 }, { column: 19 }]) {
        const rename = { file: AT.file, line: AT.line, newName: "first", ...at }
        assert.include((yield* Effect.flip(code.rename(rename, silent))).message, "Everything has that name already.")
      }
      assert.notInclude(methods(), "textDocument/rename")
      const { message } = yield* Effect.flip(code.rename({ ...AT, newName: "firs" }, silent))
      assert.include(message, "There is nothing at this position")
    }).pipe(Effect.provide(services)))

  it.effect("is refused in files with ends of lines that not all servers count", () =>
    Effect.gen(function*() {
      const { code, project } = yield* renaming((uri) => ({ changes: { [uri("src/ledger.ts")]: [edit(1, 13, 18)] } }))
      project.write("src/ledger.ts", "// a\u2028b\nexport const first = 1\n")
      const { message } = yield* Effect.flip(code.rename({ ...AT, dryRun: false }, silent))
      assert.include(message, "Nothing was renamed. In \"src/ledger.ts\" there are U+2028 or U+2029")
    }).pipe(Effect.provide(services)))

  it.effect("is refused when there is nothing to rename", () =>
    Effect.gen(function*() {
      const { code } = yield* open({ "textDocument/prepareRename": () => Effect.succeed(null) })
      const { message } = yield* Effect.flip(code.rename(AT, silent))
      assert.include(message, "Nothing was renamed. There is nothing at this position that can be renamed.")
    }).pipe(Effect.provide(services)))

  const waits: ReadonlyArray<
    readonly [why: string, method: string, file: string, edits: ReadonlyArray<ReturnType<typeof edit>>]
  > = [
    ["the text of the open file", "textDocument/rename", "src/windows.ts", both],
    ["a closed file", "textDocument/rename", "src/ledger.ts", [edit(11, 16, 22)]],
    ["what stands at the position", "textDocument/prepareRename", "src/windows.ts", [edit(2, 0, 6)]]
  ]
  for (const [what, method, file, edits] of waits) {
    it.live(`is refused when ${what} changes meanwhile, also where another call has told the server of it`, () =>
      Effect.gen(function*() {
        const asked = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const answer = (name: string, result: unknown) => () =>
          name === method
            ? Deferred.succeed(asked, undefined).pipe(Effect.andThen(Deferred.await(gate)), Effect.as(result))
            : Effect.succeed(result)
        const { ask, code, project } = yield* open((_, uri) => ({
          "textDocument/hover": () => Effect.succeed(null),
          "textDocument/prepareRename": answer("textDocument/prepareRename", range(2, 13, 18)),
          "textDocument/rename": answer("textDocument/rename", { changes: { [uri(file)]: edits } })
        }))
        yield* code.hover({ file: "src/report.ts", line: 1, column: 1 }, silent)
        const registerOptions = { watchers: [{ globPattern: "**/*" }] }
        const registration = { id: "1", method: "workspace/didChangeWatchedFiles", registerOptions }
        yield* ask("client/registerCapability", { registrations: [registration] })
        const fiber = yield* Effect.forkChild(Effect.flip(code.rename({ ...AT, dryRun: false }, silent)))
        yield* Deferred.await(asked)
        const text = `// one line more, which is long enough\r\n${project.read(file)}`
        project.write(file, text)
        yield* code.hover({ file: "src/report.ts", line: 1, column: 1 }, silent)
        yield* Deferred.succeed(gate, undefined)
        assert.include((yield* Fiber.join(fiber)).message, `"${file}" changed while the language server worked.`)
        assert.strictEqual(project.read(file), text)
      }).pipe(Effect.provide(services)))
  }

  it.effect("is made after another one, by a server that does not say which files it wants to hear of", () =>
    Effect.gen(function*() {
      const { code, project } = yield* open((_, uri) => ({
        "textDocument/prepareRename": () => Effect.succeed(range(2, 13, 18)),
        "textDocument/rename": ({ newName }) =>
          Effect.succeed({ changes: { [uri("src/ledger.ts")]: [edit(11, 16, 22, String(newName))] } })
      }))
      yield* code.rename({ ...AT, newName: "first1", dryRun: false }, silent)
      yield* code.rename({ ...AT, newName: "first2", dryRun: false }, silent)
      assert.include(project.read("src/ledger.ts"), "export function first2(")
    }).pipe(Effect.provide(services)))

  it.effect("is made while the same text is sent anew for its diagnostics", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const { code, heard } = yield* open((_, uri) => ({
        "textDocument/prepareRename": () => Effect.succeed(range(2, 13, 18)),
        "textDocument/rename": () =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Deferred.await(gate)),
            Effect.as({ documentChanges: [{ textDocument: { uri: uri("src/windows.ts"), version: 1 }, edits: both }] })
          )
      }))
      const fiber = yield* Effect.forkChild(code.rename(AT, silent))
      yield* Deferred.await(asked)
      const check = yield* Effect.forkChild(code.diagnostics("src/windows.ts", silent))
      yield* heard("didChange", ({ method }) => method === "textDocument/didChange")
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual((yield* Fiber.join(fiber)).files, ["src/windows.ts"])
      yield* Fiber.interrupt(check)
    }).pipe(Effect.provide(services)))
})

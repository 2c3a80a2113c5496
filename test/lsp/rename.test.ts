// Renames of a language server that the test writes: all of it, or nothing.
import { assert, describe, it } from "@effect/vitest"
import { JsonRpcError } from "effect-stdio/Schema"
import * as Effect from "effect/Effect"
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

  it.effect("is refused when there is nothing to rename", () =>
    Effect.gen(function*() {
      const { code } = yield* open({ "textDocument/prepareRename": () => Effect.succeed(null) })
      const { message } = yield* Effect.flip(code.rename(AT, silent))
      assert.include(message, "Nothing was renamed. There is nothing at this position that can be renamed.")
    }).pipe(Effect.provide(services)))
})

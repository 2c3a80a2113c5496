// Changes of several text files: the diff of them, and the writing of all or none.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { applyPatch } from "diff"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as PlatformError from "effect/PlatformError"
import { Buffer } from "node:buffer"
import { chmodSync, readdirSync, statSync } from "node:fs"
import * as Root from "../../examples/shared/Root.ts"
import * as TextChange from "../../examples/shared/TextChange.ts"
import * as Project from "../utils/project.ts"

const services = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)
const MAX_BYTES = 1024 * 1024

const open = Effect.gen(function*() {
  const project = yield* Project.make
  const root = yield* Root.make(project.folder)
  /** A change of a file as it is now. */
  const change = Effect.fnUntraced(function*(name: string, edit: (text: string) => string) {
    const place = yield* root.file(name)
    const before = yield* TextChange.read(place, MAX_BYTES)
    return { place, before, after: edit(before) }
  })
  return { project, root, change }
})

const upper = (text: string) => text.replaceAll("format", "FORMAT")

/** The real file system, with one operation of its own. */
const withRename = (rename: (rename: FileSystem.FileSystem["rename"]) => FileSystem.FileSystem["rename"]) =>
  Effect.updateService(FileSystem.FileSystem, (fs) => ({ ...fs, rename: rename(fs.rename) }))

describe("text files", () => {
  it.effect("are read as they are: ends of lines, byte order mark and all", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      project.write("mark.ts", "\uFEFFa\r\nb\nc")
      for (const name of ["mark.ts", "src/windows.ts", "src/größe 支出.ts"]) {
        assert.strictEqual(yield* TextChange.read(yield* root.file(name), MAX_BYTES), project.read(name))
      }
    }).pipe(Effect.provide(services)))

  it.effect("are refused when they are too large or no text", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      project.write("huge.ts", "x".repeat(11))
      project.write("latin.ts", Buffer.from("größe", "latin1"))
      const large = yield* Effect.flip(TextChange.read(yield* root.file("huge.ts"), 10))
      assert.strictEqual(large.message, "\"huge.ts\" has 11 bytes, and files of at most 10 are read.")
      const latin = yield* Effect.flip(TextChange.read(yield* root.file("latin.ts"), 10))
      assert.include(latin.message, "not text in UTF-8")
    }).pipe(Effect.provide(services)))
})

describe("a diff of changes", () => {
  it.effect("can be applied by whoever reads it", () =>
    Effect.gen(function*() {
      const { change } = yield* open
      for (const name of ["src/windows.ts", "src/ledger.ts", "src/größe 支出.ts"]) {
        const one = yield* change(name, upper)
        const diff = TextChange.toDiff([one])
        assert.isTrue(diff.startsWith(`--- a/${name}\n+++ b/${name}\n@@ `), diff)
        assert.strictEqual(applyPatch(one.before, diff, { autoConvertLineEndings: false }), one.after)
      }
    }).pipe(Effect.provide(services)))

  it.effect("tells of a missing newline at the end", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      project.write("end.ts", "a\nb")
      const diff = TextChange.toDiff([yield* change("end.ts", () => "a\nc")])
      assert.strictEqual(
        diff,
        "--- a/end.ts\n+++ b/end.ts\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n" +
          "\\ No newline at end of file\n"
      )
    }).pipe(Effect.provide(services)))
})

describe("a diff of very many lines", () => {
  it.effect("can be applied, too", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      const lines = (word: string) => Array.from({ length: 5_000 }, (_, index) => `${word} ${index}`).join("\n")
      project.write("many.ts", lines("old"))
      const one = yield* change("many.ts", () => `${lines("new")}\n`)
      const diff = TextChange.toDiff([one])
      assert.include(diff, "\n@@ -1,5000 +1,5000 @@\n")
      assert.strictEqual(applyPatch(one.before, diff), one.after)
    }).pipe(Effect.provide(services)))
})

describe("writing changes", () => {
  it.effect("changes these files, keeps their permissions, and leaves nothing beside them", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      chmodSync(project.path("src/windows.ts"), 0o640)
      const before = project.files()
      const changes = yield* Effect.forEach(["src/windows.ts", "src/größe 支出.ts"], (name) => change(name, upper))
      yield* TextChange.write(changes)
      const expected = Object.fromEntries(
        Object.entries(before).map(([name, text]) =>
          changes.some(({ place }) => place.name === name) ? [name, upper(text)] : [name, text]
        )
      )
      assert.deepStrictEqual(project.files(), expected)
      assert.strictEqual(statSync(project.path("src/windows.ts")).mode & 0o777, 0o640)
    }).pipe(Effect.provide(services)))

  it.effect("writes none when one of them changed in between", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      const changes = yield* Effect.forEach(["src/ledger.ts", "src/windows.ts"], (name) => change(name, upper))
      project.write("src/windows.ts", "// somebody else\n")
      const before = project.files()
      const error = yield* Effect.flip(TextChange.write(changes))
      assert.include(error.message, "\"src/windows.ts\" changed in the meantime. Nothing was written.")
      assert.deepStrictEqual(project.files(), before)
    }).pipe(Effect.provide(services)))

  it.effect("writes none when one of them is read-only", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      chmodSync(project.path("src/windows.ts"), 0o444)
      const before = project.files()
      const changes = yield* Effect.forEach(["src/ledger.ts", "src/windows.ts"], (name) => change(name, upper))
      const { reason } = yield* Effect.flip(TextChange.write(changes))
      assert.strictEqual(reason._tag, "NoPermission")
      assert.deepStrictEqual(project.files(), before)
    }).pipe(Effect.provide(services)))

  it.effect("takes back what it has exchanged when the system refuses the next", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      const changes = yield* Effect.forEach(
        ["src/ledger.ts", "src/report.ts", "src/windows.ts"],
        (name) => change(name, upper)
      )
      const before = project.files()
      const seen: Array<number> = []
      const error = yield* Effect.flip(
        TextChange.write(changes).pipe(
          withRename((rename) => (from, to) => {
            if (to.endsWith("windows.ts")) {
              return Effect.fail(PlatformError.systemError({
                _tag: "Unknown",
                module: "FileSystem",
                method: "rename",
                pathOrDescriptor: to,
                cause: Object.assign(new Error("no space left on device"), { code: "ENOSPC" })
              }))
            }
            return Effect.tap(rename(from, to), () =>
              Effect.sync(() => seen.push(readdirSync(project.path("src")).length)))
          })
        )
      )
      assert.strictEqual(error.reason._tag, "Refused")
      assert.include(error.message, "\"src/windows.ts\" could not be written: there is no room left on the disk")
      // two went ahead, and two came back
      assert.strictEqual(seen.length, 4)
      assert.deepStrictEqual(project.files(), before)
    }).pipe(Effect.provide(services)))

  it.effect("changes all or none when it is interrupted", () =>
    Effect.gen(function*() {
      const { change, project } = yield* open
      const changes = yield* Effect.forEach(["src/ledger.ts", "src/windows.ts"], (name) => change(name, upper))
      const renaming = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const fiber = yield* TextChange.write(changes).pipe(
        withRename((rename) => (from, to) =>
          Deferred.succeed(renaming, undefined).pipe(
            Effect.andThen(Deferred.await(goOn)),
            Effect.andThen(rename(from, to))
          )
        ),
        Effect.forkChild
      )
      yield* Deferred.await(renaming)
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(interrupted)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(changes.map(({ place }) => project.read(place.name)), changes.map(({ after }) => after))
      assert.deepStrictEqual(readdirSync(project.path("src")).filter((name) => name.endsWith(".tmp")), [])
    }).pipe(Effect.provide(services)))
})

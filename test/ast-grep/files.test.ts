import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, symlinkSync } from "node:fs"
import * as Files from "../../examples/ast-grep/files.ts"
import * as Root from "../../examples/shared/Root.ts"
import * as Project from "../utils/project.ts"
import { services } from "./support.ts"

const list = Effect.fnUntraced(function*(project: Project.Project, wanted?: Partial<Files.Wanted>) {
  const root = yield* Root.make(project.folder)
  return yield* Files.list(root, {
    matches: (path) => /\.[jt]s$/.test(path),
    excludes: () => false,
    maxFiles: 1_000,
    deadline: Infinity,
    ...wanted
  })
})

const FIXTURE = ["src/broken.ts", "src/größe 支出.ts", "src/ledger.ts", "src/report.ts", "src/windows.ts"]

describe("the files of a project", () => {
  it.effect("are listed by path, without links, node_modules, and what .gitignore names", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write(".git/hooks/a.ts", "")
      project.write("deep/.git/a.ts", "")
      assert.deepStrictEqual(yield* list(project), { files: FIXTURE, skipped: [], rest: undefined })
    }).pipe(Effect.provide(services)))

  it.effect("obey nested .gitignore files, exceptions, and the innermost one", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("src/kept.generated.ts", "")
      project.write("lib/.gitignore", "\uFEFF*.ts\n!/b.ts\n/sub/x.ts\n")
      for (const name of ["a.ts", "b.ts", "sub/b.ts", "sub/x.js", "A.TS"]) project.write(`lib/${name}`, "")
      project.write("lib/own/.gitignore", "!a.ts\r\n!deep/\r\nDEEP/\r\n")
      for (const name of ["a.ts", "c.ts", "deep/d.js"]) project.write(`lib/own/${name}`, "")
      project.write("tree/.gitignore", "skip/\n")
      for (const name of ["skip/a.ts", "a/skip/a.ts", "skip.ts"]) project.write(`tree/${name}`, "")
      project.write("back/.gitignore", "!dist/\n")
      for (const name of ["dist/a.ts", "dist/b.generated.ts"]) project.write(`back/${name}`, "")
      const { files } = yield* list(project)
      assert.deepStrictEqual(files.filter((file) => !file.startsWith("src/")), [
        "back/dist/a.ts",
        "lib/b.ts",
        "lib/own/a.ts",
        "lib/own/deep/d.js",
        "lib/sub/x.js",
        "tree/skip.ts"
      ])
      assert.include(files, "src/kept.generated.ts")
      assert.notInclude(files, "src/table.generated.ts")
    }).pipe(Effect.provide(services)))

  it.effect("are those of node_modules only when a .gitignore takes it back in", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write(".gitignore", "!node_modules/\n")
      const { files } = yield* list(project)
      assert.deepStrictEqual(files.slice(0, 2), ["dist/ledger.js", "node_modules/left/index.js"])
    }).pipe(Effect.provide(services)))

  it.effect("do not depend on a .gitignore outside of the root, or behind a link", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("../.gitignore", "*.ts\n")
      project.write("links/a.ts", "")
      project.write("rules", "*.ts\n")
      symlinkSync(project.path("rules"), project.path("links/.gitignore"))
      assert.include((yield* list(project)).files, "links/a.ts")
    }).pipe(Effect.provide(services)))

  it.effect("are listed piece by piece, whatever ends a piece", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      for (const name of ["a.ts", "a/b.ts", "a/b/c.ts", "a/b/d/e.ts", "a-b/c.ts", "z/a.ts"]) project.write(name, "")
      const { files: all } = yield* list(project)
      assert.deepStrictEqual(all.slice(0, 6), ["a/b/c.ts", "a/b/d/e.ts", "a/b.ts", "a-b/c.ts", "a.ts", "src/broken.ts"])
      for (const limit of [{ maxFiles: 1 }, { maxFiles: 2 }, { deadline: 0 }]) {
        const found: Array<string> = []
        let from: string | undefined
        let because: string | undefined
        let rounds = 0
        do {
          const { files, rest } = yield* list(project, { ...limit, from })
          found.push(...files)
          because ??= rest?.because
          from = rest?.from
          rounds++
        } while (from !== undefined && rounds < 100)
        assert.deepStrictEqual(found, all)
        assert.strictEqual(because, "deadline" in limit ? "time" : "files")
        assert.isAbove(rounds, 3)
      }
    }).pipe(Effect.provide(services)))

  it.effect("are not sought in more than 64 folders in each other", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const deep = (levels: number) => Array.from({ length: levels }, () => "d").join("/")
      mkdirSync(project.path(deep(70)), { recursive: true })
      project.write(`${deep(64)}/a.ts`, "")
      project.write(`${deep(65)}/b.ts`, "")
      const { files, skipped } = yield* list(project)
      assert.deepStrictEqual(files, [`${deep(64)}/a.ts`, ...FIXTURE])
      assert.deepStrictEqual(skipped, [{ file: deep(65), reason: "too many folders in each other" }])
    }).pipe(Effect.provide(services)))

  it.effect("do not take long for rules that could", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("lib/.gitignore", `${"**/d/".repeat(30)}x.ts\n**/a.ts\n`)
      project.write(`lib/${"d/".repeat(60)}x.ts`, "")
      project.write("lib/d/a.ts", "")
      const { files, skipped } = yield* list(project)
      assert.deepStrictEqual(files.filter((file) => file.startsWith("lib/")), [`lib/${"d/".repeat(60)}x.ts`])
      assert.deepStrictEqual(skipped, [{ file: "lib/.gitignore", reason: "rules with more than 3 ** were left out" }])
    }).pipe(Effect.provide(services)))

  it.effect("are sought on when a .gitignore cannot be read, and it is named", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("lib/.gitignore", new Uint8Array([0xff, 0xfe]))
      project.write("lib/a.ts", "")
      const { files, skipped } = yield* list(project)
      assert.include(files, "lib/a.ts")
      assert.deepStrictEqual(skipped, [{ file: "lib/.gitignore", reason: "not text in UTF-8" }])
    }).pipe(Effect.provide(services)))
})

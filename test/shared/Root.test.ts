// The folder that an example server works in.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as PlatformError from "effect/PlatformError"
import { renameSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Root from "../../examples/shared/Root.ts"
import * as Project from "../utils/project.ts"

const services = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)

const open = Effect.gen(function*() {
  const project = yield* Project.make
  return { project, root: yield* Root.make(project.folder) }
})

/** What the client would be told. */
const refusal = <A>(
  root: Root.Root,
  path: string,
  find: (root: Root.Root, path: string) => Effect.Effect<A, unknown>
) => Effect.map(Effect.flip(find(root, path)), String)

const found = (root: Root.Root, path: string) => root.find(path)

describe("the root of a project", () => {
  it.effect("finds files and folders by relative and absolute paths, and names them relative to itself", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      const names = ["src/ledger.ts", "./src/../src/ledger.ts", project.path("src/ledger.ts"), "src", "", "."]
      const places = yield* Effect.forEach(names, root.find)
      assert.deepStrictEqual(places.map(({ name }) => name), [
        "src/ledger.ts",
        "src/ledger.ts",
        "src/ledger.ts",
        "src",
        "",
        ""
      ])
      assert.deepStrictEqual(places.map(({ given }) => given), names)
      assert.strictEqual((yield* root.find("src/größe 支出.ts")).path, project.path("src/größe 支出.ts"))
    }).pipe(Effect.provide(services)))

  it.effect("follows a link that stays inside, and gives the file its own name", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      const { name, path } = yield* root.find("inside.ts")
      assert.deepStrictEqual({ name, path }, { name: "src/ledger.ts", path: project.path("src/ledger.ts") })
    }).pipe(Effect.provide(services)))

  it.effect("refuses whatever leads out, and tells nothing about what is there", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      const paths = [
        "..",
        "../elsewhere/outside.ts",
        "../elsewhere/missing.ts",
        "src/../../elsewhere",
        project.outside,
        "/",
        "/etc/passwd",
        "outside.ts",
        "elsewhere",
        "elsewhere/outside.ts",
        `${project.folder}-beside/file.ts`
      ]
      for (const path of paths) {
        const message = yield* refusal(root, path, found)
        assert.include(message, "leads out of the server's folder", path)
        assert.notInclude(message.replaceAll(path, ""), dirname(project.folder))
      }
    }).pipe(Effect.provide(services)))

  it.effect("finds nothing where nothing is", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      symlinkSync("circle.ts", project.path("circle.ts"))
      symlinkSync("gone.ts", project.path("dangling.ts"))
      for (
        const path of [
          "missing.ts",
          "src/ledger.ts/part",
          "a\0b",
          "x".repeat(5_000),
          "circle.ts",
          "dangling.ts",
          "elsewhere/missing.ts"
        ]
      ) {
        assert.include(yield* refusal(root, path, found), "Check the spelling", path)
      }
    }).pipe(Effect.provide(services)))

  it.effect("says when a file or a folder is needed and the other is there", () =>
    Effect.gen(function*() {
      const { root } = yield* open
      assert.include(yield* refusal(root, "src", (root, path) => root.file(path)), "\"src\" is not a file")
      assert.include(yield* refusal(root, "inside.ts", (root, path) => root.directory(path)), "is not a folder")
      assert.strictEqual((yield* root.file("inside.ts")).info.type, "File")
      assert.strictEqual((yield* root.directory("src")).info.type, "Directory")
    }).pipe(Effect.provide(services)))

  it.effect("is the same folder behind a link", () =>
    Effect.gen(function*() {
      const { project } = yield* open
      const link = join(dirname(project.folder), "link")
      symlinkSync(project.folder, link)
      const root = yield* Root.make(link)
      assert.strictEqual(root.folder, project.folder)
      assert.strictEqual((yield* root.find(join(link, "src/ledger.ts"))).name, "src/ledger.ts")
      assert.strictEqual(root.nameOf(join(link, "src/ledger.ts")), "src/ledger.ts")
      assert.strictEqual(root.nameOf(project.path("src/ledger.ts")), "src/ledger.ts")
      assert.isUndefined(root.nameOf(project.outside))
    }).pipe(Effect.provide(services)))

  it.effect("cannot be a folder that is not there", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(Root.make("/nothing/here")))._tag, "PlatformError")
    }).pipe(Effect.provide(services)))

  it.effect("says when it has been moved away meanwhile", () =>
    Effect.gen(function*() {
      const { project, root } = yield* open
      renameSync(project.folder, `${project.folder}-moved`)
      assert.include(yield* refusal(root, "", found), "The server's folder is not there any more")
    }).pipe(Effect.provide(services)))

  it.effect("says when permissions are missing", () =>
    Effect.gen(function*() {
      const { project } = yield* open
      const denied = (path: string) =>
        Effect.fail(PlatformError.systemError({
          _tag: "PermissionDenied",
          module: "FileSystem",
          method: "realPath",
          pathOrDescriptor: path
        }))
      const root = yield* Effect.updateService(
        Root.make(project.folder),
        FileSystem.FileSystem,
        (fs) => ({ ...fs, realPath: (path) => path.endsWith("ledger.ts") ? denied(path) : fs.realPath(path) })
      )
      assert.include(yield* refusal(root, "src/ledger.ts", found), "permissions do not allow it")
    }).pipe(Effect.provide(services)))
})

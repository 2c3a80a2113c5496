/**
 * A small project of somebody, for servers that work on one: a copy of `test/fixtures/project` that a test may change.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const FIXTURE = fileURLToPath(new URL("../fixtures/project", import.meta.url))

/** What stands in the file outside of the project, and must never be seen by a client. */
export const SECRET = "the-secret-outside"

export interface Project {
  /** Absolute and without links. */
  readonly folder: string
  /** The path of a file outside of the folder: `export const secret = …`. */
  readonly outside: string
  readonly path: (name: string) => string
  readonly read: (name: string) => string
  /** Writes a file; its folders are made. */
  readonly write: (name: string, text: string | Uint8Array) => void
  /** All files that are no links, with what is in them: to say that nothing else has changed. */
  readonly files: () => Readonly<Record<string, string>>
}

/**
 * Copies the project into a new folder, which is removed with the scope.
 *
 * Beside the files of the fixture it has a `.gitignore`, ignored files in `dist` and `node_modules`, the link `inside.ts`
 * to a file of the project, and the links `outside.ts` and `elsewhere` (a folder) to what is not in it.
 */
export const make: Effect.Effect<Project, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "effect-stdio-project-")))),
    (parent) => Effect.sync(() => rmSync(parent, { recursive: true }))
  ),
  (parent) => {
    const folder = join(parent, "project")
    const elsewhere = join(parent, "elsewhere")
    const outside = join(elsewhere, "outside.ts")
    const path = (name: string) => join(folder, name)
    const write = (name: string, text: string | Uint8Array) => {
      mkdirSync(dirname(path(name)), { recursive: true })
      writeFileSync(path(name), text)
    }
    cpSync(FIXTURE, folder, { recursive: true })
    renameSync(path("gitignore"), path(".gitignore"))
    mkdirSync(elsewhere)
    writeFileSync(outside, `export const secret = "${SECRET}"\n`)
    write("dist/ledger.js", "export const sum = (entries) => entries.length\n")
    write("node_modules/left/index.js", "export const sum = (left) => left\n")
    write("src/table.generated.ts", "export const sum = 1\n")
    symlinkSync("src/ledger.ts", path("inside.ts"))
    symlinkSync(outside, path("outside.ts"))
    symlinkSync(elsewhere, path("elsewhere"))
    return {
      folder,
      outside,
      path,
      read: (name) => readFileSync(path(name), "utf8"),
      write,
      files: () =>
        Object.fromEntries(
          readdirSync(folder, { recursive: true, withFileTypes: true })
            .filter((entry) => entry.isFile())
            .map((entry) => join(entry.parentPath, entry.name))
            .toSorted()
            .map((file) => [relative(folder, file), Buffer.from(readFileSync(file)).toString("latin1")])
        )
    }
  }
)

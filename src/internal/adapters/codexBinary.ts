/**
 * Where codex is: the native program, which is started directly. The launcher of the npm package would be one more process
 * between us and it.
 *
 * @since 0.1.0
 */
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import { readdirSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { delimiter, dirname, isAbsolute, join } from "node:path"
import process from "node:process"
import { pathToFileURL } from "node:url"
import { variable } from "./windowsCommand.ts"

/** What the search needs of the system; tests have one of their own. @internal */
export interface System {
  readonly platform: string
  readonly arch: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of a package, as a module at this address would find it. */
  readonly packageFolder: (name: string, from: string) => string | undefined
  readonly files: (folder: string) => ReadonlyArray<string>
  readonly isFile: (path: string) => boolean
  /** Addresses of the modules that may have codex among their dependencies: the application, and this library. */
  readonly from: ReadonlyArray<string>
}

/** @internal */
export const system = (
  env: Readonly<Record<string, string | Redacted.Redacted<string> | undefined>> = {}
): System => ({
  platform: process.platform,
  arch: process.arch,
  env: {
    ...process.env,
    ...Record.map(env, (value) => Redacted.isRedacted(value) ? Redacted.value(value) : value)
  },
  from: [pathToFileURL(join(process.cwd(), "package.json")).href, import.meta.url],
  packageFolder: (name, from) => {
    try {
      return dirname(createRequire(from).resolve(`${name}/package.json`))
    } catch {
      return undefined
    }
  },
  files: (folder) => {
    try {
      return readdirSync(folder)
    } catch {
      return []
    }
  },
  isFile: (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true
})

/**
 * The program: from the package of this platform that `@openai/codex` depends on, else what `CODEX_PATH` says, else what
 * `PATH` finds. A `CODEX_PATH` that is no file is taken as it is, so that starting it says so.
 *
 * @internal
 */
export const findCodex = (system: System): string | undefined => {
  const { arch, env, files, from, isFile, packageFolder, platform } = system
  const name = platform === "win32" ? "codex.exe" : "codex"
  for (const start of from) {
    const launcher = packageFolder("@openai/codex", start)
    if (launcher === undefined) continue
    const native = packageFolder(
      `@openai/codex-${platform}-${arch}`,
      pathToFileURL(join(launcher, "package.json")).href
    )
    if (native === undefined) continue
    const vendor = join(native, "vendor")
    const binary = files(vendor).map((target) => join(vendor, target, "bin", name)).find(isFile)
    if (binary !== undefined) return binary
  }
  if (env["CODEX_PATH"]) return env["CODEX_PATH"]
  // what a relative folder means depends on where the program is started, and the start knows that
  const path = (platform === "win32" ? variable(env, "PATH") : env["PATH"]) ?? ""
  return path.split(delimiter).filter((folder) => isAbsolute(folder)).map((folder) => join(folder, name)).find(isFile)
}

/**
 * Whether a program is there, without starting it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import { access } from "node:fs/promises"
import { delimiter, join, resolve } from "node:path"

/**
 * Whether the system would find a program: at its path, or by its name in the `PATH` that it is started with.
 *
 * @category guards
 * @since 0.1.0
 */
export const isInstalled = (
  command: string,
  folder: string,
  env: Readonly<Record<string, string>> | undefined
): Effect.Effect<boolean> => {
  const folders = (env?.["PATH"] ?? process.env["PATH"] ?? "").split(delimiter)
  const paths = /[\\/]/.test(command)
    ? [resolve(folder, command)]
    : folders.flatMap((folder) => ENDINGS.map((ending) => join(folder, command + ending)))
  return Effect.promise(() =>
    Promise.any(paths.map((path) => access(path, constants.X_OK))).then(() => true, () => false)
  )
}

const ENDINGS = process.platform === "win32"
  ? ["", ...(process.env["PATHEXT"] ?? ".EXE;.CMD;.BAT").split(";")]
  : [""]

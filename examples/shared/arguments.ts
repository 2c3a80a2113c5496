/**
 * What a server is started with: checked before anything begins, so that a mistake is a sentence on standard error.
 *
 * @since 0.1.0
 */
import { statSync } from "node:fs"
import { parseArgs, type ParseArgsConfig } from "node:util"

/** The exit code of a program that was started in the wrong way. */
const USAGE = 2

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/**
 * The words of the command line, as `parseArgs` of Node reads them; one that it does not know ends the program.
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse = <T extends ParseArgsConfig>(server: string, config: T): ReturnType<typeof parseArgs<T>> => {
  try {
    return parseArgs(config)
  } catch (error) {
    return refuse(server, error instanceof Error ? error.message : String(error))
  }
}

/**
 * The folder that the server works in: the one that was given, else the working directory.
 *
 * @category constructors
 * @since 0.1.0
 */
export const folderOf = (server: string, [folder, ...others]: ReadonlyArray<string>): string => {
  if (others.length > 0) return refuse(server, "there is more than one folder; put one with spaces in quotes")
  if (folder === undefined) return process.cwd()
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return folder
  return refuse(server, `${folder} is not a folder; give one that exists, or none for the working directory`)
}

/**
 * A time, in milliseconds, that was given like 200ms, 5s or 1m.
 *
 * @category constructors
 * @since 0.1.0
 */
export const millisOf = (server: string, option: string, text: string): number => {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? []
  return amount === undefined
    ? refuse(server, `--${option} is ${text}; write it like 200ms, 5s or 1m`)
    : Number(amount) * (UNITS[unit] ?? 1)
}

const refuse = (server: string, problem: string): never => {
  console.error(`${server}: ${problem}`)
  process.exit(USAGE)
}

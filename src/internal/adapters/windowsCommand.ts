/**
 * How a command is started on Windows, as a pure plan: what `PATHEXT` finds, and the batch files among it through
 * `cmd.exe`, whose rules of quoting differ from those of every other program.
 *
 * Node refuses to start a batch file without a shell, and its shell option joins arguments unquoted; so `npx`, which is
 * `npx.cmd`, fails one way or lets its arguments run as commands the other way.
 *
 * @since 0.1.0
 */
import { win32 } from "node:path"

/** @internal */
export interface Plan {
  readonly _tag: "Plan"
  readonly file: string
  readonly args: ReadonlyArray<string>
  /** Whether `args` are quoted already. */
  readonly verbatim: boolean
}

/** @internal */
export type Refusal =
  | { readonly _tag: "NotFound" }
  /** The file is there, and of no kind that can be started. */
  | { readonly _tag: "NotExecutable" }
  /** An argument of a batch file that no quoting can carry; counted from 0. */
  | { readonly _tag: "InvalidArgument"; readonly index: number }

/** @internal */
export interface System {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly isFile: (path: string) => boolean
}

const DEFAULT_PATHEXT = ".COM;.EXE;.BAT;.CMD"
const PROGRAMS = new Set([".exe", ".com"])
const BATCH_FILES = new Set([".cmd", ".bat"])

/** @internal */
export const planWindows = (command: string, args: ReadonlyArray<string>, system: System): Plan | Refusal => {
  const file = find(command, system)
  if (typeof file !== "string") return file
  const extension = win32.extname(file).toLowerCase()
  if (PROGRAMS.has(extension)) return { _tag: "Plan", file, args, verbatim: false }
  if (!BATCH_FILES.has(extension)) return { _tag: "NotExecutable" }
  return runnerScript(file, args, system) ?? batch(file, args, system)
}

/** The value of an environment variable, whose name has no case on Windows. @internal */
export const variable = (env: System["env"], name: string): string | undefined => {
  const key = Object.keys(env).find((key) => key.toLowerCase() === name.toLowerCase())
  return key === undefined ? undefined : env[key]
}

/** What a name stands for: never a file of the current directory, where a downloaded one might lie. */
const find = (command: string, { cwd, env, isFile }: System): string | Refusal => {
  const pathext = (variable(env, "PATHEXT") ?? DEFAULT_PATHEXT).split(";").filter((extension) => extension !== "")
  const own = win32.extname(command).toLowerCase()
  // `npx` itself is a shell script for other systems, beside `npx.cmd`
  const isComplete = pathext.some((extension) => extension.toLowerCase() === own)
  const names = [...(isComplete ? [command] : []), ...pathext.map((extension) => command + extension.toLowerCase())]
  const folders = /[\\/:]/.test(command)
    ? [cwd]
    : (variable(env, "PATH") ?? "").split(";").map((folder) => folder.replaceAll("\"", "")).filter((folder) =>
      win32.isAbsolute(folder)
    )
  for (const folder of folders) {
    for (const name of names) {
      const path = win32.resolve(folder, name)
      if (isFile(path)) return path
    }
  }
  return { _tag: folders.some((folder) => isFile(win32.resolve(folder, command))) ? "NotExecutable" : "NotFound" }
}

/** `npx.cmd` and `npm.cmd` only start a script with the Node beside them: then no shell is needed. */
const runnerScript = (file: string, args: ReadonlyArray<string>, { isFile }: System): Plan | undefined => {
  const name = win32.basename(file).toLowerCase()
  if (name !== "npx.cmd" && name !== "npm.cmd") return undefined
  const folder = win32.dirname(file)
  const node = win32.join(folder, "node.exe")
  const script = win32.join(folder, "node_modules", "npm", "bin", name === "npx.cmd" ? "npx-cli.js" : "npm-cli.js")
  return isFile(node) && isFile(script)
    ? { _tag: "Plan", file: node, args: [script, ...args], verbatim: false }
    : undefined
}

const batch = (file: string, args: ReadonlyArray<string>, { env }: System): Plan | Refusal => {
  const index = args.findIndex((arg) => /[\0\r\n]/.test(arg))
  if (index >= 0) return { _tag: "InvalidArgument", index }
  const root = variable(env, "SystemRoot") ?? "C:\\Windows"
  return {
    _tag: "Plan",
    file: variable(env, "ComSpec") ?? win32.join(root, "System32", "cmd.exe"),
    // extensions on, delayed expansion off, no AutoRun, and only the outermost quotes stripped
    args: ["/e:ON", "/v:OFF", "/d", "/s", "/c", `"${[file, ...args].map(quote).join(" ")}"`],
    verbatim: true
  }
}

/**
 * Quotes an argument for cmd.exe and for the program that gets it in the end. Everything is inside of quotes, where
 * `& | < > ^ ( ) !` mean nothing; a quote is doubled, which leaves cmd.exe inside and is a quote for the program; a
 * percent sign would be expanded even there, so that an empty part of the variable `cd` stands between it and a name.
 */
const quote = (arg: string): string =>
  `"${
    arg
      .replaceAll("%", "%%cd:~,%")
      .replaceAll(/(\\*)"/g, "$1$1\"\"")
      .replace(/\\+$/, "$&$&")
  }"`

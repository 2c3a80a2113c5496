/**
 * Which bash runs the commands: Git Bash on Windows, the system's elsewhere.
 *
 * A variable that is set decides alone: when it is wrong, nothing else is taken instead. Everything that was looked at is
 * told, with the reason why it was refused.
 *
 * @since 0.1.0
 */
import { accessSync, constants, statSync } from "node:fs"
import * as NodePath from "node:path"

/**
 * What is at a path.
 *
 * @category models
 * @since 0.1.0
 */
export type Kind = "program" | "folder" | "not executable" | "nothing"

/**
 * The machine, as far as it matters here.
 *
 * @category models
 * @since 0.1.0
 */
export interface System {
  readonly platform: NodeJS.Platform
  readonly environment: Readonly<Record<string, string | undefined>>
  /** What is at an absolute path. */
  readonly exists: (path: string) => Kind
  /** The files of this name in the folders of `PATH`, in their order. */
  readonly where: (name: string) => ReadonlyArray<string>
}

/**
 * A place that was looked at; `refused` is the end of a sentence that begins with its path, and absent where bash was
 * found.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tried {
  readonly path: string
  /** How the place was found: a variable, a usual place, or PATH. */
  readonly source: string
  readonly refused?: string
}

/**
 * What was found out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Found {
  readonly bash: { readonly path: string; readonly source: string } | undefined
  /** The variable that names something wrong. */
  readonly wrong: { readonly variable: string; readonly value: string; readonly why: string } | undefined
  readonly tried: ReadonlyArray<Tried>
}

const OVERRIDE = "EFFECT_STDIO_BASH"
/** Names that other programs use for Git Bash. */
const GIT_BASH_OVERRIDES = [OVERRIDE, "OMO_CODEX_GIT_BASH_PATH", "GIT_BASH_PATH"]

/** Below the folder of Git; the first also sets up the paths of its programs. */
const IN_GIT = [["bin", "bash.exe"], ["usr", "bin", "bash.exe"]]
/** Folders of `git.exe` below that of Git. */
const GIT_PROGRAMS = /^(cmd|bin|(?:mingw32|mingw64|clangarm64|usr)[\\/]bin)$/i
/** Folders of the launchers of WSL, whose bash has other paths and other programs. */
const WSL = /[\\/](system32|sysnative|syswow64|windowsapps)[\\/][^\\/]*$/i

const USUAL = [
  "/bin/bash",
  "/usr/bin/bash",
  "/usr/local/bin/bash",
  "/opt/homebrew/bin/bash",
  "/run/current-system/sw/bin/bash"
]

/**
 * Looks for bash.
 *
 * **Details**
 *
 * On Windows: `EFFECT_STDIO_BASH`, `OMO_CODEX_GIT_BASH_PATH`, `GIT_BASH_PATH` (a program, or the folder of Git); Git's
 * usual folders; beside each `git.exe` in `PATH`; each `bash.exe` in `PATH`. The launchers of WSL are refused everywhere.
 * Elsewhere: `EFFECT_STDIO_BASH`; `PATH`; the usual places.
 *
 * @category constructors
 * @since 0.1.0
 */
export const findBash = (system: System): Found => {
  const isWindows = system.platform === "win32"
  const path = isWindows ? NodePath.win32 : NodePath.posix
  const variable = (name: string) => variableOf(system, name)
  const tried: Array<Tried> = []

  /** Looks at a place once, and notes what is wrong with it. */
  const look = (candidate: string, source: string): Found | undefined => {
    const key = isWindows ? candidate.toLowerCase() : candidate
    if (tried.some(({ path }) => (isWindows ? path.toLowerCase() : path) === key)) return undefined
    const refused = isWindows && WSL.test(candidate)
      ? "is the launcher of WSL, not Git Bash"
      : refusals[system.exists(candidate)]
    tried.push({ path: candidate, source, ...(refused === undefined ? {} : { refused }) })
    return refused === undefined ? { bash: { path: candidate, source }, wrong: undefined, tried } : undefined
  }
  const lookInGit = (folder: string, source: string) =>
    firstOf(IN_GIT, (names) => look(path.join(folder, ...names), source))

  for (const name of isWindows ? GIT_BASH_OVERRIDES : [OVERRIDE]) {
    const value = variable(name)
    if (value === undefined) continue
    const given = unquoted(value)
    const wrong = (why: string): Found => ({ bash: undefined, wrong: { variable: name, value, why }, tried })
    if (!path.isAbsolute(given)) {
      tried.push({ path: given, source: name, refused: "is not an absolute path" })
      return wrong("is not an absolute path")
    }
    const isGitFolder = isWindows && system.exists(given) === "folder"
    const found = isGitFolder ? lookInGit(given, name) : look(given, name)
    return found ?? wrong(isGitFolder ? "is a folder without bin\\bash.exe" : tried.at(-1)?.refused ?? "is not there")
  }

  const none: Found = { bash: undefined, wrong: undefined, tried }
  if (!isWindows) {
    return firstOf(system.where("bash"), (place) => look(place, "PATH")) ??
      firstOf(USUAL, (place) => look(place, "usual place")) ??
      none
  }
  return firstOf(usualGitFolders(variable), ({ folder, source }) => lookInGit(folder, source)) ??
    firstOf(
      system.where("git.exe"),
      (git) => firstOf(gitFolders(git), (folder) => lookInGit(folder, "git.exe in PATH"))
    ) ??
    firstOf(system.where("bash.exe"), (place) => look(place, "PATH")) ??
    none
}

/**
 * This machine.
 *
 * @category constructors
 * @since 0.1.0
 */
export const thisSystem = (): System => ({
  platform: process.platform,
  environment: process.env,
  exists,
  where: (name) =>
    (variableOf({ environment: process.env, platform: process.platform }, "PATH") ?? "").split(NodePath.delimiter)
      .map(unquoted)
      // a relative entry would name other programs in other folders
      .filter((folder) => NodePath.isAbsolute(folder))
      .map((folder) => NodePath.join(folder, name))
      .filter((file) => exists(file) !== "nothing")
})

/** The value of a variable, whose name has no case on Windows; undefined when it is empty. */
const variableOf = ({ environment, platform }: Pick<System, "environment" | "platform">, name: string) => {
  const value = platform === "win32"
    ? Object.entries(environment).find(([key]) => key.toUpperCase() === name.toUpperCase())?.[1]
    : environment[name]
  return value === undefined || value.trim() === "" ? undefined : value.trim()
}

const refusals: Record<Kind, string | undefined> = {
  program: undefined,
  folder: "is a folder, not a program",
  "not executable": "is not executable by this server",
  nothing: "does not exist"
}

const unquoted = (text: string): string => /^(["'])(.*)\1$/.exec(text.trim())?.[2] ?? text.trim()

const usualGitFolders = (variable: (name: string) => string | undefined) =>
  [
    ["ProgramFiles", "Git"],
    ["ProgramW6432", "Git"],
    ["ProgramFiles(x86)", "Git"],
    ["LocalAppData", "Programs\\Git"],
    ["UserProfile", "scoop\\apps\\git\\current"]
  ].flatMap(([name = "", below = ""]) => {
    const base = variable(name)
    return base === undefined ? [] : [{ folder: NodePath.win32.join(base, below), source: `%${name}%\\${below}` }]
  })

/** The folders of Git that a `git.exe` may belong to. */
const gitFolders = (git: string): ReadonlyArray<string> => {
  const path = NodePath.win32
  const folder = path.dirname(git)
  // a shim of scoop says nothing of where the program is, but scoop has one place for each
  if (path.basename(folder).toLowerCase() === "shims") {
    return [path.join(path.dirname(folder), "apps", "git", "current")]
  }
  const above = path.dirname(folder)
  return [path.dirname(above), above].filter((base) =>
    GIT_PROGRAMS.test(folder.slice(base.length).replace(/^[\\/]/, ""))
  )
}

const firstOf = <A, B>(items: ReadonlyArray<A>, look: (item: A) => B | undefined): B | undefined => {
  for (const item of items) {
    const found = look(item)
    if (found !== undefined) return found
  }
  return undefined
}

const exists = (path: string): Kind => {
  try {
    const info = statSync(path)
    if (info.isDirectory()) return "folder"
    if (!info.isFile()) return "not executable"
    accessSync(path, constants.X_OK)
    return "program"
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EACCES" ? "not executable" : "nothing"
  }
}

/**
 * Starts children with `node:child_process`, and knows what the operating system knows of them.
 *
 * Effect's `ChildProcessSpawner` is not used here, because what a Process promises would be lost in it: the signal that
 * ended a child is only in the text of an error; its pipes are read through a copy, and stay open when a grandchild
 * holds them; a batch file of Windows cannot be started with quoted arguments; the group is signalled with waits of real
 * time that nobody bounds; and the end of this process leaves the children behind.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type * as Sink from "effect/Sink"
import type * as Stream from "effect/Stream"
import type { ChildProcessByStdio } from "node:child_process"
import { execFile, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import type { Readable, Writable } from "node:stream"
import { readPipe, writePipe } from "./pipe.ts"
import { planWindows, variable } from "./windowsCommand.ts"

/** @internal */
export interface Spec {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string | undefined
  readonly env: Readonly<Record<string, string>>
}

/** How a process ended: one of both, or neither where that is not known. @internal */
export interface Ended {
  readonly exitCode?: number
  readonly signal?: string
}

/** Why nothing was started. @internal */
export type Refusal =
  | { readonly _tag: "NotFound" }
  | { readonly _tag: "NotExecutable"; readonly detail: string }
  | { readonly _tag: "BadWorkingDirectory" }
  | { readonly _tag: "InvalidArgument"; readonly detail: string }
  | { readonly _tag: "StartFailed"; readonly cause: unknown }

/** @internal */
export interface Child {
  readonly pid: number
  /** Takes the pieces to write, and ends standard input when it is over. */
  readonly stdin: Sink.Sink<void, Uint8Array, unknown, unknown>
  /** Standard output, to be run once. */
  readonly stdout: Stream.Stream<Uint8Array, unknown>
  /** Reads standard error from now on: each chunk, and undefined at its end. */
  readonly onStderr: (listener: (chunk: Uint8Array | undefined) => void) => void
  readonly exited: Effect.Effect<Ended>
  /** Returns when nothing more will be read from standard output and standard error. */
  readonly outputEnded: Effect.Effect<void>
  /** Reads standard output without a bound from now on, so that the child does not wait for it. */
  readonly release: Effect.Effect<void>
  /** Closes all pipes, also those that others hold open. */
  readonly close: Effect.Effect<void>
  /** Sends a signal to the process and all of its group; on Windows, where there are none, ends its tree. */
  readonly signal: (name: "SIGTERM" | "SIGKILL") => Effect.Effect<void>
  /** Whether the process and all of its group have ended. */
  readonly isGone: Effect.Effect<boolean>
}

/** @internal */
export interface Spawner {
  readonly isWindows: boolean
  /** The environment of this process. */
  readonly environment: Effect.Effect<Readonly<Record<string, string | undefined>>>
  readonly spawn: (spec: Spec) => Effect.Effect<Child, Refusal>
}

const isWindows = process.platform === "win32"

/** What starts processes: a test may put another in its place. @internal */
export const Spawner: Context.Reference<Spawner> = Context.Reference<Spawner>("effect-stdio/Process/Spawner", {
  defaultValue: () => ({
    isWindows,
    environment: Effect.sync(() => process.env),
    spawn: (spec) => Effect.flatMap(Effect.sync(() => launch(spec)), (start) => start)
  })
})

// -----------------------------------------------------------------------------
// starting
// -----------------------------------------------------------------------------

type Proc = ChildProcessByStdio<Writable, Readable, Readable>

const launch = (spec: Spec): Effect.Effect<Child, Refusal> => {
  const plan = isWindows
    ? planWindows(spec.command, spec.args, { env: spec.env, cwd: spec.cwd ?? process.cwd(), isFile })
    : { _tag: "Plan" as const, file: spec.command, args: spec.args, verbatim: false }
  switch (plan._tag) {
    case "NotFound":
      return Effect.fail(refusalOf({ code: "ENOENT" }, spec))
    case "NotExecutable":
      return Effect.fail({ _tag: "NotExecutable", detail: "Windows does not run files of this kind" })
    case "InvalidArgument":
      return Effect.fail({
        _tag: "InvalidArgument",
        detail: `argument ${plan.index + 1} has a line break, which a batch file cannot be given`
      })
  }
  if ([spec.command, ...spec.args].some((word) => word.includes("\0"))) {
    return Effect.fail({ _tag: "InvalidArgument", detail: "the command or an argument has a NUL character" })
  }
  // Node would say so too, and show the value
  const variableWithNul = Object.keys(spec.env).find((name) => `${name}${spec.env[name]}`.includes("\0"))
  if (variableWithNul !== undefined) {
    const detail = `the environment variable ${JSON.stringify(variableWithNul)} has a NUL character`
    return Effect.fail({ _tag: "InvalidArgument", detail })
  }
  let proc: Proc
  try {
    // pipes, and nothing of ours: a child that inherited standard input would read our host's messages
    proc = spawn(plan.file, plan.args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: spec.env,
      // a group of its own, so that what it starts can be ended with it
      detached: !isWindows,
      windowsHide: true,
      windowsVerbatimArguments: plan.verbatim,
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd })
    })
  } catch (error) {
    return Effect.fail(refusalOf(error, spec))
  }
  const exited = Deferred.makeUnsafe<Ended>()
  let isGroupEmpty = false
  proc.once("exit", (code, signal) => {
    // from here on the pid may be given to another process, unless somebody of the group is still there
    isGroupEmpty = isWindows || !groupExists(proc)
    // what it has left behind is still ours
    if (isGroupEmpty) living.delete(proc)
    Deferred.doneUnsafe(
      exited,
      Exit.succeed({ ...(code === null ? {} : { exitCode: code }), ...(signal === null ? {} : { signal }) })
    )
    watchExit()
  })
  return Effect.callback<Child, Refusal>((resume) => {
    // also later: an error without a listener would be thrown
    proc.on("error", (error) => resume(Effect.fail(refusalOf(error, spec))))
    proc.once("spawn", () => {
      living.add(proc)
      watchExit()
      resume(Effect.succeed(makeChild(proc, Deferred.await(exited), {
        hasExited: () => Deferred.isDoneUnsafe(exited),
        isGroupEmpty: () => isGroupEmpty
      })))
    })
  })
}

const makeChild = (
  proc: Proc,
  exited: Effect.Effect<Ended>,
  state: { readonly hasExited: () => boolean; readonly isGroupEmpty: () => boolean }
): Child => {
  const outputEnded = Deferred.makeUnsafe<void>()
  let open = 2
  const onEnd = () => {
    if (--open === 0) Deferred.doneUnsafe(outputEnded, Exit.void)
  }
  // what a broken pipe means is said by those who use it
  for (const stream of [proc.stdin, proc.stdout, proc.stderr]) stream.on("error", () => {})
  const stdout = readPipe(proc.stdout, onEnd)
  let isStderrOpen = true
  let listen: ((chunk: Uint8Array | undefined) => void) | undefined
  const endStderr = () => {
    if (!isStderrOpen) return
    isStderrOpen = false
    onEnd()
    listen?.(undefined)
  }
  proc.stderr.on("end", endStderr)
  proc.stderr.on("close", endStderr)

  return {
    pid: proc.pid ?? -1,
    stdin: writePipe(proc.stdin),
    stdout: stdout.stream,
    onStderr: (listener) => {
      listen = listener
      proc.stderr.on("data", (chunk: Uint8Array) => {
        if (isStderrOpen) listener(chunk)
      })
      if (!isStderrOpen) listener(undefined)
    },
    exited,
    outputEnded: Deferred.await(outputEnded),
    release: Effect.sync(stdout.release),
    close: Effect.sync(() => {
      proc.stdin.destroy()
      stdout.close()
      endStderr()
      proc.stderr.destroy()
    }),
    signal: (name) =>
      Effect.sync(() => {
        if (isWindows) {
          if (!state.hasExited()) execFile("taskkill", taskkillArgs(proc), { windowsHide: true }, () => {})
        } else if (!state.isGroupEmpty()) {
          signalGroup(proc, name)
        }
      }),
    isGone: Effect.sync(() => {
      const isGone = state.hasExited() && (state.isGroupEmpty() || !groupExists(proc) || isGroupDead(proc))
      if (isGone && living.delete(proc)) watchExit()
      return isGone
    })
  }
}

// -----------------------------------------------------------------------------
// groups
// -----------------------------------------------------------------------------

const taskkillArgs = (proc: Proc) => ["/pid", String(proc.pid), "/T", "/F"]

/** False when there is nobody to signal. */
const signalGroup = (proc: Proc, signal: NodeJS.Signals | 0): boolean => {
  if (proc.pid === undefined) return false
  try {
    process.kill(-proc.pid, signal)
    return true
  } catch {
    // ESRCH: there is none; EPERM: macOS says so of zombies
    return false
  }
}

const groupExists = (proc: Proc) => signalGroup(proc, 0)

/** Whether only zombies are left of a group, which a container without an init keeps for ever. */
const isGroupDead = (proc: Proc): boolean => {
  if (process.platform !== "linux") return false
  const group = String(proc.pid)
  const pids = processes()
  return pids !== undefined && pids.every((pid) => {
    const text = readText(`/proc/${pid}/stat`)
    // the name of the program, in parentheses, may hold spaces
    const [state, , member] = text.slice(text.lastIndexOf(")") + 2).split(" ")
    return member !== group || state === "Z" || state === "X"
  })
}

/** Undefined where `/proc` is not mounted. */
const processes = (): ReadonlyArray<string> | undefined => {
  try {
    return Fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  } catch {
    return undefined
  }
}

const readText = (path: string): string => {
  try {
    return Fs.readFileSync(path, "utf8")
  } catch {
    // gone between two looks
    return ""
  }
}

// Those whose scope is still open. When this process ends all the same, nobody is left who would end them in order.
const living = new Set<Proc>()
let isWatching = false

const killAll = () => {
  for (const proc of living) {
    if (isWindows) spawnSync("taskkill", taskkillArgs(proc), { windowsHide: true, timeout: 1_000 })
    else signalGroup(proc, "SIGKILL")
  }
}

/** Listens to the end of this process, with one listener, and only while there are children. */
const watchExit = () => {
  if (isWatching === living.size > 0) return
  isWatching = living.size > 0
  if (isWatching) process.on("exit", killAll)
  else process.off("exit", killAll)
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

const isFile = (path: string): boolean => {
  try {
    return Fs.statSync(path).isFile()
  } catch {
    return false
  }
}

const isFolder = (path: string): boolean => {
  try {
    return Fs.statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** The operating system says ENOENT and EACCES of several things: the program, its folder, what interprets it. */
const refusalOf = (error: unknown, spec: Spec): Refusal => {
  const code = Predicate.hasProperty(error, "code") ? error.code : undefined
  if (spec.cwd !== undefined && !isFolder(spec.cwd)) return { _tag: "BadWorkingDirectory" }
  const found = located(spec)
  if (code === "ENOENT" && found !== undefined) {
    return { _tag: "NotExecutable", detail: "what its first line names to interpret it does not exist" }
  }
  if (code === "ENOENT" || code === "ENOTDIR") return { _tag: "NotFound" }
  if (code === "EACCES" || code === "EPERM") {
    return {
      _tag: "NotExecutable",
      detail: isFolder(Path.resolve(spec.cwd ?? "", spec.command)) ? "it is a folder" : "it is not marked as executable"
    }
  }
  return { _tag: "StartFailed", cause: withoutArguments(error) }
}

/** The file that a command stands for, where there is one. */
const located = ({ command, cwd, env }: Spec): string | undefined => {
  if (isWindows) return undefined
  const folders = command.includes("/") ? [cwd ?? ""] : (variable(env, "PATH") ?? "").split(Path.delimiter)
  return folders.map((folder) => Path.resolve(folder, command)).find(isFile)
}

/** Node copies the arguments into its error, and among them may be secrets. */
const withoutArguments = (error: unknown): unknown => {
  if (Predicate.isObject(error)) Reflect.deleteProperty(error, "spawnargs")
  return error
}

/**
 * Starts a program for people, behind pipes or on a terminal of its own, and watches what it writes and how it ends.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

export interface Options {
  /** Variables over ours; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** Whether it gets a terminal instead of pipes, by `script` of util-linux. */
  readonly terminal?: boolean
  /** All of its input; without it the input stays open. */
  readonly input?: string
}

/** How a program ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Program {
  /** What it wrote so far; on a terminal all of it is in `out`, with what was typed. */
  readonly out: () => string
  readonly err: () => string
  readonly type: (text: string) => Effect.Effect<void>
  /** Sends a signal to the program itself. */
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Stops reading its standard output for good. */
  readonly closeOutput: Effect.Effect<void>
  /** Waits until the output holds this, after what an earlier wait has found. */
  readonly sees: (text: string) => Effect.Effect<void>
  /** How it ended, once all it wrote was read. */
  readonly ended: Effect.Effect<Ended>
  /** The process that it has started whose command line holds this. */
  readonly process: (part: string) => Effect.Effect<number>
  /** The processes of it, itself included, that live. */
  readonly alive: () => ReadonlyArray<number>
}

const LIMIT = Duration.seconds(30)
const MARK = "EFFECT_STDIO_TEST_PROGRAM"

/** Starts a program of this project with Node. What is left of it is killed with the scope. */
export const start = (
  file: string,
  args: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => launch(file, args, options)),
    (program) => Effect.sync(() => program.alive().forEach(kill))
  )

const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

const kill = (pid: number) => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // it ended in the meantime
  }
}

const commandLine = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")
  } catch {
    return ""
  }
}

const launch = (file: string, args: ReadonlyArray<string>, options: Options): Program => {
  const id = randomUUID()
  const words = [process.execPath, Child.path(file), ...args]
  const [command = "", ...rest] = options.terminal
    ? ["script", "--quiet", "--return", "--flush", "--command", `exec ${words.map(quote).join(" ")}`, "/dev/null"]
    : words
  const proc = spawn(command, rest, {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: options.cwd,
    env: { ...process.env, ...Child.environment, TERM: "xterm", NO_COLOR: undefined, [MARK]: id, ...options.env }
  })
  let out = ""
  let err = ""
  let seen = 0
  let ended: Ended | undefined
  proc.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text
  })
  proc.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text
  })
  // what becomes of a broken pipe is seen in how the program ends
  for (const stream of [proc.stdin, proc.stdout, proc.stderr]) stream.on("error", () => {})
  proc.on("error", (error) => {
    err += `not started: ${error.message}`
    ended = { code: null, signal: null }
  })
  proc.on("close", (code, signal) => {
    ended = { code, signal }
  })
  if (options.input !== undefined) proc.stdin.end(options.input)

  const alive = () => Os.withEnvironment(`${MARK}=${id}`)
  const story = () => `exit ${JSON.stringify(ended ?? "not yet")}\nstdout: ${out}\nstderr: ${err}`
  const until = <A>(what: string, look: () => A | undefined): Effect.Effect<A> =>
    Effect.suspend(() => {
      const found = look()
      if (found !== undefined) return Effect.succeed(found)
      if (ended !== undefined) return Effect.die(new Error(`${what}: never came\n${story()}`))
      return Effect.delay(Effect.suspend(() => until(what, look)), 10)
    })
  const soon = <A>(what: string, look: () => A | undefined): Effect.Effect<A> =>
    Effect.timeoutOrElse(until(what, look), {
      duration: LIMIT,
      orElse: () => Effect.die(new Error(`${what}: not within ${Duration.format(LIMIT)}\n${story()}`))
    })

  const find = (part: string) => soon(part, () => alive().find((pid) => commandLine(pid).includes(part)))

  return {
    out: () => out,
    err: () => err,
    type: (text) =>
      Effect.callback((resume) => {
        proc.stdin.write(text, () => resume(Effect.void))
      }),
    signal: (signal) =>
      Effect.map(find(`${process.execPath} ${Child.path(file)}`), (pid) => {
        process.kill(pid, signal)
      }),
    closeOutput: Effect.callback((resume) => {
      proc.stdout.once("close", () => resume(Effect.void)).destroy()
    }),
    sees: (text) =>
      soon(JSON.stringify(text), () => {
        const all = out + err
        const at = all.indexOf(text, options.terminal ? seen : 0)
        if (at < 0) return undefined
        seen = at + text.length
        return true
      }),
    ended: soon("the end", () => ended),
    process: find,
    alive
  }
}

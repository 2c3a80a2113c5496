/**
 * Starts bash with a command, and ends it together with everything that the command has started.
 *
 * The one idea to know: a command belongs to a scope, and nothing that it started outlives it. Effect's `ChildProcess` is
 * not used, because it fails with a text where a signal ended the process, waits without a limit for a group, knows
 * nothing of processes that left the group, and leaves them behind when this process ends.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import type { Source } from "./live.ts"
import { NotStarted, ShellError } from "./ShellError.ts"
import * as Trees from "./trees.ts"

/** What everything that a command starts has in its environment. One in another has the marks of both. */
const MARK = "EFFECT_STDIO_SHELL_RUN"

// milliseconds
const AFTER_TERM = 500
const AFTER_KILL = 1_000
const REST_LIMIT = 500
const POLL = 20

/**
 * What to start.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spec {
  readonly bash: string
  readonly args: ReadonlyArray<string>
  readonly folder: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Takes each chunk of output at once. */
  readonly onOutput: (source: Source, chunk: Uint8Array) => void
}

/**
 * How bash ended: with an exit code, or by a signal; neither where the system did not say it in time.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ended {
  readonly exitCode: number | null
  readonly signal: string | null
}

/**
 * A command that was started.
 *
 * @category models
 * @since 0.1.0
 */
export interface Command {
  /** How bash ended; what it started may still run. */
  readonly ended: Effect.Effect<Ended>
  /**
   * Waits for the rest: until nothing runs and all output was read, or for half a second; then ends what still runs.
   * Returns whether there was something to end.
   */
  readonly finish: Effect.Effect<boolean>
  /** Ends everything at once: SIGTERM, and SIGKILL after half a second. Returns how bash ended. */
  readonly stop: Effect.Effect<Ended>
}

/**
 * Commands that run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Commands {
  readonly start: (spec: Spec) => Effect.Effect<Command, ShellError, Scope.Scope>
  readonly running: Effect.Effect<number>
}

/**
 * What starts commands. When the scope closes, or this process exits before that, all that still run are killed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<Commands, never, Scope.Scope> = Effect.gen(function*() {
  const trees = new Set<Trees.Tree>()
  // synchronous, since a process that exits does not wait
  const killAll = () => {
    for (const tree of trees) Trees.signal(tree, Trees.members(tree), "SIGKILL")
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("exit", killAll)),
    () =>
      Effect.sync(() => {
        killAll()
        process.off("exit", killAll)
      })
  )
  return {
    running: Effect.sync(() => trees.size),
    start: (spec) => Effect.acquireRelease(Effect.suspend(() => launch(spec, trees)), ({ close }) => close)
  }
})

const launch = (
  spec: Spec,
  trees: Set<Trees.Tree>
): Effect.Effect<Command & { readonly close: Effect.Effect<void> }, ShellError> => {
  const id = randomUUID()
  const outer = spec.environment[MARK]
  let proc
  try {
    proc = spawn(spec.bash, spec.args, {
      cwd: spec.folder,
      env: { ...spec.environment, [MARK]: outer === undefined ? id : `${outer}:${id}` },
      // no input: what asks for some is told at once that there is none
      stdio: ["ignore", "pipe", "pipe"],
      detached: process.platform !== "win32",
      windowsHide: true
    })
  } catch (error) {
    return Effect.fail(notStarted(error))
  }
  const ended = Deferred.makeUnsafe<Ended>()
  const outputEnded = Deferred.makeUnsafe<void>()
  const tree: Trees.Tree = { leader: proc.pid ?? -1, mark: id, hasEnded: false, isGroupGone: false }
  if (proc.pid !== undefined) trees.add(tree)

  proc.once("exit", (exitCode, signal) => {
    Trees.ended(tree)
    Deferred.doneUnsafe(ended, Effect.succeed({ exitCode, signal }))
  })
  // where the system has no more files to open, there are none
  const { stderr, stdout } = proc as Partial<typeof proc>

  /** Whether these have ended before the time is over. */
  const goneWithin = (limit: number, members: ReadonlyArray<number>) =>
    Effect.sync(() => members.every((member) => Trees.isGone(tree, member))).pipe(
      Effect.repeat({ until: (isGone) => isGone, schedule: Schedule.spaced(POLL) }),
      Effect.timeoutOption(limit),
      Effect.map(Option.isSome)
    )

  const kill = Effect.gen(function*() {
    const members = Trees.members(tree)
    Trees.signal(tree, members, "SIGKILL")
    yield* goneWithin(POLL, members)
    return members.length === 0
  }).pipe(
    // what was born while its parents died is there in the next round
    Effect.repeat({ until: (isDone) => isDone }),
    Effect.timeoutOption(AFTER_KILL)
  )

  const endAll = Effect.gen(function*() {
    const members = Trees.members(tree)
    if (members.length === 0) return false
    Trees.signal(tree, members, "SIGTERM")
    yield* goneWithin(AFTER_TERM, members)
    yield* kill
    return true
  })

  const close = Effect.gen(function*() {
    yield* endAll
    stdout?.destroy()
    stderr?.destroy()
    trees.delete(tree)
  })

  const rest = Effect.gen(function*() {
    yield* goneWithin(REST_LIMIT, Trees.members(tree))
    yield* Deferred.await(outputEnded)
  })

  return Effect.callback((resume) => {
    // also later: an error without a listener would be thrown
    proc.on("error", (error) => {
      trees.delete(tree)
      resume(Effect.fail(notStarted(error)))
    })
    proc.once("spawn", () => {
      for (const [source, stream] of [["stdout", stdout], ["stderr", stderr]] as const) {
        stream?.on("data", (chunk: Uint8Array) => spec.onOutput(source, chunk))
        // the end of a pipe says all that there is to know
        stream?.on("error", () => {})
        stream?.once("close", () => {
          if (stdout?.closed === true && stderr?.closed === true) Deferred.doneUnsafe(outputEnded, Effect.void)
        })
      }
      resume(Effect.succeed({
        ended: Deferred.await(ended),
        finish: Effect.gen(function*() {
          yield* Effect.timeoutOption(rest, REST_LIMIT)
          const isEnded = yield* endAll
          // what was written last is on its way, unless somebody out of reach holds the pipe
          yield* Effect.timeoutOption(Deferred.await(outputEnded), REST_LIMIT)
          return isEnded
        }),
        stop: Effect.gen(function*() {
          yield* endAll
          yield* Effect.timeoutOption(Deferred.await(outputEnded), REST_LIMIT)
          const how = yield* Effect.timeoutOption(Deferred.await(ended), REST_LIMIT)
          return Option.getOrElse(how, () => ({ exitCode: null, signal: null }))
        }),
        close
      }))
    })
  })
}

const notStarted = (error: unknown): ShellError => {
  const code = Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : "unknown reason"
  // Node copies the command into its error
  if (Predicate.isObject(error)) Reflect.deleteProperty(error, "spawnargs")
  return new ShellError({ reason: new NotStarted({ code, cause: error }) })
}

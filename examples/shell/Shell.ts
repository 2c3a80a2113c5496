/**
 * Runs commands with bash, in a folder.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Buffer } from "node:buffer"
import type { FileError } from "../shared/FileError.ts"
import * as Root from "../shared/Root.ts"
import * as Capped from "./capped.ts"
import * as Commands from "./commands.ts"
import { unattended } from "./environment.ts"
import { findBash, type Found, type System, thisSystem } from "./findBash.ts"
import * as Live from "./live.ts"
import { BadCommand, BadTimeout, fail, NoBash, type ShellError, TooMany, WrongBash } from "./ShellError.ts"
import { defaultTimeout, isTimeout, MAX_TIMEOUT } from "./timeouts.ts"

const MAX_RUNNING = 16
const KEPT = { headBytes: 16 * 1024, tailBytes: 16 * 1024 }
// Linux takes 128 KiB for an argument, Windows 32,767 characters for all
const MAX_COMMAND_BYTES = { windows: 30_000, others: 100_000 }
// milliseconds
const VERSION_LIMIT = 5_000

// =============================================================================
// Models
// =============================================================================

/**
 * What to run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  readonly command: string
  /** Time until it is ended, in milliseconds. @default what the environment says, or two minutes */
  readonly timeout?: number | undefined
  /** A folder below the server's, relative to it or absolute. @default the server's folder */
  readonly workdir?: string | undefined
}

/**
 * Schema for how a command ended and what it wrote.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Outcome = Schema.Struct({
  exitCode: Schema.NullOr(Schema.Int).annotate({ description: "0 for success; null when a signal ended it" }),
  signal: Schema.NullOr(Schema.String).annotate({ description: "Signal that ended it, such as SIGKILL; else null" }),
  timedOut: Schema.Boolean.annotate({ description: "True when its time was over: the output is what came until then" }),
  durationMs: Schema.Int,
  stdout: Schema.String,
  stderr: Schema.String,
  stdoutBytesLeftOut: Schema.Int.annotate({ description: "Bytes missing in the middle of stdout, where it says so" }),
  stderrBytesLeftOut: Schema.Int,
  leftRunning: Schema.Boolean.annotate({ description: "True when it left processes running, which were ended" })
})

/**
 * Type of `Outcome`.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome = typeof Outcome.Type

/**
 * Schema for the bash that runs the commands.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Bash = Schema.Struct({
  path: Schema.String,
  source: Schema.String.annotate({ description: "How it was found: a variable, a usual place, or PATH" })
})

/**
 * Schema for everything about this server that explains why a command does not run as expected.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Diagnosis = Schema.Struct({
  platform: Schema.String,
  folder: Schema.String,
  bash: Schema.NullOr(Bash),
  problem: Schema.NullOr(Schema.String).annotate({ description: "Why no command can be run, and what to do" }),
  version: Schema.NullOr(Schema.String).annotate({ description: "First line of bash --version; null when it fails" }),
  tried: Schema.Array(Schema.Struct({
    path: Schema.String,
    source: Schema.String,
    refused: Schema.NullOr(Schema.String)
  })).annotate({ description: "Where bash was looked for, in order, and why it was not taken" }),
  defaultTimeoutMs: Schema.Int,
  defaultTimeoutFrom: Schema.String.annotate({ description: "Variable that sets the default timeout, or built in" }),
  invalidTimeouts: Schema.Array(Schema.Struct({ variable: Schema.String, value: Schema.String })).annotate({
    description: "Variables that were skipped, since they are no whole milliseconds in the range"
  }),
  maxTimeoutMs: Schema.Int,
  maxCommandBytes: Schema.Int,
  keptBytes: Schema.Struct({ head: Schema.Int, tail: Schema.Int }).annotate({
    description: "How much of the beginning and of the end of each output a result has"
  }),
  running: Schema.Int.annotate({ description: "Commands that run now" }),
  maxRunning: Schema.Int
})

/**
 * Type of `Diagnosis`.
 *
 * @category models
 * @since 0.1.0
 */
export type Diagnosis = typeof Diagnosis.Type

/**
 * Options of `Shell.layer`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Folder that commands start in. */
  readonly root: string
  /** The machine. @default this one */
  readonly system?: System | undefined
}

// =============================================================================
// Service
// =============================================================================

/**
 * Runs commands.
 *
 * @category services
 * @since 0.1.0
 */
export class Shell extends Context.Service<Shell, {
  /** Runs a command to its end, and tells what it writes. An interruption ends it with all that it started. */
  readonly run: (request: Request, report: Live.Report) => Effect.Effect<Outcome, ShellError | FileError>
  readonly whichBash: Effect.Effect<typeof Bash.Type, ShellError>
  readonly diagnose: Effect.Effect<Diagnosis>
}>()("effect-stdio/examples/shell/Shell") {
  static readonly layer = (
    options: Options
  ): Layer.Layer<Shell, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(Shell, make(options))
}

/**
 * Opens the folder; it fails when that does not exist. Bash is looked for with each command, so that one that is
 * installed later is found.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<
  Shell["Service"],
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const root = yield* Root.make(options.root)
  const commands = yield* Commands.make
  const running = yield* Semaphore.make(MAX_RUNNING)
  const system = options.system ?? thisSystem()
  const maxCommandBytes = system.platform === "win32" ? MAX_COMMAND_BYTES.windows : MAX_COMMAND_BYTES.others
  const found = Effect.sync(() => findBash(system))
  const bash = Effect.flatMap(
    found,
    (found) => found.bash === undefined ? refuse(found, system) : Effect.succeed(found.bash)
  )

  const execute = Effect.fnUntraced(function*(
    spec: Pick<Commands.Spec, "bash" | "args" | "folder">,
    timeout: number,
    report: Live.Report
  ) {
    const live = yield* Live.make(report)
    const outputs = { stdout: Capped.make(KEPT), stderr: Capped.make(KEPT) }
    const begun = yield* Clock.currentTimeNanos
    const command = yield* commands.start({
      ...spec,
      environment: unattended(system.environment, system.platform),
      onOutput: (source, chunk) => {
        outputs[source].push(chunk)
        live.push(source, chunk)
      }
    })
    const inTime = yield* Effect.timeoutOption(command.ended, timeout)
    const timedOut = Option.isNone(inTime)
    const durationMs = Math.round(Number((yield* Clock.currentTimeNanos) - begun) / 1e6)
    const ended = timedOut ? yield* command.stop : inTime.value
    const leftRunning = timedOut ? false : yield* command.finish
    yield* live.end
    const stdout = outputs.stdout.read()
    const stderr = outputs.stderr.read()
    return {
      exitCode: ended.exitCode,
      signal: ended.signal,
      timedOut,
      durationMs,
      stdout: stdout.text,
      stderr: stderr.text,
      stdoutBytesLeftOut: stdout.leftOut,
      stderrBytesLeftOut: stderr.leftOut,
      leftRunning
    } satisfies Outcome
  }, Effect.scoped)

  const run = Effect.fn("Shell.run")(function*({ command, timeout, workdir }: Request, report: Live.Report) {
    const bytes = Buffer.byteLength(command)
    const problem = command.trim() === ""
      ? "Empty"
      : command.includes("\0")
      ? "Nul"
      // half of a character
      : /\p{Surrogate}/u.test(command)
      ? "Malformed"
      : bytes > maxCommandBytes
      ? "TooLong"
      : undefined
    if (problem !== undefined) {
      return yield* fail(new BadCommand({ problem, bytes, maxBytes: maxCommandBytes }))
    }
    if (timeout !== undefined && !isTimeout(timeout)) {
      return yield* fail(new BadTimeout({ timeout, max: MAX_TIMEOUT }))
    }
    const limit = timeout ?? defaultTimeout(system.environment).milliseconds
    const folder = yield* root.directory(workdir ?? ".")
    const { path } = yield* bash
    const outcome = yield* running.withPermitsIfAvailable(1)(
      // some builds read .bashrc where the server was started by ssh; and a command may begin with a dash
      execute({ bash: path, args: ["--norc", "-c", "--", command], folder: folder.path }, limit, report)
    )
    return Option.isSome(outcome) ? outcome.value : yield* fail(new TooMany({ max: MAX_RUNNING }))
  })

  // one at a time: many calls must not start as many programs
  const asking = yield* Semaphore.make(1)
  const version = (path: string) =>
    execute({ bash: path, args: ["--version"], folder: root.folder }, VERSION_LIMIT, () => Effect.void).pipe(
      (effect) => asking.withPermit(effect),
      Effect.map(({ exitCode, stdout }) => exitCode === 0 ? stdout.split(/\r?\n/)[0] ?? null : null),
      Effect.orElseSucceed(() => null)
    )

  const diagnose = Effect.gen(function*() {
    const { bash, ...rest } = yield* found
    const now = yield* commands.running
    const timeout = defaultTimeout(system.environment)
    return {
      platform: system.platform,
      folder: root.folder,
      bash: bash ?? null,
      problem: bash === undefined ? (yield* Effect.flip(refuse({ bash, ...rest }, system))).message : null,
      version: bash === undefined ? null : yield* version(bash.path),
      tried: rest.tried.map(({ path, refused, source }) => ({ path, source, refused: refused ?? null })),
      defaultTimeoutMs: timeout.milliseconds,
      defaultTimeoutFrom: timeout.variable ?? "built in",
      invalidTimeouts: timeout.invalid,
      maxTimeoutMs: MAX_TIMEOUT,
      maxCommandBytes,
      keptBytes: { head: KEPT.headBytes, tail: KEPT.tailBytes },
      running: now,
      maxRunning: MAX_RUNNING
    } satisfies Diagnosis
  })

  return Shell.of({ run, whichBash: bash, diagnose })
})

const refuse = ({ wrong }: Found, { platform }: System): Effect.Effect<never, ShellError> =>
  fail(wrong === undefined ? new NoBash({ platform }) : new WrongBash(wrong))

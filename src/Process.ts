/**
 * A child process as a {@link Transport.Transport}: its standard input and output are the connection, its standard error
 * is kept, and it is never left behind.
 *
 * The one idea to know: a child belongs to a scope. It is started in a process group of its own with three pipes, so that
 * it inherits nothing of ours, and when the scope closes it is ended together with all that it started: its input ends,
 * then it gets SIGTERM, then SIGKILL, each after a bounded wait. When it ends by itself, what it wrote before is still
 * read, and calls that wait fail with its exit code, its signal and the end of its standard error.
 *
 * @module
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as CommandLine from "effect/process/CommandLine"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Child, Refusal } from "./internal/adapters/spawner.ts"
import { Spawner } from "./internal/adapters/spawner.ts"
import { lastOf, makeTail } from "./internal/tail.ts"
import * as Transport from "./Transport.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * There is no such program: no file of that path, or none of that name in the `PATH` that the child was given.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotFound extends Schema.TaggedClass<NotFound>()("NotFound", { command: Schema.String }) {}

/**
 * There is such a file, and it cannot be run; `detail` says why.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotExecutable extends Schema.TaggedClass<NotExecutable>()("NotExecutable", {
  command: Schema.String,
  detail: Schema.String
}) {}

/**
 * The working directory does not exist, or is none.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadWorkingDirectory extends Schema.TaggedClass<BadWorkingDirectory>()("BadWorkingDirectory", {
  command: Schema.String,
  cwd: Schema.String
}) {}

/**
 * The command line cannot be given to a process; `detail` says where, without showing it.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidArgument extends Schema.TaggedClass<InvalidArgument>()("InvalidArgument", {
  command: Schema.String,
  detail: Schema.String
}) {}

/**
 * The operating system did not start the process for another reason, such as EAGAIN or EMFILE.
 *
 * @category errors
 * @since 0.1.0
 */
export class StartFailed extends Schema.TaggedClass<StartFailed>()("StartFailed", {
  command: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * Says why no process was started, what was to be run, and what can be done. What is redacted is left out.
 *
 * **Example** (A program that may not be installed)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Process from "effect-stdio/Process"
 *
 * const program = Effect.scoped(Process.make("rust-analyzer")).pipe(
 *   Effect.catchReason("ProcessError", "NotFound", () => Effect.logWarning("no Rust here"))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class ProcessError extends Schema.TaggedError<ProcessError>()("ProcessError", {
  reason: Schema.Union([NotFound, NotExecutable, BadWorkingDirectory, InvalidArgument, StartFailed])
}) {
  override get message(): string {
    const { reason } = this
    const what = `cannot start ${reason.command}`
    switch (reason._tag) {
      case "NotFound":
        return `${what}: there is no such program. Is it installed, and its folder in the PATH of the child's environment?`
      case "NotExecutable":
        return `${what}: the file exists and cannot be run, ${reason.detail}`
      case "BadWorkingDirectory":
        return `${what}: its working directory ${reason.cwd} is no folder`
      case "InvalidArgument":
        return `${what}: ${reason.detail}`
      case "StartFailed":
        return `${what}: ${codeOf(reason.cause) ?? "the operating system refused"}`
    }
  }
}

const codeOf = (cause: unknown): string | undefined =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined

// -----------------------------------------------------------------------------
// models and options
// -----------------------------------------------------------------------------

/**
 * How a process ended: with an exit code, or by a signal; neither where it could not be found out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Ended {
  readonly exitCode?: number
  readonly signal?: string
}

/**
 * Options of {@link make}: those of its transport, and those of the process.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Transport.Options {
  /** How messages are told apart. `auto` is not for children: it learns from a message, and a child waits for one. @default "line" */
  readonly framing?: Transport.Options["framing"]
  /** Working directory of the child. @default ours */
  readonly cwd?: string | undefined
  /** Variables of the child's environment, over what it inherits; undefined takes one away. @default none */
  readonly env?: Readonly<Record<string, string | Redacted.Redacted<string> | undefined>> | undefined
  /** What the child inherits of our environment: all of it, or the variables of these names. See {@link basicEnv}. @default "all" */
  readonly inheritEnv?: "all" | ReadonlyArray<string> | undefined
  /** How much of its standard error is kept, in bytes: the newest. @default 65536 (64 KiB) */
  readonly stderrBytes?: number | undefined
  /** Time for the child to end once its input has ended, before SIGTERM. @default "2 seconds" */
  readonly endTimeout?: Duration.Input | undefined
  /** Time for it to end after SIGTERM, before SIGKILL. @default "2 seconds" */
  readonly killTimeout?: Duration.Input | undefined
}

/**
 * Names for `inheritEnv` without which most programs do not start: where programs are, whose home and which language
 * this is, and what Windows needs. No variable that usually holds a secret.
 *
 * @category constants
 * @since 0.1.0
 */
export const basicEnv: ReadonlyArray<string> = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "TERM",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "PATHEXT",
  "SystemRoot",
  "SystemDrive",
  "ComSpec",
  "APPDATA",
  "LOCALAPPDATA",
  "PROGRAMDATA",
  "ProgramFiles",
  "USERNAME",
  "USERPROFILE",
  "HOMEDRIVE",
  "HOMEPATH"
]

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * A child process, as a value and as the tag of programs that have exactly one.
 *
 * @category services
 * @since 0.1.0
 */
export class Process extends Context.Service<Process, {
  /** The connection to it: what a `Peer` is made over. */
  readonly transport: Transport.Transport["Service"]
  readonly pid: number
  /** Its command line, for people to read: what is redacted is left out. */
  readonly command: string
  /** How it ended, once it has. Others may still hold its pipes, and what it wrote may still be read. */
  readonly exited: Effect.Effect<Ended>
  /** What it writes to standard error from now on, as it comes. Of a consumer that lags more than 256 chunks behind, the oldest are dropped. */
  readonly stderr: Stream.Stream<string>
  /** What it wrote to standard error last, up to `stderrBytes`. */
  readonly stderrTail: Effect.Effect<string>
  /**
   * Ends it and all that it started, and returns how it ended: what is queued is written, its input ends, and after
   * `endTimeout` it gets SIGTERM, after `killTimeout` SIGKILL. An interruption cuts the rest of this down to 1.5 seconds.
   * Closing the scope does the same.
   */
  readonly end: Effect.Effect<Ended>
}>()("effect-stdio/Process") {}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

// milliseconds
const OUTPUT_LIMIT = 500
const AFTER_KILL = 1_000
const GROUP_POLL = 10
// once somebody is in a hurry: less than a signal's 1.5 seconds together
const HURRIED = { end: 500, kill: 500, afterKill: 300 }
const STDERR_CHUNKS = 256
// of the standard error that an error carries; all that is kept is in `stderrTail`
const REPORTED_LENGTH = 4_096

/**
 * Starts a process whose standard input and output are a connection.
 *
 * **Details**
 *
 * It leads a process group of its own and gets three pipes. `args` are given to it as they are, without a shell; on
 * Windows, batch files such as `npx.cmd` are found and run through `cmd.exe`, with arguments quoted so that none of them
 * can be taken for a command. Standard error is always read, so that a child which logs much does not block.
 *
 * When it ends by itself, its output is read to the end, for at most half a second where another process holds the pipe
 * open; then `transport.closed` is `ProcessExited`, and calls that wait fail with it. The same goes for a write that finds
 * it dead. A child that closes its output and stays is `InputEnded`.
 *
 * When the scope closes it is ended as `end` does it. When this process ends with the scope still open, all of the
 * group is killed.
 *
 * **Gotchas**
 *
 * A terminal's Ctrl-C does not reach the child, since it is in another group: it ends with its scope. What the child
 * starts and moves to another group or session is out of reach.
 *
 * **Example** (Calling a child)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Peer from "effect-stdio/Peer"
 * import * as Process from "effect-stdio/Process"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const child = yield* Process.make("node", ["server.js"], { env: { LOG_LEVEL: "debug" } })
 *   const server = yield* Peer.make(child.transport, { onBadInput: "count" })
 *   return yield* server.call("greet", { name: "Ada" })
 * }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  command: string,
  args: ReadonlyArray<string | Redacted.Redacted<string>> = [],
  options?: Options
): Effect.fn.Return<Process["Service"], ProcessError, Scope.Scope> {
  const spawner = yield* Spawner
  const display = CommandLine.display([command, ...args], { format: spawner.isWindows ? "windows" : "posix" })
  const env = environment(yield* spawner.environment, options, spawner.isWindows)
  const endTimeout = Duration.fromInputUnsafe(options?.endTimeout ?? "2 seconds")
  const killTimeout = Duration.fromInputUnsafe(options?.killTimeout ?? "2 seconds")

  const child = yield* Effect.acquireRelease(
    Effect.mapError(
      spawner.spawn({ command, args: args.map(reveal), cwd: options?.cwd, env }),
      (refusal) => new ProcessError({ reason: reasonOf(refusal, display, options?.cwd ?? ".") })
    ),
    (child) => child.close
  )
  const stderr = makeStderr(child, options?.stderrBytes ?? 65_536)

  // ---- its end

  // done when all that it wrote has been read, or nobody waits for it any more
  const drained = Deferred.makeUnsafe<void>()
  // done when all that was read has been handled
  const consumed = Deferred.makeUnsafe<void>()
  yield* child.exited.pipe(
    Effect.andThen(child.release),
    Effect.andThen(Effect.raceFirst(child.outputEnded, Effect.sleep(OUTPUT_LIMIT))),
    // the pipes are closed also where a grandchild holds them, and the writer learns that nobody reads
    Effect.andThen(child.close),
    Effect.andThen(Deferred.succeed(drained, undefined)),
    Effect.forkScoped({ startImmediately: true })
  )

  const explain = Effect.fnUntraced(function*(reason: Transport.CloseReason) {
    const isInput = reason._tag === "InputEnded"
    if (isInput) yield* Deferred.succeed(consumed, undefined)
    const ended = yield* Effect.timeoutOption(child.exited, OUTPUT_LIMIT)
    if (Option.isNone(ended)) return reason
    yield* Deferred.await(drained)
    // the output stays open until an answer that was still in the pipe has reached its call, and not longer than the
    // input: whoever learns of the end by a call cannot send any more
    yield* Effect.timeoutOption(isInput ? transport.outputClosed : Deferred.await(consumed), OUTPUT_LIMIT)
    return new Transport.ProcessExited({
      command: display,
      ...ended.value,
      stderrTail: lastOf(stderr.tail(), REPORTED_LENGTH)
    })
  })

  const transport: Transport.Transport["Service"] = yield* Transport.make(
    { input: child.stdout, output: child.stdin, explain },
    { ...options, framing: options?.framing ?? "line" }
  )

  const hurried = Deferred.makeUnsafe<void>()
  const gone = Effect.andThen(
    child.exited,
    Effect.repeat(child.isGone, { until: (isGone) => isGone, schedule: Schedule.spaced(GROUP_POLL) })
  )
  /** Whether nothing is left before the time is over. */
  const goneWithin = (limit: Duration.Input, inHurry: number) =>
    Effect.raceFirst(
      Effect.as(gone, true),
      Effect.as(
        Effect.raceFirst(Effect.sleep(limit), Effect.andThen(Deferred.await(hurried), Effect.sleep(inHurry))),
        false
      )
    )
  const endInOrder = Effect.gen(function*() {
    const flushing = yield* Effect.forkDetach(transport.end, { startImmediately: true })
    yield* child.release
    if (!(yield* goneWithin(endTimeout, HURRIED.end))) {
      yield* child.signal("SIGTERM")
      if (!(yield* goneWithin(killTimeout, HURRIED.kill))) {
        yield* child.signal("SIGKILL")
        yield* goneWithin(AFTER_KILL, HURRIED.afterKill)
      }
    }
    flushing.interruptUnsafe()
    return yield* Effect.map(Effect.timeoutOption(child.exited, 0), Option.getOrElse((): Ended => ({})))
  })
  let ending: Fiber.Fiber<Ended> | undefined
  const end = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      // one for all who ask, and it goes on when they are gone
      ending ??= yield* Effect.forkDetach(endInOrder, { startImmediately: true })
      const exit = yield* Effect.exit(restore(Fiber.join(ending)))
      if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) {
        yield* Deferred.succeed(hurried, undefined)
        yield* Fiber.await(ending)
      }
      return yield* exit
    })
  )
  yield* Effect.addFinalizer((exit) =>
    Effect.gen(function*() {
      if (Exit.hasInterrupts(exit)) yield* Deferred.succeed(hurried, undefined)
      // begun here, since what is interruptible does not begin at all in a fiber that has been interrupted already
      ending ??= yield* Effect.forkDetach(endInOrder, { startImmediately: true })
      // interruptible, so that an interruption that comes while it waits is seen
      const waited = yield* Effect.exit(Effect.interruptible(Fiber.await(ending)))
      if (Exit.isFailure(waited)) {
        yield* Deferred.succeed(hurried, undefined)
        yield* Fiber.await(ending)
      }
    })
  )

  return Process.of({
    transport,
    pid: child.pid,
    command: display,
    exited: child.exited,
    stderr: stderr.stream,
    stderrTail: Effect.sync(stderr.tail),
    end
  })
})

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/**
 * Layer that starts a process and makes it the program's one connection.
 *
 * **Example** (A program with one child)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as Peer from "effect-stdio/Peer"
 * import * as Process from "effect-stdio/Process"
 * import * as Transport from "effect-stdio/Transport"
 *
 * const PeerLive = Layer.effect(
 *   Peer.Peer,
 *   Effect.flatMap(Transport.Transport, (transport) => Peer.make(transport, { onBadInput: "count" }))
 * ).pipe(Layer.provide(Process.layer("node", ["server.js"])))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  command: string,
  args?: ReadonlyArray<string | Redacted.Redacted<string>>,
  options?: Options
): Layer.Layer<Process | Transport.Transport, ProcessError> =>
  Layer.effectContext(Effect.map(
    make(command, args, options),
    (process) => Context.make(Process, process).pipe(Context.add(Transport.Transport, process.transport))
  ))

// -----------------------------------------------------------------------------
// private helpers
// -----------------------------------------------------------------------------

const reveal = (value: string | Redacted.Redacted<string>): string =>
  Redacted.isRedacted(value) ? Redacted.value(value) : value

const environment = (
  ours: Readonly<Record<string, string | undefined>>,
  options: Options | undefined,
  isWindows: boolean
): Record<string, string> => {
  const { env = {}, inheritEnv = "all" } = options ?? {}
  // names have no case on Windows
  const canonical = (name: string) => isWindows ? name.toUpperCase() : name
  const inherited = inheritEnv === "all" ? undefined : new Set(inheritEnv.map(canonical))
  const overridden = new Set(Object.keys(env).map(canonical))
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(ours)) {
    const isInherited = inherited === undefined || inherited.has(canonical(name))
    if (value !== undefined && isInherited && !overridden.has(canonical(name))) result[name] = value
  }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined) result[name] = reveal(value)
  }
  return result
}

const reasonOf = (refusal: Refusal, command: string, cwd: string): ProcessError["reason"] => {
  switch (refusal._tag) {
    case "NotFound":
      return new NotFound({ command })
    case "NotExecutable":
      return new NotExecutable({ command, detail: refusal.detail })
    case "BadWorkingDirectory":
      return new BadWorkingDirectory({ command, cwd })
    case "InvalidArgument":
      return new InvalidArgument({ command, detail: refusal.detail })
    case "StartFailed":
      return new StartFailed({ command, cause: refusal.cause })
  }
}

/** Reads standard error always: into the tail, and to those who listen. */
const makeStderr = (child: Child, maxBytes: number) => {
  const tail = makeTail(maxBytes)
  const listeners = new Set<Queue.Queue<string, Cause.Done>>()
  let decoder = new TextDecoder()
  let isOver = false

  const tell = (text: string) => {
    if (text !== "") { for (const listener of listeners) Queue.offerUnsafe(listener, text) }
  }
  child.onStderr((chunk) => {
    if (chunk !== undefined) {
      tail.push(chunk)
      if (listeners.size > 0) tell(decoder.decode(chunk, { stream: true }))
      return
    }
    isOver = true
    tell(decoder.decode())
    for (const listener of listeners) Queue.endUnsafe(listener)
  })

  const listen = Effect.acquireRelease(
    Effect.map(Queue.sliding<string, Cause.Done>(STDERR_CHUNKS), (queue) => {
      // what was not decoded while nobody listened must not be finished now
      if (listeners.size === 0) decoder = new TextDecoder()
      if (isOver) Queue.endUnsafe(queue)
      else listeners.add(queue)
      return queue
    }),
    (queue) => Effect.sync(() => listeners.delete(queue))
  )
  return { tail: tail.text, stream: Stream.unwrap(Effect.map(listen, Stream.fromQueue)) }
}

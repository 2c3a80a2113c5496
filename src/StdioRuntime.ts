/**
 * A server as a process: owns standard output, reads standard input from the first moment, heeds signals, and ends with
 * the right exit code, always.
 *
 * The one idea to know: nothing but frames leaves on standard output. Everything that prints (`console.*`, a dependency's
 * banner, Effect's Console and Logger, the report of a failure) goes to standard error. {@link runMain}
 * installs that guard; import `effect-stdio/stdout-guard` first when dependencies print while they load. Out of reach are
 * `fs.writeSync(1, …)`, native add-ons, and child processes that inherit standard output.
 *
 * @module
 * @since 0.1.0
 */
import * as NodeSink from "@effect/platform-node/NodeSink"
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as PlatformError from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import { constants } from "node:os"
import { isatty } from "node:tty"
import { inspect } from "node:util"
import { openStdin } from "./internal/adapters/stdinPump.ts"
import { install } from "./internal/adapters/stdoutGuard.ts"
import { own, within } from "./internal/bounded.ts"
import * as Lifecycle from "./Lifecycle.ts"
import * as ParentProbe from "./ParentProbe.ts"
import * as Watchdog from "./Watchdog.ts"

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

const failure = (method: string) => (cause: unknown) =>
  PlatformError.systemError({ _tag: "Unknown", module: "Stdio", method, cause })

const makeStdio = (): Stdio.Stdio => {
  const writeStdout = install()
  const stdin = openStdin()
  const write = (chunk: string | Uint8Array) =>
    Effect.callback<void, PlatformError.PlatformError>((resume) => {
      const isWritten = writeStdout(chunk, (error) =>
        resume(error === null || error === undefined ? Effect.void : Effect.fail(failure("stdout")(error))))
      if (isWritten) {
        resume(Effect.void)
      }
    })
  return Stdio.make({
    args: Effect.sync(() => process.argv.slice(2)),
    stdinIsTerminal: Effect.sync(() => isatty(0)),
    stdoutIsTerminal: Effect.sync(() => isatty(1)),
    stderrIsTerminal: Effect.sync(() => isatty(2)),
    stdin,
    // one write at a time, taken when its callback came: what is flushed is known, and what queues up meanwhile is joined
    stdout: () =>
      Sink.forEachArray((chunks: Arr.NonEmptyReadonlyArray<string | Uint8Array>) =>
        chunks.length === 1 ? write(chunks[0]) : Effect.forEach(chunks, write, { discard: true })
      ),
    stderr: (options) =>
      NodeSink.fromWritable({
        evaluate: () => process.stderr,
        onError: failure("stderr"),
        endOnDone: options?.endOnDone ?? false
      })
  })
}

/**
 * Layer that provides `Stdio` over the process's real standard output, past the guard, and a standard input that is read
 * from the moment the layer is built. {@link runMain} provides it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Stdio.Stdio> = Layer.sync(Stdio.Stdio, makeStdio)

// -----------------------------------------------------------------------------
// running
// -----------------------------------------------------------------------------

/**
 * Options of {@link runMain}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<ROut, E> {
  /** Provides what the effect needs; released within half a second when the effect has ended. */
  readonly layer: Layer.Layer<ROut, E, Stdio.Stdio>
  /** Whether each event of `Lifecycle` is written to standard error as a line of JSON, or the function that takes it. @default false */
  readonly events?: boolean | ((event: Lifecycle.Event) => void) | undefined
  /** What a promise does that is rejected without anybody looking: it is logged, or it ends the program with 1. @default "log" */
  readonly unhandledRejections?: "log" | "fail" | undefined
}

const SIGNALS: ReadonlyArray<NodeJS.Signals> = process.platform === "win32"
  ? ["SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"]
  : ["SIGINT", "SIGTERM", "SIGHUP"]

const SIGNAL_BUDGET = 1_500
const FINALIZER_LIMIT = 500
// a server that is interrupted takes up to 1.35 seconds of the signal's budget
const HURRIED_FINALIZER_LIMIT = 100
const STDERR_FLUSH_LIMIT = 250

/**
 * Runs an effect as the program of this process.
 *
 * **Details**
 *
 * A first SIGINT, SIGTERM or SIGHUP (on Windows SIGBREAK too) interrupts the effect, which has 1.5 seconds to end, since
 * hosts kill after two; a second one, or the end of that time, exits at once with 128 plus the signal's number. Exit
 * codes: 0 when the effect succeeds or ended in time after a signal, the code asked for where it succeeds with a
 * `Requested` stop reason, the error's own (`Runtime.errorExitCode`) or 1 when it fails, with the cause on standard error.
 * An uncaught exception ends the program with 1. Timers and sockets that user code left behind do not keep the process
 * alive.
 *
 * **Example** (A complete server)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as Router from "effect-stdio/Router"
 * import * as Server from "effect-stdio/Server"
 * import * as StdioRuntime from "effect-stdio/StdioRuntime"
 * import * as StdioTransport from "effect-stdio/StdioTransport"
 * import * as Watchdog from "effect-stdio/Watchdog"
 *
 * const router = Router.rawRequest(Router.empty, "ping", () => Effect.succeed({}))
 *
 * StdioRuntime.runMain(Server.run({ router }), {
 *   layer: Layer.merge(StdioTransport.layer(), Watchdog.layer())
 * })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const runMain = <A, E, ROut, E2>(
  effect: Effect.Effect<A, E, ROut | Stdio.Stdio>,
  options: Options<ROut, E2>
): void => {
  const stdio = makeStdio()
  // nothing else may hold the event loop while the effect waits
  const keepAlive = setInterval(() => {}, 2 ** 31 - 1)
  let signal: NodeJS.Signals | undefined
  let uncaught = false

  const exitCodeOfSignal = (name: NodeJS.Signals) => 128 + constants.signals[name]

  const stopWithin = (exitCode: number) => {
    setTimeout(() => process.exit(exitCode), SIGNAL_BUDGET)
    fiber.interruptUnsafe()
  }

  const onSignal = (name: NodeJS.Signals) => {
    if (signal !== undefined) process.exit(exitCodeOfSignal(name))
    signal = name
    stopWithin(exitCodeOfSignal(name))
  }

  const onUncaught = (what: string) => (error: unknown) => {
    report(`${what}: ${describe(error)}`)
    if (uncaught) return
    uncaught = true
    stopWithin(1)
  }

  for (const name of SIGNALS) process.on(name, onSignal)
  process.on("uncaughtException", onUncaught("uncaught exception"))
  process.on(
    "unhandledRejection",
    options.unhandledRejections === "fail"
      ? onUncaught("unhandled rejection")
      : (error) => report(`unhandled rejection: ${describe(error)}`)
  )

  const onExit = (exit: Exit.Exit<A, E | E2>) => {
    clearInterval(keepAlive)
    const code = uncaught ? 1 : exitCode(exit, signal !== undefined)
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) report(Cause.pretty(exit.cause))
    // what was said last should be readable
    setTimeout(() => process.exit(code), STDERR_FLUSH_LIMIT)
    process.stderr.write("", () => process.exit(code))
  }

  const fiber = Effect.runForkWith(
    Context.empty().pipe(
      Context.add(Stdio.Stdio, stdio),
      Context.add(Watchdog.Probe, ParentProbe.probe),
      // here the layer sees it too: the watchdog tells what it does
      Context.add(Lifecycle.Observer, observerOf(options.events)),
      Context.add(Logger.LogToStderr, true)
    )
  )(runWithLayer(
    effect,
    options.layer,
    () => signal === undefined && !uncaught ? FINALIZER_LIMIT : HURRIED_FINALIZER_LIMIT
  ))
  fiber.addObserver(onExit)
}

/** Builds the layer, runs the effect, and releases the layer with a limit. */
const runWithLayer = <A, E, ROut, E2>(
  effect: Effect.Effect<A, E, ROut | Stdio.Stdio>,
  layer: Layer.Layer<ROut, E2, Stdio.Stdio>,
  releaseLimit: () => number
): Effect.Effect<A, E | E2, Stdio.Stdio> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const run = Effect.flatMap(Layer.buildWithScope(layer, scope), (services) =>
        Effect.provideContext(effect, services))
      const exit = yield* Effect.exit(restore(run))
      yield* own(within(releaseLimit(), Scope.close(scope, exit)))
      return yield* exit
    })
  )

const exitCode = (exit: Exit.Exit<unknown, unknown>, signalled: boolean): number => {
  if (Exit.isSuccess(exit)) {
    const { value } = exit
    if (!Predicate.isTagged(value, "Requested") || !Predicate.hasProperty(value, "exitCode")) return 0
    const { exitCode } = value
    return typeof exitCode === "number" && Number.isInteger(exitCode) && exitCode >= 0 && exitCode <= 255 ? exitCode : 1
  }
  if (Cause.hasInterruptsOnly(exit.cause)) return signalled ? 0 : 130
  return Runtime.getErrorExitCode(Cause.squash(exit.cause))
}

const report = (text: string) => {
  process.stderr.write(`${text}\n`)
}

const observerOf = (events: Options<never, never>["events"]): ((event: Lifecycle.Event) => void) | undefined => {
  if (events === true) return (event) => report(JSON.stringify(event))
  return events === false ? undefined : events
}

// shows anything that can be thrown, and never throws itself
const describe = (error: unknown) => inspect(error)

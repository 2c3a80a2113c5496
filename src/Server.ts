/**
 * A server: one peer and everything that may end it, raced in one scope.
 *
 * The one idea to know: a server always ends, and says why. The first of input end, broken output, a parent that is
 * gone, idle time, no first message, and a request to stop is its {@link StopReason}; then what is in flight may finish
 * for a bounded time, is cut off with an answer, and what was answered is flushed.
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
import type * as Scope from "effect/Scope"
import { end } from "./internal/ending.ts"
import { observer } from "./internal/observer.ts"
import * as Lifecycle from "./Lifecycle.ts"
import * as Peer from "./Peer.ts"
import { messageFrom } from "./Schema.ts"
import * as Transport from "./Transport.ts"
import * as Watchdog from "./Watchdog.ts"

/**
 * Why a server ended.
 *
 * @category models
 * @since 0.1.0
 */
export type StopReason = Lifecycle.StopReason

/**
 * Options of {@link run}: those of the peer, and how the server ends.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never> extends Peer.Options<R> {
  /** Time for what is in flight, and for what was answered to be written, once the server is ending. @default "30 seconds" */
  readonly drainTimeout?: Duration.Input | undefined
  /** Run when the server begins to end, within its `drainTimeout`: the place to end what would never end by itself. @default nothing */
  readonly onStopping?: Effect.Effect<void> | undefined
}

/**
 * Lets a handler end the server it runs in.
 *
 * **Example** (The `exit` notification of a language server)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Router from "effect-stdio/Router"
 * import * as Server from "effect-stdio/Server"
 *
 * const router = Router.notification(Router.empty, "exit", Schema.Struct({}), () =>
 *   Effect.flatMap(Server.Control, (control) => control.stop(0)))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Control extends Context.Service<Control, {
  /** Asks the server to end; what is in flight, the asking request included, may finish. The exit code is 0 by default. */
  readonly stop: (exitCode?: number) => Effect.Effect<void>
}>()("effect-stdio/Server/Control") {}

/**
 * What every handler of a server is given: its caller, the control of the server, and a scope of its own.
 *
 * @category utility types
 * @since 0.1.0
 */
export type HandlerServices = Control | Peer.Caller | Scope.Scope

/**
 * Serves one connection until something ends it, and returns why.
 *
 * **Details**
 *
 * - `InputEnded`, `IdleTimeout`, `StartupTimeout`, `Requested`: what is in flight, requests that were read but not begun
 *   included, may finish within `drainTimeout`.
 * - `OutputClosed`, `ParentExited`: nobody is there to answer; handlers are interrupted at once.
 * - Interrupting the effect, as a signal does, leaves one second to finish.
 *
 * Whatever is then left is answered with -32603 "server stopping" and interrupted, which may take half a second. What was
 * answered is flushed within what is left of `drainTimeout`, and half a second at least (after a signal, these two take
 * 0.35 seconds together). A later reason only shortens this. The effect fails when the
 * input or output fails with something that is not an end (EIO or ENOSPC while writing, a stalled output).
 *
 * **Example** (A server on standard input and output)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Router from "effect-stdio/Router"
 * import * as Server from "effect-stdio/Server"
 * import * as StdioTransport from "effect-stdio/StdioTransport"
 * import * as Watchdog from "effect-stdio/Watchdog"
 *
 * const router = Router.rawRequest(Router.empty, "ping", () => Effect.succeed({}))
 *
 * const program = Server.run({ router }).pipe(
 *   Effect.provide([StdioTransport.layer(), Watchdog.layer({ idle: "5 minutes" })])
 * )
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <R = never>(
  options?: Options<R>
): Effect.Effect<
  StopReason,
  Transport.TransportError,
  Exclude<R, HandlerServices> | Transport.Transport | Watchdog.Watchdog
> => {
  return Effect.scoped(Effect.gen(function*() {
    const transport = yield* Transport.Transport
    const watchdog = yield* Watchdog.Watchdog
    const observe = yield* observer
    const drainTimeout = Duration.toMillis(Duration.fromInputUnsafe(options?.drainTimeout ?? "30 seconds"))

    const first = Deferred.makeUnsafe<StopReason, Transport.TransportError>()
    // done when nobody is there any more to hear an answer
    const lost = Deferred.makeUnsafe<void>()
    const stopWith = (reason: StopReason) => Effect.asVoid(Deferred.succeed(first, reason))

    const control = Control.of({ stop: (exitCode = 0) => stopWith({ _tag: "Requested", exitCode }) })
    observe?.({ _tag: "Started", cwd: workingDirectory(), idleTimeout: watchdog.idleTimeout })

    // what nobody outside can see says why it leaves
    const leave = (reason: StopReason) =>
      Effect.andThen(Effect.logInfo(`the server leaves: ${Lifecycle.describe(reason)}`), stopWith(reason))

    // before the first message is read: who hears an answer may take its host to be watched
    yield* watchdog.parentExited.pipe(
      Effect.flatMap((reason) => Effect.andThen(leave(reason), Deferred.succeed(lost, undefined))),
      Effect.forkScoped({ startImmediately: true })
    )

    const peer = yield* Effect.provideService(
      // Exclude does not distribute over a generic R: with Control provided, Exclude<R, HandlerServices> remains
      Peer.make(transport, options) as Effect.Effect<
        Peer.Peer["Service"],
        never,
        Exclude<R, HandlerServices> | Control | Scope.Scope
      >,
      Control,
      control
    )

    // ---- everything that may end the server

    yield* Effect.forkScoped(Effect.matchCauseEffect(peer.inputEnded, {
      onSuccess: () => stopWith({ _tag: "InputEnded" }),
      onFailure: (cause) => Deferred.failCause(first, cause)
    }))
    yield* transport.outputClosed.pipe(
      Effect.flatMap((reason) => {
        const error = new Transport.TransportError({ reason })
        if (reason._tag !== "Ended") observe?.({ _tag: "OutputError", reason: reason._tag, message: error.message })
        const stopped = reason._tag === "OutputClosed" || reason._tag === "ProcessExited"
          ? stopWith({ _tag: "OutputClosed", ...("code" in reason ? { code: reason.code } : {}) })
          : Deferred.fail(first, error)
        return Effect.andThen(stopped, Deferred.succeed(lost, undefined))
      }),
      Effect.forkScoped
    )
    yield* watchdog.expired(peer.activity).pipe(
      Effect.flatMap(leave),
      Effect.raceFirst(Effect.exit(Deferred.await(first))),
      Effect.forkScoped
    )

    // ---- the end

    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(restore(Deferred.await(first)))
        const interrupted = Exit.isFailure(exit) && Exit.hasInterrupts(exit)
        const failed = Exit.isFailure(exit) && !interrupted
        yield* end({
          peer,
          transport,
          observe,
          onStopping: options?.onStopping ?? Effect.void,
          drainTimeout: failed || isUnheard(exit) ? 0 : drainTimeout,
          lost,
          interrupted,
          restore
        })
        const reason: StopReason = Exit.isSuccess(exit) ? exit.value : { _tag: "Requested", exitCode: 0 }
        observe?.(
          failed ? { _tag: "Failed", message: messageFrom(Cause.squash(exit.cause)) } : { _tag: "Stopped", reason }
        )
        return yield* exit
      })
    )
  }))
}

/** Whether nobody is there to hear an answer. */
const isUnheard = (exit: Exit.Exit<StopReason, unknown>) =>
  Exit.isSuccess(exit) && (exit.value._tag === "OutputClosed" || exit.value._tag === "ParentExited")

const workingDirectory = (): string => {
  try {
    return process.cwd()
  } catch {
    // the directory was removed under us
    return "?"
  }
}

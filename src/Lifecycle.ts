/**
 * What happens to a server, told as it happens: started, each request and response, bad input, and why it stopped.
 *
 * Events are plain tagged values given to one {@link Observer}. They hold ids, methods and sizes, never params or
 * results, so that they can be logged as they are.
 *
 * @module
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type { Id } from "./Schema.ts"
import type { InvalidReason } from "./Schema.ts"
import type * as Transport from "./Transport.ts"

/**
 * Why a server ended.
 *
 * - `InputEnded`: the host closed our input.
 * - `OutputClosed`: the host does not read our output any more.
 * - `IdleTimeout`: nothing was asked for the idle time.
 * - `StartupTimeout`: no first message came in time.
 * - `ParentExited`: a process we depend on is gone; `pid` says which, `why` how that was seen.
 * - `Requested`: somebody asked: a handler, or a signal; `exitCode` is the exit code asked for.
 *
 * @category models
 * @since 0.1.0
 */
export type StopReason =
  | { readonly _tag: "InputEnded" }
  | { readonly _tag: "OutputClosed"; readonly code?: string }
  | { readonly _tag: "IdleTimeout" }
  | { readonly _tag: "StartupTimeout" }
  | { readonly _tag: "ParentExited"; readonly pid: number; readonly why: string }
  | { readonly _tag: "Requested"; readonly exitCode: number }

/**
 * Says a stop reason in words.
 *
 * @category models
 * @since 0.1.0
 */
export const describe = (reason: StopReason): string => {
  switch (reason._tag) {
    case "InputEnded":
      return "the host closed our input"
    case "OutputClosed":
      return "the host does not read our output any more"
    case "IdleTimeout":
      return "nothing was asked for the idle time"
    case "StartupTimeout":
      return "no first message came in time"
    case "ParentExited":
      return `process ${reason.pid}, which we depend on, is gone: ${reason.why}`
    case "Requested":
      return "somebody asked"
  }
}

/**
 * One thing that happened.
 *
 * **Details**
 *
 * `Started`: working directory and idle timeout in milliseconds (0: none). `ParentPoll` is told only on demand, after
 * each look: `alive` is false when one of `pids` was seen to be gone, and `ParentExit` follows.
 * `ParentWatchDisabled` says why the parent is not watched. `CutOff` counts the requests that were still running when
 * the time to drain was over, `Unflushed` the bytes that nobody had read by then. The last event is `Stopped`,
 * or `Failed` where the server ended with an error.
 *
 * @category models
 * @since 0.1.0
 */
export type Event =
  | { readonly _tag: "Started"; readonly cwd: string; readonly idleTimeout: number }
  | { readonly _tag: "Request"; readonly id: Id; readonly method: string }
  | { readonly _tag: "Response"; readonly id: Id; readonly method: string; readonly isError: boolean }
  | { readonly _tag: "BadInput"; readonly reason: BadInputReason; readonly message: string }
  | { readonly _tag: "ParentPoll"; readonly pids: ReadonlyArray<number>; readonly alive: boolean }
  | { readonly _tag: "ParentWatchDisabled"; readonly why: string }
  | { readonly _tag: "ParentExit"; readonly pid: number; readonly why: string }
  | { readonly _tag: "IdleTimeout"; readonly idleTimeout: number }
  | { readonly _tag: "OutputError"; readonly reason: Transport.CloseReason["_tag"]; readonly message: string }
  | { readonly _tag: "CutOff"; readonly requests: number }
  | { readonly _tag: "Unflushed"; readonly queuedBytes: number }
  | { readonly _tag: "Stopped"; readonly reason: StopReason }
  | { readonly _tag: "Failed"; readonly message: string }

/**
 * What is wrong with a piece of input: a rule of the framing or of JSON-RPC.
 *
 * @category models
 * @since 0.1.0
 */
export type BadInputReason =
  | InvalidReason
  | "TooLarge"
  | "InvalidUtf8"
  | "InvalidHeader"
  | "HeaderTooLarge"
  | "UnexpectedHeader"
  | "Incomplete"

/**
 * Takes each event, synchronously; it must not throw and should be quick. By default events go nowhere. The option
 * `events` of `StdioRuntime.runMain` sets it for a process: `true` writes a JSON line an event to standard error.
 *
 * **Example** (Counting the requests of one server)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Lifecycle from "effect-stdio/Lifecycle"
 * import * as Server from "effect-stdio/Server"
 *
 * let requests = 0
 * const program = Effect.provideService(Server.run(), Lifecycle.Observer, (event) => {
 *   if (event._tag === "Request") requests++
 * })
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const Observer: Context.Reference<((event: Event) => void) | undefined> = Context.Reference(
  "effect-stdio/Lifecycle/Observer",
  { defaultValue: (): ((event: Event) => void) | undefined => undefined }
)

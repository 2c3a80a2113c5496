/**
 * What may end a server although nobody said so: a parent that is gone, too long without work, no first message.
 *
 * Each watch says why it fired. All time comes from Effect's Clock, and what is known of other processes from a
 * {@link Probe}, so that a test needs neither a second nor a process.
 *
 * @module
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { observer } from "./internal/observer.ts"
import type * as Lifecycle from "./Lifecycle.ts"
import type * as Peer from "./Peer.ts"

// -----------------------------------------------------------------------------
// models and options
// -----------------------------------------------------------------------------

/**
 * What is known of a process: alive, with something that tells it from a later process of the same pid where the system
 * offers that, or gone, and how that was seen. What cannot be found out counts as alive.
 *
 * @category models
 * @since 0.1.0
 */
export type Liveness =
  | { readonly _tag: "Alive"; readonly identity?: string | undefined }
  | { readonly _tag: "Gone"; readonly why: string }

/**
 * Options of {@link layer}. A duration of zero or infinity disables its watch.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Time without anything in flight and without a message after which the server ends. @default "10 minutes" */
  readonly idle?: Duration.Input | undefined
  /** Time in which a first message must come. @default no limit */
  readonly startup?: Duration.Input | undefined
  /** How often the parent is looked at. @default "30 seconds" */
  readonly parentPoll?: Duration.Input | undefined
  /** Processes the server depends on. @default the parent and, where it is a wrapper such as npx or sh, what stands above it */
  readonly parentPids?: ReadonlyArray<number> | undefined
  /** Whether each look at the parent is a `ParentPoll` event, which says what was seen. @default false */
  readonly pollEvents?: boolean | undefined
}

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * Looks at processes. The default sees none, which disables the parent watch; `ParentProbe.layer` looks at those of the
 * operating system, and `StdioRuntime` provides it. A look that dies is logged, and what it looked at counts as alive.
 *
 * @category services
 * @since 0.1.0
 */
export interface Probe {
  /** Our parent's pid now. */
  readonly parentPid: Effect.Effect<number>
  /** The processes to watch by default: our parent first, then what stands above it as long as the nearer is a wrapper. */
  readonly defaultPids: Effect.Effect<ReadonlyArray<number>>
  /** Whether the process with this pid is there. */
  readonly inspect: (pid: number) => Effect.Effect<Liveness>
}

/**
 * The current {@link Probe}.
 *
 * @category services
 * @since 0.1.0
 */
export const Probe: Context.Reference<Probe> = Context.Reference<Probe>("effect-stdio/Watchdog/Probe", {
  defaultValue: () => ({
    parentPid: Effect.succeed(0),
    defaultPids: Effect.succeed([]),
    inspect: () => Effect.succeed({ _tag: "Alive" })
  })
})

/**
 * Decides when a server ends by itself.
 *
 * @category services
 * @since 0.1.0
 */
export class Watchdog extends Context.Service<Watchdog, {
  /** Idle time in milliseconds, 0 when disabled. */
  readonly idleTimeout: number
  /** Returns when nothing has happened for the idle time, or no first message came in time. */
  readonly expired: (activity: Peer.Activity) => Effect.Effect<Lifecycle.StopReason>
  /** Returns when a process we depend on is gone. */
  readonly parentExited: Effect.Effect<Lifecycle.StopReason>
}>()("effect-stdio/Watchdog") {}

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/**
 * Layer that watches as its options say.
 *
 * **Details**
 *
 * The idle watch is armed only while nothing is in flight, begins anew with every message, and looks for input that is
 * still to be read before it fires: a process that was stopped, as a laptop's lid does, must not end over a request that
 * waits. A parent that is not alive at the start, or a start under pid 0 or 1 as in a container, disables the parent
 * watch with one event; the end of the input still ends the server.
 *
 * **Example** (A server that leaves after a minute)
 *
 * ```ts
 * import * as Watchdog from "effect-stdio/Watchdog"
 *
 * const layer = Watchdog.layer({ idle: "1 minute", parentPoll: "5 seconds" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Watchdog> =>
  Layer.effect(
    Watchdog,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const observe = yield* observer
      const probe = yield* Probe
      const idle = millis(options?.idle ?? "10 minutes")
      const startup = millis(options?.startup ?? 0)
      const poll = millis(options?.parentPoll ?? "30 seconds")

      // ---- idle and start-up

      const idleExpired = (activity: Peer.Activity): Effect.Effect<Lifecycle.StopReason> =>
        Effect.gen(function*() {
          while (true) {
            const passed = clock.currentTimeMillisUnsafe() - activity.lastUnsafe()
            yield* Effect.sleep(activity.isBusyUnsafe() ? idle : Math.max(1, idle - passed))
            if (isIdle(activity) && (yield* nothingArrives(activity)) && isIdle(activity)) {
              observe?.({ _tag: "IdleTimeout", idleTimeout: idle })
              return { _tag: "IdleTimeout" }
            }
          }
        })

      const isIdle = (activity: Peer.Activity) =>
        !activity.isBusyUnsafe() && clock.currentTimeMillisUnsafe() - activity.lastUnsafe() >= idle

      const startupExpired = (activity: Peer.Activity): Effect.Effect<Lifecycle.StopReason> =>
        Effect.gen(function*() {
          yield* Effect.sleep(startup)
          // a message that is arriving may still be the first
          yield* Effect.repeat(nothingArrives(activity), { until: (quiet) => quiet })
          return activity.messagesUnsafe() > 0 ? yield* Effect.never : { _tag: "StartupTimeout" }
        })

      // ---- parent

      const disabled = (why: string) =>
        Effect.suspend(() => {
          observe?.({ _tag: "ParentWatchDisabled", why })
          return Effect.never
        })

      const inspect = (pid: number) => orElse<Liveness, Liveness>(probe.inspect(pid), { _tag: "Alive" })

      const exited = (pid: number, why: string): Lifecycle.StopReason => {
        observe?.({ _tag: "ParentExit", pid, why })
        return { _tag: "ParentExited", pid, why }
      }

      const parentExited: Effect.Effect<Lifecycle.StopReason> = Effect.gen(function*() {
        if (poll === 0) return yield* Effect.never
        const parent = yield* orElse(probe.parentPid, undefined)
        const pids = options?.parentPids ?? (yield* orElse(probe.defaultPids, []))
        if (pids.length === 0) return yield* disabled("there is no parent to watch")
        const watched: Array<{ readonly pid: number; readonly identity: string | undefined }> = []
        for (const pid of pids) {
          if (!Number.isSafeInteger(pid) || pid <= 1) return yield* disabled(`pid ${pid} cannot be a parent to watch`)
          const liveness = yield* inspect(pid)
          if (liveness._tag === "Gone") {
            return yield* disabled(`process ${pid} is not alive at the start: ${liveness.why}`)
          }
          watched.push({ pid, identity: liveness.identity })
        }
        const findGone = Effect.gen(function*() {
          for (const { identity, pid } of watched) {
            const liveness = yield* inspect(pid)
            if (liveness._tag === "Gone") return { pid, why: liveness.why }
            if (identity !== undefined && liveness.identity !== undefined && liveness.identity !== identity) {
              return { pid, why: "another process has its pid" }
            }
          }
          if (options?.parentPids !== undefined || parent === undefined) return undefined
          const now = yield* orElse(probe.parentPid, parent)
          return now === parent ? undefined : { pid: parent, why: `our parent is now process ${now}` }
        })
        while (true) {
          yield* Effect.sleep(poll)
          const gone = yield* findGone
          if (options?.pollEvents === true) observe?.({ _tag: "ParentPoll", pids, alive: gone === undefined })
          if (gone !== undefined) return exited(gone.pid, gone.why)
        }
      })

      return Watchdog.of({
        idleTimeout: idle,
        expired: (activity) =>
          Effect.raceFirst(
            idle === 0 ? Effect.never : idleExpired(activity),
            startup === 0 ? Effect.never : startupExpired(activity)
          ),
        parentExited
      })
    })
  )

/**
 * Layer that watches nothing: the server ends with its input, its output, or on request.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerNone: Layer.Layer<Watchdog> = Layer.succeed(
  Watchdog,
  Watchdog.of({ idleTimeout: 0, expired: () => Effect.never, parentExited: Effect.never })
)

/** Milliseconds, and 0 for "never". */
const millis = (duration: Duration.Input): number => {
  const value = Duration.toMillis(Duration.fromInputUnsafe(duration))
  return Number.isFinite(value) ? Math.max(0, value) : 0
}

/** A probe that dies has seen nothing: the watch goes on with what it knew. */
const orElse = <A, B>(look: Effect.Effect<A>, otherwise: B): Effect.Effect<A | B> =>
  Effect.catchDefect(look, (defect) => Effect.as(Effect.logWarning("the watchdog's probe died", defect), otherwise))

/** Lets input that waits be read, a few turns of the event loop, and tells whether there was none. */
const nothingArrives = (activity: Peer.Activity): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const before = activity.arrivalsUnsafe()
    return Effect.yieldNow.pipe(
      Effect.repeat({ times: TURNS }),
      Effect.map(() => activity.arrivalsUnsafe() === before)
    )
  })

const TURNS = 4

/**
 * Keeps a peer on a child process alive: starts the process again when it ends or hangs, and says of each call that did
 * not succeed whether it may have had an effect.
 *
 * The one idea to know: a generation is one process with its own connection and its own peer, in a scope of its own.
 * Nothing of an old one reaches the next. A call is made on the generation that is up, waits while there is none, and
 * fails at once when the supervisor has given up; it is never repeated on its own.
 *
 * @module
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { shorten } from "./internal/shorten.ts"
import * as Peer from "./Peer.ts"
import type * as Process from "./Process.ts"
import type * as JsonRpc from "./Schema.ts"
import * as Transport from "./Transport.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * The process could not be started; `cause` is what `start` failed with, usually a `ProcessError`.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotStarted extends Schema.TaggedClass<NotStarted>()("NotStarted", { cause: Schema.Defect() }) {}

/**
 * The process runs, and its handshake failed or took too long.
 *
 * @category errors
 * @since 0.1.0
 */
export class HandshakeFailed extends Schema.TaggedClass<HandshakeFailed>()("HandshakeFailed", {
  cause: Schema.Defect()
}) {}

/**
 * The connection ended: with the process, in most cases.
 *
 * @category errors
 * @since 0.1.0
 */
export class ConnectionLost extends Schema.TaggedClass<ConnectionLost>()("ConnectionLost", {
  reason: Transport.TransportError
}) {}

/**
 * So many health checks in a row were not answered in time.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unhealthy extends Schema.TaggedClass<Unhealthy>()("Unhealthy", { checks: Schema.Int }) {}

/**
 * Why a generation ended without having been asked to.
 *
 * @category errors
 * @since 0.1.0
 */
export type Failure = NotStarted | HandshakeFailed | ConnectionLost | Unhealthy

/**
 * Says in words why a generation ended.
 *
 * @category errors
 * @since 0.1.0
 */
export const describe = (failure: Failure): string => {
  switch (failure._tag) {
    case "NotStarted":
      return messageOf(failure.cause, "it cannot be started")
    case "HandshakeFailed":
      return `the handshake failed: ${messageOf(failure.cause, "for an unknown reason")}`
    case "ConnectionLost":
      return failure.reason.message
    case "Unhealthy":
      return `${failure.checks} health checks in a row were not answered`
  }
}

const messageOf = (cause: unknown, otherwise: string) =>
  cause instanceof Error && cause.message !== "" ? cause.message : otherwise

/**
 * The message was not sent, and is safe to repeat: no generation came up within its deadline, the supervisor has given up,
 * or it was stopped. `failure` is what ended the last generation.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotSent extends Schema.TaggedClass<NotSent>()("NotSent", {
  method: Schema.String,
  state: Schema.Literals(["Starting", "Up", "Restarting", "GaveUp", "Stopped"]),
  failure: Schema.optionalKey(Schema.Union([NotStarted, HandshakeFailed, ConnectionLost, Unhealthy]))
}) {}

/**
 * The connection ended while the call waited: the other side may or may not have done what was asked.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutcomeUnknown extends Schema.TaggedClass<OutcomeUnknown>()("OutcomeUnknown", {
  method: Schema.String,
  generation: Schema.Int,
  reason: Transport.TransportError
}) {}

/**
 * Says why a supervised call did not succeed, where that was neither the other side's word (`JsonRpcError`) nor between
 * the two (`PeerError`: no answer in time, or one that cannot be read).
 *
 * **Example** (Repeating what was not sent)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Supervisor from "effect-stdio/Supervisor"
 *
 * const charge = (supervisor: Supervisor.Supervisor["Service"]) =>
 *   supervisor.call("charge", { amount: 10 }).pipe(
 *     Effect.catchReason("SupervisorError", "OutcomeUnknown", () => supervisor.call("lookup"))
 *   )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class SupervisorError extends Schema.TaggedError<SupervisorError>()("SupervisorError", {
  reason: Schema.Union([NotSent, OutcomeUnknown])
}) {
  override get message(): string {
    const { reason } = this
    if (reason._tag === "OutcomeUnknown") {
      return `${shorten(reason.method)} was sent, and its outcome is unknown: ${reason.reason.message}`
    }
    const why = reason.failure === undefined ? "" : `: ${describe(reason.failure)}`
    return `${shorten(reason.method)} was not sent, ${STATES[reason.state]}${why}`
  }
}

const STATES: Readonly<Record<NotSent["state"], string>> = {
  Starting: "the process is still starting",
  Up: "the process has just ended",
  Restarting: "the process is being restarted",
  GaveUp: "the process is not started again",
  Stopped: "the supervisor was stopped"
}

// -----------------------------------------------------------------------------
// models and options
// -----------------------------------------------------------------------------

/**
 * How it stands with the process.
 *
 * **Details**
 *
 * `attempt` counts the starts since the last success that lasted. A generation is up once its handshake has succeeded.
 *
 * @category models
 * @since 0.1.0
 */
export type Health =
  | { readonly _tag: "Starting"; readonly generation: number; readonly attempt: number }
  | { readonly _tag: "Up"; readonly generation: number; readonly pid: number }
  | { readonly _tag: "Restarting"; readonly delay: Duration.Duration; readonly failure: Failure }
  | { readonly _tag: "GaveUp"; readonly failure: Failure }
  | { readonly _tag: "Stopped" }

/**
 * How a process is found out that is there and does not answer.
 *
 * @category models
 * @since 0.1.0
 */
export interface HealthCheck<out R = never> {
  /** A call that a healthy process answers soon; an error that it answers with is an answer. */
  readonly call: (peer: Peer.Peer["Service"]) => Effect.Effect<unknown, unknown, R>
  /** Time between two checks. @default "15 seconds" */
  readonly every?: Duration.Input | undefined
  /** Time for one check; any message that comes meanwhile is a sign of life, too. @default "5 seconds" */
  readonly timeout?: Duration.Input | undefined
  /** Checks in a row that must fail: one that is busy must not be taken for one that hangs. @default 3 */
  readonly failures?: number | undefined
}

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out RP = never, out RH = never, out RC = never> {
  /** The peer of each generation. `onBadInput` is "count" where it is not given. */
  readonly peer?: Peer.Options<RP> | undefined
  /** Is run first on each generation; calls wait for it. @default none */
  readonly handshake?:
    | ((peer: Peer.Peer["Service"], generation: number) => Effect.Effect<unknown, unknown, RH>)
    | undefined
  /** Time for the handshake. @default "30 seconds" */
  readonly handshakeTimeout?: Duration.Input | undefined
  /** How long to wait before each restart; where it ends, so do the restarts. @default {@link defaultSchedule} */
  readonly schedule?: Schedule.Schedule<unknown, Failure> | undefined
  /** How long a generation must have been up for the schedule to begin anew. @default "60 seconds" */
  readonly resetAfter?: Duration.Input | undefined
  /** Restarts within `restartWindow`; with one more the supervisor gives up. @default 5 */
  readonly maxRestarts?: number | undefined
  /** @default "60 seconds" */
  readonly restartWindow?: Duration.Input | undefined
  /** How a process that hangs is found out. @default it is not */
  readonly healthCheck?: HealthCheck<RC> | undefined
}

/**
 * Options of `use`.
 *
 * @category models
 * @since 0.1.0
 */
export interface UseOptions {
  /** Time to wait for a generation that is up; zero or "Infinity" waits as long as it takes. @default the peer's `callTimeout` */
  readonly timeout?: Duration.Input | undefined
  /** What errors call it. @default "use" */
  readonly method?: string | undefined
}

/**
 * The delays before a restart: none, then 1, 2, 4, 8, 16, and from then on 30 seconds, each 20 % less or more at random,
 * so that many supervisors do not restart at the same time.
 *
 * @category constants
 * @since 0.1.0
 */
export const defaultSchedule: Schedule.Schedule<Duration.Duration> = Schedule.jittered(
  Schedule.fromStep(Effect.sync(() => {
    let step = 0
    return () =>
      Effect.sync((): [Duration.Duration, Duration.Duration] => {
        const delay = Duration.millis(step === 0 ? 0 : Math.min(30_000, 1_000 * 2 ** (step - 1)))
        step++
        return [delay, delay]
      })
  }))
)

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * A peer that outlives its process, as a value and as the tag of programs that have exactly one.
 *
 * @category services
 * @since 0.1.0
 */
export class Supervisor extends Context.Service<Supervisor, {
  /** Calls the generation that is up, or the next one; the timeout is for waiting and for the answer together. */
  readonly call: (
    method: string,
    params?: object,
    options?: Peer.CallOptions
  ) => Effect.Effect<unknown, JsonRpc.JsonRpcError | Peer.PeerError | SupervisorError>
  /** Queues a notification for the generation that is up, or the next one. What is queued when a process dies is lost. */
  readonly notify: (method: string, params?: object) => Effect.Effect<void, Peer.PeerError | SupervisorError>
  /** Runs an effect with the peer of the generation that is up, or of the next one: for typed calls, and several in a row. That the connection ends meanwhile is `OutcomeUnknown`. */
  readonly use: <A, E, R>(
    f: (peer: Peer.Peer["Service"], generation: number) => Effect.Effect<A, E, R>,
    options?: UseOptions
  ) => Effect.Effect<A, E | SupervisorError, R>
  /** The peer of the generation that is up; waits for the next one where there is none, no longer than `callTimeout`. */
  readonly peer: Effect.Effect<Peer.Peer["Service"], SupervisorError>
  /** How many processes were started, this one included. */
  readonly generation: Effect.Effect<number>
  /** How it stands; `SubscriptionRef.changes` tells each change. */
  readonly health: SubscriptionRef.SubscriptionRef<Health>
  /** Ends the process and starts the next without delay, also after the supervisor has given up. Returns at once: calls from then on wait for the next one. */
  readonly restart: Effect.Effect<void>
  /** Ends the process and starts none any more. Closing the scope does the same. */
  readonly stop: Effect.Effect<void>
}>()("effect-stdio/Supervisor") {}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/** A generation that is up, or was. */
interface Generation {
  readonly number: number
  readonly peer: Peer.Peer["Service"]
}

/** What the loop does after a generation. */
type Next =
  | { readonly _tag: "Start" }
  | { readonly _tag: "Wait"; readonly until: number }
  | { readonly _tag: "GiveUp" }
  | { readonly _tag: "Stop" }

type Ending = Failure | { readonly _tag: "RestartRequested" } | { readonly _tag: "StopRequested" }

/**
 * Supervises a process. Returns at once; the first generation starts in the background.
 *
 * **Details**
 *
 * `start` is run for each generation in a scope of its own, which is closed before the next one starts: the process and
 * all that it started have ended by then. A process that ends, also one that ends with code 0, is started again, after
 * the delay that the schedule gives. After `maxRestarts` within `restartWindow` the supervisor gives up: health is
 * `GaveUp`, calls fail at once, and only `restart` starts again.
 *
 * A generation that is replaced because it hangs is ended within 1.5 seconds, as after an interruption.
 *
 * **Example** (A server that is initialized with each start)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Process from "effect-stdio/Process"
 * import * as Supervisor from "effect-stdio/Supervisor"
 *
 * const program = Effect.gen(function*() {
 *   const server = yield* Supervisor.make(Process.make("node", ["server.js"]), {
 *     handshake: (peer) => peer.call("initialize", { protocolVersion: "1" }),
 *     healthCheck: { call: (peer) => peer.call("ping") }
 *   })
 *   return yield* server.call("greet", { name: "Ada" })
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E, R, RP = never, RH = never, RC = never>(
  start: Effect.Effect<Process.Process["Service"], E, R>,
  options?: Options<RP, RH, RC>
): Effect.Effect<
  Supervisor["Service"],
  never,
  | Exclude<R, Scope.Scope>
  | Exclude<RP, Peer.Caller | Scope.Scope>
  | Exclude<RH, Scope.Scope>
  | Exclude<RC, Scope.Scope>
  | Scope.Scope
> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const schedule = options?.schedule ?? defaultSchedule
    const resetAfter = millis(options?.resetAfter ?? "60 seconds")
    const maxRestarts = options?.maxRestarts ?? 5
    const restartWindow = millis(options?.restartWindow ?? "60 seconds")
    const handshakeTimeout = limitOf(options?.handshakeTimeout ?? "30 seconds")
    const callTimeout = limitOf(options?.peer?.callTimeout ?? "30 seconds")

    const health = yield* SubscriptionRef.make<Health>({ _tag: "Starting", generation: 1, attempt: 1 })

    // ---- who waits for a generation

    // the one that is up, or the one to come; fails when none will come
    let up = Deferred.makeUnsafe<Generation, "GaveUp" | "Stopped">()
    let current: Generation | undefined
    let refused = false
    let stopped = false
    let failure: Failure | undefined

    const goUp = (generation: Generation) => {
      current = generation
      Deferred.doneUnsafe(up, Exit.succeed(generation))
    }
    /** From here on, calls wait for the next generation. */
    const goDown = (generation = current) => {
      if (generation === undefined || generation !== current) return
      current = undefined
      up = Deferred.makeUnsafe()
    }
    const refuse = (why: "GaveUp" | "Stopped") => {
      goDown()
      refused = true
      // also those who wait already
      Deferred.doneUnsafe(up, Exit.fail(why))
    }

    const notSent = (method: string, state: NotSent["state"] = SubscriptionRef.getUnsafe(health)._tag) =>
      new SupervisorError({
        reason: new NotSent({
          method,
          state,
          ...(failure === undefined ? {} : { failure })
        })
      })

    const next = (method: string, timeout: Duration.Duration | undefined): Effect.Effect<Generation, SupervisorError> =>
      Effect.suspend(() => {
        if (current !== undefined) return Effect.succeed(current)
        const waiting = Effect.mapError(Deferred.await(up), (why) => notSent(method, why))
        return timeout === undefined
          ? waiting
          : Effect.timeoutOrElse(waiting, { duration: timeout, orElse: () => Effect.fail(notSent(method)) })
      })

    /** The error of the transport, where it was its end that an error tells of. */
    const endOf = (error: unknown): Transport.TransportError | undefined => {
      if (!(error instanceof Peer.PeerError) || error.reason._tag !== "Closed") return undefined
      const { reason } = error.reason
      return reason.reason._tag === "FrameTooLarge" ? undefined : reason
    }

    const use = <A, E, R>(
      f: (peer: Peer.Peer["Service"], generation: number) => Effect.Effect<A, E, R>,
      method: string,
      timeout: Duration.Duration | undefined
    ) =>
      Effect.flatMap(next(method, timeout), (generation) =>
        Effect.mapError(f(generation.peer, generation.number), (error) => {
          const reason = endOf(error)
          if (reason === undefined) {
            return error
          }
          // whoever repeats it at once must not find the same generation again
          goDown(generation)
          return new SupervisorError({
            reason: new OutcomeUnknown({ method, generation: generation.number, reason })
          })
        }))

    const call: Supervisor["Service"]["call"] = (method, params, callOptions) =>
      Effect.suspend(() => {
        const timeout = callOptions?.timeout === undefined ? callTimeout : limitOf(callOptions.timeout)
        const begun = clock.currentTimeMillisUnsafe()
        return use(
          (peer) => {
            const waited = clock.currentTimeMillisUnsafe() - begun
            const left = timeout === undefined ? 0 : Math.max(1, Duration.toMillis(timeout) - waited)
            return peer.call(method, params, { ...callOptions, timeout: left })
          },
          method,
          timeout
        )
      })

    const notify = (
      method: string,
      params: object | undefined,
      deadline: number
    ): Effect.Effect<void, Peer.PeerError | SupervisorError> =>
      Effect.suspend(() => {
        const left = Math.max(1, deadline - clock.currentTimeMillisUnsafe())
        return Effect.flatMap(next(method, left === Infinity ? undefined : Duration.millis(left)), (generation) =>
          Effect.catch(generation.peer.notify(method, params), (error) => {
            if (endOf(error) === undefined) {
              return Effect.fail(error)
            }
            // it was not even queued
            goDown(generation)
            return clock.currentTimeMillisUnsafe() >= deadline
              ? Effect.fail(notSent(method))
              : notify(method, params, deadline)
          }))
      })

    // ---- the generations

    let generation = 0
    let restartRequested = Deferred.makeUnsafe<void>()
    const stopRequested = Deferred.makeUnsafe<void>()
    let crashes: Array<number> = []
    let upSince: number | undefined
    let step = yield* Schedule.toStep(schedule)

    const requests: Effect.Effect<Ending> = Effect.suspend(() =>
      Effect.raceFirst(
        Effect.as(Deferred.await(stopRequested), { _tag: "StopRequested" as const }),
        Effect.as(Deferred.await(restartRequested), { _tag: "RestartRequested" as const })
      )
    )

    const begin = Effect.gen(function*() {
      crashes = []
      step = yield* Schedule.toStep(schedule)
    })

    /** Says what comes after a generation, as soon as it has failed and before it is cleared away. */
    const decide = Effect.fnUntraced(function*(ending: Ending): Effect.fn.Return<Next> {
      goDown()
      if (ending._tag === "StopRequested") {
        return { _tag: "Stop" }
      }
      if (ending._tag === "RestartRequested") {
        yield* begin
        return { _tag: "Start" }
      }
      failure = ending
      const now = clock.currentTimeMillisUnsafe()
      if (upSince !== undefined && now - upSince >= resetAfter) {
        yield* begin
      }
      crashes = [
        ...crashes.filter((time) =>
          now - time < restartWindow
        ),
        now
      ]
      const stepped = crashes.length > maxRestarts
        ? undefined
        : yield* Pull.catchDone(step(now, ending), () => Effect.succeed(undefined))
      if (stepped === undefined) {
        yield* SubscriptionRef.set(health, { _tag: "GaveUp", failure: ending })
        refuse("GaveUp")
        const often = crashes.length > maxRestarts ? `, it failed ${crashes.length} times` : ""
        yield* Effect.logError(`not started again${often}: ${describe(ending)}`)
        return { _tag: "GiveUp" }
      }
      const [, delay] = stepped
      yield* SubscriptionRef.set(health, { _tag: "Restarting", delay, failure: ending })
      yield* Effect.logWarning(`restart in ${Duration.format(delay)}: ${describe(ending)}`)
      return { _tag: "Wait", until: now + Duration.toMillis(delay) }
    })

    const failed = (cause: Cause.Cause<unknown>, toFailure: (cause: unknown) => Failure): Effect.Effect<Failure> =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.succeed(toFailure(Cause.squash(cause)))

    /** One process, from its start to its failure. */
    const live = Effect.fnUntraced(function*(number: number) {
      const started = yield* Effect.exit(start)
      if (Exit.isFailure(started)) return yield* failed(started.cause, (cause) => new NotStarted({ cause }))
      const process = started.value
      const peer = yield* Peer.make(process.transport, { onBadInput: "count", ...options?.peer })
      // once the peer has settled its calls: an input that is no JSON-RPC ends the peer alone, an output the transport
      const lost = Effect.raceFirst(
        Effect.matchEffect(peer.inputEnded, {
          onFailure: Effect.succeed,
          onSuccess: () => Effect.map(peer.closed, (reason) => new Transport.TransportError({ reason }))
        }),
        Effect.andThen(
          Effect.map(process.transport.outputClosed, (reason) => new Transport.TransportError({ reason })),
          (reason) => Effect.as(Effect.yieldNow, reason)
        )
      ).pipe(Effect.map((reason) => new ConnectionLost({ reason })))
      const { handshake, healthCheck } = options ?? {}
      if (handshake !== undefined) {
        const shaken = Effect.suspend(() => handshake(peer, number)).pipe(
          (effect) =>
            handshakeTimeout === undefined
              ? effect
              : Effect.timeoutOrElse(effect, {
                duration: handshakeTimeout,
                orElse: () => Effect.fail(new Error(`not over in ${Duration.format(handshakeTimeout)}`))
              }),
          Effect.exit
        )
        const exit = yield* Effect.raceFirst(shaken, Effect.map(lost, Exit.succeed<Failure>))
        if (Exit.isFailure(exit)) {
          // that the process ended says more than that its calls failed
          const reason = endOf(Cause.squash(exit.cause))
          if (reason !== undefined) return new ConnectionLost({ reason })
          return yield* failed(exit.cause, (cause) => new HandshakeFailed({ cause }))
        }
        if (exit.value instanceof ConnectionLost) return exit.value
      }
      upSince = clock.currentTimeMillisUnsafe()
      yield* SubscriptionRef.set(health, { _tag: "Up", generation: number, pid: process.pid })
      goUp({ number, peer })
      return healthCheck === undefined ? yield* lost : yield* Effect.raceFirst(lost, hangs(peer, healthCheck))
    })

    const run = (number: number) =>
      Effect.acquireUseRelease(
        Scope.make(),
        (scope) =>
          Effect.flatMap(
            Effect.raceFirst(Scope.provide(live(number), scope), requests),
            (ending) => Effect.map(decide(ending), (next) => ({ ending, next }))
          ),
        (scope, exit) =>
          Effect.suspend(() => {
            goDown()
            const hangs = Exit.isSuccess(exit) && exit.value.ending._tag === "Unhealthy"
            return Scope.close(scope, hangs ? Exit.interrupt() : exit)
          })
      )

    const loop = Effect.gen(function*() {
      for (;;) {
        upSince = undefined
        restartRequested = Deferred.makeUnsafe()
        generation++
        yield* SubscriptionRef.set(health, { _tag: "Starting", generation, attempt: crashes.length + 1 })
        const { next } = yield* run(generation)
        if (next._tag === "Stop") return
        if (next._tag === "Start") continue
        const left = next._tag === "GiveUp" ? Infinity : Math.max(0, next.until - clock.currentTimeMillisUnsafe())
        const waited = yield* Effect.raceFirst(
          requests,
          left === Infinity ? Effect.never : Effect.as(Effect.sleep(left), { _tag: "Waited" as const })
        )
        if (waited._tag === "StopRequested") return
        if (waited._tag === "RestartRequested") yield* begin
      }
    })

    const close = Effect.suspend(() => {
      if (stopped) return Effect.void
      stopped = true
      refuse("Stopped")
      return Effect.andThen(
        SubscriptionRef.set(health, { _tag: "Stopped" }),
        Deferred.succeed(stopRequested, undefined)
      )
    })

    const fiber = yield* loop.pipe(
      Effect.tapCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("the supervisor died", cause)
      ),
      Effect.ensuring(close),
      Effect.forkScoped({ startImmediately: true })
    )

    const stop = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        yield* close
        const exit = yield* Effect.exit(restore(Fiber.await(fiber)))
        // in a hurry: the process is ended faster
        if (Exit.isFailure(exit)) yield* Fiber.interrupt(fiber)
        yield* Effect.asVoid(exit)
      })
    )
    yield* Effect.addFinalizer((exit) =>
      Effect.andThen(
        Exit.hasInterrupts(exit) ? Effect.sync(() => fiber.interruptUnsafe()) : Effect.void,
        Effect.exit(Effect.interruptible(stop))
      )
    )

    return Supervisor.of({
      call,
      notify: (method, params) =>
        Effect.suspend(() =>
          notify(
            method,
            params,
            callTimeout === undefined ? Infinity : clock.currentTimeMillisUnsafe() + Duration.toMillis(callTimeout)
          )
        ),
      use: (f, useOptions) =>
        use(
          f,
          useOptions?.method ?? "use",
          useOptions?.timeout === undefined ? callTimeout : limitOf(useOptions.timeout)
        ),
      peer: Effect.map(next("peer", callTimeout), ({ peer }) => peer),
      generation: Effect.sync(() => generation),
      health,
      restart: Effect.suspend(() => {
        if (stopped) return Effect.void
        goDown()
        if (refused) {
          refused = false
          up = Deferred.makeUnsafe()
        }
        return Effect.asVoid(Deferred.succeed(restartRequested, undefined))
      }),
      stop
    })
  })

/** Returns when a process has not answered for too long. */
const hangs = Effect.fnUntraced(function*<R>(peer: Peer.Peer["Service"], check: HealthCheck<R>) {
  const max = check.failures ?? 3
  for (let failures = 0; failures < max;) {
    yield* Effect.sleep(check.every ?? "15 seconds")
    const before = peer.activity.messagesUnsafe()
    const exit = yield* Effect.timeoutOption(
      Effect.exit(Effect.suspend(() => check.call(peer))),
      check.timeout ?? "5 seconds"
    )
    const isAlive = peer.activity.messagesUnsafe() !== before || (Option.isSome(exit) && Exit.isSuccess(exit.value))
    failures = isAlive ? 0 : failures + 1
  }
  return new Unhealthy({ checks: max })
})

const millis = (duration: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(duration))

/** A limit, where zero and infinity mean none. */
const limitOf = (input: Duration.Input): Duration.Duration | undefined => {
  const duration = Duration.fromInputUnsafe(input)
  return Duration.isFinite(duration) && !Duration.isZero(duration) ? duration : undefined
}

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/**
 * Layer that supervises the program's one child.
 *
 * **Example** (A supervised child)
 *
 * ```ts
 * import * as Process from "effect-stdio/Process"
 * import * as Supervisor from "effect-stdio/Supervisor"
 *
 * const layer = Supervisor.layer(Process.make("node", ["server.js"]), { maxRestarts: 3 })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R, RP = never, RH = never, RC = never>(
  start: Effect.Effect<Process.Process["Service"], E, R>,
  options?: Options<RP, RH, RC>
) => Layer.effect(Supervisor, make(start, options))

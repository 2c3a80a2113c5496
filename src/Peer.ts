/**
 * One end of a JSON-RPC connection: it calls, notifies and serves, all at once.
 *
 * The one idea to know: the reader never waits for user code. It parses a message, then completes a caller, starts a
 * handler in a fiber of its own, or hands a notification on; so a slow handler delays neither responses nor
 * cancellations, and a handler may call the other side back. Every request is answered exactly once, and every call
 * settles.
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
import * as Metric from "effect/Metric"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import * as Cancellation from "./Cancellation.ts"
import type * as Framing from "./Framing.ts"
import { makeBadInput } from "./internal/badInput.ts"
import { makeCalls } from "./internal/calls.ts"
import { makeDispatch } from "./internal/dispatch.ts"
import { makeFollowed } from "./internal/followed.ts"
import { observer } from "./internal/observer.ts"
import { makeOutgoing } from "./internal/outgoing.ts"
import { makeReplies } from "./internal/replies.ts"
import { makeServing } from "./internal/serving.ts"
import { shorten } from "./internal/shorten.ts"
import { makeSubscriptions } from "./internal/subscriptions.ts"
import { makeTapping } from "./internal/tapping.ts"
import type * as Lifecycle from "./Lifecycle.ts"
import * as Progress from "./Progress.ts"
import * as Router from "./Router.ts"
import type * as JsonRpc from "./Schema.ts"
import type * as Tap from "./Tap.ts"
import * as Transport from "./Transport.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * No answer came in time. The other side was told, where the protocol has a word for it.
 *
 * @category errors
 * @since 0.1.0
 */
export class Timeout extends Schema.TaggedClass<Timeout>()("Timeout", { method: Schema.String }) {}

/**
 * The connection ended before an answer came, or had ended before the call, or does not send a message that large;
 * `reason` is the transport's.
 *
 * @category errors
 * @since 0.1.0
 */
export class Closed extends Schema.TaggedClass<Closed>()("Closed", {
  method: Schema.String,
  reason: Transport.TransportError
}) {}

/**
 * An answer came that cannot be read: neither a result nor an error, too long, or not UTF-8.
 *
 * @category errors
 * @since 0.1.0
 */
export class DecodeFailure extends Schema.TaggedClass<DecodeFailure>()("DecodeFailure", {
  method: Schema.String,
  detail: Schema.String
}) {}

/**
 * A subscriber to notifications has not taken them as fast as they came: `capacity` of them waited for it.
 *
 * @category errors
 * @since 0.1.0
 */
export class Lagged extends Schema.TaggedClass<Lagged>()("Lagged", { capacity: Schema.Int }) {}

/**
 * Says why a call, notification or subscription of ours did not succeed, where that was not the other side's word (`JsonRpcError`).
 *
 * **Example** (Telling the reasons apart)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Peer from "effect-stdio/Peer"
 *
 * const ask = (peer: Peer.Peer["Service"]) =>
 *   peer.call("roots/list").pipe(
 *     Effect.catchReason("PeerError", "Timeout", () => Effect.succeed({ roots: [] }))
 *   )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class PeerError extends Schema.TaggedError<PeerError>()("PeerError", {
  reason: Schema.Union([Timeout, Closed, DecodeFailure, Lagged])
}) {
  override get message(): string {
    switch (this.reason._tag) {
      case "Timeout":
        return `${shorten(this.reason.method)} was not settled in time`
      case "Closed":
        return `${shorten(this.reason.method)} cannot be settled: ${this.reason.reason.message}`
      case "DecodeFailure":
        return `the response to ${shorten(this.reason.method)} cannot be read: ${this.reason.detail}`
      case "Lagged":
        return `a subscriber was ${this.reason.capacity} notifications behind: take them faster, or choose another policy`
    }
  }
}

// -----------------------------------------------------------------------------
// models and options
// -----------------------------------------------------------------------------

/**
 * Options of a single call.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOptions {
  /** Time for the whole call, queueing included; zero or "Infinity" waits as long as it takes. @default the peer's `callTimeout` */
  readonly timeout?: Duration.Input | undefined
  /** Whether the other side may be asked again, within the same time, when it says that it has too much to do: see `overload`. @default false */
  readonly idempotent?: boolean | undefined
}

/**
 * Options of a call whose progress is followed.
 *
 * @category models
 * @since 0.1.0
 */
export interface FollowOptions {
  /** Time without a report; each report begins it anew. Zero or "Infinity": no limit. @default the peer's `callTimeout` */
  readonly timeout?: Duration.Input | undefined
  /** Time for the whole call, whatever is reported. Zero or "Infinity": no limit. @default no limit */
  readonly maxTime?: Duration.Input | undefined
}

/**
 * What is heard of a call that is followed: reports of its progress, in the words of the protocol, and last its result.
 *
 * @category models
 * @since 0.1.0
 */
export type CallEvent =
  | { readonly _tag: "Progress"; readonly value: unknown }
  | { readonly _tag: "Result"; readonly value: unknown }

/**
 * Options of a subscription to notifications.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubscribeOptions {
  /** Methods of the notifications to hear of. @default all */
  readonly methods?: ReadonlyArray<string> | undefined
  /** Notifications that may wait to be taken, whatever their size: fewer where they are large. @default 4096 */
  readonly capacity?: number | undefined
  /** When more come: fail this subscriber, drop what waits longest, or stop reading, which also holds up responses and requests, until they are taken or the scope of the subscription closes. @default "fail" */
  readonly policy?: "fail" | "dropOldest" | "suspend" | undefined
}

/**
 * What the other side says when it has too much to do, and how long to wait before it is asked again.
 *
 * @category models
 * @since 0.1.0
 */
export interface Overload {
  /** Codes of the errors that say so. @default [-32001] */
  readonly codes?: ReadonlyArray<number> | undefined
  /** @default four more times, after about 100, 200, 400 and 800 milliseconds */
  readonly schedule?: Schedule.Schedule<unknown, JsonRpc.JsonRpcError | PeerError> | undefined
}

/**
 * A request or call that is not settled yet.
 *
 * @category models
 * @since 0.1.0
 */
export interface InFlight {
  readonly id: JsonRpc.Id
  readonly method: string
}

/**
 * What a peer has counted since it was made.
 *
 * @category models
 * @since 0.1.0
 */
export interface Stats {
  /** Valid messages read. */
  readonly messages: number
  /** Frames and faults that were no valid message. */
  readonly badInput: number
  /** Of these, those that could have been answered but were not: too many a second, or `onBadInput` says so. */
  readonly unanswered: number
  /** Requests whose handler answered nothing, on purpose. */
  readonly noReplies: number
  /** Responses that belong to no waiting call: late, doubled, or to an id never used. */
  readonly strayResponses: number
}

/**
 * What is known of input that is no valid message.
 *
 * @category models
 * @since 0.1.0
 */
export interface BadInput {
  readonly reason: Lifecycle.BadInputReason
  /** The id to answer under; null where none could be read. */
  readonly id: JsonRpc.Id | null
  /** The answer that it gets when nothing else is said. */
  readonly error: JsonRpc.JsonRpcError
}

/**
 * Whether anything is going on, as a watchdog needs to know it. Plain functions, since they are asked often.
 *
 * @category models
 * @since 0.1.0
 */
export interface Activity {
  /** Whether a request, a notification's handler or a call of ours is in flight. */
  readonly isBusyUnsafe: () => boolean
  /** When something happened last, in milliseconds of the Clock. */
  readonly lastUnsafe: () => number
  /** Chunks of input seen so far, valid or not. */
  readonly arrivalsUnsafe: () => number
  /** Valid messages read so far. */
  readonly messagesUnsafe: () => number
}

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never> {
  /** Serves the requests and notifications of the other side. @default Router.empty: every request gets -32601 */
  readonly router?: Router.Router<R> | undefined
  /** How the `jsonrpc` member is treated. @default "strict" */
  readonly profile?: JsonRpc.Profile | undefined
  /** How requests are cancelled, in both directions. @default Cancellation.none */
  readonly cancellation?: Cancellation.Cancellation | undefined
  /** Requests handled at the same time, one at least. @default "unbounded" */
  readonly concurrency?: number | "unbounded" | undefined
  /** Requests that may wait where `concurrency` is a number; more get -32603 "too many requests". @default 1024 */
  readonly maxQueuedRequests?: number | undefined
  /** Time for one handler; a request that exceeds it gets -32603. Zero or infinity: no limit. @default no limit */
  readonly handlerTimeout?: Duration.Input | undefined
  /** Methods whose requests stay open by design, such as subscriptions: `concurrency` and `handlerTimeout` do not apply. @default none */
  readonly openEnded?: ((method: string) => boolean) | undefined
  /** What a batch gets: served as JSON-RPC 2.0 says, up to 1,000 messages, or refused with -32600; a function decides batch by batch. @default "serve" */
  readonly batch?: "serve" | "refuse" | (() => "serve" | "refuse") | undefined
  /** What a request gets whose id is in flight already: refused with -32600, or served after the first. @default "refuse" */
  readonly duplicateIds?: "refuse" | "serve" | undefined
  /** Whether input that is no valid message is answered (we are the server of a host), or skipped and counted (we talk to a child); a function says with what, or undefined for nothing. @default "reply" */
  readonly onBadInput?: "reply" | "count" | ((bad: BadInput) => JsonRpc.JsonRpcError | undefined) | undefined
  /** Bytes of requests and notifications, 256 added to each, that may be read before they can be begun; then reading pauses, cancellations included. @default 67108864 (64 MiB) */
  readonly maxBufferedInput?: number | undefined
  /** Deadline of our own calls. Zero or infinity: none. @default "30 seconds" */
  readonly callTimeout?: Duration.Input | undefined
  /** Calls of ours with a deadline that may be in flight; more wait. @default 1024 */
  readonly maxCallsInFlight?: number | undefined
  /** How the progress of our calls is reported. @default Progress.none */
  readonly progress?: Progress.Progress | undefined
  /** When a call marked `idempotent` is made again. */
  readonly overload?: Overload | undefined
  /** When so many bytes have come and no message, a banner for example, the connection fails with `NotJsonRpc`. @default 65536 where `onBadInput` is "count", else no limit */
  readonly maxNoise?: number | undefined
  /** Is told of each message that goes by. @default nobody */
  readonly tap?: Tap.Tap | undefined
  /** Framing of the messages that we start. @default the transport's or, where that is `auto`, that of the first valid message */
  readonly ownFraming?: Framing.Kind | undefined
}

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * One end of a JSON-RPC connection, as a value and as the tag of programs that have exactly one.
 *
 * @category services
 * @since 0.1.0
 */
export class Peer extends Context.Service<Peer, {
  /** Sends a request and waits for its response; interrupting the caller cancels the request. */
  readonly call: (
    method: string,
    params?: object,
    options?: CallOptions
  ) => Effect.Effect<unknown, JsonRpc.JsonRpcError | PeerError>
  /** Sends a request that asks for progress, in the way of `progress`: its reports, and then its result. Ending the stream early cancels the request. */
  readonly follow: (
    method: string,
    params?: object,
    options?: FollowOptions
  ) => Stream.Stream<CallEvent, JsonRpc.JsonRpcError | PeerError>
  /** Hears of the notifications from now on, in their order, beside the router. The stream ends with the input, and fails where that did not end well. */
  readonly subscribe: (
    options?: SubscribeOptions
  ) => Effect.Effect<Stream.Stream<JsonRpc.Notification, PeerError>, never, Scope.Scope>
  /** Sends a notification; suspends while the other side does not read. */
  readonly notify: (method: string, params?: object) => Effect.Effect<void, PeerError>
  /** Returns when all input has been read and handed on: its reason, or the error that ended it. */
  readonly inputEnded: Effect.Effect<void, Transport.TransportError>
  /** Why the connection ended, or that what came is no JSON-RPC. */
  readonly closed: Effect.Effect<Transport.CloseReason | Transport.NotJsonRpc>
  /** Takes no more input. Part of the end of a server, like `drained` and `cutOff`. */
  readonly stopReading: Effect.Effect<void>
  /** Returns when no request and no notification of the other side is being handled. */
  readonly drained: Effect.Effect<void>
  /** Answers every request in flight with this error, interrupts their handlers, and returns how many there were when all have ended. The peer serves nothing afterwards. */
  readonly cutOff: (error: JsonRpc.JsonRpcError) => Effect.Effect<number>
  /** The requests being served and the calls that wait. */
  readonly inFlight: Effect.Effect<{
    readonly requests: ReadonlyArray<InFlight>
    readonly calls: ReadonlyArray<InFlight>
  }>
  readonly stats: Effect.Effect<Stats>
  readonly activity: Activity
}>()("effect-stdio/Peer") {}

/**
 * The connection that a handler serves: what it calls and notifies to reach the one who asked.
 *
 * **Example** (A handler that asks its client)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Peer from "effect-stdio/Peer"
 * import * as Router from "effect-stdio/Router"
 *
 * const router = Router.rawRequest(Router.empty, "whoami", () =>
 *   Effect.gen(function*() {
 *     const caller = yield* Peer.Caller
 *     return yield* Effect.orDie(caller.call("client/name"))
 *   }))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Caller extends Context.Service<Caller, Peer["Service"]>()("effect-stdio/Peer/Caller") {}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

const MAX_NOISE = 65_536

const badInputCounter = Metric.counter("effect_stdio_bad_input", {
  description: "Frames and faults that were no valid message",
  incremental: true
})
const requestCounter = Metric.counter("effect_stdio_requests", { description: "Requests received", incremental: true })
const notificationCounter = Metric.counter("effect_stdio_notifications", {
  description: "Notifications received",
  incremental: true
})
const callCounter = Metric.counter("effect_stdio_calls", { description: "Calls made", incremental: true })

/**
 * Makes a peer over a transport and starts reading.
 *
 * **Details**
 *
 * Handlers run with the services of the effect that makes the peer, with a {@link Caller}, and each with a Scope of its
 * own that is closed when it ends. Closing the peer's scope stops reading, fails the calls that wait, and interrupts the
 * handlers without answering for them: a server answers before, with `drained` and `cutOff`.
 *
 * **Example** (Two peers in one program)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Peer from "effect-stdio/Peer"
 * import * as Router from "effect-stdio/Router"
 * import * as Transport from "effect-stdio/Transport"
 *
 * const program = Effect.gen(function*() {
 *   const [left, right] = yield* Transport.makePair()
 *   yield* Peer.make(right, { router: Router.raw((params) => Effect.succeed(params)) })
 *   const client = yield* Peer.make(left, { ownFraming: "line" })
 *   return yield* client.call("echo", { text: "hello" })
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*<R = never>(
  transport: Transport.Transport["Service"],
  options?: Options<R>
): Effect.fn.Return<Peer["Service"], never, Exclude<R, Caller | Scope.Scope> | Scope.Scope> {
  const clock = yield* Clock.Clock
  const observe = yield* observer
  const services = yield* Effect.context<Exclude<R, Caller | Scope.Scope>>()

  const profile = options?.profile ?? "strict"
  const cancellation = options?.cancellation ?? Cancellation.none
  const progress = options?.progress ?? Progress.none
  const maxBufferedInput = options?.maxBufferedInput ?? 64 * 1024 * 1024
  const callTimeout = Duration.fromInputUnsafe(options?.callTimeout ?? "30 seconds")
  const concurrency = options?.concurrency === undefined || options.concurrency === "unbounded"
    ? Infinity
    : options.concurrency
  if (!(concurrency >= 1)) {
    return yield* Effect.die(new RangeError(`concurrency must be at least 1, or "unbounded"; it is ${concurrency}`))
  }

  /** Functions of the user that the reader must call do not end it. */
  const safely = <A>(evaluate: () => A, otherwise: A): A => {
    try {
      return evaluate()
    } catch (error) {
      Effect.runForkWith(services)(Effect.logError("an option of the peer threw", error))
      return otherwise
    }
  }

  let notifications = 0
  const isTraced = services.mapUnsafe.has(Tracer.Tracer.key)
  let last = clock.currentTimeMillisUnsafe()
  // a burst of messages that is handled in one go happens at one time
  let isReading = false
  const touch = () => {
    if (!isReading) last = clock.currentTimeMillisUnsafe()
  }

  // ---- our own frames

  const tapping = options?.tap === undefined ? undefined : makeTapping(options.tap, clock, safely)
  const outgoing = makeOutgoing(transport, profile, options?.ownFraming, tapping)

  /** `giveUp` ends the wait of a sender for room. */
  const sendOwn = (message: JsonRpc.Request | JsonRpc.Notification, giveUp?: Effect.Effect<void>) =>
    Effect.mapError(
      outgoing.send(message, giveUp),
      (reason) => new PeerError({ reason: new Closed({ method: message.method, reason }) })
    )

  const timedOut = (method: string) => new PeerError({ reason: new Timeout({ method }) })

  const calls = makeCalls<JsonRpc.JsonRpcError | PeerError>({
    maxInFlight: options?.maxCallsInFlight ?? 1_024,
    cancellation,
    send: (id, method, params, giveUp) => sendOwn({ id, method, ...(params === undefined ? {} : { params }) }, giveUp),
    trySend: (id, method, params) =>
      outgoing.trySendUnsafe(params === undefined ? { id, method } : { id, method, params }),
    sendCancellation: (method, params) => outgoing.sendUnsafe({ method, params }),
    touch,
    timedOut: (method) => timedOut(method),
    // a wall clock that is set back must not lengthen a deadline
    now: () => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000,
    fork: Effect.runForkWith(services)
  })
  const followed = makeFollowed<JsonRpc.JsonRpcError | PeerError>(progress, clock, safely)
  const subscriptions = makeSubscriptions<PeerError>((capacity) => new PeerError({ reason: new Lagged({ capacity }) }))

  const closeCalls = (reason: Transport.TransportError) => {
    outgoing.close(reason)
    calls.close((method) => new PeerError({ reason: new Closed({ method, reason }) }))
  }

  /** Our output is ended, and nothing more can be asked; what was asked may still be answered. */
  const refuseCalls = (reason: Transport.TransportError) => {
    outgoing.close(reason)
    calls.refuse((method) => new PeerError({ reason: new Closed({ method, reason }) }))
  }

  const limit = (timeout: Duration.Duration) =>
    Duration.isFinite(timeout) && !Duration.isZero(timeout) ? timeout : undefined

  const timeoutOf = (timeout: Duration.Input | undefined) =>
    limit(timeout === undefined ? callTimeout : Duration.fromInputUnsafe(timeout))

  const traced = <A, E>(method: string, call: Effect.Effect<A, E>) => {
    callCounter.updateUnsafe(1, services)
    return isTraced
      ? Effect.withSpan(call, method, {
        kind: "client",
        captureStackTrace: false,
        attributes: { "rpc.system": "jsonrpc" }
      })
      : call
  }

  const overloadCodes = new Set(options?.overload?.codes ?? [OVERLOADED])

  /** Asks again where the other side was too busy, and it does no harm. */
  const patiently = (request: Effect.Effect<unknown, JsonRpc.JsonRpcError | PeerError>) =>
    Effect.retry(request, {
      while: (error) => error._tag === "JsonRpcError" && overloadCodes.has(error.code),
      schedule: options?.overload?.schedule ?? overloadSchedule
    })

  const call: Peer["Service"]["call"] = (method, params, callOptions) =>
    Effect.suspend(() => {
      const timeout = timeoutOf(callOptions?.timeout)
      const isIdempotent = callOptions?.idempotent === true
      if (timeout === undefined) {
        const request = calls.request(method, params)
        return traced(method, isIdempotent ? patiently(request) : request)
      }
      if (!isIdempotent) return traced(method, calls.requestWithin(method, params, Duration.toMillis(timeout)))
      return traced(
        method,
        Effect.timeoutOrElse(patiently(calls.limited(calls.request(method, params))), {
          duration: timeout,
          orElse: () => Effect.fail(timedOut(method))
        })
      )
    })

  const follow: Peer["Service"]["follow"] = (method, params, followOptions) => {
    const silence = timeoutOf(followOptions?.timeout)
    const total = limit(Duration.fromInputUnsafe(followOptions?.maxTime ?? 0))
    return followed.follow(
      (params) =>
        traced(
          method,
          silence === undefined ? calls.request(method, params) : calls.limited(calls.request(method, params))
        ),
      params,
      {
        silence: silence === undefined ? undefined : Duration.toMillis(silence),
        total: total === undefined ? undefined : Duration.toMillis(total),
        timedOut: () => timedOut(method)
      }
    )
  }

  const notify: Peer["Service"]["notify"] = (method, params) => {
    const duration = limit(callTimeout)
    const sent = sendOwn({ method, ...(params === undefined ? {} : { params }) })
    return duration === undefined
      ? sent
      : Effect.timeoutOrElse(sent, { duration, orElse: () => Effect.fail(timedOut(method)) })
  }

  // ---- the other side's frames

  const notJsonRpc = Deferred.makeUnsafe<Transport.NotJsonRpc>()

  const peer: Peer["Service"] = Peer.of({
    call,
    follow,
    subscribe: subscriptions.subscribe,
    notify,
    inputEnded: Effect.suspend(() => Fiber.join(reader)),
    closed: Effect.raceFirst(transport.closed, Deferred.await(notJsonRpc)),
    stopReading: Effect.suspend(() => {
      reader.interruptUnsafe()
      return Effect.asVoid(Fiber.await(reader))
    }),
    drained: Effect.suspend(() => serving.drained),
    cutOff: (error) => serving.cutOff(error),
    inFlight: Effect.sync(() => ({ requests: serving.inFlight(), calls: calls.inFlight() })),
    stats: Effect.sync(() => ({
      messages: dispatch.messages(),
      badInput: badInput.count(),
      unanswered: badInput.unanswered(),
      noReplies: serving.noReplies(),
      strayResponses: dispatch.strayResponses()
    })),
    activity: {
      isBusyUnsafe: () => serving.isBusy() || calls.size() > 0,
      lastUnsafe: () => Math.max(last, transport.lastArrivalUnsafe()),
      arrivalsUnsafe: transport.arrivalsUnsafe,
      messagesUnsafe: () => dispatch.messages()
    }
  })

  const replies = makeReplies(transport, profile, touch, tapping)
  const serving = makeServing({
    // the services a handler needs are `services` and the Caller added here: the two types that R is made of
    router: (options?.router ?? Router.empty) as Router.Router<never>,
    context: Context.add(services, Caller, Caller.of(peer)) as Context.Context<never>,
    transport,
    replies,
    cancellation,
    concurrency,
    maxQueuedRequests: options?.maxQueuedRequests ?? 1_024,
    handlerTimeout: options?.handlerTimeout === undefined
      ? undefined
      : limit(Duration.fromInputUnsafe(options.handlerTimeout)),
    openEnded: (method) =>
      options?.openEnded !== undefined && safely(() => options.openEnded?.(method) === true, false),
    duplicateIds: options?.duplicateIds ?? "refuse",
    observe,
    touch
  })

  const policy = options?.onBadInput ?? "reply"
  const settleUnreadable = (id: JsonRpc.Id, detail: string) =>
    calls.settle(id, (method) => Exit.fail(new PeerError({ reason: new DecodeFailure({ method, detail }) })))

  const badInput = makeBadInput({
    policy,
    maxNoise: options?.maxNoise ?? (policy === "count" ? MAX_NOISE : Infinity),
    clock,
    replies,
    observe,
    counted: () => badInputCounter.updateUnsafe(1, services),
    settleUnreadable,
    safely
  })

  const onNotification = (message: JsonRpc.Notification, bytes: number) => {
    notifications++
    // a report is for the one who follows that call
    if (message.method === progress.method && followed.report(message.params)) return
    subscriptions.publish(message)
    serving.notification(message, bytes)
  }

  const dispatch = makeDispatch({
    profile,
    batch: options?.batch,
    cancellation,
    badInput,
    calls,
    outgoing,
    replies,
    serving,
    tapping,
    onNotification,
    safely
  })

  const isOverfull = () => transport.queuedBytesUnsafe() > transport.maxQueuedBytes + maxBufferedInput

  const hasRoom = () => serving.bufferedBytes() < maxBufferedInput

  const bufferHasRoom: Effect.Effect<void> = Effect.suspend(() => {
    // what is answered without a handler, such as bad input, is bounded too
    if (isOverfull()) {
      return Effect.andThen(transport.decongested, bufferHasRoom)
    }
    if (hasRoom()) return Effect.void
    serving.onBuffered.closeUnsafe()
    // a turn later: room is made in the midst of what serving does
    return serving.onBuffered.await.pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(bufferHasRoom))
  })

  const onItems = (items: ReadonlyArray<Framing.Item>) => {
    touch()
    isReading = true
    const before = dispatch.requests()
    notifications = 0
    for (const item of items) dispatch.item(item)
    isReading = false
    const requests = dispatch.requests() - before
    // once a burst: a metric looks its context up with every change
    if (requests > 0) requestCounter.updateUnsafe(requests, services)
    if (notifications > 0) notificationCounter.updateUnsafe(notifications, services)
    const noise = badInput.noise()
    if (noise !== undefined && dispatch.messages() === 0) return Effect.fail(noise)
    const room = isOverfull() || !hasRoom() ? bufferHasRoom : Effect.void
    return subscriptions.isBehind() ? Effect.andThen(subscriptions.caughtUp, room) : room
  }

  const onInputClosed = (reason: Transport.TransportError["reason"]) => {
    const error = new Transport.TransportError({ reason })
    closeCalls(error)
    if (reason._tag === "NotJsonRpc") Deferred.doneUnsafe(notJsonRpc, Exit.succeed(reason))
    // one that does not read any more may well have said all that it had to say
    const isWell = reason._tag === "InputEnded" || reason._tag === "Ended" || reason._tag === "OutputClosed"
      || (reason._tag === "ProcessExited" && reason.exitCode === 0)
    subscriptions.close(
      isWell ? undefined : new PeerError({ reason: new Closed({ method: "subscribe", reason: error }) })
    )
  }

  const reader: Fiber.Fiber<void, Transport.TransportError> = yield* Stream.runForEachArray(
    transport.incoming,
    onItems
  ).pipe(
    // an ended input has said why; waited for here, where the wait may be interrupted
    Effect.andThen(transport.closed),
    Effect.map(onInputClosed),
    Effect.onError((cause) => {
      const error = Result.getOrUndefined(Cause.findError(cause))
      return Effect.sync(() => onInputClosed(error?.reason ?? new Transport.Ended()))
    }),
    Effect.forkScoped({ startImmediately: true })
  )

  yield* Effect.forkScoped(
    Effect.map(transport.outputClosed, (reason) => {
      const error = new Transport.TransportError({ reason })
      if (reason._tag === "Ended") refuseCalls(error)
      else closeCalls(error)
      serving.forgetWaiting()
    })
  )
  // an output that we have ended leaves the input as it is; the end of the transport does not
  yield* Effect.forkScoped(
    Effect.map(transport.closed, (reason) => {
      if (reason._tag === "Ended") onInputClosed(reason)
    })
  )
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      reader.interruptUnsafe()
      closeCalls(new Transport.TransportError({ reason: new Transport.Ended() }))
      return serving.abandon
    })
  )

  return peer
})

// -----------------------------------------------------------------------------
// typed calls
// -----------------------------------------------------------------------------

/**
 * Calls a method by the schemas that its server has given to `Router.request`: params are written, and the result is read,
 * as they say.
 *
 * **Details**
 *
 * A result that does not fit its schema is a {@link DecodeFailure}. Params that their schema writes as null or undefined
 * are left out; those it cannot write, or that are no object or array then, are a mistake of the program and die.
 *
 * **Example** (One contract for both sides)
 *
 * ```ts
 * import * as Schema from "effect/Schema"
 * import * as Peer from "effect-stdio/Peer"
 *
 * const Sum = { params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }), result: Schema.Finite }
 *
 * const add = (peer: Peer.Peer["Service"]) => Peer.request(peer, "add", Sum, { a: 1, b: 2 })
 * ```
 *
 * @category calling
 * @since 0.1.0
 */
export const request = <P extends Schema.Constraint, S extends Schema.Constraint>(
  self: Peer["Service"],
  method: string,
  schemas: Router.RequestSchemas<P, S>,
  params: P["Type"],
  options?: CallOptions
): Effect.Effect<S["Type"], JsonRpc.JsonRpcError | PeerError, P["EncodingServices"] | S["DecodingServices"]> => {
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(schemas.result))
  return encodeParams(schemas.params, params).pipe(
    Effect.flatMap((encoded) => self.call(method, encoded, options)),
    Effect.flatMap((result) =>
      Effect.mapError(decode(result), (error) => {
        const detail = error.message.replace(/\s*\n\s*/g, " ")
        return new PeerError({ reason: new DecodeFailure({ method, detail }) })
      })
    )
  )
}

/**
 * Sends a notification whose params are written by a schema.
 *
 * @category calling
 * @since 0.1.0
 */
export const notification = <P extends Schema.Constraint>(
  self: Peer["Service"],
  method: string,
  schema: P,
  params: P["Type"]
): Effect.Effect<void, PeerError, P["EncodingServices"]> =>
  Effect.flatMap(encodeParams(schema, params), (encoded) => self.notify(method, encoded))

const encodeParams = <P extends Schema.Constraint>(schema: P, params: P["Type"]) =>
  Schema.encodeUnknownEffect(Schema.toCodecJson(schema))(params).pipe(
    Effect.orDie,
    Effect.flatMap((encoded) =>
      encoded === undefined || encoded === null
        ? Effect.succeed(undefined)
        : typeof encoded === "object"
        ? Effect.succeed<object | undefined>(encoded)
        : Effect.die(new TypeError("the params of a message are an object or an array"))
    )
  )

// -----------------------------------------------------------------------------
// private helpers
// -----------------------------------------------------------------------------

// what codex answers when too many requests are open
const OVERLOADED = -32_001
const overloadSchedule = Schedule.exponential("100 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 4 }))

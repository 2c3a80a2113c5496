/**
 * The servers that a connection talks to, one after the other: the one behind a transport; those that an effect makes, each
 * when something is to be sent and the last has ended; or those that a supervisor keeps alive.
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Peer from "../../Peer.ts"
import type * as Process from "../../Process.ts"
import type * as JsonRpc from "../../Schema.ts"
import * as Supervisor from "../../Supervisor.ts"
import * as Transport from "../../Transport.ts"

/** One server, from its start to its end. @internal */
export interface Session<P> {
  readonly peer: Peer.Peer["Service"]
  /** Done when requests may be sent. */
  readonly ready: Deferred.Deferred<void, P>
  /** What the server said to `initialize`, once it has. */
  opened: unknown
  /** Whether it was told that we are initialized. */
  isInitialized: boolean
  /** What is no more is not asked. */
  isOver: boolean
}

/** @internal */
export interface Sessions<E, P> {
  /** The session that is, or a new one where the last is over and can be replaced. */
  readonly current: Effect.Effect<Session<P>, E>
  /** The last session, over or not; undefined before the first one. */
  readonly lastUnsafe: () => Session<P> | undefined
  /** Hears of the notifications of this session and of all that follow it. */
  readonly subscribe: (
    options: Peer.SubscribeOptions | undefined
  ) => Effect.Effect<Stream.Stream<JsonRpc.Notification, Peer.PeerError>, never, Scope.Scope>
}

/** Makes a session ready that may not be the first one. @internal */
export type Prepare<P> = (session: Session<P>) => Effect.Effect<void, P>

// sessions that may wait for a subscriber
const MAX_SESSIONS = 16

const makeSession = <P>(peer: Peer.Peer["Service"]): Session<P> => ({
  peer,
  ready: Deferred.makeUnsafe(),
  opened: undefined,
  isInitialized: false,
  isOver: false
})

/** Prepares a session, and says so to those who wait for it. */
const prepared = <P>(session: Session<P>, prepare: Prepare<P>) =>
  Effect.onExit(prepare(session), (exit) => {
    if (Exit.isFailure(exit)) session.isOver = true
    return Deferred.done(session.ready, exit)
  })

// -----------------------------------------------------------------------------
// one transport, or one after the other
// -----------------------------------------------------------------------------

/** @internal */
export const makeSessions = Effect.fnUntraced(function*<E, P>(
  /** Makes a peer in the scope of its session. */
  connect: (scope: Scope.Scope) => Effect.Effect<Peer.Peer["Service"], E>,
  isReplaceable: boolean,
  prepare: Prepare<P>
): Effect.fn.Return<Sessions<E, P>, E, Scope.Scope> {
  const scope = yield* Effect.scope
  const subscribers = yield* makeSubscribers(isReplaceable)
  let session: Session<P> | undefined
  let last: Scope.Closeable | undefined
  let starting: Deferred.Deferred<Session<P>, E> | undefined

  const start = Effect.gen(function*() {
    // two servers at once are nobody's wish
    if (last !== undefined) yield* Scope.close(last, Exit.void)
    const own = yield* Scope.fork(scope)
    last = own
    const peer = yield* Effect.onError(connect(own), (cause) => Scope.close(own, Exit.failCause(cause)))
    const started = makeSession<P>(peer)
    yield* Effect.forkIn(
      Effect.map(peer.closed, () => {
        started.isOver = true
      }),
      own,
      { startImmediately: true }
    )
    // before anything is sent, so that no notification is missed
    yield* subscribers.attach(peer)
    session = started
    yield* Effect.forkIn(prepared(started, prepare), own, { startImmediately: true })
    return started
  })

  const restarted = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      if (starting !== undefined) return restore(Deferred.await(starting))
      const done = Deferred.makeUnsafe<Session<P>, E>()
      starting = done
      // one for all who ask, and it goes on when they are gone
      return start.pipe(
        Effect.onExit((exit) => {
          starting = undefined
          return Deferred.done(done, exit)
        }),
        Effect.forkIn(scope),
        Effect.andThen(restore(Deferred.await(done)))
      )
    })
  )

  const first = yield* start
  return {
    current: Effect.suspend(() => {
      const known = session ?? first
      return known.isOver && isReplaceable && scope.state._tag !== "Closed" ? restarted : Effect.succeed(known)
    }),
    lastUnsafe: () => session ?? first,
    subscribe: subscribers.subscribe
  }
})

// -----------------------------------------------------------------------------
// under a supervisor
// -----------------------------------------------------------------------------

const REQUEST = "the request"

/** @internal */
export const makeSupervisedSessions = Effect.fnUntraced(function*<E, P, R, RH>(
  start: Effect.Effect<Process.Process["Service"], E, R>,
  options: Omit<Supervisor.Options<never, never, RH>, "peer" | "handshake"> | undefined,
  peerOptions: Peer.Options,
  prepare: Prepare<P>
) {
  const sessions = new WeakMap<Peer.Peer["Service"], Session<P>>()
  const subscribers = yield* makeSubscribers(true)
  let session: Session<P> | undefined

  const supervisor = yield* Supervisor.make(start, {
    ...options,
    peer: peerOptions,
    handshake: (peer) =>
      Effect.suspend(() => {
        const started = makeSession<P>(peer)
        sessions.set(peer, started)
        session = started
        return Effect.andThen(subscribers.attach(peer), prepared(started, prepare))
      })
  })

  const current: Effect.Effect<Session<P>, Supervisor.SupervisorError> = Effect.suspend(() =>
    supervisor.use<Session<P>, Peer.PeerError, never>((peer) => {
      const found = sessions.get(peer)
      // the supervisor has not seen yet what a call of ours has
      return found === undefined || found.isOver ? Effect.fail(isOver) : Effect.succeed(found)
    }, { method: REQUEST })
  ).pipe(
    // the supervisor makes its own error of the one above
    Effect.catchTag("PeerError", Effect.die)
  )

  const sessionsOf: Sessions<Supervisor.SupervisorError, P> = {
    current: Effect.catchReason(
      current,
      "SupervisorError",
      "OutcomeUnknown",
      () => current
    ),
    lastUnsafe: () => session,
    subscribe: subscribers.subscribe
  }
  return sessionsOf
})

const isOver = new Peer.PeerError({
  reason: new Peer.Closed({
    method: REQUEST,
    reason: new Transport.TransportError({ reason: new Transport.InputEnded() })
  })
})

// -----------------------------------------------------------------------------
// those who hear of notifications
// -----------------------------------------------------------------------------

type Notifications = Stream.Stream<JsonRpc.Notification, Peer.PeerError>

interface Subscriber {
  readonly options: Peer.SubscribeOptions | undefined
  readonly scope: Scope.Scope
  readonly streams: Queue.Queue<Notifications, Cause.Done>
  joined: Peer.Peer["Service"] | undefined
}

const makeSubscribers = Effect.fnUntraced(function*(isReplaceable: boolean) {
  const subscribers = new Set<Subscriber>()
  let current: Peer.Peer["Service"] | undefined
  let isClosed = false
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      for (const { streams } of subscribers) Queue.endUnsafe(streams)
    })
  )

  const join = (subscriber: Subscriber, peer: Peer.Peer["Service"]) =>
    Effect.suspend(() => {
      if (subscriber.joined === peer) return Effect.void
      subscriber.joined = peer
      return Effect.flatMap(
        Scope.provide(peer.subscribe(subscriber.options), subscriber.scope),
        (stream) => Queue.offer(subscriber.streams, isReplaceable ? carriedOn(stream) : stream)
      )
    })

  return {
    /** Lets all hear of another peer. */
    attach: (peer: Peer.Peer["Service"]) =>
      Effect.suspend(() => {
        current = peer
        return Effect.forEach(subscribers, (subscriber) => join(subscriber, peer), { discard: true })
      }),
    subscribe: (options: Peer.SubscribeOptions | undefined): Effect.Effect<Notifications, never, Scope.Scope> =>
      Effect.gen(function*() {
        const scope = yield* Effect.scope
        const streams = yield* Effect.acquireRelease(
          Queue.sliding<Notifications, Cause.Done>(MAX_SESSIONS),
          Queue.shutdown
        )
        const subscriber: Subscriber = { options, scope, streams, joined: undefined }
        yield* Effect.acquireRelease(
          Effect.sync(() => subscribers.add(subscriber)),
          () => Effect.sync(() => subscribers.delete(subscriber))
        )
        if (current !== undefined) yield* join(subscriber, current)
        if (isClosed || !isReplaceable) Queue.endUnsafe(streams)
        return Stream.flatMap(Stream.fromQueue(streams), (stream) => stream)
      })
  }
})

/** The end of one server is not the end of what is heard of the next. */
const carriedOn = (stream: Notifications): Notifications =>
  Stream.catch(stream, (error) => error.reason._tag === "Closed" ? Stream.empty : Stream.fail(error))

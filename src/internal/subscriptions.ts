/**
 * The notifications of the other side as streams, one a subscriber, each with its own patience.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Peer from "../Peer.ts"
import type { Notification } from "../Schema.ts"

/** @internal */
export interface Subscriptions<E> {
  readonly subscribe: (
    options?: Peer.SubscribeOptions
  ) => Effect.Effect<Stream.Stream<Notification, E>, never, Scope.Scope>
  readonly publish: (notification: Notification) => void
  /** Whether a subscriber wants the reader to wait for it. */
  readonly isBehind: () => boolean
  /** Returns when no subscriber wants the reader to wait. */
  readonly caughtUp: Effect.Effect<void>
  /** Ends all streams, with an error where there is one. */
  readonly close: (error: E | undefined) => void
}

interface Subscriber<E> {
  readonly queue: Queue.Queue<Notification, E | Cause.Done>
  readonly methods: ReadonlySet<string> | undefined
  readonly policy: NonNullable<Peer.SubscribeOptions["policy"]>
  readonly capacity: number
  /** What did not fit while the reader must wait: at most one burst. */
  behind: Array<Notification>
}

const strategies = { fail: "dropping", dropOldest: "sliding", suspend: "suspend" } as const

/** @internal */
export const makeSubscriptions = <E>(lagged: (capacity: number) => E): Subscriptions<E> => {
  const subscribers = new Set<Subscriber<E>>()
  let closed: { readonly error: E | undefined } | undefined

  const finish = ({ queue }: Subscriber<E>, error: E | undefined) => {
    if (error === undefined) Queue.endUnsafe(queue)
    else Queue.failCauseUnsafe(queue, Cause.fail(error))
  }

  const offer = (subscriber: Subscriber<E>, notification: Notification) => {
    const { behind, capacity, methods, policy, queue } = subscriber
    if (methods !== undefined && !methods.has(notification.method)) return
    if (behind.length === 0 && Queue.offerUnsafe(queue, notification)) return
    if (policy === "suspend") {
      behind.push(notification)
    } else if (policy === "fail") {
      subscribers.delete(subscriber)
      finish(subscriber, lagged(capacity))
    }
  }

  return {
    subscribe: (options) =>
      Effect.gen(function*() {
        const capacity = options?.capacity ?? 4_096
        const policy = options?.policy ?? "fail"
        const queue = yield* Effect.acquireRelease(
          Queue.make<Notification, E | Cause.Done>({ capacity, strategy: strategies[policy] }),
          Queue.shutdown
        )
        const subscriber: Subscriber<E> = {
          queue,
          methods: options?.methods === undefined ? undefined : new Set(options.methods),
          policy,
          capacity,
          behind: []
        }
        if (closed === undefined) {
          yield* Effect.acquireRelease(
            Effect.sync(() => subscribers.add(subscriber)),
            () => Effect.sync(() => subscribers.delete(subscriber))
          )
        } else {
          finish(subscriber, closed.error)
        }
        return Stream.fromQueue(queue)
      }),
    publish: (notification) => {
      for (const subscriber of subscribers) offer(subscriber, notification)
    },
    isBehind: () => {
      for (const { behind } of subscribers) if (behind.length > 0) return true
      return false
    },
    caughtUp: Effect.suspend(() =>
      Effect.forEach([...subscribers], (subscriber) => {
        const { behind } = subscriber
        subscriber.behind = []
        return behind.length === 0 ? Effect.void : Queue.offerAll(subscriber.queue, behind)
      }, { discard: true, concurrency: "unbounded" })
    ),
    close: (error) => {
      if (closed !== undefined) return
      closed = { error }
      for (const subscriber of subscribers) {
        // what the reader waited with is delivered before the end
        Queue.offerAllUnsafe(subscriber.queue, subscriber.behind)
        finish(subscriber, error)
      }
      subscribers.clear()
    }
  }
}

/**
 * The notifications of the other side as streams, one a subscriber, each with its own patience.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
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
}

// one that suspends takes the rest of a burst beyond its capacity: the reader waits between bursts only
const strategies = { fail: "dropping", dropOldest: "sliding", suspend: "suspend" } as const

/** @internal */
export const makeSubscriptions = <E>(lagged: (capacity: number) => E): Subscriptions<E> => {
  const subscribers = new Set<Subscriber<E>>()
  // opened when one that suspends has taken, or has left
  const taken = Latch.makeUnsafe(false)
  let closed: { readonly error: E | undefined } | undefined

  const finish = ({ queue }: Subscriber<E>, error: E | undefined) => {
    if (error === undefined) Queue.endUnsafe(queue)
    else Queue.failCauseUnsafe(queue, Cause.fail(error))
  }

  const offer = (subscriber: Subscriber<E>, notification: Notification) => {
    const { capacity, methods, policy, queue } = subscriber
    if (methods !== undefined && !methods.has(notification.method)) return
    if (Queue.offerUnsafe(queue, notification) || policy !== "fail") return
    subscribers.delete(subscriber)
    finish(subscriber, lagged(capacity))
  }

  const isBehind = () => {
    for (const { capacity, policy, queue } of subscribers) {
      if (policy === "suspend" && Queue.sizeUnsafe(queue) > capacity) return true
    }
    return false
  }

  const caughtUp: Effect.Effect<void> = Effect.suspend(() => {
    if (!isBehind()) return Effect.void
    taken.closeUnsafe()
    return Effect.andThen(taken.await, caughtUp)
  })

  return {
    subscribe: (options) =>
      Effect.gen(function*() {
        const capacity = options?.capacity ?? 4_096
        const policy = options?.policy ?? "fail"
        const queue = yield* Effect.acquireRelease(
          Queue.make<Notification, E | Cause.Done>({
            capacity: policy === "suspend" ? Infinity : capacity,
            strategy: strategies[policy]
          }),
          Queue.shutdown
        )
        const subscriber: Subscriber<E> = {
          queue,
          methods: options?.methods === undefined ? undefined : new Set(options.methods),
          policy,
          capacity
        }
        yield* Effect.acquireRelease(
          // in one step: the end may come between two
          Effect.sync(() => {
            if (closed === undefined) subscribers.add(subscriber)
            else finish(subscriber, closed.error)
          }),
          () =>
            Effect.sync(() => {
              subscribers.delete(subscriber)
              taken.openUnsafe()
            })
        )
        if (policy !== "suspend") return Stream.fromQueue(queue)
        return Stream.fromPull(Effect.succeed(Effect.map(Queue.takeAll(queue), (notifications) => {
          taken.openUnsafe()
          return notifications
        })))
      }),
    publish: (notification) => {
      for (const subscriber of subscribers) offer(subscriber, notification)
    },
    isBehind,
    caughtUp,
    close: (error) => {
      if (closed !== undefined) return
      closed = { error }
      for (const subscriber of subscribers) finish(subscriber, error)
      subscribers.clear()
    }
  }
}

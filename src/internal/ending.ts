/**
 * How a server ends, once something has ended it: what is in flight may finish, what is left is cut off with an answer,
 * and what was answered is written; each for a bounded time, which an interruption and the loss of the other side only
 * shorten.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Lifecycle from "../Lifecycle.ts"
import type * as Peer from "../Peer.ts"
import * as JsonRpc from "../Schema.ts"
import type * as Transport from "../Transport.ts"
import { own, within } from "./bounded.ts"

// milliseconds; those in a hurry add up to less than a signal's budget, and leave some to the layers
const AT_LEISURE = { interruption: 500, flush: 500 }
const IN_HURRY = { drain: 1_000, interruption: 200, flush: 150 }

/** @internal */
export interface Ending {
  readonly peer: Peer.Peer["Service"]
  readonly transport: Transport.Transport["Service"]
  readonly observe: ((event: Lifecycle.Event) => void) | undefined
  readonly onStopping: Effect.Effect<void>
  /** Milliseconds for what is in flight, and for writing what was answered. */
  readonly drainTimeout: number
  /** Done when nobody is there any more to read an answer. */
  readonly lost: Deferred.Deferred<void>
  /** Whether the server was interrupted already. */
  readonly interrupted: boolean
  /** Makes the waits interruptible, in an uninterruptible region. */
  readonly restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** @internal */
export const end = Effect.fnUntraced(function*(ending: Ending): Effect.fn.Return<void> {
  const { lost, observe, peer, restore, transport } = ending
  const clock = yield* Clock.Clock
  const drainTimeout = ending.interrupted ? Math.min(IN_HURRY.drain, ending.drainTimeout) : ending.drainTimeout
  const deadline = clock.currentTimeMillisUnsafe() + drainTimeout
  const timeLeft = () => Math.max(0, deadline - clock.currentTimeMillisUnsafe())
  let hurried = ending.interrupted

  /** Waits at leisure until an interruption comes, and from then on in a hurry; true when the effect came first. */
  const wait = (effect: Effect.Effect<unknown>, limits: { readonly leisure: Limits; readonly hurry: Limits }) =>
    Effect.gen(function*() {
      if (!hurried) {
        const exit = yield* Effect.exit(restore(before(effect, limits.leisure, lost)))
        if (Exit.isSuccess(exit)) return exit.value
        hurried = true
      }
      return yield* own(before(effect, limits.hurry, lost))
    })

  // once, whether or not the wait for it is cut short
  const prepared = yield* Effect.forkDetach(
    Effect.andThen(
      within(AT_LEISURE.interruption, peer.stopReading),
      Effect.tapCause(
        ending.onStopping,
        (cause) => Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("onStopping died", cause)
      )
    ),
    { startImmediately: true }
  )
  const isDrained = yield* wait(Effect.andThen(Fiber.await(prepared), peer.drained), {
    leisure: { limit: timeLeft, afterLoss: 0 },
    hurry: { limit: () => Math.min(IN_HURRY.drain, timeLeft()), afterLoss: 0 }
  })
  prepared.interruptUnsafe()

  if (!isDrained) {
    const { requests } = yield* peer.inFlight
    if (requests.length > 0) observe?.({ _tag: "CutOff", requests: requests.length })
    const cutOff = peer.cutOff(JsonRpc.JsonRpcError.internal("server stopping"))
    yield* within((hurried ? IN_HURRY : AT_LEISURE).interruption, cutOff)
  }

  // for a reader that takes its time, the rest of the drain
  yield* wait(transport.end, {
    leisure: { limit: () => Math.max(AT_LEISURE.flush, timeLeft()), afterLoss: AT_LEISURE.flush },
    hurry: { limit: () => IN_HURRY.flush, afterLoss: IN_HURRY.flush }
  })
  const queuedBytes = transport.queuedBytesUnsafe()
  if (queuedBytes > 0) observe?.({ _tag: "Unflushed", queuedBytes })
})

interface Limits {
  readonly limit: () => number
  /** Time that is left when the other side is lost. */
  readonly afterLoss: number
}

const before = (
  effect: Effect.Effect<unknown>,
  { afterLoss, limit }: Limits,
  lost: Deferred.Deferred<void>
): Effect.Effect<boolean> =>
  Effect.suspend(() =>
    Effect.raceFirst(
      Effect.as(effect, true),
      Effect.as(
        Effect.raceFirst(Effect.andThen(Deferred.await(lost), Effect.sleep(afterLoss)), Effect.sleep(limit())),
        false
      )
    )
  )

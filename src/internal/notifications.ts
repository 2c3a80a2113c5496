/**
 * The notifications of the other side: handled one after the other in the order of their arrival, off the reader.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Router from "../Router.ts"
import type * as JsonRpc from "../Schema.ts"
import { shorten } from "./shorten.ts"

/** @internal */
export interface Options {
  readonly router: Router.Router<never>
  readonly context: Context.Context<never>
  readonly timeout: Duration.Duration | undefined
  readonly changeBuffered: (bytes: number) => void
  readonly onIdle: () => void
}

/** @internal */
export interface Notifications {
  readonly add: (notification: JsonRpc.Notification, size: number) => void
  readonly isBusy: () => boolean
  readonly fiber: () => Fiber.Fiber<void> | undefined
  /** Drops what waits. */
  readonly forget: () => void
}

/** @internal */
export const makeNotifications = ({ context, router, ...options }: Options): Notifications => {
  const runFork = Effect.runForkWith(context)
  // bounded by maxBufferedInput: the reader pauses
  let waiting: Array<{ readonly notification: JsonRpc.Notification; readonly size: number }> = []
  let fiber: Fiber.Fiber<void> | undefined

  const handlerOf = (method: string) => router.notifications.get(method) ?? router.otherNotifications

  /** What a handler wants to do; one that throws has died. */
  const begin = (handler: Router.NotificationHandler, { method, params }: JsonRpc.Notification) => {
    try {
      return handler(params, method)
    } catch (error) {
      return Effect.die(error)
    }
  }

  const handle = ({ method }: JsonRpc.Notification, effect: ReturnType<Router.NotificationHandler>) => {
    const handled = Effect.scoped(effect)
    const limited = options.timeout === undefined ? handled : Effect.timeoutOrElse(handled, {
      duration: options.timeout,
      orElse: () => Effect.logWarning(`the handler of the notification ${shorten(method)} took too long`)
    })
    // whatever becomes of one handler, the next notification gets its own
    return Effect.catchCause(
      limited,
      (cause) => Effect.logWarning(`the handler of the notification ${shorten(method)} failed`, cause)
    )
  }

  const handleAll: Effect.Effect<void> = Effect.suspend(() => {
    const batch = waiting
    waiting = []
    return batch.length === 0 ? Effect.void : Effect.andThen(
      Effect.forEach(batch, ({ notification, size }) => {
        options.changeBuffered(-size)
        const handler = handlerOf(notification.method)
        return handler === undefined ? Effect.void : handle(notification, begin(handler, notification))
      }, { discard: true }),
      handleAll
    )
  })

  return {
    add: (notification, size) => {
      const handler = handlerOf(notification.method)
      if (handler === undefined) return
      if (fiber !== undefined) {
        waiting.push({ notification, size })
        return options.changeBuffered(size)
      }
      // begun at once, so that what a handler does without waiting is done before the next request starts; where that is
      // all, it needs no fiber
      const effect = begin(handler, notification)
      if (Exit.isExit(effect) && Exit.isSuccess(effect)) return
      const handling = runFork(Effect.andThen(handle(notification, effect), handleAll))
      // it may be over already
      fiber = handling
      handling.addObserver(() => {
        fiber = undefined
        options.onIdle()
      })
    },
    isBusy: () => fiber !== undefined || waiting.length > 0,
    fiber: () => fiber,
    forget: () => {
      for (const { size } of waiting) options.changeBuffered(-size)
      waiting = []
    }
  }
}

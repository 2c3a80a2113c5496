/**
 * The calling side of a peer: our own requests while they wait. Each settles exactly once, by a response, its deadline,
 * the end of the connection, or the interruption of its caller, whichever comes first; what comes later is counted.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import type { Cancellation } from "../Cancellation.ts"
import type * as JsonRpc from "../Schema.ts"

/** @internal */
export interface Options<E> {
  readonly maxInFlight: number
  readonly cancellation: Cancellation
  /** Writes the request; suspends while the output is congested, and until `giveUp` returns. */
  readonly send: (
    id: JsonRpc.Id,
    method: string,
    params: object | undefined,
    giveUp: Effect.Effect<void>
  ) => Effect.Effect<void, E>
  /** Tells the other side, at once, that no answer is wanted any more. */
  readonly sendCancellation: (method: string, params: object) => void
  readonly touch: () => void
}

interface Pending<E> {
  readonly method: string
  readonly answer: Deferred.Deferred<unknown, E>
}

/** @internal */
export interface Calls<E> {
  /** Sends a request, and waits for its answer as long as it takes. */
  readonly request: (method: string, params: object | undefined) => Effect.Effect<unknown, E>
  /** Makes a request one of at most `maxInFlight`. */
  readonly limited: (request: Effect.Effect<unknown, E>) => Effect.Effect<unknown, E>
  /** Settles the call that waits under this id; false when there is none. */
  readonly settle: (id: JsonRpc.Id, exit: (method: string) => Exit.Exit<unknown, E>) => boolean
  /** Fails the calls to come; those that wait may still be answered. */
  readonly refuse: (error: (method: string) => E) => void
  /** Fails every call, those that wait and those to come. */
  readonly close: (error: (method: string) => E) => void
  readonly size: () => number
  readonly inFlight: () => ReadonlyArray<{ readonly id: JsonRpc.Id; readonly method: string }>
}

/** @internal */
export const makeCalls = <E>(options: Options<E>): Calls<E> => {
  const { cancellation } = options
  const pending = new Map<JsonRpc.Id, Pending<E>>()
  const permits = Semaphore.makeUnsafe(options.maxInFlight)
  let lastId = 0
  let closed: ((method: string) => E) | undefined

  const request = (method: string, params: object | undefined): Effect.Effect<unknown, E> =>
    Effect.suspend(() => {
      if (closed !== undefined) return Effect.fail(closed(method))
      const id = ++lastId
      const answer = Deferred.makeUnsafe<unknown, E>()
      let sent = false
      return Effect.suspend(() => {
        // registered before it is sent: the answer may be there before `send` returns
        pending.set(id, { method, answer })
        return options.send(id, method, params, Effect.ignore(Deferred.await(answer)))
      }).pipe(
        Effect.andThen(Effect.suspend(() => {
          // not when the wait was given up, but then there is nobody to tell either
          sent = true
          return Deferred.await(answer)
        })),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            options.touch()
            const unanswered = pending.delete(id)
            if (exit._tag === "Success" || !unanswered || !sent || closed !== undefined) return
            if (cancellation.method === undefined || cancellation.protectedMethods.has(method)) return
            options.sendCancellation(cancellation.method, cancellation.params(id))
          })
        )
      )
    })

  return {
    request,
    limited: permits.withPermits(1),
    settle: (id, exit) => {
      const waiting = pending.get(id)
      if (waiting === undefined) return false
      pending.delete(id)
      return Deferred.doneUnsafe(waiting.answer, exit(waiting.method))
    },
    refuse: (error) => {
      closed ??= error
    },
    close: (error) => {
      closed ??= error
      for (const [id, { answer, method }] of pending) {
        pending.delete(id)
        Deferred.doneUnsafe(answer, Exit.fail(error(method)))
      }
    },
    size: () => pending.size,
    inFlight: () => [...pending].map(([id, { method }]) => ({ id, method }))
  }
}

/**
 * The calling side of a peer: our own requests while they wait. Each settles exactly once, by a response, its deadline,
 * the end of the connection, or the interruption of its caller, whichever comes first; what comes later is counted.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Cancellation } from "../Cancellation.ts"
import type * as JsonRpc from "../Schema.ts"

/** @internal */
export interface Options<E> {
  readonly maxInFlight: number
  readonly cancellation: Cancellation
  /** Writes the request at once; false where `send` has to wait, or knows why it cannot be written. */
  readonly trySend: (id: JsonRpc.Id, method: string, params: object | undefined) => boolean
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
  readonly timedOut: (method: string) => E
  /** Milliseconds that never go back. */
  readonly now: () => number
  /** Runs in the background; interrupted when the calls are closed. */
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
}

/** A call from its start to its end. */
class Pending<E> {
  readonly answer = Deferred.makeUnsafe<unknown, E>()
  readonly method: string
  /** Infinity where it waits as long as it takes. */
  readonly deadline: number
  /** Where there is none yet, it was not begun. */
  id: number | undefined
  sent = false
  /** Whether its time is over. */
  expired = false

  constructor(method: string, deadline: number) {
    this.method = method
    this.deadline = deadline
  }
}

/** @internal */
export interface Calls<E> {
  /** Sends a request, and waits for its answer as long as it takes. */
  readonly request: (method: string, params: object | undefined) => Effect.Effect<unknown, E>
  /** The same with a deadline, and as one of at most `maxInFlight`; waiting to be one counts. */
  readonly requestWithin: (method: string, params: object | undefined, millis: number) => Effect.Effect<unknown, E>
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
  let lastId = 0
  let closed: ((method: string) => E) | undefined

  // ---- deadlines: one timer for all calls, since a timer and a fiber for each would cost more than the call

  // calls of one timeout expire in the order in which they were made
  const timed = new Map<number, Set<Pending<E>>>()
  let wakesAt = Infinity
  let sleeper: Fiber.Fiber<void> | undefined

  const wakeAt = (time: number) => {
    if (time >= wakesAt) return
    sleeper?.interruptUnsafe()
    wakesAt = time
    sleeper = options.fork(Effect.andThen(Effect.sleep(time - options.now()), Effect.sync(expire)))
  }

  const expire = () => {
    wakesAt = Infinity
    sleeper = undefined
    const now = options.now()
    let next = Infinity
    for (const [timeout, calls] of timed) {
      for (const call of calls) {
        if (call.deadline > now) {
          next = Math.min(next, call.deadline)
          break
        }
        calls.delete(call)
        call.expired = true
        Deferred.doneUnsafe(call.answer, Exit.fail(options.timedOut(call.method)))
      }
      if (calls.size === 0) timed.delete(timeout)
    }
    if (next !== Infinity) wakeAt(next)
  }

  const limit = (call: Pending<E>, timeout: number) => {
    const calls = timed.get(timeout)
    if (calls === undefined) timed.set(timeout, new Set([call]))
    else calls.add(call)
    wakeAt(call.deadline)
  }

  // ---- requests

  const begin = (call: Pending<E>, params: object | undefined): Effect.Effect<unknown, E> => {
    const { answer, method } = call
    if (closed !== undefined) return Effect.fail(closed(method))
    if (call.expired) return Deferred.await(answer)
    const id = ++lastId
    call.id = id
    // registered before it is sent: the answer may be there before `send` returns
    pending.set(id, call)
    if (options.trySend(id, method, params)) {
      call.sent = true
      return Deferred.await(answer)
    }
    return Effect.flatMap(options.send(id, method, params, Effect.ignore(Deferred.await(answer))), () => {
      // not when the wait was given up: at the end, when nobody is there to tell, or at its deadline
      call.sent = !call.expired
      return Deferred.await(answer)
    })
  }

  const finish = ({ id, method, sent }: Pending<E>, exit: Exit.Exit<unknown, E>) => {
    if (id === undefined) return
    options.touch()
    const unanswered = pending.delete(id)
    if (exit._tag === "Success" || !unanswered || !sent || closed !== undefined) return
    if (cancellation.method === undefined || cancellation.protectedMethods.has(method)) return
    options.sendCancellation(cancellation.method, cancellation.params(id))
  }

  const request = (method: string, params: object | undefined): Effect.Effect<unknown, E> =>
    Effect.suspend(() => {
      const call = new Pending<E>(method, Infinity)
      return Effect.onExit(Effect.suspend(() => begin(call, params)), (exit) => {
        finish(call, exit)
        return Effect.void
      })
    })

  // ---- places among those in flight, first come first served

  let places = options.maxInFlight
  const queue = new Set<Deferred.Deferred<void>>()

  const leave = () => {
    const [next] = queue
    if (next === undefined) {
      places++
      return
    }
    queue.delete(next)
    Deferred.doneUnsafe(next, Exit.void)
  }

  /** Begins once there is a place, unless `giveUp` fails before; `onEnd` is called in any case. */
  const inTurn = (
    start: () => Effect.Effect<unknown, E>,
    giveUp: Effect.Effect<unknown, E>,
    onEnd: (exit: Exit.Exit<unknown, E>) => void
  ) => {
    let turn: Deferred.Deferred<void> | undefined
    let placed = false
    return Effect.onExit(
      Effect.suspend(() => {
        if (places > 0) {
          places--
          placed = true
          return start()
        }
        turn = Deferred.makeUnsafe<void>()
        queue.add(turn)
        return Effect.flatMap(Effect.raceFirst(Deferred.await(turn), giveUp), start)
      }),
      (exit) => {
        onEnd(exit)
        // one that still waits has no place to leave
        if (placed || (turn !== undefined && !queue.delete(turn))) leave()
        return Effect.void
      }
    )
  }

  const requestWithin = (method: string, params: object | undefined, millis: number): Effect.Effect<unknown, E> =>
    Effect.suspend(() => {
      if (closed !== undefined) return Effect.fail(closed(method))
      const call = new Pending<E>(method, options.now() + millis)
      limit(call, millis)
      return inTurn(() => begin(call, params), Deferred.await(call.answer), (exit) => {
        timed.get(millis)?.delete(call)
        finish(call, exit)
      })
    })

  return {
    request,
    requestWithin,
    limited: (request) => Effect.suspend(() => inTurn(() => request, Effect.never, () => {})),
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
      sleeper?.interruptUnsafe()
      sleeper = undefined
      for (const [id, { answer, method }] of pending) {
        pending.delete(id)
        Deferred.doneUnsafe(answer, Exit.fail(error(method)))
      }
    },
    size: () => pending.size,
    inFlight: () => [...pending].map(([id, { method }]) => ({ id, method }))
  }
}

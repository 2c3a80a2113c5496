/**
 * The serving side of a peer: the one record of the requests in flight, from the moment they are read to the moment
 * their reply is handed to the transport. Admission, duplicate ids, cancellation, batches and draining are read off it.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Metric from "effect/Metric"
import * as MutableList from "effect/MutableList"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"
import type { Cancellation } from "../Cancellation.ts"
import type * as Framing from "../Framing.ts"
import type * as Lifecycle from "../Lifecycle.ts"
import * as Router from "../Router.ts"
import * as JsonRpc from "../Schema.ts"
import type * as Transport from "../Transport.ts"
import { makeNotifications } from "./notifications.ts"
import type { Batch, Replies, ReplyTo } from "./replies.ts"
import { shorten } from "./shorten.ts"

/** @internal */
export interface Options {
  readonly router: Router.Router<never>
  readonly context: Context.Context<never>
  readonly transport: Transport.Transport["Service"]
  readonly replies: Replies
  readonly cancellation: Cancellation
  readonly concurrency: number
  readonly maxQueuedRequests: number
  readonly handlerTimeout: Duration.Duration | undefined
  readonly openEnded: (method: string) => boolean
  readonly duplicateIds: "refuse" | "serve"
  readonly observe: ((event: Lifecycle.Event) => void) | undefined
  readonly touch: () => void
}

// A class, since V8 may come to believe that the objects of a literal live long, and then hardly collects them: see
// docs/performance.md. So are the other objects that are made for each message.
class Entry implements ReplyTo {
  readonly id: JsonRpc.Id
  readonly method: string
  params: unknown
  /** What it counts towards the buffered input while it waits. */
  readonly size: number
  readonly framing: Framing.Kind
  readonly batch: Batch | undefined
  readonly openEnded: boolean
  state: "waiting" | "running" | "ended" = "waiting"
  replied = false
  cancelled = false
  /** Whether its batch waits for it. */
  inBatch = false
  /** Whether the next request may have its id. */
  released = false
  fiber: Fiber.Fiber<unknown, JsonRpc.JsonRpcError> | undefined = undefined
  timer: Fiber.Fiber<void> | undefined = undefined
  /** The requests with its id, where there are others. */
  line: Line | undefined = undefined

  constructor(
    { id, method, params }: JsonRpc.Request,
    size: number,
    framing: Framing.Kind,
    batch: Batch | undefined,
    openEnded: boolean
  ) {
    this.id = id
    this.method = method
    this.params = params
    this.size = size
    this.framing = framing
    this.batch = batch
    this.openEnded = openEnded
  }
}

/** The requests in flight under one id: the first is begun or waits for admission, the others wait for the first. */
interface Line {
  readonly entries: Array<Entry>
  head: number
  /** Those of them that were not cancelled. */
  live: number
}

/** @internal */
export interface Serving {
  /** `size` is what the message counts towards the buffered input while it waits. */
  readonly request: (
    request: JsonRpc.Request,
    size: number,
    framing: Framing.Kind,
    batch: Batch | undefined
  ) => void
  readonly notification: (notification: JsonRpc.Notification, size: number) => void
  readonly cancel: (id: JsonRpc.Id) => void
  readonly inFlight: () => ReadonlyArray<{ readonly id: JsonRpc.Id; readonly method: string }>
  readonly isBusy: () => boolean
  readonly noReplies: () => number
  /** Bytes of requests and notifications that were read and not begun. */
  readonly bufferedBytes: () => number
  readonly onBuffered: Latch.Latch
  readonly drained: Effect.Effect<void>
  /** Drops what is not begun, since nobody can hear of it. */
  readonly forgetWaiting: () => void
  readonly cutOff: (error: JsonRpc.JsonRpcError) => Effect.Effect<number>
  /** Interrupts everything without answering; waits for the handlers to end, unless they were cut off before. */
  readonly abandon: Effect.Effect<unknown>
}

const errors = Metric.counter("effect_stdio_request_errors", {
  description: "Requests answered with an error",
  incremental: true
})

const MAX_BEGUN_A_TURN = 16

/** @internal */
export const makeServing = (options: Options): Serving => {
  const { cancellation, context, observe, replies, router, touch, transport } = options
  const runFork = Effect.runForkWith(context)
  const isTraced = context.mapUnsafe.has(Tracer.Tracer.key)

  // who has an id now: the first of its line
  const holders = new Map<JsonRpc.Id, Entry>()
  // entries that were cancelled or answered while they waited stay in it and are passed over
  const queue = MutableList.make<Entry>()
  // those that were answered before their handler ended, and have left their id to others
  const overdue = new Set<Entry>()
  let waiting = 0
  let running = 0
  // handlers begun, and not ended at once, since a turn of the scheduler was waited for
  let begunNow = 0
  let open = 0
  let buffered = 0
  let noReplies = 0
  let admitting = false
  let awaitingRelief = false
  let ending: "no" | "cut off" | "abandoned" = "no"
  // made when somebody waits for it
  let onDrained: Latch.Latch | undefined
  const onBuffered = Latch.makeUnsafe(false)

  const changeBuffered = (bytes: number) => {
    buffered += bytes
    if (bytes < 0) onBuffered.openUnsafe()
  }

  const isBusy = () => open > 0 || notifications.isBusy()

  const drained = Effect.suspend(() => isBusy() ? (onDrained ??= Latch.makeUnsafe(false)).await : Effect.void)

  const updateDrained = () => {
    if (onDrained === undefined || isBusy()) return
    const waiters = onDrained
    onDrained = undefined
    waiters.openUnsafe()
  }

  const notifications = makeNotifications({
    router,
    context,
    timeout: options.handlerTimeout,
    changeBuffered,
    onIdle: () => {
      touch()
      updateDrained()
    }
  })

  const entriesOf = (holder: Entry) =>
    holder.line === undefined ? [holder] : holder.line.entries.slice(holder.line.head)

  // ---- replies

  /** Its batch need not wait for it any more. */
  const settleInBatch = (entry: Entry) => {
    if (entry.batch === undefined || !entry.inBatch) return
    entry.inBatch = false
    entry.batch.open--
    replies.settleBatch(entry.batch, entry.framing)
  }

  const answer = (entry: Entry, outcome: unknown, error?: JsonRpc.JsonRpcError) => {
    entry.replied = true
    const isError = error === undefined
      ? replies.succeed(entry.id, outcome, entry)
      : replies.fail(entry.id, error, entry)
    if (isError) errors.updateUnsafe(1, context)
    observe?.({ _tag: "Response", id: entry.id, method: shorten(entry.method), isError })
    settleInBatch(entry)
  }

  const isSilent = (entry: Entry) => entry.cancelled && !cancellation.answered

  // ---- admission

  // nothing is begun that nobody can hear of
  const isHeard = () => !transport.isCongestedUnsafe() && !transport.isOutputClosedUnsafe()

  const mayAdmit = () => running < options.concurrency && begunNow < MAX_BEGUN_A_TURN && isHeard()

  const mayStart = (entry: Entry) => entry.openEnded ? isHeard() : waiting === 0 && mayAdmit()

  const request: Serving["request"] = (message, size, framing, batch) => {
    const { id, method } = message
    observe?.({ _tag: "Request", id, method: shorten(method) })
    // nobody would hear of it
    if (transport.isOutputClosedUnsafe()) return
    const entry = new Entry(message, size, framing, batch, options.openEnded(method))
    const holder = holders.get(id)
    const refusal = refusalOf(entry, holder)
    if (refusal !== undefined) {
      answer(entry, undefined, refusal)
      return
    }
    open++
    if (entry.batch !== undefined) {
      entry.batch.open++
      entry.inBatch = true
    }
    if (holder !== undefined) {
      wait(entry)
      const line = holder.line ??= { entries: [holder], head: 0, live: holder.cancelled ? 0 : 1 }
      line.entries.push(entry)
      line.live++
      return
    }
    if (mayStart(entry)) {
      start(entry)
    } else {
      holders.set(id, entry)
      enqueue(entry)
    }
  }

  const hasLive = (holder: Entry) => holder.line === undefined ? !holder.cancelled : holder.line.live > 0

  const refusalOf = (entry: Entry, holder: Entry | undefined): JsonRpc.JsonRpcError | undefined => {
    // an id whose only bearers were cancelled is free again as soon as they have ended
    if (holder !== undefined && options.duplicateIds === "refuse" && hasLive(holder)) {
      const message = "Invalid request: a request with this id is in flight"
      return new JsonRpc.JsonRpcError({ code: JsonRpc.ErrorCode.InvalidRequest, message })
    }
    if (ending !== "no") return JsonRpc.JsonRpcError.internal("server stopping")
    const mustWait = holder !== undefined || (running >= options.concurrency && !entry.openEnded)
    return mustWait && options.concurrency !== Infinity && waiting >= options.maxQueuedRequests
      ? JsonRpc.JsonRpcError.internal("too many requests")
      : undefined
  }

  const wait = (entry: Entry) => {
    waiting++
    changeBuffered(entry.size)
  }

  const stopWaiting = (entry: Entry) => {
    waiting--
    changeBuffered(-entry.size)
  }

  const enqueue = (entry: Entry) => {
    wait(entry)
    MutableList.append(queue, entry)
    admit()
  }

  const admit = () => {
    // a handler that ends at once comes back here: the loop below goes on instead of nesting
    if (admitting) return
    admitting = true
    while (queue.length > 0 && mayAdmit()) {
      const entry = MutableList.take(queue)
      if (entry === MutableList.Empty || entry.state !== "waiting") continue
      start(entry)
      stopWaiting(entry)
    }
    admitting = false
    if (queue.length > 0 && !awaitingRelief && transport.isCongestedUnsafe() && !transport.isOutputClosedUnsafe()) {
      awaitingRelief = true
      runFork(transport.decongested).addObserver(() => {
        awaitingRelief = false
        admit()
      })
    }
  }

  const start = (entry: Entry) => {
    entry.state = "running"
    if (!entry.openEnded) running++
    const handling = handle(entry)
    // what is known at once needs no fiber, and no place among those in flight
    if (isExit(handling)) return finish(entry, handling)
    holders.set(entry.id, entry)
    const fiber = runFork(handling)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return finish(entry, exit)
    entry.fiber = fiber
    if (options.handlerTimeout !== undefined && !entry.openEnded) {
      entry.timer = runFork(Effect.andThen(Effect.sleep(options.handlerTimeout), Effect.sync(() => overrun(entry))))
    }
    if (!entry.openEnded) countBegun()
    fiber.addObserver((exit) => finish(entry, exit))
  }

  /** Spreads a burst over turns, so that its first replies are seen to fill the output before all of it is begun. */
  const countBegun = () => {
    // a turn is waited for when so many have been begun, not for each: a turn without anything to do costs too
    if (++begunNow < MAX_BEGUN_A_TURN) return
    runFork(Effect.andThen(
      Effect.yieldNow,
      Effect.sync(() => {
        begunNow = 0
        admit()
      })
    ))
  }

  const handle = (entry: Entry): Effect.Effect<unknown, JsonRpc.JsonRpcError> => {
    const { id, method } = entry
    const handler = router.requests.get(method) ?? router.otherRequests
    if (handler === undefined) return Exit.fail(JsonRpc.JsonRpcError.methodNotFound(method))
    // a span that nobody collects costs a third of a small request
    if (isTraced) {
      return Effect.withSpan(
        Effect.scoped(Effect.suspend(() => handler(entry.params, { id, method }))),
        shorten(method),
        {
          kind: "server",
          captureStackTrace: false,
          attributes: { "rpc.system": "jsonrpc", "rpc.jsonrpc.request_id": id }
        }
      )
    }
    try {
      const handled = handler(entry.params, { id, method })
      // what a handler acquires is released when it ends
      return isExit(handled) ? handled : Effect.scoped(handled)
    } catch (defect) {
      return Exit.die(defect)
    }
  }

  /** The time of a handler is over: its caller gets its answer now, however long the handler takes to end. */
  const overrun = (entry: Entry) => {
    if (!entry.replied && !isSilent(entry)) {
      answer(entry, undefined, JsonRpc.JsonRpcError.internal("The handler took too long"))
      overdue.add(entry)
      release(entry)
    }
    entry.fiber?.interruptUnsafe()
  }

  // ---- the end of a request

  const finish = (entry: Entry, exit: Exit.Exit<unknown, JsonRpc.JsonRpcError>) => {
    entry.timer?.interruptUnsafe()
    if (!entry.openEnded) running--
    if (!entry.replied) settle(entry, exit)
    end(entry)
    release(entry)
    admit()
  }

  const settle = (entry: Entry, exit: Exit.Exit<unknown, JsonRpc.JsonRpcError>) => {
    if (isSilent(entry)) return
    if (exit._tag === "Success") {
      if (exit.value === Router.noReply) noReplies++
      else answer(entry, exit.value)
      return
    }
    const error = Cause.findError(exit.cause)
    if (Result.isSuccess(error)) {
      answer(entry, undefined, error.success)
    } else if (entry.cancelled && Cause.hasInterruptsOnly(exit.cause)) {
      answer(entry, undefined, requestCancelled())
    } else {
      // what went wrong is for our log, not for the other side
      runFork(Effect.logError(`the handler of ${shorten(entry.method)} died`, exit.cause))
      answer(entry, undefined, JsonRpc.JsonRpcError.internal())
    }
  }

  const requestCancelled = () =>
    new JsonRpc.JsonRpcError({ code: JsonRpc.ErrorCode.RequestCancelled, message: "Request cancelled" })

  /** Frees the id of an entry that holds it, for the next request that waits for it. */
  const release = (entry: Entry) => {
    if (entry.released || holders.get(entry.id) !== entry) return
    entry.released = true
    const { line } = entry
    if (line === undefined) {
      holders.delete(entry.id)
      return
    }
    leave(line, entry)
    for (let next = line.entries[line.head]; next !== undefined; next = line.entries[line.head]) {
      stopWaiting(next)
      if (!next.cancelled && !next.replied) {
        next.line = line
        holders.set(next.id, next)
        enqueue(next)
        return
      }
      end(next)
      leave(line, next)
    }
    holders.delete(entry.id)
  }

  const leave = (line: Line, entry: Entry) => {
    line.head++
    if (line.head > 32 && line.head * 2 > line.entries.length) {
      line.entries.splice(0, line.head)
      line.head = 0
    }
    if (!entry.cancelled) line.live--
  }

  const end = (entry: Entry) => {
    entry.state = "ended"
    overdue.delete(entry)
    // whoever still holds the entry does not hold what it was about
    entry.params = undefined
    entry.fiber = undefined
    settleInBatch(entry)
    open--
    touch()
    updateDrained()
  }

  const cancel = (id: JsonRpc.Id) => {
    const holder = holders.get(id)
    if (holder === undefined || !hasLive(holder)) return
    // the newest bearer of the id is meant
    const entry = entriesOf(holder).findLast((candidate) => !candidate.cancelled)
    if (entry === undefined || cancellation.protectedMethods.has(entry.method)) return
    entry.cancelled = true
    if (holder.line !== undefined) holder.line.live--
    if (entry.state === "running") {
      entry.fiber?.interruptUnsafe()
      return
    }
    if (cancellation.answered) answer(entry, undefined, requestCancelled())
    // one that waits for another of the same id leaves when its turn comes
    if (holder !== entry) return
    stopWaiting(entry)
    end(entry)
    release(entry)
  }

  // ---- the end of everything

  const entries = () => [...overdue, ...[...holders.values()].flatMap(entriesOf)]

  const fibers = (): ReadonlyArray<Fiber.Fiber<unknown, unknown>> =>
    [...entries().map(({ fiber }) => fiber), notifications.fiber()].filter((fiber) => fiber !== undefined)

  const forgetWaiting = () => {
    MutableList.clear(queue)
    notifications.forget()
    for (const holder of holders.values()) {
      if (holder.state !== "waiting") continue
      stopWaiting(holder)
      end(holder)
      release(holder)
    }
    updateDrained()
  }

  const cutOff = (error: JsonRpc.JsonRpcError) =>
    Effect.suspend(() => {
      ending = "cut off"
      const left = entries()
      const interrupted = fibers()
      for (const entry of left) {
        if (!entry.replied && !isSilent(entry)) answer(entry, undefined, error)
      }
      // a batch does not wait for what will not be answered
      for (const entry of left) settleInBatch(entry)
      forgetWaiting()
      for (const fiber of interrupted) fiber.interruptUnsafe()
      return Effect.as(Effect.andThen(Fiber.awaitAll(interrupted), drained), left.length)
    })

  return {
    request,
    notification: (notification, size) => {
      if (ending === "no") notifications.add(notification, size)
    },
    cancel,
    inFlight: () => entries().map(({ id, method }) => ({ id, method })),
    isBusy,
    noReplies: () => noReplies,
    bufferedBytes: () => buffered,
    onBuffered,
    drained,
    forgetWaiting: () => {
      for (const entry of entries()) {
        if (entry.state === "waiting") entry.replied = true
      }
      forgetWaiting()
    },
    cutOff,
    abandon: Effect.suspend(() => {
      // who was cut off has had its time
      const wasCutOff = ending === "cut off"
      ending = "abandoned"
      const interrupted = fibers()
      for (const entry of entries()) entry.replied = true
      forgetWaiting()
      for (const fiber of interrupted) fiber.interruptUnsafe()
      return wasCutOff ? Effect.void : Fiber.awaitAll(interrupted)
    })
  }
}

const isExit = <A, E>(effect: Effect.Effect<A, E>): effect is Exit.Exit<A, E> => Exit.isExit(effect)

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
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Metric from "effect/Metric"
import * as Result from "effect/Result"
import type { Cancellation } from "../Cancellation.ts"
import * as Framing from "../Framing.ts"
import type * as Lifecycle from "../Lifecycle.ts"
import * as Router from "../Router.ts"
import * as JsonRpc from "../Schema.ts"
import type * as Transport from "../Transport.ts"

/** @internal */
export interface Options {
  readonly router: Router.Router<never>
  readonly context: Context.Context<never>
  readonly transport: Transport.Transport["Service"]
  readonly profile: JsonRpc.Profile
  readonly cancellation: Cancellation
  readonly concurrency: number
  readonly maxQueuedRequests: number
  readonly handlerTimeout: Duration.Duration | undefined
  readonly duplicateIds: "refuse" | "serve"
  readonly observe: ((event: Lifecycle.Event) => void) | undefined
  readonly touch: () => void
}

/** @internal */
export interface ReplyTo {
  readonly framing: Framing.Kind
  readonly batch: Batch | undefined
}

/** Collects the replies of one batch; they leave together when the last member is settled. @internal */
export interface Batch {
  open: number
  readonly replies: Array<string>
}

interface Entry extends ReplyTo {
  readonly id: JsonRpc.Id
  readonly method: string
  readonly params: unknown
  readonly size: number
  state: "waiting" | "running"
  replied: boolean
  cancelled: boolean
  fiber: Fiber.Fiber<unknown, JsonRpc.JsonRpcError> | undefined
  /** Requests that reuse the id and wait until this one has ended. */
  readonly successors: Array<Entry>
}

/** @internal */
export interface Serving {
  readonly request: (request: JsonRpc.Request, size: number, to: ReplyTo) => void
  readonly notification: (notification: JsonRpc.Notification, size: number) => void
  readonly cancel: (id: JsonRpc.Id) => void
  readonly reply: (message: JsonRpc.Success | JsonRpc.Failure, to: ReplyTo) => void
  readonly settleBatch: (batch: Batch, framing: Framing.Kind) => void
  readonly inFlight: () => ReadonlyArray<{ readonly id: JsonRpc.Id; readonly method: string }>
  readonly isBusy: () => boolean
  readonly noReplies: () => number
  /** Bytes of requests and notifications that were read and not begun. */
  readonly bufferedBytes: () => number
  readonly onBuffered: Latch.Latch
  readonly drained: Effect.Effect<void>
  readonly cutOff: (error: JsonRpc.JsonRpcError) => Effect.Effect<number>
  /** Interrupts everything without answering; waits for the handlers to end, unless they were cut off before. */
  readonly abandon: Effect.Effect<unknown>
}

const requests = Metric.counter("effect_stdio_requests", { description: "Requests received", incremental: true })
const errors = Metric.counter("effect_stdio_request_errors", {
  description: "Requests answered with an error",
  incremental: true
})
const notifications = Metric.counter("effect_stdio_notifications", {
  description: "Notifications received",
  incremental: true
})

/** @internal */
export const makeServing = (options: Options): Serving => {
  const { cancellation, context, observe, router, touch, transport } = options
  const runFork = Effect.runForkWith(context)

  const inFlight = new Map<JsonRpc.Id, Entry>()
  let queue: Array<Entry> = []
  // bounded by maxBufferedInput: the reader pauses
  let pendingNotifications: Array<{ readonly notification: JsonRpc.Notification; readonly size: number }> = []
  let notifying: Fiber.Fiber<void> | undefined
  let running = 0
  let open = 0
  let buffered = 0
  let admitting = false
  let awaitingRelief = false
  let wasCutOff = false
  let noReplies = 0
  const drained = Latch.makeUnsafe(true)
  const onBuffered = Latch.makeUnsafe(false)

  const changeBuffered = (bytes: number) => {
    buffered += bytes
    if (bytes < 0) onBuffered.openUnsafe()
  }

  const updateDrained = () => {
    if (open === 0 && notifying === undefined && pendingNotifications.length === 0) drained.openUnsafe()
    else drained.closeUnsafe()
  }

  // ---- replies

  const write = (text: string, framing: Framing.Kind) => {
    transport.sendUnsafe(Framing.frameOfText(text, framing))
    touch()
  }

  const encode = (message: JsonRpc.Success | JsonRpc.Failure): string => {
    const encoded = JsonRpc.encode(message, options.profile)
    if (Result.isFailure(encoded)) {
      return encodeError(message.id ?? null, JsonRpc.JsonRpcError.internal("The result cannot be written as JSON"))
    }
    const text = encoded.success
    if (transport.maxSendBytes === Infinity || text.length * 3 <= transport.maxSendBytes) return text
    const size = new TextEncoder().encode(text).length
    return size <= transport.maxSendBytes ? text : encodeError(
      message.id ?? null,
      JsonRpc.JsonRpcError.internal(
        `The result has ${size} bytes, this connection sends at most ${transport.maxSendBytes}`
      )
    )
  }

  const encodeError = (id: JsonRpc.Id | null, error: JsonRpc.JsonRpcError) =>
    Result.getOrThrow(JsonRpc.encode(JsonRpc.failure(id, error), options.profile))

  const reply = (message: JsonRpc.Success | JsonRpc.Failure, to: ReplyTo) => {
    const text = encode(message)
    if (to.batch === undefined) write(text, to.framing)
    else to.batch.replies.push(text)
  }

  const settleBatch = (batch: Batch, framing: Framing.Kind) => {
    if (batch.open === 0 && batch.replies.length > 0) write(`[${batch.replies.join(",")}]`, framing)
  }

  const settleInBatch = (to: ReplyTo) => {
    if (to.batch === undefined) return
    to.batch.open--
    settleBatch(to.batch, to.framing)
  }

  const answer = (entry: Entry, outcome: unknown, error?: JsonRpc.JsonRpcError) => {
    entry.replied = true
    if (error !== undefined) errors.updateUnsafe(1, context)
    observe?.({ _tag: "Response", id: entry.id, method: entry.method, isError: error !== undefined })
    reply(error === undefined ? JsonRpc.success(entry.id, outcome) : JsonRpc.failure(entry.id, error), entry)
  }

  // ---- admission

  const mayStart = () => running < options.concurrency && !transport.isCongestedUnsafe()

  const request = ({ id, method, params }: JsonRpc.Request, size: number, to: ReplyTo) => {
    requests.updateUnsafe(1, context)
    observe?.({ _tag: "Request", id, method })
    const entry: Entry = {
      id,
      method,
      params,
      size,
      framing: to.framing,
      batch: to.batch,
      state: "waiting",
      replied: false,
      cancelled: false,
      fiber: undefined,
      successors: []
    }
    const holder = inFlight.get(id)
    if (holder === undefined) {
      if (running >= options.concurrency && queue.length >= options.maxQueuedRequests) {
        answer(entry, undefined, JsonRpc.JsonRpcError.internal("too many requests"))
        return
      }
    } else if (!holder.cancelled && options.duplicateIds === "refuse") {
      const message = "Invalid request: a request with this id is in flight"
      answer(entry, undefined, new JsonRpc.JsonRpcError({ code: JsonRpc.ErrorCode.InvalidRequest, message }))
      return
    }
    open++
    if (entry.batch !== undefined) entry.batch.open++
    updateDrained()
    if (holder !== undefined) {
      changeBuffered(size)
      holder.successors.push(entry)
      return
    }
    inFlight.set(id, entry)
    if (queue.length === 0 && mayStart()) start(entry)
    else enqueue(entry)
  }

  const enqueue = (entry: Entry) => {
    changeBuffered(entry.size)
    queue.push(entry)
    admit()
  }

  const admit = () => {
    // a handler that ends at once comes back here: the loop below goes on instead of nesting
    if (admitting) return
    admitting = true
    let next = 0
    while (next < queue.length && mayStart()) {
      const entry = queue[next++]
      if (entry === undefined || entry.state !== "waiting" || entry.replied || entry.cancelled) continue
      changeBuffered(-entry.size)
      start(entry)
    }
    queue = next === 0 ? queue : queue.slice(next)
    admitting = false
    if (queue.length > 0 && !awaitingRelief && transport.isCongestedUnsafe()) {
      awaitingRelief = true
      runFork(transport.decongested).addObserver(() => {
        awaitingRelief = false
        admit()
      })
    }
  }

  const start = (entry: Entry) => {
    entry.state = "running"
    running++
    const fiber = runFork(serve(entry))
    entry.fiber = fiber
    fiber.addObserver((exit) => finish(entry, exit))
  }

  const serve = (entry: Entry): Effect.Effect<unknown, JsonRpc.JsonRpcError> => {
    const { id, method } = entry
    const handler = router.requests.get(method) ?? router.otherRequests
    if (handler === undefined) return Effect.fail(JsonRpc.JsonRpcError.methodNotFound(method))
    const handled = Effect.suspend(() => handler(entry.params, { id, method }))
    return Effect.withSpan(
      options.handlerTimeout === undefined ? handled : Effect.timeoutOrElse(handled, {
        duration: options.handlerTimeout,
        orElse: () => Effect.fail(JsonRpc.JsonRpcError.internal("The handler took too long"))
      }),
      method,
      {
        kind: "server",
        captureStackTrace: false,
        attributes: { "rpc.system": "jsonrpc", "rpc.jsonrpc.request_id": id }
      }
    )
  }

  // ---- the end of a request

  const finish = (entry: Entry, exit: Exit.Exit<unknown, JsonRpc.JsonRpcError>) => {
    running--
    if (!entry.replied) settle(entry, exit)
    release(entry)
    admit()
  }

  const settle = (entry: Entry, exit: Exit.Exit<unknown, JsonRpc.JsonRpcError>) => {
    if (entry.cancelled && !cancellation.answered) return
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
      runFork(Effect.logError(`the handler of ${entry.method} died`, exit.cause))
      answer(entry, undefined, JsonRpc.JsonRpcError.internal())
    }
  }

  const requestCancelled = () =>
    new JsonRpc.JsonRpcError({ code: JsonRpc.ErrorCode.RequestCancelled, message: "Request cancelled" })

  /** Frees the id, for the next request that waits for it. */
  const release = (entry: Entry) => {
    settleInBatch(entry)
    const [successor, ...others] = entry.successors
    if (successor === undefined) {
      inFlight.delete(entry.id)
    } else {
      inFlight.set(entry.id, successor)
      successor.successors.push(...others)
      changeBuffered(-successor.size)
      if (successor.cancelled || successor.replied) release(successor)
      else enqueue(successor)
    }
    open--
    touch()
    updateDrained()
  }

  const cancel = (id: JsonRpc.Id) => {
    const holder = inFlight.get(id)
    if (holder === undefined) return
    // the newest bearer of the id is meant
    const entry = [...holder.successors, holder].find((candidate) => !candidate.cancelled)
    if (entry === undefined || cancellation.protectedMethods.has(entry.method)) return
    entry.cancelled = true
    if (entry.state === "running") {
      entry.fiber?.interruptUnsafe()
      return
    }
    if (cancellation.answered) answer(entry, undefined, requestCancelled())
    // a successor leaves when its turn comes
    if (entry !== holder) return
    queue = queue.filter((waiting) => waiting !== entry)
    changeBuffered(-entry.size)
    release(entry)
  }

  // ---- notifications

  const notification = (message: JsonRpc.Notification, size: number) => {
    notifications.updateUnsafe(1, context)
    if (router.notifications.get(message.method) === undefined && router.otherNotifications === undefined) return
    pendingNotifications.push({ notification: message, size })
    changeBuffered(size)
    if (notifying !== undefined) return
    const fiber = runFork(notify)
    notifying = fiber
    fiber.addObserver(() => {
      notifying = undefined
      touch()
      updateDrained()
    })
    updateDrained()
  }

  // one after the other, in the order of their arrival
  const notify: Effect.Effect<void> = Effect.suspend(() => {
    const batch = pendingNotifications
    pendingNotifications = []
    return batch.length === 0 ? Effect.void : Effect.andThen(
      Effect.forEach(batch, ({ notification, size }) => {
        changeBuffered(-size)
        return handleNotification(notification)
      }, { discard: true }),
      notify
    )
  })

  const handleNotification = ({ method, params }: JsonRpc.Notification): Effect.Effect<void> => {
    const handler = router.notifications.get(method) ?? router.otherNotifications
    if (handler === undefined) return Effect.void
    const handled = Effect.suspend(() => handler(params, method))
    return Effect.catchCause(
      options.handlerTimeout === undefined
        ? handled
        : Effect.asVoid(Effect.timeoutOption(handled, options.handlerTimeout)),
      (cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.failCause(Cause.interrupt())
          : Effect.logWarning(`the handler of the notification ${method} failed`, cause)
    )
  }

  // ---- the end of everything

  const cutOff = (error: JsonRpc.JsonRpcError) =>
    Effect.suspend(() => {
      wasCutOff = true
      const entries = [...inFlight.values()].flatMap((entry) => [entry, ...entry.successors])
      const fibers = entries.flatMap((entry) => entry.fiber === undefined ? [] : [entry.fiber])
      for (const entry of entries) {
        if (!entry.replied && !(entry.cancelled && !cancellation.answered)) answer(entry, undefined, error)
      }
      // what was answered of a batch leaves now: its last handler may not end in time
      for (const { batch, framing } of entries) {
        if (batch === undefined) continue
        batch.open = 0
        settleBatch(batch, framing)
        batch.replies.length = 0
      }
      queue = []
      pendingNotifications = []
      for (const entry of entries) {
        if (entry.state === "waiting" && inFlight.get(entry.id) === entry) {
          changeBuffered(-entry.size)
          release(entry)
        }
      }
      if (notifying !== undefined) notifying.interruptUnsafe()
      for (const fiber of fibers) fiber.interruptUnsafe()
      return Effect.as(Effect.andThen(Fiber.awaitAll(fibers), drained.await), entries.length)
    })

  return {
    request,
    notification,
    cancel,
    reply,
    settleBatch,
    inFlight: () =>
      [...inFlight.values()].flatMap((entry) => [entry, ...entry.successors].map(({ id, method }) => ({ id, method }))),
    isBusy: () => !drained.isOpen(),
    noReplies: () => noReplies,
    bufferedBytes: () => buffered,
    onBuffered,
    drained: drained.await,
    cutOff,
    abandon: Effect.suspend(() => {
      const fibers = [...inFlight.values()].flatMap(({ fiber }) => fiber === undefined ? [] : [fiber])
      for (const entry of inFlight.values()) entry.replied = true
      for (const fiber of fibers) fiber.interruptUnsafe()
      notifying?.interruptUnsafe()
      queue = []
      pendingNotifications = []
      // who was cut off has had its time
      return wasCutOff ? Effect.void : Fiber.awaitAll(notifying === undefined ? fibers : [...fibers, notifying])
    })
  }
}

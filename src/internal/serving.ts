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
import { shorten } from "./shorten.ts"

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
  readonly openEnded: (method: string) => boolean
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
  /** What it counts towards the buffered input while it waits. */
  readonly size: number
  readonly openEnded: boolean
  state: "waiting" | "running" | "ended"
  replied: boolean
  cancelled: boolean
  fiber: Fiber.Fiber<unknown, JsonRpc.JsonRpcError> | undefined
  timer: Fiber.Fiber<void> | undefined
}

/** The requests in flight under one id: the first is begun or waits for admission, the others wait for the first. */
interface Slot {
  readonly entries: Array<Entry>
  head: number
}

/** @internal */
export interface Serving {
  readonly request: (request: JsonRpc.Request, size: number, to: ReplyTo) => void
  readonly notification: (notification: JsonRpc.Notification, size: number) => void
  readonly cancel: (id: JsonRpc.Id) => void
  /** Sends a reply; returns whether it is an error. */
  readonly reply: (message: JsonRpc.Success | JsonRpc.Failure, to: ReplyTo) => boolean
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

// what an entry takes beside its bytes, roughly
const ENTRY_BYTES = 256

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

  const slots = new Map<JsonRpc.Id, Slot>()
  // entries that were cancelled or answered while they waited stay in it and are passed over
  let queue: Array<Entry> = []
  let head = 0
  let waiting = 0
  // bounded by maxBufferedInput: the reader pauses
  let pendingNotifications: Array<{ readonly notification: JsonRpc.Notification; readonly size: number }> = []
  let notifying: Fiber.Fiber<void> | undefined
  let running = 0
  let open = 0
  let buffered = 0
  let noReplies = 0
  let admitting = false
  let awaitingRelief = false
  let ending: "no" | "cut off" | "abandoned" = "no"
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

  const entriesOf = ({ entries, head }: Slot) => entries.slice(head)

  // ---- replies

  const write = (text: string, framing: Framing.Kind) => {
    transport.sendUnsafe(Framing.frameOfText(text, framing))
    touch()
  }

  const exceeds = (text: string): number | undefined => {
    if (text.length * 3 <= transport.maxSendBytes) return undefined
    const size = new TextEncoder().encode(text).length
    return size > transport.maxSendBytes ? size : undefined
  }

  /** The text of a reply or, where that cannot be sent, of the error that says so. */
  const encode = (message: JsonRpc.Success | JsonRpc.Failure): { readonly text: string; readonly isError: boolean } => {
    const encoded = JsonRpc.encode(message, options.profile)
    if (Result.isFailure(encoded)) {
      return { text: encodeError(message.id, "The result cannot be written as JSON"), isError: true }
    }
    const size = exceeds(encoded.success)
    if (size === undefined) return { text: encoded.success, isError: JsonRpc.isFailure(message) }
    const problem = `The result has ${size} bytes, this connection sends at most ${transport.maxSendBytes}`
    return { text: encodeError(message.id, problem), isError: true }
  }

  const encodeError = (id: JsonRpc.Id | null | undefined, message: string) =>
    Result.getOrThrow(
      JsonRpc.encode(JsonRpc.failure(id ?? null, JsonRpc.JsonRpcError.internal(message)), options.profile)
    )

  const reply = (message: JsonRpc.Success | JsonRpc.Failure, to: ReplyTo) => {
    const { isError, text } = encode(message)
    if (to.batch === undefined) write(text, to.framing)
    else to.batch.replies.push(text)
    return isError
  }

  const settleBatch = (batch: Batch, framing: Framing.Kind) => {
    if (batch.open !== 0 || batch.replies.length === 0) return
    const text = `[${batch.replies.join(",")}]`
    // too long together: one by one, which a client can tell apart by their ids
    const texts = exceeds(text) === undefined ? [text] : batch.replies
    for (const part of texts) write(part, framing)
  }

  const settleInBatch = (to: ReplyTo) => {
    if (to.batch === undefined) return
    to.batch.open--
    settleBatch(to.batch, to.framing)
  }

  const answer = (entry: Entry, outcome: unknown, error?: JsonRpc.JsonRpcError) => {
    entry.replied = true
    const isError = reply(
      error === undefined ? JsonRpc.success(entry.id, outcome) : JsonRpc.failure(entry.id, error),
      entry
    )
    if (isError) errors.updateUnsafe(1, context)
    observe?.({ _tag: "Response", id: entry.id, method: shorten(entry.method), isError })
  }

  const isSilent = (entry: Entry) => entry.cancelled && !cancellation.answered

  // ---- admission

  // nothing new is begun that nobody can hear of
  const mayStart = (entry: Entry) =>
    !transport.isOutputClosedUnsafe() &&
    (entry.openEnded || (running < options.concurrency && !transport.isCongestedUnsafe()))

  const request = ({ id, method, params }: JsonRpc.Request, size: number, to: ReplyTo) => {
    requests.updateUnsafe(1, context)
    observe?.({ _tag: "Request", id, method: shorten(method) })
    const entry: Entry = {
      id,
      method,
      params,
      size: size + ENTRY_BYTES,
      framing: to.framing,
      batch: to.batch,
      openEnded: options.openEnded(method),
      state: "waiting",
      replied: false,
      cancelled: false,
      fiber: undefined,
      timer: undefined
    }
    const slot = slots.get(id)
    const refusal = refusalOf(entry, slot)
    if (refusal !== undefined) {
      answer(entry, undefined, refusal)
      return
    }
    open++
    if (entry.batch !== undefined) entry.batch.open++
    updateDrained()
    if (slot !== undefined) {
      wait(entry)
      slot.entries.push(entry)
      return
    }
    slots.set(id, { entries: [entry], head: 0 })
    if (waiting === 0 && mayStart(entry)) start(entry)
    else enqueue(entry)
  }

  const refusalOf = (entry: Entry, slot: Slot | undefined): JsonRpc.JsonRpcError | undefined => {
    // an id whose only bearers were cancelled is free again as soon as they have ended
    if (slot !== undefined && options.duplicateIds === "refuse" && entriesOf(slot).some((other) => !other.cancelled)) {
      const message = "Invalid request: a request with this id is in flight"
      return new JsonRpc.JsonRpcError({ code: JsonRpc.ErrorCode.InvalidRequest, message })
    }
    if (ending !== "no") return JsonRpc.JsonRpcError.internal("server stopping")
    const mustWait = slot !== undefined || (running >= options.concurrency && !entry.openEnded)
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
    queue.push(entry)
    admit()
  }

  const admit = () => {
    // a handler that ends at once comes back here: the loop below goes on instead of nesting
    if (admitting) return
    admitting = true
    for (let entry = queue[head]; entry !== undefined; entry = queue[head]) {
      const isWaiting = entry.state === "waiting"
      if (isWaiting && !mayStart(entry)) break
      head++
      if (!isWaiting) continue
      stopWaiting(entry)
      start(entry)
    }
    if (head === queue.length || head > 1_024) {
      queue = queue.slice(head)
      head = 0
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
    const fiber = runFork(serve(entry))
    entry.fiber = fiber
    if (options.handlerTimeout !== undefined && !entry.openEnded && fiber.pollUnsafe() === undefined) {
      entry.timer = runFork(Effect.andThen(Effect.sleep(options.handlerTimeout), Effect.sync(() => overrun(entry))))
    }
    fiber.addObserver((exit) => finish(entry, exit))
  }

  const serve = (entry: Entry): Effect.Effect<unknown, JsonRpc.JsonRpcError> => {
    const { id, method } = entry
    const handler = router.requests.get(method) ?? router.otherRequests
    if (handler === undefined) return Effect.fail(JsonRpc.JsonRpcError.methodNotFound(method))
    // what a handler acquires is released when it ends
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

  /** The time of a handler is over: its caller gets its answer now, however long the handler takes to end. */
  const overrun = (entry: Entry) => {
    if (!entry.replied && !isSilent(entry)) {
      answer(entry, undefined, JsonRpc.JsonRpcError.internal("The handler took too long"))
    }
    entry.fiber?.interruptUnsafe()
  }

  // ---- the end of a request

  const finish = (entry: Entry, exit: Exit.Exit<unknown, JsonRpc.JsonRpcError>) => {
    entry.timer?.interruptUnsafe()
    if (!entry.openEnded) running--
    if (!entry.replied) settle(entry, exit)
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

  /** Ends an entry that holds its id, and frees the id for the next request that waits for it. */
  const release = (entry: Entry) => {
    const slot = slots.get(entry.id)
    end(entry)
    if (slot === undefined) return
    slot.head++
    for (let next = slot.entries[slot.head]; next !== undefined; next = slot.entries[slot.head]) {
      stopWaiting(next)
      if (!next.cancelled && !next.replied) {
        enqueue(next)
        return
      }
      end(next)
      slot.head++
    }
    slots.delete(entry.id)
  }

  const end = (entry: Entry) => {
    entry.state = "ended"
    settleInBatch(entry)
    open--
    touch()
    updateDrained()
  }

  const cancel = (id: JsonRpc.Id) => {
    const slot = slots.get(id)
    if (slot === undefined) return
    // the newest bearer of the id is meant
    const entry = slot.entries.findLast((candidate, index) => index >= slot.head && !candidate.cancelled)
    if (entry === undefined || cancellation.protectedMethods.has(entry.method)) return
    entry.cancelled = true
    if (entry.state === "running") {
      entry.fiber?.interruptUnsafe()
      return
    }
    if (cancellation.answered) answer(entry, undefined, requestCancelled())
    // one that waits for another of the same id leaves when its turn comes
    if (slot.entries[slot.head] !== entry) return
    stopWaiting(entry)
    release(entry)
  }

  // ---- notifications

  const notification = (message: JsonRpc.Notification, size: number) => {
    notifications.updateUnsafe(1, context)
    if (router.notifications.get(message.method) === undefined && router.otherNotifications === undefined) return
    pendingNotifications.push({ notification: message, size: size + ENTRY_BYTES })
    changeBuffered(size + ENTRY_BYTES)
    if (notifying === undefined) startNotifying()
  }

  const startNotifying = () => {
    const fiber = runFork(notify)
    notifying = fiber
    updateDrained()
    fiber.addObserver(() => {
      notifying = undefined
      touch()
      updateDrained()
    })
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
    const handled = Effect.scoped(Effect.suspend(() => handler(params, method)))
    const limited = options.handlerTimeout === undefined ? handled : Effect.timeoutOrElse(handled, {
      duration: options.handlerTimeout,
      orElse: () => Effect.logWarning(`the handler of the notification ${shorten(method)} took too long`)
    })
    // whatever becomes of one handler, the next notification gets its own
    return Effect.catchCause(
      limited,
      (cause) => Effect.logWarning(`the handler of the notification ${shorten(method)} failed`, cause)
    )
  }

  // ---- the end of everything

  const entries = () => [...slots.values()].flatMap(entriesOf)

  const fibers = () => entries().flatMap(({ fiber }) => fiber === undefined ? [] : [fiber])

  const forgetWaiting = () => {
    queue = []
    head = 0
    for (const { size } of pendingNotifications) changeBuffered(-size)
    pendingNotifications = []
    for (const { entries, head } of [...slots.values()]) {
      const holder = entries[head]
      if (holder?.state !== "waiting") continue
      stopWaiting(holder)
      release(holder)
    }
    updateDrained()
  }

  const interruptAll = (interrupted: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) => {
    notifying?.interruptUnsafe()
    for (const fiber of interrupted) fiber.interruptUnsafe()
  }

  const cutOff = (error: JsonRpc.JsonRpcError) =>
    Effect.suspend(() => {
      ending = "cut off"
      const left = entries()
      const interrupted = fibers()
      for (const entry of left) {
        if (!entry.replied && !isSilent(entry)) answer(entry, undefined, error)
      }
      // what was answered of a batch leaves now: its last handler may not end in time
      for (const { batch, framing } of left) {
        if (batch === undefined) continue
        batch.open = 0
        settleBatch(batch, framing)
        batch.replies.length = 0
      }
      forgetWaiting()
      interruptAll(interrupted)
      return Effect.as(Effect.andThen(Fiber.awaitAll(interrupted), drained.await), left.length)
    })

  return {
    request,
    notification,
    cancel,
    reply,
    settleBatch,
    inFlight: () => entries().map(({ id, method }) => ({ id, method })),
    isBusy: () => !drained.isOpen(),
    noReplies: () => noReplies,
    bufferedBytes: () => buffered,
    onBuffered,
    drained: drained.await,
    cutOff,
    abandon: Effect.suspend(() => {
      // who was cut off has had its time
      const wasCutOff = ending === "cut off"
      ending = "abandoned"
      const interrupted = fibers()
      for (const entry of entries()) entry.replied = true
      forgetWaiting()
      interruptAll(interrupted)
      return wasCutOff
        ? Effect.void
        : Fiber.awaitAll(notifying === undefined ? interrupted : [...interrupted, notifying])
    })
  }
}

/**
 * One connection: a stream of frames in, a bounded queue of frames out, and the reason why it ended.
 *
 * A Transport moves frames and knows nothing of what they say. Two things set it apart from a pair of byte streams:
 * frames queued together leave in one write, and what waits to be written is counted in bytes, so that a side that stops
 * reading cannot make this side grow without bound. Transports are values; the tag {@link Transport} exists for programs
 * that have exactly one.
 *
 * @module
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Predicate from "effect/Predicate"
import type * as Pull from "effect/Pull"
import * as Queue from "effect/Queue"
import * as Scheduler from "effect/Scheduler"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as Framing from "./Framing.ts"
import { decodeStream } from "./internal/decodeStream.ts"
import { makeOutbox } from "./internal/outbox.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * The other side closed its output, or the pipe broke while reading: a normal end.
 *
 * @category errors
 * @since 0.1.0
 */
export class InputEnded extends Schema.TaggedClass<InputEnded>()("InputEnded", {}) {}

/**
 * Reading failed with something that is not an end.
 *
 * @category errors
 * @since 0.1.0
 */
export class InputFailed extends Schema.TaggedClass<InputFailed>()("InputFailed", { cause: Schema.Defect() }) {}

/**
 * The other side does not read any more (EPIPE and its kin): a normal end. `code` is the operating system's word.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutputClosed extends Schema.TaggedClass<OutputClosed>()("OutputClosed", {
  code: Schema.optionalKey(Schema.String)
}) {}

/**
 * Writing failed with something that is not an end, such as EIO or ENOSPC.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutputFailed extends Schema.TaggedClass<OutputFailed>()("OutputFailed", { cause: Schema.Defect() }) {}

/**
 * The other side is there but took nothing for `stallTimeout` while frames were held back for it.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutputStalled extends Schema.TaggedClass<OutputStalled>()("OutputStalled", {
  queuedBytes: Schema.Int
}) {}

/**
 * The process behind the connection has ended: by itself with `exitCode`, or by `signal`.
 *
 * **Details**
 *
 * `command` is its command line, with what is redacted left out, and `stderrTail` what it wrote to standard error last.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProcessExited extends Schema.TaggedClass<ProcessExited>()("ProcessExited", {
  command: Schema.String,
  exitCode: Schema.optionalKey(Schema.Int),
  signal: Schema.optionalKey(Schema.String),
  stderrTail: Schema.String
}) {}

/**
 * What came is not JSON-RPC: so much was read, and not one valid message. `sample` is its start.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotJsonRpc extends Schema.TaggedClass<NotJsonRpc>()("NotJsonRpc", {
  size: Schema.Int,
  sample: Schema.String
}) {}

/**
 * A frame is larger than this transport may send.
 *
 * @category errors
 * @since 0.1.0
 */
export class FrameTooLarge extends Schema.TaggedClass<FrameTooLarge>()("FrameTooLarge", {
  size: Schema.Int,
  limit: Schema.Int
}) {}

/**
 * This side ended the connection: its scope was closed, or `end` was called before.
 *
 * @category errors
 * @since 0.1.0
 */
export class Ended extends Schema.TaggedClass<Ended>()("Ended", {}) {}

const CloseReasonSchema = Schema.Union([
  InputEnded,
  InputFailed,
  OutputClosed,
  OutputFailed,
  OutputStalled,
  ProcessExited,
  Ended
])

/**
 * Why a connection ended.
 *
 * @category errors
 * @since 0.1.0
 */
export type CloseReason =
  | InputEnded
  | InputFailed
  | OutputClosed
  | OutputFailed
  | OutputStalled
  | ProcessExited
  | Ended

/**
 * What went wrong with a transport: a {@link CloseReason}, a frame that may not be sent, or input that is no JSON-RPC.
 *
 * @category errors
 * @since 0.1.0
 */
export class TransportError extends Schema.TaggedError<TransportError>()("TransportError", {
  reason: Schema.Union([...CloseReasonSchema.members, FrameTooLarge, NotJsonRpc])
}) {
  override get message(): string {
    switch (this.reason._tag) {
      case "FrameTooLarge":
        return `the frame has ${this.reason.size} bytes, this connection sends at most ${this.reason.limit}`
      case "NotJsonRpc":
        return `no JSON-RPC in ${this.reason.size} bytes, which begin with ${
          JSON.stringify(this.reason.sample)
        }: wrong command, or wrong framing?`
      default:
        return describe(this.reason)
    }
  }
}

/**
 * Says in words why a connection ended.
 *
 * @category errors
 * @since 0.1.0
 */
export const describe = (reason: CloseReason): string => {
  switch (reason._tag) {
    case "InputEnded":
      return "the other side closed its output"
    case "InputFailed":
      return `reading failed: ${errorCode(reason.cause) ?? "unknown error"}`
    case "OutputClosed":
      return `the other side does not read any more${reason.code === undefined ? "" : ` (${reason.code})`}`
    case "OutputFailed":
      return `writing failed: ${errorCode(reason.cause) ?? "unknown error"}`
    case "OutputStalled":
      return `the other side took nothing for too long, ${reason.queuedBytes} bytes wait for it`
    case "ProcessExited":
      return describeExit(reason)
    case "Ended":
      return "this side ended the connection"
  }
}

const describeExit = ({ command, exitCode, signal, stderrTail }: ProcessExited): string => {
  const how = signal === undefined ? `with code ${exitCode ?? "unknown"}` : `by ${signal}`
  const said = stderrTail.trim()
  return `the process ${command} ended ${how}${said === "" ? "" : `; its standard error ends with:\n${said}`}`
}

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * One connection, as a value and as the tag of programs that have exactly one.
 *
 * @category services
 * @since 0.1.0
 */
export class Transport extends Context.Service<Transport, {
  /** Frames and faults in the order they arrived; to be run once. Ends with the input, fails with a read error. */
  readonly incoming: Stream.Stream<Framing.Item, TransportError>
  /** Queues a frame. Suspends while `maxQueuedBytes` wait to be written, fails once the output is closed. */
  readonly send: (frame: Framing.Frame) => Effect.Effect<void, TransportError>
  /** Queues a frame at once where there is room; false when `send` would wait or fail. */
  readonly trySendUnsafe: (frame: Framing.Frame) => boolean
  /** Like `trySendUnsafe`, for a message that is text: small ones that leave together are encoded together. False also where a text might be too large. */
  readonly trySendTextUnsafe: (text: string, framing: Framing.Kind) => boolean
  /** Queues a frame at once, whatever waits already; false when the output is closed. */
  readonly sendUnsafe: (frame: Framing.Frame) => boolean
  /** Like `sendUnsafe`, for a message that is text: small ones that leave together are encoded together. */
  readonly sendTextUnsafe: (text: string, framing: Framing.Kind) => boolean
  /** Whether the output is closed. */
  readonly isOutputClosedUnsafe: () => boolean
  /** Whether so much waits to be written that nothing should be begun that makes more of it. */
  readonly isCongestedUnsafe: () => boolean
  /** Returns at once, or when half of `maxQueuedBytes` has been written after a congestion. */
  readonly decongested: Effect.Effect<void>
  /** Takes no more frames, and returns when all are written, the output is ended, or it is closed anyway. */
  readonly end: Effect.Effect<void>
  /** The first reason why the connection ended, of input or output. An output that `end` has ended leaves the input open. */
  readonly closed: Effect.Effect<CloseReason>
  /** The reason why the output is closed; an ended input alone does not close it. */
  readonly outputClosed: Effect.Effect<CloseReason>
  /** How incoming frames are delimited. */
  readonly framing: Framing.Mode
  /** Largest frame this transport sends, in bytes. */
  readonly maxSendBytes: number
  /** Bytes that may wait to be written before senders wait. */
  readonly maxQueuedBytes: number
  /** Bytes that wait to be written now. */
  readonly queuedBytesUnsafe: () => number
  /** Chunks of input seen so far, whether or not they completed a frame. */
  readonly arrivalsUnsafe: () => number
  /** When the last of them came, in milliseconds of the Clock; 0 when none did. */
  readonly lastArrivalUnsafe: () => number
}>()("effect-stdio/Transport") {}

// -----------------------------------------------------------------------------
// options
// -----------------------------------------------------------------------------

/**
 * Options of every transport.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How messages are told apart. @default "auto" */
  readonly framing?: Framing.Mode | undefined
  /** Largest accepted frame, in bytes. @default 33554432 (32 MiB); 67108864 (64 MiB) for `native` */
  readonly maxFrameBytes?: number | undefined
  /** Largest frame to send, in bytes. @default no limit; 1048576 (1 MiB) for `native`, as browsers demand */
  readonly maxSendBytes?: number | undefined
  /** Bytes that may wait to be written before senders wait too. @default 67108864 (64 MiB) */
  readonly maxQueuedBytes?: number | undefined
  /** How long senders are held back by an output that takes nothing before it counts as stalled; 0: for ever. @default "60 seconds" */
  readonly stallTimeout?: Duration.Input | undefined
}

/**
 * The two ends of a byte connection.
 *
 * @category models
 * @since 0.1.0
 */
export interface Duplex {
  /** Chunks of the input, not written to afterwards. */
  readonly input: Stream.Stream<Uint8Array, unknown>
  /** Takes the pieces to write; asking for the next one says that the one before has been taken. */
  readonly output: Sink.Sink<void, Uint8Array, unknown, unknown>
  /** Says more of an ended input or a failed output, where something stands behind the connection that can tell, such as a process; nothing is closed before it returns. @default the reason as it is */
  readonly explain?: ((reason: CloseReason) => Effect.Effect<CloseReason>) | undefined
}

const MIB = 1024 * 1024
const LATE = 5_000

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * Makes a transport of a byte input and a byte output.
 *
 * **Details**
 *
 * Errors are sorted by the code of the operating system: EPIPE, ECONNRESET, ERR_STREAM_DESTROYED,
 * ERR_STREAM_WRITE_AFTER_END and ERR_STREAM_PREMATURE_CLOSE while writing are {@link OutputClosed}; ECONNRESET, EPIPE and
 * EIO while reading are {@link InputEnded}; all others are failures. Closing the scope drops what is still queued: call
 * `end` before when that matters.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(
  function*(duplex: Duplex, options?: Options): Effect.fn.Return<Transport["Service"], never, Scope.Scope> {
    const framing = options?.framing ?? "auto"
    const maxQueuedBytes = options?.maxQueuedBytes ?? 64 * MIB
    const stallTimeout = Duration.toMillis(Duration.fromInputUnsafe(options?.stallTimeout ?? "60 seconds"))
    const clock = yield* Clock.Clock

    // what is queued in one go leaves in one write, as soon as that is over; a turn of the event loop would cost more
    const microtasks = new Scheduler.MixedScheduler("sync").makeDispatcher()

    // one that dies leaves the reason as it is: a connection that has ended must not stay open
    const { explain: explainer = Effect.succeed } = duplex
    const explain = (reason: CloseReason): Effect.Effect<CloseReason> =>
      Effect.catchCause(Effect.suspend(() => explainer(reason)), () => Effect.succeed(reason))
    const outbox = makeOutbox(maxQueuedBytes)
    const closed = Deferred.makeUnsafe<CloseReason>()
    const outputClosed = Deferred.makeUnsafe<CloseReason>()
    const written = Deferred.makeUnsafe<void>()
    const work = Latch.makeUnsafe(false)
    const clear = Latch.makeUnsafe(true)
    const pressure = Latch.makeUnsafe(false)
    // those who wait to send, first come first served
    const senders: Array<
      { readonly frame: Framing.Frame; readonly admit: (result: Exit.Exit<void, TransportError>) => void }
    > = []
    let output: CloseReason | undefined
    let ended = false
    let lastProgress = 0
    let arrivals = 0
    let lastArrival = 0

    const closeOutput = (reason: CloseReason, isFlushed = false) => {
      if (output !== undefined) return
      output = reason
      outbox.clear()
      update()
      const failure = Exit.fail(new TransportError({ reason }))
      for (const sender of senders.splice(0)) sender.admit(failure)
      Deferred.doneUnsafe(outputClosed, Exit.succeed(reason))
      // what we have ended ourselves, the other side may still write to
      if (!isFlushed) Deferred.doneUnsafe(closed, Exit.succeed(reason))
      Deferred.doneUnsafe(written, Exit.void)
    }

    /** Brings the latches in line with what is queued. */
    const update = () => {
      if (outbox.isCongested()) clear.closeUnsafe()
      else clear.openUnsafe()
      if (outbox.isCongested() || senders.length > 0 || (ended && outbox.size() > 0)) {
        if (!pressure.isOpen()) lastProgress = clock.currentTimeMillisUnsafe()
        pressure.openUnsafe()
      } else {
        pressure.closeUnsafe()
      }
    }

    let isWriteDue = false
    const write = () => {
      isWriteDue = false
      work.openUnsafe()
    }

    const added = () => {
      update()
      if (isWriteDue || work.isOpen()) return
      isWriteDue = true
      microtasks.scheduleTask(write, 0)
    }

    const add = (frame: Framing.Frame) => {
      outbox.add(frame)
      added()
    }

    const onProgress = () => {
      lastProgress = clock.currentTimeMillisUnsafe()
      for (let next = senders[0]; next !== undefined && outbox.fits(next.frame); next = senders[0]) {
        senders.shift()
        add(next.frame)
        next.admit(Exit.void)
      }
      update()
    }

    const pieces: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>> = Effect.suspend(() => {
      const piece = outbox.next()
      onProgress()
      if (piece !== undefined) return Effect.succeed([piece])
      // `next` may have made room for a sender that waited
      if (!outbox.isEmpty()) return pieces
      if (ended) return Cause.done()
      work.closeUnsafe()
      return Effect.andThen(work.await, pieces)
    })

    yield* Stream.fromPull(Effect.succeed(pieces)).pipe(
      Stream.run(duplex.output),
      Effect.matchCauseEffect({
        onFailure: (cause) =>
          Cause.hasInterruptsOnly(cause)
            ? Effect.void
            : Effect.map(explain(outputReason(Cause.squash(cause))), (reason) => closeOutput(reason)),
        onSuccess: () => Effect.sync(() => closeOutput(new Ended(), true))
      }),
      Effect.raceFirst(Deferred.await(outputClosed)),
      Effect.forkScoped({ startImmediately: true })
    )

    if (stallTimeout > 0 && stallTimeout !== Infinity) {
      const stalled = Effect.gen(function*() {
        yield* pressure.await
        const due = Math.max(clock.currentTimeMillisUnsafe() + 1, lastProgress + stallTimeout)
        yield* Effect.sleep(due - clock.currentTimeMillisUnsafe())
        // after a machine's sleep we wake late, and the other side has had no time either
        if (clock.currentTimeMillisUnsafe() - due > LATE) lastProgress = clock.currentTimeMillisUnsafe()
        return pressure.isOpen() && clock.currentTimeMillisUnsafe() - lastProgress >= stallTimeout
      })
      yield* stalled.pipe(
        Effect.repeat({ until: (isStalled) => isStalled }),
        Effect.andThen(Effect.sync(() => closeOutput(new OutputStalled({ queuedBytes: outbox.size() })))),
        Effect.raceFirst(Deferred.await(outputClosed)),
        Effect.forkScoped({ startImmediately: true })
      )
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closeOutput(new Ended())
        Deferred.doneUnsafe(closed, Exit.succeed(new Ended()))
      })
    )

    const maxFrameBytes = options?.maxFrameBytes ?? (framing === "native" ? 64 * MIB : undefined)
    const maxSendBytes = options?.maxSendBytes ?? (framing === "native" ? MIB : Infinity)

    const mayAdd = (frame: Framing.Frame) =>
      output === undefined && !ended && frame.bytes.length <= maxSendBytes && senders.length === 0 && outbox.fits(frame)

    const send = (frame: Framing.Frame): Effect.Effect<void, TransportError> =>
      Effect.suspend(() => {
        if (output !== undefined) return Effect.fail(new TransportError({ reason: output }))
        if (ended) return Effect.fail(new TransportError({ reason: new Ended() }))
        if (frame.bytes.length > maxSendBytes) {
          const reason = new FrameTooLarge({ size: frame.bytes.length, limit: maxSendBytes })
          return Effect.fail(new TransportError({ reason }))
        }
        if (mayAdd(frame)) {
          add(frame)
          return Effect.void
        }
        return Effect.callback<void, TransportError>((resume) => {
          const sender = { frame, admit: resume }
          senders.push(sender)
          update()
          return Effect.sync(() => {
            const index = senders.indexOf(sender)
            if (index >= 0) senders.splice(index, 1)
            update()
          })
        })
      })

    return Transport.of({
      incoming: decodeStream(duplex.input, () => Framing.makeDecoder({ framing, maxFrameBytes }), {
        onChunks: (count) => {
          arrivals += count
          lastArrival = clock.currentTimeMillisUnsafe()
        },
        onError: (cause) => {
          if (Cause.hasInterruptsOnly(cause)) return Cause.interrupt()
          const reason = inputReason(Cause.squash(cause))
          if (reason._tag === "InputEnded") return undefined
          Deferred.doneUnsafe(closed, Exit.succeed(reason))
          return Cause.fail(new TransportError({ reason }))
        },
        onEnd: Effect.suspend(() =>
          Effect.map(explain(new InputEnded()), (reason) => {
            Deferred.doneUnsafe(closed, Exit.succeed(reason))
          })
        )
      }),
      send,
      trySendUnsafe: (frame) => {
        if (!mayAdd(frame)) return false
        add(frame)
        return true
      },
      trySendTextUnsafe: (text, framing) => {
        // a UTF-16 code unit takes three bytes at most
        const size = text.length * 3
        const isOpen = output === undefined && !ended && senders.length === 0
        if (!isOpen || size > maxSendBytes || !outbox.hasRoom(size)) return false
        outbox.addText(text, framing)
        added()
        return true
      },
      sendUnsafe: (frame) => {
        if (output !== undefined || ended) return false
        add(frame)
        return true
      },
      sendTextUnsafe: (text, framing) => {
        if (output !== undefined || ended) return false
        outbox.addText(text, framing)
        added()
        return true
      },
      isOutputClosedUnsafe: () => output !== undefined,
      isCongestedUnsafe: outbox.isCongested,
      decongested: clear.await,
      end: Effect.suspend(() => {
        ended = true
        work.openUnsafe()
        update()
        return Deferred.await(written)
      }),
      closed: Deferred.await(closed),
      outputClosed: Deferred.await(outputClosed),
      framing,
      maxSendBytes,
      maxQueuedBytes,
      queuedBytesUnsafe: outbox.size,
      arrivalsUnsafe: () => arrivals,
      lastArrivalUnsafe: () => lastArrival
    })
  }
)

/**
 * Makes two transports that are connected to each other in memory, byte for byte like a pipe: what one sends, the other
 * reads, and an end or a lack of reading on one side is felt on the other.
 *
 * **Example** (A pair)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Framing from "effect-stdio/Framing"
 * import * as Transport from "effect-stdio/Transport"
 *
 * const program = Effect.gen(function*() {
 *   const [left, right] = yield* Transport.makePair()
 *   yield* left.send(Framing.frameOfText("{}", "line"))
 *   return right.incoming
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const makePair = Effect.fnUntraced(
  function*(options?: {
    readonly left?: Options | undefined
    readonly right?: Options | undefined
    /** Chunks that fit into each direction before the writer waits. @default 16 */
    readonly capacity?: number | undefined
  }): Effect.fn.Return<readonly [left: Transport["Service"], right: Transport["Service"]], never, Scope.Scope> {
    const toRight = yield* makePipe(options?.capacity ?? 16)
    const toLeft = yield* makePipe(options?.capacity ?? 16)
    const left = yield* make({ input: toLeft.input, output: toRight.output }, options?.left)
    const right = yield* make({ input: toRight.input, output: toLeft.output }, options?.right)
    return [left, right]
  }
)

const makePipe = Effect.fnUntraced(function*(capacity: number) {
  const queue = yield* Queue.bounded<Uint8Array, Cause.Done>(capacity)
  yield* Effect.addFinalizer(() => Queue.shutdown(queue))
  return {
    input: Stream.fromQueue(queue),
    output: Sink.forEach((chunk: Uint8Array) =>
      Effect.flatMap(Queue.offer(queue, chunk), (taken) => taken ? Effect.void : Effect.fail({ code: "EPIPE" }))
    ).pipe(Sink.ensuring(Queue.end(queue)))
  }
})

// -----------------------------------------------------------------------------
// classification
// -----------------------------------------------------------------------------

const OUTPUT_ENDS = new Set([
  "EPIPE",
  "ECONNRESET",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
  "ERR_STREAM_PREMATURE_CLOSE"
])

const INPUT_ENDS = new Set(["ECONNRESET", "EPIPE", "EIO"])

const outputReason = (cause: unknown): CloseReason => {
  const code = errorCode(cause)
  return code !== undefined && OUTPUT_ENDS.has(code) ? new OutputClosed({ code }) : new OutputFailed({ cause })
}

const inputReason = (cause: unknown): CloseReason => {
  const code = errorCode(cause)
  return code !== undefined && INPUT_ENDS.has(code) ? new InputEnded() : new InputFailed({ cause })
}

/** The operating system's code of an error, which wrappers keep under `cause` or `reason`. */
const errorCode = (error: unknown, depth = 4): string | undefined => {
  if (!Predicate.isObject(error) || depth === 0) return undefined
  if (typeof error.code === "string") return error.code
  return errorCode(error.cause, depth - 1) ?? errorCode(error.reason, depth - 1)
}

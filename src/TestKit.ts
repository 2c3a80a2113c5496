/**
 * Tests of servers and peers without a process and without a second passing: a transport whose other end is the test,
 * with chunking by sizes, faults on demand, and what was sent to look at.
 *
 * It needs no test framework, and with Effect's TestClock no test sleeps.
 *
 * @module
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as Framing from "./Framing.ts"
import * as Lifecycle from "./Lifecycle.ts"
import * as JsonRpc from "./Schema.ts"
import * as Server from "./Server.ts"
import * as Transport from "./Transport.ts"
import * as Watchdog from "./Watchdog.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * The frames sent are not those expected; the message shows both, a line a frame.
 *
 * @category errors
 * @since 0.1.0
 */
export class FramesDiffer extends Schema.TaggedError<FramesDiffer>()("FramesDiffer", {
  expected: Schema.Array(Schema.Unknown),
  actual: Schema.Array(Schema.Unknown)
}) {
  override get message(): string {
    return `the frames sent differ\nexpected:\n${lines(this.expected)}\nactual:\n${lines(this.actual)}`
  }
}

// test runners replace `expected` and `actual` of an error by their text
const lines = (values: ReadonlyArray<unknown> | string) =>
  typeof values === "string"
    ? values
    : values.length === 0
    ? "  (none)"
    : values.map((value) => `  ${JSON.stringify(value)}`).join("\n")

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/**
 * The test's end of a transport.
 *
 * @category models
 * @since 0.1.0
 */
export interface Wire {
  /** The end under test. */
  readonly transport: Transport.Transport["Service"]
  /** Feeds bytes or text, whole or cut into chunks of these sizes; the last size repeats. */
  readonly feed: (input: string | Uint8Array, sizes?: ReadonlyArray<number>) => Effect.Effect<void>
  /** Feeds messages, each framed; with `jsonrpc` added where it is missing. */
  readonly receive: (...messages: ReadonlyArray<object>) => Effect.Effect<void>
  /** Ends the input, as a host does that closes our standard input. */
  readonly endInput: Effect.Effect<void>
  /** Fails the input with an error of the operating system, such as "EIO". */
  readonly failInput: (code: string) => Effect.Effect<void>
  /** Fails the next write, and all after it: "EPIPE" by default. */
  readonly breakOutput: (code?: string) => Effect.Effect<void>
  /** Takes nothing any more, as a host does that stops reading. */
  readonly stall: Effect.Effect<void>
  /** Takes what is written again. */
  readonly resume: Effect.Effect<void>
  /** Lets what can run without time passing run, for 64 turns of the scheduler. */
  readonly settled: Effect.Effect<void>
  /** The next message that was sent, in the order of sending; waits for it. */
  readonly next: Effect.Effect<unknown>
  /** All messages sent so far, those that `next` took included. */
  readonly sent: Effect.Effect<ReadonlyArray<unknown>>
  /** All bytes sent so far. */
  readonly sentText: Effect.Effect<string>
  /** The number of writes they were sent in. */
  readonly writes: Effect.Effect<number>
  /** Fails unless exactly these messages have been sent so far. */
  readonly expectSent: (...messages: ReadonlyArray<unknown>) => Effect.Effect<void, FramesDiffer>
}

/**
 * A server under test, with the test's end of its transport.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerUnderTest extends Wire {
  /** Waits for the server to end. */
  readonly reason: Effect.Effect<Server.StopReason, Transport.TransportError>
  /** Interrupts the server, as a signal does, and waits for it. */
  readonly interrupt: Effect.Effect<void>
  /** What the server told so far. */
  readonly events: Effect.Effect<ReadonlyArray<Lifecycle.Event>>
}

/**
 * A parent process that exists only in the test.
 *
 * @category models
 * @since 0.1.0
 */
export interface Parent {
  readonly pid: number
  readonly probe: Watchdog.Probe
  /** From now on the process is gone. */
  readonly exit: Effect.Effect<void>
  /** From now on another process has its pid. */
  readonly reusePid: Effect.Effect<void>
  /** From now on we are the child of this process. */
  readonly reparentTo: (pid: number) => Effect.Effect<void>
}

/**
 * Options of {@link serve}.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServeOptions<out R = never> extends Server.Options<R> {
  readonly transport?: Transport.Options | undefined
  /** @default idle after ten minutes, and a poll of `parent` every 30 seconds */
  readonly watchdog?: Watchdog.Options | undefined
  readonly parent?: Parent | undefined
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * Cuts bytes into chunks of these sizes; the last size repeats, and sizes below one count as one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const chunks = (bytes: Uint8Array, sizes: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  for (let start = 0; start < bytes.length;) {
    const size = Math.max(1, sizes[pieces.length] ?? sizes.at(-1) ?? bytes.length)
    pieces.push(bytes.subarray(start, start + size))
    start += size
  }
  return pieces
}

/**
 * Makes a transport whose other end is the test.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(
  function*(options?: Transport.Options): Effect.fn.Return<Wire, never, Scope.Scope> {
    const framing = options?.framing ?? "auto"
    const own: Framing.Kind = framing === "auto" ? "line" : framing
    // a test feeds what it likes
    const input = yield* Queue.unbounded<Uint8Array, Cause.Done | { readonly code: string }>()
    const messages = yield* Queue.unbounded<unknown>()
    const open = Latch.makeUnsafe(true)
    const broken = Deferred.makeUnsafe<never, { readonly code: string }>()
    const decoder = Framing.makeDecoder({ framing, maxFrameBytes: Number.MAX_SAFE_INTEGER })
    const written: Array<Uint8Array> = []
    const sent: Array<unknown> = []

    const record = (chunk: Uint8Array) => {
      written.push(chunk)
      const items: Array<Framing.Item> = []
      decoder.push(chunk, items)
      for (const item of items) {
        const value = item._tag === "Fault" ? item : Result.getOrElse(parsed(item), (error): unknown => error)
        sent.push(value)
        Queue.offerUnsafe(messages, value)
      }
    }

    const transport = yield* Transport.make({
      input: Stream.fromQueue(input),
      output: Sink.forEach((chunk: Uint8Array) =>
        open.await.pipe(
          Effect.raceFirst(Deferred.await(broken)),
          Effect.andThen(Effect.suspend(() =>
            Deferred.isDoneUnsafe(broken) ? Deferred.await(broken) : Effect.sync(() => record(chunk))
          ))
        )
      )
    }, options)

    const feed: Wire["feed"] = (data, sizes) => {
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data
      return Effect.asVoid(Queue.offerAll(input, sizes === undefined ? [bytes] : chunks(bytes, sizes)))
    }

    return {
      transport,
      feed,
      receive: (...received) =>
        feed(
          Framing.encode(received.map((message) =>
            Framing.frameOfText(JSON.stringify(Array.isArray(message) ? message : { jsonrpc: "2.0", ...message }), own)
          ))
        ),
      endInput: Effect.asVoid(Queue.end(input)),
      failInput: (code) => Effect.asVoid(Queue.fail(input, { code })),
      breakOutput: (code = "EPIPE") => Effect.asVoid(Deferred.fail(broken, { code })),
      stall: Effect.asVoid(open.close),
      resume: Effect.asVoid(open.open),
      settled,
      next: Queue.take(messages),
      sent: Effect.sync(() => [...sent]),
      sentText: Effect.sync(() => written.map((chunk) => new TextDecoder().decode(chunk)).join("")),
      writes: Effect.sync(() => written.length),
      expectSent: (...expected) =>
        Effect.andThen(
          settled,
          Effect.suspend(() => {
            const actual = [...sent]
            // both are JSON, so that equal text in equal order of members is what a reader would see as equal
            return JSON.stringify(expected) === JSON.stringify(actual)
              ? Effect.void
              : Effect.fail(new FramesDiffer({ expected, actual }))
          })
        )
    }
  }
)

const parsed = (frame: Framing.Frame) => Result.flatMap(Framing.text(frame), JsonRpc.parse)

const TURNS = 64

const settled: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: TURNS }))

/**
 * Starts a server on a transport whose other end is the test.
 *
 * **Example** (An idle server leaves)
 *
 * ```ts
 * import * as TestKit from "effect-stdio/TestKit"
 * import * as Effect from "effect/Effect"
 * import * as TestClock from "effect/testing/TestClock"
 *
 * const test = Effect.gen(function*() {
 *   const server = yield* TestKit.serve({ watchdog: { idle: "1 minute" } })
 *   yield* TestClock.adjust("1 minute")
 *   return yield* server.reason // { _tag: "IdleTimeout" }
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const serve = Effect.fnUntraced(function*<R = never>(
  options?: ServeOptions<R>
): Effect.fn.Return<ServerUnderTest, never, Exclude<R, Server.HandlerServices> | Scope.Scope> {
  const events: Array<Lifecycle.Event> = []
  // its transport ends first, so that a test that is over does not wait for time that nobody lets pass
  const wireScope = yield* Scope.make()
  const wire = yield* Scope.provide(make(options?.transport), wireScope)
  const watchdog = Watchdog.layer(options?.watchdog).pipe(
    Layer.provide(options?.parent === undefined ? Layer.empty : Layer.succeed(Watchdog.Probe, options.parent.probe))
  )
  const fiber = yield* Server.run(options).pipe(
    Effect.provide(Layer.merge(watchdog, Layer.succeed(Transport.Transport, wire.transport))),
    Effect.provideService(Lifecycle.Observer, (event) => {
      events.push(event)
    }),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer((exit) => Scope.close(wireScope, exit))
  yield* settled
  return {
    ...wire,
    reason: Fiber.join(fiber),
    interrupt: Fiber.interrupt(fiber),
    events: Effect.sync(() => [...events])
  }
})

/**
 * Makes a parent process that exists only in the test.
 *
 * **Example** (A server whose parent is gone leaves)
 *
 * ```ts
 * import * as TestKit from "effect-stdio/TestKit"
 * import * as Effect from "effect/Effect"
 * import * as TestClock from "effect/testing/TestClock"
 *
 * const test = Effect.gen(function*() {
 *   const parent = TestKit.makeParent(4_242)
 *   const server = yield* TestKit.serve({ parent })
 *   yield* parent.exit
 *   yield* TestClock.adjust("30 seconds")
 *   return yield* server.reason // { _tag: "ParentExited", pid: 4242, why: "no such process" }
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeParent = (pid: number): Parent => {
  let alive = true
  let identity = "first"
  let parentPid = pid
  return {
    pid,
    probe: {
      parentPid: Effect.sync(() => parentPid),
      defaultPids: Effect.succeed([pid]),
      inspect: () =>
        Effect.sync((): Watchdog.Liveness =>
          alive ? { _tag: "Alive", identity } : { _tag: "Gone", why: "no such process" }
        )
    },
    exit: Effect.sync(() => {
      alive = false
    }),
    reusePid: Effect.sync(() => {
      identity = "second"
    }),
    reparentTo: (other) =>
      Effect.sync(() => {
        parentPid = other
      })
  }
}

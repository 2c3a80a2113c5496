import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Transport from "effect-stdio/Transport"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { block, bytes, counted, fault, line, seen, text } from "./utils/bytes.ts"

/** Lets everything run that can run without time passing. */
const settled = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: 50 }))

/** An output that takes as many pieces as it was allowed to, and fails when told. */
const makeOutput = Effect.gen(function*() {
  const permits = yield* Queue.unbounded<"take" | { readonly error: unknown }>()
  const pieces: Array<string> = []
  let ended = false
  let open = false
  const output: Transport.Duplex["output"] = Sink.forEach((piece: Uint8Array) =>
    Effect.gen(function*() {
      if (!open) {
        const permit = yield* Queue.take(permits)
        if (permit !== "take") return yield* Effect.fail(permit.error)
      }
      pieces.push(text(piece))
    })
  ).pipe(Sink.onExit((exit) =>
    Effect.sync(() => {
      ended = Exit.isSuccess(exit)
    })
  ))
  return {
    output,
    pieces,
    isEnded: () => ended,
    /** Takes this many pieces. */
    take: (count: number) => Effect.andThen(Queue.offerAll(permits, new Array<"take">(count).fill("take")), settled),
    takeAll: Effect.suspend(() => {
      open = true
      return Effect.andThen(Queue.offer(permits, "take"), settled)
    }),
    fail: (error: unknown) => Effect.andThen(Queue.offer(permits, { error }), settled)
  }
})

const makeOutbound = (options?: Transport.Options) =>
  Effect.gen(function*() {
    const output = yield* makeOutput
    const transport = yield* Transport.make({ input: Stream.never, output: output.output }, options)
    return { transport, ...output }
  })

const makeInbound = (input: Stream.Stream<Uint8Array, unknown>, options?: Transport.Options) =>
  Transport.make({ input, output: Sink.drain }, options)

const frame = (content: string) => Framing.frameOfText(content, "line")

/** A frame of this many bytes on the wire. */
const sized = (size: number, character = "x") => frame(character.repeat(size - 1))

/** The reason a transport gave for a failure. */
const reasonOf = <A>(effect: Effect.Effect<A, Transport.TransportError>) =>
  Effect.map(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return exit.value
    const error = Cause.squash(exit.cause)
    return error instanceof Transport.TransportError ? error.reason : error
  })

/** The value of an effect that is settled already, or "suspended". */
const polled = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* settled
    const exit = fiber.pollUnsafe()
    yield* Fiber.interrupt(fiber)
    return exit === undefined ? "suspended" : Exit.isSuccess(exit) ? exit.value : exit
  })

// pieces of a large queue: one frame each
const PIECE = 262_144

describe("send", () => {
  it.effect("writes frames in order, each in its own framing", () =>
    Effect.gen(function*() {
      const { pieces, takeAll, transport } = yield* makeOutbound()
      yield* takeAll
      yield* transport.send(frame("1"))
      yield* settled
      yield* transport.send(Framing.frameOfText("{}", "content-length"))
      yield* settled
      yield* transport.send(frame("日"))
      yield* settled
      assert.deepStrictEqual(pieces, ["1\n", counted("{}"), "日\n"])
    }))

  it.effect("writes frames that are queued together as one piece", () =>
    Effect.gen(function*() {
      const { pieces, takeAll, transport } = yield* makeOutbound()
      yield* takeAll
      yield* transport.send(frame("1"))
      transport.sendUnsafe(frame("2"))
      yield* transport.send(Framing.frameOfText("3", "content-length"))
      yield* settled
      assert.deepStrictEqual(pieces, [`1\n2\n${counted("3")}`])
    }))

  it.effect("joins what is queued while the output is busy", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* makeOutbound()
      yield* transport.send(frame("1"))
      yield* settled
      yield* transport.send(frame("2"))
      yield* settled
      yield* transport.send(frame("3"))
      yield* take(1)
      assert.deepStrictEqual(pieces, ["1\n"])
      yield* take(1)
      assert.deepStrictEqual(pieces, ["1\n", "2\n3\n"])
    }))

  it.effect("writes every byte of a large frame, and nothing in between", () =>
    Effect.gen(function*() {
      const { pieces, takeAll, transport } = yield* makeOutbound()
      yield* takeAll
      const large = "x".repeat(3 * PIECE + 5)
      for (const content of ["a", large, "b"]) yield* transport.send(frame(content))
      yield* settled
      assert.strictEqual(pieces.join(""), `a\n${large}\nb\n`)
    }))

  it.effect.each<Framing.Kind>(["line", "content-length", "native"])(
    "writes the bytes of frames of every size, and a newline inside a line as a space: %s",
    (framing) =>
      Effect.gen(function*() {
        const written: Array<Uint8Array> = []
        const transport = yield* Transport.make({
          input: Stream.never,
          output: Sink.forEach((piece: Uint8Array) => Effect.sync(() => written.push(piece)))
        })
        const frames = [0, 1, PIECE - 30, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 7, 3].map((size) =>
          Framing.frameOfText("{\n}".repeat(size).slice(0, size), framing)
        )
        for (const frame of frames) yield* transport.send(frame)
        yield* transport.end
        assert.isTrue(Buffer.concat(written).equals(Framing.encode(frames)))
        assert.deepStrictEqual(
          frames.map(({ bytes }) => bytes.includes(0x0a)),
          frames.map(({ bytes }) => bytes.length > 1)
        )
      })
  )

  it.effect("suspends while maxQueuedBytes wait, and resumes when there is room", () =>
    Effect.gen(function*() {
      const { pieces, take, takeAll, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(4, "a"))
      yield* settled
      yield* transport.send(sized(6, "b"))
      const fiber = yield* Effect.forkChild(transport.send(sized(1)))
      yield* settled
      assert.isUndefined(fiber.pollUnsafe())
      yield* take(1)
      assert.deepStrictEqual(fiber.pollUnsafe(), Exit.void)
      yield* takeAll
      assert.strictEqual(pieces.join(""), "aaa\nbbbbb\n\n")
    }))

  it.effect("counts what the output was handed and has not taken", () =>
    Effect.gen(function*() {
      const { transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(10))
      // the only frame is with the output now, and none is queued
      yield* settled
      assert.strictEqual(yield* polled(transport.send(sized(1))), "suspended")
    }))

  it.effect("admits a frame larger than the bound alone", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(100, "a"))
      const second = yield* Effect.forkChild(transport.send(sized(100, "b")))
      const third = yield* Effect.forkChild(transport.send(sized(1)))
      yield* settled
      assert.deepStrictEqual([second.pollUnsafe(), third.pollUnsafe()], [undefined, undefined])
      yield* take(1)
      assert.deepStrictEqual([second.pollUnsafe(), third.pollUnsafe()], [Exit.void, undefined])
      yield* take(1)
      assert.deepStrictEqual(third.pollUnsafe(), Exit.void)
      yield* take(1)
      assert.deepStrictEqual(pieces, [`${"a".repeat(99)}\n`, `${"b".repeat(99)}\n`, "\n"])
    }))

  it.effect("lets no frame overtake one that waits", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(6, "a"))
      const large = yield* Effect.forkChild(transport.send(sized(8, "b")))
      yield* settled
      // it would fit beside the first
      const small = yield* Effect.forkChild(transport.send(sized(2, "c")))
      yield* settled
      assert.deepStrictEqual([large.pollUnsafe(), small.pollUnsafe()], [undefined, undefined])
      yield* take(2)
      assert.deepStrictEqual(pieces, ["aaaaa\n", "bbbbbbb\nc\n"])
    }))

  it.effect("drops nothing of many senders at a slow output", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* makeOutbound({ maxQueuedBytes: 20 })
      const contents = Array.from({ length: 500 }, (_, index) => `${index}`)
      const senders = yield* Effect.forkChild(
        Effect.forEach(contents, (content) => transport.send(frame(content)), { concurrency: "unbounded" })
      )
      yield* settled
      assert.isUndefined(senders.pollUnsafe())
      while (senders.pollUnsafe() === undefined) yield* take(1)
      yield* take(2)
      assert.strictEqual(pieces.join(""), contents.map((content) => `${content}\n`).join(""))
    }))

  it.effect("writes nothing of a sender that was interrupted while it waited, and those behind it go on", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(10, "a"))
      const given = yield* Effect.forkChild(transport.send(sized(10, "b")))
      yield* settled
      const behind = yield* Effect.forkChild(transport.send(sized(4, "c")))
      yield* settled
      yield* Fiber.interrupt(given)
      yield* take(2)
      assert.deepStrictEqual(behind.pollUnsafe(), Exit.void)
      assert.deepStrictEqual(pieces, [`${"a".repeat(9)}\n`, "ccc\n"])
    }))
})

describe("sendUnsafe", () => {
  it.effect("queues whatever waits already, in order with send", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(10, "a"))
      yield* settled
      const taken = ["b", "c", "d"].map((character) => transport.sendUnsafe(sized(10, character)))
      assert.deepStrictEqual(taken, [true, true, true])
      yield* take(2)
      assert.strictEqual(pieces.join(""), ["a", "b", "c", "d"].map((it) => `${it.repeat(9)}\n`).join(""))
    }))

  it.effect("makes the transport congested at maxQueuedBytes, and not before", () =>
    Effect.gen(function*() {
      const { transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      const congested = [transport.isCongestedUnsafe()]
      for (const size of [9, 1, 1]) {
        transport.sendUnsafe(sized(size))
        congested.push(transport.isCongestedUnsafe())
      }
      assert.deepStrictEqual(congested, [false, false, true, true])
    }))

  it.effect("leaves it congested until half of maxQueuedBytes is written", () =>
    Effect.gen(function*() {
      const { take, transport } = yield* makeOutbound({ maxQueuedBytes: 4 * PIECE })
      assert.isUndefined(yield* polled(transport.decongested))
      for (let count = 0; count < 4; count++) transport.sendUnsafe(sized(PIECE))
      const waiting = yield* Effect.forkChild(transport.decongested)
      const states: Array<unknown> = []
      for (let taken = 0; taken < 3; taken++) {
        states.push([transport.isCongestedUnsafe(), waiting.pollUnsafe()])
        yield* take(1)
      }
      states.push([transport.isCongestedUnsafe(), waiting.pollUnsafe()])
      // three quarters wait after the first piece, half after the second
      assert.deepStrictEqual(states, [[true, undefined], [true, undefined], [false, Exit.void], [false, Exit.void]])
      assert.isUndefined(yield* polled(transport.decongested))
    }))

  it.effect("makes it congested again", () =>
    Effect.gen(function*() {
      const { take, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      transport.sendUnsafe(sized(10))
      yield* take(1)
      assert.isFalse(transport.isCongestedUnsafe())
      transport.sendUnsafe(sized(10))
      assert.strictEqual(yield* polled(transport.decongested), "suspended")
    }))
})

describe("trySendUnsafe", () => {
  it.effect("queues a frame where there is room, in order with send", () =>
    Effect.gen(function*() {
      const { pieces, takeAll, transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(4, "a"))
      assert.deepStrictEqual([transport.trySendUnsafe(sized(6, "b")), transport.trySendUnsafe(sized(1))], [true, false])
      yield* takeAll
      assert.deepStrictEqual([pieces.join(""), transport.trySendUnsafe(sized(100))], ["aaa\nbbbbb\n", true])
    }))

  it.effect("overtakes no one who waits", () =>
    Effect.gen(function*() {
      const { transport } = yield* makeOutbound({ maxQueuedBytes: 10 })
      yield* transport.send(sized(6))
      const waiting = yield* Effect.forkChild(transport.send(sized(6)))
      yield* settled
      assert.isFalse(transport.trySendUnsafe(sized(1)))
      yield* Fiber.interrupt(waiting)
      assert.isTrue(transport.trySendUnsafe(sized(1)))
    }))

  it.effect("refuses what send would refuse", () =>
    Effect.gen(function*() {
      const tooLarge = yield* makeOutbound({ maxSendBytes: 4 })
      const ended = yield* makeOutbound()
      const broken = yield* makeOutbound()
      yield* settled
      yield* ended.transport.end
      yield* broken.transport.send(frame("1"))
      yield* broken.fail({ code: "EPIPE" })
      assert.deepStrictEqual(
        [
          tooLarge.transport.trySendUnsafe(frame("12345")),
          tooLarge.transport.trySendUnsafe(frame("1234")),
          ended.transport.trySendUnsafe(frame("1")),
          broken.transport.trySendUnsafe(frame("1"))
        ],
        [false, true, false, false]
      )
      assert.deepStrictEqual(
        [tooLarge, ended, broken].map(({ transport }) => transport.isOutputClosedUnsafe()),
        [false, true, true]
      )
    }))
})

describe("what a transport says of itself", () => {
  it.effect("counts the bytes that wait, those with the output included", () =>
    Effect.gen(function*() {
      const { take, transport } = yield* makeOutbound({ maxQueuedBytes: 100 })
      const sizes = [transport.maxQueuedBytes, transport.queuedBytesUnsafe()]
      yield* transport.send(sized(4))
      yield* settled
      transport.sendUnsafe(sized(200))
      sizes.push(transport.queuedBytesUnsafe())
      yield* take(1)
      sizes.push(transport.queuedBytesUnsafe())
      yield* take(1)
      sizes.push(transport.queuedBytesUnsafe())
      assert.deepStrictEqual(sizes, [100, 0, 204, 200, 0])
    }))

  it.effect("lets 64 MiB wait when nothing is said", () =>
    Effect.gen(function*() {
      const { transport } = yield* makeOutbound()
      assert.strictEqual(transport.maxQueuedBytes, 64 * 1024 * 1024)
    }))

  it.effect("counts chunks of input, whether or not they complete a frame, and says when the last came", () =>
    Effect.gen(function*() {
      const input = yield* Queue.unbounded<Uint8Array>()
      const transport = yield* makeInbound(Stream.fromQueue(input))
      yield* Effect.forkChild(Stream.runDrain(transport.incoming))
      const states: Array<unknown> = []
      const look = Effect.sync(() => states.push([transport.arrivalsUnsafe(), transport.lastArrivalUnsafe()]))
      yield* look
      for (const chunks of [["{"], ["}\n", "1", "2"], ["junk"]]) {
        yield* TestClock.adjust("1 second")
        yield* Queue.offerAll(input, chunks.map((chunk) => bytes(chunk)))
        yield* settled
        yield* TestClock.adjust("1 second")
        yield* look
      }
      assert.deepStrictEqual(states, [[0, 0], [1, 1_000], [4, 3_000], [5, 5_000]])
    }))
})

describe("stallTimeout", () => {
  const stall = (options?: Transport.Options) => makeOutbound({ maxQueuedBytes: 10, ...options })

  it.effect("fails what is held back, when nothing was taken for 60 seconds", () =>
    Effect.gen(function*() {
      const { transport } = yield* stall()
      yield* transport.send(sized(8))
      const fiber = yield* Effect.forkChild(transport.send(sized(8)))
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const reason = new Transport.OutputStalled({ queuedBytes: 8 })
      assert.deepStrictEqual(
        [yield* reasonOf(Fiber.join(fiber)), yield* transport.closed, yield* transport.outputClosed],
        [reason, reason, reason]
      )
      assert.deepStrictEqual([yield* reasonOf(transport.send(frame("1"))), transport.sendUnsafe(frame("1"))], [
        reason,
        false
      ])
    }))

  it.effect("counts congestion as being held back", () =>
    Effect.gen(function*() {
      const { transport } = yield* stall()
      transport.sendUnsafe(sized(12))
      yield* settled
      yield* TestClock.adjust("60 seconds")
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputStalled({ queuedBytes: 12 }))
      assert.deepStrictEqual([transport.isCongestedUnsafe(), yield* polled(transport.decongested)], [false, undefined])
    }))

  it.effect("does nothing while nothing is held back, whatever waits", () =>
    Effect.gen(function*() {
      const { pieces, take, transport } = yield* stall()
      yield* transport.send(sized(9))
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* take(1)
      assert.deepStrictEqual(pieces, ["xxxxxxxx\n"])
    }))

  it.effect("begins when something is held back, however long nothing was taken before", () =>
    Effect.gen(function*() {
      const { transport } = yield* stall()
      yield* transport.send(sized(9))
      yield* TestClock.adjust("1 hour")
      yield* Effect.forkChild(transport.send(sized(9)))
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputStalled({ queuedBytes: 9 }))
    }))

  it.effect("begins anew with every piece that is taken", () =>
    Effect.gen(function*() {
      const { take, transport } = yield* stall()
      for (let count = 0; count < 4; count++) yield* Effect.forkChild(transport.send(sized(10)))
      yield* settled
      for (let count = 0; count < 2; count++) {
        yield* TestClock.adjust("59 seconds")
        yield* take(1)
      }
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputStalled({ queuedBytes: 10 }))
    }))

  it.effect("sees the progress inside a large frame", () =>
    Effect.gen(function*() {
      const { take, transport } = yield* stall()
      yield* transport.send(sized(3 * PIECE))
      yield* Effect.forkChild(transport.send(sized(1)))
      for (let count = 0; count < 2; count++) {
        yield* TestClock.adjust("59 seconds")
        yield* take(1)
      }
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputStalled({ queuedBytes: PIECE }))
    }))

  it.effect("begins anew when the machine slept, since the other side slept too", () =>
    Effect.gen(function*() {
      const testClock = yield* Clock.Clock
      let slept = 0
      const clock: Clock.Clock = Object.assign(Object.create(testClock), {
        currentTimeMillisUnsafe: () => testClock.currentTimeMillisUnsafe() + slept
      })
      const { transport } = yield* Effect.provideService(stall(), Clock.Clock, clock)
      transport.sendUnsafe(sized(10))
      yield* TestClock.adjust("30 seconds")
      slept = 3_600_000
      // the timer fires an hour late
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputStalled({ queuedBytes: 10 }))
    }))

  it.effect("counts an end that is waited for as being held back", () =>
    Effect.gen(function*() {
      const { transport } = yield* stall()
      yield* transport.send(sized(4))
      yield* TestClock.adjust("1 hour")
      const ending = yield* Effect.forkChild(transport.end)
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(ending.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([ending.pollUnsafe(), yield* polled(transport.outputClosed)], [
        Exit.void,
        new Transport.OutputStalled({ queuedBytes: 4 })
      ])
    }))

  it.effect("is off again when nothing is held back any more", () =>
    Effect.gen(function*() {
      const { take, transport } = yield* stall()
      yield* transport.send(sized(8))
      yield* Effect.forkChild(transport.send(sized(8)))
      yield* TestClock.adjust("30 seconds")
      yield* take(1)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
    }))

  it.effect("is off again when the only one who waited gave up", () =>
    Effect.gen(function*() {
      const { transport } = yield* stall()
      yield* transport.send(sized(8))
      const fiber = yield* Effect.forkChild(transport.send(sized(8)))
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
    }))

  it.effect("can be set", () =>
    Effect.gen(function*() {
      const { transport } = yield* stall({ stallTimeout: "2 seconds" })
      transport.sendUnsafe(sized(10))
      yield* TestClock.adjust("1999 millis")
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputStalled({ queuedBytes: 10 }))
    }))

  it.effect.each<Transport.Options["stallTimeout"]>([0, "Infinity"])(
    "is off with %s",
    (stallTimeout) =>
      Effect.gen(function*() {
        const { transport } = yield* stall({ stallTimeout })
        transport.sendUnsafe(sized(20))
        const fiber = yield* Effect.forkChild(transport.send(sized(1)))
        yield* TestClock.adjust("365 days")
        assert.isUndefined(fiber.pollUnsafe())
      })
  )
})

describe("an output that fails", () => {
  const failed = (error: unknown) =>
    Effect.gen(function*() {
      const { fail, transport } = yield* makeOutbound({ maxQueuedBytes: 4 })
      yield* transport.send(sized(4))
      const waiting = yield* Effect.forkChild(transport.send(sized(4)))
      yield* fail(error)
      const closed = yield* polled(transport.closed)
      // every way to learn of it tells the same
      assert.deepStrictEqual(
        [
          yield* reasonOf(Fiber.join(waiting)),
          yield* reasonOf(transport.send(frame("1"))),
          yield* polled(transport.outputClosed)
        ],
        [closed, closed, closed]
      )
      assert.isFalse(transport.sendUnsafe(frame("1")))
      assert.isUndefined(yield* polled(transport.end))
      return closed
    })

  it.effect.each([
    "EPIPE",
    "ECONNRESET",
    "ERR_STREAM_DESTROYED",
    "ERR_STREAM_WRITE_AFTER_END",
    "ERR_STREAM_PREMATURE_CLOSE"
  ])("with %s is closed", (code) =>
    Effect.gen(function*() {
      const closed = new Transport.OutputClosed({ code })
      assert.deepStrictEqual(
        [
          yield* failed({ code }),
          yield* failed(Object.assign(new Error("write"), { code })),
          yield* failed({ _tag: "PlatformError", reason: { _tag: "Unknown", cause: { code } } }),
          yield* failed(new Error("outer", { cause: new Error("inner", { cause: { code } }) }))
        ],
        [closed, closed, closed, closed]
      )
    }))

  it.effect.each(["EIO", "ENOSPC", "EBADF", "EAGAIN", "ERR_UNKNOWN"])(
    "with %s has failed",
    (code) =>
      Effect.gen(function*() {
        const plain = { code }
        const nested = { reason: { cause: { code } } }
        assert.deepStrictEqual([yield* failed(plain), yield* failed(nested)], [
          new Transport.OutputFailed({ cause: plain }),
          new Transport.OutputFailed({ cause: nested })
        ])
      })
  )

  it.effect("with anything else has failed", () =>
    Effect.gen(function*() {
      const cycle: { cause?: unknown } = {}
      cycle.cause = cycle
      for (const error of ["broken", undefined, null, 5, { code: 5 }, {}, cycle, { reason: "EPIPE" }]) {
        const reason = yield* failed(error)
        assert.deepInclude(reason, { _tag: "OutputFailed" })
      }
    }))

  it.effect("by dying has failed", () =>
    Effect.gen(function*() {
      const defect = new Error("bug")
      const transport = yield* Transport.make({
        input: Stream.never,
        output: Sink.forEach(() => Effect.die(defect))
      })
      yield* transport.send(frame("1"))
      yield* settled
      const reason = yield* polled(transport.closed)
      assert.deepInclude(reason, { _tag: "OutputFailed", cause: defect })
    }))

  it.effect("is not congested, so that nobody waits for it", () =>
    Effect.gen(function*() {
      const { fail, transport } = yield* makeOutbound({ maxQueuedBytes: 4 })
      transport.sendUnsafe(sized(100))
      const waiting = yield* Effect.forkChild(transport.decongested)
      yield* fail({ code: "EPIPE" })
      assert.deepStrictEqual([waiting.pollUnsafe(), transport.isCongestedUnsafe()], [Exit.void, false])
    }))
})

describe("incoming", () => {
  it.effect("gives frames and faults in order, then ends, and closed says so", () =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(
        Stream.make(bytes("1\n", counted("2")), bytes("Content-Length: x\r\n\r\n3\n4")),
        { maxFrameBytes: 100 }
      )
      assert.strictEqual(yield* polled(transport.closed), "suspended")
      const items = yield* Stream.runCollect(transport.incoming)
      assert.deepStrictEqual(items.map(seen), [
        line("1"),
        block("2"),
        fault("InvalidHeader", "content-length", 17),
        line("3"),
        line("4")
      ])
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.InputEnded())
      // an ended input does not close the output
      assert.deepStrictEqual(
        [yield* polled(transport.outputClosed), transport.sendUnsafe(frame("1"))],
        ["suspended", true]
      )
    }))

  it.effect("gives the frame that arrives together with the end before it ends", () =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(Stream.make(bytes("{\"id\":1}\n")))
      const seenWhenClosed: Array<unknown> = []
      yield* Stream.runForEach(transport.incoming, (item) =>
        Effect.map(polled(transport.closed), (closed) => seenWhenClosed.push([seen(item), closed])))
      assert.deepStrictEqual(seenWhenClosed, [[line("{\"id\":1}"), "suspended"]])
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.InputEnded())
    }))

  it.effect("uses the options of the transport", () =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(Stream.make(bytes("Content-Length: 9\n1\n12345\n")), {
        framing: "line",
        maxFrameBytes: 4
      })
      const items = yield* Stream.runCollect(transport.incoming)
      assert.deepStrictEqual([transport.framing, items.map(seen)], [
        "line",
        [fault("TooLarge", "line", 17, { limit: 4 }), line("1"), fault("TooLarge", "line", 5, { limit: 4 })]
      ])
    }))

  it.effect("reads auto by default, and native frames of up to 64 MiB", () =>
    Effect.gen(function*() {
      const limit = 64 * 1024 * 1024
      const chunk = new Uint8Array(1024 * 1024)
      const body = Array.from({ length: 64 }, () => chunk)
      const auto = yield* makeInbound(Stream.empty)
      const native = yield* makeInbound(
        Stream.make(bytes([0, 0, 0, 4]), ...body, bytes([1, 0, 0, 4]), ...body, bytes([0])),
        { framing: "native" }
      )
      const items = yield* Stream.runCollect(native.incoming)
      assert.deepStrictEqual(
        [auto.framing, native.framing, ...items.map((item) => item._tag === "Frame" ? item.bytes.length : seen(item))],
        ["auto", "native", limit, fault("TooLarge", "native", limit + 1, { limit })]
      )
    }))

  const failing = (error: unknown) =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(Stream.concat(Stream.make(bytes("1\n2")), Stream.fail(error)))
      const items: Array<unknown> = []
      const outcome = yield* reasonOf(
        Stream.runForEach(transport.incoming, (item) => Effect.sync(() => items.push(seen(item))))
      )
      return [items, outcome, yield* polled(transport.closed), yield* polled(transport.outputClosed)]
    })

  it.effect.each(["ECONNRESET", "EPIPE", "EIO"])("ends where reading fails with %s", (code) =>
    Effect.gen(function*() {
      const ended = [[line("1"), line("2")], undefined, new Transport.InputEnded(), "suspended"]
      assert.deepStrictEqual([yield* failing({ code }), yield* failing({ reason: { cause: { code } } })], [
        ended,
        ended
      ])
    }))

  it.effect.each(["EISDIR", "ENOTCONN", "EBADF", "ENOSPC"])(
    "fails where reading fails with %s",
    (code) =>
      Effect.gen(function*() {
        const error = { code }
        const reason = new Transport.InputFailed({ cause: error })
        assert.deepStrictEqual(yield* failing(error), [[line("1")], reason, reason, "suspended"])
      })
  )

  it.effect("fails where reading dies", () =>
    Effect.gen(function*() {
      const defect = new Error("bug")
      const transport = yield* makeInbound(Stream.die(defect))
      const reason = yield* reasonOf(Stream.runDrain(transport.incoming))
      assert.deepInclude(reason, { _tag: "InputFailed", cause: defect })
    }))

  it.effect("is interrupted where its input is, which closes nothing", () =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(Stream.failCause(Cause.interrupt()))
      const fiber = yield* Effect.forkChild(Stream.runDrain(transport.incoming))
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.hasInterrupts(exit))
      assert.strictEqual(yield* polled(transport.closed), "suspended")
    }))

  it.effect("can be interrupted, which closes nothing", () =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(Stream.never)
      const fiber = yield* Effect.forkChild(Stream.runDrain(transport.incoming))
      yield* settled
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual([yield* polled(transport.closed), transport.sendUnsafe(frame("1"))], ["suspended", true])
    }))
})

describe("closed", () => {
  it.effect("keeps the first reason", () =>
    Effect.gen(function*() {
      const { fail, output } = yield* makeOutput
      const transport = yield* Transport.make({ input: Stream.empty, output })
      yield* Stream.runDrain(transport.incoming)
      yield* transport.send(frame("1"))
      yield* fail({ code: "EPIPE" })
      assert.deepStrictEqual([yield* polled(transport.closed), yield* polled(transport.outputClosed)], [
        new Transport.InputEnded(),
        new Transport.OutputClosed({ code: "EPIPE" })
      ])
    }))
})

describe("end", () => {
  it.effect("writes what is queued and who waits, ends the output, then returns", () =>
    Effect.gen(function*() {
      const { isEnded, pieces, take, transport } = yield* makeOutbound({ maxQueuedBytes: 4 })
      yield* transport.send(sized(4, "a"))
      const waiting = yield* Effect.forkChild(transport.send(sized(4, "b")))
      yield* settled
      const ending = yield* Effect.forkChild(transport.end)
      yield* settled
      assert.isUndefined(ending.pollUnsafe())
      yield* take(1)
      assert.deepStrictEqual([ending.pollUnsafe(), isEnded()], [undefined, false])
      yield* take(1)
      assert.deepStrictEqual(
        [pieces, isEnded(), ending.pollUnsafe(), waiting.pollUnsafe()],
        [["aaa\n", "bbb\n"], true, Exit.void, Exit.void]
      )
    }))

  it.effect("returns when nothing is queued", () =>
    Effect.gen(function*() {
      const { isEnded, transport } = yield* makeOutbound()
      yield* settled
      assert.deepStrictEqual([yield* polled(transport.end), isEnded()], [undefined, true])
    }))

  it.effect("takes no more frames from then on", () =>
    Effect.gen(function*() {
      const { pieces, takeAll, transport } = yield* makeOutbound()
      yield* transport.send(frame("1"))
      const ending = yield* Effect.forkChild(transport.end)
      yield* settled
      assert.deepStrictEqual(
        [
          yield* reasonOf(transport.send(frame("2"))),
          transport.sendUnsafe(frame("3")),
          transport.trySendUnsafe(frame("4"))
        ],
        [new Transport.Ended(), false, false]
      )
      yield* takeAll
      assert.deepStrictEqual(ending.pollUnsafe(), Exit.void)
      assert.deepStrictEqual(
        [yield* reasonOf(transport.send(frame("4"))), yield* polled(transport.outputClosed), pieces],
        [new Transport.Ended(), new Transport.Ended(), ["1\n"]]
      )
    }))

  it.effect("can be called again", () =>
    Effect.gen(function*() {
      const { takeAll, transport } = yield* makeOutbound()
      yield* transport.send(frame("1"))
      const both = yield* Effect.forkChild(Effect.all([transport.end, transport.end], { concurrency: 2 }))
      yield* settled
      assert.isUndefined(both.pollUnsafe())
      yield* takeAll
      assert.deepStrictEqual([both.pollUnsafe(), yield* polled(transport.end)], [
        Exit.succeed([undefined, undefined]),
        undefined
      ])
    }))

  it.effect("returns when the output fails meanwhile", () =>
    Effect.gen(function*() {
      const { fail, transport } = yield* makeOutbound()
      yield* transport.send(frame("1"))
      const ending = yield* Effect.forkChild(transport.end)
      yield* fail({ code: "EPIPE" })
      assert.deepStrictEqual([ending.pollUnsafe(), yield* polled(transport.closed)], [
        Exit.void,
        new Transport.OutputClosed({ code: "EPIPE" })
      ])
    }))

  it.effect("goes on reading", () =>
    Effect.gen(function*() {
      const transport = yield* makeInbound(Stream.make(bytes("1\n")))
      yield* transport.end
      assert.deepStrictEqual((yield* Stream.runCollect(transport.incoming)).map(seen), [line("1")])
    }))
})

describe("maxSendBytes", () => {
  const MIB = 1024 * 1024

  it.effect("is 1 MiB for native frames, without their length, and a larger frame costs nothing else", () =>
    Effect.gen(function*() {
      const { takeAll, transport } = yield* makeOutbound({ framing: "native" })
      yield* takeAll
      const native = (size: number) => Framing.frame(new Uint8Array(size), "native")
      assert.deepStrictEqual(
        [
          transport.maxSendBytes,
          yield* reasonOf(transport.send(native(MIB))),
          yield* reasonOf(transport.send(native(MIB + 1))),
          yield* reasonOf(transport.send(native(1)))
        ],
        [MIB, undefined, new Transport.FrameTooLarge({ size: MIB + 1, limit: MIB }), undefined]
      )
      assert.strictEqual(yield* polled(transport.closed), "suspended")
    }))

  it.effect("does not exist for the other framings", () =>
    Effect.gen(function*() {
      for (const framing of ["line", "content-length", "auto"] as const) {
        const { takeAll, transport } = yield* makeOutbound({ framing })
        yield* takeAll
        assert.deepStrictEqual([transport.maxSendBytes, yield* reasonOf(transport.send(sized(2 * MIB)))], [
          Infinity,
          undefined
        ])
      }
    }))

  it.effect("can be set", () =>
    Effect.gen(function*() {
      const { pieces, takeAll, transport } = yield* makeOutbound({ maxSendBytes: 4 })
      yield* takeAll
      const error = yield* Effect.flip(transport.send(frame("12345")))
      yield* transport.send(frame("1234"))
      yield* settled
      assert.deepStrictEqual([error.message, pieces], [
        "the frame has 5 bytes, this connection sends at most 4",
        ["1234\n"]
      ])
    }))
})

describe("a scope that is closed", () => {
  it.effect("leaves no one waiting", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { pieces, transport } = yield* Scope.provide(makeOutbound({ maxQueuedBytes: 4 }), scope)
      yield* transport.send(sized(4))
      const waiters: ReadonlyArray<Effect.Effect<unknown, Transport.TransportError>> = [
        transport.send(sized(4)),
        transport.end,
        transport.decongested,
        transport.closed,
        transport.outputClosed
      ]
      const waiting = yield* Effect.forEach(waiters, (waiter) => Effect.forkChild(waiter))
      yield* settled
      assert.deepStrictEqual(waiting.map((fiber) => fiber.pollUnsafe()), new Array<undefined>(5).fill(undefined))
      yield* Scope.close(scope, Exit.void)
      const ended = Exit.succeed(new Transport.Ended())
      const failed = Exit.fail(new Transport.TransportError({ reason: new Transport.Ended() }))
      yield* settled
      assert.deepStrictEqual(waiting.map((fiber) => fiber.pollUnsafe()), [failed, Exit.void, Exit.void, ended, ended])
      assert.deepStrictEqual([pieces, transport.sendUnsafe(frame("1"))], [[], false])
    }))

  it.effect("keeps the reason that was there before", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { fail, transport } = yield* Scope.provide(makeOutbound(), scope)
      yield* transport.send(frame("1"))
      yield* fail({ code: "EPIPE" })
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* polled(transport.closed), new Transport.OutputClosed({ code: "EPIPE" }))
    }))

  it.effect("is interruption for an output that takes nothing", () =>
    Effect.gen(function*() {
      let interrupted = false
      const scope = yield* Scope.make()
      const transport = yield* Scope.provide(
        Transport.make({
          input: Stream.never,
          output: Sink.forEach(() =>
            Effect.onInterrupt(Effect.never, () =>
              Effect.sync(() => {
                interrupted = true
              }))
          )
        }),
        scope
      )
      yield* transport.send(frame("1"))
      yield* settled
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(interrupted)
    }))
})

describe("makePair", () => {
  const collect = (transport: Transport.Transport["Service"]) => Effect.forkChild(Stream.runCollect(transport.incoming))

  it.effect("carries frames both ways, in order", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair()
      const atLeft = yield* collect(left)
      const atRight = yield* collect(right)
      yield* left.send(frame("1"))
      yield* right.send(Framing.frameOfText("a", "content-length"))
      yield* left.send(frame("2"))
      yield* Effect.all([left.end, right.end], { concurrency: 2 })
      assert.deepStrictEqual(
        [(yield* Fiber.join(atLeft)).map(seen), (yield* Fiber.join(atRight)).map(seen)],
        [[block("a")], [line("1"), line("2")]]
      )
    }))

  it.effect("makes the end of one side the input end of the other, and leaves the other direction open", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair()
      const atLeft = yield* collect(left)
      const atRight = yield* collect(right)
      yield* left.send(frame("1"))
      yield* left.end
      assert.deepStrictEqual((yield* Fiber.join(atRight)).map(seen), [line("1")])
      assert.deepStrictEqual(
        [yield* polled(right.closed), yield* polled(left.outputClosed), yield* polled(left.closed)],
        [new Transport.InputEnded(), new Transport.Ended(), "suspended"]
      )
      yield* right.send(frame("2"))
      yield* right.end
      assert.deepStrictEqual((yield* Fiber.join(atLeft)).map(seen), [line("2")])
    }))

  it.effect("gives each side its own options", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair({
        left: { framing: "native" },
        right: { framing: "native", maxFrameBytes: 4, maxSendBytes: 2 }
      })
      const atRight = yield* collect(right)
      yield* left.send(Framing.frameOfText("12345", "native"))
      yield* left.send(Framing.frameOfText("1234", "native"))
      yield* left.end
      assert.deepStrictEqual((yield* Fiber.join(atRight)).map(seen), [
        fault("TooLarge", "native", 5, { limit: 4 }),
        { framing: "native", text: "1234" }
      ])
      assert.deepStrictEqual([left.maxSendBytes, right.maxSendBytes], [1024 * 1024, 2])
    }))

  it.effect("lets a side that does not read be felt, and drops nothing", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair({ left: { maxQueuedBytes: 8 }, capacity: 2 })
      const contents = Array.from({ length: 100 }, (_, index) => `${index}`)
      const sending = yield* Effect.forkChild(
        Effect.andThen(Effect.forEach(contents, (content) => left.send(frame(content))), left.end)
      )
      yield* settled
      yield* settled
      assert.isUndefined(sending.pollUnsafe())
      const items = yield* Stream.runCollect(right.incoming)
      assert.deepStrictEqual(items.map(seen), contents.map(line))
      yield* Fiber.join(sending)
    }))

  it.effect("carries large frames both ways at the same time", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair({
        left: { maxQueuedBytes: 1_000 },
        right: { maxQueuedBytes: 1_000 },
        capacity: 1
      })
      const large = "x".repeat(3_000_000)
      const send = (transport: Transport.Transport["Service"]) =>
        Effect.andThen(Effect.replicateEffect(transport.send(frame(large)), 3), transport.end)
      const [, , atLeft, atRight] = yield* Effect.all(
        [send(left), send(right), Stream.runCollect(left.incoming), Stream.runCollect(right.incoming)],
        { concurrency: "unbounded" }
      )
      const sizes = (items: ReadonlyArray<Framing.Item>) =>
        items.map((item) => item._tag === "Frame" ? item.bytes.length : item)
      assert.deepStrictEqual([sizes(atLeft), sizes(atRight)], [
        [3_000_000, 3_000_000, 3_000_000],
        [3_000_000, 3_000_000, 3_000_000]
      ])
    }))

  it.effect("leaves no one waiting when its scope is closed", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const [one, other] = yield* Scope.provide(
        Transport.makePair({ left: { maxQueuedBytes: 4 }, capacity: 1 }),
        scope
      )
      const reading = yield* Effect.forkChild(Effect.exit(Stream.runDrain(one.incoming)))
      const senders = yield* Effect.forEach(
        [1, 2, 3, 4, 5],
        () => Effect.forkChild(Effect.exit(one.send(sized(4))))
      )
      yield* settled
      assert.deepStrictEqual([reading.pollUnsafe(), senders.at(-1)?.pollUnsafe()], [undefined, undefined])
      yield* Scope.close(scope, Exit.void)
      yield* settled
      const left = [...senders, reading].filter((fiber) => fiber.pollUnsafe() === undefined)
      assert.deepStrictEqual([left.length, yield* polled(one.outputClosed), yield* polled(other.outputClosed)], [
        0,
        new Transport.Ended(),
        new Transport.Ended()
      ])
    }))
})

describe("describe", () => {
  it("says in words why a connection ended", () => {
    assert.deepStrictEqual(
      [
        new Transport.InputEnded(),
        new Transport.InputFailed({ cause: { code: "EISDIR" } }),
        new Transport.InputFailed({ cause: "hunter2" }),
        new Transport.OutputClosed({}),
        new Transport.OutputClosed({ code: "EPIPE" }),
        new Transport.OutputFailed({ cause: new Error("hunter2", { cause: { code: "ENOSPC" } }) }),
        new Transport.OutputStalled({ queuedBytes: 7 }),
        new Transport.Ended()
      ].map(Transport.describe),
      [
        "the other side closed its output",
        "reading failed: EISDIR",
        "reading failed: unknown error",
        "the other side does not read any more",
        "the other side does not read any more (EPIPE)",
        "writing failed: ENOSPC",
        "the other side took nothing for too long, 7 bytes wait for it",
        "this side ended the connection"
      ]
    )
  })

  it("is the message of the error", () => {
    const reason = new Transport.OutputClosed({ code: "EPIPE" })
    assert.strictEqual(new Transport.TransportError({ reason }).message, Transport.describe(reason))
  })
})

/**
 * A connection on which something comes that is not JSON-RPC: how much of it is passed over before the first message.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { connect as connectPeer, failure } from "./utils/peer.ts"

const KIB = 1_024
const LIMIT = 64 * KIB

const connect = (options?: Peer.Options & { readonly transport?: Transport.Options }) =>
  connectPeer({ ownFraming: "line", onBadInput: "count", transport: { framing: "line" }, ...options })

const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

const notJsonRpc = (size: number, sample: string) =>
  new Transport.TransportError({ reason: new Transport.NotJsonRpc({ size, sample }) })
const closed = (method: string, reason: Transport.TransportError) =>
  new Peer.PeerError({ reason: new Peer.Closed({ method, reason }) })

/** Lines of `size` bytes in all, their newlines aside. */
const junk = (size: number, line = "usage: cat [FILE]".padEnd(KIB, ".")) =>
  `${line}\n`.repeat(Math.floor(size / line.length)) +
  (size % line.length === 0 ? "" : `${"-".repeat(size % line.length)}\n`)
const sample = "usage: cat [FILE]".padEnd(64, ".")

const lines = (...messages: ReadonlyArray<unknown>) =>
  messages.map((message) => `${JSON.stringify(message)}\n`).join("")

describe("a first message that is too large", () => {
  it.effect("fails the call that it answers, and no other", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { framing: "line", maxFrameBytes: 2 * LIMIT } })
      const large = yield* start(peer.peer.call("large"))
      const small = yield* start(peer.peer.call("small"))
      yield* peer.feed(lines({ jsonrpc: "2.0", id: 1, result: "x".repeat(2 * LIMIT) }))
      const error = yield* Effect.flip(Effect.flatMap(Fiber.join(large), Effect.fromResult))
      assert.strictEqual(error._tag === "PeerError" && error.reason._tag, "DecodeFailure")
      yield* peer.feed(lines({ jsonrpc: "2.0", id: 2, result: "small" }))
      assert.deepStrictEqual(yield* Fiber.join(small), Result.succeed("small"))
    }))
})

describe("64 KiB without a message", () => {
  it.effect("fail the calls that wait, and those to come", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const first = yield* start(peer.peer.call("first"))
      const second = yield* start(peer.peer.call("second", undefined, { timeout: "Infinity" }))
      yield* peer.feed(junk(LIMIT))
      const error = notJsonRpc(LIMIT, sample)
      assert.deepStrictEqual(
        [yield* Fiber.join(first), yield* Fiber.join(second), yield* Effect.result(peer.peer.call("later"))],
        [
          Result.fail(closed("first", error)),
          Result.fail(closed("second", error)),
          Result.fail(closed("later", error))
        ]
      )
      assert.strictEqual(
        closed("first", error).message,
        `first cannot be settled: no JSON-RPC in 65536 bytes, which begin with "${sample}": wrong command, or wrong framing?`
      )
    }))

  it.effect("end the input and the connection with that error, and fail the subscribers", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe()
      yield* peer.feed(junk(LIMIT))
      const error = notJsonRpc(LIMIT, sample)
      assert.deepStrictEqual(yield* Effect.result(peer.peer.inputEnded), Result.fail(error))
      assert.deepStrictEqual(yield* peer.peer.closed, error.reason)
      assert.deepStrictEqual(
        yield* Effect.result(Stream.runDrain(stream)),
        Result.fail(closed("subscribe", error))
      )
    }))

  it.effect("are counted over chunks and lines of any size, newlines aside", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(junk(LIMIT - 1, "warning: x"), [1_000])
      yield* peer.settled
      assert.isUndefined(call.pollUnsafe())
      yield* peer.feed("!\n")
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(closed("m", notJsonRpc(LIMIT, "warning: x")))
      )
    }))

  it.effect("may be one line, of which the first 64 bytes are shown", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(`${"é\u0007".repeat(LIMIT)}\n`)
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(closed("m", notJsonRpc(LIMIT * 3, `${"é·".repeat(21)}·`)))
      )
    }))

  it.effect("may be JSON that is no JSON-RPC, whose start is shown too", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      const line = JSON.stringify({ level: "info", msg: "listening" })
      const count = Math.ceil(LIMIT / line.length)
      yield* peer.feed(`${line}\n`.repeat(count))
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(closed("m", notJsonRpc(count * line.length, line)))
      )
    }))

  it.effect("may be bytes that are not UTF-8", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(new Uint8Array(LIMIT + 1).fill(0xff).fill(0x0a, LIMIT))
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(closed("m", notJsonRpc(LIMIT, "·".repeat(64))))
      )
    }))

  it.effect("may be text where headers should stand", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined, transport: { framing: "content-length" } })
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(junk(LIMIT, "no such file ".padEnd(KIB, ".")))
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(closed("m", notJsonRpc(LIMIT, "no such file ".padEnd(64, "."))))
      )
    }))

  it.effect("may be text that looks like headers", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined, transport: { framing: "content-length" } })
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed("info: still starting\n".repeat(5_000))
      yield* peer.settled
      const outcome = yield* Fiber.join(call)
      const error = Result.isFailure(outcome) && outcome.failure._tag === "PeerError" ? outcome.failure : undefined
      assert.strictEqual(error?.reason._tag === "Closed" ? error.reason.reason.reason._tag : undefined, "NotJsonRpc")
    }))

  it.effect("may be messages of the other framing, which are not shown", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined, transport: { framing: "content-length" } })
      const call = yield* start(peer.peer.call("m"))
      const line = JSON.stringify({ jsonrpc: "2.0", id: 1, result: "secret" })
      const count = Math.ceil(LIMIT / line.length)
      yield* peer.feed(`${line}\n`.repeat(count))
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(closed("m", notJsonRpc(count * line.length, "")))
      )
    }))

  it.effect("fail a call that still waits for the framing", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined, transport: { framing: "auto" } })
      const call = yield* start(peer.peer.call("m"))
      const note = yield* start(peer.peer.notify("n"))
      yield* peer.feed(junk(LIMIT))
      const error = notJsonRpc(LIMIT, sample)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", error)))
      assert.deepStrictEqual(yield* Fiber.join(note), Result.fail(closed("n", error)))
      yield* peer.expectSent()
    }))

  it.effect("are another number where maxNoise says so", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxNoise: 10 })
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed("123456789\n")
      yield* peer.settled
      assert.isUndefined(call.pollUnsafe())
      yield* peer.feed("01\n")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", notJsonRpc(11, "123456789"))))
    }))
})

describe("less than that", () => {
  it.effect("is counted, and the call gets its answer", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(junk(LIMIT - KIB) + lines({ jsonrpc: "2.0", id: 1, result: "r" }))
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
      assert.deepStrictEqual(yield* peer.peer.stats, {
        messages: 1,
        badInput: 63,
        unanswered: 63,
        noReplies: 0,
        strayResponses: 0
      })
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "m" })
    }))

  it.effect("does not end a connection on which a message came, however much follows", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* peer.feed(junk(LIMIT - KIB) + lines({ jsonrpc: "2.0", method: "hello" }) + junk(10 * LIMIT))
      yield* peer.settled
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("is what comes before a message in the same burst, be it more", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(`${"-".repeat(2 * LIMIT)}\n${lines({ jsonrpc: "2.0", id: 1, result: "r" })}`)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("may be followed by a first message that is larger than 64 KiB", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      const text = "x".repeat(2 * LIMIT)
      yield* peer.feed(junk(LIMIT - KIB) + lines({ jsonrpc: "2.0", id: 1, result: text }), [4_000])
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed(text))
    }))

  it.effect("is what a batch is with one message in it", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxNoise: 10 })
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(lines([{ no: "message" }, { jsonrpc: "2.0", id: 1, result: "r" }]))
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("is what a response is that belongs to no call", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxNoise: 10 })
      yield* peer.receive({ id: 77, result: "r" })
      yield* peer.feed(junk(KIB))
      yield* peer.settled
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))
})

describe("a peer that answers bad input", () => {
  it.effect("passes over any number of bytes without a message", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ onBadInput: "reply" })
      yield* peer.feed(junk(20 * LIMIT, "-".repeat(LIMIT)))
      yield* peer.settled
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("does so too where a function says with what", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ onBadInput: () => undefined })
      yield* peer.feed(junk(2 * LIMIT))
      yield* peer.settled
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("fails where maxNoise says so, having answered", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ onBadInput: "reply", maxNoise: 10 })
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed("not a message\n")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", notJsonRpc(13, "not a message"))))
      yield* peer.expectSent(
        { jsonrpc: "2.0", id: 1, method: "m" },
        failure(null, -32_700, "Parse error: the frame is not valid JSON")
      )
    }))
})

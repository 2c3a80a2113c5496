/**
 * The calling side of a peer: every call settles once, by an answer, its deadline, the end of the connection or the
 * interruption of its caller.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Framing from "effect-stdio/Framing"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer, success } from "./utils/peer.ts"

const request = (id: JsonRpc.Id, method: string) => ({ jsonrpc: "2.0", id, method })

const timeout = (method: string) => new Peer.PeerError({ reason: new Peer.Timeout({ method }) })
const closed = (method: string, reason: Transport.CloseReason) =>
  new Peer.PeerError({ reason: new Peer.Closed({ method, reason: new Transport.TransportError({ reason }) }) })
const unreadable = (method: string, detail: string) =>
  new Peer.PeerError({ reason: new Peer.DecodeFailure({ method, detail }) })

const connect = <R = never>(options?: Peer.Options<R> & { readonly transport?: Transport.Options }) =>
  connectPeer<R>({ ownFraming: "line", ...options })

/** Starts a call, and returns how it settles. */
const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

describe("a call", () => {
  it.effect("returns the result of its response", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("sum", { a: 1, b: 2 }))
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "sum", params: { a: 1, b: 2 } })
      yield* peer.receive({ id: 1, result: { sum: 3 } })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed({ sum: 3 }))
    }))

  it.effect.each([null, 0, false, "", []])("returns the result %j", (result) =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("get"))
      yield* peer.receive({ id: 1, result })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed(result))
    }))

  it.effect("fails with the error of its response, unchanged", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const first = yield* start(peer.peer.call("pay"))
      const second = yield* start(peer.peer.call("pay"))
      yield* peer.receive(
        { id: 2, error: { code: 0, message: "" } },
        { id: 1, error: { code: -32063, message: "later", data: { retry: 1 } } }
      )
      assert.deepStrictEqual(
        [yield* Fiber.join(first), yield* Fiber.join(second)],
        [
          Result.fail(new JsonRpc.JsonRpcError({ code: -32063, message: "later", data: { retry: 1 } })),
          Result.fail(new JsonRpc.JsonRpcError({ code: 0, message: "" }))
        ]
      )
    }))

  it.effect("takes an id of its own, and has no params where none are given", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* start(peer.peer.call("a"))
      yield* start(peer.peer.call("b", []))
      yield* peer.receive({ id: 1, result: 1 })
      yield* start(peer.peer.call("c"))
      yield* peer.expectSent(request(1, "a"), { ...request(2, "b"), params: [] }, request(3, "c"))
    }))

  it.effect("gets its own response, in whatever order they come", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const calls = yield* Effect.forEach([1, 2, 3, 4], (n) => start(peer.peer.call(`m${n}`)))
      yield* peer.receive(...[3, 1, 4, 2].map((id) => ({ id, result: `r${id}` })))
      assert.deepStrictEqual(yield* Fiber.joinAll(calls), [1, 2, 3, 4].map((n) => Result.succeed(`r${n}`)))
    }))

  it.effect("may be answered before its request has been handed over", () =>
    Effect.gen(function*() {
      const input = yield* Queue.unbounded<Framing.Frame, Cause.Done>()
      const wire = yield* TestKit.make()
      const peer = yield* Peer.make({
        ...wire.transport,
        incoming: Stream.fromQueue(input),
        // the answer is read while `send` still runs
        trySendTextUnsafe: () => false,
        trySendUnsafe: () => false,
        send: () =>
          Effect.andThen(
            Queue.offer(input, Framing.frameOfText(JSON.stringify(success(1, "early")), "line")),
            wire.settled
          )
      }, { ownFraming: "line" })
      assert.deepStrictEqual(yield* peer.call("m"), "early")
      assert.deepStrictEqual(yield* peer.stats, {
        messages: 1,
        badInput: 0,
        unanswered: 0,
        noReplies: 0,
        strayResponses: 0
      })
    }))

  it.effect("is one of our requests only: an id may be in flight in both directions", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "theirs", () => Effect.as(Effect.sleep("1 second"), "to them"))
      const peer = yield* connect({ router })
      const call = yield* start(peer.peer.call("ours"))
      yield* peer.receive({ id: 1, method: "theirs" }, { id: 1, result: "to us" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("to us"))
      yield* TestClock.adjust("1 second")
      yield* peer.expectSent(request(1, "ours"), success(1, "to them"))
    }))

  it.effect("is not answered by a response whose id has another type", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: "1", result: "text" })
      yield* peer.settled
      assert.isUndefined(call.pollUnsafe())
      yield* peer.receive({ id: 1, result: "number" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("number"))
      assert.strictEqual((yield* peer.peer.stats).strayResponses, 1)
    }))

  it.effect.each(["1.0", "1e0", "10e-1", "1"])(
    "is answered by a response with the id %s",
    (id) =>
      Effect.gen(function*() {
        const peer = yield* connect()
        const call = yield* start(peer.peer.call("m"))
        yield* peer.feed(`{"jsonrpc":"2.0","id":${id},"result":"r"}\n`)
        assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
      })
  )

  it.effect("takes the first of two answers, and counts the second", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "first" }, { id: 1, result: "second" }, {
        id: 1,
        error: { code: 1, message: "third" }
      })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("first"))
      yield* peer.settled
      assert.strictEqual((yield* peer.peer.stats).strayResponses, 2)
    }))

  it.effect("fails when it is larger than may be sent, and no other does", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { maxSendBytes: 100 } })
      const large = yield* Effect.result(peer.peer.call("large", { text: "x".repeat(100) }))
      const small = yield* start(peer.peer.call("small"))
      yield* peer.expectSent(request(2, "small"))
      yield* peer.receive({ id: 2, result: "fine" })
      const size = JSON.stringify({ ...request(1, "large"), params: { text: "x".repeat(100) } }).length
      const reason = new Transport.FrameTooLarge({ size, limit: 100 })
      assert.deepStrictEqual(
        large,
        Result.fail(
          new Peer.PeerError({
            reason: new Peer.Closed({ method: "large", reason: new Transport.TransportError({ reason }) })
          })
        )
      )
      assert.deepStrictEqual(yield* Fiber.join(small), Result.succeed("fine"))
    }))

  it.effect("dies of params that cannot be written, and holds nothing after that", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const exit = yield* Effect.exit(peer.peer.call("m", { amount: 1n }))
      assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
      assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
      yield* peer.expectSent()
    }))
})

describe("the deadline", () => {
  it.effect("is 30 seconds", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(call.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(timeout("m")))
      assert.strictEqual(timeout("m").message, "m was not settled in time")
    }))

  it.effect("is the peer's, or the call's own", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ callTimeout: "5 seconds" })
      const first = yield* start(peer.peer.call("peer's"))
      const second = yield* start(peer.peer.call("own", undefined, { timeout: "1 second" }))
      yield* TestClock.adjust("1 second")
      assert.isUndefined(first.pollUnsafe())
      assert.deepStrictEqual(yield* Fiber.join(second), Result.fail(timeout("own")))
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* Fiber.join(first), Result.fail(timeout("peer's")))
    }))

  it.effect.each(["Infinity", 0] as const)(
    "is off where it is %s, for a call or for all",
    (timeout) =>
      Effect.gen(function*() {
        const first = yield* connect()
        const second = yield* connect({ callTimeout: timeout })
        const calls = [
          yield* start(first.peer.call("m", undefined, { timeout })),
          yield* start(second.peer.call("m"))
        ]
        yield* TestClock.adjust("30 days")
        yield* first.receive({ id: 1, result: "at last" })
        yield* second.receive({ id: 1, result: "at last" })
        assert.deepStrictEqual(yield* Fiber.joinAll(calls), [Result.succeed("at last"), Result.succeed("at last")])
      })
  )

  it.effect("counts a late answer as a stray one", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* TestClock.adjust("30 seconds")
      yield* peer.receive({ id: 1, result: "late" })
      yield* peer.settled
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(timeout("m")))
      assert.strictEqual((yield* peer.peer.stats).strayResponses, 1)
    }))

  it.effect("holds while the output takes nothing, and the request is not sent afterwards", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { maxQueuedBytes: 64 }, cancellation: Cancellation.mcp })
      yield* peer.stall
      const filler = { text: "x".repeat(100) }
      yield* start(peer.peer.call("fills", filler, { timeout: "Infinity" }))
      yield* peer.settled
      const call = yield* start(peer.peer.call("waits"))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(timeout("waits")))
      yield* peer.resume
      yield* peer.expectSent({ ...request(1, "fills"), params: filler })
    }))
})

describe("the cap on calls in flight", () => {
  it.effect("makes more calls wait, and sends them as others settle", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxCallsInFlight: 2 })
      const calls = yield* Effect.forEach(["a", "b", "c"], (method) => start(peer.peer.call(method)))
      yield* peer.expectSent(request(1, "a"), request(2, "b"))
      yield* peer.receive({ id: 2, result: 2 })
      yield* peer.expectSent(request(1, "a"), request(2, "b"), request(3, "c"))
      yield* peer.receive({ id: 3, result: 3 }, { id: 1, result: 1 })
      assert.deepStrictEqual(yield* Fiber.joinAll(calls), [Result.succeed(1), Result.succeed(2), Result.succeed(3)])
    }))

  it.effect("is 1,024", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* Effect.forEach(Array.from({ length: 1_030 }), () => start(peer.peer.call("m")))
      yield* peer.settled
      assert.strictEqual((yield* peer.sent).length, 1_024)
      assert.strictEqual((yield* peer.peer.inFlight).calls.length, 1_024)
    }))

  it.effect("does not stop the deadline of a call that waits", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxCallsInFlight: 1 })
      yield* start(peer.peer.call("first", undefined, { timeout: "1 minute" }))
      const second = yield* start(peer.peer.call("second"))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* Fiber.join(second), Result.fail(timeout("second")))
      yield* peer.receive({ id: 1, result: 1 })
      yield* peer.expectSent(request(1, "first"))
    }))

  it.effect("does not count calls without a deadline", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxCallsInFlight: 1 })
      yield* start(peer.peer.call("listen", undefined, { timeout: "Infinity" }))
      yield* start(peer.peer.call("elicit", undefined, { timeout: "Infinity" }))
      yield* start(peer.peer.call("quick"))
      yield* peer.expectSent(request(1, "listen"), request(2, "elicit"), request(3, "quick"))
    }))
})

describe("the end of the connection", () => {
  it.effect("fails the calls that wait and those to come, at once, when the input ends", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ maxCallsInFlight: 1 })
      const waits = yield* start(peer.peer.call("waits"))
      const queued = yield* start(peer.peer.call("queued"))
      const endless = yield* start(peer.peer.call("endless", undefined, { timeout: "Infinity" }))
      yield* peer.endInput
      const reason = new Transport.InputEnded()
      assert.deepStrictEqual(yield* Fiber.joinAll([waits, queued, endless]), [
        Result.fail(closed("waits", reason)),
        Result.fail(closed("queued", reason)),
        Result.fail(closed("endless", reason))
      ])
      assert.deepStrictEqual(yield* Effect.result(peer.peer.call("later")), Result.fail(closed("later", reason)))
      assert.strictEqual(closed("m", reason).message, "m cannot be settled: the other side closed its output")
      yield* peer.expectSent(request(1, "waits"), request(2, "endless"))
    }))

  it.effect("fails them when the output is closed", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const first = yield* start(peer.peer.call("first"))
      yield* peer.settled
      yield* peer.breakOutput("EPIPE")
      const second = yield* start(peer.peer.call("second"))
      const reason = new Transport.OutputClosed({ code: "EPIPE" })
      assert.deepStrictEqual(yield* Fiber.joinAll([first, second]), [
        Result.fail(closed("first", reason)),
        Result.fail(closed("second", reason))
      ])
      assert.deepStrictEqual(yield* Effect.result(peer.peer.call("later")), Result.fail(closed("later", reason)))
      assert.deepStrictEqual(yield* Effect.result(peer.peer.notify("note")), Result.fail(closed("note", reason)))
    }))

  it.effect("fails them with what went wrong when reading fails", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.failInput("EBADF")
      const reason = new Transport.InputFailed({ cause: { code: "EBADF" } })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", reason)))
      assert.deepStrictEqual(
        yield* Effect.result(peer.peer.inputEnded),
        Result.fail(new Transport.TransportError({ reason }))
      )
    }))

  it.effect("fails them when the scope of the peer closes", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      const scope = yield* Scope.make()
      const peer = yield* Peer.make(wire.transport, { ownFraming: "line" }).pipe(Scope.provide(scope))
      const call = yield* start(peer.call("m"))
      yield* wire.settled
      yield* Scope.close(scope, Exit.void)
      const reason = new Transport.Ended()
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", reason)))
      assert.deepStrictEqual(yield* Effect.result(peer.call("later")), Result.fail(closed("later", reason)))
    }))

  it.effect("leaves those waiting whose answer may still come when this side ends its output, and fails new ones", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.settled
      yield* peer.transport.end
      const reason = new Transport.Ended()
      assert.deepStrictEqual(yield* Effect.result(peer.peer.call("later")), Result.fail(closed("later", reason)))
      yield* peer.receive({ id: 1, result: "after all" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("after all"))
    }))

  it.effect("comes after the answers that arrived before it", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "in time" })
      yield* peer.endInput
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("in time"))
    }))

  it.effect("fails calls and notifications that still wait for the framing", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined })
      const call = yield* start(peer.peer.call("m", undefined, { timeout: "Infinity" }))
      const note = yield* start(peer.peer.notify("n"))
      yield* peer.endInput
      yield* peer.settled
      const reason = new Transport.InputEnded()
      assert.deepStrictEqual([call.pollUnsafe(), note.pollUnsafe()], [
        Exit.succeed(Result.fail(closed("m", reason))),
        Exit.succeed(Result.fail(closed("n", reason)))
      ])
    }))

  it.effect("fails a call at once that waits for room in the output", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { maxQueuedBytes: 64 } })
      yield* peer.stall
      yield* start(peer.peer.call("fills", { text: "x".repeat(100) }))
      yield* peer.settled
      const call = yield* start(peer.peer.call("waits"))
      yield* peer.endInput
      yield* peer.settled
      assert.deepStrictEqual(
        call.pollUnsafe(),
        Exit.succeed(Result.fail(closed("waits", new Transport.InputEnded())))
      )
    }))
})

describe("a response that cannot be read", () => {
  const invalidResponse =
    "Invalid response: it must have either a result or an error with an integer code and a message"

  it.effect.each<readonly [name: string, text: string, detail: string]>([
    [
      "has neither a result nor an error",
      "{\"jsonrpc\":\"2.0\",\"id\":1}",
      "Invalid request: not a JSON-RPC message (an object with a method, a result or an error)"
    ],
    [
      "has both",
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
      invalidResponse
    ],
    ["has an error without a code", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"x\"}}", invalidResponse],
    [
      "has an error with a text as code",
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"x\"}}",
      invalidResponse
    ],
    ["has an error without a message", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", invalidResponse],
    ["has an error that is text", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}", invalidResponse],
    ["has an error of null and no result", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}", invalidResponse],
    ["has no version", "{\"id\":1,\"result\":1}", "Invalid request: jsonrpc must be \"2.0\""],
    [
      "is too long",
      `{"jsonrpc":"2.0","id":1,"result":"${"x".repeat(300)}"}`,
      "frame too large: more than the limit of 200 bytes"
    ]
  ])("fails its call when it %s", ([_, text, detail]) =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { maxFrameBytes: 200 } })
      const call = yield* start(peer.peer.call("first"))
      const other = yield* start(peer.peer.call("second"))
      yield* peer.feed(`${text}\n`)
      yield* peer.receive({ id: 2, result: "fine" })
      assert.deepStrictEqual(yield* Fiber.joinAll([call, other]), [
        Result.fail(unreadable("first", detail)),
        Result.succeed("fine")
      ])
      // it is not answered either
      yield* peer.expectSent(request(1, "first"), request(2, "second"))
    }))

  it.effect("fails its call when it is not UTF-8", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      const text = new TextEncoder().encode("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"?\"}\n")
      yield* peer.feed(text.map((byte) => byte === 0x3f ? 0xff : byte))
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(unreadable("m", "the frame is not valid UTF-8")))
    }))

  it.effect("fails its call where bad input is only counted, too", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ onBadInput: "count" })
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, error: {} })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(unreadable("m", invalidResponse)))
    }))

  it.effect.each([
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"r\",\"error\":null}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null,\"result\":\"r\",\"extra\":[1]}"
  ])("is not one that has an error of null beside its result: %s", (text) =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.feed(`${text}\n`)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("is not one that has a result of null beside its error", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: null, error: { code: 1, message: "no" } })
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(new JsonRpc.JsonRpcError({ code: 1, message: "no" }))
      )
    }))
})

describe("the framing of what we start", () => {
  const header = (text: string) => Framing.encode([Framing.frameOfText(text, "content-length")])
  const note = "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}"

  it.effect("is that of the first valid message, which calls and notifications wait for", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined })
      yield* start(peer.peer.call("m"))
      yield* start(peer.peer.notify("n"))
      yield* peer.feed("junk\n")
      yield* peer.settled
      const before = (yield* peer.sent).length
      yield* peer.feed(header(note))
      yield* peer.settled
      const text = (yield* peer.sentText).split("\n").slice(1).join("\n")
      assert.strictEqual(before, 1)
      assert.strictEqual(
        text,
        [request(1, "m"), { jsonrpc: "2.0", method: "n" }].map((message) => JSON.stringify(message))
          .map((message) => `Content-Length: ${message.length}\r\n\r\n${message}`).join("")
      )
    }))

  it.effect("does not change with later messages", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined })
      yield* peer.feed(`${note}\n`)
      yield* peer.feed(header(note))
      yield* peer.settled
      yield* start(peer.peer.call("m"))
      yield* peer.settled
      assert.strictEqual(yield* peer.sentText, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n")
    }))

  it.effect("is waited for no longer than the deadline", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: undefined })
      const call = yield* start(peer.peer.call("m"))
      const notification = yield* start(peer.peer.notify("n"))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(timeout("m")))
      assert.deepStrictEqual(yield* Fiber.join(notification), Result.fail(timeout("n")))
      yield* peer.feed(`${note}\n`)
      yield* peer.expectSent()
    }))

  it.effect("is known at once where the transport has one, or where it is set", () =>
    Effect.gen(function*() {
      const native = yield* connect({ ownFraming: undefined, transport: { framing: "native" } })
      yield* start(native.peer.call("m"))
      yield* native.expectSent(request(1, "m"))
      const set = yield* connect({ ownFraming: "content-length" })
      yield* start(set.peer.call("m"))
      yield* set.settled
      assert.strictEqual(
        yield* set.sentText,
        "Content-Length: 37\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"
      )
    }))
})

describe("a handler", () => {
  it.effect("calls and notifies the one who asked", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "whoami", () =>
        Effect.gen(function*() {
          const caller = yield* Peer.Caller
          yield* Effect.orDie(caller.notify("progress", { done: 0 }))
          const name = yield* Effect.orDie(caller.call("client/name"))
          return { name }
        }))
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "whoami" })
      const asked = [{ jsonrpc: "2.0", method: "progress", params: { done: 0 } }, request(1, "client/name")]
      yield* peer.expectSent(...asked)
      yield* peer.receive({ id: 1, result: "Ada" })
      yield* peer.expectSent(...asked, success(1, { name: "Ada" }))
    }))

  it.effect("waits for its client alone when that is mute", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("roots", () =>
          Effect.gen(function*() {
            const caller = yield* Peer.Caller
            return yield* caller.call("roots/list").pipe(
              Effect.catchReason("PeerError", "Timeout", () => Effect.succeed("no roots")),
              Effect.orDie
            )
          })),
        Router.rawRequest("ping", () => Effect.succeed("pong"))
      )
      const peer = yield* connect({ router })
      yield* peer.receive({ id: 1, method: "roots" }, { id: 2, method: "ping" })
      yield* peer.expectSent(request(1, "roots/list"), success(2, "pong"))
      yield* TestClock.adjust("30 seconds")
      yield* peer.expectSent(request(1, "roots/list"), success(2, "pong"), success(1, "no roots"))
    }))

  it.effect("calls while it is called, many levels deep", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair({ left: { framing: "line" }, right: { framing: "line" } })
      const router = Router.rawRequest(Router.empty, "down", (params) =>
        Effect.gen(function*() {
          const [level] = params as readonly [number]
          if (level === 0) return ["bottom"]
          const caller = yield* Peer.Caller
          const below = yield* Effect.orDie(caller.call("down", [level - 1]))
          return [level, ...below as ReadonlyArray<unknown>]
        }))
      // one request at a time: a call in a handler needs no second place on its own side
      yield* Peer.make(right, { router })
      const client = yield* Peer.make(left, { router })
      assert.deepStrictEqual(yield* client.call("down", [5]), [5, 4, 3, 2, 1, "bottom"])
    }))

  it.effect("reaches the connection it was asked on, where there are several", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "whoami", () =>
        Effect.gen(function*() {
          const caller = yield* Peer.Caller
          return yield* Effect.orDie(caller.call("name"))
        }))
      const first = yield* connect({ router })
      const second = yield* connect({ router })
      yield* second.receive({ id: 1, method: "whoami" })
      yield* second.expectSent(request(1, "name"))
      yield* first.expectSent()
    }))

  it.effect("cancels the call it waits for when it is cancelled itself", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "ask", () =>
        Effect.gen(function*() {
          const caller = yield* Peer.Caller
          return yield* Effect.orDie(caller.call("name"))
        }))
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: "q", method: "ask" })
      yield* peer.settled
      yield* peer.receive({ method: "notifications/cancelled", params: { requestId: "q" } })
      yield* peer.expectSent(request(1, "name"), {
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: 1 }
      })
    }))
})

describe("a notification of ours", () => {
  it.effect("leaves in the order of sending, with params or without", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* peer.peer.notify("a")
      yield* peer.peer.notify("b", { n: 1 })
      yield* peer.peer.notify("c", [1, 2])
      yield* peer.expectSent(
        { jsonrpc: "2.0", method: "a" },
        { jsonrpc: "2.0", method: "b", params: { n: 1 } },
        { jsonrpc: "2.0", method: "c", params: [1, 2] }
      )
    }))

  it.effect("waits while the other side does not read, and fails after the time of a call", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { maxQueuedBytes: 64 } })
      yield* peer.stall
      yield* peer.peer.notify("fills", { text: "x".repeat(100) })
      const note = yield* start(peer.peer.notify("waits"))
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(note.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(note), Result.fail(timeout("waits")))
    }))

  it.effect.each(["Infinity", 0] as const)(
    "waits as long as it takes where the time of a call is %s",
    (callTimeout) =>
      Effect.gen(function*() {
        const peer = yield* connect({ transport: { maxQueuedBytes: 64, stallTimeout: 0 }, callTimeout })
        yield* peer.stall
        yield* peer.peer.notify("fills", { text: "x".repeat(100) })
        const note = yield* start(peer.peer.notify("waits"))
        yield* TestClock.adjust("1 day")
        assert.isUndefined(note.pollUnsafe())
        yield* peer.resume
        assert.deepStrictEqual(yield* Fiber.join(note), Result.succeed(undefined))
      })
  )
})

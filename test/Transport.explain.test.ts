/**
 * The end of a connection behind which something stands that can say why, and of one that this side has ended.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"

const exited = new Transport.ProcessExited({ command: "codex", exitCode: 101, stderrTail: "thread 'main' panicked\n" })

const closed = (method: string, reason: Transport.CloseReason) =>
  new Peer.PeerError({ reason: new Peer.Closed({ method, reason: new Transport.TransportError({ reason }) }) })

const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

/** A peer over a connection that waits for the test to be explained. */
const connect = Effect.gen(function*() {
  const input = yield* Queue.unbounded<Uint8Array, Cause.Done | { readonly code: string }>()
  const broken = Deferred.makeUnsafe<never, { readonly code: string }>()
  const explanation = Deferred.makeUnsafe<Transport.CloseReason>()
  const asked: Array<Transport.CloseReason> = []
  const transport = yield* Transport.make({
    input: Stream.fromQueue(input),
    output: Sink.forEach(() =>
      Effect.suspend(() => Deferred.isDoneUnsafe(broken) ? Deferred.await(broken) : Effect.void)
    ),
    explain: (reason) => {
      asked.push(reason)
      return Deferred.await(explanation)
    }
  }, { framing: "line" })
  const peer = yield* Peer.make(transport)
  const settled = Effect.repeat(Effect.yieldNow, { times: 64 })
  return {
    transport,
    peer,
    asked,
    settled,
    receive: (message: object) =>
      Queue.offer(input, new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)),
    endInput: Queue.end(input),
    failInput: (code: string) => Queue.fail(input, { code }),
    breakOutput: (code: string) => Deferred.fail(broken, { code }),
    explain: (reason: Transport.CloseReason) => Deferred.succeed(explanation, reason)
  }
})

describe("an explanation", () => {
  it.effect("is asked for when the input ends, and given to calls, to the closed connection, and to later calls", () =>
    Effect.gen(function*() {
      const connection = yield* connect
      const call = yield* start(connection.peer.call("m"))
      yield* connection.endInput
      yield* connection.settled
      assert.deepStrictEqual(connection.asked, [new Transport.InputEnded()])
      yield* connection.explain(exited)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", exited)))
      assert.deepStrictEqual(yield* connection.transport.closed, exited)
      assert.deepStrictEqual(
        yield* Effect.result(connection.peer.call("later")),
        Result.fail(closed("later", exited))
      )
      assert.strictEqual(
        closed("m", exited).message,
        "m cannot be settled: the process codex ended with code 101; its standard error ends with:\nthread 'main' panicked"
      )
    }))

  it.effect("is asked for when the output breaks", () =>
    Effect.gen(function*() {
      const connection = yield* connect
      yield* connection.breakOutput("EPIPE")
      const call = yield* start(connection.peer.call("m"))
      yield* connection.settled
      assert.deepStrictEqual(connection.asked, [new Transport.OutputClosed({ code: "EPIPE" })])
      yield* connection.explain(exited)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", exited)))
      assert.deepStrictEqual(yield* connection.transport.outputClosed, exited)
      assert.deepStrictEqual(yield* connection.transport.closed, exited)
      assert.deepStrictEqual(
        yield* Effect.result(connection.peer.notify("later")),
        Result.fail(closed("later", exited))
      )
    }))

  it.effect("is not asked for when the output was ended by this side, or reading failed", () =>
    Effect.gen(function*() {
      const connection = yield* connect
      yield* connection.transport.end
      yield* connection.failInput("EBADF")
      yield* connection.settled
      assert.deepStrictEqual(connection.asked, [])
      assert.deepStrictEqual(
        yield* connection.transport.closed,
        new Transport.InputFailed({ cause: { code: "EBADF" } })
      )
    }))

  it.effect("closes nothing before it is there: neither calls nor the connection", () =>
    Effect.gen(function*() {
      const connection = yield* connect
      const call = yield* start(connection.peer.call("m"))
      yield* connection.breakOutput("EPIPE")
      const second = yield* start(connection.peer.call("second"))
      const ended = yield* start(connection.peer.closed)
      yield* connection.endInput
      yield* connection.settled
      assert.deepStrictEqual(
        [call.pollUnsafe(), second.pollUnsafe(), ended.pollUnsafe()],
        [undefined, undefined, undefined]
      )
      assert.isFalse(connection.transport.isOutputClosedUnsafe())
    }))

  it.effect("leaves the time for an answer that is still in the pipe", () =>
    Effect.gen(function*() {
      const connection = yield* connect
      const first = yield* start(connection.peer.call("first"))
      yield* connection.breakOutput("EPIPE")
      const second = yield* start(connection.peer.call("second"))
      yield* connection.settled
      yield* connection.receive({ id: 1, result: "last words" })
      assert.deepStrictEqual(yield* Fiber.join(first), Result.succeed("last words"))
      yield* connection.explain(exited)
      assert.deepStrictEqual(yield* Fiber.join(second), Result.fail(closed("second", exited)))
    }))

  it.effect("may be the reason as it was", () =>
    Effect.gen(function*() {
      const connection = yield* connect
      yield* connection.endInput
      yield* connection.explain(new Transport.InputEnded())
      assert.deepStrictEqual(yield* connection.peer.closed, new Transport.InputEnded())
      yield* connection.peer.inputEnded
    }))

  it.effect("that dies leaves the reason as it was", () =>
    Effect.gen(function*() {
      const explain = () => Effect.die("broken")
      const output = yield* Transport.make({ input: Stream.never, output: Sink.fail({ code: "EPIPE" }), explain })
      const input = yield* Transport.make({ input: Stream.empty, output: Sink.drain, explain })
      yield* Peer.make(input)
      assert.deepStrictEqual(
        [yield* output.outputClosed, yield* input.closed],
        [new Transport.OutputClosed({ code: "EPIPE" }), new Transport.InputEnded()]
      )
    }))

  it.effect("does not keep the connection from being closed by this side", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const connection = yield* Scope.provide(connect, scope)
      const call = yield* start(connection.peer.call("m"))
      yield* connection.breakOutput("EPIPE")
      yield* start(connection.peer.notify("n"))
      yield* connection.endInput
      yield* connection.settled
      assert.lengthOf(connection.asked, 2)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", new Transport.Ended())))
      assert.deepStrictEqual(yield* connection.transport.closed, new Transport.Ended())
    }))
})

describe("an output that this side has ended", () => {
  it.effect("leaves the input open: notifications and answers still come", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make({ framing: "line" })
      const peer = yield* Peer.make(wire.transport)
      const notes = yield* peer.subscribe()
      const call = yield* start(peer.call("m"))
      yield* wire.settled
      yield* wire.transport.end
      const ended = yield* start(peer.closed)
      yield* wire.receive({ method: "note" }, { id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(notes, 1))).map(({ method }) => method), ["note"])
      assert.isUndefined(ended.pollUnsafe())
      yield* wire.endInput
      assert.deepStrictEqual(yield* Fiber.join(ended), Result.succeed(new Transport.InputEnded()))
    }))

  it.effect("fails the calls that wait when the input ends too", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make({ framing: "line" })
      const peer = yield* Peer.make(wire.transport)
      const call = yield* start(peer.call("m"))
      yield* wire.settled
      yield* wire.transport.end
      yield* wire.endInput
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", new Transport.InputEnded())))
      assert.deepStrictEqual(
        yield* Effect.result(peer.call("later")),
        Result.fail(closed("later", new Transport.Ended()))
      )
    }))

  it.effect("fails calls at once that wait for their turn, their framing or room", () =>
    Effect.gen(function*() {
      const turn = yield* TestKit.make({ framing: "line" })
      const limited = yield* Peer.make(turn.transport, { maxCallsInFlight: 1 })
      const first = yield* start(limited.call("first"))
      const second = yield* start(limited.call("second"))
      yield* turn.settled
      yield* turn.transport.end
      yield* turn.receive({ id: 1, result: "r" })
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], [
        Result.succeed("r"),
        Result.fail(closed("second", new Transport.Ended()))
      ])
      const auto = yield* TestKit.make()
      const unknowing = yield* Peer.make(auto.transport)
      const third = yield* start(unknowing.call("third"))
      yield* auto.transport.end
      assert.deepStrictEqual(yield* Fiber.join(third), Result.fail(closed("third", new Transport.Ended())))
    }))

  it.effect("fails the calls that wait when the transport is closed, while the peer is not", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const wire = yield* Scope.provide(TestKit.make({ framing: "line" }), scope)
      const peer = yield* Peer.make(wire.transport)
      const call = yield* start(peer.call("m"))
      yield* wire.settled
      yield* wire.transport.end
      yield* wire.settled
      assert.isUndefined(call.pollUnsafe())
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", new Transport.Ended())))
    }))
})

describe("a transport of one's own", () => {
  it.effect("that never says why it ended does not keep the peer from being closed", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      const scope = yield* Scope.make()
      const peer = yield* Scope.provide(Peer.make({ ...wire.transport, incoming: Stream.empty }), scope)
      const call = yield* start(peer.call("m"))
      yield* wire.settled
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(closed("m", new Transport.Ended())))
    }))
})

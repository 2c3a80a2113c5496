/**
 * The notifications of the other side as streams, one a subscriber.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import type * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { connect as connectPeer, success } from "./utils/peer.ts"

const connect = <R = never>(options?: Peer.Options<R> & { readonly transport?: Transport.Options }) =>
  connectPeer<R>({ ownFraming: "line", ...options })

type Notifications = Stream.Stream<JsonRpc.Notification, Peer.PeerError>

/** Takes notifications while the latch is open, and collects their methods and how the stream ends. */
const listen = (stream: Notifications, latch = Latch.makeUnsafe(true)) =>
  Effect.gen(function*() {
    const heard: Array<string> = []
    const taking = Stream.runForEach(stream, ({ method }) =>
      Effect.andThen(latch.await, Effect.sync(() => heard.push(method))))
    const fiber = yield* Effect.forkScoped(Effect.result(taking), { startImmediately: true })
    return { heard, fiber, latch, end: Fiber.join(fiber) }
  })

const note = (method: string) => ({ method })
const notes = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => note(`${prefix}${index}`))
const methods = (messages: ReadonlyArray<{ readonly method: string }>) => messages.map(({ method }) => method)
const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

const lagged = (capacity: number) => new Peer.PeerError({ reason: new Peer.Lagged({ capacity }) })
const closed = (reason: Transport.TransportError["reason"]) =>
  new Peer.PeerError({
    reason: new Peer.Closed({ method: "subscribe", reason: new Transport.TransportError({ reason }) })
  })

describe("a subscriber", () => {
  it.effect("hears of all notifications, whole and in their order", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe()
      yield* peer.receive({ method: "a", params: { n: 1 } }, { method: "b" }, { method: "a", params: [2] })
      yield* peer.endInput
      assert.deepStrictEqual(
        (yield* Stream.runCollect(stream)).map(({ jsonrpc, method, params }) => ({ jsonrpc, method, params })),
        [
          { jsonrpc: "2.0", method: "a", params: { n: 1 } },
          { jsonrpc: "2.0", method: "b", params: undefined },
          { jsonrpc: "2.0", method: "a", params: [2] }
        ]
      )
    }))

  it.effect("hears of what comes after it subscribed, and of nothing before", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* peer.receive(note("before"))
      yield* peer.settled
      const stream = yield* peer.peer.subscribe()
      yield* peer.receive(note("after"))
      yield* peer.endInput
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), ["after"])
    }))

  it.effect("that subscribes before a request is sent misses nothing that its handling says", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe()
      const call = yield* start(peer.peer.call("turn/start"))
      yield* peer.receive(note("turn/started"), { id: 1, result: {} }, note("turn/completed"))
      yield* Fiber.join(call)
      assert.deepStrictEqual(methods(yield* Stream.runCollect(Stream.take(stream, 2))), [
        "turn/started",
        "turn/completed"
      ])
    }))

  it.effect("hears of the methods it names alone", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe({ methods: ["b", "c"] })
      const none = yield* peer.peer.subscribe({ methods: [] })
      yield* peer.receive(note("a"), note("b"), note("a"), note("c"))
      yield* peer.endInput
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), ["b", "c"])
      assert.deepStrictEqual(methods(yield* Stream.runCollect(none)), [])
    }))

  it.effect("hears of notifications that have a handler too, of members of batches, and of no request", () =>
    Effect.gen(function*() {
      const routed: Array<string> = []
      const peer = yield* connect({
        router: Router.rawNotification(Router.empty, "a", () =>
          Effect.sync(() => {
            routed.push("a")
          }))
      })
      const stream = yield* peer.peer.subscribe()
      yield* peer.receive(note("a"), [{ jsonrpc: "2.0", method: "b" }, { jsonrpc: "2.0", id: 1, method: "c" }])
      yield* peer.endInput
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), ["a", "b"])
      assert.deepStrictEqual(routed, ["a"])
    }))

  it.effect("hears of each beside the others, whose pace is their own", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const quick = yield* listen(yield* peer.peer.subscribe())
      const slow = yield* listen(yield* peer.peer.subscribe({ capacity: 1 }), Latch.makeUnsafe(false))
      for (const method of ["a", "b", "c"]) {
        yield* peer.receive(note(method))
        yield* peer.settled
      }
      assert.deepStrictEqual(quick.heard, ["a", "b", "c"])
      assert.deepStrictEqual(slow.heard, [])
      yield* slow.latch.open
      assert.deepStrictEqual(yield* slow.end, Result.fail(lagged(1)))
      assert.deepStrictEqual(slow.heard, ["a", "b"])
      yield* peer.receive(note("d"))
      yield* peer.settled
      assert.deepStrictEqual(quick.heard, ["a", "b", "c", "d"])
    }))

  it.effect("does not hold up responses when it is slow", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* listen(yield* peer.peer.subscribe({ capacity: 1 }), Latch.makeUnsafe(false))
      yield* listen(yield* peer.peer.subscribe({ capacity: 1, policy: "dropOldest" }), Latch.makeUnsafe(false))
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive(...notes("n", 500), { id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("may call from where it hears", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const results: Array<unknown> = []
      const stream = yield* peer.peer.subscribe()
      yield* stream.pipe(
        Stream.runForEach(({ method }) =>
          Effect.flatMap(peer.peer.call(method), (result) => Effect.sync(() => results.push(result)))
        ),
        Effect.forkScoped({ startImmediately: true })
      )
      yield* peer.receive(note("a"), note("b"))
      yield* peer.settled
      yield* peer.receive({ id: 1, result: 1 })
      yield* peer.settled
      yield* peer.receive({ id: 2, result: 2 })
      yield* peer.settled
      assert.deepStrictEqual(results, [1, 2])
    }))

  it.effect("is forgotten when its scope closes, and its stream is over", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const scope = yield* Scope.make()
      const stream = yield* Scope.provide(peer.peer.subscribe({ policy: "suspend", capacity: 1 }), scope)
      yield* peer.receive(note("a"))
      yield* peer.settled
      yield* Scope.close(scope, Exit.void)
      const call = yield* start(peer.peer.call("m"))
      // with nobody to wait for, reading goes on
      yield* peer.receive(...notes("n", 200), { id: 1, result: "r" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Stream.runDrain(stream))))
    }))
})

describe("a subscriber that lags", () => {
  it.effect("fails after 4,096 notifications that it did not take, which it still gets", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe()
      yield* peer.receive(...notes("n", 4_096))
      yield* peer.settled
      const other = yield* peer.peer.subscribe()
      yield* peer.receive(note("one too many"), note("later"))
      yield* peer.settled
      const { end, heard } = yield* listen(stream)
      assert.deepStrictEqual(yield* end, Result.fail(lagged(4_096)))
      assert.deepStrictEqual(heard, methods(notes("n", 4_096)))
      assert.strictEqual(
        lagged(4_096).message,
        "a subscriber was 4096 notifications behind: take them faster, or choose another policy"
      )
      assert.deepStrictEqual(methods(yield* Stream.runCollect(Stream.take(other, 2))), ["one too many", "later"])
    }))

  it.effect("loses what waits longest where it says so", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe({ capacity: 3, policy: "dropOldest" })
      yield* peer.receive(...notes("n", 10))
      yield* peer.endInput
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), ["n7", "n8", "n9"])
    }))

  it.effect("does not lag by what it has not asked for", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe({ capacity: 1, methods: ["a"] })
      yield* peer.receive(...notes("n", 10), note("a"))
      yield* peer.endInput
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), ["a"])
    }))
})

describe("a subscriber that suspends", () => {
  it.effect("stops the reader, so that responses and requests wait, and loses nothing", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "ping", () => Effect.succeed("pong"))
      const peer = yield* connect({ router })
      const slow = yield* listen(
        yield* peer.peer.subscribe({ capacity: 2, policy: "suspend" }),
        Latch.makeUnsafe(false)
      )
      const quick = yield* listen(yield* peer.peer.subscribe())
      const call = yield* start(peer.peer.call("m"))
      for (const message of notes("n", 6)) yield* Effect.andThen(peer.receive(message), peer.settled)
      yield* peer.receive({ id: 1, result: "r" }, { id: 7, method: "ping" })
      yield* peer.settled
      assert.isUndefined(call.pollUnsafe())
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "m" })
      yield* slow.latch.open
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "m" }, success(7, "pong"))
      yield* peer.endInput
      assert.deepStrictEqual(yield* slow.end, Result.succeed(undefined))
      assert.deepStrictEqual(slow.heard, methods(notes("n", 6)))
      yield* quick.end
      assert.deepStrictEqual(quick.heard, methods(notes("n", 6)))
    }))

  it.effect("gets more than it has room for when they come together", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe({ capacity: 1, policy: "suspend" })
      yield* peer.receive(...notes("n", 1_000))
      yield* peer.endInput
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), methods(notes("n", 1_000)))
    }))

  it.effect("lets the reader go on when its scope closes, while another still holds it", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const scope = yield* Scope.make()
      const options = { capacity: 1, policy: "suspend" } as const
      yield* Scope.provide(peer.peer.subscribe(options), scope)
      const second = yield* listen(yield* peer.peer.subscribe(options), Latch.makeUnsafe(false))
      const call = yield* start(peer.peer.call("m"))
      for (const message of notes("n", 3)) yield* Effect.andThen(peer.receive(message), peer.settled)
      yield* Scope.close(scope, Exit.void)
      for (const message of notes("n", 3)) yield* Effect.andThen(peer.receive(message), peer.settled)
      yield* peer.receive({ id: 1, result: "r" })
      yield* peer.settled
      assert.isUndefined(call.pollUnsafe())
      yield* second.latch.open
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
    }))

  it.effect("gets all that was read before the peer takes no more input", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe({ capacity: 1, policy: "suspend" })
      yield* peer.receive(...notes("n", 5))
      yield* peer.settled
      yield* peer.peer.stopReading
      assert.deepStrictEqual(methods(yield* Stream.runCollect(stream)), methods(notes("n", 5)))
    }))

  it.effect("does not keep the peer from being closed", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      const scope = yield* Scope.make()
      const peer = yield* Scope.provide(Peer.make(wire.transport), scope)
      yield* peer.subscribe({ capacity: 1, policy: "suspend" })
      yield* wire.receive(...notes("n", 10))
      yield* wire.settled
      yield* Scope.close(scope, Exit.void)
    }))
})

describe("the stream of a subscriber", () => {
  it.effect("ends with the input", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const { end, heard } = yield* listen(yield* peer.peer.subscribe())
      yield* peer.receive(note("a"))
      yield* peer.endInput
      assert.deepStrictEqual(yield* end, Result.succeed(undefined))
      assert.deepStrictEqual(heard, ["a"])
    }))

  it.effect("ends with the input also after our output, which is no failure", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const { end, heard } = yield* listen(yield* peer.peer.subscribe())
      yield* peer.transport.end
      yield* peer.receive(note("a"))
      yield* peer.endInput
      assert.deepStrictEqual(yield* end, Result.succeed(undefined))
      assert.deepStrictEqual(heard, ["a"])
    }))

  it.effect("ends with the input of one that had stopped to read before, which is no failure", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const { end, heard } = yield* listen(yield* peer.peer.subscribe())
      yield* peer.breakOutput("EPIPE")
      yield* peer.peer.notify("breaks")
      yield* peer.receive(note("a"))
      yield* peer.endInput
      assert.deepStrictEqual(yield* end, Result.succeed(undefined))
      assert.deepStrictEqual(heard, ["a"])
    }))

  it.effect("fails when reading fails, after what came before", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe()
      yield* peer.receive(note("a"))
      yield* peer.settled
      yield* peer.failInput("EBADF")
      yield* peer.settled
      const { end, heard } = yield* listen(stream)
      const reason = new Transport.InputFailed({ cause: { code: "EBADF" } })
      assert.deepStrictEqual(yield* end, Result.fail(closed(reason)))
      assert.deepStrictEqual(heard, ["a"])
    }))

  const exited = (exitCode: number | undefined, signal?: string) =>
    new Transport.ProcessExited({
      command: "codex",
      ...(exitCode === undefined ? {} : { exitCode }),
      ...(signal === undefined ? {} : { signal }),
      stderrTail: ""
    })

  /** How the stream ends when the input ends and this stands behind it. */
  const endFor = (reason: Transport.CloseReason) =>
    Effect.gen(function*() {
      const input = yield* Queue.unbounded<Uint8Array, Cause.Done>()
      const transport = yield* Transport.make({
        input: Stream.fromQueue(input),
        output: Sink.forEach(() => Effect.void),
        explain: () => Effect.succeed(reason)
      })
      const peer = yield* Peer.make(transport)
      const stream = yield* peer.subscribe()
      yield* Queue.end(input)
      return yield* Effect.result(Stream.runDrain(stream))
    })

  it.effect("ends when the process behind it ended with code 0", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* endFor(exited(0)), Result.succeed(undefined))
    }))

  it.effect.each([exited(1), exited(undefined, "SIGKILL"), exited(undefined)])(
    "fails when the process behind it ended otherwise: %j",
    (reason) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* endFor(reason), Result.fail(closed(reason)))
      })
  )

  it.effect("ends when the peer is closed", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      const scope = yield* Scope.make()
      const peer = yield* Scope.provide(Peer.make(wire.transport), scope)
      const { end } = yield* listen(yield* peer.subscribe())
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* end, Result.succeed(undefined))
    }))

  it.effect("ends when the transport is closed, while the peer is not", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const wire = yield* Scope.provide(TestKit.make(), scope)
      const peer = yield* Peer.make(wire.transport)
      const { end } = yield* listen(yield* peer.subscribe())
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* end, Result.succeed(undefined))
    }))

  it.effect("ends when the peer takes no more input", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const { end } = yield* listen(yield* peer.peer.subscribe())
      yield* peer.peer.stopReading
      assert.deepStrictEqual(yield* end, Result.succeed(undefined))
    }))

  it.effect("is over at once for who subscribes after the end, as it was for the others", () =>
    Effect.gen(function*() {
      const well = yield* connect()
      yield* well.endInput
      yield* well.settled
      const badly = yield* connect()
      yield* badly.failInput("EBADF")
      yield* badly.settled
      const reason = new Transport.InputFailed({ cause: { code: "EBADF" } })
      assert.deepStrictEqual(
        [
          yield* Effect.result(Stream.runCollect(yield* well.peer.subscribe())),
          yield* Effect.result(Stream.runCollect(yield* badly.peer.subscribe()))
        ],
        [Result.succeed([]), Result.fail(closed(reason))]
      )
    }))

  it.effect("may be followed by a new subscription from where its end is noticed", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const stream = yield* peer.peer.subscribe()
      const fiber = yield* Effect.forkScoped(
        Effect.andThen(
          Stream.runDrain(stream),
          Effect.scoped(Effect.flatMap(peer.peer.subscribe(), Stream.runCollect))
        ),
        { startImmediately: true }
      )
      yield* peer.endInput
      assert.deepStrictEqual(yield* Fiber.join(fiber), [])
    }))

  it.effect("is over, however the end falls into the midst of the subscribing", () =>
    Effect.gen(function*() {
      for (let turns = 0; turns < 12; turns++) {
        const peer = yield* connect()
        // every few operations the fiber lets others run
        const fiber = yield* Effect.scoped(Effect.flatMap(peer.peer.subscribe(), Stream.runCollect)).pipe(
          Effect.provideService(Scheduler.MaxOpsBeforeYield, 5),
          Effect.forkChild
        )
        yield* Effect.repeat(Effect.yieldNow, { times: turns })
        yield* peer.peer.stopReading
        assert.deepStrictEqual(yield* Fiber.join(fiber), [])
      }
    }))
})

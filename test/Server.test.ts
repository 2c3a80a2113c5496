/**
 * How a server ends: why, how long that may take, and what is still answered.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Framing from "effect-stdio/Framing"
import type * as Lifecycle from "effect-stdio/Lifecycle"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import type * as JsonRpc from "effect-stdio/Schema"
import * as Server from "effect-stdio/Server"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Watchdog from "effect-stdio/Watchdog"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

const success = (id: JsonRpc.Id, result: unknown) => ({ jsonrpc: "2.0", id, result })
const stopping = (id: JsonRpc.Id) => ({
  jsonrpc: "2.0",
  id,
  error: { code: -32603, message: "server stopping" }
})

/** Handlers of every temper, and what became of them. */
const makeHandlers = () => {
  const log: Array<string> = []
  const noted = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) =>
    effect.pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          log.push(`${name} ${exit._tag === "Success" ? "ends" : "is interrupted"}`)
        })
      )
    )
  const seconds = (params: unknown) => Effect.sleep(`${(params as readonly [number])[0]} seconds`)
  const router = Router.raw(
    (params, { id, method }) => {
      const name = `${method} ${id}`
      switch (method) {
        case "sleep":
          return noted(name, Effect.as(seconds(params), "slept"))
        case "stubborn":
          return Effect.uninterruptible(noted(name, Effect.as(seconds(params), "slept")))
        case "never":
          return noted(name, Effect.never)
        case "stop":
          return Effect.gen(function*() {
            const control = yield* Server.Control
            yield* control.stop((params as readonly [number] | undefined)?.[0])
            return "stopping"
          })
        default:
          return Effect.succeed("pong")
      }
    },
    (params, method) => {
      if (method === "exit") return Effect.flatMap(Server.Control, (control) => control.stop(0))
      if (method === "never") return noted(method, Effect.never)
      return method === "sleep" ? noted(method, seconds(params)) : Effect.void
    }
  )
  return { log, router }
}

/** Starts a server and watches it: `ended` tells how it has ended, or undefined. */
const serve = Effect.fnUntraced(function*<R = never>(options?: TestKit.ServeOptions<R>) {
  const { log, router } = makeHandlers()
  const server = yield* TestKit.serve<R | Server.Control>({ router, ...options })
  // a test that fails must not leave a server behind that waits for time to pass
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkDetach(server.interrupt), TestClock.adjust("1 minute")))
  const fiber = yield* Effect.forkChild(Effect.result(server.reason))
  const ended = Effect.andThen(
    server.settled,
    Effect.suspend(() => fiber.pollUnsafe() === undefined ? Effect.succeed(undefined) : Fiber.join(fiber))
  )
  return { ...server, ended, log }
})

const withReason = (reason: Server.StopReason) => Result.succeed(reason)
const tags = (events: ReadonlyArray<Lifecycle.Event>) => events.map(({ _tag }) => _tag)

describe("a server ends", () => {
  it.effect("when its input ends", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      assert.isUndefined(yield* server.ended)
      yield* server.endInput
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
    }))

  it.effect.each(["EIO", "EPIPE", "ECONNRESET"])(
    "when reading fails with %s, which is an end",
    (code) =>
      Effect.gen(function*() {
        const server = yield* serve()
        yield* server.failInput(code)
        assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      })
  )

  it.effect("with the error when reading fails otherwise", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "never" })
      yield* server.settled
      yield* server.failInput("EBADF")
      const reason = new Transport.InputFailed({ cause: { code: "EBADF" } })
      assert.deepStrictEqual(yield* server.ended, Result.fail(new Transport.TransportError({ reason })))
      assert.notInclude(tags(yield* server.events), "Stopped")
      assert.deepStrictEqual((yield* server.events).at(-1), { _tag: "Failed", message: "reading failed: EBADF" })
      assert.deepStrictEqual(server.log, ["never 1 is interrupted"])
    }))

  it.effect.each([
    "EPIPE",
    "ECONNRESET",
    "ERR_STREAM_DESTROYED",
    "ERR_STREAM_WRITE_AFTER_END",
    "ERR_STREAM_PREMATURE_CLOSE"
  ])("when writing fails with %s, which is an end", (code) =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.breakOutput(code)
      yield* server.receive({ id: 1, method: "ping" })
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "OutputClosed", code }))
      const events = yield* server.events
      assert.deepStrictEqual(events.slice(2), [
        { _tag: "Request", id: 1, method: "ping" },
        { _tag: "Response", id: 1, method: "ping", isError: false },
        {
          _tag: "OutputError",
          reason: "OutputClosed",
          message: `the other side does not read any more (${code})`
        },
        { _tag: "Stopped", reason: { _tag: "OutputClosed", code } }
      ])
    }))

  it.effect.each(["EIO", "ENOSPC"])("with the error when writing fails with %s", (code) =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.breakOutput(code)
      yield* server.receive({ id: 1, method: "never" }, { id: 2, method: "ping" })
      const reason = new Transport.OutputFailed({ cause: { code } })
      assert.deepStrictEqual(yield* server.ended, Result.fail(new Transport.TransportError({ reason })))
      const events = yield* server.events
      assert.deepStrictEqual(events.find(({ _tag }) => _tag === "OutputError"), {
        _tag: "OutputError",
        reason: "OutputFailed",
        message: `writing failed: ${code}`
      })
      assert.notInclude(tags(events), "Stopped")
      assert.deepStrictEqual(events.at(-1), { _tag: "Failed", message: `writing failed: ${code}` })
      assert.deepStrictEqual(server.log, ["never 1 is interrupted"])
    }))

  it.effect("when its parent is gone", () =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const server = yield* serve({ parent })
      yield* parent.exit
      yield* TestClock.adjust("30 seconds")
      const reason = { _tag: "ParentExited", pid: 4_242, why: "no such process" } as const
      assert.deepStrictEqual(yield* server.ended, withReason(reason))
      assert.deepStrictEqual((yield* server.events).slice(1), [
        { _tag: "ParentExit", pid: 4_242, why: "no such process" },
        { _tag: "Stopped", reason }
      ])
    }))

  it.effect("when it is idle, and when no message came", () =>
    Effect.gen(function*() {
      const idle = yield* serve({ watchdog: { idle: "1 minute" } })
      const startup = yield* serve({ watchdog: { startup: "1 minute" } })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(
        [yield* idle.ended, yield* startup.ended],
        [withReason({ _tag: "IdleTimeout" }), withReason({ _tag: "StartupTimeout" })]
      )
    }))

  it.effect("when a handler asks for it, which is answered before", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "stop", params: [3] })
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "Requested", exitCode: 3 }))
      yield* server.expectSent(success(1, "stopping"))
    }))

  it.effect("when a notification's handler asks for it, with the code 0 by default", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ method: "exit" })
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "Requested", exitCode: 0 }))
    }))

  it.effect("with the first code where several are asked for", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "stop", params: [1] }, { id: 2, method: "stop", params: [2] })
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "Requested", exitCode: 1 }))
      yield* server.expectSent(success(1, "stopping"), success(2, "stopping"))
    }))

  it.effect("when it is interrupted", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.interrupt
      assert.deepStrictEqual((yield* server.events).at(-1), {
        _tag: "Stopped",
        reason: { _tag: "Requested", exitCode: 0 }
      })
    }))
})

describe("once a server is ending", () => {
  it.effect("it takes no more requests", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "stop" }, { id: 2, method: "sleep", params: [1] })
      yield* server.settled
      yield* server.receive({ id: 3, method: "ping" })
      yield* TestClock.adjust("1 second")
      yield* server.expectSent(success(1, "stopping"), success(2, "slept"))
      assert.deepStrictEqual(
        (yield* server.events).filter(({ _tag }) => _tag === "Request").length,
        2
      )
    }))

  it.effect("what is in flight may finish, requests in the queue and notifications included", () =>
    Effect.gen(function*() {
      const server = yield* serve({ concurrency: 1 })
      yield* server.receive(
        { id: 1, method: "sleep", params: [10] },
        { id: 2, method: "sleep", params: [10] },
        { method: "sleep", params: [25] }
      )
      yield* server.endInput
      yield* TestClock.adjust("20 seconds")
      yield* server.expectSent(success(1, "slept"), success(2, "slept"))
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.deepStrictEqual(server.log, ["sleep 1 ends", "sleep 2 ends", "sleep ends"])
      assert.notInclude(tags(yield* server.events), "CutOff")
    }))

  it.effect("a batch may finish", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive([
        { jsonrpc: "2.0", id: 1, method: "sleep", params: [10] },
        { jsonrpc: "2.0", id: 2, method: "ping" }
      ])
      yield* server.endInput
      yield* TestClock.adjust("10 seconds")
      yield* server.expectSent([success(2, "pong"), success(1, "slept")])
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
    }))

  it.effect("requests that wait for an output that takes nothing may finish when it does", () =>
    Effect.gen(function*() {
      const server = yield* serve({ transport: { maxQueuedBytes: 100 } })
      yield* server.stall
      yield* server.receive(...[1, 2, 3, 4, 5, 6].map((id) => ({ id, method: "ping" })))
      yield* server.endInput
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(yield* server.ended)
      yield* server.resume
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(...[1, 2, 3, 4, 5, 6].map((id) => success(id, "pong")))
    }))

  it.effect("what never ends is answered and interrupted after 30 seconds", () =>
    Effect.gen(function*() {
      const server = yield* serve({ concurrency: 2 })
      yield* server.receive(
        { id: 1, method: "never" },
        { id: 2, method: "never" },
        { id: 3, method: "ping" },
        { method: "never" }
      )
      yield* server.endInput
      yield* TestClock.adjust("29999 millis")
      yield* server.expectSent()
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(stopping(1), stopping(2), stopping(3))
      assert.sameMembers(server.log, ["never 1 is interrupted", "never 2 is interrupted", "never is interrupted"])
      const events = yield* server.events
      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "CutOff" || _tag === "Response"), [
        { _tag: "CutOff", requests: 3 },
        { _tag: "Response", id: 1, method: "never", isError: true },
        { _tag: "Response", id: 2, method: "never", isError: true },
        { _tag: "Response", id: 3, method: "ping", isError: true }
      ])
    }))

  it.effect("notifications that wait behind one that never ends are dropped, and nothing of it is logged", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const seen: Array<string> = []
      const router = Router.raw(() => Effect.succeed("pong"), (_, method) => {
        seen.push(method)
        return method === "never" ? Effect.never : Effect.void
      })
      const server = yield* Effect.provide(
        serve({ router }),
        Logger.layer([
          Logger.make(({ message }) => {
            lines.push(String(message))
          })
        ])
      )
      yield* server.receive({ method: "first" }, { method: "never" }, { method: "second" }, { method: "third" })
      yield* server.endInput
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.deepStrictEqual([seen, lines], [["first", "never"], []])
      // no request was cut off
      assert.notInclude(tags(yield* server.events), "CutOff")
    }))

  it.effect("the time for that is an option", () =>
    Effect.gen(function*() {
      const short = yield* serve({ drainTimeout: "2 seconds" })
      const none = yield* serve({ drainTimeout: 0 })
      for (const server of [short, none]) {
        yield* server.receive({ id: 1, method: "never" })
        yield* server.settled
        yield* server.endInput
      }
      yield* none.expectSent(stopping(1))
      assert.deepStrictEqual(yield* none.ended, withReason({ _tag: "InputEnded" }))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(yield* short.ended)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* short.ended, withReason({ _tag: "InputEnded" }))
    }))

  it.effect("the time for that may be without end", () =>
    Effect.gen(function*() {
      const server = yield* serve({ drainTimeout: "Infinity", watchdog: { idle: 0 } })
      yield* server.receive({ id: 1, method: "sleep", params: [86_400] })
      yield* server.settled
      yield* server.endInput
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(success(1, "slept"))
    }))

  it.effect("a handler that cannot be interrupted is answered, and does not hold it for more than half a second", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "stubborn", params: [3_600] }, { id: 2, method: "never" })
      yield* server.endInput
      yield* TestClock.adjust("30 seconds")
      yield* server.expectSent(stopping(1), stopping(2))
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.deepStrictEqual(server.log, ["never 2 is interrupted"])
      // whatever it ends with is not an answer any more
      yield* TestClock.adjust("1 hour")
      yield* server.expectSent(stopping(1), stopping(2))
    }))

  it.effect("a batch is answered although one of its handlers cannot be interrupted", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive([
        { jsonrpc: "2.0", id: 1, method: "stubborn", params: [3_600] },
        { jsonrpc: "2.0", id: 2, method: "ping" }
      ])
      yield* server.endInput
      yield* TestClock.adjust("31 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent([success(2, "pong"), stopping(1)])
    }))

  it.effect("a batch is answered although one of its members was cancelled and does not end", () =>
    Effect.gen(function*() {
      const server = yield* serve({ cancellation: Cancellation.mcp })
      yield* server.receive([
        { jsonrpc: "2.0", id: 1, method: "stubborn", params: [3_600] },
        { jsonrpc: "2.0", id: 2, method: "ping" }
      ])
      yield* server.settled
      yield* server.receive({ method: "notifications/cancelled", params: { requestId: 1 } })
      yield* server.endInput
      yield* TestClock.adjust("31 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent([success(2, "pong")])
    }))

  it.effect.each<readonly [name: string, millis: number]>([["stubborn", 31_500], ["never", 31_000]])(
    "an output that takes nothing does not hold it for more than half a second: %s",
    ([method, limit]) =>
      Effect.gen(function*() {
        const server = yield* serve()
        yield* server.stall
        yield* server.receive({ id: 1, method, params: [3_600] })
        yield* server.endInput
        yield* TestClock.adjust("30 seconds")
        assert.isUndefined(yield* server.ended)
        yield* TestClock.adjust(limit - 30_000)
        assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      })
  )

  it.effect("what was answered may be written in the time for the drain, for a reader that is slow", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.stall
      yield* server.receive({ id: 1, method: "ping" })
      yield* server.endInput
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(yield* server.ended)
      yield* server.resume
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(success(1, "pong"))
      assert.notInclude(tags(yield* server.events), "Unflushed")
    }))

  it.effect("it does not become idle while its answers are written", () =>
    Effect.gen(function*() {
      const server = yield* serve({ drainTimeout: "1 hour", transport: { stallTimeout: 0 } })
      yield* server.stall
      yield* server.receive({ id: 1, method: "ping" })
      yield* server.endInput
      yield* TestClock.adjust("30 minutes")
      yield* server.resume
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.notInclude(tags(yield* server.events), "IdleTimeout")
    }))

  it.effect("the bytes that nobody took are told", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.stall
      yield* server.receive({ id: 1, method: "ping" })
      yield* server.endInput
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.deepStrictEqual((yield* server.events).slice(-2), [
        { _tag: "Unflushed", queuedBytes: 41 },
        { _tag: "Stopped", reason: { _tag: "InputEnded" } }
      ])
    }))
})

describe("where nobody is there to answer", () => {
  it.effect("handlers are interrupted at once when the output is closed", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "never" }, { id: 2, method: "sleep", params: [1] }, { method: "never" })
      yield* server.settled
      yield* server.breakOutput()
      yield* server.receive({ id: 3, method: "ping" })
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "OutputClosed", code: "EPIPE" }))
      assert.sameMembers(server.log, ["never 1 is interrupted", "sleep 2 is interrupted", "never is interrupted"])
      yield* server.expectSent()
    }))

  it.effect("handlers are interrupted at once when the parent is gone, and answered all the same", () =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const server = yield* serve({ parent })
      yield* server.receive({ id: 1, method: "never" }, { id: 2, method: "sleep", params: [40] })
      yield* parent.exit
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(
        yield* server.ended,
        withReason({ _tag: "ParentExited", pid: 4_242, why: "no such process" })
      )
      assert.deepStrictEqual(server.log, ["never 1 is interrupted", "sleep 2 is interrupted"])
      yield* server.expectSent(stopping(1), stopping(2))
    }))
})

describe("where the parent is gone and the output is not", () => {
  it.effect("what is cut off gets half a second to be written", () =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const server = yield* serve({ parent })
      yield* server.receive({ id: 1, method: "never" })
      yield* server.settled
      yield* server.stall
      yield* parent.exit
      yield* TestClock.adjust("30 seconds")
      yield* TestClock.adjust("400 millis")
      assert.isUndefined(yield* server.ended)
      yield* server.resume
      yield* server.expectSent(stopping(1))
      assert.deepStrictEqual(
        yield* server.ended,
        withReason({ _tag: "ParentExited", pid: 4_242, why: "no such process" })
      )
    }))
})

describe("a later reason", () => {
  it.effect("shortens the drain when the output is closed, and the first is reported", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "never" }, { id: 2, method: "sleep", params: [5] })
      yield* server.endInput
      yield* server.settled
      yield* server.breakOutput()
      // the reply finds the output broken
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.deepStrictEqual(server.log, ["sleep 2 ends", "never 1 is interrupted"])
    }))

  it.effect("shortens the drain when the parent is gone, and the first is reported", () =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const server = yield* serve({ parent, watchdog: { parentPoll: "10 seconds" } })
      yield* server.receive({ id: 1, method: "never" })
      yield* server.endInput
      yield* parent.exit
      yield* TestClock.adjust("9999 millis")
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(stopping(1))
      const events = yield* server.events
      assert.deepStrictEqual(events.filter(({ _tag }) => _tag === "Stopped"), [
        { _tag: "Stopped", reason: { _tag: "InputEnded" } }
      ])
    }))

  it.effect("shortens the drain even where that has no limit", () =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const server = yield* serve({ parent, drainTimeout: "Infinity" })
      yield* server.receive({ id: 1, method: "never" })
      yield* server.endInput
      yield* parent.exit
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
    }))

  it.effect("does not begin the drain anew: the input ends after a request to stop", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "never" }, { id: 2, method: "stop", params: [5] })
      yield* TestClock.adjust("20 seconds")
      yield* server.endInput
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "Requested", exitCode: 5 }))
    }))
})

describe("an interruption", () => {
  it.effect("leaves a second for what is in flight, and then cuts it off", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "sleep", params: [0.9] }, { id: 2, method: "never" })
      yield* server.settled
      const interruption = yield* Effect.forkChild(server.interrupt)
      yield* TestClock.adjust("999 millis")
      yield* server.expectSent(success(1, "slept"))
      assert.isUndefined(interruption.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(interruption)
      yield* server.expectSent(success(1, "slept"), stopping(2))
      assert.deepStrictEqual(server.log, ["sleep 1 ends", "never 2 is interrupted"])
      assert.deepStrictEqual((yield* server.events).at(-1), {
        _tag: "Stopped",
        reason: { _tag: "Requested", exitCode: 0 }
      })
    }))

  it.effect.each([0, 200])(
    "leaves no more than the time for the drain where that is %d milliseconds",
    (drainTimeout) =>
      Effect.gen(function*() {
        const server = yield* serve({ drainTimeout })
        yield* server.receive({ id: 1, method: "never" })
        yield* server.settled
        const interruption = yield* Effect.forkChild(server.interrupt)
        yield* TestClock.adjust(drainTimeout)
        yield* server.expectSent(stopping(1))
        yield* Fiber.join(interruption)
      })
  )

  it.effect("ends at once when nothing is in flight", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "ping" })
      yield* server.settled
      yield* server.interrupt
      yield* server.expectSent(success(1, "pong"))
    }))

  it.effect("ends within two seconds whatever handlers and output do", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.stall
      yield* server.receive({ id: 1, method: "stubborn", params: [3_600] }, { id: 2, method: "ping" })
      yield* server.settled
      const interruption = yield* Effect.forkChild(server.interrupt)
      yield* TestClock.adjust("2 seconds")
      yield* server.settled
      assert.isDefined(interruption.pollUnsafe())
    }))

  it.effect("shortens a drain that has begun, and the first reason is reported", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "never" })
      yield* server.endInput
      yield* TestClock.adjust("10 seconds")
      const interruption = yield* Effect.forkChild(server.interrupt)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interruption)
      yield* server.expectSent(stopping(1))
      assert.deepStrictEqual((yield* server.events).filter(({ _tag }) => _tag === "Stopped"), [
        { _tag: "Stopped", reason: { _tag: "InputEnded" } }
      ])
    }))

  it.effect("does not lengthen a drain that is nearly over", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "never" })
      yield* server.endInput
      yield* TestClock.adjust("29900 millis")
      const interruption = yield* Effect.forkChild(server.interrupt)
      yield* TestClock.adjust("100 millis")
      yield* server.expectSent(stopping(1))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interruption)
    }))

  it.effect("is shortened itself when the parent is gone", () =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const server = yield* serve({ parent, watchdog: { parentPoll: "200 millis" } })
      yield* server.receive({ id: 1, method: "never" })
      yield* server.settled
      yield* parent.exit
      const interruption = yield* Effect.forkChild(server.interrupt)
      yield* TestClock.adjust("200 millis")
      yield* server.settled
      assert.isDefined(interruption.pollUnsafe())
    }))
})

describe("onStopping", () => {
  it.effect("runs before what is in flight is waited for, and can bring it to an end", () =>
    Effect.gen(function*() {
      const gate = Deferred.makeUnsafe<string>()
      const router = Router.raw(() => Deferred.await(gate))
      const server = yield* serve({
        router,
        onStopping: Effect.asVoid(Deferred.succeed(gate, "closed by the server"))
      })
      yield* server.receive({ id: 1, method: "listen" })
      yield* server.expectSent()
      yield* server.endInput
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(success(1, "closed by the server"))
    }))

  it.effect("runs once, and for an interruption too", () =>
    Effect.gen(function*() {
      let times = 0
      const onStopping = Effect.sync(() => {
        times++
      })
      const server = yield* serve({ onStopping })
      yield* server.receive({ id: 1, method: "never" })
      yield* server.settled
      const interruption = yield* Effect.forkChild(server.interrupt)
      yield* server.endInput
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interruption)
      assert.strictEqual(times, 1)
    }))

  it.effect("does not hold the server when it never ends", () =>
    Effect.gen(function*() {
      const server = yield* serve({ onStopping: Effect.never })
      yield* server.receive({ id: 1, method: "ping" }, { id: 2, method: "never" })
      yield* server.endInput
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      yield* server.expectSent(success(1, "pong"), stopping(2))
    }))

  it.effect("is logged when it dies", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const server = yield* Effect.provide(
        serve({ onStopping: Effect.die(new Error("no way to stop")) }),
        Logger.layer([
          Logger.make(({ cause, message }) => {
            lines.push(`${String(message)} ${Cause.pretty(cause)}`)
          })
        ])
      )
      yield* server.endInput
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "no way to stop")
    }))

  it.effect("is interrupted when the time for it is over", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const server = yield* serve({
        drainTimeout: "2 seconds",
        onStopping: Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted++
          }))
      })
      yield* server.endInput
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.strictEqual(interrupted, 1)
    }))

  it.effect("does not keep the server from answering when it dies", () =>
    Effect.gen(function*() {
      const server = yield* serve({ onStopping: Effect.die(new Error("onStopping died")) })
      yield* server.receive({ id: 1, method: "sleep", params: [1] })
      yield* server.settled
      yield* server.endInput
      yield* TestClock.adjust("1 second")
      yield* server.settled
      yield* server.expectSent(success(1, "slept"))
    }))
})

describe("a stopped server", () => {
  it.effect("has told everything in order", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.feed("junk\n")
      yield* server.receive({ id: 1, method: "ping" }, { id: 2, method: "never" }, { method: "note" })
      yield* server.endInput
      yield* TestClock.adjust("30 seconds")
      yield* server.ended
      const expected: ReadonlyArray<Lifecycle.Event> = [
        { _tag: "Started", cwd: process.cwd(), idleTimeout: 600_000 },
        { _tag: "ParentWatchDisabled", why: "there is no parent to watch" },
        { _tag: "BadInput", reason: "InvalidJson", message: "Parse error: the frame is not valid JSON" },
        { _tag: "Request", id: 1, method: "ping" },
        { _tag: "Response", id: 1, method: "ping", isError: false },
        { _tag: "Request", id: 2, method: "never" },
        { _tag: "CutOff", requests: 1 },
        { _tag: "Response", id: 2, method: "never", isError: true },
        { _tag: "Stopped", reason: { _tag: "InputEnded" } }
      ]
      assert.deepStrictEqual(yield* server.events, expected)
    }))

  it.effect("leaves nothing running: no handler, no watch, no call", () =>
    Effect.gen(function*() {
      let looks = 0
      const parent = TestKit.makeParent(4_242)
      const calls: Array<unknown> = []
      const { log, router } = makeHandlers()
      const server = yield* serve({
        parent: {
          ...parent,
          probe: {
            parentPid: parent.probe.parentPid,
            defaultPids: parent.probe.defaultPids,
            inspect: (pid) =>
              Effect.suspend(() => {
                looks++
                return parent.probe.inspect(pid)
              })
          }
        },
        drainTimeout: "1 second",
        router: Router.rawRequest(router, "ask", () =>
          Effect.gen(function*() {
            const caller = yield* Peer.Caller
            // outlives its request
            yield* Effect.forkDetach(
              Effect.map(Effect.result(caller.call("name", undefined, { timeout: "Infinity" })), (result) => {
                calls.push(Result.isFailure(result) ? result.failure._tag : result.success)
              })
            )
            return yield* Effect.never
          }))
      })
      yield* server.receive(
        { id: 1, method: "never" },
        { id: 2, method: "sleep", params: [100] },
        { id: 3, method: "ask" },
        { method: "never" }
      )
      yield* server.settled
      yield* server.endInput
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* server.ended, withReason({ _tag: "InputEnded" }))
      assert.sameMembers(log, ["never 1 is interrupted", "sleep 2 is interrupted", "never is interrupted"])
      assert.deepStrictEqual(calls, ["PeerError"])
      const before = looks
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(looks, before)
      assert.strictEqual(tags(yield* server.events).filter((tag) => tag === "Stopped").length, 1)
    }))
})

describe("a server that starts", () => {
  it.effect("has seen its parent alive before it reads a message that waits already", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const note = (what: string) =>
        Effect.sync(() => {
          order.push(what)
        })
      const [host, transport] = yield* Transport.makePair()
      yield* host.send(Framing.frameOfText(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }), "line"))
      const probe: Watchdog.Probe = {
        parentPid: Effect.succeed(42),
        defaultPids: Effect.succeed([42]),
        inspect: () => Effect.as(note("looks at its parent"), { _tag: "Alive" })
      }
      yield* Server.run({ router: Router.raw(() => note("serves")) }).pipe(
        Effect.provideService(Transport.Transport, transport),
        Effect.provide(Watchdog.layer().pipe(Layer.provide(Layer.succeed(Watchdog.Probe, probe)))),
        Effect.forkScoped
      )
      yield* host.incoming.pipe(Stream.take(1), Stream.runDrain)
      assert.deepStrictEqual(order, ["looks at its parent", "serves"])
    }))
})

describe("a server under test", () => {
  it.effect("ends with the scope of its test, without time passing, though a request is in flight", () =>
    Effect.gen(function*() {
      const { log, router } = makeHandlers()
      const scope = yield* Scope.make()
      const server = yield* TestKit.serve({ router }).pipe(Scope.provide(scope))
      yield* server.receive({ id: 1, method: "never" })
      yield* server.settled
      const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void))
      yield* server.settled
      const atOnce = closing.pollUnsafe()
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(closing)
      assert.isDefined(atOnce)
      assert.deepStrictEqual(log, ["never 1 is interrupted"])
    }))
})

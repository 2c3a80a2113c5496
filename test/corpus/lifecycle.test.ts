/**
 * Failures that were reported against other programs, replayed as far as no process is needed: when a server ends, and
 * when it must not. Each name starts with the number of the report.
 */
import { assert, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import type * as Watchdog from "effect-stdio/Watchdog"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"

/** Starts a server and watches it: `ended` tells how it has ended, or undefined. */
const serve = Effect.fnUntraced(function*(options?: TestKit.ServeOptions<Peer.Caller>) {
  const server = yield* TestKit.serve(options)
  // a test that fails must not leave a server behind that waits for time to pass
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkDetach(server.interrupt), TestClock.adjust("1 minute")))
  const fiber = yield* Effect.forkChild(Effect.result(server.reason))
  const ended = Effect.andThen(
    server.settled,
    Effect.suspend(() => fiber.pollUnsafe() === undefined ? Effect.succeed(undefined) : Fiber.join(fiber))
  )
  return { ...server, ended }
})

const stopping = (id: number) => ({ jsonrpc: "2.0", id, error: { code: -32603, message: "server stopping" } })

/** A system of processes, all alive until the test says otherwise; the first is our parent. */
const makeSystem = (...pids: ReadonlyArray<number>) => {
  const gone = new Set<number>()
  const state = { parentPid: pids[0] ?? 0 }
  const probe: Watchdog.Probe = {
    parentPid: Effect.sync(() => state.parentPid),
    defaultPids: Effect.succeed(pids),
    inspect: (pid) =>
      Effect.sync((): Watchdog.Liveness =>
        gone.has(pid) || !pids.includes(pid) ? { _tag: "Gone", why: "no such process" } : { _tag: "Alive" }
      )
  }
  const parent: TestKit.Parent = {
    pid: state.parentPid,
    probe,
    exit: Effect.sync(() => {
      gone.add(state.parentPid)
    }),
    reusePid: Effect.void,
    reparentTo: (pid) =>
      Effect.sync(() => {
        state.parentPid = pid
      })
  }
  const kill = (pid: number) =>
    Effect.sync(() => {
      gone.add(pid)
    })
  return { parent, kill }
}

it.effect("F43 ends at the end of the input", () =>
  Effect.gen(function*() {
    const server = yield* serve()
    yield* server.endInput
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "InputEnded" }))
  }))

it.effect("F46 ends at the first EPIPE and writes no more, whatever goes on sending", () =>
  Effect.gen(function*() {
    let attempts = 0
    const router = Router.raw(() =>
      Effect.gen(function*() {
        const caller = yield* Peer.Caller
        const tick = Effect.suspend(() => {
          attempts++
          return Effect.andThen(caller.notify("tick"), Effect.sleep("100 millis"))
        })
        yield* Effect.forkDetach(Effect.ignore(Effect.forever(tick)))
        return "subscribed"
      })
    )
    const server = yield* serve({ router })
    yield* server.receive({ id: 1, method: "subscribe" })
    yield* TestClock.adjust("1 second")
    const before = attempts
    yield* server.breakOutput()
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "OutputClosed", code: "EPIPE" }))
    // the one that found the pipe broken, and the one that was told so
    assert.isAtMost(attempts - before, 2)
  }))

it.effect("F49 ends cleanly when both pipes are closed before an answer is written", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const router = Router.raw(() =>
      Effect.ensuring(
        Effect.as(Effect.sleep("10 millis"), {}),
        Effect.sync(() => {
          log.push("finalizer")
        })
      )
    )
    const server = yield* serve({ router })
    yield* server.receive({ id: 0, method: "initialize" })
    yield* server.settled
    yield* server.breakOutput()
    yield* server.endInput
    yield* TestClock.adjust("10 millis")
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "InputEnded" }))
    assert.deepStrictEqual(log, ["finalizer"])
  }))

it.effect("F50 answers the requests that were read just before the end of the input", () =>
  Effect.gen(function*() {
    const router = Router.raw((_, { method }) =>
      Effect.as(method === "tools/call" ? Effect.sleep("200 millis") : Effect.void, {})
    )
    const server = yield* serve({ router })
    yield* server.receive(
      { id: 0, method: "initialize" },
      { method: "notifications/initialized" },
      ...[1, 2, 3].map((id) => ({ id, method: "tools/call" }))
    )
    yield* server.endInput
    yield* TestClock.adjust("200 millis")
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "InputEnded" }))
    assert.deepStrictEqual(yield* server.sent, [0, 1, 2, 3].map((id) => ({ jsonrpc: "2.0", id, result: {} })))
  }))

it.effect("F52 cuts a handler that never ends off at the deadline of the drain", () =>
  Effect.gen(function*() {
    const server = yield* serve({ router: Router.raw(() => Effect.never), drainTimeout: "5 seconds" })
    yield* server.receive({ id: 1, method: "never" })
    yield* server.endInput
    yield* TestClock.adjust("4999 millis")
    assert.isUndefined(yield* server.ended)
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "InputEnded" }))
    assert.deepStrictEqual(yield* server.sent, [stopping(1)])
  }))

it.effect("F56 ends when the client above a surviving wrapper is gone, though neither input nor parent changed", () =>
  Effect.gen(function*() {
    // server 43, whose parent is the wrapper 42, whose parent is the client 41
    const { kill, parent } = makeSystem(42, 41)
    const server = yield* serve({ parent, watchdog: { idle: 0 } })
    yield* kill(41)
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(
      yield* server.ended,
      Result.succeed({ _tag: "ParentExited", pid: 41, why: "no such process" })
    )
  }))

it.effect("F56 ends by the idle limit where nothing else shows that the client is gone", () =>
  Effect.gen(function*() {
    const { parent } = makeSystem(42)
    const server = yield* serve({ parent })
    yield* TestClock.adjust("10 minutes")
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "IdleTimeout" }))
  }))

it.effect("F58 counts any new parent as the death of the old one, not process 1 alone", () =>
  Effect.gen(function*() {
    const { parent } = makeSystem(42)
    const server = yield* serve({ parent })
    yield* parent.reparentTo(900)
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(
      yield* server.ended,
      Result.succeed({ _tag: "ParentExited", pid: 42, why: "our parent is now process 900" })
    )
  }))

it.effect("F61 sees the death of a parent whose pid is still told to be ours", () =>
  Effect.gen(function*() {
    const { kill, parent } = makeSystem(42)
    const server = yield* serve({ parent })
    yield* kill(42)
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(
      yield* server.ended,
      Result.succeed({ _tag: "ParentExited", pid: 42, why: "no such process" })
    )
  }))

it.effect("F62 does not watch the process that took us over when the parent died before the start", () =>
  Effect.gen(function*() {
    const { parent } = makeSystem(1)
    const server = yield* serve({ parent, watchdog: { idle: 0 } })
    yield* TestClock.adjust("1 hour")
    assert.isUndefined(yield* server.ended)
    assert.deepStrictEqual((yield* server.events).slice(1), [
      { _tag: "ParentWatchDisabled", why: "pid 1 cannot be a parent to watch" }
    ])
    // such an input has ended already
    yield* server.endInput
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "InputEnded" }))
  }))

it.effect("F63 does not leave because of a process id that is not visible at the start, and says so once", () =>
  Effect.gen(function*() {
    const { parent } = makeSystem(42)
    const server = yield* serve({ parent, watchdog: { idle: 0, parentPids: [999_999] } })
    yield* TestClock.adjust("1 hour")
    assert.isUndefined(yield* server.ended)
    assert.deepStrictEqual((yield* server.events).slice(1), [
      { _tag: "ParentWatchDisabled", why: "process 999999 is not alive at the start: no such process" }
    ])
  }))

it.effect("F63 watches nothing where no process id is given", () =>
  Effect.gen(function*() {
    const { kill, parent } = makeSystem(42)
    const server = yield* serve({ parent, watchdog: { idle: 0, parentPids: [] } })
    yield* kill(42)
    yield* TestClock.adjust("1 hour")
    assert.isUndefined(yield* server.ended)
  }))

it.effect("F64 says why it leaves", () =>
  Effect.gen(function*() {
    const { kill, parent } = makeSystem(42)
    const server = yield* serve({ parent })
    yield* kill(42)
    yield* TestClock.adjust("30 seconds")
    const reason = { _tag: "ParentExited", pid: 42, why: "no such process" } as const
    assert.deepStrictEqual((yield* server.events).slice(-2), [
      { _tag: "ParentExit", pid: 42, why: "no such process" },
      { _tag: "Stopped", reason }
    ])
  }))

it.effect("F67 ends when the input has ended before its first byte", () =>
  Effect.gen(function*() {
    const wire = yield* serve({ watchdog: { idle: 0 } })
    yield* wire.endInput
    assert.deepStrictEqual(yield* wire.ended, Result.succeed({ _tag: "InputEnded" }))
    assert.deepStrictEqual(yield* wire.sent, [])
  }))

it.effect("F68 reads what waits before its idle limit may act, when the clock has jumped", () =>
  Effect.gen(function*() {
    const server = yield* serve({ router: Router.raw(() => Effect.succeed("pong")), watchdog: { idle: "30 seconds" } })
    // stopped for a minute, with a request in the pipe when it goes on
    yield* server.receive({ id: 1, method: "ping" })
    yield* TestClock.adjust("60 seconds")
    yield* server.settled
    assert.deepStrictEqual(yield* server.sent, [{ jsonrpc: "2.0", id: 1, result: "pong" }])
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(yield* server.ended, Result.succeed({ _tag: "IdleTimeout" }))
  }))

it.effect("F72 suspends who sends to an output that nobody reads, and holds bounded memory", () =>
  Effect.gen(function*() {
    const mib = 1_024 * 1_024
    const wire = yield* TestKit.make({ framing: "line", maxQueuedBytes: mib })
    const peer = yield* Peer.make(wire.transport)
    yield* wire.stall
    let sent = 0
    const text = "x".repeat(65_536)
    const flood = Effect.forever(Effect.map(peer.notify("flood", { text }), () => {
      sent++
    }))
    yield* Effect.forkChild(Effect.ignore(flood), { startImmediately: true })
    yield* Effect.repeat(wire.settled, { times: 50 })
    // 15 fit into the mebibyte
    assert.strictEqual(sent, 15)
  }))

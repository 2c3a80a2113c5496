/**
 * What ends a server although nobody said so, and what must not.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Lifecycle from "effect-stdio/Lifecycle"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import * as Watchdog from "effect-stdio/Watchdog"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const MINUTE = 60_000

/** Handlers that take as many minutes as their first param says; "listen" leaves a call of ours open, "ask" one with a deadline. */
const router = Router.empty.pipe(
  Router.rawRequest("ping", () => Effect.succeed("pong")),
  Router.rawRequest(
    "work",
    (params) => Effect.as(Effect.sleep((params as readonly [number])[0] * MINUTE), "done")
  ),
  Router.rawRequest("listen", () =>
    Effect.gen(function*() {
      const caller = yield* Peer.Caller
      yield* Effect.forkDetach(Effect.ignore(caller.call("events/listen", undefined, { timeout: "Infinity" })))
      return "listening"
    })),
  Router.rawRequest("ask", () =>
    Effect.gen(function*() {
      const caller = yield* Peer.Caller
      yield* Effect.forkDetach(Effect.ignore(caller.call("name")))
      return "asked"
    })),
  Router.notification("note", Schema.Struct({}), () => Effect.void),
  Router.notification("work", Schema.Tuple([Schema.Finite]), ([minutes]) => Effect.sleep(minutes * MINUTE))
)

/** Starts a server and watches it: `ended` tells why it has ended, or undefined. */
const serve = Effect.fnUntraced(function*(options?: TestKit.ServeOptions) {
  const server = yield* TestKit.serve({ router, ...options })
  // a test that fails must not leave a server behind that waits for time to pass
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkDetach(server.interrupt), TestClock.adjust("1 minute")))
  const fiber = yield* Effect.forkChild(server.reason)
  const ended = Effect.andThen(
    server.settled,
    Effect.suspend(() => fiber.pollUnsafe() === undefined ? Effect.succeed(undefined) : Fiber.join(fiber))
  )
  return { ...server, ended }
})

/** A peer that nothing is asked of. */
const quiet: Peer.Activity = {
  isBusyUnsafe: () => false,
  lastUnsafe: () => 0,
  arrivalsUnsafe: () => 0,
  messagesUnsafe: () => 0
}

/** A peer whose input is read a turn after the watchdog first looked for it, as when a stopped process goes on. */
const makeLateReader = (now: number): Peer.Activity => {
  let last = 0
  let arrivals: number | undefined
  const read = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      last = now
      arrivals = 1
    })
  )
  return {
    isBusyUnsafe: () => false,
    lastUnsafe: () => last,
    messagesUnsafe: () => arrivals ?? 0,
    arrivalsUnsafe: () => {
      if (arrivals === undefined) {
        arrivals = 0
        Effect.runFork(read)
      }
      return arrivals
    }
  }
}

describe("idle", () => {
  it.effect("ends a server after ten minutes without a message, and says so", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* TestClock.adjust(10 * MINUTE - 1)
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
      const events = yield* server.events
      assert.strictEqual(events[0]?._tag === "Started" ? events[0].idleTimeout : undefined, 10 * MINUTE)
      assert.deepStrictEqual(events.slice(-2), [
        { _tag: "IdleTimeout", idleTimeout: 10 * MINUTE },
        { _tag: "Stopped", reason: { _tag: "IdleTimeout" } }
      ])
    }))

  it.effect.each<readonly [name: string, message: object]>([
    ["a request", { id: 1, method: "ping" }],
    ["an unknown request", { id: 1, method: "no/such" }],
    ["a notification", { method: "note" }],
    ["an unknown notification", { method: "no/such" }],
    ["a response", { id: 1, result: null }]
  ])("begins anew with %s", ([_, message]) =>
    Effect.gen(function*() {
      const server = yield* serve()
      for (const _ of [1, 2, 3]) {
        yield* TestClock.adjust(9 * MINUTE)
        yield* server.receive(message)
        assert.isUndefined(yield* server.ended)
      }
      yield* TestClock.adjust(10 * MINUTE - 1)
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
    }))

  it.effect.each<readonly [name: string, message: object]>([
    ["a request", { id: 1, method: "work", params: [60] }],
    ["the handler of a notification", { method: "work", params: [60] }]
  ])("waits for the end of %s, and begins then", ([_, message]) =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive(message)
      yield* TestClock.adjust(70 * MINUTE - 1)
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
    }))

  it.effect("waits for requests in the queue", () =>
    Effect.gen(function*() {
      const server = yield* serve({ concurrency: 1 })
      yield* server.receive(...[1, 2, 3].map((id) => ({ id, method: "work", params: [20] })))
      yield* TestClock.adjust(70 * MINUTE - 1)
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
    }))

  it.effect("waits for a call of ours, and begins with its response", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "listen" })
      yield* TestClock.adjust(60 * MINUTE)
      assert.isUndefined(yield* server.ended)
      yield* server.receive({ id: 1, result: null })
      yield* TestClock.adjust(10 * MINUTE - 1)
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
    }))

  it.effect("begins when the time of a call of ours is over", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.receive({ id: 1, method: "ask" })
      yield* TestClock.adjust(10 * MINUTE + 29_999)
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
    }))

  it.effect.each(["0 seconds", "Infinity", -1] as const)(
    "never ends a server when it is %s",
    (idle) =>
      Effect.gen(function*() {
        const server = yield* serve({ watchdog: { idle } })
        yield* TestClock.adjust("365 days")
        assert.isUndefined(yield* server.ended)
        const [started] = yield* server.events
        assert.strictEqual(started?._tag === "Started" ? started.idleTimeout : undefined, 0)
        yield* server.endInput
        assert.deepStrictEqual(yield* server.ended, { _tag: "InputEnded" })
      })
  )

  it.effect("never ends a server without a watchdog", () =>
    Effect.gen(function*() {
      const watchdog = yield* Effect.provide(Watchdog.Watchdog, Watchdog.layerNone)
      const fibers = [
        yield* Effect.forkChild(watchdog.expired(quiet)),
        yield* Effect.forkChild(watchdog.parentExited)
      ]
      yield* TestClock.adjust("365 days")
      assert.deepStrictEqual(
        [watchdog.idleTimeout, ...fibers.map((fiber) => fiber.pollUnsafe())],
        [0, undefined, undefined]
      )
    }))

  it.effect("lets input that waits be read before it ends a server", () =>
    Effect.gen(function*() {
      const watchdog = yield* Effect.provide(Watchdog.Watchdog, Watchdog.layer({ idle: "1 minute" }))
      const fiber = yield* Effect.forkChild(watchdog.expired(makeLateReader(MINUTE)), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(fiber), { _tag: "IdleTimeout" })
    }))

  it.effect("does not end a server while a message is still arriving", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const text = `{"jsonrpc":"2.0","id":1,"method":"ping"}\n`
      yield* TestClock.adjust(9 * MINUTE)
      yield* server.feed(text.slice(0, 20))
      yield* server.settled
      yield* TestClock.adjust(2 * MINUTE)
      assert.isUndefined(yield* server.ended)
      yield* server.feed(text.slice(20))
      yield* server.expectSent({ jsonrpc: "2.0", id: 1, result: "pong" })
    }))
})

describe("start-up", () => {
  it.effect("ends a server that got no message in time", () =>
    Effect.gen(function*() {
      const server = yield* serve({ watchdog: { startup: "5 seconds" } })
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(yield* server.ended)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* server.ended, { _tag: "StartupTimeout" })
      assert.deepStrictEqual((yield* server.events).at(-1), { _tag: "Stopped", reason: { _tag: "StartupTimeout" } })
    }))

  it.effect("is over with the first message", () =>
    Effect.gen(function*() {
      const server = yield* serve({ watchdog: { startup: "5 seconds", idle: 0 } })
      yield* TestClock.adjust("4999 millis")
      yield* server.receive({ id: 1, method: "ping" })
      yield* server.settled
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(yield* server.ended)
    }))

  it.effect("leaves the idle time as it is", () =>
    Effect.gen(function*() {
      const server = yield* serve({ watchdog: { startup: "5 seconds", idle: "1 minute" } })
      yield* server.receive({ id: 1, method: "ping" })
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* server.ended, { _tag: "IdleTimeout" })
    }))

  it.effect.each([undefined, 0, "Infinity"] as const)(
    "has no limit when it is %s",
    (startup) =>
      Effect.gen(function*() {
        const server = yield* serve({ watchdog: { startup, idle: 0 } })
        yield* TestClock.adjust("365 days")
        assert.isUndefined(yield* server.ended)
      })
  )

  it.effect("is for a message: junk does not count as one", () =>
    Effect.gen(function*() {
      const server = yield* serve({ watchdog: { startup: "5 seconds" } })
      yield* server.feed("\nnot a message\n")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* server.ended, { _tag: "StartupTimeout" })
    }))

  it.effect("lets input that waits be read before it ends a server", () =>
    Effect.gen(function*() {
      const watchdog = yield* Effect.provide(Watchdog.Watchdog, Watchdog.layer({ startup: "5 seconds", idle: 0 }))
      const fiber = yield* Effect.forkChild(watchdog.expired(makeLateReader(5_000)), { startImmediately: true })
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(fiber.pollUnsafe())
    }))
})

describe("the parent", () => {
  interface Process {
    liveness: Watchdog.Liveness
    looks: number
  }

  /** A system with these processes, which the test may change. */
  const makeSystem = (processes: Record<number, Watchdog.Liveness>, defaults: ReadonlyArray<number>) => {
    const known = new Map<number, Process>(
      Object.entries(processes).map(([pid, liveness]) => [Number(pid), { liveness, looks: 0 }])
    )
    const state = { parentPid: defaults[0] ?? 0 }
    const probe: Watchdog.Probe = {
      parentPid: Effect.sync(() => state.parentPid),
      defaultPids: Effect.succeed(defaults),
      inspect: (pid) =>
        Effect.sync(() => {
          const process = known.get(pid)
          if (process === undefined) return { _tag: "Gone", why: "no such process" }
          process.looks++
          return process.liveness
        })
    }
    return {
      probe,
      state,
      set: (pid: number, liveness: Watchdog.Liveness) => {
        known.set(pid, { liveness, looks: known.get(pid)?.looks ?? 0 })
      },
      looks: (pid: number) => known.get(pid)?.looks
    }
  }

  const alive = (identity?: string): Watchdog.Liveness => ({ _tag: "Alive", identity })
  const gone: Watchdog.Liveness = { _tag: "Gone", why: "no such process" }

  /** Watches a system: `exited` tells what the watch said, or undefined, and `events` what it told. */
  const watch = Effect.fnUntraced(function*(probe: Watchdog.Probe, options?: Watchdog.Options) {
    const events: Array<Lifecycle.Event> = []
    const watchdog = yield* Watchdog.Watchdog.pipe(
      Effect.provide(Watchdog.layer(options).pipe(Layer.provide(Layer.succeed(Watchdog.Probe, probe)))),
      Effect.provideService(Lifecycle.Observer, (event) => {
        events.push(event)
      })
    )
    const fiber = yield* Effect.forkChild(watchdog.parentExited, { startImmediately: true })
    const exited = Effect.suspend(() =>
      fiber.pollUnsafe() === undefined ? Effect.succeed(undefined) : Fiber.join(fiber)
    )
    return { events, exited }
  })

  it.effect("is looked at every 30 seconds, and ends a server when it is gone", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive() }, [42])
      const { events, exited } = yield* watch(system.probe)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual([yield* exited, system.looks(42)], [undefined, 2])
      system.set(42, gone)
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(yield* exited)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid: 42, why: "no such process" })
      assert.deepStrictEqual(events, [{ _tag: "ParentExit", pid: 42, why: "no such process" }])
    }))

  it.effect("is looked at as often as the option says", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive() }, [42])
      const { exited } = yield* watch(system.probe, { parentPoll: "1 second" })
      system.set(42, { _tag: "Gone", why: "it has ended (a zombie)" })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid: 42, why: "it has ended (a zombie)" })
    }))

  it.effect.each([0, "Infinity"] as const)("is not looked at when that is %s", (parentPoll) =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive() }, [42])
      const { events, exited } = yield* watch(system.probe, { parentPoll })
      system.set(42, gone)
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual([yield* exited, events], [undefined, []])
    }))

  it.effect("counts as gone when another process has its pid", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive("first") }, [42])
      const { exited } = yield* watch(system.probe)
      yield* TestClock.adjust("30 seconds")
      assert.isUndefined(yield* exited)
      system.set(42, alive("second"))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid: 42, why: "another process has its pid" })
    }))

  it.effect("counts as alive when its identity cannot be read, at the start or later", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive(), 43: alive("first") }, [42, 43])
      const { events, exited } = yield* watch(system.probe)
      system.set(42, alive("seen later"))
      system.set(43, alive())
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([yield* exited, events], [undefined, []])
    }))

  it.effect.each([1, 77])("counts as gone when we are the child of process %d", (other) =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive("first") }, [42])
      const { exited } = yield* watch(system.probe)
      system.state.parentPid = other
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* exited, {
        _tag: "ParentExited",
        pid: 42,
        why: `our parent is now process ${other}`
      })
    }))

  it.effect("may change when other processes are watched", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive(), 50: alive() }, [42])
      const { exited } = yield* watch(system.probe, { parentPids: [50] })
      system.state.parentPid = 1
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([yield* exited, system.looks(42)], [undefined, 0])
      system.set(50, gone)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid: 50, why: "no such process" })
    }))

  it.effect("is watched with the processes above it, of which each may be the first to go", () =>
    Effect.gen(function*() {
      for (const pid of [40, 41, 42]) {
        const system = makeSystem({ 42: alive(), 41: alive(), 40: alive() }, [42, 41, 40])
        const { exited } = yield* watch(system.probe)
        system.set(pid, gone)
        yield* TestClock.adjust("30 seconds")
        assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid, why: "no such process" })
      }
    }))

  it.effect.each<readonly [name: string, pids: ReadonlyArray<number>, why: string]>([
    ["is not alive at the start", [99], "process 99 is not alive at the start: no such process"],
    ["is process 1, as in a container", [1], "pid 1 cannot be a parent to watch"],
    ["is process 0, outside the container", [0], "pid 0 cannot be a parent to watch"],
    ["has no pid", [Number.NaN], "pid NaN cannot be a parent to watch"],
    ["has a host above it that is not alive at the start", [
      42,
      99
    ], "process 99 is not alive at the start: no such process"],
    ["does not exist", [], "there is no parent to watch"]
  ])("is not watched, which is told once, when it %s", ([_, pids, why]) =>
    Effect.gen(function*() {
      for (const options of [undefined, { parentPids: pids }]) {
        const system = makeSystem({ 42: alive() }, pids)
        const { events, exited } = yield* watch(system.probe, options)
        system.set(42, gone)
        system.state.parentPid = 1
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual([yield* exited, events], [undefined, [{ _tag: "ParentWatchDisabled", why }]])
      }
    }))

  it.effect("is not watched where no system is known", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(
        (yield* server.events).filter(({ _tag }) => _tag !== "Started"),
        [{ _tag: "ParentWatchDisabled", why: "there is no parent to watch" }]
      )
      yield* server.endInput
      assert.deepStrictEqual(yield* server.ended, { _tag: "InputEnded" })
    }))

  it.effect("is told after every look where that is asked for, with what was seen", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive(), 41: alive() }, [42, 41])
      const { events } = yield* watch(system.probe, { pollEvents: true })
      yield* TestClock.adjust("60 seconds")
      const poll: Lifecycle.Event = { _tag: "ParentPoll", pids: [42, 41], alive: true }
      assert.deepStrictEqual(events, [poll, poll])
      system.set(42, gone)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(events, [
        poll,
        poll,
        { ...poll, alive: false },
        { _tag: "ParentExit", pid: 42, why: "no such process" }
      ])
    }))

  it.effect("counts as alive while the probe dies, and is watched on", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive(), 41: alive() }, [42, 41])
      let dies = false
      const careless = <A>(look: Effect.Effect<A>) =>
        Effect.suspend(() => dies ? Effect.die(new Error("no permission")) : look)
      const { events, exited } = yield* watch({
        parentPid: careless(system.probe.parentPid),
        defaultPids: system.probe.defaultPids,
        inspect: (pid) => pid === 42 ? careless(system.probe.inspect(pid)) : system.probe.inspect(pid)
      }, { pollEvents: true })
      dies = true
      yield* TestClock.adjust("60 seconds")
      const poll: Lifecycle.Event = { _tag: "ParentPoll", pids: [42, 41], alive: true }
      assert.deepStrictEqual([yield* exited, events], [undefined, [poll, poll]])
      system.set(41, gone)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid: 41, why: "no such process" })
    }))

  it.effect("is not watched, which is told, when the probe dies before it has found one", () =>
    Effect.gen(function*() {
      const dies = Effect.die(new Error("no permission"))
      const { events, exited } = yield* watch({ parentPid: dies, defaultPids: dies, inspect: () => dies })
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([yield* exited, events], [undefined, [
        { _tag: "ParentWatchDisabled", why: "there is no parent to watch" }
      ]])
    }))

  it.effect("does not count as another one when the probe could not tell our parent at the start", () =>
    Effect.gen(function*() {
      const system = makeSystem({ 42: alive() }, [42])
      let dies = true
      const parentPid = Effect.suspend(() => dies ? Effect.die(new Error("no permission")) : system.probe.parentPid)
      const { exited } = yield* watch({
        parentPid,
        defaultPids: system.probe.defaultPids,
        inspect: system.probe.inspect
      })
      dies = false
      yield* TestClock.adjust("30 seconds")
      assert.isUndefined(yield* exited)
      system.set(42, gone)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* exited, { _tag: "ParentExited", pid: 42, why: "no such process" })
    }))
})

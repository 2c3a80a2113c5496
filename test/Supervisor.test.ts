/**
 * Supervision of a process, with processes that are in memory and time that is the test's.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Process from "effect-stdio/Process"
import * as Router from "effect-stdio/Router"
import { JsonRpcError } from "effect-stdio/Schema"
import * as Supervisor from "effect-stdio/Supervisor"
import * as Transport from "effect-stdio/Transport"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as TestClock from "effect/testing/TestClock"

/** The processes of a test: each counts as one, and dies when it is told. */
const makeFakes = (options?: {
  /** Whether this start fails. */
  readonly fails?: (number: number) => boolean
  /** Whether this one is dead as soon as it has started. */
  readonly diesAtOnce?: (number: number) => boolean
}) => {
  /** What happened: starts, what was received, and how scopes were closed. */
  const log: Array<string> = []
  const servers: Array<Transport.Transport["Service"]> = []
  let starts = 0

  const start = Effect.gen(function*() {
    const number = ++starts
    log.push(`start ${number}`)
    if (options?.fails?.(number) === true) {
      return yield* new Process.ProcessError({ reason: new Process.NotFound({ command: "server" }) })
    }
    yield* Effect.addFinalizer((exit) =>
      Effect.sync(() => {
        log.push(`close ${number}${Exit.hasInterrupts(exit) ? " in a hurry" : ""}`)
      })
    )
    const [transport, server] = yield* Transport.makePair({ left: { framing: "line" } })
    servers.push(server)
    const router = Router.empty.pipe(
      Router.rawRequest("generation", () => Effect.succeed(number)),
      Router.rawRequest("never", () => Effect.never),
      Router.rawRequest("refuse", () => Effect.fail(new JsonRpcError({ code: 4000, message: "no" }))),
      Router.rawNotification("note", (params) =>
        Effect.sync(() => {
          log.push(`note ${number} ${JSON.stringify(params)}`)
        }))
    )
    yield* Peer.make(server, { router })
    if (options?.diesAtOnce?.(number) === true) yield* server.end
    return Process.Process.of({
      transport,
      pid: 1_000 + number,
      command: "server",
      exited: Effect.never,
      stderr: Stream.empty,
      stderrTail: Effect.succeed(""),
      end: Effect.succeed({})
    })
  })
  /** The process of the newest generation ends. */
  const crash = Effect.suspend(() => servers.at(-1)?.end ?? Effect.void).pipe(Effect.andThen(settled))
  return { log, start, crash, starts: () => starts }
}

/** Lets everything happen that is due now. */
const settled = Effect.andThen(TestClock.adjust(0), Effect.repeat(Effect.yieldNow, { times: 50 }))

/** Moves the clock and lets all happen that is due then. */
const pass = (time: Duration.Input) => Effect.andThen(TestClock.adjust(time), settled)

const lost = new Supervisor.ConnectionLost({
  reason: new Transport.TransportError({ reason: new Transport.InputEnded() })
})

const notSent = (method: string, state: Supervisor.NotSent["state"], failure?: Supervisor.Failure) =>
  new Supervisor.SupervisorError({
    reason: new Supervisor.NotSent({ method, state, ...(failure === undefined ? {} : { failure }) })
  })

const outcomeUnknown = (
  method: string,
  generation: number,
  reason: Transport.CloseReason = new Transport.InputEnded()
) =>
  new Supervisor.SupervisorError({
    reason: new Supervisor.OutcomeUnknown({ method, generation, reason: new Transport.TransportError({ reason }) })
  })

const healthOf = (supervisor: Supervisor.Supervisor["Service"]) => SubscriptionRef.get(supervisor.health)

const atOnce = Schedule.spaced(0)
const everySecond = Schedule.spaced("1 second")

/** Starts an effect, and returns how it ends. */
const begin = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(effect), { startImmediately: true })

const supervise = <RP = never, RH = never, RC = never>(
  fakes: ReturnType<typeof makeFakes>,
  options?: Supervisor.Options<RP, RH, RC>
) => Effect.tap(Supervisor.make(fakes.start, options), () => settled)

describe("a supervised process", () => {
  it.effect("is started, called, and ended with the scope, not in a hurry", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      yield* Effect.scoped(Effect.gen(function*() {
        const supervisor = yield* Supervisor.make(fakes.start)
        assert.strictEqual(yield* supervisor.call("generation"), 1)
        assert.deepStrictEqual(yield* healthOf(supervisor), { _tag: "Up", generation: 1, pid: 1_001 })
        assert.strictEqual(yield* supervisor.generation, 1)
      }))
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1"])
    }))

  it.effect("is started again when it ends, and nothing of the old one is left by then", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: everySecond })
      yield* fakes.crash
      assert.deepStrictEqual(yield* healthOf(supervisor), {
        _tag: "Restarting",
        delay: Duration.seconds(1),
        failure: lost
      })
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1"])
      yield* pass("999 millis")
      assert.strictEqual(fakes.starts(), 1)
      yield* pass("1 millis")
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1", "start 2"])
      assert.strictEqual(yield* supervisor.call("generation"), 2)
      assert.deepStrictEqual(yield* healthOf(supervisor), { _tag: "Up", generation: 2, pid: 1_002 })
    }))

  it.effect("tells each change of its health", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* Supervisor.make(fakes.start, { schedule: everySecond })
      const seen: Array<string> = []
      yield* SubscriptionRef.changes(supervisor.health).pipe(
        Stream.runForEach(({ _tag }) => Effect.sync(() => seen.push(_tag))),
        Effect.forkScoped({ startImmediately: true })
      )
      yield* settled
      yield* fakes.crash
      yield* pass("1 second")
      yield* supervisor.stop
      yield* settled
      assert.deepStrictEqual(seen.slice(-5), ["Up", "Restarting", "Starting", "Up", "Stopped"])
    }))

  it.effect("is a layer", () =>
    Effect.gen(function*() {
      const supervisor = yield* Supervisor.Supervisor
      assert.strictEqual(yield* supervisor.call("generation"), 1)
    }).pipe(Effect.provide(Layer.fresh(Supervisor.layer(makeFakes().start)))))
})

describe("restarts", () => {
  it.effect("wait longer each time: 0, 1, 2, 4, 8 … 30 seconds, give or take a fifth (F144)", () =>
    Effect.gen(function*() {
      const fakes = makeFakes({ fails: () => true })
      // the first restart, without a delay, has been made by then
      const supervisor = yield* supervise(fakes, { maxRestarts: 9 })
      for (const seconds of [1, 2, 4, 8, 16, 30, 30, 30]) {
        const health = yield* healthOf(supervisor)
        const delay = health._tag === "Restarting" ? Duration.toMillis(health.delay) : 0
        assert.isAtLeast(delay, seconds * 800)
        assert.isAtMost(delay, seconds * 1_200)
        yield* pass(delay)
      }
      assert.strictEqual(fakes.starts(), 10)
    }))

  it.effect("end with the sixth crash within a minute: calls fail at once, and nothing is started any more (F144)", () =>
    Effect.gen(function*() {
      const fakes = makeFakes({ fails: () => true })
      const lost = new Supervisor.NotStarted({
        cause: new Process.ProcessError({ reason: new Process.NotFound({ command: "server" }) })
      })
      const supervisor = yield* supervise(fakes, { schedule: everySecond })
      yield* pass("4999 millis")
      assert.strictEqual(fakes.starts(), 5)
      const waiting = yield* begin(supervisor.call("generation"))
      yield* pass("1 millis")
      assert.deepStrictEqual(yield* healthOf(supervisor), { _tag: "GaveUp", failure: lost })
      assert.deepStrictEqual(yield* Fiber.join(waiting), Result.fail(notSent("generation", "GaveUp", lost)))
      assert.deepStrictEqual(yield* Effect.flip(supervisor.call("m")), notSent("m", "GaveUp", lost))
      assert.deepStrictEqual(yield* Effect.flip(supervisor.notify("m")), notSent("m", "GaveUp", lost))
      assert.deepStrictEqual(yield* Effect.flip(supervisor.peer), notSent("peer", "GaveUp", lost))
      yield* pass("10 minutes")
      assert.strictEqual(fakes.starts(), 6)
    }))

  it.effect("go on for ever where the crashes are further apart", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: atOnce })
      for (let crash = 1; crash <= 20; crash++) {
        yield* pass("13 seconds")
        yield* fakes.crash
        yield* pass(0)
      }
      assert.strictEqual(yield* supervisor.call("generation"), 21)
    }))

  it.effect("begin with the first delay again after a minute of being up", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const schedule = Schedule.exponential("1 second")
      const supervisor = yield* supervise(fakes, { schedule })
      const delay = Effect.map(healthOf(supervisor), (health) =>
        health._tag === "Restarting" ? Duration.toMillis(health.delay) : undefined)
      yield* fakes.crash
      const first = yield* delay
      yield* pass("1 second")
      yield* pass("1 minute")
      yield* fakes.crash
      const again = yield* delay
      yield* pass(Duration.millis(again ?? 0))
      yield* pass("30 seconds")
      yield* fakes.crash
      const second = yield* delay
      assert.strictEqual(again, first)
      assert.strictEqual(second, 2 * (first ?? 0))
    }))

  it.effect("end where the schedule ends", () =>
    Effect.gen(function*() {
      const fakes = makeFakes({ diesAtOnce: () => true })
      const supervisor = yield* supervise(fakes, { schedule: Schedule.recurs(2) })
      yield* pass("1 second")
      assert.strictEqual(fakes.starts(), 3)
      assert.strictEqual((yield* healthOf(supervisor))._tag, "GaveUp")
    }))

  it.effect("come also when the process cannot be started, and say why", () =>
    Effect.gen(function*() {
      const fakes = makeFakes({ fails: (number) => number <= 2 })
      const supervisor = yield* supervise(fakes, { schedule: everySecond })
      const call = yield* begin(supervisor.call("m", {}, { timeout: "500 millis" }))
      yield* pass("500 millis")
      const error = yield* Effect.flip(Effect.fromResult(yield* Fiber.join(call)))
      assert.include(error.message, "m was not sent, the process is being restarted: cannot start server")
      yield* pass("2 seconds")
      assert.strictEqual(yield* supervisor.call("generation"), 3)
    }))

  it.effect("are cancelled by stop and by the end of the scope (F144)", () =>
    Effect.gen(function*() {
      for (const how of ["stop", "scope"] as const) {
        const fakes = makeFakes()
        const scope = yield* Scope.make()
        const supervisor = yield* Scope.provide(supervise(fakes, { schedule: everySecond }), scope)
        yield* fakes.crash
        yield* how === "stop" ? supervisor.stop : Scope.close(scope, Exit.void)
        yield* pass("1 hour")
        assert.deepStrictEqual(fakes.log, ["start 1", "close 1"])
        assert.deepStrictEqual(yield* healthOf(supervisor), { _tag: "Stopped" })
        assert.deepStrictEqual(yield* Effect.flip(supervisor.call("m")), notSent("m", "Stopped", lost))
        yield* Scope.close(scope, Exit.void)
      }
    }))
})

describe("a supervised call", () => {
  it.effect("that waits when the process ends has an unknown outcome", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes)
      const call = yield* begin(supervisor.call("never"))
      yield* settled
      yield* fakes.crash
      const expected = outcomeUnknown("never", 1)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(expected))
      assert.strictEqual(
        expected.message,
        "never was sent, and its outcome is unknown: the other side closed its output"
      )
    }))

  it.effect("that is repeated at once reaches the next generation", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: everySecond })
      const call = yield* begin(
        Effect.catchReason(
          supervisor.call("never"),
          "SupervisorError",
          "OutcomeUnknown",
          () => supervisor.call("generation")
        )
      )
      yield* settled
      yield* fakes.crash
      assert.isUndefined(call.pollUnsafe())
      yield* pass("1 second")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed(2))
    }))

  it.effect("made while the process restarts waits for the next one", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: everySecond })
      yield* fakes.crash
      const call = yield* begin(supervisor.call("generation"))
      const peer = yield* begin(Effect.flatMap(supervisor.peer, (peer) => peer.call("generation")))
      const used = yield* begin(supervisor.use((_, generation) => Effect.succeed(generation)))
      yield* pass("1 second")
      assert.deepStrictEqual(yield* Fiber.joinAll([call, peer, used]), [2, 2, 2].map(Result.succeed))
    }))

  it.effect("waits no longer than its deadline, and was not sent then", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: Schedule.spaced("1 minute") })
      yield* fakes.crash
      const call = yield* begin(supervisor.call("m", {}, { timeout: "10 seconds" }))
      const other = yield* begin(supervisor.notify("n"))
      yield* pass("10 seconds")
      const expected = notSent("m", "Restarting", lost)
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(expected))
      assert.strictEqual(
        expected.message,
        "m was not sent, the process is being restarted: the other side closed its output"
      )
      yield* pass("20 seconds")
      assert.deepStrictEqual(yield* Fiber.join(other), Result.fail(notSent("n", "Restarting", lost)))
    }))

  it.effect("has one deadline for waiting and for the answer", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: Schedule.spaced("6 seconds") })
      yield* fakes.crash
      const call = yield* begin(supervisor.call("never", {}, { timeout: "10 seconds" }))
      yield* pass("6 seconds")
      yield* pass("3999 millis")
      assert.isUndefined(call.pollUnsafe())
      yield* pass("1 millis")
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(new Peer.PeerError({ reason: new Peer.Timeout({ method: "never" }) }))
      )
    }))

  it.effect("without a deadline waits as long as it takes", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: Schedule.spaced("1 hour") })
      yield* fakes.crash
      const call = yield* begin(supervisor.call("generation", {}, { timeout: 0 }))
      yield* pass("1 hour")
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed(2))
    }))

  it.effect("gets the other side's error as it is", () =>
    Effect.gen(function*() {
      const supervisor = yield* supervise(makeFakes())
      assert.deepStrictEqual(
        yield* Effect.flip(supervisor.call("refuse")),
        new JsonRpcError({ code: 4000, message: "no" })
      )
    }))

  it.effect("may be typed, and several may be made of one generation", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes)
      const Generation = { params: Schema.Struct({}), result: Schema.Int }
      const two = supervisor.use((peer) =>
        Effect.all([Peer.request(peer, "generation", Generation, {}), Peer.request(peer, "generation", Generation, {})])
      )
      assert.deepStrictEqual(yield* two, [1, 1])
      const broken = yield* begin(supervisor.use((peer) => peer.call("never"), { method: "two steps" }))
      yield* settled
      yield* fakes.crash
      assert.deepStrictEqual(yield* Fiber.join(broken), Result.fail(outcomeUnknown("two steps", 1)))
    }))

  it.effect("in flight when the supervisor stops has an unknown outcome", () =>
    Effect.gen(function*() {
      const supervisor = yield* supervise(makeFakes())
      const call = yield* begin(supervisor.call("never"))
      yield* settled
      yield* supervisor.stop
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(outcomeUnknown("never", 1, new Transport.Ended())))
    }))

  it.effect("is a notification: it goes to the next generation where it could not be queued", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: everySecond })
      yield* supervisor.notify("note", { n: 1 })
      yield* settled
      yield* fakes.crash
      const note = yield* begin(supervisor.notify("note", { n: 2 }))
      yield* pass("1 second")
      assert.deepStrictEqual(yield* Fiber.join(note), Result.succeed(undefined))
      yield* settled
      assert.deepStrictEqual(fakes.log, ["start 1", "note 1 {\"n\":1}", "close 1", "start 2", "note 2 {\"n\":2}"])
    }))
})

describe("a handshake", () => {
  it.effect("is made with each generation, before all calls", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, {
        schedule: everySecond,
        handshake: (peer, generation) =>
          Effect.andThen(Effect.sleep("1 second"), peer.notify("note", { hello: generation }))
      })
      const first = yield* begin(supervisor.notify("note", {}))
      assert.deepStrictEqual(yield* healthOf(supervisor), { _tag: "Starting", generation: 1, attempt: 1 })
      yield* pass("1 second")
      yield* Fiber.join(first)
      yield* settled
      yield* fakes.crash
      yield* pass("1 second")
      assert.deepStrictEqual(yield* healthOf(supervisor), { _tag: "Starting", generation: 2, attempt: 2 })
      yield* pass("1 second")
      assert.deepStrictEqual(fakes.log, [
        "start 1",
        "note 1 {\"hello\":1}",
        "note 1 {}",
        "close 1",
        "start 2",
        "note 2 {\"hello\":2}"
      ])
    }))

  const failureOf = (handshake: (peer: Peer.Peer["Service"]) => Effect.Effect<unknown, unknown>) =>
    Effect.gen(function*() {
      const { crash, log, start } = makeFakes()
      const supervisor = yield* Supervisor.make(start, { schedule: Schedule.spaced("1 hour"), handshake })
      yield* settled
      const failure = Effect.map(
        healthOf(supervisor),
        (health) => health._tag === "Restarting" ? health.failure : undefined
      )
      return { crash, log, failure }
    })

  it.effect("that fails, dies or throws ends the generation", () =>
    Effect.gen(function*() {
      const error = new JsonRpcError({ code: 4000, message: "no" })
      const refused = yield* failureOf((peer) => peer.call("refuse"))
      const failure = yield* refused.failure
      assert.deepStrictEqual(failure, new Supervisor.HandshakeFailed({ cause: error }))
      assert.strictEqual(failure && Supervisor.describe(failure), "the handshake failed: no")
      assert.deepStrictEqual(refused.log, ["start 1", "close 1"])
      const defect = new Error("bug")
      const died = yield* failureOf(() => Effect.die(defect))
      assert.deepStrictEqual(yield* died.failure, new Supervisor.HandshakeFailed({ cause: defect }))
      const threw = yield* failureOf(() => {
        throw defect
      })
      assert.deepStrictEqual(yield* threw.failure, new Supervisor.HandshakeFailed({ cause: defect }))
    }))

  it.effect("that takes half a minute ends the generation", () =>
    Effect.gen(function*() {
      const never = yield* failureOf(() => Effect.never)
      yield* pass("30 seconds")
      const failure = yield* never.failure
      assert.strictEqual(failure && Supervisor.describe(failure), "the handshake failed: not over in 30s")
    }))

  it.effect("in which the process ends is told as that", () =>
    Effect.gen(function*() {
      const called = yield* failureOf((peer) => peer.call("never"))
      yield* called.crash
      assert.deepStrictEqual(yield* called.failure, lost)
      const waiting = yield* failureOf(() => Effect.never)
      yield* waiting.crash
      assert.deepStrictEqual(yield* waiting.failure, lost)
    }))
})

describe("a restart on demand", () => {
  it.effect("replaces the process without delay, and does not count", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { maxRestarts: 0 })
      for (let number = 2; number <= 10; number++) {
        yield* supervisor.restart
        assert.strictEqual(yield* supervisor.call("generation"), number)
      }
      assert.deepStrictEqual(fakes.log.slice(0, 4), ["start 1", "close 1", "start 2", "close 2"])
    }))

  it.effect("ends the delay of another", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: Schedule.spaced("1 hour") })
      yield* fakes.crash
      yield* supervisor.restart
      assert.strictEqual(yield* supervisor.call("generation"), 2)
    }))

  it.effect("starts again what was given up", () =>
    Effect.gen(function*() {
      const fakes = makeFakes({ diesAtOnce: (number) => number < 7 })
      const supervisor = yield* supervise(fakes, { schedule: atOnce })
      yield* pass(0)
      assert.strictEqual((yield* healthOf(supervisor))._tag, "GaveUp")
      yield* supervisor.restart
      assert.strictEqual(yield* supervisor.call("generation"), 7)
    }))

  it.effect("ends a start that takes too long", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, {
        handshake: (_, generation) => generation === 1 ? Effect.never : Effect.void
      })
      const call = yield* begin(supervisor.call("generation"))
      yield* supervisor.restart
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed(2))
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1", "start 2"])
    }))

  it.effect("is nothing after the stop", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes)
      yield* supervisor.stop
      yield* supervisor.restart
      yield* pass("1 hour")
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1"])
    }))
})

describe("a health check", () => {
  const check = (method: string): Supervisor.HealthCheck => ({
    call: (peer) => peer.call(method),
    every: "10 seconds",
    timeout: "1 second"
  })

  it.effect("that fails three times in a row replaces the process, in a hurry (F145)", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { schedule: atOnce, healthCheck: check("never") })
      yield* pass("11 seconds")
      yield* pass("11 seconds")
      yield* pass("10999 millis")
      assert.strictEqual(fakes.starts(), 1)
      yield* pass("1 millis")
      yield* pass(0)
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1 in a hurry", "start 2"])
      assert.strictEqual(yield* supervisor.call("generation"), 2)
    }))

  it.effect("that is answered, also with an error, leaves it alone (F145)", () =>
    Effect.gen(function*() {
      for (const method of ["generation", "refuse", "unknown"]) {
        const fakes = makeFakes()
        yield* supervise(fakes, { healthCheck: check(method) })
        yield* Effect.repeat(pass("5 seconds"), { times: 20 })
        assert.deepStrictEqual(fakes.log, ["start 1"])
      }
    }))

  it.effect("counts anew after one that was answered: a busy process is not taken for one that hangs (F145)", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      let checks = 0
      yield* supervise(fakes, {
        healthCheck: { ...check(""), call: (peer) => peer.call(++checks % 3 === 0 ? "generation" : "never") }
      })
      yield* Effect.repeat(pass("1 second"), { times: 120 })
      assert.isAbove(checks, 8)
      assert.deepStrictEqual(fakes.log, ["start 1"])
    }))

  it.effect("takes every message for a sign of life", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { healthCheck: check("never") })
      yield* Effect.repeat(
        Effect.andThen(Effect.timeoutOption(supervisor.call("generation"), "1 second"), pass("500 millis")),
        { times: 100 }
      )
      assert.deepStrictEqual(fakes.log, ["start 1"])
    }))
})

describe("a stop", () => {
  it.effect("ends a start, and whoever waits for it", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const supervisor = yield* supervise(fakes, { handshake: () => Effect.never })
      const call = yield* begin(supervisor.call("m"))
      yield* supervisor.stop
      assert.deepStrictEqual(yield* Fiber.join(call), Result.fail(notSent("m", "Stopped")))
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1"])
      yield* supervisor.stop
    }))
})

describe("a supervisor that is interrupted", () => {
  it.effect("ends the process in a hurry", () =>
    Effect.gen(function*() {
      const fakes = makeFakes()
      const program = yield* Effect.forkChild(
        Effect.scoped(Effect.andThen(Supervisor.make(fakes.start), Effect.never)),
        { startImmediately: true }
      )
      yield* settled
      yield* Fiber.interrupt(program)
      assert.deepStrictEqual(fakes.log, ["start 1", "close 1 in a hurry"])
    }))
})

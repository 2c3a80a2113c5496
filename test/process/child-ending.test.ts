/**
 * How children end, with all that they started, and that nothing of them is left in this process.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Process from "effect-stdio/Process"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { readdirSync, readlinkSync } from "node:fs"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import { child, peer, said } from "../utils/process.ts"

const FAST = { endTimeout: "300 millis", killTimeout: "300 millis" } as const

const millis = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([time, value]) => [Duration.toMillis(time), value] as const)

/** The fixture's pid, once its event told it. */
const startedBy = (host: Child.Child) => Effect.map(host.event("Started"), ({ pid }) => Number(pid))

describe("the end of a child", () => {
  it.live("has come when the fiber that owns it has been interrupted, also of a child that cares for nothing", () =>
    Effect.gen(function*() {
      for (const name of ["never-answers", "stays"]) {
        const started = yield* Deferred.make<number>()
        const owner = yield* Effect.forkChild(
          Effect.scoped(Effect.gen(function*() {
            const { pid } = yield* name === "stays"
              ? Process.make("/bin/sh", ["-c", "trap '' TERM; while :; do sleep 1; done"], { env: Child.environment })
              : child(name)
            yield* Deferred.succeed(started, pid)
            return yield* Effect.never
          }))
        )
        const pid = yield* Deferred.await(started)
        yield* Fiber.interrupt(owner)
        assert.isTrue(Os.isGone(pid), name)
      }
    }))

  it.live("comes with the first step that suffices, in order (F137)", () =>
    Effect.gen(function*() {
      const polite = yield* peer("answers", { child: FAST })
      yield* polite.peer.call("echo")
      assert.deepStrictEqual(yield* polite.process.end, { exitCode: 0 })

      const busy = yield* child("ignores-input-end", FAST)
      yield* said(busy, "READY")
      assert.deepStrictEqual(yield* busy.end, { exitCode: 9 })
      assert.strictEqual(yield* busy.stderrTail, "READY\nend\n")

      const stubborn = yield* child("ignores-sigterm", FAST)
      yield* said(stubborn, "READY")
      const [time, ended] = yield* millis(stubborn.end)
      assert.deepStrictEqual(ended, { signal: "SIGKILL" })
      assert.strictEqual(yield* stubborn.stderrTail, "READY\nend\nSIGTERM\n")
      assert.isAtLeast(time, 590)
      assert.isBelow(time, 2_000)
    }))

  it.live("takes the real server with it where the command only wraps it (F134)", () =>
    Effect.gen(function*() {
      const wrapper = yield* peer("wraps-a-server", { child: FAST })
      const server = Number(yield* wrapper.peer.call("pid"))
      yield* said(wrapper.process, "READY")
      assert.isFalse(Os.isGone(server))
      yield* wrapper.process.end
      assert.isTrue(Os.isGone(server))
      assert.deepStrictEqual(yield* wrapper.process.exited, { exitCode: 0 })
    }))

  it.live("takes the whole group of a shell with it (F134)", () =>
    Effect.gen(function*() {
      const shell = yield* Process.make(
        "/bin/sh",
        ["-c", "trap '' TERM; sleep 1000 & sleep 1000 & echo $! >&2; wait"],
        { ...FAST, env: Child.environment }
      )
      yield* said(shell, "\n")
      const sleeper = Number(yield* shell.stderrTail)
      assert.isFalse(Os.isGone(sleeper))
      yield* shell.end
      assert.isTrue(Os.isGone(sleeper))
    }))

  it.live("takes a stopped process too", () =>
    Effect.gen(function*() {
      const stopped = yield* child("answers", FAST)
      process.kill(stopped.pid, "SIGSTOP")
      yield* Os.eventually("the child stops", () => Os.isStopped(stopped.pid) || undefined)
      assert.deepStrictEqual(yield* stopped.end, { signal: "SIGKILL" })
    }))

  it.live("is over within 1.5 seconds when it is interrupted, whatever the child does", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const stubborn = yield* Scope.provide(child("ignores-sigterm"), scope)
      yield* said(stubborn, "READY")
      const [time] = yield* millis(Scope.close(scope, Exit.interrupt()))
      assert.isTrue(Os.isGone(stubborn.pid))
      assert.isBelow(time, 1_500)
    }))

  it.live("comes at once for a child that is interrupted while it starts", () =>
    Effect.gen(function*() {
      const starting = yield* Effect.forkChild(Effect.scoped(Effect.andThen(child("answers"), Effect.never)))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(starting)
      yield* Os.eventually(
        "it ends",
        () => Os.withEnvironment(`EFFECT_STDIO_TEST=${Child.environment.EFFECT_STDIO_TEST}`).length === 0 || undefined
      )
    }))

  it.live("does not wait for what it writes: a child that floods its output ends with its input", () =>
    Effect.gen(function*() {
      const flood = yield* Process.make(Child.runtime, [
        "-e",
        "const x = 'x'.repeat(1e6); const go = () => { while (process.stdout.write(x)); process.stdout.once('drain', go) }; go(); process.stdin.on('end', () => process.exit(0)).resume()"
      ], { env: Child.environment })
      yield* Os.eventually("it has written", () => flood.pid > 0 || undefined)
      const [time, ended] = yield* millis(flood.end)
      assert.deepStrictEqual(ended, { exitCode: 0 })
      assert.isBelow(time, 1_900)
    }))
})

describe("a program with a child", () => {
  it.live("that gets a signal ends the child within its 1.5 seconds and leaves with 0", () =>
    Effect.gen(function*() {
      const host = yield* Child.node("test/fixtures/children/hosts-a-child.ts")
      const pid = yield* startedBy(host)
      yield* host.kill("SIGTERM")
      const [time, ended] = yield* millis(host.exit)
      assert.deepStrictEqual(ended, { code: 0, signal: null })
      assert.isBelow(time, 1_900)
      yield* Os.gone(pid)
    }))

  it.live("that exits without closing anything kills it", () =>
    Effect.gen(function*() {
      const host = yield* Child.node("test/fixtures/children/hosts-a-child.ts", ["exit"])
      const pid = yield* startedBy(host)
      assert.deepStrictEqual(yield* host.exit, { code: 7, signal: null })
      yield* Os.gone(pid)
    }))

  it.live("that exits without closing anything kills also what an ended child has left in its group", () =>
    Effect.gen(function*() {
      const host = yield* Child.node("test/fixtures/children/hosts-an-orphan.ts")
      const pid = yield* startedBy(host)
      assert.isAbove(pid, 1)
      assert.deepStrictEqual(yield* host.exit, { code: 7, signal: null })
      yield* Os.gone(pid)
    }))
})

describe("this process", () => {
  it.live("gives a child none of its descriptors", () =>
    Effect.gen(function*() {
      const started = yield* peer("answers")
      yield* started.peer.call("echo")
      if (!Os.isLinux) return
      const link = (pid: number | "self", fd: number) => readlinkSync(`/proc/${pid}/fd/${fd}`)
      for (const fd of [0, 1, 2]) {
        assert.notInclude([0, 1, 2].map((own) => link("self", own)), link(started.process.pid, fd))
      }
    }))

  it.live("has no more listeners and descriptors after 1,000 children than before, and warns of nothing (F149)", () =>
    Effect.gen(function*() {
      const warnings: Array<Error> = []
      const onWarning = (warning: Error) => warnings.push(warning)
      process.on("warning", onWarning)
      const counts = () => ({
        listeners: [process, process.stdin, process.stdout, process.stderr].map((emitter) =>
          emitter.eventNames().map((name) => [name, emitter.listenerCount(name)])
        ),
        descriptors: Os.isLinux ? readdirSync("/proc/self/fd").length : 0
      })
      const connect = Effect.scoped(Effect.gen(function*() {
        const cat = yield* Process.make("/bin/cat", [], { env: Child.environment })
        const echo = yield* Peer.make(cat.transport, { onBadInput: "count" })
        // our own request comes back, and is answered by us
        assert.strictEqual((yield* Effect.flip(echo.call("m")))._tag, "JsonRpcError")
      }))
      yield* connect
      const before = counts()
      yield* Effect.repeat(Effect.all(Array.from({ length: 10 }, () => connect), { concurrency: 10 }), { times: 99 })
      // a pipe that was closed is given back in the next turn
      yield* Os.eventually("the descriptors are closed", () => counts().descriptors <= before.descriptors || undefined)
      assert.deepStrictEqual(counts().listeners, before.listeners)
      assert.deepStrictEqual(warnings, [])
      process.off("warning", onWarning)
    }))

  it.live("sees no error of a pipe that nobody looks at, whenever the child dies (F129)", () =>
    Effect.gen(function*() {
      for (let round = 0; round < 20; round++) {
        const killed = yield* peer("never-answers")
        yield* killed.peer.notify("m", { text: "x".repeat(500_000) })
        process.kill(killed.process.pid, "SIGKILL")
        yield* killed.peer.notify("m", { text: "x".repeat(500_000) }).pipe(Effect.ignore)
        yield* killed.process.exited
      }
    }))
})

Child.leavesNothingBehind()

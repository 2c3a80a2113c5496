/**
 * Supervision of real processes: those that crash, those that hang, and those that are only busy.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Supervisor from "effect-stdio/Supervisor"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { join } from "node:path"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import { child, exitOf } from "../utils/process.ts"

/** A test whose restarts are not logged. */
const quiet = (name: string, test: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(name, () => Effect.provide(test(), Logger.layer([])))

const soon = Schedule.spaced("5 millis")

type Up = Extract<Supervisor.Health, { readonly _tag: "Up" }>

/** Returns when a generation is up that is not older than this one. */
const up = (supervisor: Supervisor.Supervisor["Service"], generation: number) =>
  SubscriptionRef.changes(supervisor.health).pipe(
    Stream.filter((health): health is Up => health._tag === "Up" && health.generation >= generation),
    Stream.runHead,
    Effect.flatMap(Effect.fromOption),
    Effect.timeout("20 seconds"),
    Effect.orDie
  )

const healthCheck = (every: Duration.Input): Supervisor.HealthCheck => ({
  call: (peer) => peer.call("ping"),
  every,
  timeout: every,
  failures: 4
})

describe("a supervised process", () => {
  quiet("that crashes 20 times is there for the call that waited (F144)", () =>
    Effect.gen(function*() {
      const file = join(yield* Child.temporaryFolder, "starts")
      const supervisor = yield* Supervisor.make(child("exits-so-often", { args: [file, "20"] }), {
        schedule: soon,
        maxRestarts: 20,
        // a process that ends at once is up for a moment, and must not be called in it
        handshake: (peer) => peer.call("initialize")
      })
      assert.strictEqual(yield* supervisor.call("starts"), 21)
      assert.strictEqual(yield* supervisor.generation, 21)
    }))

  quiet("that crashes for ever is given up, with its last words (F144)", () =>
    Effect.gen(function*() {
      const supervisor = yield* Supervisor.make(child("exits-at-once"), {
        schedule: soon,
        handshake: (peer) => peer.call("initialize")
      })
      const error = yield* Effect.flip(supervisor.call("m"))
      assert.instanceOf(error, Supervisor.SupervisorError)
      assert.include(error.message, "m was not sent, the process is not started again")
      assert.include(error.message, "Cannot find module 'left-pad'")
      assert.strictEqual(yield* supervisor.generation, 6)
    }))

  quiet(
    "that is killed in the midst of a call is replaced: the call says so, the next one is served",
    () =>
      Effect.gen(function*() {
        const supervisor = yield* Supervisor.make(child("never-answers"), { schedule: soon })
        const { pid } = yield* up(supervisor, 1)
        const [error] = yield* Effect.all([
          Effect.flip(supervisor.call("m")),
          Effect.andThen(Effect.sleep(50), Effect.sync(() => process.kill(pid, "SIGKILL")))
        ], { concurrency: 2 })
        assert.instanceOf(error, Supervisor.SupervisorError)
        if (!(error instanceof Supervisor.SupervisorError) || error.reason._tag !== "OutcomeUnknown") throw error
        assert.deepInclude(exitOf(error.reason.reason.reason), { signal: "SIGKILL" })
        const next = yield* up(supervisor, 2)
        assert.notStrictEqual(next.pid, pid)
      })
  )

  quiet("that is missing is told as that", () =>
    Effect.gen(function*() {
      const supervisor = yield* Supervisor.make(child("answers", { cwd: "/no/such/folder" }), { schedule: soon })
      const error = yield* Effect.flip(supervisor.call("m"))
      assert.include(error.message, "its working directory /no/such/folder is no folder")
    }))

  quiet("that is stopped is found out and replaced (F145)", () =>
    Effect.gen(function*() {
      const supervisor = yield* Supervisor.make(child("blocks"), {
        schedule: soon,
        healthCheck: healthCheck("100 millis")
      })
      const { pid } = yield* up(supervisor, 1)
      process.kill(pid, "SIGSTOP")
      const next = yield* up(supervisor, 2)
      assert.isTrue(Os.isGone(pid))
      assert.strictEqual(yield* supervisor.call("pid"), next.pid)
    }))

  quiet("that is busy for 2.5 seconds is left alone (F145)", () =>
    Effect.gen(function*() {
      const supervisor = yield* Supervisor.make(child("blocks"), { healthCheck: healthCheck("500 millis") })
      const { pid } = yield* up(supervisor, 1)
      assert.strictEqual(yield* supervisor.call("block", { ms: 2_500 }), pid)
      assert.strictEqual(yield* supervisor.generation, 1)
    }))

  quiet("is gone when the scope has closed, also one that does not want to be", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const supervisor = yield* Scope.provide(
        Supervisor.make(child("ignores-sigterm", { endTimeout: "100 millis", killTimeout: "100 millis" })),
        scope
      )
      const { pid } = yield* up(supervisor, 1)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Os.isGone(pid))
    }))
})

Child.leavesNothingBehind()

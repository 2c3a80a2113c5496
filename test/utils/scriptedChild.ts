/**
 * A child process that does what a test tells it, for everything about processes that is a matter of time.
 */
import * as Process from "effect-stdio/Process"
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import type { Child, Ended, Spawner as SpawnerShape, Spec } from "../../src/internal/adapters/spawner.ts"
import { Spawner } from "../../src/internal/adapters/spawner.ts"

const encoder = new TextEncoder()

export interface Options {
  readonly isWindows?: boolean
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** What happens to the child, told when its input ends and when it gets a signal. */
  readonly on?: Partial<Record<"end" | "SIGTERM" | "SIGKILL", (script: Script) => void>>
}

/** What a test does in the place of the child. */
export interface Script {
  /** What was asked of it, each with the milliseconds since the start. */
  readonly log: Array<readonly [millis: number, what: string]>
  readonly specs: Array<Spec>
  /** What it was sent. */
  readonly received: () => string
  /** The leader ends; whoever else is in its group lives on. */
  readonly exit: (ended: Ended) => void
  /** Nobody of the group is left. */
  readonly groupEnds: () => void
  /** Writes to standard output. */
  readonly print: (text: string) => void
  /** Nobody holds standard output and standard error any more. */
  readonly endOutput: () => void
  readonly logs: (text: string) => void
  /** All three, as of a child without children. */
  readonly leave: (ended: Ended) => void
}

/** A child, and what starts it. */
export const make = Effect.fnUntraced(function*(options?: Options) {
  const clock = yield* Clock.Clock
  const begun = clock.currentTimeMillisUnsafe()
  const log: Script["log"] = []
  const specs: Array<Spec> = []
  const stdout = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  const exited = Deferred.makeUnsafe<Ended>()
  const outputEnded = Deferred.makeUnsafe<void>()
  const closed = Deferred.makeUnsafe<never, unknown>()
  let received = ""
  let isGroupGone = false
  let listen: ((chunk: Uint8Array | undefined) => void) | undefined

  const note = (what: string) => {
    log.push([clock.currentTimeMillisUnsafe() - begun, what])
  }
  const script: Script = {
    log,
    specs,
    received: () => received,
    exit: (ended) => {
      Deferred.doneUnsafe(exited, Exit.succeed(ended))
    },
    groupEnds: () => {
      isGroupGone = true
    },
    print: (text) => {
      Queue.offerUnsafe(stdout, encoder.encode(text))
    },
    endOutput: () => {
      Queue.endUnsafe(stdout)
      listen?.(undefined)
      Deferred.doneUnsafe(outputEnded, Exit.void)
    },
    logs: (text) => listen?.(encoder.encode(text)),
    leave: (ended) => {
      script.groupEnds()
      script.endOutput()
      script.exit(ended)
    }
  }
  const told = (what: "end" | "SIGTERM" | "SIGKILL") => {
    note(what)
    options?.on?.[what]?.(script)
  }
  const writes = Sink.forEach((chunk: Uint8Array) =>
    Effect.sync(() => {
      received += new TextDecoder().decode(chunk)
    })
  )
  const child: Child = {
    pid: 4711,
    stdin: Sink.fromTransform<Uint8Array, void, unknown, never>((upstream, scope) =>
      Effect.raceFirst(writes.transform(upstream, scope), Deferred.await(closed))
    ).pipe(Sink.ensuring(Effect.sync(() => told("end")))),
    stdout: Stream.fromQueue(stdout),
    onStderr: (listener) => {
      listen = listener
    },
    exited: Deferred.await(exited),
    outputEnded: Deferred.await(outputEnded),
    release: Effect.void,
    close: Effect.sync(() => {
      note("close")
      script.endOutput()
      Deferred.doneUnsafe(closed, Exit.fail({ code: "EPIPE" }))
    }),
    signal: (name) => Effect.sync(() => told(name)),
    isGone: Effect.sync(() => isGroupGone)
  }
  const spawner: SpawnerShape = {
    isWindows: options?.isWindows ?? false,
    environment: Effect.succeed(options?.environment ?? {}),
    spawn: (spec) =>
      Effect.sync(() => {
        specs.push(spec)
        return child
      })
  }
  const start = (
    processOptions?: Process.Options,
    command = "server",
    args: Parameters<typeof Process.make>[1] = ["--stdio"]
  ) => Effect.provideService(Process.make(command, args, processOptions), Spawner, spawner)
  return { ...script, start }
})

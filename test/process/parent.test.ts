import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync } from "node:fs"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"

const PERL = "/usr/bin/perl"
const PRCTL = { x64: 157, arm64: 167 }[process.arch as string]

const server = [Child.runtime, Child.path(Child.PROBE), "--events", "--parent-poll", "200ms"]
const host = [process.execPath, Child.path("test/fixtures/host.ts")]

/** Runs a command, and then holds the pipes for as long as it lives. */
const holder = ["/bin/sh", "-c", "\"$@\"; exec sleep 600", "holder"]

/** Runs a command and holds the pipes, but never asks how the command ended, so that it becomes a zombie. */
const negligentHolder = ["/bin/sh", "-c", "exec 3<&0; \"$@\" <&3 3<&- & exec 3<&-; exec sleep 600", "holder"]

/** Starts a command line, and returns the pids of the host in it and its child when the server has answered. */
const start = ([command = "", ...args]: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const child = yield* Child.start(command, args)
    yield* child.call("ping")
    const spawned = yield* child.event("Spawned")
    return { child, host: Number(spawned["host"]), spawned: Number(spawned["server"]) }
  })

const kill = (pid: number) => Effect.sync(() => process.kill(pid, "SIGKILL"))

/** Returns when the server has ended and has said that this parent is gone. */
const leaves = (child: Child.Child, pid: number, why: RegExp) =>
  Effect.gen(function*() {
    const stopped = yield* child.event("Stopped")
    const exit = yield* child.event("ParentExit")
    assert.strictEqual(exit["pid"], pid)
    assert.match(String(exit["why"]), why)
    assert.deepStrictEqual(stopped["reason"], { ...exit, _tag: "ParentExited" })
  })

describe.runIf(Os.isLinux)("a server whose host is killed, while somebody else holds its pipes", () => {
  it.live("leaves and says why (F64)", () =>
    Effect.gen(function*() {
      const { child, host: pid, spawned } = yield* start([...holder, ...host, ...server])
      yield* kill(pid)
      yield* leaves(child, pid, /no such process/)
      yield* Os.gone(spawned)
      yield* child.kill("SIGKILL")
    }))

  it.live("leaves when nobody waits for the host, which is a zombie then", () =>
    Effect.gen(function*() {
      const { child, host: pid, spawned } = yield* start([...negligentHolder, ...host, ...server])
      yield* kill(pid)
      yield* leaves(child, pid, /zombie/)
      yield* Os.gone(spawned)
      assert.isTrue(Os.isZombie(pid))
      yield* child.kill("SIGKILL")
    }))

  it.live.runIf(existsSync(PERL) && PRCTL !== undefined)(
    "leaves when a service manager takes the place of its parent (F58)",
    () =>
      Effect.gen(function*() {
        const manager = [PERL, Child.path("test/fixtures/subreaper.pl"), String(PRCTL)]
        const { child, host: pid, spawned } = yield* start([...manager, ...host, ...server])
        yield* kill(pid)
        yield* Os.eventually("the manager to be the parent", () => Os.parentOf(spawned) === child.pid || undefined)
        yield* leaves(child, pid, /no such process|our parent is now/)
        // the manager ends with its last descendant
        assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
      })
  )

  const wrappers = [
    ["sh", ["/bin/sh", "-c", "\"$@\"; echo \"exit code $?\" >&2", "sh", ...server]],
    ["npm exec", ["npm", "exec", "--offline", "-c", server.join(" ")]],
    ["npx", ["npx", "--offline", "-c", server.join(" ")]]
  ] as const
  for (const [wrapper, command] of wrappers) {
    it.live(`leaves also behind ${wrapper}, which outlives the host (F56)`, () =>
      Effect.gen(function*() {
        const { child, host: pid, spawned } = yield* start([...holder, ...host, ...command])
        yield* kill(pid)
        // the wrapper, which stands nearer, would be named if it had gone first
        yield* leaves(child, pid, /no such process/)
        yield* Os.gone(spawned)
        if (wrapper === "sh") assert.include(child.stderr(), "exit code 0\n")
        yield* child.kill("SIGKILL")
      }))
  }
})

describe("a server that is told whom to watch", () => {
  it.live("leaves when that process ends (F64)", () =>
    Effect.gen(function*() {
      const watched = yield* Child.readyProbe()
      const child = yield* Child.readyProbe(["--parent-pid", String(watched.pid), "--parent-poll", "200ms"])
      yield* watched.kill("SIGKILL")
      assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
      yield* leaves(child, watched.pid, /no such process/)
    }))

  it.live("watches nobody when that process is not there at the start, and ends with its input (F63)", () =>
    Effect.gen(function*() {
      const dead = yield* Child.probe()
      yield* dead.kill("SIGKILL")
      yield* dead.closed
      const child = yield* Child.probe(["--parent-pid", String(dead.pid), "--parent-poll", "50ms"])
      // several polls long
      yield* child.call("sleep", { ms: 300 })
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
      assert.deepStrictEqual(
        child.events.filter(({ _tag }) => _tag === "ParentWatchDisabled" || _tag === "ParentExit").map(({ why }) =>
          why
        ),
        [`process ${dead.pid} is not alive at the start: no such process`]
      )
      assert.deepStrictEqual(child.events.at(-1)?.["reason"], { _tag: "InputEnded" })
    }))
})

Child.leavesNothingBehind()

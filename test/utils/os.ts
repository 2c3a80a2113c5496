/**
 * What the operating system knows of processes, for tests that start some.
 */
import * as Effect from "effect/Effect"
import { readdirSync, readFileSync } from "node:fs"
import { constants } from "node:os"

/** Whether `/proc` is there: memory, process states and parents can only be read on Linux. */
export const isLinux = process.platform === "linux"

const LIMIT = 15_000
const POLL = 10

/** Looks at a fact of the operating system again and again, with a limit, and returns what was found. */
export const eventually = <A>(what: string, look: () => A | undefined): Effect.Effect<A> =>
  Effect.gen(function*() {
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      yield* Effect.sleep(POLL)
    }
  }).pipe(
    Effect.timeoutOrElse({ duration: LIMIT, orElse: () => Effect.die(new Error(`${what}: not within ${LIMIT} ms`)) })
  )

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** The state of a process as one letter (R, S, T, Z …); undefined when there is none. */
const stat = (pid: number) => {
  const text = read(`/proc/${pid}/stat`)
  const [state, parent] = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return state === undefined || state === "" ? undefined : { state, parent: Number(parent) }
}

/** Whether a process has ended; a zombie has. */
export const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return true
  }
  const state = stat(pid)?.state
  return state === "Z" || state === "X"
}

/** Returns when a process has ended. */
export const gone = (pid: number): Effect.Effect<true> =>
  eventually(`process ${pid} ends`, () => isGone(pid) || undefined)

/** Whether a process is stopped, as SIGSTOP does it. */
export const isStopped = (pid: number): boolean => stat(pid)?.state === "T"

/** The parent of a process. */
export const parentOf = (pid: number): number | undefined => stat(pid)?.parent

/** Whether a process has ended and nobody has asked how. */
export const isZombie = (pid: number): boolean => stat(pid)?.state === "Z"

/** Returns when a signal that was sent has reached the process's handler. */
export const delivered = (pid: number, signal: NodeJS.Signals): Effect.Effect<true> =>
  eventually(`${signal} reaches process ${pid}`, () => {
    const pending = /^ShdPnd:\s*([0-9a-f]+)$/m.exec(read(`/proc/${pid}/status`))?.[1]
    const bit = 1n << BigInt(constants.signals[signal] - 1)
    return pending !== undefined && (BigInt(`0x${pending}`) & bit) === 0n ? true : undefined
  })

/** Resident memory of a process in MiB: now (VmRSS) or the most it ever had (VmHWM). */
export const memory = (pid: number, which: "VmRSS" | "VmHWM"): number =>
  Number(new RegExp(`^${which}:\\s*(\\d+) kB$`, "m").exec(read(`/proc/${pid}/status`))?.[1]) / 1_024

/** The pids of all processes whose environment has this entry, where that can be read. */
export const withEnvironment = (entry: string): ReadonlyArray<number> =>
  isLinux
    ? readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/environ`).split("\0").includes(entry))
      .map(Number)
      .filter((pid) => !isGone(pid))
    : []

/**
 * The last word on the process tests: when all of them are over, no process is left that any of them started.
 *
 * The run has a mark in its environment, which everything inherits that its tests start, and what those start in turn.
 */
import { execFileSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { isGone, isLinux } from "./os.ts"

const NAME = "EFFECT_STDIO_TEST_RUN"
// what vitest itself has started has the mark too, and may still be there
const RUNNER = /(^|[/\\ ])vitest([-/\\ ]|$)/
const LIMIT = 10_000
const POLL = 50

interface Left {
  readonly pid: number
  readonly commandLine: string
}

export const setup = (): () => Promise<void> => {
  const mark = `${NAME}=${randomUUID()}`
  process.env[NAME] = mark.slice(NAME.length + 1)
  return async () => {
    const begun = performance.now()
    let left = find(mark)
    for (; left.length > 0 && performance.now() - begun < LIMIT; left = find(mark)) await sleep(POLL)
    if (left.length === 0) return
    for (const { pid } of left) {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // it ended in the meantime
      }
    }
    throw new Error(
      `tests left processes behind:\n${left.map(({ commandLine, pid }) => `${pid}  ${commandLine}`).join("\n")}`
    )
  }
}

const find = (mark: string): ReadonlyArray<Left> =>
  (isLinux ? fromProc(mark) : process.platform === "win32" ? [] : fromPs(mark)).filter(({ commandLine, pid }) =>
    pid !== process.pid && !RUNNER.test(commandLine) && !isGone(pid)
  )

const fromProc = (mark: string): ReadonlyArray<Left> =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/environ`).split("\0").includes(mark))
    .map((name) => ({ pid: Number(name), commandLine: read(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim() }))

/** `ps` shows the environment behind the command line, of our own processes. */
const fromPs = (mark: string): ReadonlyArray<Left> =>
  execFileSync("ps", ["-axEww", "-o", "pid=,command="], { encoding: "utf8", maxBuffer: 2 ** 26 }).split("\n")
    .filter((line) => line.includes(mark))
    .map((line) => ({ pid: Number.parseInt(line, 10), commandLine: line.trim().slice(0, 200) }))

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // gone between two looks, or not ours to read
    return ""
  }
}

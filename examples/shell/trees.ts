/**
 * All processes that a command has started, found and ended.
 *
 * On Linux they are known by three marks: the session, which bash leads; a variable in their environment, which stays
 * with a process that leaves the session; and their parents. On other systems of its kind it is the process group, and on
 * Windows the tree that `taskkill` sees while bash lives.
 *
 * @since 0.1.0
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"

/**
 * What is known of a command that was started.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tree {
  /** The pid of bash, which leads a session and a group of its own. */
  readonly leader: number
  /** What stands in the environment of all that it started, and of nobody else. */
  readonly mark: string
  /** Whether bash has ended. */
  hasEnded: boolean
  /** Whether its group and session were empty when it ended: its number may be given to another process then. */
  isGroupGone: boolean
}

// Linux, where it is mounted
const hasProc = process.platform === "linux" && existsSync("/proc/self/stat")
const isWindows = process.platform === "win32"
// milliseconds
const TASKKILL_LIMIT = 2_000

/**
 * The living processes of a tree that can be signalled, as numbers that `kill` takes: the pids where they can be found out, else minus that of
 * the group.
 *
 * @category combinators
 * @since 0.1.0
 */
export const members = (tree: Tree): ReadonlyArray<number> => {
  if (isWindows) return tree.hasEnded ? [] : [tree.leader]
  if (hasProc) return membersByMarks(tree)
  return tree.isGroupGone || !canSignal(-tree.leader) ? [] : [-tree.leader]
}

/**
 * Whether a member has ended; a zombie has.
 *
 * @category guards
 * @since 0.1.0
 */
export const isGone = (tree: Tree, member: number): boolean => {
  if (isWindows) return tree.hasEnded
  if (!canSignal(member)) return true
  return hasProc && isDead(statOf(String(member)))
}

/**
 * Sends a signal to members of a tree, once to each. SIGKILL goes to the group as a whole, too, so that none is missed
 * that was born in between.
 *
 * @category combinators
 * @since 0.1.0
 */
export const signal = (tree: Tree, to: ReadonlyArray<number>, name: "SIGTERM" | "SIGKILL"): void => {
  if (isWindows) {
    // there is no gentle way; and the tree can be found only while bash is there
    if (to.length > 0 && !tree.hasEnded) {
      spawnSync("taskkill", ["/pid", String(tree.leader), "/T", "/F"], { windowsHide: true, timeout: TASKKILL_LIMIT })
    }
    return
  }
  // a program may take a second SIGTERM for the wish to end at once, without cleaning up
  const isGroup = name === "SIGKILL" || to.length === 0 || !hasProc
  if (!tree.isGroupGone && isGroup && !to.includes(-tree.leader)) send(-tree.leader, name)
  for (const member of to) send(member, name)
}

/**
 * Notes that bash has ended.
 *
 * @category combinators
 * @since 0.1.0
 */
export const ended = (tree: Tree): void => {
  tree.hasEnded = true
  tree.isGroupGone = isWindows ||
    (hasProc ? !allLiving().some((stat) => isBelow(tree, stat)) : !canSignal(-tree.leader))
}

interface Stat {
  readonly pid: number
  readonly state: string
  readonly parent: number
  readonly group: number
  readonly session: number
}

const membersByMarks = (tree: Tree): ReadonlyArray<number> => {
  const living = allLiving()
  const found = new Set(
    living.filter((stat) =>
      (!tree.isGroupGone && isBelow(tree, stat)) || read(`/proc/${stat.pid}/environ`).includes(tree.mark)
    ).map(({ pid }) => pid)
  )
  for (let before = -1; before < found.size;) {
    before = found.size
    for (const { parent, pid } of living) if (found.has(parent)) found.add(pid)
  }
  // those of another user would be waited for in vain
  return [...found].filter(canSignal)
}

const allLiving = (): ReadonlyArray<Stat> =>
  readdirSync("/proc").flatMap((name) => {
    const stat = /^\d+$/.test(name) ? statOf(name) : undefined
    return stat === undefined || isDead(stat) ? [] : [stat]
  })

const isBelow = ({ leader }: Tree, { group, session }: Stat): boolean => group === leader || session === leader

/** The name of the program in parentheses may hold spaces and parentheses. */
const statOf = (pid: string): Stat | undefined => {
  const text = read(`/proc/${pid}/stat`)
  const [state = "", parent, group, session] = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return state === ""
    ? undefined
    : { pid: Number(pid), state, parent: Number(parent), group: Number(group), session: Number(session) }
}

const isDead = (stat: Stat | undefined): boolean => stat === undefined || stat.state === "Z" || stat.state === "X"

const read = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    // gone between two looks, or not ours to read
    return ""
  }
}

const send = (pid: number, name: NodeJS.Signals | 0): boolean => {
  try {
    process.kill(pid, name)
    return true
  } catch {
    // ESRCH: it ended in the meantime; EPERM: it belongs to somebody else by now, or is a zombie of macOS
    return false
  }
}

const canSignal = (pid: number): boolean => send(pid, 0)

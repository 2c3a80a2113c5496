/**
 * Looks at the operating system's processes for the Watchdog.
 *
 * A signal of 0 tells whether a pid exists; on Linux `/proc` also tells a zombie from the living, a later process of the
 * same pid from the one that was there, and what stands above our parent. A probe never throws, and what it cannot find
 * out counts as alive.
 *
 * @module
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Watchdog from "./Watchdog.ts"

const SHELLS = new Set(["sh", "bash", "dash", "ash", "zsh"])
const RUNNERS = new Set(["npm", "npx", "pnpm", "pnpx", "yarn", "bunx", "uv", "uvx"])
const RUNNER_SCRIPTS = new Set([
  "npm-cli.js",
  "npx-cli.js",
  "npm",
  "npx",
  "pnpm",
  "pnpm.cjs",
  "pnpm.mjs",
  "yarn",
  "yarn.js"
])
const MAX_ANCESTORS = 16

/**
 * Tells whether a command line is that of a wrapper: a shell that runs a script, or a package runner such as npx, which
 * outlive the host that started them. A shell without arguments is somebody's terminal, and so a host.
 *
 * @category guards
 * @since 0.1.0
 */
export const isWrapper = (commandLine: ReadonlyArray<string>): boolean => {
  const [program, ...args] = commandLine
  if (program === undefined) return false
  // npm sets its process title, so that its command line is one string: "npm exec server"
  const name = Path.basename(program.split(" ")[0] ?? "").replace(/^-/, "")
  if (SHELLS.has(name)) return args.some((arg) => arg !== "-i" && arg !== "-l" && arg !== "--login")
  if (RUNNERS.has(name)) return true
  if (name === "bun") return isBunRunner(args.filter((arg) => !arg.startsWith("-")))
  const script = args.find((arg) => !arg.startsWith("-"))
  return /^node(js)?$/.test(name) && script !== undefined && RUNNER_SCRIPTS.has(Path.basename(script))
}

/** `bun x` and `bun run <script>`, but not `bun run <file>`, which is the program itself. */
const isBunRunner = ([command, what]: ReadonlyArray<string>): boolean =>
  command === "x" || (command === "run" && what !== undefined && !/\.[cm]?[jt]sx?$/.test(what))

/**
 * The probe of this process's operating system.
 *
 * @category constructors
 * @since 0.1.0
 */
export const probe: Watchdog.Probe = {
  parentPid: Effect.sync(() => process.ppid),
  defaultPids: Effect.sync(() => ancestors(process.ppid)),
  inspect: (pid) => Effect.sync(() => inspect(pid))
}

/**
 * Layer that lets the Watchdog look at the processes of the operating system.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never> = Layer.succeed(Watchdog.Probe, probe)

const ancestors = (parent: number): ReadonlyArray<number> => {
  const pids = parent > 0 ? [parent] : []
  for (let pid = parent; pids.length < MAX_ANCESTORS && isWrapper(commandLine(pid));) {
    const above = stat(pid)?.parent
    // init and what has no parent stand above everything, they are nobody's host
    if (above === undefined || above <= 1) break
    pids.push(above)
    pid = above
  }
  return pids
}

const inspect = (pid: number): Watchdog.Liveness => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it exists and is not ours
    if (Predicate.hasProperty(error, "code") && error.code === "ESRCH") return { _tag: "Gone", why: "no such process" }
    return { _tag: "Alive" }
  }
  const seen = stat(pid)
  if (seen === undefined) return { _tag: "Alive" }
  if (seen.state === "Z" || seen.state === "X") return { _tag: "Gone", why: "it has ended (a zombie)" }
  return { _tag: "Alive", identity: seen.startTime }
}

/** The fields of `/proc/<pid>/stat` that matter here; the name before them may hold spaces and parentheses. */
const stat = (pid: number) => {
  if (process.platform !== "linux") return undefined
  const text = read(`/proc/${pid}/stat`)
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ")
  const [state, parent] = fields ?? []
  // field 22 of the file, in the kernel's clock ticks since boot
  const startTime = fields?.[19]
  return state === undefined || parent === undefined || startTime === undefined
    ? undefined
    : { state, parent: Number(parent), startTime }
}

const commandLine = (pid: number): ReadonlyArray<string> =>
  process.platform === "linux" ? (read(`/proc/${pid}/cmdline`) ?? "").split("\0").filter((part) => part !== "") : []

const read = (path: string): string | undefined => {
  try {
    return Fs.readFileSync(path, "utf8")
  } catch {
    // gone between two looks, or not ours to read
    return undefined
  }
}

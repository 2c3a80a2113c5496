/**
 * Starts servers as real processes and watches what they do: each byte of standard output, each event on standard
 * error, and how they end.
 *
 * Whatever a test starts is ended with it. A server whose test is over gets the end of its input and has to end by
 * itself; one that must be killed fails the test, and so does a byte on standard output that belongs to no frame.
 */
import { assert, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Message } from "./frames.ts"
import { makeFrameReader } from "./frames.ts"
import * as Os from "./os.ts"

const LIMIT = Duration.seconds(30)

/** The path of a file of the project. */
export const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url))

/** The address of a file of the project, as `node --import` takes it. */
export const url = (name: string): string => new URL(`../../${name}`, import.meta.url).href

/** How a process ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A lifecycle event of a server, or what a fixture says on standard error as a line of JSON. */
export interface Event {
  readonly _tag: string
  readonly [member: string]: unknown
}

export interface Child {
  readonly pid: number
  /** Writes bytes to standard input and returns when the system took them, or the pipe is broken. */
  readonly write: (bytes: Uint8Array | string) => Effect.Effect<void>
  /** Writes messages, one a line. */
  readonly send: (...messages: ReadonlyArray<Request>) => Effect.Effect<void>
  /** Ends standard input. */
  readonly endInput: Effect.Effect<void>
  /** Stops reading standard output or standard error: the pipe fills up. */
  readonly stopReading: (stream: "stdout" | "stderr") => Effect.Effect<void>
  /** Reads both again. */
  readonly readOn: Effect.Effect<void>
  /** Closes our end of these streams at once. */
  readonly destroy: (...streams: ReadonlyArray<"stdin" | "stdout" | "stderr">) => Effect.Effect<void>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** The reply to a request. */
  readonly reply: (id: string | number | null) => Effect.Effect<Message>
  /** Sends a request and returns its reply. */
  readonly call: (method: string, params?: object) => Effect.Effect<Message>
  /** The first event with this tag that was told on standard error. */
  readonly event: (tag: string) => Effect.Effect<Event>
  /** Waits for something that changes with the output or the end of the process. */
  readonly until: <A>(what: string, look: () => A | undefined) => Effect.Effect<A>
  /** How the process itself ended; others may still hold its pipes. */
  readonly exit: Effect.Effect<Ended>
  /** How the process ended, once all it wrote was read. */
  readonly closed: Effect.Effect<Ended>
  /** The messages read so far. */
  readonly messages: ReadonlyArray<Message>
  readonly events: ReadonlyArray<Event>
  /** All bytes of standard output and standard error so far. */
  readonly stdout: () => Buffer
  readonly stderr: () => string
}

export interface Request {
  readonly id?: string | number
  readonly method: string
  readonly params?: object
}

export interface Options {
  /** What standard input is: a pipe by default, `/dev/null` for "ignore", or an open file. */
  readonly stdin?: "pipe" | "ignore" | number
  readonly stdout?: "pipe" | number
  /** Forgets the bytes of standard output and keeps what this makes of a message: for tests of much output. */
  readonly keep?: (message: Message) => Message
}

const MARK = "EFFECT_STDIO_TEST"
const OWN_MARK = "EFFECT_STDIO_TEST_CHILD"
// of this test file: each has a process of its own
const worker = randomUUID()
const started: Array<number> = []

/** For a process that is started in another way: its environment, by which it is known as one of this test file. */
export const environment = {
  [MARK]: worker,
  // halves the time that each start takes
  NODE_COMPILE_CACHE: path("node_modules/.cache/test-processes")
}

/** Starts a program whose standard output is for frames alone. */
export const start = (
  command: string,
  args: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.map(Effect.acquireRelease(Effect.sync(() => launch(command, args, options)), release), ({ child }) => child)

/** What runs the programs under test: the running Node, or what `npm run test:matrix` names. */
export const runtime = process.env["TEST_RUNTIME"] ?? process.execPath

/** Starts a program of this project. */
export const node = (program: string, args: ReadonlyArray<string> = [], options?: Options) =>
  start(runtime, [path(program), ...args], options)

export const PROBE = "examples/probe/server.ts"

/** Starts the probe, which tells its events. */
export const probe = (args: ReadonlyArray<string> = [], options?: Options) =>
  node(PROBE, ["--events", ...args], options)

/** Starts the probe and returns when it has answered. */
export const readyProbe = (args: ReadonlyArray<string> = [], options?: Options) =>
  Effect.tap(probe(args, options), (child) => child.call("ping"))

/** Starts a command line of the shell. */
export const shell = (line: string, options?: Options) => start("/bin/sh", ["-c", line], options)

/** The command line of the probe for a shell. */
export const commandLine = (args: ReadonlyArray<string> = []): string =>
  [runtime, path(PROBE), "--events", ...args].map((word) => `'${word}'`).join(" ")

/** A folder that is removed with the scope. */
export const temporaryFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-stdio-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Registers the last test of a file: that nothing is left of the processes its tests started. */
export const leavesNothingBehind = () =>
  it.live("leaves no process behind", () =>
    Os.eventually("all processes end", () => alive().length === 0 || undefined).pipe(
      Effect.ensuring(Effect.sync(() => alive().forEach(killNow)))
    ))

const alive = () => [...started.filter((pid) => !Os.isGone(pid)), ...Os.withEnvironment(`${MARK}=${worker}`)]

const killNow = (pid: number) => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // it ended in the meantime
  }
}

const launch = (command: string, args: ReadonlyArray<string>, options: Options) => {
  const id = randomUUID()
  const proc = spawn(command, args, {
    stdio: [options.stdin ?? "pipe", options.stdout ?? "pipe", "pipe"],
    env: { ...process.env, ...environment, [OWN_MARK]: id }
  })
  const pid = proc.pid ?? -1
  if (pid > 0) started.push(pid)

  const frames = makeFrameReader()
  const stdout: Array<Buffer> = []
  let stderr = ""
  let stderrRest = ""
  let kept = 0
  const events: Array<Event> = []
  let exit: Ended | undefined
  let closed: Ended | undefined
  let failure: Error | undefined
  let outputDestroyed = false
  let nextId = 1

  const looks = new Set<() => void>()
  const changed = () => {
    looks.forEach((look) => look())
  }

  proc.stdout?.on("data", (chunk: Buffer) => {
    frames.push(chunk)
    if (options.keep === undefined) stdout.push(chunk)
    else for (; kept < frames.messages.length; kept++) replaceAt(frames.messages, kept, options.keep)
    changed()
  })
  proc.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
    const lines = (stderrRest + text).split("\n")
    stderrRest = lines.pop() ?? ""
    for (const line of lines) if (line.startsWith("{\"_tag\"")) events.push(JSON.parse(line) as Event)
    changed()
  })
  // what becomes of a broken pipe is seen in how the process ends
  for (const stream of [proc.stdin, proc.stdout, proc.stderr]) stream?.on("error", () => {})
  proc.on("error", (error) => {
    failure = error
    changed()
  })
  proc.on("exit", (code, signal) => {
    exit = { code, signal }
    changed()
  })
  proc.on("close", (code, signal) => {
    exit ??= { code, signal }
    closed = { code, signal }
    changed()
  })

  const story = () =>
    [
      failure === undefined ? `exit ${JSON.stringify(exit ?? "not yet")}` : `not started: ${failure.message}`,
      `messages: ${JSON.stringify(frames.messages).slice(0, 2_000)}`,
      `stderr: ${stderr.slice(-4_000)}`
    ].join("\n")

  const until = <A>(what: string, look: () => A | undefined): Effect.Effect<A> =>
    Effect.callback<A>((resume) => {
      const again = () => {
        const found = look()
        const isOver = found === undefined && (closed !== undefined || failure !== undefined)
        if (found === undefined && !isOver) return
        looks.delete(again)
        resume(found === undefined ? Effect.die(new Error(`${what}: never came\n${story()}`)) : Effect.succeed(found))
      }
      looks.add(again)
      again()
      return Effect.sync(() => looks.delete(again))
    }).pipe(
      Effect.timeoutOrElse({
        duration: LIMIT,
        orElse: () => Effect.die(new Error(`${what}: not within ${Duration.format(LIMIT)}\n${story()}`))
      })
    )

  const write = (bytes: Uint8Array | string) =>
    Effect.callback<void>((resume) => {
      if (proc.stdin === null) resume(Effect.die(new Error("standard input is no pipe")))
      else proc.stdin.write(bytes, () => resume(Effect.void))
    })

  const send: Child["send"] = (...messages) =>
    write(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""))

  const reply: Child["reply"] = (id) =>
    until(
      `the reply to ${JSON.stringify(id)}`,
      () => frames.messages.find((message) => message.method === undefined && message.id === id)
    )

  const child: Child = {
    pid,
    write,
    send,
    endInput: Effect.sync(() => proc.stdin?.end()),
    stopReading: (stream) => Effect.sync(() => proc[stream]?.pause()),
    readOn: Effect.sync(() => {
      proc.stdout?.resume()
      proc.stderr?.resume()
    }),
    destroy: (...streams) =>
      Effect.sync(() => {
        if (streams.includes("stdout")) outputDestroyed = true
        for (const name of streams) proc[name]?.destroy()
      }),
    kill: (signal) => Effect.sync(() => proc.kill(signal)),
    reply,
    call: (method, params) =>
      Effect.suspend(() => {
        const id = `call-${nextId++}`
        return Effect.andThen(send({ id, method, ...(params === undefined ? {} : { params }) }), reply(id))
      }),
    event: (tag) => until(`the event ${tag}`, () => events.find((event) => event._tag === tag)),
    until,
    exit: until("the exit", () => exit),
    closed: until("the end of all output", () => closed),
    messages: frames.messages,
    events,
    stdout: () => Buffer.concat(stdout),
    stderr: () => stderr
  }

  return {
    child,
    /** Everything that was started for this child, it and its descendants, as far as it lives. */
    alive: () => [...new Set([...(Os.isGone(pid) ? [] : [pid]), ...Os.withEnvironment(`${OWN_MARK}=${id}`)])],
    /** What is on standard output besides frames. */
    strayOutput: () =>
      frames.rest() > 0 && !outputDestroyed
        ? [...frames.violations, `${frames.rest()} bytes of a frame without an end`]
        : frames.violations
  }
}

const replaceAt = (messages: Array<Message>, index: number, keep: (message: Message) => Message) => {
  const message = messages[index]
  if (message !== undefined) messages[index] = keep(message)
}

const release = (launched: ReturnType<typeof launch>, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { alive, child, strayOutput } = launched
    if (Exit.isSuccess(exit)) {
      yield* Effect.andThen(child.readOn, child.endInput)
      yield* Os.eventually("the process and what it started end by themselves", () => alive().length === 0 || undefined)
      yield* child.closed
      assert.deepStrictEqual(strayOutput(), [])
    }
  }).pipe(
    Effect.ensuring(Effect.sync(() => launched.alive().forEach(killNow)))
  )

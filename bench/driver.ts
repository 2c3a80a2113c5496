/**
 * Starts a server as a child process, keeps a number of requests in flight, counts the replies, and tells what it took.
 *
 * The driver must cost less than what it measures: requests are encoded beforehand, as many of them leave in one write
 * as replies came in one chunk, and replies are counted without being parsed.
 */
import type { ChildProcessByStdio } from "node:child_process"
import { spawn } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { setTimeout as sleep } from "node:timers/promises"
import type { Counter, Framing, Requests } from "./requests.ts"
import { encode, makeCounter } from "./requests.ts"
import type { Memory } from "./usage.ts"
import { cpuMicros, memory } from "./usage.ts"

/** A server to measure: how it is started, and spoken to. */
export interface Server {
  readonly name: string
  /** What Node is started with. */
  readonly args: ReadonlyArray<string>
  readonly framing: Framing
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** What a number of requests took. */
export interface Run {
  readonly messages: number
  readonly seconds: number
  /** Processor time of the server, in microseconds. */
  readonly cpu: number | undefined
}

/** How long requests are sent: for so much time, or so many of them. */
export type Until = { readonly seconds: number } | { readonly messages: number }

export interface Load {
  readonly requests: Requests
  readonly inFlight: number
  readonly until: Until
  /** Is told how many replies there are, each time there are more. */
  readonly onReplies?: ((replies: number) => void) | undefined
}

export interface Child {
  readonly name: string
  readonly framing: Framing
  /** Sends a request and returns its reply; one at a time. */
  readonly ask: (method: string, params?: object) => Promise<Reply>
  readonly notify: (method: string) => void
  /** Keeps requests in flight, and returns when all are answered. */
  readonly drive: (load: Load) => Promise<Run>
  /** Sends so many requests while no reply is read, and returns when the server does nothing more. */
  readonly flood: (requests: Requests, messages: number) => Promise<void>
  /** Reads again, and returns when all requests of the flood are answered. */
  readonly readAgain: (messages: number) => Promise<void>
  readonly memory: () => Memory | undefined
  readonly cpu: () => number | undefined
  readonly stop: () => Promise<void>
}

export interface Reply {
  readonly id?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

const STUCK_AFTER = 30_000
const STOP_AFTER = 2_000
const STDERR_KEPT = 2_000

type Process = ChildProcessByStdio<Writable, Readable, Readable>

/** Starts a server. It is to be stopped, also when something fails: see {@link using}. */
export const start = (server: Server): Child => {
  const child: Process = spawn(process.execPath, server.args, {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...server.env }
  })
  const { pid = -1, stderr, stdin, stdout } = child
  let errors = ""
  let onChunk: (chunk: Buffer) => void = () => {}
  let onFailure: (error: Error) => void = () => {}
  let nextId = 1
  let nextRequest = 0

  stdout.on("data", (chunk: Buffer) => onChunk(chunk))
  stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-STDERR_KEPT)
  })
  // what there is to say about a closed pipe is said by the exit
  stdin.on("error", () => {})
  const exited = new Promise<void>((resolve) => {
    child.on("error", (error) => {
      onFailure(error)
      resolve()
    })
    child.on("close", (code, signal) => {
      onFailure(misbehaved(`ended with ${code ?? signal}`))
      resolve()
    })
  })
  const gone = () => child.exitCode !== null || child.signalCode !== null

  const misbehaved = (what: string) => new Error(`${server.name} ${what}${errors === "" ? "" : `:\n${errors.trim()}`}`)

  /** Runs something that is over when it says so, when the server is gone, or when nothing happens for too long. */
  const attempt = <A>(body: (done: (value: A) => void, progress: () => void) => void): Promise<A> =>
    new Promise<A>((resolve, reject) => {
      if (gone()) {
        reject(misbehaved("is gone"))
        return
      }
      const timer = setTimeout(() => settle(() => reject(misbehaved("does not answer"))), STUCK_AFTER)
      const settle = (how: () => void) => {
        clearTimeout(timer)
        onChunk = () => {}
        onFailure = () => {}
        how()
      }
      onFailure = (error) => settle(() => reject(error))
      try {
        body((value) => settle(() => resolve(value)), () => timer.refresh())
      } catch (error) {
        settle(() => reject(error instanceof Error ? error : new Error(String(error))))
      }
    })

  /** Counts replies, and fails when there are more than requests. */
  const counting = (expected: () => number, onCount: (replies: number, more: number) => void) => {
    const count: Counter = makeCounter(server.framing)
    let replies = 0
    onChunk = (chunk) => {
      const more = count(chunk)
      if (more === 0) return
      replies += more
      if (replies > expected()) onFailure(misbehaved(`sent ${replies} replies to ${expected()} requests`))
      else onCount(replies, more)
    }
  }

  /** Writes the next requests, from the first again after the last. */
  const write = ({ bytes, count, size }: Requests, messages: number) => {
    for (let left = messages; left > 0;) {
      const from = nextRequest % count
      const taken = Math.min(left, count - from)
      stdin.write(bytes.subarray(from * size, (from + taken) * size))
      nextRequest = from + taken
      left -= taken
    }
  }

  return {
    name: server.name,
    framing: server.framing,
    ask: (method, params) =>
      attempt((done) => {
        const received: Array<Buffer> = []
        const count = makeCounter(server.framing)
        onChunk = (chunk) => {
          received.push(chunk)
          if (count(chunk) === 0) return
          const text = Buffer.concat(received).toString()
          done(JSON.parse(server.framing === "line" ? text : text.slice(text.indexOf("\r\n\r\n"))) as Reply)
        }
        stdin.write(encode({ jsonrpc: "2.0", id: nextId++, method, params }, server.framing))
      }),
    notify: (method) => {
      stdin.write(encode({ jsonrpc: "2.0", method }, server.framing))
    },
    drive: ({ inFlight, onReplies, requests, until }) =>
      attempt((done, progress) => {
        const cpuBefore = cpuMicros(pid)
        const begun = performance.now()
        const deadline = "seconds" in until ? begun + until.seconds * 1000 : Infinity
        const limit = "messages" in until ? until.messages : Infinity
        let sent = 0
        const send = (messages: number) => {
          const more = Math.min(messages, limit - sent)
          if (more <= 0 || performance.now() >= deadline) return
          sent += more
          write(requests, more)
        }
        counting(() => sent, (replies, more) => {
          progress()
          send(more)
          onReplies?.(replies)
          if (replies < sent) return
          const seconds = (performance.now() - begun) / 1000
          const cpuAfter = cpuMicros(pid)
          done({
            messages: replies,
            seconds,
            cpu: cpuBefore === undefined || cpuAfter === undefined ? undefined : cpuAfter - cpuBefore
          })
        })
        send(inFlight)
      }),
    flood: (requests, messages) =>
      attempt((done) => {
        stdout.pause()
        write(requests, messages)
        void untilQuiet(pid, () => stdin.writableLength).then(done)
      }),
    readAgain: (messages) =>
      attempt((done, progress) => {
        counting(() => messages, (replies) => {
          progress()
          if (replies === messages) done()
        })
        stdout.resume()
      }),
    memory: () => memory(pid),
    cpu: () => cpuMicros(pid),
    stop: async () => {
      if (gone()) return
      onFailure = () => {}
      stdout.resume()
      stdin.end()
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_AFTER)
      await exited
      clearTimeout(timer)
    }
  }
}

const QUIET_STEP = 250
const QUIET_STEPS = 4

/** Returns when a process has used no time and has taken nothing for a second. */
const untilQuiet = async (pid: number, waiting: () => number) => {
  let before = -1
  for (let steps = 0; steps < QUIET_STEPS;) {
    await sleep(QUIET_STEP)
    const now = (cpuMicros(pid) ?? 0) - waiting()
    steps = now === before ? steps + 1 : 0
    before = now
  }
}

/** Runs something with servers that are stopped afterwards, whatever happens. */
export const using = async <const Servers extends ReadonlyArray<Server>, A>(
  servers: Servers,
  body: (children: { readonly [Index in keyof Servers]: Child }) => Promise<A>
): Promise<A> => {
  const children = servers.map(start)
  try {
    return await body(children as { readonly [Index in keyof Servers]: Child })
  } finally {
    await Promise.all(children.map((child) => child.stop()))
  }
}

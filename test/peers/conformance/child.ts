/**
 * A server on standard input and output, shared by the requests of several clients.
 *
 * Requests get ids and progress tokens of our own, unique in this process, and what comes back gets the client's again.
 * Nothing else of a message is touched.
 */
import { spawn } from "node:child_process"
import { oneLine, read, replace } from "./json-text.ts"

const SUBSCRIPTION = ["params", "_meta", "io.modelcontextprotocol/subscriptionId"]
const REQUEST_TOKEN = ["params", "_meta", "progressToken"]
const TOKEN = ["params", "progressToken"]
const CANCELLED = ["params", "requestId"]
const STOP_LIMIT = 2_000

/** A JSON-RPC message: its text, and what it says. */
export interface Message {
  readonly text: string
  readonly value: {
    readonly id?: unknown
    readonly method?: unknown
    readonly params?: unknown
    readonly result?: unknown
    readonly error?: { readonly code?: unknown }
  }
}

/** Who waits for a response. */
export interface Exchange {
  /** The request. */
  readonly request: Message
  /** Takes a message that precedes the response. */
  readonly onMessage: (text: string) => void
  /** Takes the response, the last message. */
  readonly onResponse: (message: Message) => void
  /** The client has sent a cancellation: there will be no response. */
  readonly onCancelled: () => void
  /** Whether the client still listens. */
  readonly isOpen: () => boolean
}

export interface Child {
  /** Sends a request, and returns a function that cancels it. */
  readonly request: (exchange: Exchange) => () => void
  /** Sends a notification or a response as it is; a cancellation gets the id that its request went out with. */
  readonly send: (message: Message) => void
  /** The request that waits the shortest time, of those whose client still listens. */
  readonly latest: () => Exchange | undefined
  /** Ends the server the way a client should: end of input, then signals. */
  readonly end: () => Promise<void>
  readonly isRunning: () => boolean
}

/** What is wrong with a server that a client cannot see. */
export interface Complaints {
  /** Lines on standard output that are no message, or answer nothing. */
  readonly strayOutput: Array<string>
  /** Servers that had to be killed, or did not exit with 0 when their input had ended. */
  readonly badExits: Array<string>
}

/** Starts a server. `onMessage` takes what belongs to no request: its own requests, and most notifications. */
export const start = (
  command: ReadonlyArray<string>,
  complaints: Complaints,
  onMessage: (message: Message) => void
): Child => {
  const [file = "", ...args] = command
  const server = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] })
  const waiting = new Map<number, Exchange>()
  // cancelled; their responses may be on the way
  const cancelled = new Set<number>()
  let lastId = 0
  let running = true

  const exited = new Promise<void>((resolve) => {
    const gone = (how: string) => {
      if (!running) return
      running = false
      if (how !== "exit code 0") complaints.badExits.push(how)
      for (const exchange of waiting.values()) {
        const id = read(exchange.request.text, ["id"])
        const error = { code: -32603, message: "The server has ended" }
        respond(exchange, { text: `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`, value: { error } })
      }
      waiting.clear()
      resolve()
    }
    server.once("error", (error) => gone(error.message))
    server.once("close", (code, signal) => gone(signal === null ? `exit code ${code}` : `killed by ${signal}`))
  })

  // a server that ends first is noticed by its exit
  server.stdin.on("error", () => {})
  const write = (text: string) => {
    if (running) server.stdin.write(`${oneLine(text)}\n`)
  }

  const respond = (exchange: Exchange, response: Message) => {
    const id = read(exchange.request.text, ["id"]) ?? "null"
    const text = replace(response.text, ["id"], id)
    // the result of a listen request repeats its id
    exchange.onResponse({ ...response, text: replace(text, ["result", ...SUBSCRIPTION.slice(1)], id) })
  }

  const onLine = (line: string) => {
    const message = parse(line)
    if (message === undefined) return void complaints.strayOutput.push(line.slice(0, 200))
    const { value } = message
    if (value.method === undefined) {
      const id = Number(value.id)
      const exchange = waiting.get(id)
      waiting.delete(id)
      if (exchange !== undefined) return respond(exchange, message)
      if (!cancelled.delete(id)) complaints.strayOutput.push(line.slice(0, 200))
      return
    }
    for (const [path, of] of [[TOKEN, REQUEST_TOKEN], [SUBSCRIPTION, ["id"]]] as const) {
      const named = read(line, path)
      if (named === undefined) continue
      const exchange = waiting.get(Number(named))
      const original = exchange && read(exchange.request.text, of)
      // a message of a request that has ended is for nobody
      return original === undefined ? undefined : exchange?.onMessage(replace(line, path, original))
    }
    onMessage(message)
  }

  let rest: Array<string> = []
  server.stdout.setEncoding("utf8")
  server.stdout.on("data", (chunk: string) => {
    const [first = "", ...more] = chunk.split("\n")
    rest.push(first)
    for (const part of more) {
      onLine(rest.join(""))
      rest = [part]
    }
  })

  return {
    request: (exchange) => {
      const id = ++lastId
      waiting.set(id, exchange)
      const { text } = exchange.request
      write(replace(replace(text, REQUEST_TOKEN, `${id}`), ["id"], `${id}`))
      return () => {
        if (waiting.delete(id)) {
          cancelled.add(id)
          write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`)
        }
      }
    },
    send: ({ text, value }) => {
      if (value.method !== "notifications/cancelled") return write(text)
      const target = read(text, CANCELLED)
      for (const [id, exchange] of waiting) {
        if (read(exchange.request.text, ["id"]) !== target) continue
        waiting.delete(id)
        cancelled.add(id)
        write(replace(text, CANCELLED, `${id}`))
        return exchange.onCancelled()
      }
    },
    latest: () => [...waiting.values()].findLast((exchange) => exchange.isOpen()),
    end: async () => {
      const kill = (signal: NodeJS.Signals, after: number) => setTimeout(() => server.kill(signal), after)
      const timers = [kill("SIGTERM", STOP_LIMIT), kill("SIGKILL", 2 * STOP_LIMIT)]
      server.stdin.end()
      await exited
      for (const timer of timers) clearTimeout(timer)
    },
    isRunning: () => running
  }
}

/** A message, if the text is one: a JSON object. */
export const parse = (text: string): Message | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { text, value } : undefined
  } catch {
    return undefined
  }
}

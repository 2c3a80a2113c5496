/**
 * Servers whose conversation is written down, whatever client starts them: the bytes on their pipes, and how they ended.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Child from "../../utils/child.ts"
import type { Message } from "../../utils/frames.ts"
import { makeFrameReader } from "../../utils/frames.ts"
import * as Os from "../../utils/os.ts"

/** What a client needs to start a server, and what is known of the servers that it has started. */
export interface Recorded {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Record<string, string>
  /** Waits until so many servers have ended and returns them in the order they were started. */
  readonly recordings: (count: number) => Effect.Effect<ReadonlyArray<Recording>>
}

export interface Recording {
  readonly fromClient: ReadonlyArray<Message>
  readonly fromServer: ReadonlyArray<Message>
  /** What is on standard output besides messages. */
  readonly strayOutput: ReadonlyArray<string>
  readonly stderr: string
  readonly ended: Ended
}

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  /** Whether the client sent a signal. */
  readonly terminated: boolean
}

interface Written {
  readonly started: number
  readonly stdin: string
  readonly stdout: string
  readonly stderr: string
  readonly ended: Ended
}

/** The examples that clients are tried on, with their arguments. */
export const PROBE = ["examples/probe/mcp.ts"]
export const EXCEL = ["examples/excel/server.ts", Child.path("examples/excel")]

/** Prepares one of the examples to be started by a client. */
export const recorded = ([program = "", ...args]: ReadonlyArray<string>): Effect.Effect<
  Recorded,
  never,
  Scope.Scope
> =>
  Effect.map(Child.temporaryFolder, (folder) => ({
    command: process.execPath,
    args: [
      fileURLToPath(new URL("recorder.ts", import.meta.url)),
      folder,
      process.execPath,
      Child.path(program),
      ...args
    ],
    env: Child.environment,
    recordings: (count) =>
      Os.eventually(`${count} servers end`, () => {
        const files = readdirSync(folder).filter((name) => name.endsWith(".json"))
        if (files.length < count) return undefined
        return files
          .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as Written)
          .toSorted((a, b) => a.started - b.started)
          .map(parse)
      })
  }))

const parse = ({ ended, stderr, stdin, stdout }: Written): Recording => {
  const client = makeFrameReader()
  const server = makeFrameReader()
  client.push(Buffer.from(stdin))
  server.push(Buffer.from(stdout))
  return {
    fromClient: client.messages,
    fromServer: server.messages,
    strayOutput: server.rest() > 0
      ? [...server.violations, `${server.rest()} bytes of a message without an end`]
      : server.violations,
    stderr,
    ended
  }
}

const CANCELLED = "notifications/cancelled"

/** What is wrong with a conversation: a sentence for each request that has not the replies it should have, and the like. */
export const complaints = ({ fromClient, fromServer, strayOutput }: Recording): ReadonlyArray<string> => {
  const requests = fromClient.filter(({ id, method }) => method !== undefined && id !== undefined)
  const replies = fromServer.filter(({ method }) => method === undefined)
  const isModern = fromClient.every(({ method }) => method !== "initialize")
  return [
    ...strayOutput,
    ...requests.flatMap(({ id, method }) => {
      const count = replies.filter((reply) => reply.id === id).length
      const expected = isCancelled(fromClient, id) ? 0 : 1
      return count === expected ? [] : [`${method} ${JSON.stringify(id)} has ${count} replies, not ${expected}`]
    }),
    ...replies.flatMap(({ id }) =>
      requests.some((request) => request.id === id) ? [] : [`a reply to ${JSON.stringify(id)}, which is no request`]
    ),
    ...fromServer.flatMap(({ method, params }, index) => {
      if (method !== "notifications/progress") return []
      const { progressToken } = params as { readonly progressToken?: unknown }
      const request = requests.find((request) => tokenOf(request) === progressToken)
      const isLate = fromServer.slice(0, index).some((reply) => reply.method === undefined && reply.id === request?.id)
      return request === undefined || isLate ? [`progress that nobody waits for: ${JSON.stringify(params)}`] : []
    }),
    // MUST: a server of 2026-07-28 sends no requests
    ...fromServer.flatMap(({ id, method }) =>
      isModern && method !== undefined && id !== undefined ? [`the server sent a request: ${method}`] : []
    )
  ]
}

const tokenOf = ({ params }: Message): unknown =>
  (params as { readonly _meta?: { readonly progressToken?: unknown } } | undefined)?._meta?.progressToken

const isCancelled = (messages: ReadonlyArray<Message>, id: unknown): boolean =>
  messages.some(({ method, params }) =>
    method === CANCELLED && (params as { readonly requestId?: unknown } | undefined)?.requestId === id
  )

/** The requests with this method that the client has cancelled. */
export const cancelled = ({ fromClient }: Recording, method: string): ReadonlyArray<Message> =>
  fromClient.filter((message) => message.method === method && isCancelled(fromClient, message.id))

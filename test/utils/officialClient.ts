/**
 * The client of the protocol's authors, on a server in a process of its own whose end is recorded.
 */
import { assert } from "@effect/vitest"
import type { CallToolResult, ClientOptions, RequestOptions } from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Child from "./child.ts"

export interface OfficialClient {
  readonly client: Client
  readonly call: (
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: RequestOptions
  ) => Effect.Effect<CallToolResult>
  /** What the client found wrong with the connection, a stray line on standard output above all. */
  readonly errors: ReadonlyArray<Error>
  readonly stderr: () => string
  /** Closes: the last server that the client has started ended by itself, and nothing was wrong on any stream. */
  readonly close: Effect.Effect<void>
}

export interface Options extends ClientOptions {
  /** The variables of the server, beside those by which it is known as one of this test file. */
  readonly environment?: Readonly<Record<string, string>>
  /** Errors that are the client's own. */
  readonly tolerates?: (message: string) => boolean
}

/** Connects to a server that is started with this command, and closes with the scope, however the server has ended. */
export const connect = Effect.fnUntraced(function*(command: ReadonlyArray<string>, options?: Options) {
  const { environment, tolerates, ...clientOptions } = options ?? {}
  const record = join(yield* Child.temporaryFolder, "exits.jsonl")
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [Child.path("test/fixtures/records-exit.ts"), record, ...command],
    env: { ...Child.environment, ...environment },
    stderr: "pipe"
  })
  let stderr = ""
  transport.stderr?.on("data", (chunk: unknown) => {
    stderr += String(chunk)
  })
  const client = new Client({ name: "test", version: "1.0.0" }, clientOptions)
  const errors: Array<Error> = []
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no other way
  client.onerror = (error) => {
    errors.push(error)
  }
  const leave = Effect.promise(() => client.close())
  yield* Effect.acquireRelease(Effect.promise(() => client.connect(transport)), () => leave)
  const connected: OfficialClient = {
    client,
    call: (name, args = {}, requestOptions) =>
      Effect.promise((signal) => client.callTool({ name, arguments: args }, { signal, ...requestOptions })),
    errors,
    stderr: () => stderr,
    close: Effect.andThen(
      leave,
      Effect.sync(() => {
        const exits = readFileSync(record, "utf8").trimEnd().split("\n").map((line): unknown => JSON.parse(line))
        assert.deepStrictEqual(exits.at(-1), { code: 0, signal: null, terminated: false })
        assert.deepStrictEqual(errors.filter(({ message }) => tolerates?.(message) !== true), [])
        assert.strictEqual(stderr, "")
      })
    )
  }
  return connected
})

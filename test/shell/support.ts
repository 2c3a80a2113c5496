/**
 * The shell server in a project, and what is hard to end for it.
 */
import { assert } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Outcome } from "../../examples/shell/Shell.ts"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import * as Project from "../utils/project.ts"

export const SERVER = "examples/shell/server.ts"

export const decodeOutcome = Schema.decodeUnknownSync(Outcome)
const decodeRunning = Schema.decodeUnknownSync(Schema.Struct({ running: Schema.Int }))

interface Run {
  readonly timeout?: unknown
  readonly workdir?: string
  readonly [other: string]: unknown
}

/** The number that a command has written, or will soon, to a file of the project. */
const pidIn = (project: Project.Project) => (name: string) =>
  Os.eventually(`the file ${name}`, () => {
    const text = existsSync(project.path(name)) ? project.read(name) : ""
    return text.endsWith("\n") ? Number(text) : undefined
  })

/** A project, and a client of a server that works in it; at the end the server must have ended by itself. */
export const open = Effect.fnUntraced(function*(environment: Readonly<Record<string, string>> = {}) {
  const project = yield* Project.make
  const record = join(yield* Child.temporaryFolder, "exits.jsonl")
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [
      Child.path("test/fixtures/records-exit.ts"),
      record,
      Child.runtime,
      Child.path(SERVER),
      "--parent-poll",
      "5s",
      project.folder
    ],
    env: { PATH: process.env["PATH"] ?? "", ...Child.environment, ...environment },
    stderr: "pipe"
  })
  let stderr = ""
  transport.stderr?.on("data", (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const client = new Client({ name: "test", version: "1.0.0" })
  const errors: Array<Error> = []
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no other way
  client.onerror = (error) => {
    errors.push(error)
  }
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect(transport)),
    () =>
      Effect.gen(function*() {
        yield* Effect.promise(() => client.close())
        const exit: unknown = JSON.parse(readFileSync(record, "utf8").trimEnd().split("\n").at(-1) ?? "null")
        assert.deepStrictEqual(exit, { code: 0, signal: null, terminated: false })
        assert.deepStrictEqual(errors, [])
        assert.strictEqual(stderr, "")
      })
  )

  const call = (name: string, args: Record<string, unknown> = {}, options?: Parameters<Client["callTool"]>[1]) =>
    Effect.tryPromise((signal) => client.callTool({ name, arguments: args }, { signal, timeout: 50_000, ...options }))
  return {
    project,
    client,
    call,
    /** The result of a command that was run. */
    run: (command: string, more?: Run, options?: Parameters<Client["callTool"]>[1]) =>
      Effect.map(call("run", { command, ...more }, options), ({ content, isError, structuredContent }) => {
        assert.isNotTrue(isError, JSON.stringify(content))
        return decodeOutcome(structuredContent)
      }),
    /** The text of the tool error. */
    refusal: (command: string, more?: Run) =>
      Effect.map(call("run", { command, ...more }), ({ content, isError }) => {
        assert.isTrue(isError)
        return content.map((block) => block.type === "text" ? block.text : "").join("")
      }),
    pid: pidIn(project),
    /** How many commands run. */
    running: Effect.map(call("diagnose"), ({ structuredContent }) => decodeRunning(structuredContent).running)
  }
})

/** Starts what is hard to end: one that ignores signals, one in another session, one in another group. */
export const STUBBORN = [
  "(trap '' TERM INT HUP; echo $BASHPID > deaf; while :; do sleep 0.1; done) &",
  "setsid bash -c 'echo $$ > session; sleep 600; :' &",
  "set -m; (echo $BASHPID > group; sleep 600; :) & set +m",
  "setsid env -i PATH=\"$PATH\" bash -c 'echo $$ > bare; sleep 600; :' &"
].join("\n")
export const STUBBORN_FILES = ["deaf", "session", "group", "bare"]

export const HELLO = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "test", version: "1" }
}

/** A server that was told to run something stubborn, and the pids of it. */
export const busy = Effect.fnUntraced(
  function*(command: string, args: ReadonlyArray<string>, project: Project.Project) {
    const child = yield* Child.start(command, args)
    yield* child.call("initialize", HELLO)
    yield* child.send({
      id: "run",
      method: "tools/call",
      params: { name: "run", arguments: { command: `${STUBBORN}\nsleep 600; :` } }
    })
    return { child, pids: yield* Effect.forEach(STUBBORN_FILES, pidIn(project)) }
  }
)

/**
 * The shell server in a project, and what is hard to end for it.
 */
import { assert } from "@effect/vitest"
import type { RequestOptions } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { existsSync } from "node:fs"
import { Outcome } from "../../examples/shell/Shell.ts"
import * as Child from "../utils/child.ts"
import * as Official from "../utils/officialClient.ts"
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
  const { client, close, ...connected } = yield* Official.connect(
    [Child.runtime, Child.path(SERVER), "--parent-poll", "5s", project.folder],
    { environment: { PATH: process.env["PATH"] ?? "", ...environment } }
  )
  yield* Effect.addFinalizer(() => close)
  const call: typeof connected.call = (name, args, options) =>
    connected.call(name, args, { timeout: 50_000, ...options })
  return {
    project,
    client,
    call,
    /** The result of a command that was run. */
    run: (command: string, more?: Run, options?: RequestOptions) =>
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

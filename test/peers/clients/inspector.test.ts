/**
 * The command line of the MCP Inspector: a process for each call, which starts a server, asks it one thing, and ends.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Child from "../../utils/child.ts"
import { complaints, EXCEL, PROBE, recorded } from "./recording.ts"

const INSPECTOR = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url)
)

const LIMIT = 20_000

interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the inspector with its files in a folder of its own, and returns what it printed. */
const run = (args: ReadonlyArray<string>, home: string): Effect.Effect<Outcome> =>
  Effect.callback<Outcome>((resume) => {
    const inspector = spawn(process.execPath, [INSPECTOR, "--cli", ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], HOME: home, ...Child.environment },
      timeout: LIMIT
    })
    let stdout = ""
    let stderr = ""
    inspector.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk
    })
    inspector.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk
    })
    inspector.on("error", (error) => resume(Effect.die(error)))
    inspector.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
    return Effect.sync(() => inspector.kill())
  })

/** Asks a server one thing; whatever comes of it, the server has ended with 0 and nobody has a complaint. */
const inspect = (
  program: ReadonlyArray<string>,
  ...args: ReadonlyArray<string>
): Effect.Effect<Outcome & { readonly methods: ReadonlyArray<string> }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const home = yield* Child.temporaryFolder
    const server = yield* recorded(program)
    const variables = Object.entries(server.env).flatMap(([name, value]) => ["-e", `${name}=${value}`])
    const outcome = yield* run([...variables, server.command, ...server.args, "--format", "json", ...args], home)
    const [conversation] = yield* server.recordings(1)
    assert.isDefined(conversation, outcome.stderr)
    assert.deepStrictEqual(conversation.ended, { code: 0, signal: null, terminated: false })
    assert.deepStrictEqual(complaints(conversation), [])
    return { ...outcome, methods: conversation.fromClient.flatMap(({ method }) => method ?? []) }
  })

const result = ({ code, stderr, stdout }: Outcome): unknown => {
  assert.strictEqual(code, 0, stderr)
  return (JSON.parse(stdout) as { readonly result: unknown }).result
}

describe("the Inspector", () => {
  it.live("lists the tools, and finds nothing wrong with their schemas", () =>
    Effect.gen(function*() {
      const outcome = yield* inspect(PROBE, "--method", "tools/list", "--strict")
      const { tools } = result(outcome) as { readonly tools: ReadonlyArray<{ readonly name: string }> }
      assert.includeMembers(tools.map(({ name }) => name), ["echo", "add", "ask"])
      assert.strictEqual(outcome.stderr, "")
    }).pipe(Effect.scoped))

  it.live("calls a tool with a structured result, in the newest revision", () =>
    Effect.gen(function*() {
      const outcome = yield* inspect(
        PROBE,
        "--protocol-era",
        "modern",
        "--method",
        "tools/call",
        "--tool-name",
        "add",
        "--tool-args-json",
        "{\"a\":1,\"b\":2}"
      )
      assert.deepInclude(result(outcome) as object, {
        content: [{ type: "text", text: "{\"sum\":3}" }],
        structuredContent: { sum: 3 },
        isError: false
      })
      assert.include(outcome.methods, "server/discover")
      assert.notInclude(outcome.methods, "initialize")
    }).pipe(Effect.scoped))

  it.live("exits with 5 for a tool error, and prints its text", () =>
    Effect.gen(function*() {
      const { code, stderr, stdout } = yield* inspect(
        EXCEL,
        "--method",
        "tools/call",
        "--tool-name",
        "list_sheets",
        "--tool-arg",
        "file=nothing.xlsx"
      )
      assert.strictEqual(code, 5)
      assert.include(stdout, "There is no file \\\"nothing.xlsx\\\"")
      assert.include(stderr, "tool_is_error")
    }).pipe(Effect.scoped))

  it.live("reads a resource", () =>
    Effect.gen(function*() {
      const outcome = yield* inspect(PROBE, "--method", "resources/read", "--uri", "probe://about")
      assert.deepStrictEqual(result(outcome), {
        contents: [{ uri: "probe://about", mimeType: "text/plain", text: "A server to test MCP clients against." }]
      })
    }).pipe(Effect.scoped))

  it.live("gets a prompt", () =>
    Effect.gen(function*() {
      const outcome = yield* inspect(
        PROBE,
        "--method",
        "prompts/get",
        "--prompt-name",
        "explain",
        "--prompt-args",
        "topic=pipes"
      )
      assert.deepStrictEqual(result(outcome), {
        description: "Ask for an explanation",
        messages: [{ role: "user", content: { type: "text", text: "Explain pipes in one sentence." } }]
      })
    }).pipe(Effect.scoped))

  it.live("reads a page of the Excel example", () =>
    Effect.gen(function*() {
      const outcome = yield* inspect(
        EXCEL,
        "--method",
        "tools/call",
        "--tool-name",
        "read_sheet",
        "--tool-args-json",
        JSON.stringify({ file: "budget.xlsx", sheet: "Ausgaben 支出", range: "B5:D5" })
      )
      assert.deepNestedInclude(result(outcome), {
        "structuredContent.rows[0].cells": ["Zugfahrt Köln–Zürich 🚆", "Reisen 旅費", 148.5]
      })
    }).pipe(Effect.scoped))
})

Child.leavesNothingBehind()

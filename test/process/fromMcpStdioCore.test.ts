/**
 * The programs that docs/from-mcp-stdio-core.md shows, run with the input that servers had before.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { path, url } from "../utils/child.ts"

const run = (program: string, input: string, options: ReadonlyArray<string> = []) => {
  const args = [...options, path(`examples/from-mcp-stdio-core/${program}`)]
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { input, encoding: "utf8", timeout: 20_000 })
  return { stdout, stderr, status }
}

const lines = (...messages: ReadonlyArray<object | string>) =>
  messages.map((message) => `${typeof message === "string" ? message : JSON.stringify(message)}\n`).join("")

const request = (id: number, method: string, params?: object) => ({ jsonrpc: "2.0", id, method, params })

const conversation = lines(
  request(0, "initialize", {}),
  { jsonrpc: "2.0", method: "notifications/initialized" },
  request(1, "tools/list"),
  request(2, "tools/call", { name: "shout", arguments: { text: "hé" } }),
  request(3, "tools/call", { name: "shout" }),
  request(4, "resources/list"),
  "oops"
)

/** The replies by id, each error by its code alone. */
const replies = (stdout: string) =>
  stdout.trim().split("\n").map((line) => JSON.parse(line) as { id: number | null; error?: { code: number } })
    .map(({ error, ...reply }) => error === undefined ? reply : { ...reply, code: error.code })
    .toSorted((a, b) => (a.id ?? 9) - (b.id ?? 9))

describe("a server that was moved", () => {
  it("answers as it did, byte for byte, but for the words of errors, and ends with 0", () => {
    const { status, stderr, stdout } = run("server.ts", conversation)
    const initialized = {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "shout", version: "1.0.0" }
    }
    const shout = {
      name: "shout",
      description: "Say it louder",
      inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
    }
    const error = (id: number | null, code: number, message: string) => ({
      jsonrpc: "2.0",
      id,
      error: { code, message }
    })
    assert.strictEqual(
      stdout,
      lines(
        { jsonrpc: "2.0", id: 0, result: initialized },
        { jsonrpc: "2.0", id: 1, result: { tools: [shout] } },
        { jsonrpc: "2.0", id: 2, result: { content: [{ type: "text", text: "HÉ" }] } },
        error(3, -32602, "Invalid params: Missing key at [\"arguments\"]"),
        error(4, -32601, "Method not found: resources/list"),
        error(null, -32700, "Parse error: the frame is not valid JSON")
      )
    )
    assert.strictEqual(status, 0)
    const events = stderr.trim().split("\n").map((line) => (JSON.parse(line) as { readonly _tag: string })._tag)
    assert.deepStrictEqual([events[0], events.at(-1)], ["Started", "Stopped"])
  })

  it("answers the same with the program that it was, on the shim", () => {
    const before = run("before.mjs", conversation, ["--import", url("test/fixtures/mcp-stdio-core.ts")])
    assert.deepStrictEqual(replies(before.stdout), replies(run("server.ts", conversation).stdout))
    assert.strictEqual(replies(before.stdout).length, 6)
    assert.include(before.stderr, "{\"event\":\"Stopped\",\"reason\":{\"_tag\":\"InputEnded\"}}")
    assert.strictEqual(before.status, 0)
  })

  it("has the same tool when Effect's McpServer serves it", () => {
    const { status, stdout } = run(
      "mcp.ts",
      lines(
        request(0, "initialize", {
          protocolVersion: "2025-06-18",
          capabilities: {},
          clientInfo: { name: "test", version: "1" }
        }),
        { jsonrpc: "2.0", method: "notifications/initialized" },
        request(1, "tools/call", { name: "shout", arguments: { text: "hé" } })
      )
    )
    assert.include(stdout, "\"structuredContent\":{\"text\":\"HÉ\"}")
    assert.strictEqual(status, 0)
  })
})

describe("a program that reads messages itself", () => {
  it("answers each in the framing it came in, a parse error too", () => {
    const answers = [
      JSON.stringify({ kind: "request", payload: { a: 1 } }),
      JSON.stringify({ kind: "request", payload: { b: 2 } }),
      JSON.stringify({ kind: "parse_error", message: "Parse error: the frame is not valid JSON" })
    ] as const
    assert.deepStrictEqual(run("reading.ts", "{\"a\":1}\nContent-Length: 7\r\n\r\n{\"b\":2}oops"), {
      stdout: `${answers[0]}\nContent-Length: ${answers[1].length}\r\n\r\n${answers[1]}${answers[2]}\n`,
      stderr: "",
      status: 0
    })
  })
})

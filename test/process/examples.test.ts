/**
 * The example programs, run as the README says.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { runtime } from "../utils/child.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Runs a program to its end with some input, and returns what it printed. */
const run = (
  args: ReadonlyArray<string>,
  input = ""
): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number | null }> =>
  new Promise((resolve, reject) => {
    const child = spawn(runtime, args, { cwd: root, stdio: ["pipe", "pipe", "pipe"], timeout: 20_000 })
    let stdout = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
    })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    child.on("error", reject)
    child.on("close", (code) => resolve({ stdout, stderr, code }))
    child.stdin.end(input)
  })

describe("examples", () => {
  it("the hello server greets", async () => {
    const request = { jsonrpc: "2.0", id: 1, method: "greet", params: { name: "Ada" } }
    assert.deepStrictEqual(await run(["examples/hello/server.ts"], `${JSON.stringify(request)}\n`), {
      stdout: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"Hello, Ada!\"}\n",
      stderr: "",
      code: 0
    })
  })

  it("the hello client starts the server, calls it, and sees it leave with 0", async () => {
    assert.deepStrictEqual(await run(["examples/hello/client.ts"]), {
      stdout: "Hello, Ada!\nexit code 0\n",
      stderr: "",
      code: 0
    })
  })

  it("the hello MCP server answers the requests that docs/mcp.md shows", async () => {
    const { code, stdout } = await run(
      ["examples/hello/mcp.ts"],
      [
        {
          id: 0,
          method: "initialize",
          params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "me", version: "1" } }
        },
        { id: 1, method: "tools/list" },
        { id: 2, method: "tools/call", params: { name: "add", arguments: { a: 2, b: 3 } } }
      ].map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("")
    )
    const replies = stdout.trim().split("\n").map((line) => JSON.parse(line) as { id: number; result: unknown })
    assert.strictEqual(code, 0)
    assert.sameMembers(replies.map(({ id }) => id), [0, 1, 2])
    assert.deepInclude(replies.find(({ id }) => id === 2)?.result, { structuredContent: { sum: 5 } })
  })

  it.each(["excel", "ast-grep", "shell", "lsp"])(
    "the %s server says so when it is started with a folder that is none, or with a flag that it does not know",
    async (name) => {
      const { code, stderr, stdout } = await run([`examples/${name}/server.ts`, "package.json"])
      assert.deepStrictEqual({ code, stdout }, { code: 2, stdout: "" })
      assert.include(stderr, `${name}: package.json is not a folder`)
      const flag = await run([`examples/${name}/server.ts`, "--evnets"])
      assert.deepStrictEqual([flag.code, flag.stdout], [2, ""])
      assert.match(flag.stderr, new RegExp(`^${name}: .*--evnets`))
      const folders = await run([`examples/${name}/server.ts`, "src", "test"])
      assert.deepStrictEqual([folders.code, folders.stdout], [2, ""])
      assert.include(folders.stderr, "more than one folder")
    }
  )

  it("the demo shows the sheet as a table, and how and why the server ended", async () => {
    const { code, stdout } = await run(["examples/excel/demo.ts"])
    assert.strictEqual(code, 0)
    assert.include(stdout, "read_sheet: Budget A1:F15")
    assert.match(stdout, /15 {2}Summe +63,600 +22,200 +5,760 +0 +91,560/)
    assert.include(stdout, "The server ended because of InputEnded, with exit code 0.")
  })
})

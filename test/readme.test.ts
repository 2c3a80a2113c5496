/**
 * The programs shown in the README are the example files, which run in the process tests.
 */
import { assert, it } from "@effect/vitest"
import { normalized, programs, read } from "./utils/shown.ts"

const shown = programs(read("README.md"))

it("the README shows at least a server, an MCP server and a client", () => {
  assert.deepStrictEqual(shown.map(({ file }) => file), [
    "examples/hello/server.ts",
    "examples/hello/mcp.ts",
    "examples/hello/client.ts"
  ])
})

it.each(shown)("what the README shows is $file", ({ file, program }) => {
  assert.strictEqual(normalized(program), normalized(read(file)))
})

it.each(shown)("$file has at most 25 lines of code", ({ program }) => {
  assert.isAtMost(program.split("\n").filter((line) => line.trim() !== "").length, 25)
})

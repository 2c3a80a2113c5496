/**
 * The programs shown in the README are the example files, which run in the process tests.
 */
import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

/** A program without its leading comment, imports by package name and in a fixed order. */
const normalized = (source: string) => {
  const lines = source.replace(/^\/\*\*[^]*?\*\/\n/, "").replaceAll(
    /"\.\.\/\.\.\/src\/(\w+)\.ts"/g,
    "\"effect-stdio/$1\""
  )
    .trim().split("\n")
  const imports = lines.filter((line) => line.startsWith("import "))
  return [...imports.toSorted(), ...lines.filter((line) => !line.startsWith("import "))].join("\n").trim()
}

const shown = Array.from(
  read("README.md").matchAll(/<!-- file: (\S+) -->\n+```ts\n([^]*?)```/g),
  ([, file = "", program = ""]) => ({ file, program })
)

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

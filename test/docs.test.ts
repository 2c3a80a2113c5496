/**
 * The programs that Markdown pages show are files of the project, as they are, and each of them runs in a test.
 */
import { assert, describe, it } from "@effect/vitest"
import { globSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { normalized, programs, read } from "./utils/shown.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const list = (...patterns: ReadonlyArray<string>) => globSync(patterns, { cwd: root }).toSorted()

const pages = list("*.md", "docs/*.md", "examples/**/*.md")
const shown = pages.flatMap((page) => programs(read(page)).map((program) => ({ page, ...program })))
const tests = list("test/**/*.test.ts").filter((file) => file !== "test/docs.test.ts" && !file.includes("node_modules"))

describe("the README", () => {
  const inReadme = shown.filter(({ page }) => page === "README.md")

  it("shows a server, an MCP server and a client", () => {
    assert.deepStrictEqual(inReadme.map(({ file }) => file), [
      "examples/hello/server.ts",
      "examples/hello/mcp.ts",
      "examples/hello/client.ts"
    ])
  })

  it.each(inReadme)("shows no more than 25 lines of code of $file", ({ program }) => {
    assert.isAtMost(program.split("\n").filter((line) => line.trim() !== "").length, 25)
  })
})

it.each(shown)("$page shows $file as it is", ({ file, program }) => {
  assert.strictEqual(normalized(program), normalized(read(file)))
})

it.each(shown)("$file, which $page shows, runs in a test", ({ file }) => {
  const folder = file.slice(0, file.lastIndexOf("/") + 1)
  const name = `"${file.slice(folder.length)}"`
  const isRunIn = (text: string) => text.includes(file) || (text.includes(folder) && text.includes(name))
  assert.isTrue(tests.some((test) => test === file || isRunIn(read(test))))
})

it.each(pages)("every file that %s names stands right above its program", (page) => {
  assert.strictEqual(programs(read(page)).length, Array.from(read(page).matchAll(/^<!-- file:/gm)).length)
})

it("each failure that docs/known-failures.md calls covered has a test by its number", () => {
  const [covered = ""] = read("docs/known-failures.md").split("\n## Not covered")
  const numbers = covered.split("\n").filter((line) => line.startsWith("| ")).flatMap((line) =>
    line.match(/\bF\d+\b/g) ?? []
  )
  const corpus = new Set(tests.flatMap((test) => read(test).match(/\bF\d+\b/g) ?? []))
  assert.isAbove(numbers.length, 80)
  assert.deepStrictEqual(numbers.filter((number) => !corpus.has(number)), [])
})

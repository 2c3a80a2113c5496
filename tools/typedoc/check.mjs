/**
 * Checks that each public module has its page, by the name that the barrel gives it, and that nothing else has one.
 */
import { readdirSync, readFileSync } from "node:fs"

const root = new URL("../../", import.meta.url)

const barrel = readFileSync(new URL("src/index.ts", root), "utf8")
const named = new Map(
  Array.from(barrel.matchAll(/^export \* as (\w+) from "\.\/(.+)"$/gm), ([, name, file]) => [file, name])
)

const expected = readdirSync(new URL("src", root))
  .filter((file) => file.endsWith(".ts") && file !== "index.ts")
  .map((file) => `${named.get(file) ?? file.replace(/\.ts$/, "")}.html`)
const actual = readdirSync(new URL("dist-docs/modules", root))

const missing = expected.filter((page) => !actual.includes(page))
const unknown = actual.filter((page) => !expected.includes(page))

for (const page of missing) console.error(`no page: ${page}`)
for (const page of unknown) console.error(`not a public module: ${page}`)
console.log(`docs: ${actual.length} modules in dist-docs, start with dist-docs/index.html`)
process.exitCode = missing.length + unknown.length === 0 ? 0 : 1

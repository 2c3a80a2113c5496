import { assert, describe, it } from "@effect/vitest"
import * as ParentProbe from "effect-stdio/ParentProbe"

const named = (...commandLines: ReadonlyArray<ReadonlyArray<string>>) =>
  commandLines.map((commandLine) => ({ commandLine, name: commandLine.join(" ") }))

describe("isWrapper", () => {
  it.each(named(
    ["sh", "-c", "server"],
    ["npm exec server"],
    ["/usr/bin/node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "server"],
    ["bunx", "server"],
    ["bun", "x", "server"],
    ["/root/.bun/bin/bun", "x", "--bun", "server"],
    ["bun", "--silent", "run", "serve"]
  ))("is true of $name", ({ commandLine }) => {
    assert.isTrue(ParentProbe.isWrapper(commandLine))
  })

  it.each(named(
    ["-bash"],
    ["node", "host.js"],
    ["bun"],
    ["bun", "host.ts"],
    ["bun", "run", "host.ts"],
    ["bun", "run", "./src/host.mjs"]
  ))("is false of $name", ({ commandLine }) => {
    assert.isFalse(ParentProbe.isWrapper(commandLine))
  })
})

/**
 * Measures what this library costs, beside others that do the same, in one run.
 *
 *     npm run bench
 *     npm run bench -- --only echo        (agent, calls, echo, mcp, million, sizes, start, stalled)
 *     npm run --silent bench -- --json
 *     npm run bench -- --svg              (draws docs/bench.svg too)
 *     MCP_STDIO_CORE=<path> npm run bench (adds the rows of mcp-stdio-core)
 *
 * Absolute figures are this machine's; ratios are what to compare. A target that is missed is said, and is no failure. A
 * server that answers wrongly, twice, or not at all is one.
 */
import { existsSync, writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { draw } from "./plot.ts"
import type { Section } from "./report.ts"
import { summary, table } from "./report.ts"
import * as agent from "./sections/agent.ts"
import * as calls from "./sections/calls.ts"
import * as echo from "./sections/echo.ts"
import * as mcp from "./sections/mcp.ts"
import * as million from "./sections/million.ts"
import * as sizes from "./sections/sizes.ts"
import * as stalled from "./sections/stalled.ts"
import * as start from "./sections/start.ts"
import { probe } from "./servers.ts"

const SECTIONS: Readonly<Record<string, () => Promise<Section>>> = {
  agent: agent.run,
  calls: calls.run,
  echo: echo.run,
  mcp: mcp.run,
  million: million.run,
  sizes: sizes.run,
  start: start.run,
  stalled: stalled.run
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
    svg: { type: "boolean", default: false }
  }
})

const fail = (message: string) => {
  console.error(`bench: ${message}`)
  process.exit(1)
}

const chosen = Object.entries(SECTIONS).filter(([id]) => values.only === undefined || values.only.includes(id))
const unknown = values.only?.find((id) => SECTIONS[id] === undefined)
if (unknown !== undefined) fail(`there is no section ${unknown}, but ${Object.keys(SECTIONS).join(", ")}`)
if (values.svg && values.only !== undefined) fail("the plot shows all sections: leave out --only")
if (!existsSync(new URL("peers/node_modules", import.meta.url))) {
  fail("the servers to compare with are missing: run npm ci --prefix bench/peers")
}

const sections: Array<Section> = []
for (const [id, run] of chosen) {
  const begun = performance.now()
  try {
    sections.push(await run())
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error))
  }
  console.error(`measured ${id} in ${((performance.now() - begun) / 1000).toFixed(0)} s`)
}

const machine = {
  node: process.version,
  system: `${process.platform} ${process.arch}`,
  processors: cpus().map(({ model }) => model)
}
if (values.svg) {
  const file = fileURLToPath(new URL("../docs/bench.svg", import.meta.url))
  writeFileSync(file, draw(sections, probe().name))
  console.error(`drew ${file}`)
}
if (values.json) {
  console.log(JSON.stringify({ machine, sections }, undefined, 2))
} else {
  console.log(table(sections))
  console.log(`\nNode ${machine.node}, ${machine.system}, ${machine.processors.length} x ${machine.processors[0]}`)
  console.log(summary(sections))
}

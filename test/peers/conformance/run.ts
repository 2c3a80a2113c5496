/**
 * Runs the official MCP conformance suite against a server on standard input and output, through a bridge.
 *
 *     npm ci --prefix test/peers/conformance   (once)
 *     node test/peers/conformance/run.ts [--requirements 2026-07-28] [--output folder] [--verbose] [-- node server.ts]
 *
 * Without arguments: our fixture server, and what both revisions require. Exits with 1 when a required check fails that
 * `expected-failures.yaml` does not name, when an entry of that file is out of date, when the server wrote anything but
 * messages on standard output, or when it did not end by itself once its input had ended.
 */
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import type { Bridge } from "./bridge.ts"
import { startBridge } from "./bridge.ts"

const here = fileURLToPath(new URL(".", import.meta.url))
const suite = join(here, "node_modules/@modelcontextprotocol/conformance")
const SUITE_LIMIT = 240_000

interface Check {
  readonly id: string
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO"
  readonly errorMessage?: string
}

interface Scenario {
  readonly name: string
  readonly isRequired: boolean
  readonly checks: ReadonlyArray<Check>
}

/** The entries of a list in one of the suite's YAML files, which are plain. */
const yamlList = (file: string, key: string): ReadonlyArray<string> => {
  const lines = readFileSync(file, "utf8").split("\n")
  const first = lines.findIndex((line) => line.startsWith(`${key}:`)) + 1
  const length = lines.slice(first).findIndex((line) => /^\S/.test(line) && !line.startsWith("#"))
  return lines.slice(first, length === -1 ? undefined : first + length)
    .flatMap((line) => /^\s+- ([^\s#]+)/.exec(line)?.[1] ?? [])
}

let running: ChildProcess | undefined
let stopping = false

const runSuite = (url: string, revision: string, folder: string, verbose: boolean): Promise<number | null> =>
  new Promise((resolve, reject) => {
    const args = [join(suite, "dist/index.js"), "server", "--url", url, "--requirements", revision, "-o", folder]
    running = spawn(process.execPath, args, {
      stdio: ["ignore", verbose ? "inherit" : "ignore", "inherit"],
      timeout: SUITE_LIMIT
    })
    running.once("error", reject)
    running.once("close", (code) => {
      // a run that was stopped has no result
      if (!stopping) resolve(code)
    })
  })

/** What the suite has written down, by scenario, in the order of the requirements. */
const readScenarios = (folder: string, revision: string): ReadonlyArray<Scenario> => {
  const required = yamlList(join(suite, "requirements", `${revision}.yaml`), "server")
  const found = readdirSync(folder).map((entry): Scenario => {
    const name = entry.replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, "")
    const file = join(folder, entry, "checks.json")
    return {
      name,
      isRequired: required.includes(name),
      checks: existsSync(file)
        ? JSON.parse(readFileSync(file, "utf8"))
        : [{ id: name, status: "FAILURE", errorMessage: "The scenario did not finish" }]
    }
  })
  const missing = required.filter((name) => !found.some((scenario) => scenario.name === name)).map((name) => ({
    name,
    isRequired: true,
    checks: [{ id: name, status: "FAILURE" as const, errorMessage: "The scenario did not run" }]
  }))
  const position = ({ name }: Scenario) => required.includes(name) ? required.indexOf(name) : required.length
  return [...found, ...missing].toSorted((a, b) => position(a) - position(b) || a.name.localeCompare(b.name))
}

const count = (checks: ReadonlyArray<Check>, status: Check["status"]) =>
  checks.filter((check) => check.status === status).length

const say = (line: string) => process.stdout.write(`${line}\n`)

/** A line a scenario, and why where it matters. */
const show = ({ checks, isRequired, name }: Scenario, verbose: boolean) => {
  const failed = count(checks, "FAILURE")
  const warnings = count(checks, "WARNING")
  const numbers = [
    `${count(checks, "SUCCESS")} passed`,
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(warnings === 0 ? [] : [`${warnings} warnings`]),
    ...(isRequired ? [] : ["not required"])
  ]
  say(`  ${failed === 0 ? "✓" : "✗"} ${name}: ${numbers.join(", ")}`)
  if (!isRequired && !verbose) return
  for (const { errorMessage, id, status } of checks) {
    if (status === "FAILURE" || status === "WARNING") say(`      ${status} ${id}: ${errorMessage ?? ""}`)
  }
}

/** The servers' side of the story: nothing but messages on standard output, and an end that comes by itself. */
const complaints = ({ badExits, strayOutput }: Bridge): ReadonlyArray<string> => [
  ...strayOutput.map((line) => `The server wrote on standard output: ${line}`),
  ...badExits.map((how) => `A server did not end by itself: ${how}`)
]

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    requirements: { type: "string", multiple: true, default: ["2025-11-25", "2026-07-28"] },
    output: { type: "string" },
    verbose: { type: "boolean", default: false }
  }
})

if (!existsSync(suite)) {
  process.stderr.write("The conformance suite is not installed: run npm ci --prefix test/peers/conformance\n")
  process.exit(1)
}

const folder = values.output ?? mkdtempSync(join(tmpdir(), "conformance-"))
const command = positionals.length > 0 ? positionals : [process.execPath, join(here, "fixture-server.ts")]
const expected = yamlList(join(here, "expected-failures.yaml"), "server")
const problems: Array<string> = []
const met = new Set<string>()
const ran = new Set<string>()
let passed = 0
let failed = 0

const bridge = await startBridge(command)
const stop = async (exitCode: number) => {
  stopping = true
  running?.kill()
  await bridge.close()
  if (values.output === undefined) rmSync(folder, { recursive: true, force: true })
  process.exit(exitCode)
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void stop(1))

for (const revision of values.requirements) {
  const results = join(folder, revision)
  const started = performance.now()
  const exitCode = await runSuite(bridge.url, revision, results, values.verbose)
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  const scenarios = existsSync(results) ? readScenarios(results, revision) : []
  say(`\n${revision} (${seconds} s)`)
  for (const scenario of scenarios) show(scenario, values.verbose)

  const required = scenarios.filter(({ isRequired }) => isRequired)
  for (const { name } of required) ran.add(name)
  const failures = required.flatMap(({ checks, name }) =>
    checks.filter(({ status }) => status === "FAILURE").map(({ id }) => ({ name, id }))
  )
  for (const { id, name } of failures) {
    const entry = expected.find((entry) => entry === name || entry === `${name}:${id}`)
    if (entry === undefined) problems.push(`${revision}: ${name}:${id} failed`)
    else met.add(entry)
  }
  if (required.length === 0) problems.push(`${revision}: no scenario ran`)
  if ((exitCode !== 0) !== (failures.length > 0)) problems.push(`${revision}: the suite ended with ${exitCode}`)
  const ok = required.reduce((sum, { checks }) => sum + count(checks, "SUCCESS"), 0)
  say(`  ${ok} required checks passed, ${failures.length} failed`)
  passed += ok
  failed += failures.length
}

await bridge.close()
problems.push(...complaints(bridge))
for (const entry of expected) {
  if (ran.has(entry.split(":")[0] ?? "") && !met.has(entry)) problems.push(`${entry} is expected to fail, but passes`)
}

say("")
for (const problem of problems) say(problem)
say(`${passed} passed, ${failed} failed`)
await stop(problems.length === 0 ? 0 : 1)

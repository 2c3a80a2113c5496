/**
 * Runs the tests on every runtime that the package is meant for, and prints a table of the outcome.
 *
 *     npm run test:matrix                 all of them, some ten minutes
 *     npm run test:matrix -- node22 bun   some of them
 *
 * The runtimes come from npm, see `package.json` beside this file. Exits with 1 when a test failed.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const root = path.resolve(import.meta.dirname, "../..")
const installed = path.join(import.meta.dirname, "node_modules")

interface Suite {
  readonly name: string
  readonly args: ReadonlyArray<string>
  /** Whether the runtime runs the tests too, and not only the servers that they start. */
  readonly inside: boolean
}

interface Runtime {
  readonly name: string
  readonly file: string
  readonly suites: ReadonlyArray<Suite>
}

const exchange = { name: "exchange", args: ["--config", "test/matrix/vitest.config.ts"] }
const processes = { name: "processes", args: ["--project", "process"] }
const units = { name: "units", args: ["--project", "unit"], inside: true }

const node = (name: string): Runtime => ({
  name,
  file: path.join(installed, name, "bin/node"),
  suites: [{ ...exchange, inside: true }, { ...processes, inside: true }, units]
})

const runtimes: ReadonlyArray<Runtime> = [
  node("node22"),
  node("node24"),
  node("node26"),
  {
    name: "bun",
    file: path.join(installed, ".bin/bun"),
    // a server's host is Node in these: what is tested is the server
    suites: [{ ...exchange, inside: false }, { ...processes, inside: false }, units]
  }
]

interface Report {
  readonly numPassedTests: number
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: ReadonlyArray<{
      readonly status: string
      readonly fullName: string
      readonly failureMessages: ReadonlyArray<string>
    }>
  }>
}

/** Runs a program with our standard output and error, and returns its exit code. */
const run = (command: string, args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } })
    child.on("error", reject)
    child.on("close", (code) => resolve(code ?? 1))
  })

/** Runs a suite, and returns how many tests passed and a sentence for each that did not. */
const test = async (runtime: Runtime, suite: Suite): Promise<{ passed: number; failures: ReadonlyArray<string> }> => {
  console.log(`\n== ${runtime.name}: ${suite.name}`)
  const report = path.join(work, `${runtime.name}-${suite.name}.json`)
  const vitest = path.join(root, "node_modules/vitest/vitest.mjs")
  const bun = runtime.name === "bun" && suite.inside
  const code = await run(
    suite.inside ? runtime.file : process.execPath,
    // without --bun, bun would leave vitest to the Node that its first line names
    [...(bun ? ["--bun"] : []), vitest, "run", ...suite.args],
    { TEST_RUNTIME: runtime.file, TEST_REPORT: report }
  )
  if (!fs.existsSync(report)) return { passed: 0, failures: [`${suite.name} did not run: exit code ${code}`] }
  const { numPassedTests, testResults } = JSON.parse(fs.readFileSync(report, "utf8")) as Report
  const failures = testResults.flatMap((file) => {
    const failed = file.assertionResults.filter(({ status }) => status === "failed")
    if (failed.length === 0 && file.status !== "passed") return [`${file.name}: ${file.message}`]
    return failed.map(({ failureMessages, fullName }) => `${fullName}: ${failureMessages[0]?.split("\n")[0] ?? ""}`)
  })
  return {
    passed: numPassedTests,
    failures: failures.length === 0 && code !== 0 ? [`${suite.name}: exit code ${code}`] : failures
  }
}

const version = (file: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(file, ["--version"], { stdio: ["ignore", "pipe", "inherit"] })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
    })
    child.on("error", reject)
    child.on("close", () => resolve(text.trim().replace(/^v/, "")))
  })

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !runtimes.some((runtime) => runtime.name === name))
if (unknown.length > 0) {
  console.error(`no such runtime: ${unknown.join(", ")}; there are ${runtimes.map(({ name }) => name).join(", ")}`)
  process.exit(2)
}

const work = fs.mkdtempSync(path.join(os.tmpdir(), "effect-stdio-matrix-"))
const rows: Array<ReadonlyArray<string>> = [["runtime", "exchange", "processes", "units"]]
const failures: Array<string> = []
try {
  for (const runtime of runtimes.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const row = [`${runtime.name.replace(/\d+$/, "")} ${await version(runtime.file)}`]
    for (const suite of runtime.suites) {
      const outcome = await test(runtime, suite)
      row.push(`${outcome.passed} passed${outcome.failures.length === 0 ? "" : `, ${outcome.failures.length} failed`}`)
      failures.push(...outcome.failures.map((failure) => `${row[0]}: ${failure}`))
    }
    rows.push(row)
  }
} finally {
  fs.rmSync(work, { recursive: true, force: true })
}

console.log("")
for (const row of rows) console.log(row.map((cell) => cell.padEnd(24)).join("").trimEnd())
for (const failure of failures) console.log(`FAILED ${failure}`)
process.exitCode = failures.length === 0 ? 0 : 1

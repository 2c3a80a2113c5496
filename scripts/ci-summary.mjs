// Prints what `.ci/run` found and, on the last line, "N passed, N failed".
// Arguments: vitest's JSON report, then one "<exit status> <command>" per step, the tests first.
import { readFileSync } from "node:fs"

const [report, ...outcomes] = process.argv.slice(2)
const steps = outcomes.map((outcome) => {
  const space = outcome.indexOf(" ")
  return { command: outcome.slice(space + 1), ok: outcome.slice(0, space) === "0" }
})
const [tests, ...checks] = steps

/** Tests that passed and that did not: failed, skipped, to do, or lost in a file that could not be loaded. */
function countTests() {
  let files
  try {
    files = JSON.parse(readFileSync(report, "utf8")).testResults
  } catch {
    return { passed: 0, failed: 1 } // the runner did not get as far as writing its report
  }
  let passed = 0
  let failed = 0
  for (const { assertionResults, name, status } of files) {
    const bad = assertionResults.filter((test) => test.status !== "passed")
    for (const test of bad) console.log(`${test.status}: ${test.fullName} (${name})`)
    passed += assertionResults.length - bad.length
    failed += bad.length
    if (bad.length === 0 && status !== "passed") {
      console.log(`failed to run: ${name}`)
      failed++
    }
  }
  // No tests at all, or an error outside of every test: the exit status alone tells.
  if (failed === 0 && (passed === 0 || !tests.ok)) failed = 1
  return { passed, failed }
}

console.log("\n== summary")
let { failed, passed } = countTests()
console.log(`${failed === 0 ? "ok    " : "FAILED"} ${tests.command}`)
for (const { command, ok } of checks) {
  console.log(`${ok ? "ok    " : "FAILED"} ${command}`)
  if (ok) passed++
  else failed++
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

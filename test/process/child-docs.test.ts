/**
 * The programs that docs/processes.md shows, run as a reader would run them.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as Child from "../utils/child.ts"

const run = (file: string) =>
  spawnSync(Child.runtime, [Child.path(file)], {
    encoding: "utf8",
    timeout: 20_000,
    env: { ...process.env, ...Child.environment }
  })

describe("docs/processes.md", () => {
  it("has a program that calls a child, ends it, and is told of a crash", () => {
    const { status, stdout } = run("examples/docs/processes.ts")
    const [answer, ended, crash = "", ...others] = stdout.split("\n")
    assert.deepStrictEqual({ status, answer, ended, others }, {
      status: 0,
      answer: "0.25",
      ended: "{\"exitCode\":0}",
      others: [""]
    })
    assert.match(
      crash,
      /^divide cannot be settled: the process .*serving\.ts ended by SIGKILL$|^the process .*serving\.ts ended by SIGKILL$/
    )
  })

  it("has a program that goes on after a crash", () => {
    const { status, stdout } = run("examples/docs/supervised.ts")
    const lines = stdout.split("\n")
    assert.strictEqual(status, 0)
    assert.deepStrictEqual(lines.filter((line) => line === "0.25"), ["0.25", "0.25"])
    assert.include(lines, "generation 2")
  })
})

Child.leavesNothingBehind()

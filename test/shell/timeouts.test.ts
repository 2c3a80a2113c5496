// How long a command may run.
import { assert, describe, it } from "@effect/vitest"
import { defaultTimeout, isTimeout } from "../../examples/shell/timeouts.ts"

const VARIABLES = [
  "EFFECT_STDIO_SHELL_TIMEOUT_MS",
  "OMO_CODEX_EXEC_COMMAND_TIMEOUT_MS",
  "OMO_CODEX_GIT_BASH_TIMEOUT_MS",
  "CODEX_EXEC_COMMAND_TIMEOUT_MS",
  "EXEC_COMMAND_TIMEOUT_MS"
]

describe("the default timeout", () => {
  it("is two minutes where nothing is set", () => {
    for (const environment of [{}, { EXEC_COMMAND_TIMEOUT_MS: " " }]) {
      assert.deepStrictEqual(defaultTimeout(environment), { milliseconds: 120_000, variable: undefined, invalid: [] })
    }
  })

  it("is that of the first variable that is set", () => {
    for (const [index, variable] of VARIABLES.entries()) {
      const set = VARIABLES.slice(index).map((name, later) => [name, String(1_000 + index + later)])
      assert.deepStrictEqual(defaultTimeout(Object.fromEntries(set)), {
        milliseconds: 1_000 + index,
        variable,
        invalid: []
      })
    }
  })

  it("skips values that are no timeout, and names all of them", () => {
    const values = ["0", "-5", "1e3", "two minutes", "1800001"]
    const invalid = VARIABLES.map((variable, index) => ({ variable, value: values[index] ?? "" }))
    const environment = Object.fromEntries(invalid.map(({ value, variable }) => [variable, value]))
    assert.deepStrictEqual(defaultTimeout(environment), { milliseconds: 120_000, variable: undefined, invalid })
    const valid = defaultTimeout({ ...environment, OMO_CODEX_GIT_BASH_TIMEOUT_MS: " 1800000 " })
    assert.strictEqual(valid.milliseconds, 1_800_000)
    assert.strictEqual(valid.variable, "OMO_CODEX_GIT_BASH_TIMEOUT_MS")
    assert.strictEqual(valid.invalid.length, 4)
  })
})

describe("a timeout", () => {
  it("is a whole number of milliseconds from 1 to 30 minutes", () => {
    for (const timeout of [1, 2_000, 1_800_000]) assert.isTrue(isTimeout(timeout))
    for (const timeout of [0, -1, 1.5, 1_800_001, Number.NaN, Infinity]) assert.isFalse(isTimeout(timeout))
  })
})

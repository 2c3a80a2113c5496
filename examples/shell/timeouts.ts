/**
 * How long a command may run.
 *
 * @since 0.1.0
 */

/**
 * The longest timeout, in milliseconds: 30 minutes.
 *
 * @category constants
 * @since 0.1.0
 */
export const MAX_TIMEOUT: number = 30 * 60_000

const DEFAULT_TIMEOUT = 120_000

/** Those of other programs too, so that one setting serves all. */
const VARIABLES = [
  "EFFECT_STDIO_SHELL_TIMEOUT_MS",
  "OMO_CODEX_EXEC_COMMAND_TIMEOUT_MS",
  "OMO_CODEX_GIT_BASH_TIMEOUT_MS",
  "CODEX_EXEC_COMMAND_TIMEOUT_MS",
  "EXEC_COMMAND_TIMEOUT_MS"
]

/**
 * The timeout of a command that brings none.
 *
 * @category models
 * @since 0.1.0
 */
export interface DefaultTimeout {
  readonly milliseconds: number
  /** The variable that says so; undefined where none does. */
  readonly variable: string | undefined
  /** Variables that are set to something else than a timeout, and were skipped. */
  readonly invalid: ReadonlyArray<{ readonly variable: string; readonly value: string }>
}

/**
 * Whether this is a timeout: whole milliseconds from 1 to `MAX_TIMEOUT`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isTimeout = (milliseconds: number): boolean =>
  Number.isInteger(milliseconds) && milliseconds >= 1 && milliseconds <= MAX_TIMEOUT

/**
 * Finds the default timeout: the first variable that is set to a timeout, or two minutes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultTimeout = (environment: Readonly<Record<string, string | undefined>>): DefaultTimeout => {
  const given = VARIABLES.flatMap((variable) => {
    const value = environment[variable]?.trim() ?? ""
    return value === "" ? [] : [{ variable, value, milliseconds: /^\d+$/.test(value) ? Number(value) : Number.NaN }]
  })
  const valid = given.find(({ milliseconds }) => isTimeout(milliseconds))
  return {
    milliseconds: valid?.milliseconds ?? DEFAULT_TIMEOUT,
    variable: valid?.variable,
    invalid: given.flatMap(({ milliseconds, value, variable }) => isTimeout(milliseconds) ? [] : [{ variable, value }])
  }
}

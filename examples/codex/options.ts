/**
 * The command line of the program, checked before anything begins.
 *
 * @since 0.1.0
 */
import { statSync } from "node:fs"
import { resolve } from "node:path"
import type * as Codex from "../../src/Codex.ts"
import { parse } from "../shared/arguments.ts"

const NAME = "codex"

const USAGE = `Usage: node examples/codex/main.ts [options] [prompt…]

  --json               each event as a line of JSON; nothing is asked
  --cwd <folder>       where the agent works; the working directory if not given
  --model <name>       which model
  --sandbox <mode>     read-only, workspace-write or danger-full-access
  --approve <when>     when it asks first: untrusted, on-request or never
  --resume <thread>    goes on with a conversation of before

Without a prompt it is read from standard input; on a terminal you are asked for one after the other.
`

const SANDBOXES = ["read-only", "workspace-write", "danger-full-access"] as const
const POLICIES = ["untrusted", "on-request", "never"] as const

/**
 * What the program is to do.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly json: boolean
  /** From the command line; undefined when it has none. */
  readonly prompt: string | undefined
  readonly thread: Codex.ThreadOptions
}

/**
 * Ends the program that was started in the wrong way, with a word on how to start it.
 *
 * @category errors
 * @since 0.1.0
 */
export const refuse = (problem: string): never => {
  console.error(`${NAME}: ${problem}`)
  process.exit(2)
}

/**
 * Reads the command line.
 *
 * @category constructors
 * @since 0.1.0
 */
export const readOptions = (): Options => {
  const { positionals, values } = parse(NAME, {
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      json: { type: "boolean", default: false },
      cwd: { type: "string" },
      model: { type: "string" },
      sandbox: { type: "string" },
      approve: { type: "string" },
      resume: { type: "string" }
    }
  })
  if (values.help) {
    console.log(USAGE)
    process.exit(0)
  }
  const prompt = positionals.join(" ")
  if (positionals.length > 0 && prompt.trim() === "") return refuse("the prompt is empty")
  return {
    json: values.json,
    prompt: positionals.length === 0 ? undefined : prompt,
    thread: {
      cwd: folder(values.cwd),
      model: values.model,
      sandbox: oneOf("sandbox", SANDBOXES, values.sandbox),
      approvalPolicy: oneOf("approve", POLICIES, values.approve),
      resume: values.resume
    }
  }
}

const folder = (given: string | undefined): string | undefined => {
  if (given === undefined) return undefined
  if (statSync(given, { throwIfNoEntry: false })?.isDirectory() === true) return resolve(given)
  return refuse(`${given} is not a folder; give one that exists with --cwd, or leave it out`)
}

const oneOf = <T extends string>(option: string, choices: ReadonlyArray<T>, given: string | undefined): T | undefined =>
  given === undefined
    ? undefined
    : choices.find((choice) => choice === given) ?? refuse(`--${option} is ${given}; give one of ${choices.join(", ")}`)

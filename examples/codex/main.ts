/**
 * Codex on the command line: says what it does, asks before it does it, and can be interrupted.
 *
 *     node examples/codex/main.ts [--json] [--cwd folder] [--model name] [--sandbox mode] [--approve when]
 *       [--resume thread] [prompt…]
 *
 * The README beside it says more.
 */
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Runtime from "effect/Runtime"
import { isatty } from "node:tty"
import { readInput } from "./input.ts"
import { readOptions, refuse } from "./options.ts"
import * as Output from "./Output.ts"
import * as Questions from "./questions.ts"
import * as Session from "./session.ts"
import * as Signals from "./Signals.ts"

/** Time for codex to end once we have been asked to leave; then it is killed. */
const LEAVE = "700 millis"

/** More than codex takes, in characters. */
const MAX_PROMPT = 2 ** 20

const options = readOptions()
const isTerminal = isatty(0) && isatty(2)
const canAsk = isTerminal && !options.json
if (options.prompt === undefined && isatty(0) && !canAsk) {
  refuse("there is no prompt; give one, or write it to the input")
}

const dim = isatty(2) && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb"

const readPrompt = Effect.map(readInput(MAX_PROMPT), (prompt) => {
  if (prompt === undefined) return refuse(`the input is longer than ${MAX_PROMPT} characters; put it into a file`)
  return prompt.trim() === "" ? refuse("the input is empty; write the prompt to it, or give it as an argument") : prompt
})

const converse = Effect.fnUntraced(function*(output: Output.Output, signals: Signals.Signals) {
  const prompt = options.prompt ?? (canAsk ? undefined : yield* readPrompt)
  const terminal = canAsk ? yield* NodeTerminal.make() : undefined
  const questions = terminal === undefined ? undefined : yield* Questions.make(terminal, output)
  const { json, thread } = options
  const session = yield* Session.make({ json, dim, thread, output, signals, questions })
  if (prompt !== undefined) return yield* session.turn(prompt)
  return terminal === undefined ? 0 : yield* session.prompts(terminal)
})

const program = Effect.gen(function*() {
  const output = yield* Output.make
  const signals = yield* Signals.make
  // what codex does not do in time it does not do any more: leaving kills what is left of it
  yield* Effect.forkDetach(
    Effect.flatMap(signals.leaving, (code) => Effect.delay(Effect.sync(() => process.exit(code)), LEAVE))
  )
  return yield* converse(output, signals).pipe(
    Effect.scoped,
    Effect.catchTag("AgentError", (error) => Session.report(output, error)),
    Effect.raceFirst(signals.leaving),
    Effect.raceFirst(Effect.as(output.closed, 130))
  )
}).pipe(
  Effect.scoped,
  Effect.tapCause((cause) => Effect.logError(cause)),
  Effect.provideService(Logger.LogToStderr, true)
)

// not that of platform-node, for which the first Ctrl-C is the end
const runMain = Runtime.makeRunMain(({ fiber, teardown }) => {
  fiber.addObserver((exit) => teardown(exit, (code) => process.exit(code)))
})

runMain(program, {
  disableErrorReporting: true,
  teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) && typeof exit.value === "number" ? exit.value : 1)
})

/**
 * A conversation: one turn, or one turn after the other as they are typed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Terminal from "effect/Terminal"
import * as Agent from "../../src/Agent.ts"
import * as Codex from "../../src/Codex.ts"
import type { Output } from "./Output.ts"
import type { Questions } from "./questions.ts"
import { makeRendering } from "./render.ts"
import type { Signals } from "./Signals.ts"
import { safeJson, visible } from "./text.ts"

/**
 * What a conversation needs of the program around it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly json: boolean
  /** Whether what is less important may be dimmed. */
  readonly dim: boolean
  readonly thread: Codex.ThreadOptions
  readonly output: Output
  readonly signals: Signals
  /** Undefined where there is nobody to ask. */
  readonly questions: Questions | undefined
}

/**
 * A conversation that has begun.
 *
 * @category models
 * @since 0.1.0
 */
export interface Session {
  /** Runs one turn and returns the exit code for it. */
  readonly turn: (prompt: string) => Effect.Effect<number, Agent.AgentError>
  /** Asks for prompts until there are no more, and returns the exit code. */
  readonly prompts: (terminal: Terminal.Terminal) => Effect.Effect<number>
}

const EXIT_CODES = { completed: 0, failed: 1, interrupted: 130 }

const encode = Schema.encodeSync(Schema.fromJsonString(Agent.AgentEvent))

/**
 * Begins a conversation, or takes one up. With the scope it ends, and says by which id it can be resumed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<Session, Agent.AgentError, Scope.Scope> {
  const { dim, json, output, questions, signals } = options
  const codex = yield* Codex.make({ approvals: questions?.approvals })
  const thread = yield* codex.thread(options.thread)
  let hasTurns = false
  yield* Effect.addFinalizer(() =>
    hasTurns
      ? Effect.flatMap(thread.id, (id) => output.write({ to: "err", text: `to go on: --resume ${visible(id)}\n` }))
      : Effect.void
  )

  const render = makeRendering({ dim, canAsk: questions !== undefined })
  const write = (event: Agent.AgentEvent) =>
    json
      ? output.write({ to: "out", text: `${safeJson(encode(event))}\n` })
      : output.write(...render(event))

  const show = (event: Agent.AgentEvent): Effect.Effect<void> =>
    questions === undefined
      ? write(event)
      : Effect.andThen(questions.between(write(event)), Effect.sync(() => questions.shown(event)))

  // to the left of it stands what the terminal makes of the key, or half a line
  const interrupting = output.write({ to: "err", text: "\ninterrupting; Ctrl-C again leaves at once\n" })

  const turn = (prompt: string) =>
    // nobody is asked without a terminal: the agent may wait for whoever reads the output
    thread.stream(prompt, { whenSlow: questions === undefined ? "suspend" : "merge" }).pipe(
      Stream.tap((event) => {
        hasTurns = true
        return show(event)
      }),
      Stream.runFold((): number => EXIT_CODES.failed, (code, event) =>
        event._tag === "TurnEnd" ? EXIT_CODES[event.status] : code),
      (turn) =>
        signals.during(turn, Effect.andThen(interrupting, thread.interrupt))
    )

  const prompts = (terminal: Terminal.Terminal) =>
    Effect.gen(function*() {
      while (true) {
        yield* output.write({ to: "err", text: "> " })
        const line = yield* Effect.option(terminal.readLine)
        if (Option.isNone(line)) {
          yield* output.write({ to: "err", text: "\n" })
          return 0
        }
        const prompt = line.value.trim()
        // what went wrong is shown, and the next prompt may be luckier
        if (prompt !== "") yield* Effect.catch(turn(prompt), (error) => report(output, error))
      }
    })

  return { turn, prompts }
})

/**
 * Says what went wrong, and returns the exit code for it.
 *
 * @category errors
 * @since 0.1.0
 */
export const report = (output: Output, error: Agent.AgentError): Effect.Effect<number> =>
  Effect.as(output.write({ to: "err", text: `codex: ${visible(error.message)}\n` }), EXIT_CODES.failed)

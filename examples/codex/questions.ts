/**
 * Asks whoever sits at the terminal what the agent asks.
 *
 * The one idea to know: a question has the terminal for itself. The events that come in the meantime wait for the answer,
 * and the question waits until the events before it have been shown.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type * as Terminal from "effect/Terminal"
import type * as Agent from "../../src/Agent.ts"
import type * as Approval from "../../src/Approval.ts"
import type { Output } from "./Output.ts"
import { visible } from "./text.ts"

/**
 * Questions on a terminal.
 *
 * @category models
 * @since 0.1.0
 */
export interface Questions {
  readonly approvals: Approval.Approvals
  /** Does this while nothing is asked. */
  readonly between: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** This has been shown: a question that stands on the terminal may be answered. */
  readonly shown: (event: Agent.AgentEvent) => void
}

/** What was typed before the question stood there is no answer to it. */
const TYPED_AHEAD = "50 millis"

/**
 * Makes questions on a terminal.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  terminal: Terminal.Terminal,
  output: Output
): Effect.fn.Return<Questions> {
  const lock = yield* Semaphore.make(1)
  /** Questions that were shown and are not asked yet, or the other way round. */
  const waiting = new Map<string, Latch.Latch>()

  const meet = (approvalId: string): Latch.Latch => {
    const other = waiting.get(approvalId)
    if (other === undefined) {
      const latch = Latch.makeUnsafe(false)
      waiting.set(approvalId, latch)
      return latch
    }
    waiting.delete(approvalId)
    other.openUnsafe()
    return other
  }

  const dropTypedAhead = terminal.readLine.pipe(
    Effect.timeoutOption(TYPED_AHEAD),
    Effect.repeat({ until: Option.isNone })
  )

  const say = (text: string) => output.write({ to: "err", text })

  /** The answer; undefined when the input has ended. */
  const ask = (question: string) =>
    Effect.andThen(say(question), terminal.readLine).pipe(
      Effect.map((line) => line.trim()),
      Effect.onInterrupt(() => say("\n"))
    )

  const alone = <A>(
    { approvalId }: Approval.ApprovalInfo,
    asking: Effect.Effect<A, Terminal.QuitError>,
    no: A
  ): Effect.Effect<A> =>
    Effect.suspend(() => meet(approvalId).await).pipe(
      Effect.andThen(lock.withPermit(Effect.andThen(dropTypedAhead, asking))),
      Effect.catch(() => Effect.as(say("\n"), no)),
      Effect.onInterrupt(() =>
        Effect.sync(() => {
          waiting.delete(approvalId)
        })
      )
    )

  const yesOrNo: Effect.Effect<"accept" | "acceptForSession" | "decline", Terminal.QuitError> = Effect.suspend(() =>
    ask("[y]es, [n]o, [a]lways in this session: ")
  ).pipe(
    Effect.flatMap((answer) => {
      switch (answer.toLowerCase()) {
        case "y":
        case "yes":
          return Effect.succeed("accept" as const)
        case "a":
        case "always":
          return Effect.succeed("acceptForSession" as const)
        case "n":
        case "no":
          return Effect.succeed("decline" as const)
        default:
          return yesOrNo
      }
    })
  )

  const decide = (_: Approval.Approval, info: Approval.ApprovalInfo) => alone(info, yesOrNo, "decline")

  const answer = ({ options, question }: Approval.Questions["questions"][number], isOnlyOne: boolean) =>
    Effect.map(
      ask(`${isOnlyOne ? "" : `${visible(question)} `}answer${options.length > 0 ? ", or its number" : ""}: `),
      (answer) => [options[Number(answer) - 1]?.label ?? answer]
    )

  const answers = ({ questions }: Approval.Questions) =>
    Effect.map(
      Effect.forEach(questions, (question) => answer(question, questions.length === 1)),
      (all) => Object.fromEntries(questions.map(({ id }, index) => [id, all[index] ?? []]))
    )

  return {
    approvals: {
      command: decide,
      fileChange: decide,
      tool: decide,
      permission: (approval, info) =>
        Effect.map(decide(approval, info), (decision) =>
          decision === "decline"
            ? decision
            : { grant: approval.permissions, scope: decision === "accept" ? "turn" as const : "session" as const }),
      questions: (questions, info) =>
        alone<Readonly<Record<string, ReadonlyArray<string>>> | "decline">(info, answers(questions), "decline")
    },
    between: (effect) => lock.withPermit(effect),
    shown: (event) => {
      // nobody is asked for what is filled in
      if (event._tag === "ApprovalAsked" && event.approval._tag !== "Elicitation") meet(event.approvalId)
      if (event._tag === "TurnEnd") waiting.clear()
    }
  }
})

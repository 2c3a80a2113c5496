/**
 * A recorded conversation with the real codex app server, had again by the adapter: codex says what it said then, and
 * whatever the recorded client did is done through the adapter, at the same place.
 *
 * The ids of requests and their params are the adapter's own; a recorded message counts as sent again when one of its
 * method is, see `Recording.replay`. After its last message codex ends as it did then. What the adapter does in another way than the recorded client is told by the test,
 * message by message.
 */
import type * as Agent from "effect-stdio/Agent"
import type * as Approval from "effect-stdio/Approval"
import * as Codex from "effect-stdio/Codex"
import * as Recording from "effect-stdio/Recording"
import * as Transport from "effect-stdio/Transport"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { settled } from "./scriptedCodex.ts"

/** What the adapter does in another way than the recorded client, by the id of the recorded request or response. */
export interface Differences {
  /** Is done through the adapter, which sends nothing for it: message and answer are taken from the recording. */
  readonly sendsNothing?: ReadonlyArray<number>
  /** Is neither done nor sent: the adapter has nothing that could send it. */
  readonly leftOut?: ReadonlyArray<number>
  /** Is sent by the adapter itself, because of what was done before. */
  readonly byItself?: ReadonlyArray<number>
}

/** How the process of codex ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: string | null
}

/** What was said, and all that happened then. */
export interface Turn {
  readonly thread: number
  readonly input: string
  readonly events: ReadonlyArray<Agent.AgentEvent>
  /** Why there was no turn. */
  readonly refused: Agent.AgentError | undefined
}

export interface Played {
  readonly turns: ReadonlyArray<Turn>
  /** What the adapter has answered codex, by the id of the question. */
  readonly answers: ReadonlyMap<unknown, unknown>
  /** What the recorded client has answered. */
  readonly recorded: ReadonlyMap<unknown, unknown>
  /** What is on record and was not sent again. */
  readonly left: ReadonlyArray<unknown>
  /** Succeeds when exactly what is on record was sent. */
  readonly done: Effect.Effect<void, Recording.RecordingError>
}

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: Params
  readonly result?: Answer
}

interface Params {
  readonly threadId?: string
  readonly input?: ReadonlyArray<{ readonly text: string }>
  readonly dynamicTools?: ReadonlyArray<object>
}

/** The bodies of all answers in the recordings. */
interface Answer {
  readonly decision?: Approval.Decision
  readonly answers?: Readonly<Record<string, { readonly answers: ReadonlyArray<string> }>>
  readonly action?: "accept" | "decline" | "cancel"
  readonly content?: unknown
  readonly contentItems?: ReadonlyArray<{ readonly type: "inputText"; readonly text: string }>
  readonly success?: boolean
}

interface Thread {
  readonly agent: Agent.Agent["Service"]
  readonly number: number
  readonly scope: Scope.Closeable
}

// the recordings are ours, and say what the app server and its client say to each other
const messageOf = ({ message }: Recording.Entry) => message as Message

const isAnswer = ({ id, method }: Message) => id !== undefined && method === undefined

const isQuestion = ({ id, method }: Message) => id !== undefined && method !== undefined

/** Plays a recording from its start to its end. */
export const play = Effect.fnUntraced(function*(
  recording: ReadonlyArray<Recording.Entry>,
  { code, signal }: Ended,
  differences: Differences = {}
): Effect.fn.Return<Played, Agent.AgentError, Scope.Scope> {
  const { byItself = [], leftOut = [], sendsNothing = [] } = differences
  const messages = recording.filter(({ message }) => typeof message === "object" && message !== null)
  const unsent = new Set(
    messages.filter((entry) =>
      entry.direction === "out" && [...leftOut, ...sendsNothing].some((id) => id === messageOf(entry).id)
    )
  )
  const refusals = new Set(
    [...unsent].filter((entry) => isQuestion(messageOf(entry))).map((entry) => messageOf(entry).id)
  )
  const entries = messages.filter((entry) =>
    !unsent.has(entry) &&
    !(entry.direction === "in" && isAnswer(messageOf(entry)) && refusals.has(messageOf(entry).id))
  )
  const replay = yield* Recording.replay(entries)
  const over = yield* Deferred.make<void>()
  const exited = new Transport.ProcessExited({
    command: "codex",
    ...(code === null ? {} : { exitCode: code }),
    ...(signal === null ? {} : { signal }),
    stderrTail: ""
  })

  let heard = 0
  const answers = new Map<unknown, unknown>()
  const recorded = new Map<unknown, unknown>()
  // codex asks, and we answer, one after the other in all recordings
  const asked: Array<Deferred.Deferred<Answer>> = []
  const questions = entries.filter((entry) => entry.direction === "in" && isQuestion(messageOf(entry)))
  for (let at = 0; at < questions.length; at++) asked.push(Deferred.makeUnsafe())
  let askedSoFar = 0
  const answer = Effect.suspend(() => {
    const next = asked[askedSoFar++]
    return next === undefined ? Effect.die(new Error("codex asks what it did not ask then")) : Deferred.await(next)
  })

  const specs = messages.map((entry) => messageOf(entry).params?.dynamicTools).find((specs) => specs !== undefined)
  const codex = yield* Codex.make({
    connect: Effect.succeed({
      ...replay.transport,
      incoming: Stream.interruptWhen(replay.transport.incoming, Deferred.await(over)),
      closed: Effect.raceFirst(replay.transport.closed, Effect.as(Deferred.await(over), exited))
    }),
    approvals: {
      command: () => Effect.map(answer, ({ decision = "decline" }) => decision),
      fileChange: () => Effect.map(answer, ({ decision = "decline" }) => decision),
      tool: () => Effect.map(answer, ({ action = "decline" }) => action),
      elicitation: () =>
        Effect.map(answer, ({ action = "decline", content }) => action === "accept" ? { content } : action),
      questions: () =>
        Effect.map(
          answer,
          ({ answers = {} }) => Object.fromEntries(Object.entries(answers).map(([id, { answers }]) => [id, answers]))
        )
    },
    tools: specs && {
      specs,
      call: () => Effect.map(answer, ({ contentItems = [], success = false }) => ({ contentItems, success }))
    },
    tap: {
      payload: (message) => message,
      onMessage: ({ direction, payload }) => {
        // `payload` is the message, as it was told above
        const message = payload as Message
        if (direction === "in") heard++
        else if (isAnswer(message)) answers.set(message.id, message.result)
      }
    }
  })

  const threads = new Map<string | undefined, Thread>()
  const turns: Array<{ -readonly [K in keyof Turn]: Turn[K] }> = []
  const fibers: Array<Fiber.Fiber<void>> = []

  const openThread = Effect.fnUntraced(function*(options: Codex.ThreadOptions) {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const agent = yield* Scope.provide(codex.thread(options), scope)
    threads.set(yield* agent.id, { agent, scope, number: threads.size + 1 })
  })

  const background = (effect: Effect.Effect<unknown, unknown>) =>
    Effect.forkScoped(Effect.ignore(effect), { startImmediately: true })

  const follow = Effect.fnUntraced(function*({ agent, number }: Thread, input: string) {
    const events: Array<Agent.AgentEvent> = []
    const turn: (typeof turns)[number] = { thread: number, input, events, refused: undefined }
    turns.push(turn)
    const fiber = yield* Stream.runForEach(agent.stream(input), (event) =>
      Effect.sync(() => {
        events.push(event)
      })).pipe(
        Effect.catch((error) =>
          Effect.sync(() => {
            turn.refused = error
          })
        ),
        Effect.forkScoped({ startImmediately: true })
      )
    fibers.push(fiber)
  })

  /** Does what the recorded client did. */
  const act = Effect.fnUntraced(function*({ id, method, params, result }: Message) {
    if (method === undefined) {
      const index = questions.findIndex((entry) => messageOf(entry).id === id)
      const question = asked[index]
      if (question === undefined) return yield* Effect.die(new Error(`nobody has asked ${id}`))
      recorded.set(id, result)
      return yield* Deferred.succeed(question, result ?? {})
    }
    if (method === "initialize" || method === "initialized") return
    if (method === "thread/start") return yield* openThread({})
    if (method === "thread/resume") return yield* openThread({ resume: params?.threadId })
    if (method === "config/mcpServer/reload") return yield* background(codex.reloadMcpServers)
    const thread = threads.get(params?.threadId)
    if (thread === undefined) return yield* Effect.die(new Error(`no conversation ${params?.threadId} for ${method}`))
    const input = params?.input?.map(({ text }) => text).join("") ?? ""
    switch (method) {
      case "turn/start":
        return yield* follow(thread, input)
      case "turn/steer":
        return yield* background(thread.agent.steer(input))
      case "turn/interrupt":
        return yield* background(thread.agent.interrupt)
      case "thread/unsubscribe":
        return yield* background(Scope.close(thread.scope, Exit.void))
      default:
        // what the adapter has no function for
        return yield* background(Effect.flatMap(codex.peer, (peer) => peer.call(method, params)))
    }
  })

  /** Returns when all that codex said up to here has been heard. */
  const hearUpTo = (count: number) =>
    Effect.andThen(Effect.repeat(Effect.yieldNow, { until: () => heard >= count }), settled)

  let said = 0
  for (const entry of messages) {
    if (entry.direction === "in") {
      if (entries.includes(entry)) said++
      continue
    }
    const { id } = messageOf(entry)
    if ([...leftOut, ...byItself].some((other) => other === id)) continue
    // the handshake waits for its own answer
    if (threads.size > 0) yield* hearUpTo(said)
    yield* act(messageOf(entry))
    yield* settled
  }
  yield* hearUpTo(said)
  // nothing waits for an answer any longer then
  yield* Effect.andThen(Deferred.succeed(over, undefined), settled)
  yield* Effect.forEach(fibers, Fiber.await, { discard: true })
  return { turns, answers, recorded, left: yield* replay.left, done: replay.done }
})

/** The events of a turn, one a line; pieces of one text that follow each other are one, since they depend on timing. */
export const print = (turns: ReadonlyArray<Turn>): string =>
  turns.map(({ events, input, refused, thread }) =>
    [
      `# thread ${thread}: ${input}`,
      ...joined(events).map(line),
      ...(refused === undefined ? [] : [`refused: ${refused.reason._tag}`]),
      ""
    ].join("\n")
  ).join("\n")

const line = ({ _tag, ...members }: Agent.AgentEvent): string =>
  [_tag, ...Object.entries(members).map(([name, value]) => `${name}=${JSON.stringify(value)}`)].join(" ")

const joined = (events: ReadonlyArray<Agent.AgentEvent>): ReadonlyArray<Agent.AgentEvent> => {
  const result: Array<Agent.AgentEvent> = []
  for (const event of events) {
    const before = result.at(-1)
    if (before === undefined || !isDelta(before) || !isDelta(event) || keyOf(before) !== keyOf(event)) {
      result.push(event)
    } else result[result.length - 1] = { ...before, text: before.text + event.text }
  }
  return result
}

type Delta = Extract<Agent.AgentEvent, { readonly _tag: "TextDelta" | "ReasoningDelta" | "PlanDelta" | "ToolOutput" }>

const isDelta = (event: Agent.AgentEvent): event is Delta =>
  event._tag === "TextDelta" || event._tag === "ReasoningDelta" || event._tag === "PlanDelta" ||
  event._tag === "ToolOutput"

const keyOf = ({ text: _, ...key }: Delta): string => JSON.stringify(key)

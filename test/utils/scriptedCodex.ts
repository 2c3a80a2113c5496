/**
 * A codex app server in memory that does what a test tells it. Each connection to it is a generation of its own, as each
 * process of the real one would be.
 */
import type * as Agent from "effect-stdio/Agent"
import * as Codex from "effect-stdio/Codex"
import * as Transport from "effect-stdio/Transport"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

export const THREAD = "thread-1"
export const TURN = "turn-1"

/** What one side says to the other, as it stands on the wire. */
export interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export interface Request extends Message {
  readonly id: string | number
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Answers a request of the adapter, or does not. */
export type Answer = (request: Request, generation: Generation) => void

/** One connection, from the side of codex. */
export interface Generation {
  /** What came, in order. */
  readonly received: ReadonlyArray<Message>
  /** The params of all requests with this method. */
  readonly requests: (method: string) => ReadonlyArray<Request["params"]>
  /** All answers to our request with this id. */
  readonly answers: (id: string | number) => ReadonlyArray<Message>
  /** Says this, all in one chunk. */
  readonly say: (...messages: ReadonlyArray<Message>) => void
  readonly reply: (request: Request, result: unknown) => void
  /** Writes this as it is. */
  readonly write: (text: string) => void
  /** The process ends: with this code and these last words, or for a reason that nobody knows. */
  readonly crash: (exit?: { readonly exitCode: number; readonly stderrTail: string }) => void
  /** Whether the adapter has let go of the connection. */
  readonly isClosed: () => boolean
}

/** Lets what can run without time passing run. */
export const settled: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: 256 }))

/** Lets time pass in steps of whole milliseconds, so that whoever wakes in between may do something and sleep again. */
export const pass = (time: Duration.Input, steps = 20): Effect.Effect<void> => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(time))
  const until = (step: number) => Math.floor(millis * step / steps)
  return Effect.forEach(
    Array.from({ length: steps }, (_, step) => until(step + 1) - until(step)),
    (step) => Effect.andThen(TestClock.adjust(step), settled),
    { discard: true }
  )
}

// -----------------------------------------------------------------------------
// what codex says
// -----------------------------------------------------------------------------

interface At {
  readonly threadId?: string
  readonly turnId?: string
}

export const notification = (method: string, params: object, at?: At): Message => ({
  method,
  params: { threadId: THREAD, turnId: TURN, ...at, ...params }
})

export const started = (item: object, at?: At) => notification("item/started", { item }, at)

export const completed = (item: object, at?: At) => notification("item/completed", { item }, at)

export const delta = (itemId: string, text: string, at?: At) =>
  notification("item/agentMessage/delta", { itemId, delta: text }, at)

export const message = (id: string, text: string) => ({ type: "agentMessage", id, text })

export const turnStarted = (turnId: string = TURN, threadId: string = THREAD): Message => ({
  method: "turn/started",
  params: { threadId, turn: { id: turnId, status: "inProgress", items: [], error: null } }
})

export const turnCompleted = (
  turn?: { readonly id?: string; readonly status?: string; readonly error?: object; readonly items?: Array<object> },
  threadId: string = THREAD
): Message => ({
  method: "turn/completed",
  params: { threadId, turn: { id: TURN, status: "completed", items: [], error: null, ...turn } }
})

export const status = (type: string, threadId: string = THREAD): Message => ({
  method: "thread/status/changed",
  params: { threadId, status: { type } }
})

export const tokens = (total: number) => ({
  totalTokens: total,
  inputTokens: total - 2,
  cachedInputTokens: 1,
  outputTokens: 2,
  reasoningOutputTokens: 1
})

// -----------------------------------------------------------------------------
// answers
// -----------------------------------------------------------------------------

/** Says nothing. */
export const silent: Answer = () => {}

export const refuse = (code: number, text: string): Answer => ({ id }, { say }) =>
  say({ id, error: { code, message: text } })

/** Says what turns there are. */
export const turns = (...data: ReadonlyArray<object>): Answer => (request, { reply }) => reply(request, { data })

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** What a codex in good health does. */
const healthy = (): Record<string, Answer> => {
  let threadCount = 0
  let turnCount = 0
  const done: Answer = (request, { reply }) => reply(request, {})
  return {
    "initialize": (request, { reply }) => reply(request, { userAgent: "effect-stdio/0.171.0 (Test 1; x86_64)" }),
    "thread/start": (request, { reply }) => reply(request, { thread: { id: `thread-${++threadCount}` }, model: "m" }),
    "thread/resume": (request, { reply }) => reply(request, { thread: { id: request.params["threadId"] } }),
    "thread/unsubscribe": done,
    "turn/start": ({ id, params }, { say }) => {
      const turn = { id: `turn-${++turnCount}`, status: "inProgress", items: [] }
      say({ id, result: { turn } }, turnStarted(turn.id, textOf(params["threadId"])))
    },
    "turn/steer": done,
    "turn/interrupt": ({ id, params }, { say }) =>
      say(
        { id, result: {} },
        turnCompleted({ id: textOf(params["turnId"]), status: "interrupted" }, textOf(params["threadId"]))
      ),
    "config/mcpServer/reload": done
  }
}

// -----------------------------------------------------------------------------
// the server
// -----------------------------------------------------------------------------

const decoder = new TextDecoder()
const encoder = new TextEncoder()

const connect = Effect.fnUntraced(function*(answers: Record<string, Answer>, generations: Array<Generation>) {
  // a test says what it likes
  const input = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  const broken = Deferred.makeUnsafe<never, { readonly code: string }>()
  const received: Array<Message> = []
  let reason: Transport.CloseReason | undefined
  let isClosed = false
  let rest = ""

  const isRequest = (message: Message): message is Request =>
    message.id !== undefined && message.method !== undefined && message.params !== undefined

  const hear = (chunk: Uint8Array) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      // the adapter's own lines, which the tests look at
      const message = JSON.parse(line) as Message
      received.push(message)
      if (isRequest(message)) answers[message.method]?.(message, generation)
    }
  }

  const write = (text: string) => {
    Queue.offerUnsafe(input, encoder.encode(text))
  }

  const say: Generation["say"] = (...messages) =>
    write(messages.map((message) => `${JSON.stringify(message)}\n`).join(""))

  const generation: Generation = {
    received,
    requests: (method) =>
      received.filter(isRequest).filter((message) => message.method === method).map(({ params }) => params),
    answers: (id) => received.filter((message) => message.id === id && message.method === undefined),
    say,
    write,
    reply: ({ id }, result) => say({ id, result }),
    crash: (exit) => {
      if (exit !== undefined) reason = new Transport.ProcessExited({ command: "codex", ...exit })
      Queue.endUnsafe(input)
      Deferred.doneUnsafe(broken, Effect.fail({ code: "EPIPE" }))
    },
    isClosed: () => isClosed
  }
  generations.push(generation)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
    })
  )
  return yield* Transport.make({
    input: Stream.fromQueue(input),
    output: Sink.forEach((chunk: Uint8Array) =>
      Effect.suspend(() => Deferred.isDoneUnsafe(broken) ? Deferred.await(broken) : Effect.sync(() => hear(chunk)))
    ),
    explain: (given) => Effect.sync(() => reason ?? given)
  }, { framing: "line" })
})

/** The events of a turn, as far as they came. */
export interface Followed {
  readonly events: ReadonlyArray<Agent.AgentEvent>
  readonly fiber: Fiber.Fiber<void, Agent.AgentError>
}

/** A turn whose events are taken as they come. */
export const follow = Effect.fnUntraced(function*(
  agent: Agent.Agent["Service"],
  input: Agent.Input = "Hi",
  options?: Agent.StreamOptions
) {
  const events: Array<Agent.AgentEvent> = []
  const fiber = yield* Stream.runForEach(agent.stream(input, options), (event) =>
    Effect.sync(() => {
      events.push(event)
    })).pipe(Effect.forkChild({ startImmediately: true }))
  yield* settled
  return { events, fiber } satisfies Followed
})

/** A codex of the adapter whose app server is the test. */
export const make = Effect.fnUntraced(function*<R = never>(
  options?: Codex.Options<R> & { readonly answers?: Record<string, Answer> }
) {
  const { answers: given, ...rest } = options ?? {}
  const answers = { ...healthy(), ...given }
  const generations: Array<Generation> = []
  const connected = connect(answers, generations)
  const codex = yield* Codex.make<R>({ ...rest, connect: connected })
  // A TestClock that was never moved lets the first sleep of an interrupted fiber's finalizer be interrupted.
  yield* TestClock.adjust(0)
  const last = () => {
    const generation = generations.at(-1)
    if (generation === undefined) throw new Error("nobody has connected")
    return generation
  }
  /** Opens a conversation; its connection breaks at the end of the test, so that nothing waits for time that nobody lets pass. */
  const open = (threadOptions?: Codex.ThreadOptions) =>
    Effect.tap(
      codex.thread(threadOptions),
      () => Effect.addFinalizer(() => Effect.sync(() => generations.forEach(({ crash }) => crash())))
    )
  return {
    codex,
    /** For another adapter of this app server. */
    connect: connected,
    open,
    /** How each method is answered from now on. */
    answers,
    generations,
    /** The connection that was made last. */
    last,
    /** Says this on the last connection, and waits until it was heard. */
    say: (...messages: ReadonlyArray<Message>) => Effect.andThen(Effect.sync(() => last().say(...messages)), settled),
    crash: (exit?: Parameters<Generation["crash"]>[0]) => Effect.andThen(Effect.sync(() => last().crash(exit)), settled)
  }
})

/** The same with a conversation, and a turn of it that is under way. */
export const turn = Effect.fnUntraced(function*<R = never>(
  options?: Parameters<typeof make<R>>[0] & { readonly thread?: Codex.ThreadOptions }
) {
  const { thread: threadOptions, ...rest } = options ?? {}
  const script = yield* make<R>(rest)
  const thread = yield* script.open(threadOptions)
  return { ...script, thread, turn: yield* follow(thread) }
})

export const tags = ({ events }: Followed): ReadonlyArray<string> => events.map(({ _tag }) => _tag)

export const only = <T extends Agent.AgentEvent["_tag"]>({ events }: Followed, tag: T) =>
  events.filter((event): event is Extract<Agent.AgentEvent, { readonly _tag: T }> => event._tag === tag)

/** The end, which is there, comes last, and only once. */
export const endOf = (turn: Followed): Agent.TurnEnd => {
  const [end, ...more] = only(turn, "TurnEnd")
  if (end === undefined || more.length > 0 || turn.events.at(-1) !== end || turn.events[0]?._tag !== "TurnStarted") {
    throw new Error(`not one turn from its start to its end: ${tags(turn).join(" ")}`)
  }
  return end
}

/**
 * Codex as an {@link Agent.Agent}: a `codex app-server` process, one or several conversations with it, and what it asks.
 *
 * The one idea to know: a conversation outlives the process. When codex ends in the midst of a turn, the turn ends as
 * failed; the next input starts codex again and takes the conversation up where it was. Nothing is sent twice.
 *
 * What is spoken is the protocol of `codex app-server`, which has no version of its own; this was measured with codex
 * 0.171. Whatever is not known passes through as an event of its own, and members that are not needed may be missing.
 *
 * @module
 * @since 0.1.0
 */
import type * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Agent from "./Agent.ts"
import type * as Approval from "./Approval.ts"
import { findCodex, system } from "./internal/adapters/codexBinary.ts"
import type { Connection } from "./internal/adapters/codexConnection.ts"
import { makeConnection } from "./internal/adapters/codexConnection.ts"
import type { Thread as InternalThread } from "./internal/adapters/codexThread.ts"
import { makeThread } from "./internal/adapters/codexThread.ts"
import type { DynamicTools } from "./internal/adapters/codexTools.ts"
import { makeDynamicTools } from "./internal/adapters/codexTools.ts"
import { own } from "./internal/bounded.ts"
import type * as Peer from "./Peer.ts"
import * as Process from "./Process.ts"
import type * as Tap from "./Tap.ts"
import type * as Transport from "./Transport.ts"

// -----------------------------------------------------------------------------
// models and options
// -----------------------------------------------------------------------------

/**
 * Tools of ours that codex may call over the connection: see {@link fromToolkit}.
 *
 * @category models
 * @since 0.1.0
 */
export type Tools = DynamicTools

/**
 * An MCP server that codex starts for a conversation, as its configuration names it.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpServer {
  readonly command: string
  readonly args?: ReadonlyArray<string> | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
}

/**
 * Options of a conversation.
 *
 * @category models
 * @since 0.1.0
 */
export interface ThreadOptions {
  /** The working directory of the agent. @default the one of its process */
  readonly cwd?: string | undefined
  /** @default what codex is configured to use */
  readonly model?: string | undefined
  /** @default what codex is configured to use */
  readonly modelProvider?: string | undefined
  /** When codex asks before it runs something. @default what codex is configured to do */
  readonly approvalPolicy?: "untrusted" | "on-request" | "never" | undefined
  /** What its commands may do without being asked. @default what codex is configured to do */
  readonly sandbox?: "read-only" | "workspace-write" | "danger-full-access" | undefined
  /** How much the model thinks, such as "low" or "high". @default what the model does by itself */
  readonly effort?: string | undefined
  /** What is shown of that. @default what codex is configured to show */
  readonly reasoningSummary?: "auto" | "concise" | "detailed" | "none" | undefined
  /** Instructions beside those of codex. @default none */
  readonly developerInstructions?: string | undefined
  /** MCP servers of this conversation, by their names, beside those that codex is configured with. @default none */
  readonly mcpServers?: Readonly<Record<string, McpServer>> | undefined
  /** Settings over those of codex's `config.toml`, in the same shape. @default none */
  readonly config?: Readonly<Record<string, unknown>> | undefined
  /** The id of a conversation of before: it is taken up. @default a new one */
  readonly resume?: string | undefined
  /** Time without a word of codex before it is asked how the turn stands; zero or "Infinity": it is not asked. @default "5 minutes" */
  readonly quietTimeout?: Duration.Input | undefined
  /** Time for a turn to end once it is interrupted; then codex is ended. @default "5 seconds" */
  readonly interruptTimeout?: Duration.Input | undefined
}

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<in out R = never> {
  /** The program. @default that of the package `@openai/codex`, else `CODEX_PATH`, else `codex` in `PATH` */
  readonly command?: string | undefined
  /** Its arguments, after "app-server". @default none */
  readonly args?: ReadonlyArray<string> | undefined
  /** Variables over those of our environment, `CODEX_HOME` for example; undefined takes one away. @default none */
  readonly env?: Readonly<Record<string, string | Redacted.Redacted<string> | undefined>> | undefined
  /** Its working directory. @default ours */
  readonly cwd?: string | undefined
  /** How else codex is reached; `command`, `args`, `env` and `cwd` do not matter then. @default its program is started */
  readonly connect?: Effect.Effect<Transport.Transport["Service"], unknown, Scope.Scope> | undefined
  /** Who we are. @default the name and version of this library */
  readonly clientInfo?: { readonly name: string; readonly title?: string; readonly version: string } | undefined
  /** Answers what codex asks. @default everything is declined */
  readonly approvals?: Approval.Approvals<R> | undefined
  /** Time for an answer; then it is a no. Zero or "Infinity": none. @default "10 minutes" */
  readonly approvalTimeout?: Duration.Input | undefined
  /** Tools of ours, for all conversations. @default none */
  readonly tools?: Tools | undefined
  /** Time for the start of the program up to the end of the handshake. @default "30 seconds" */
  readonly startTimeout?: Duration.Input | undefined
  /** Time for a request to codex; a turn is none. @default "30 seconds" */
  readonly callTimeout?: Duration.Input | undefined
  /** Is told of each message that goes by. @default nobody */
  readonly tap?: Tap.Tap | undefined
}

/**
 * A conversation with codex.
 *
 * @category models
 * @since 0.1.0
 */
export interface Thread extends Omit<Agent.Agent["Service"], never> {
  /** By which it can be resumed; the id of a conversation that never had a turn may change when codex is started again. */
  readonly id: Effect.Effect<string>
}

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * A `codex app-server`: started when it is needed first, and again when it has ended.
 *
 * @category services
 * @since 0.1.0
 */
export class Codex extends Context.Service<Codex, {
  /** Begins a conversation or resumes one; it is closed with the scope. */
  readonly thread: (options?: ThreadOptions) => Effect.Effect<Thread, Agent.AgentError, Scope.Scope>
  /** Which version codex says it is, such as "0.171.0"; undefined when it does not say. */
  readonly version: Effect.Effect<string | undefined, Agent.AgentError>
  /** Starts the MCP servers of codex again: it never does that by itself when one has ended. */
  readonly reloadMcpServers: Effect.Effect<void, Agent.AgentError>
  /** The connection as it is, for requests that have no function here. */
  readonly peer: Effect.Effect<Peer.Peer["Service"], Agent.AgentError>
}>()("effect-stdio/Codex") {}

// -----------------------------------------------------------------------------
// constants
// -----------------------------------------------------------------------------

/**
 * The version of codex that this module is tested with. The protocol of codex has no version of its own: what another one
 * says is read as far as it is known, and comes as `Unknown` else. `version` of a {@link Codex} is the one that runs.
 *
 * @category constants
 * @since 0.1.0
 */
export const testedVersion = "0.171.0"

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

const INSTALL = "Install it with `npm install @openai/codex`, or set CODEX_PATH to where it is"

/** What a conversation may still take to end its turn when all of it ends. */
const LAST_INTERRUPT = Duration.seconds(1)

/**
 * Returns the tools of a toolkit for codex. Its handlers run in this program; their failures are for the model to read.
 *
 * **Gotchas**
 *
 * Codex marks such tools as experimental: the connection asks for that.
 *
 * **Example** (A tool of the program that uses codex)
 *
 * ```ts
 * import * as Tool from "effect/ai/Tool"
 * import * as Toolkit from "effect/ai/Toolkit"
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Codex from "effect-stdio/Codex"
 *
 * const Weather = Tool.make("weather", {
 *   description: "The weather in a city",
 *   parameters: Schema.Struct({ city: Schema.String }),
 *   success: Schema.String
 * })
 * const toolkit = Toolkit.make(Weather)
 *
 * const program = Effect.gen(function*() {
 *   const codex = yield* Codex.make({ tools: yield* Codex.fromToolkit(toolkit) })
 *   const thread = yield* codex.thread()
 *   return yield* thread.send("How is the weather in Oslo?")
 * }).pipe(Effect.scoped, Effect.provide(toolkit.toLayer({ weather: ({ city }) => Effect.succeed(`21 °C in ${city}`) })))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromToolkit: <T extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<T>
) => Effect.Effect<Tools, never, Tool.HandlersFor<T> | Tool.HandlerServices<T[keyof T]>> = makeDynamicTools

/**
 * Makes a codex for as long as the scope is open. Nothing is started before it is needed.
 *
 * **Details**
 *
 * When the scope closes, turns that are under way are interrupted, and codex is ended with all that it has started: its
 * input ends, which it follows within some 100 milliseconds.
 *
 * **Example** (One question)
 *
 * ```ts
 * import * as Console from "effect/Console"
 * import * as Effect from "effect/Effect"
 * import * as Stream from "effect/Stream"
 * import * as Codex from "effect-stdio/Codex"
 *
 * const program = Effect.gen(function*() {
 *   const codex = yield* Codex.make()
 *   const thread = yield* codex.thread({ cwd: "/home/user/project", sandbox: "read-only" })
 *   yield* Stream.runForEach(
 *     thread.stream("What does this project do?"),
 *     (event) => event._tag === "TextDelta" ? Console.error(event.text) : Effect.void
 *   )
 * }).pipe(Effect.scoped)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*<R = never>(
  options?: Options<R>
): Effect.fn.Return<Codex["Service"], never, Scope.Scope | R> {
  const context = yield* Effect.context<R>()
  const connecting = yield* Semaphore.make(1)
  const startTimeout = orInfinity(options?.startTimeout ?? "30 seconds")
  const threads = new Set<InternalThread>()
  const closing = Deferred.makeUnsafe<void>()
  const closed = new Agent.AgentError({ reason: new Agent.Closed() })
  let current: { readonly connection: Connection; readonly close: Effect.Effect<void>; isOver: boolean } | undefined
  /** What ends each connection that has not ended, also those that are no longer used. */
  const open = new Set<Effect.Effect<void>>()

  /** Ends a connection, and the turns on it, with a word on why. */
  const end = (over: NonNullable<typeof current>, error: Agent.TurnError) =>
    Effect.sync(() => {
      if (over.isOver) return
      over.isOver = true
      if (current === over) current = undefined
      for (const thread of threads) thread.lose(over.connection, error)
    })

  const start = Effect.gen(function*() {
    const scope = yield* Scope.make()
    const connection = yield* makeConnection({
      connect: connect(options),
      clientInfo: options?.clientInfo ?? { name: "effect-stdio", title: "effect-stdio", version: "0.1.0" },
      approvals: provideApprovals(options?.approvals ?? {}, context),
      approvalTimeout: orInfinity(options?.approvalTimeout ?? "10 minutes"),
      callTimeout: options?.callTimeout ?? "30 seconds",
      tools: options?.tools,
      tap: options?.tap
    }).pipe(
      Effect.timeoutOrElse({
        duration: startTimeout,
        orElse: () => Effect.fail(notStarted(new Error(`it was not ready within ${Duration.format(startTimeout)}`)))
      }),
      Scope.provide(scope),
      Effect.onExit((exit) => Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void),
      Effect.raceFirst(Effect.andThen(Deferred.await(closing), Effect.fail(closed)))
    )
    // by whoever comes first; others wait for it
    const close: Effect.Effect<void> = yield* Effect.cached(
      own(Effect.ensuring(Scope.close(scope, Exit.void), Effect.sync(() => open.delete(close))))
    )
    open.add(close)
    const started = { connection, close, isOver: false }
    current = started
    yield* connection.ended.pipe(
      Effect.flatMap((message) => end(started, { message, kind: "processExited" })),
      Effect.ensuring(close),
      Effect.forkDetach
    )
    return connection
  })

  const connection: Effect.Effect<Connection, Agent.AgentError> = connecting.withPermit(
    Effect.suspend(() => {
      if (Deferred.isDoneUnsafe(closing)) return Effect.fail(closed)
      return current === undefined || current.connection.isOver() ? start : Effect.succeed(current.connection)
    })
  )

  const abandon = (connection: Connection) =>
    Effect.suspend(() => {
      const over = current
      if (over?.connection !== connection) return Effect.void
      return Effect.ensuring(
        end(over, { message: "codex did not do what it was asked, and was ended", kind: "noAnswer" }),
        over.close
      )
    })

  yield* Effect.addFinalizer(() =>
    Effect.gen(function*() {
      Deferred.doneUnsafe(closing, Exit.void)
      // one that is being started is ended at once
      yield* connecting.withPermit(Effect.void)
      yield* Effect.forEach(threads, (thread) => thread.settle(LAST_INTERRUPT), {
        concurrency: "unbounded",
        discard: true
      })
      if (current !== undefined) current.isOver = true
      yield* Effect.forEach(open, (close) => close, { concurrency: "unbounded", discard: true })
      current = undefined
    })
  )

  const thread = Effect.fnUntraced(function*(
    threadOptions?: ThreadOptions
  ): Effect.fn.Return<Thread, Agent.AgentError, Scope.Scope> {
    const { resume, start, turn } = toParams(threadOptions ?? {}, options?.tools)
    const internal = yield* makeThread({
      connection,
      abandon,
      start,
      resume,
      turn,
      threadId: threadOptions?.resume,
      quietTimeout: Duration.fromInputUnsafe(threadOptions?.quietTimeout ?? "5 minutes"),
      interruptTimeout: Duration.fromInputUnsafe(threadOptions?.interruptTimeout ?? "5 seconds")
    })
    const scope = yield* Scope.fork(yield* Effect.scope)
    yield* Scope.provide(scope)(Effect.acquireRelease(
      Effect.sync(() => threads.add(internal)),
      () =>
        Effect.ensuring(
          internal.agent.close,
          Effect.suspend(() => {
            threads.delete(internal)
            const id = internal.id()
            if (current === undefined || !internal.detach(current.connection)) return Effect.void
            return current.connection.command("thread/unsubscribe", { threadId: id }).pipe(
              Effect.timeout(LAST_INTERRUPT),
              Effect.ignore
            )
          })
        )
    ))
    // one that could not be opened leaves nothing behind
    const opened = yield* Effect.onError(internal.open, (cause) => Scope.close(scope, Exit.failCause(cause)))
    return { ...internal.agent, id: Effect.sync(() => internal.id() ?? opened) }
  })

  return Codex.of({
    thread,
    version: Effect.map(connection, ({ userAgent }) => /\/(\d+\.\d+\.\d+\S*)/.exec(userAgent)?.[1]),
    reloadMcpServers: Effect.flatMap(connection, ({ command }) => command("config/mcpServer/reload", {})),
    peer: Effect.map(connection, ({ peer }) => peer)
  })
})

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/**
 * Layer of a codex.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(options?: Options<R>): Layer.Layer<Codex, never, Exclude<R, Scope.Scope>> =>
  Layer.effect(Codex, make(options))

/**
 * Layer of one conversation with a codex of its own, as the agent of a program that has one.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerAgent = <R = never>(
  options?: Options<R> & ThreadOptions
): Layer.Layer<Agent.Agent, Agent.AgentError, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    Agent.Agent,
    Effect.flatMap(make(options), (codex) => codex.thread(options))
  )

// -----------------------------------------------------------------------------
// private helpers
// -----------------------------------------------------------------------------

const notStarted = (cause: unknown, hint?: string) =>
  new Agent.AgentError({ reason: new Agent.NotStarted({ cause, ...(hint === undefined ? {} : { hint }) }) })

const connect = <R>(
  options: Options<R> | undefined
): Effect.Effect<Transport.Transport["Service"], Agent.AgentError, Scope.Scope> =>
  options?.connect === undefined
    ? Effect.suspend(() => {
      const command = options?.command ?? findCodex(system(options?.env)) ?? "codex"
      return Process.make(command, ["app-server", ...options?.args ?? []], {
        ...(options?.env === undefined ? {} : { env: options.env }),
        ...(options?.cwd === undefined ? {} : { cwd: options.cwd })
      })
    }).pipe(
      Effect.map(({ transport }) => transport),
      Effect.mapError((error) => notStarted(error, error.reason._tag === "NotFound" ? INSTALL : undefined))
    )
    : Effect.mapError(options.connect, (cause) => notStarted(cause))

const orInfinity = (input: Duration.Input): Duration.Duration => {
  const duration = Duration.fromInputUnsafe(input)
  return Duration.isZero(duration) ? Duration.infinity : duration
}

const provideApprovals = <R>(approvals: Approval.Approvals<R>, context: Context.Context<R>): Approval.Approvals => {
  const provided = <A, D>(
    handler: ((approval: A, info: Approval.ApprovalInfo) => Effect.Effect<D, unknown, R>) | undefined
  ): ((approval: A, info: Approval.ApprovalInfo) => Effect.Effect<D, unknown>) | undefined =>
    handler === undefined
      ? undefined
      : (approval, info) => Effect.provideContext(handler(approval, info), context)
  return {
    command: provided(approvals.command),
    fileChange: provided(approvals.fileChange),
    permission: provided(approvals.permission),
    tool: provided(approvals.tool),
    questions: provided(approvals.questions),
    elicitation: provided(approvals.elicitation)
  }
}

/** What is not given is left to codex. */
const given = (params: object): object =>
  Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined))

const toParams = (options: ThreadOptions, tools: Tools | undefined) => {
  const config = { ...options.config, ...(options.mcpServers && { mcp_servers: options.mcpServers }) }
  const resume = given({
    cwd: options.cwd,
    model: options.model,
    modelProvider: options.modelProvider,
    approvalPolicy: options.approvalPolicy,
    sandbox: options.sandbox,
    developerInstructions: options.developerInstructions,
    config: Object.keys(config).length === 0 ? undefined : config
  })
  return {
    resume,
    start: tools === undefined ? resume : { ...resume, dynamicTools: tools.specs },
    turn: given({ effort: options.effort, summary: options.reasoningSummary })
  }
}

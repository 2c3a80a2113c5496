/**
 * One conversation with codex: at most one turn at a time, followed to its end in every case.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Agent, AgentEvent, Input, InputPart, StreamOptions, TurnEnd, TurnError } from "../../Agent.ts"
import { AgentError, Closed, NoTurn, Refused, TurnInProgress } from "../../Agent.ts"
import { own } from "../bounded.ts"
import type { Connection, Conversation } from "./codexConnection.ts"
import type { CodexTurn } from "./codexTurn.ts"
import { makeCodexTurn } from "./codexTurn.ts"

/** @internal */
export interface Options {
  /** The connection that is up, or a new one. */
  readonly connection: Effect.Effect<Connection, AgentError>
  /** Gives up a connection on which codex does not do what it has to. */
  readonly abandon: (connection: Connection) => Effect.Effect<void>
  /** What `thread/start` gets, and `thread/resume` as far as it knows it. */
  readonly start: object
  readonly resume: object
  /** A conversation of another day. */
  readonly threadId: string | undefined
  /** What each turn gets. */
  readonly turn: object
  readonly quietTimeout: Duration.Duration
  readonly interruptTimeout: Duration.Duration
}

/** @internal */
export interface Thread {
  readonly agent: Agent["Service"]
  readonly id: () => string | undefined
  /** Begins the conversation, or takes it up. */
  readonly open: Effect.Effect<string, AgentError>
  /** Interrupts the turn that is under way; after this time it has ended in any case. */
  readonly settle: (limit: Duration.Duration) => Effect.Effect<void>
  /** Lets go of the conversation on this connection; says whether it had it. */
  readonly detach: (connection: Connection) => boolean
  /** Ends the turn that is under way on a connection that is gone. */
  readonly lose: (connection: Connection, error: TurnError) => void
}

/** A turn, and the connection that it was asked for on, once it was. */
interface Running {
  readonly turn: CodexTurn
  connection: Connection | undefined
}

/** After this codex should have said how a turn ended that it no longer works on. */
const IDLE_GRACE = Duration.seconds(1)

/** Looks for the end of a turn before it counts as lost. */
const MAX_LOOKS = 3

/** Events that may wait before codex is not read any longer: fewer than those that are kept one by one. */
const MAX_WAITING = 512

/** @internal */
export const makeThread = Effect.fnUntraced(function*(options: Options): Effect.fn.Return<Thread> {
  const clock = yield* Clock.Clock
  let id = options.threadId
  let hasTurns = id !== undefined
  let isClosed = false
  let current: Running | undefined
  let heard = 0
  let idle = Deferred.makeUnsafe<void>()

  const conversation: Conversation = {
    turn: () => current?.turn,
    touch: () => {
      heard = clock.currentTimeMillisUnsafe()
    },
    idle: () => {
      if (current !== undefined) Deferred.doneUnsafe(idle, Exit.void)
    }
  }

  /** Codex knows the conversation on this connection, or is told of it. */
  const attach = Effect.fnUntraced(function*(connection: Connection): Effect.fn.Return<string, AgentError> {
    const attached = id === undefined ? undefined : connection.attached(id)
    if (id !== undefined && attached === conversation) return id
    if (attached !== undefined) {
      const message = "the conversation is open already: use that one, or close its scope first"
      return yield* Effect.fail(
        new AgentError({ reason: new Refused({ method: "thread/resume", code: -32600, message }) })
      )
    }
    if (id !== undefined && hasTurns) {
      yield* connection.request("thread/resume", { ...options.resume, threadId: id, excludeTurns: true })
    } else {
      // one without a turn is not remembered by codex: nothing is lost
      const { thread } = yield* connection.request("thread/start", options.start)
      id = thread.id
    }
    connection.attach(id, conversation)
    return id
  })

  const open = Effect.flatMap(options.connection, attach)

  /**
   * Asks codex to stop, as soon as it can hear that, and waits for the end: in a fiber of its own, since finalizers cannot
   * be interrupted, and what cannot be interrupted has no limit.
   */
  const interruptTurn = (running: Running, limit: Duration.Duration) =>
    own(Effect.suspend(() => {
      const { turn } = running
      // what codex says must be read for that, whoever's consumer holds it up
      turn.events.letGo()
      running.connection?.letGo()
      // where it was asked for is known by then, and which turn it is
      const request = Effect.suspend(() =>
        running.connection === undefined || Deferred.isDoneUnsafe(turn.ended)
          ? Effect.void
          : Effect.ignore(running.connection.command("turn/interrupt", { threadId: id, turnId: turn.id() }))
      )
      return Deferred.await(turn.started).pipe(
        Effect.andThen(request),
        Effect.andThen(Deferred.await(turn.ended)),
        Effect.timeoutOrElse({
          duration: limit,
          orElse: () =>
            Effect.suspend(() => {
              turn.cut("interrupted")
              return running.connection === undefined ? Effect.void : options.abandon(running.connection)
            })
        }),
        Effect.asVoid
      )
    }))

  /** What codex has on record of the turn that it does not talk of any longer. */
  const look = (turn: CodexTurn, connection: Connection) =>
    Effect.map(
      connection.request("thread/turns/list", { threadId: id, limit: 10 }),
      ({ data }) => data.find((state) => state.id === turn.id())
    )

  const unheard = (turn: CodexTurn, connection: Connection, error: TurnError) =>
    // whoever follows the turn leaves at its end, and ends what watches it
    Effect.uninterruptible(Effect.suspend(() => {
      turn.cut("failed", error)
      return options.abandon(connection)
    }))

  /** Codex is idle, and has not said how the turn ended. */
  const watchIdle = Effect.fnUntraced(function*(turn: CodexTurn, connection: Connection) {
    while (true) {
      yield* Deferred.await(idle)
      idle = Deferred.makeUnsafe()
      yield* Effect.sleep(IDLE_GRACE)
      const found = yield* look(turn, connection).pipe(
        Effect.filterOrFail((state) => state !== undefined, () => "not listed"),
        Effect.retry({ times: MAX_LOOKS - 1, schedule: Schedule.spaced(IDLE_GRACE) }),
        Effect.option
      )
      if (Option.isNone(found)) {
        return turn.cut("failed", { message: "codex is idle and has not said how the turn ended", kind: "lost" })
      }
      // else it was idle before the turn
      if (found.value.status !== "inProgress") return turn.report(found.value)
    }
  })

  /** Nothing has been heard for long, while neither we nor the consumer held codex up. */
  const watchQuiet = Effect.fnUntraced(function*(turn: CodexTurn, connection: Connection) {
    const limit = Duration.toMillis(options.quietTimeout)
    if (limit === 0 || limit === Infinity) return
    while (true) {
      const left = heard + limit - clock.currentTimeMillisUnsafe()
      if (left > 0) {
        yield* Effect.sleep(left)
        continue
      }
      // its events are still being taken
      if (Deferred.isDoneUnsafe(turn.ended)) return
      conversation.touch()
      if (turn.waitsForUs() > 0 || turn.events.size() > MAX_WAITING || connection.isHeldBack()) continue
      const found = yield* look(turn, connection).pipe(
        // who refuses is alive
        Effect.catchReason("AgentError", "Refused", () => Effect.undefined),
        Effect.option
      )
      if (Option.isNone(found)) {
        if (Deferred.isDoneUnsafe(turn.ended)) return
        // the answer may be among what is not read
        if (connection.isHeldBack()) continue
        const message = `nothing was heard for ${Duration.format(options.quietTimeout)}, and codex does not answer`
        return yield* unheard(turn, connection, { message, kind: "noAnswer" })
      }
      if (found.value !== undefined && found.value.status !== "inProgress") return turn.report(found.value)
      const says = found.value === undefined
        ? "codex does not say how the turn stands"
        : "codex says that the turn goes on"
      turn.events.push({
        _tag: "Warning",
        message: `nothing was heard for ${Duration.format(options.quietTimeout)}; ${says}`
      })
    }
  })

  /** Codex is not read while the consumer is behind. */
  const holdBack = Effect.fnUntraced(function*(turn: CodexTurn, connection: Connection) {
    const notifications = yield* connection.peer.subscribe({ policy: "suspend", capacity: 256 })
    yield* Stream.runForEachArray(notifications, () => turn.events.below(MAX_WAITING)).pipe(
      // the turn is told of the end of the connection elsewhere
      Effect.ignore,
      Effect.forkScoped({ startImmediately: true })
    )
  })

  const begin = Effect.fnUntraced(function*(
    turn: CodexTurn,
    input: Input,
    whenSlow: StreamOptions["whenSlow"]
  ): Effect.fn.Return<void, AgentError, Scope.Scope> {
    const connection = yield* options.connection
    const threadId = yield* attach(connection)
    if (current?.turn !== turn) return yield* Effect.fail(new AgentError({ reason: new Closed() }))
    current.connection = connection
    conversation.touch()
    idle = Deferred.makeUnsafe()
    if (whenSlow === "suspend") yield* holdBack(turn, connection)
    yield* connection.request("turn/start", { ...options.turn, threadId, input: toInput(input) }).pipe(
      Effect.map(({ turn: { id } }) => turn.identify(id)),
      Effect.onInterrupt(() => Effect.sync(turn.guess)),
      // it has not answered, and has said that a turn started
      Effect.catchReason(
        "AgentError",
        "NoAnswer",
        (_, error) => Effect.suspend(() => turn.guess() ? Effect.void : Effect.fail(error))
      )
    )
    connection.warnings(threadId).forEach(turn.known)
    yield* Effect.forkScoped(watchIdle(turn, connection))
    yield* Effect.forkScoped(watchQuiet(turn, connection))
  })

  /** A turn, which is not left before it has ended. */
  const start = (input: Input, streamOptions?: StreamOptions) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        if (isClosed) return yield* Effect.fail(new AgentError({ reason: new Closed() }))
        if (current !== undefined) return yield* Effect.fail(new AgentError({ reason: new TurnInProgress() }))
        const turn = makeCodexTurn(() => {
          // whoever waits for a turn that never was may end it late
          if (current?.turn === turn) current = undefined
          // codex remembers the conversation from then on, also where its answer never came
          if (turn.id() !== undefined) hasTurns = true
        })
        current = { turn, connection: undefined }
        yield* Effect.addFinalizer(() => leave(turn))
        const exit = yield* Effect.exit(restore(
          // an end that comes first is told at once
          Effect.raceFirst(begin(turn, input, streamOptions?.whenSlow), Effect.asVoid(Deferred.await(turn.ended)))
        ))
        if (Exit.isSuccess(exit) || current?.turn !== turn) return turn.events.stream
        const isSent = current.connection !== undefined
        const error = Option.getOrUndefined(Exit.findErrorOption(exit))
        // there is no turn, which whoever interrupts it has to hear; one that codex was asked for may have begun all the same
        if (!isSent || error?.reason._tag === "Refused") turn.cut("failed")
        return yield* Effect.failCause(exit.cause)
      })
    )

  const leave = (turn: CodexTurn) =>
    Effect.suspend(() => {
      const left = current
      if (left?.turn !== turn) return Effect.void
      return Effect.ensuring(
        interruptTurn(left, options.interruptTimeout),
        Effect.sync(() => turn.cut("interrupted"))
      )
    })

  const stream = (input: Input, streamOptions?: StreamOptions): Stream.Stream<AgentEvent, AgentError> =>
    Stream.unwrap(start(input, streamOptions))

  const send = (input: Input): Effect.Effect<TurnEnd, AgentError> =>
    Stream.runFold(
      stream(input),
      (): TurnEnd | undefined => undefined,
      (end, event) => event._tag === "TurnEnd" ? event : end
    ).pipe(
      Effect.flatMap((end) => end === undefined ? Effect.die(new Error("a turn without an end")) : Effect.succeed(end))
    )

  const steer = (input: Input): Effect.Effect<void, AgentError> =>
    Effect.suspend(() => {
      const turnId = current?.turn.id()
      const connection = current?.connection
      return connection === undefined || turnId === undefined
        ? Effect.fail(new AgentError({ reason: new NoTurn() }))
        : connection.command("turn/steer", { threadId: id, expectedTurnId: turnId, input: toInput(input) })
    })

  // goes on when the caller is gone: an interruption that was asked for is not forgotten
  const interrupt = Effect.suspend(() => {
    if (current === undefined) return Effect.void
    return interruptTurn(current, options.interruptTimeout)
  })

  const settle: Thread["settle"] = (limit) =>
    Effect.suspend(() => {
      if (current === undefined) return Effect.void
      const running = current
      return Effect.ensuring(
        interruptTurn(running, limit),
        Effect.sync(() => running.turn.cut("interrupted"))
      )
    })

  const lose: Thread["lose"] = (connection, error) => {
    if (current?.connection === connection) current.turn.cut("failed", error)
  }

  const detach: Thread["detach"] = (connection) => id !== undefined && connection.detach(id, conversation)

  const close = Effect.suspend(() => {
    if (isClosed) return Effect.void
    isClosed = true
    return settle(options.interruptTimeout)
  })

  return { agent: { send, stream, steer, interrupt, close }, id: () => id, open, settle, detach, lose }
})

const toInput = (input: Input): ReadonlyArray<InputPart> =>
  typeof input === "string" ? [{ type: "text", text: input }] : input

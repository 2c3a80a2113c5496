/**
 * One process of codex and the connection to it: begun with the handshake, read in order, and gone for good when it ends.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { AgentError, NoAnswer, NotStarted, Refused } from "../../Agent.ts"
import type { Approvals } from "../../Approval.ts"
import * as Peer from "../../Peer.ts"
import * as Router from "../../Router.ts"
import * as JsonRpc from "../../Schema.ts"
import type * as Tap from "../../Tap.ts"
import * as Transport from "../../Transport.ts"
import * as Approval from "./codexApprovals.ts"
import * as Protocol from "./codexProtocol.ts"
import type { DynamicTools } from "./codexTools.ts"
import { noTool } from "./codexTools.ts"
import type { CodexTurn } from "./codexTurn.ts"

/** A conversation, as far as the connection needs to know it. @internal */
export interface Conversation {
  readonly turn: () => CodexTurn | undefined
  /** A sign of life of the turn. */
  readonly touch: () => void
  /** Codex has nothing more to do for this conversation. */
  readonly idle: () => void
}

/** @internal */
export interface Options {
  readonly connect: Effect.Effect<Transport.Transport["Service"], AgentError, Scope.Scope>
  readonly clientInfo: { readonly name: string; readonly title?: string | undefined; readonly version: string }
  readonly approvals: Approvals
  readonly approvalTimeout: Duration.Input
  readonly callTimeout: Duration.Input
  readonly tools: DynamicTools | undefined
  readonly tap: Tap.Tap | undefined
}

/** @internal */
export interface Connection {
  readonly peer: Peer.Peer["Service"]
  readonly userAgent: string
  /** Makes a request, and reads its result. */
  readonly request: <M extends keyof typeof Protocol.results>(
    method: M,
    params: object
  ) => Effect.Effect<(typeof Protocol.results)[M]["Type"], AgentError>
  readonly command: (method: (typeof Protocol.commands)[number], params: object) => Effect.Effect<void, AgentError>
  /** Who hears of this conversation from now on. */
  readonly attach: (threadId: string, conversation: Conversation) => void
  /** Says whether it was this one that heard of it. */
  readonly detach: (threadId: string, conversation: Conversation) => boolean
  readonly attached: (threadId: string) => Conversation | undefined
  /** The warnings that came when there was no turn to tell. */
  readonly warnings: (threadId: string) => ReadonlyArray<Protocol.Known>
  /** Whether the consumer of any conversation holds up all of them. */
  readonly isHeldBack: () => boolean
  /** Reads on, whoever's consumer is behind: from now on what waits for it is joined. */
  readonly letGo: () => void
  /** Whether a request has found it closed. */
  readonly isOver: () => boolean
  /** Why nothing more will come. */
  readonly ended: Effect.Effect<string>
}

/** Codex answers these when it has too much to do, and has not begun with them. */
const ASK_AGAIN = { idempotent: true }

/** Warnings for a conversation that has no turn yet, or for none. */
const MAX_WARNINGS = 32

/** @internal */
export const makeConnection = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<Connection, AgentError, Scope.Scope> {
  const transport = yield* options.connect
  const conversations = new Map<string, Conversation>()
  /** The questions that wait for an answer, each with what withdraws it. */
  const asked = new Map<string, () => void>()
  let isOver = false
  let early: Array<{ readonly threadId: string | undefined; readonly known: Protocol.Known }> = []

  const onNotification = (method: string, params: unknown) => {
    const known = Protocol.decode(method, params)
    const scope: Protocol.Scope | undefined = known?.params ?? Option.getOrUndefined(Protocol.decodeScope(params))
    const threadId = scope?.threadId ?? undefined
    if (threadId === undefined) return onGlobal(method, params, known)
    const conversation = conversations.get(threadId)
    // also where no turn was told of the question: those of sub-agents are asked and withdrawn as well
    if (known?.method === "serverRequest/resolved") {
      const approvalId = approvalIdOf(known.params.requestId)
      conversation?.turn()?.withdrawn(approvalId)
      return asked.get(approvalId)?.()
    }
    if (conversation === undefined) {
      // comes before the response that says which conversation this is; those of sub-agents stay here and are forgotten
      if (known !== undefined && isWarning(known)) keep(threadId, known)
      return
    }
    conversation.touch()
    const turn = conversation.turn()
    if (turn === undefined) {
      if (known !== undefined && isWarning(known)) keep(threadId, known)
      return
    }
    const turnId = known?.method === "turn/started" || known?.method === "turn/completed"
      ? known.params.turn.id
      : scope?.turnId ?? undefined
    // of a turn before, or of one that somebody else began
    if (turnId !== undefined && turn.id() !== undefined && turn.id() !== turnId) return
    const tell = () => {
      if (known !== undefined) turn.known(known)
      else if (!Protocol.ignored.has(method)) turn.unknown(method, params)
    }
    // which turn is ours is said by the response
    if (turnId !== undefined && turn.id() === undefined) {
      return turn.hold(turnId, known?.method === "turn/started", tell)
    }
    if (known?.method === "thread/status/changed") {
      if (known.params.status.type !== "active") conversation.idle()
      return
    }
    tell()
  }

  const turns = () => [...conversations.values()].flatMap((conversation) => conversation.turn() ?? [])

  /** What concerns no conversation: warnings, and what was not known when this was written. */
  const onGlobal = (method: string, params: unknown, known: Protocol.Known | undefined) => {
    if (Protocol.ignored.has(method)) return
    const running = turns()
    if (running.length === 0) return known !== undefined && isWarning(known) ? keep(undefined, known) : undefined
    for (const turn of running) {
      if (known === undefined) turn.unknown(method, params)
      else turn.known(known)
    }
  }

  const keep = (threadId: string | undefined, known: Protocol.Known) => {
    early.push({ threadId, known })
    if (early.length > MAX_WARNINGS) early = early.slice(1)
  }

  const approvalOptions: Approval.Options = {
    approvals: options.approvals,
    timeout: options.approvalTimeout,
    onFailure: (cause) => Effect.logWarning("a function that answers the agent's questions failed: declined", cause)
  }

  /** The turn that this concerns: those of sub-agents, and of before, are none of ours. */
  const turnOf = (threadId: string, turnId: string | undefined) => {
    const turn = conversations.get(threadId)?.turn()
    return turn === undefined || (turnId !== undefined && turn.id() !== undefined && turn.id() !== turnId)
      ? undefined
      : turn
  }

  const onRequest: Router.RequestHandler = (params, { id, method }) => {
    if (method === "item/tool/call") return onToolCall(params, approvalIdOf(id))
    const approvalId = approvalIdOf(id)
    const read = Approval.read(method, params, approvalOptions, { approvalId })
    if (read === undefined) {
      onNotification(method, params)
      return Effect.fail(JsonRpc.JsonRpcError.methodNotFound(method))
    }
    if ("declined" in read) return Effect.succeed(read.declined)
    const { answer, approval, threadId, turnId } = read.question
    const conversation = conversations.get(threadId)
    const turn = turnOf(threadId, turnId)
    return untilWithdrawn(approvalId, (withdraw) => {
      // told here, in the order in which codex has sent it
      turn?.asked(approvalId, approval, withdraw)
      return Effect.map(answer, ({ body, by, decision }) => {
        conversation?.touch()
        turn?.settled(approvalId, { decision, by })
        return body
      })
    })
  }

  /** Answers a request, unless codex takes it back before. */
  const untilWithdrawn = (requestId: string, answer: (withdraw: () => void) => Effect.Effect<unknown>) => {
    const withdrawn = Deferred.makeUnsafe<typeof Router.noReply>()
    const withdraw = () => {
      Deferred.doneUnsafe(withdrawn, Effect.succeed(Router.noReply))
    }
    asked.set(requestId, withdraw)
    return Effect.raceFirst(answer(withdraw), Deferred.await(withdrawn)).pipe(Effect.ensuring(Effect.sync(() => {
      // the id may be that of another question by now
      if (asked.get(requestId) === withdraw) asked.delete(requestId)
    })))
  }

  const decodeToolCall = Schema.decodeUnknownOption(Protocol.serverRequests["item/tool/call"])

  const onToolCall = (params: unknown, requestId: string): Effect.Effect<unknown, JsonRpc.JsonRpcError> => {
    const decoded = decodeToolCall(params)
    if (Option.isNone(decoded)) return Effect.fail(JsonRpc.JsonRpcError.invalidParams("not a call of a tool"))
    const { arguments: input, callId, threadId, tool, turnId } = decoded.value
    const conversation = conversations.get(threadId)
    const turn = turnOf(threadId, turnId)
    turn?.toolCall(true)
    const call: Effect.Effect<unknown> = options.tools?.call(tool, input, callId) ?? Effect.succeed(noTool(tool))
    return Effect.ensuring(
      untilWithdrawn(requestId, () =>
        // nobody waits for it after the end
        turn === undefined ? call : Effect.raceFirst(call, Effect.as(Deferred.await(turn.ended), Router.noReply))),
      Effect.sync(() => {
        conversation?.touch()
        turn?.toolCall(false)
      })
    )
  }

  const peer = yield* Peer.make(transport, {
    profile: "omit",
    onBadInput: "count",
    callTimeout: options.callTimeout,
    // codex drops the answers to some of several hundred requests at once
    maxCallsInFlight: 64,
    ...(options.tap === undefined ? {} : { tap: options.tap }),
    // handled at once and in order, so that a question never comes before what it is about
    router: Router.raw(onRequest, (params, method) => {
      onNotification(method, params)
      return Effect.void
    })
  })

  const failed = (method: string) => (error: JsonRpc.JsonRpcError | Peer.PeerError): AgentError => {
    if (error._tag === "PeerError" && error.reason._tag === "Closed") isOver = true
    return new AgentError({
      reason: error._tag === "JsonRpcError"
        ? new Refused({
          method,
          code: error.code,
          message: error.message,
          ...(error.data === undefined ? {} : { data: error.data })
        })
        : new NoAnswer({ method, cause: error })
    })
  }

  const request: Connection["request"] = (method, params) => {
    const decode = Schema.decodeUnknownEffect(Protocol.results[method])
    return Effect.flatMap(
      Effect.mapError(peer.call(method, params, ASK_AGAIN), failed(method)),
      (result) =>
        Effect.mapError(decode(result), (cause) => new AgentError({ reason: new NoAnswer({ method, cause }) }))
    )
  }

  const { userAgent } = yield* peer.call("initialize", {
    clientInfo: options.clientInfo,
    capabilities: {
      // codex refuses tools of ours without it
      experimentalApi: options.tools !== undefined,
      optOutNotificationMethods: Protocol.optedOut
    }
    // the whole start has a limit
  }, { timeout: "Infinity" }).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Protocol.results.initialize)),
    Effect.mapError((cause) => new AgentError({ reason: new NotStarted({ cause, hint: HINT }) }))
  )
  yield* Effect.mapError(peer.notify("initialized"), (cause) => new AgentError({ reason: new NotStarted({ cause }) }))

  return {
    peer,
    userAgent,
    request,
    command: (method, params) => Effect.asVoid(Effect.mapError(peer.call(method, params, ASK_AGAIN), failed(method))),
    attach: (threadId, conversation) => {
      conversations.set(threadId, conversation)
    },
    detach: (threadId, conversation) => conversations.get(threadId) === conversation && conversations.delete(threadId),
    attached: (threadId) => conversations.get(threadId),
    warnings: (threadId) => {
      const [mine, others] = Arr.partition(
        early,
        (warning) =>
          warning.threadId === undefined || warning.threadId === threadId
            ? Result.succeed(warning.known)
            : Result.fail(warning)
      )
      early = others
      return mine
    },
    isHeldBack: () => turns().some(({ events }) => events.holdsBack()),
    letGo: () => turns().forEach(({ events }) => events.letGo()),
    isOver: () => isOver,
    // what stands behind the connection says more than that the input has ended
    ended: Effect.andThen(
      Effect.ignore(peer.inputEnded),
      Effect.map(
        transport.closed,
        (reason) => reason._tag === "InputEnded" ? "it has ended its output" : Transport.describe(reason)
      )
    )
  }
})

const HINT = "Its standard error says more: often a setting in config.toml, or a flag that this version does not know"

const isWarning = ({ method, params }: Protocol.Known) =>
  method === "mcpServer/startupStatus/updated" ? params.status === "failed" : /warning|deprecation/i.test(method)

/** Ids that differ in their type only are different ones. */
const approvalIdOf = (id: JsonRpc.Id): string => JSON.stringify(id)

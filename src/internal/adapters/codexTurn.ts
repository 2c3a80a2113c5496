/**
 * One turn of codex: its notifications, in their order, become the events of a turn, of which exactly one is the last.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { AgentEvent, ApprovalSettled, Tokens, TurnEnd, TurnError, Usage } from "../../Agent.ts"
import type { Approval } from "../../Approval.ts"
import type { AgentEvents } from "./agentEvents.ts"
import { makeAgentEvents } from "./agentEvents.ts"
import type { Item } from "./codexItems.ts"
import { endedServer, lastMessage, makeItems } from "./codexItems.ts"
import type * as Protocol from "./codexProtocol.ts"

/** @internal */
export interface CodexTurn {
  readonly events: AgentEvents
  /** Succeeds when codex can interrupt the turn: it has started, or is over. */
  readonly started: Deferred.Deferred<void>
  readonly ended: Deferred.Deferred<TurnEnd>
  readonly id: () => string | undefined
  /** The response to the request that started it. */
  readonly identify: (turnId: string) => void
  /** Keeps what concerns a turn that may be this one, until that is known. */
  readonly hold: (turnId: string, isStart: boolean, tell: () => void) => void
  /** No response will come: the turn that has started, or starts next, is this one. Says whether it is known by now. */
  readonly guess: () => boolean
  readonly known: (notification: Protocol.Known) => void
  readonly unknown: (method: string, params: unknown) => void
  readonly asked: (approvalId: string, approval: Approval, withdraw: () => void) => void
  readonly settled: (approvalId: string, settled: Omit<typeof ApprovalSettled.Type, "_tag" | "approvalId">) => void
  readonly withdrawn: (approvalId: string) => void
  /** How many questions and calls of ours codex waits for. */
  readonly waitsForUs: () => number
  readonly toolCall: (began: boolean) => void
  /** Ends it as codex has reported it elsewhere. */
  readonly report: (turn: Protocol.TurnState) => void
  /** Ends it because nothing more will come. Does nothing when it has ended. */
  readonly cut: (status: "interrupted" | "failed", error?: TurnError) => void
}

/** @internal */
export const makeCodexTurn = (onEnd: () => void): CodexTurn => {
  const events = makeAgentEvents()
  /** What came before it was known which turn this is. */
  let early: Array<AgentEvent> | undefined = []
  const push = (event: AgentEvent) => {
    if (early === undefined) events.push(event)
    else early.push(event)
  }
  const items = makeItems(push)
  const started = Deferred.makeUnsafe<void>()
  const ended = Deferred.makeUnsafe<TurnEnd>()
  const approvals = new Map<string, () => void>()
  /** What came before the response, which says whose it is. */
  let held: Array<{ readonly turnId: string; readonly isStart: boolean; readonly tell: () => void }> = []
  /** The MCP servers that were found to have ended. */
  const endedServers = new Set<string>()
  let isGuessing = false
  let toolCalls = 0
  let id: string | undefined
  let over = false
  let usage: Usage | undefined
  let lastError: Protocol.TurnError | undefined

  const announce = () => {
    if (early === undefined) return
    events.push({ _tag: "TurnStarted", turnId: id ?? "" })
    early.forEach(events.push)
    early = undefined
  }

  const identify = (turnId: string) => {
    id ??= turnId
    announce()
    const mine = held.filter((one) => one.turnId === id)
    held = []
    for (const { tell } of mine) tell()
  }

  const guess = () => {
    isGuessing = true
    const start = held.find(({ isStart }) => isStart)
    if (id === undefined && start !== undefined) identify(start.turnId)
    return id !== undefined
  }

  const finish = (status: TurnEnd["status"], text: string | undefined, error: TurnError | undefined) => {
    if (over) return
    over = true
    announce()
    for (const [approvalId, withdraw] of approvals) {
      push({ _tag: "ApprovalWithdrawn", approvalId })
      withdraw()
    }
    approvals.clear()
    items.closeAll()
    const end: TurnEnd = {
      _tag: "TurnEnd",
      turnId: id ?? "",
      status,
      text: text ?? items.lastText(),
      ...(usage === undefined ? {} : { usage }),
      ...(error === undefined ? {} : { error })
    }
    // first of all: whoever waits may go on at once, leave the turn or start the next one
    onEnd()
    // whoever waits for the start looks whether there is anything left to interrupt
    Deferred.doneUnsafe(ended, Exit.succeed(end))
    Deferred.doneUnsafe(started, Exit.void)
    events.push(end)
    events.end()
  }

  const report = ({ error, items: reported, status }: Protocol.TurnState) => {
    const text = lastMessage(reported ?? [])
    if (status === "completed" || status === "interrupted") return finish(status, text, undefined)
    const known = error ?? lastError
    finish(
      "failed",
      text,
      known === undefined ? { message: `the turn is ${status}`, kind: "other" } : toTurnError(known)
    )
  }

  const warn = (message: string, details?: string | null) =>
    push({ _tag: "Warning", message, ...(details == null ? {} : { details }) })

  /** Codex does not say that an MCP server has ended, nor start it again: each call fails. */
  const warnOfEnded = (item: Item) => {
    const server = endedServer(item)
    if (server === undefined || endedServers.has(server)) return
    endedServers.add(server)
    warn(`the MCP server ${server} has ended: its tools fail until codex is told to start it again (reloadMcpServers)`)
  }

  const known = ({ method, params }: Protocol.Known) => {
    switch (method) {
      case "turn/started":
        identify(params.turn.id)
        Deferred.doneUnsafe(started, Exit.void)
        return
      case "turn/completed":
        return report(params.turn)
      case "item/started":
        return items.start(params.item)
      case "item/completed":
        items.complete(params.item)
        return warnOfEnded(params.item)
      case "item/agentMessage/delta":
        return items.text(params.itemId, params.delta)
      case "item/plan/delta":
        return items.plan(params.itemId, params.delta)
      case "item/reasoning/summaryTextDelta":
        return items.reasoning(params.itemId, "summary", params.summaryIndex, params.delta)
      case "item/reasoning/textDelta":
        return items.reasoning(params.itemId, "raw", params.contentIndex, params.delta)
      case "item/commandExecution/outputDelta":
      case "item/fileChange/outputDelta":
        return items.output(params.itemId, params.delta)
      case "item/mcpToolCall/progress":
        return items.output(params.itemId, params.message)
      case "thread/tokenUsage/updated": {
        const { last, modelContextWindow, total } = params.tokenUsage
        usage = {
          _tag: "Usage",
          last: toTokens(last),
          total: toTokens(total),
          ...(modelContextWindow == null ? {} : { contextWindow: modelContextWindow })
        }
        return push(usage)
      }
      case "error":
        if (!params.willRetry) {
          lastError = params.error
          return
        }
        push({
          _tag: "Retrying",
          message: params.error.message,
          ...(params.error.additionalDetails == null ? {} : { details: params.error.additionalDetails })
        })
        return items.retry()
      case "warning":
      case "guardianWarning":
        return warn(params.message)
      case "configWarning":
      case "deprecationNotice":
        return warn(params.summary, params.details)
      case "mcpServer/startupStatus/updated":
        if (params.status === "failed") warn(`the MCP server ${params.name} has not started`, params.error)
        return
      case "thread/status/changed":
      case "serverRequest/resolved":
        return
    }
  }

  return {
    events,
    started,
    ended,
    id: () => id,
    identify,
    hold: (turnId, isStart, tell) => {
      held.push({ turnId, isStart, tell })
      if (isGuessing) guess()
    },
    guess,
    known,
    unknown: (method, params) => push({ _tag: "Unknown", method, params }),
    asked: (approvalId, approval, withdraw) => {
      if (over) return withdraw()
      approvals.set(approvalId, withdraw)
      push({ _tag: "ApprovalAsked", approvalId, approval })
    },
    settled: (approvalId, settled) => {
      if (approvals.delete(approvalId)) push({ _tag: "ApprovalSettled", approvalId, ...settled })
    },
    withdrawn: (approvalId) => {
      const withdraw = approvals.get(approvalId)
      if (withdraw === undefined) return
      approvals.delete(approvalId)
      push({ _tag: "ApprovalWithdrawn", approvalId })
      withdraw()
    },
    waitsForUs: () => approvals.size + toolCalls,
    toolCall: (began) => {
      toolCalls += began ? 1 : -1
    },
    report,
    cut: (status, error) => finish(status, undefined, error)
  }
}

/** Why codex says that a turn failed: a word, or a word with a status of HTTP. */
const toTurnError = ({ additionalDetails, codexErrorInfo, message }: Protocol.TurnError): TurnError => {
  const details = additionalDetails == null ? {} : { details: additionalDetails }
  if (typeof codexErrorInfo === "string") return { message, kind: codexErrorInfo, ...details }
  const [kind, info] = Predicate.isObject(codexErrorInfo) ? Object.entries(codexErrorInfo)[0] ?? [] : []
  const status: unknown = Predicate.hasProperty(info, "httpStatusCode") ? info.httpStatusCode : undefined
  return {
    message,
    kind: kind ?? "other",
    ...details,
    ...(Number.isInteger(status) ? { httpStatus: Number(status) } : {})
  }
}

const toTokens = (tokens: Protocol.Tokens): Tokens => ({
  input: tokens.inputTokens,
  cachedInput: tokens.cachedInputTokens ?? 0,
  output: tokens.outputTokens,
  reasoning: tokens.reasoningOutputTokens ?? 0,
  total: tokens.totalTokens
})

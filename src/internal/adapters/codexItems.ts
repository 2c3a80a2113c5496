/**
 * The items of a turn of codex: messages, reasoning, plans and tools, from their start to their end. Whatever was begun is
 * ended once, whether codex says so or not.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { AgentEvent, ToolEnd, ToolStart } from "../../Agent.ts"

/** An item as it came: everything beside `id` and `type` depends on the type. @internal */
export interface Item {
  readonly id: string
  readonly type: string
  readonly [member: string]: unknown
}

type TextKind = Extract<AgentEvent, { readonly _tag: "TextEnd" }>["kind"]

interface OpenText {
  readonly kind: TextKind
  /** One text for each part: reasoning has several, and two kinds of them. */
  readonly parts: Map<string, Array<string>>
}

type Open = OpenText | { readonly kind: "tool" }

const TEXTS: Readonly<Record<string, TextKind>> = { agentMessage: "text", reasoning: "reasoning", plan: "plan" }

/** Said by the user, and known to whoever sent it. */
const IGNORED = new Set(["userMessage"])

/** @internal */
export interface Items {
  readonly start: (item: Item) => void
  readonly complete: (item: Item) => void
  readonly text: (itemId: string, text: string) => void
  readonly plan: (itemId: string, text: string) => void
  readonly reasoning: (itemId: string, kind: "summary" | "raw", part: number, text: string) => void
  readonly output: (itemId: string, text: string) => void
  /** Ends what is open, as cut off. */
  readonly closeAll: () => void
  /** The last message, or what there is of it. */
  readonly lastText: () => string
}

/** @internal */
export const makeItems = (push: (event: AgentEvent) => void): Items => {
  const open = new Map<string, Open>()
  let lastText = ""

  /** The text that is open under this id: opened now when its start was not reported. */
  const openText = (itemId: string, kind: TextKind): OpenText => {
    const item = open.get(itemId)
    if (item !== undefined && item.kind !== "tool") return item
    const opened: OpenText = { kind, parts: new Map() }
    open.set(itemId, opened)
    return opened
  }

  const add = ({ parts }: OpenText, part: string, text: string) => {
    const pieces = parts.get(part)
    if (pieces === undefined) parts.set(part, [text])
    else {
      pieces.push(text)
      // joined from time to time, so that memory grows with the text
      if (pieces.length > 4_096) pieces.splice(0, pieces.length, pieces.join(""))
    }
  }

  const whole = ({ parts }: OpenText) => [...parts.values()].map((pieces) => pieces.join("")).join("\n")

  const text = (itemId: string, text: string) => {
    add(openText(itemId, "text"), "", text)
    push({ _tag: "TextDelta", itemId, text })
  }

  const plan = (itemId: string, text: string) => {
    add(openText(itemId, "plan"), "", text)
    push({ _tag: "PlanDelta", itemId, text })
  }

  const reasoning = (itemId: string, kind: "summary" | "raw", part: number, text: string) => {
    add(openText(itemId, "reasoning"), kind + part, text)
    push({ _tag: "ReasoningDelta", itemId, kind, part, text })
  }

  const start = (item: Item) => {
    const { id, type } = item
    if (IGNORED.has(type)) return
    const before = open.get(id)
    const kind = TEXTS[type]
    // codex repeats a request to the model that broke off, and what came of it before is void
    if (before !== undefined) push({ _tag: "Reset", itemId: id })
    open.set(id, kind === undefined ? { kind: "tool" } : { kind, parts: new Map() })
    if (kind === undefined && before === undefined) push(toolStart(item))
  }

  /** What is whole now and did not come in pieces. */
  const catchUp = (itemId: string, part: string, final: string, emit: (text: string) => void) => {
    const item = open.get(itemId)
    const pieces = item === undefined || item.kind === "tool" ? undefined : item.parts.get(part)
    const came = pieces?.join("") ?? ""
    if (came === final) return
    if (final.startsWith(came)) return emit(final.slice(came.length))
    push({ _tag: "Reset", itemId })
    if (item !== undefined && item.kind !== "tool") item.parts.delete(part)
    emit(final)
  }

  const complete = (item: Item) => {
    const { id, type } = item
    if (IGNORED.has(type)) return
    const kind = TEXTS[type]
    if (kind === undefined) {
      if (!open.has(id)) push(toolStart(item))
      open.delete(id)
      return push(toolEnd(item))
    }
    if (kind === "reasoning") {
      for (const [name, as] of [["summary", "summary"], ["content", "raw"]] as const) {
        textsOf(item[name]).forEach((final, part) =>
          catchUp(id, as + part, final, (text) => reasoning(id, as, part, text))
        )
      }
    } else {
      catchUp(id, "", stringOf(item["text"]), (rest) => kind === "text" ? text(id, rest) : plan(id, rest))
    }
    const final = whole(openText(id, kind))
    open.delete(id)
    if (kind === "text") lastText = final
    push({ _tag: "TextEnd", itemId: id, kind, status: "completed", text: final })
  }

  return {
    start,
    complete,
    text,
    plan,
    reasoning,
    output: (itemId, text) => push({ _tag: "ToolOutput", itemId, text }),
    closeAll: () => {
      for (const [itemId, item] of open) {
        if (item.kind === "tool") push({ _tag: "ToolEnd", itemId, status: "cancelled", output: null })
        else {
          const text = whole(item)
          if (item.kind === "text") lastText = text
          push({ _tag: "TextEnd", itemId, kind: item.kind, status: "cancelled", text })
        }
      }
      open.clear()
    },
    lastText: () => lastText
  }
}

/** The text of the last message among items. @internal */
export const lastMessage = (items: ReadonlyArray<unknown>): string | undefined => {
  const message = items.findLast((item) => Predicate.hasProperty(item, "type") && item.type === "agentMessage")
  return Predicate.hasProperty(message, "text") && typeof message.text === "string" ? message.text : undefined
}

const toolStart = (item: Item): typeof ToolStart.Type => {
  const start = (kind: string, name: string, input: unknown): typeof ToolStart.Type => ({
    _tag: "ToolStart",
    itemId: item.id,
    kind,
    name,
    input
  })
  switch (item.type) {
    case "commandExecution":
      return start("command", stringOf(item["command"]), { command: item["command"], cwd: item["cwd"] })
    case "fileChange":
      return start("file", pathsOf(item["changes"]), { changes: item["changes"] })
    case "mcpToolCall":
      return start("mcp", `${stringOf(item["server"])}/${stringOf(item["tool"])}`, item["arguments"])
    case "dynamicToolCall":
      return start("dynamic", stringOf(item["tool"]), item["arguments"])
    default:
      return start(item.type, item.type, withoutEnvelope(item))
  }
}

const toolEnd = (item: Item): typeof ToolEnd.Type => {
  const end = (output: unknown): typeof ToolEnd.Type => ({
    _tag: "ToolEnd",
    itemId: item.id,
    status: statusOf(item),
    output: output ?? null,
    ...(typeof item["durationMs"] === "number" ? { duration: item["durationMs"] } : {})
  })
  switch (item.type) {
    case "commandExecution":
      return end({ output: item["aggregatedOutput"] ?? "", exitCode: item["exitCode"] ?? null })
    case "fileChange":
      return end({ changes: item["changes"] })
    case "mcpToolCall":
      return end(item["result"] ?? item["error"])
    case "dynamicToolCall":
      return end(item["contentItems"])
    default:
      return end(withoutEnvelope(item))
  }
}

const statusOf = ({ status, success }: Item): "completed" | "failed" | "declined" =>
  status === "failed" || status === "declined" ? status : success === false ? "failed" : "completed"

const withoutEnvelope = ({ completedAtMs: _, id: _id, startedAtMs: _started, type: _type, ...rest }: Item): unknown =>
  rest

const stringOf = (value: unknown): string => typeof value === "string" ? value : ""

const textsOf = (value: unknown): ReadonlyArray<string> => Array.isArray(value) ? value.map(stringOf) : []

const pathsOf = (changes: unknown): string =>
  Array.isArray(changes)
    ? changes.map((change: unknown) => Predicate.hasProperty(change, "path") ? stringOf(change.path) : "").join(", ")
    : ""

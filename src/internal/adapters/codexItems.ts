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

/** A part of a text as it is in the end. */
interface Final {
  readonly part: string
  readonly text: string
  readonly emit: (rest: string) => void
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
  /** The request to the model broke off and is made again: texts that are open come again, under this id or another. */
  readonly retry: () => void
  /** Ends what is open, as cut off. */
  readonly closeAll: () => void
  /** The last message, or what there is of it. */
  readonly lastText: () => string
}

/** @internal */
export const makeItems = (push: (event: AgentEvent) => void): Items => {
  const open = new Map<string, Open>()
  /** Nothing more is told of these, unless they start again. */
  const ended = new Set<string>()
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

  /** All of a text; of reasoning the summary, where there is one. */
  const whole = ({ parts }: OpenText) => {
    const all = [...parts].toSorted(([a], [b]) => partOf(a) - partOf(b))
    const summary = all.filter(([part]) => part.startsWith("summary"))
    return (summary.length > 0 ? summary : all).map(([, pieces]) => pieces.join("")).join("\n")
  }

  const text = (itemId: string, text: string) => {
    if (ended.has(itemId)) return
    add(openText(itemId, "text"), "", text)
    push({ _tag: "TextDelta", itemId, text })
  }

  const plan = (itemId: string, text: string) => {
    if (ended.has(itemId)) return
    add(openText(itemId, "plan"), "", text)
    push({ _tag: "PlanDelta", itemId, text })
  }

  const reasoning = (itemId: string, kind: "summary" | "raw", part: number, text: string) => {
    if (ended.has(itemId)) return
    add(openText(itemId, "reasoning"), kind + part, text)
    push({ _tag: "ReasoningDelta", itemId, kind, part, text })
  }

  const start = (item: Item) => {
    const { id, type } = item
    if (IGNORED.has(type)) return
    const before = open.get(id)
    const kind = TEXTS[type]
    // codex repeats a request to the model that broke off, and what came of it before is void
    if (ended.has(id) || (before !== undefined && !isVoid(before))) push({ _tag: "Reset", itemId: id })
    open.set(id, kind === undefined ? { kind: "tool" } : { kind, parts: new Map() })
    if (kind === undefined && before === undefined && !ended.has(id)) push(toolStart(item))
    ended.delete(id)
  }

  /** What is whole now and did not come in pieces; all of it again where what came is not how it begins. */
  const catchUp = (itemId: string, kind: TextKind, finals: ReadonlyArray<Final>) => {
    const { parts } = openText(itemId, kind)
    const came = (part: string) => parts.get(part)?.join("") ?? ""
    if (finals.some(({ part, text }) => !text.startsWith(came(part)))) {
      push({ _tag: "Reset", itemId })
      parts.clear()
    }
    for (const { emit, part, text } of finals) {
      const rest = text.slice(came(part).length)
      if (rest !== "") emit(rest)
    }
  }

  const close = (itemId: string) => {
    open.delete(itemId)
    ended.add(itemId)
  }

  const complete = (item: Item) => {
    const { id, type } = item
    if (IGNORED.has(type)) return
    const kind = TEXTS[type]
    if (ended.has(id)) return
    if (kind === undefined) {
      if (!open.has(id)) push(toolStart(item))
      close(id)
      return push(toolEnd(item))
    }
    if (kind === "reasoning") {
      const finals = ([["summary", "summary"], ["content", "raw"]] as const).flatMap(([name, as]) =>
        textsOf(item[name]).map((text, part): Final => ({
          part: as + part,
          text,
          emit: (rest) => reasoning(id, as, part, rest)
        }))
      )
      catchUp(id, kind, finals)
    } else {
      const emit = (rest: string) => kind === "text" ? text(id, rest) : plan(id, rest)
      catchUp(id, kind, [{ part: "", text: stringOf(item["text"]), emit }])
    }
    const final = whole(openText(id, kind))
    close(id)
    if (kind === "text") lastText = final
    push({ _tag: "TextEnd", itemId: id, kind, status: "completed", text: final })
  }

  return {
    start,
    complete,
    text,
    plan,
    reasoning,
    output: (itemId, text) => {
      if (!ended.has(itemId)) push({ _tag: "ToolOutput", itemId, text })
    },
    retry: () => {
      for (const [itemId, item] of open) {
        if (item.kind === "tool" || isVoid(item)) continue
        item.parts.clear()
        push({ _tag: "Reset", itemId })
      }
    },
    closeAll: () => {
      for (const [itemId, item] of open) {
        if (item.kind === "tool") push({ _tag: "ToolEnd", itemId, status: "cancelled", output: null })
        else {
          const text = whole(item)
          if (item.kind === "text" && !isVoid(item)) lastText = text
          push({ _tag: "TextEnd", itemId, kind: item.kind, status: "cancelled", text })
        }
      }
      open.clear()
    },
    lastText: () => lastText
  }
}

/** A text of which nothing has come, or nothing that counts. */
const isVoid = (item: Open): boolean => item.kind !== "tool" && item.parts.size === 0

/** The number of a part of reasoning, such as `summary1`. */
const partOf = (part: string) => Number(/\d+$/.exec(part)?.[0] ?? 0)

/** The text of the last message among items. @internal */
export const lastMessage = (items: ReadonlyArray<unknown>): string | undefined => {
  const message = items.findLast((item) => Predicate.hasProperty(item, "type") && item.type === "agentMessage")
  return Predicate.hasProperty(message, "text") && typeof message.text === "string" ? message.text : undefined
}

/** The MCP server of a call that failed because it was not there any longer. @internal */
export const endedServer = (item: Item): string | undefined => {
  const { error, server } = item
  return item.type === "mcpToolCall" && typeof server === "string" && Predicate.hasProperty(error, "message")
      && typeof error.message === "string" && /\btransport closed\b/i.test(error.message)
    ? server
    : undefined
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

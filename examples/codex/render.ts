/**
 * The events of a turn as text for people. What the agent says goes to standard output, so that it can be kept in a file;
 * what it does, asks and uses goes to standard error.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type * as Agent from "../../src/Agent.ts"
import { describe, diff } from "./asked.ts"
import type { Piece } from "./Output.ts"
import { makePlain, plain, visible } from "./text.ts"

/** Lines that are shown of what a tool prints, and characters of each. */
const MAX_LINES = 20
const MAX_LENGTH = 200

/** Lines that are shown of a command. */
const MAX_COMMAND = 10

/**
 * How events are shown.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Whether what is less important may be dimmed. */
  readonly dim: boolean
  /** Whether there is somebody to ask. */
  readonly canAsk: boolean
}

/** A tool that is in use. */
interface Tool {
  readonly heading: string
  readonly input: unknown
  readonly plain: (piece: string) => string
  /** The line that has not ended yet. */
  rest: string
  lines: number
  /** Whether its changes were shown in full. */
  asked: boolean
}

/**
 * Makes what turns the events of a conversation into text, in their order.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeRendering = (options: Options): (event: Agent.AgentEvent) => ReadonlyArray<Piece> => {
  const tools = new Map<string, Tool>()
  const texts = new Map<string, (piece: string) => string>()
  let pieces: Array<Piece> = []
  /** Whose text stands there, and where its last line has not ended. */
  let section = ""
  let openLine: Piece["to"] | undefined

  const dimmed = (text: string) => options.dim && text !== "" ? `\u001b[2m${text}\u001b[22m` : text

  const breakLine = () => {
    if (openLine !== undefined) pieces.push({ to: openLine, text: "\n" })
    openLine = undefined
  }

  const line = (text: string) => {
    breakLine()
    section = ""
    pieces.push({ to: "err", text: `${text}\n` })
  }

  /** Adds to a text; a text of another item begins on a line of its own. */
  const stream = (key: string, text: string, to: Piece["to"]) => {
    let clean = texts.get(key)
    if (clean === undefined) {
      clean = makePlain()
      texts.set(key, clean)
    }
    const shown = clean(text)
    if (shown === "") return
    if (section !== key) breakLine()
    section = key
    pieces.push({ to, text: to === "err" ? shown.split("\n").map(dimmed).join("\n") : shown })
    openLine = shown.endsWith("\n") ? undefined : to
  }

  const forget = (itemId: string) => {
    for (const key of texts.keys()) if (key.startsWith(`${itemId} `)) texts.delete(key)
  }

  /** A line of what a tool prints, below its heading. */
  const toolLine = (itemId: string, tool: Tool, text: string) => {
    if (++tool.lines > MAX_LINES) return
    if (section !== itemId) line(`${tool.heading} (goes on)`)
    pieces.push({ to: "err", text: `${dimmed(`  ${cut(text, MAX_LENGTH)}`)}\n` })
    section = itemId
  }

  const output = (itemId: string, text: string) => {
    const tool = tools.get(itemId)
    if (tool === undefined) return
    const lines = (tool.rest + tool.plain(text)).split("\n")
    // a line without an end takes no more memory than is shown of it
    tool.rest = (lines.pop() ?? "").slice(0, MAX_LENGTH + 1)
    lines.forEach((text) => toolLine(itemId, tool, text))
  }

  const start = ({ input, itemId, kind, name }: typeof Agent.ToolStart.Type) => {
    const heading = headingOf(kind, name, input)
    tools.set(itemId, { heading, input, plain: makePlain(), rest: "", lines: 0, asked: false })
    line(heading)
    section = itemId
  }

  const end = (event: typeof Agent.ToolEnd.Type) => {
    const { itemId } = event
    const tool = tools.get(itemId)
    if (tool === undefined) return
    tools.delete(itemId)
    if (tool.rest !== "") toolLine(itemId, tool, tool.rest)
    if (tool.lines === 0 && !tool.asked) {
      linesOf(event.output).forEach((text) => toolLine(itemId, tool, text))
    }
    if (tool.lines > MAX_LINES) pieces.push({ to: "err", text: `  … ${tool.lines - MAX_LINES} more lines\n` })
    if (section !== itemId) line(`${tool.heading} (ends)`)
    line(`  ${outcomeOf(event)}`)
  }

  const settled = ({ by }: typeof Agent.ApprovalSettled.Type) => {
    if (by === "handler") return
    const why = by === "timeout"
      ? "no answer has come in time"
      : by === "failure"
      ? "the question could not be asked"
      : options.canAsk
      ? "this program cannot ask for it"
      : "there is no terminal to ask on"
    const tool = section
    line(`  declined: ${why}`)
    section = tool
  }

  const show = (event: Agent.AgentEvent) => {
    switch (event._tag) {
      case "TextDelta":
      case "PlanDelta":
        return stream(`${event.itemId} `, event.text, "out")
      case "ReasoningDelta":
        return stream(`${event.itemId} ${event.kind} ${event.part}`, event.text, "err")
      case "TextEnd":
        forget(event.itemId)
        if (section.startsWith(`${event.itemId} `)) breakLine()
        return
      case "Reset":
        forget(event.itemId)
        return line("(from the start again)")
      case "ToolStart":
        return start(event)
      case "ToolOutput":
        return output(event.itemId, event.text)
      case "ToolEnd":
        return end(event)
      case "ApprovalAsked": {
        const { approval } = event
        const tool = "itemId" in approval ? tools.get(approval.itemId) : undefined
        if (tool !== undefined && approval._tag === "FileChangeApproval") tool.asked = true
        describe(approval, tool?.input).forEach(line)
        // what comes of it stands below the question
        if (tool !== undefined && "itemId" in approval) section = approval.itemId
        return
      }
      case "ApprovalSettled":
        return settled(event)
      case "ApprovalWithdrawn":
        return line("  it is not asked any longer")
      case "Retrying":
        return line(`trying again: ${withDetails(event)}`)
      case "Warning":
        return line(`warning: ${withDetails(event)}`)
      case "TurnEnd":
        return turnEnd(event)
      case "TurnStarted":
      case "Usage":
      case "Unknown":
        return
    }
  }

  const turnEnd = ({ error, status, usage }: Agent.TurnEnd) => {
    breakLine()
    tools.clear()
    texts.clear()
    if (status === "interrupted") line("interrupted")
    if (error !== undefined) line(`codex: the turn failed: ${withDetails(error)}`)
    if (usage !== undefined) line(dimmed(tokens(usage)))
  }

  return (event) => {
    pieces = []
    show(event)
    return pieces
  }
}

const headingOf = (kind: string, name: string, input: unknown): string => {
  switch (kind) {
    case "command": {
      const lines = visible(name).split("\n")
      return `$ ${lines.slice(0, MAX_COMMAND).join("\n  ")}${lines.length > MAX_COMMAND ? "\n  …" : ""}`
    }
    case "file":
      return `edit ${visible(name)}`
    default: {
      const given = input === undefined || input === null ? "" : ` ${JSON.stringify(input)}`
      return `call ${cut(visible(`${name}${given}`), MAX_LENGTH)}`
    }
  }
}

const outcomeOf = ({ duration, output, status }: typeof Agent.ToolEnd.Type): string => {
  const exitCode = Predicate.hasProperty(output, "exitCode") && typeof output.exitCode === "number"
    ? [`exit code ${output.exitCode}`]
    : []
  const time = duration === undefined
    ? []
    : [duration < 1_000 ? `${duration} ms` : `${(duration / 1_000).toFixed(1)} s`]
  return [status === "cancelled" ? "cut off; it may still run" : status, ...exitCode, ...time].join(", ")
}

/** What a tool has given, where it did not come while it ran. */
const linesOf = (output: unknown): ReadonlyArray<string> => {
  if (Predicate.hasProperty(output, "changes")) return diff(output).map((line) => line.slice(2))
  const text = plain(textOf(output)).trimEnd()
  return text === "" ? [] : text.split("\n")
}

const textOf = (output: unknown): string => {
  if (typeof output === "string") return output
  if (output === null || output === undefined) return ""
  if (Array.isArray(output)) return output.map(textOf).join("\n")
  for (const name of ["output", "content", "text", "message"]) {
    if (Predicate.hasProperty(output, name) && output[name] !== null) return textOf(output[name])
  }
  return JSON.stringify(output)
}

const withDetails = ({ details, message }: { readonly message: string; readonly details?: string }) =>
  visible(details === undefined || details === message ? message : `${message}: ${details}`)

const cut = (text: string, length: number) => text.length > length ? `${text.slice(0, length)}…` : text

const count = (value: number) => value.toLocaleString("en")

const tokens = ({ total }: Agent.Usage) =>
  `tokens: ${count(total.input)} in (${count(total.cachedInput)} cached), ` +
  `${count(total.output)} out (${count(total.reasoning)} reasoning)`

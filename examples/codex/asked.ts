/**
 * What an agent asks, in full: somebody has to decide on it, so nothing is cut and nothing is invisible.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type * as Approval from "../../src/Approval.ts"
import { visible } from "./text.ts"

/**
 * Lines that say what is asked. `input` is that of the tool which the question is about.
 *
 * @category constructors
 * @since 0.1.0
 */
export const describe = (approval: Approval.Approval, input: unknown): ReadonlyArray<string> => {
  switch (approval._tag) {
    case "CommandApproval":
      return [
        "May this run?",
        ...indent(approval.command),
        ...(approval.cwd === undefined ? [] : [`  in ${visible(approval.cwd)}`]),
        ...because(approval.reason)
      ]
    case "FileChangeApproval":
      return ["May these files be changed?", ...diff(input), ...because(approval.reason)]
    case "PermissionApproval":
      return [
        "May it have these permissions?",
        ...indent(JSON.stringify(approval.permissions, null, 2)),
        ...because(approval.reason)
      ]
    case "ToolApproval":
      return [
        `May ${visible(approval.tool)} of the MCP server ${visible(approval.server)} be called?`,
        ...(approval.input === undefined ? [] : indent(JSON.stringify(approval.input, null, 2))),
        ...indent(approval.message)
      ]
    case "Questions":
      return approval.questions.flatMap(({ options, question }) => [
        visible(question),
        ...options.map(({ description, label }, index) =>
          visible(`  ${index + 1}. ${label}${description === undefined ? "" : `: ${description}`}`)
        )
      ])
    case "Elicitation":
      return [
        `The MCP server ${visible(approval.server)} wants to know:`,
        ...indent(approval.message),
        ...(approval.url === undefined ? [] : indent(approval.url))
      ]
  }
}

/**
 * The changes of files, as the input and the output of a tool have them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const diff = (input: unknown): ReadonlyArray<string> => {
  const changes: unknown = Predicate.hasProperty(input, "changes") ? input.changes : undefined
  return Array.isArray(changes) ? changes.flatMap(change) : []
}

const change = (change: unknown): ReadonlyArray<string> => {
  const member = (name: string, of: unknown = change): string =>
    Predicate.hasProperty(of, name) && typeof of[name] === "string" ? of[name] : ""
  const kind = Predicate.hasProperty(change, "kind") ? member("type", change.kind) : ""
  return [`  ${visible(`${kind} ${member("path")}`.trim())}`, ...indent(member("diff").trimEnd(), "    ")]
}

const because = (reason: string | undefined) => reason === undefined ? [] : indent(`because: ${reason}`)

const indent = (text: string, by = "  "): ReadonlyArray<string> =>
  text === "" ? [] : visible(text).split("\n").map((line) => by + line)

/**
 * Models that do one thing each.
 */
import type * as Deferred from "effect/Deferred"
import type * as Effect from "effect/Effect"
import type { Scenario } from "./fakeModel.ts"
import { call, Part, Reply, say, words } from "./reply.ts"

/** Greets in five deltas, one of them of more than one byte a character. */
export const hello: Scenario = () => say("Hello", ", ", "größe", " – ", "🐢")

/** Gives a reply once, to the first request after the user has spoken, and then sums up. */
const once = (reply: Reply, then: string): Scenario => ({ outputs }) =>
  outputs.length === 0 ? reply : say(...words(then))

/** Runs a command, and says what came of it. */
export const command = (line: string): Scenario => (request) =>
  once(call("exec_command", { cmd: line }), `It said: ${request.outputs[0]?.text}`)(request)

/** Calls a tool of an MCP server. */
export const mcpTool = (server: string, tool: string, args: object): Scenario =>
  once(call(tool, args, `mcp__${server}`), "The tool has answered.")

/** Calls a tool that the client serves itself. */
export const dynamicTool = (tool: string, args: object): Scenario => once(call(tool, args), "The client has answered.")

/** Asks the user to choose. Codex offers this in plan mode only. */
export const userInput: Scenario = once(
  call("request_user_input", {
    questions: [{
      id: "colour",
      header: "Colour",
      question: "Which colour do you like?",
      options: [{ label: "Blue", description: "As the sea" }, { label: "Red", description: "As a rose" }]
    }]
  }),
  "A fine choice."
)

/** Asks for leave to use the network and to write in a folder. Codex offers this with `PERMISSIONS_ARGS` only. */
export const permissions = (folder: string): Scenario =>
  once(
    call("request_permissions", {
      reason: "to fetch it",
      permissions: { network: { enabled: true }, file_system: { write: [folder] } }
    }),
    "So be it."
  )

/** Arguments that give the model the tool of `permissions`. */
export const PERMISSIONS_ARGS: ReadonlyArray<string> = ["--enable", "request_permissions_tool"]

/** Adds a file. Codex offers this to models that it knows, such as gpt-5.5. */
export const patch = (file: string, text: string): Scenario =>
  once(
    Reply.Complete({
      parts: [Part.CustomToolCall({
        name: "apply_patch",
        input: `*** Begin Patch\n*** Add File: ${file}\n+${text}\n*** End Patch\n`
      })]
    }),
    "The file is there."
  )

/** Thinks before it answers. */
export const reasoning: Scenario = () =>
  Reply.Complete({
    parts: [
      Part.Reasoning({ summary: ["**First** this", "**Then** that"], raw: "what nobody should read" }),
      Part.Message({ deltas: ["Forty", "-two"] })
    ]
  })

/** Proposes a plan in the middle of what it says. */
export const plan: Scenario = () =>
  say("Before.\n", "<proposed_plan>\n", "# Plan\n", "- first\n", "- second\n", "</proposed_plan>\n", "After.")

/** Says each delta when the gate lets it. */
export const gated = (gate: Effect.Effect<void>, deltas: ReadonlyArray<string>): Scenario => () =>
  Reply.Complete({ parts: [Part.Message({ deltas, gate })] })

/** Says much: the numbers below `count`, each a delta. */
export const many = (count: number): Scenario => () => say(...Array.from({ length: count }, (_, index) => `${index} `))

/** Refuses everything with a status of HTTP. */
export const httpError = (status: number): Scenario => () =>
  Reply.HttpError({ status, message: `refused with ${status}` })

/** Fails after the stream has begun. */
export const failed = (code: string): Scenario => () => Reply.Failed({ code, message: `failed with ${code}` })

/** Breaks off in its first answer, and gives the same from its beginning when it is asked again. */
export const cutOnce = (deltas: ReadonlyArray<string>, after: number): Scenario => ({ number }) =>
  number === 1 ? Reply.Cut({ deltas: deltas.slice(0, after) }) : say(...deltas)

/** Breaks off each time. */
export const cut = (deltas: ReadonlyArray<string>): Scenario => () => Reply.Cut({ deltas })

/** Never answers. */
export const silent = (aborted: Deferred.Deferred<void>): Scenario => () => Reply.Silent({ aborted })

/**
 * Bash as MCP tools: `run`, `which_bash` and `diagnose`.
 *
 * A command that fails is a result with its exit code. What keeps a command from running reaches the client as a tool
 * error with its message, because the tools declare it as their failure.
 *
 * @since 0.1.0
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"
import { FileError } from "../shared/FileError.ts"
import { hints } from "../shared/hints.ts"
import type { Report } from "./live.ts"
import { Bash, Diagnosis, Outcome, Shell } from "./Shell.ts"
import { ShellError } from "./ShellError.ts"

/**
 * Tool that runs a command.
 *
 * @category tools
 * @since 0.1.0
 */
export const Run = Tool.make("run", {
  description: "Run a command line with bash (Git Bash on Windows) and return its output and how it ended. " +
    "Look at exitCode: a command that fails is a result, not an error. " +
    "There is no input and no terminal; pagers and editors are off. " +
    "Everything that the command starts ends with it: nothing stays in the background for a later call. " +
    "Of a long output the beginning and the end are returned; write it to a file to see all of it.",
  parameters: Schema.Struct({
    command: Schema.String.annotate({ description: "Command line or script for bash, such as git status" }),
    timeout: Schema.optionalKey(Schema.Finite.annotate({
      description: "Whole milliseconds from 1 to 1800000 until the command is ended with all that it started; " +
        "two minutes when left out, unless the server was set up otherwise"
    })),
    workdir: Schema.optionalKey(Schema.String.annotate({
      description: "Folder to run it in, relative to the server's folder; that folder when left out"
    }))
  }),
  success: Outcome,
  failure: Schema.Union([ShellError, FileError])
}).annotateMerge(hints("Run a command", true, { openWorld: true }))

/**
 * Tool that says which bash runs the commands.
 *
 * @category tools
 * @since 0.1.0
 */
export const WhichBash = Tool.make("which_bash", {
  description: "Say which bash runs the commands and how it was found.",
  success: Bash,
  failure: ShellError
}).annotateMerge(hints("Which bash runs the commands", false))

/**
 * Tool that says what keeps commands from running as expected.
 *
 * @category tools
 * @since 0.1.0
 */
export const Diagnose = Tool.make("diagnose", {
  description: "Say where bash was looked for and what was found, its version, the folder, the timeouts and limits, " +
    "and how many commands run. Call it when commands do not run.",
  success: Diagnosis
}).annotateMerge(hints("What this server can run", false))

/**
 * Toolkit with all tools.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const ShellToolkit = Toolkit.make(Run, WhichBash, Diagnose)

/**
 * Layer that handles the tools with the `Shell` service, and shows what a command writes to clients that want to know
 * how far a call is.
 *
 * @category layers
 * @since 0.1.0
 */
export const ShellHandlers = ShellToolkit.toLayer(Effect.gen(function*() {
  const shell = yield* Shell
  const server = yield* McpServer.McpServer
  const onOutput: Effect.Effect<Report> = Mcp.progress.pipe(
    Effect.map(({ report }): Report => (bytes, text) => report(bytes, { message: text })),
    Effect.provideService(McpServer.McpServer, server)
  )
  return ShellToolkit.of({
    run: (request) => Effect.flatMap(onOutput, (report) => shell.run(request, report)),
    which_bash: () => shell.whichBash,
    diagnose: () => shell.diagnose
  })
}))

/**
 * Layer that registers the tools with an MCP server: pass it to `McpServer.layer` as `registrations`.
 *
 * @category layers
 * @since 0.1.0
 */
export const ShellTools: Layer.Layer<never, never, McpServer.McpServer | Shell> = McpServer.toolkit(ShellToolkit)
  .pipe(Layer.provide(ShellHandlers))

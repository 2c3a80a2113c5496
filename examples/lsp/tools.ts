/**
 * The questions about code as MCP tools: `definition`, `references`, `hover`, `document_symbols`, `workspace_symbols`,
 * `diagnostics`, `rename` and `status`.
 *
 * An `LspError` or a `FileError` reaches the client as a tool error with its message, because the tools declare them as
 * their failure. Anything else that goes wrong in a handler would be logged and hidden behind a neutral message.
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
import * as Code from "./Code.ts"
import { LanguageServers, Status } from "./LanguageServers.ts"
import { LspError } from "./LspError.ts"
import type { OnStep } from "./session.ts"

const File = Schema.String.annotate({
  description: "Path of a file, relative to the server's folder, such as src/main.ts"
})

const Positive = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const At = {
  file: File,
  line: Positive.annotate({ description: "Line, counted from 1" }),
  column: Schema.optionalKey(
    Positive.annotate({ description: "Column, counted from 1 in UTF-16 code units, as editors show it" })
  ),
  symbol: Schema.optionalKey(
    Schema.String.check(Schema.isMinLength(1)).annotate({
      description: "In place of column: a name that stands on the line; its first occurrence as a whole word is meant"
    })
  )
}

const failure = Schema.Union([LspError, FileError])

/**
 * Tool that finds where a name is defined.
 *
 * @category tools
 * @since 0.1.0
 */
export const Definition = Tool.make("definition", {
  description: "Find where a name in the code is defined. Name the line, and the name itself as symbol.",
  parameters: Schema.Struct(At),
  success: Code.Locations,
  failure
}).annotateMerge(hints("Find a definition", false))

/**
 * Tool that finds where a name is used.
 *
 * @category tools
 * @since 0.1.0
 */
export const References = Tool.make("references", {
  description:
    "Find all places of the project where a name is used: this one name, not others that are spelled alike. " +
    "At most 200 are shown.",
  parameters: Schema.Struct({
    ...At,
    includeDeclaration: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether the definition is among them; true when left out" })
    )
  }),
  success: Code.Locations,
  failure
}).annotateMerge(hints("Find all uses of a name", false))

/**
 * Tool that tells the type and the documentation of a name.
 *
 * @category tools
 * @since 0.1.0
 */
export const Hover = Tool.make("hover", {
  description: "Tell the type and the documentation of a name in the code.",
  parameters: Schema.Struct(At),
  success: Code.Hover,
  failure
}).annotateMerge(hints("Tell what a name is", false))

/**
 * Tool that lists the symbols of a file.
 *
 * @category tools
 * @since 0.1.0
 */
export const DocumentSymbols = Tool.make("document_symbols", {
  description: "List what a file defines: classes, functions, variables and so on, with their lines.",
  parameters: Schema.Struct({ file: File }),
  success: Code.DocumentSymbols,
  failure
}).annotateMerge(hints("List the symbols of a file", false))

/**
 * Tool that finds symbols of a project by their names.
 *
 * @category tools
 * @since 0.1.0
 */
export const WorkspaceSymbols = Tool.make("workspace_symbols", {
  description: "Find classes, functions, variables and so on of the whole project by a part of their names.",
  parameters: Schema.Struct({
    query: Schema.String.annotate({ description: "A part of the name" }),
    file: Schema.optionalKey(Schema.String.annotate({
      description: "Any file of the language to search in; when left out, the languages that were used before"
    }))
  }),
  success: Code.WorkspaceSymbols,
  failure
}).annotateMerge(hints("Find symbols of the project", false))

/**
 * Tool that says what is wrong with a file.
 *
 * @category tools
 * @since 0.1.0
 */
export const Diagnostics = Tool.make("diagnostics", {
  description: "Say what is wrong with a file as it is on the disk now: errors and warnings. " +
    "It takes some seconds. Call it after a change.",
  parameters: Schema.Struct({ file: File }),
  success: Code.Diagnostics,
  failure
}).annotateMerge(hints("Check a file", false))

/**
 * Tool that renames a name everywhere.
 *
 * @category tools
 * @since 0.1.0
 */
export const Rename = Tool.make("rename", {
  description: "Rename a name in the whole project, all places or none. Without dryRun: false nothing is written: " +
    "the diff shows what would be. Look at it, and call again with dryRun: false.",
  parameters: Schema.Struct({
    ...At,
    newName: Schema.String.check(Schema.isPattern(/^[^\s\p{Cc}](?:[^\p{Cc}]*[^\s\p{Cc}])?$/u, {
      expected: "a name on one line, without blanks around it"
    })).annotate({ description: "The new name" }),
    dryRun: Schema.optionalKey(Schema.Boolean.annotate({
      description: "False to write the files; true, or left out, to see the diff only"
    }))
  }),
  success: Code.Renamed,
  failure
}).annotateMerge(hints("Rename a name", true))

/**
 * Tool that says how it stands with the language servers.
 *
 * @category tools
 * @since 0.1.0
 */
export const ServerStatus = Tool.make("status", {
  description: "Say which language servers there are, whether they are installed, run or crashed, and what they do.",
  parameters: Tool.EmptyParams,
  success: Schema.Struct({ servers: Schema.Array(Status) })
}).annotateMerge(hints("Tell how the language servers are", false))

/**
 * Toolkit with all tools.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const LspToolkit = Toolkit.make(
  Definition,
  References,
  Hover,
  DocumentSymbols,
  WorkspaceSymbols,
  Diagnostics,
  Rename,
  ServerStatus
)

/**
 * Layer that handles the tools with the `Code` service, and tells clients that want to know what a language server does
 * meanwhile.
 *
 * @category layers
 * @since 0.1.0
 */
export const LspHandlers = LspToolkit.toLayer(Effect.gen(function*() {
  const code = yield* Code.Code
  const servers = yield* LanguageServers
  const server = yield* McpServer.McpServer
  const onStep: Effect.Effect<OnStep> = Mcp.progress.pipe(
    Effect.map(({ report }): OnStep => {
      let steps = 0
      return (message) => report(++steps, { message })
    }),
    Effect.provideService(McpServer.McpServer, server)
  )
  const told = <A, E>(call: (onStep: OnStep) => Effect.Effect<A, E>) => Effect.flatMap(onStep, call)
  return LspToolkit.of({
    definition: (at) => told((onStep) => code.definition(at, onStep)),
    references: (at) => told((onStep) => code.references(at, onStep)),
    hover: (at) => told((onStep) => code.hover(at, onStep)),
    document_symbols: ({ file }) => told((onStep) => code.documentSymbols(file, onStep)),
    workspace_symbols: (options) => told((onStep) => code.workspaceSymbols(options, onStep)),
    diagnostics: ({ file }) => told((onStep) => code.diagnostics(file, onStep)),
    rename: (options) => told((onStep) => code.rename(options, onStep)),
    status: () => Effect.map(servers.status, (servers) => ({ servers }))
  })
}))

/**
 * Layer that registers the tools with an MCP server: pass it to `Mcp.run` as `registrations`.
 *
 * @category layers
 * @since 0.1.0
 */
export const LspTools: Layer.Layer<never, never, McpServer.McpServer | Code.Code | LanguageServers> = McpServer.toolkit(
  LspToolkit
).pipe(Layer.provide(LspHandlers))

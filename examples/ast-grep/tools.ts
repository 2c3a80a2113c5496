/**
 * Structural search as MCP tools: `search`, `replace` and `languages`.
 *
 * An `AstGrepError` or a `FileError` reaches the client as a tool error with its message, because the tools declare them
 * as their failure. Anything else that goes wrong in a handler would be logged and hidden behind a neutral message.
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
import { AstGrepError } from "./AstGrepError.ts"
import type { OnProgress } from "./coverage.ts"
import { LanguageInfo, languages } from "./languages.ts"
import { Page } from "./pages.ts"
import { Replaced } from "./replacements.ts"
import { Search } from "./Search.ts"

const Failure = Schema.Union([AstGrepError, FileError])

const query = {
  pattern: Schema.String.annotate({
    description:
      "A piece of code. $NAME stands for one node, $$$NAME for any number of them (arguments, statements), " +
      "$_ and $$$ the same without a name; a name twice must stand for the same code. Names are capitals, digits " +
      "and _. Example: console.log($$$ARGS)"
  }),
  language: Schema.String.annotate({
    description: "A language as the tool languages names it, such as typescript or tsx"
  }),
  globs: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description:
        "Which files, relative to the server's folder, such as src/**/*.ts; those with a leading ! are left " +
        "out. A glob without / is for names in any folder. All files of the language when left out"
    })
  ),
  selector: Schema.optionalKey(Schema.String.annotate({
    description: "Kind of the node in the pattern that is meant, when it is no whole piece of code: " +
      "method_definition for the pattern class X { $M($$$) { $$$ } }"
  }))
}

/**
 * Tool that finds code.
 *
 * @category tools
 * @since 0.1.0
 */
export const SearchTool = Tool.make("search", {
  description:
    "Find code by its structure: a pattern matches whatever the formatting. Gives files, positions, and what " +
    "the metavariables stand for, page by page: while truncated is true, call again with the same parameters and " +
    "cursor = nextCursor. Files that .gitignore leaves out are not searched.",
  parameters: Schema.Struct({
    ...query,
    cursor: Schema.optionalKey(Schema.String.annotate({ description: "nextCursor of the page before" }))
  }),
  success: Page,
  failure: Failure
}).annotateMerge(hints("Find code by its structure", false))

/**
 * Tool that rewrites code.
 *
 * @category tools
 * @since 0.1.0
 */
export const ReplaceTool = Tool.make("replace", {
  description:
    "Rewrite code that a pattern matches, in all files, all or none. First as a dry run, which changes nothing " +
    "and shows a diff; then with dryRun false and the version of the dry run. Of matches inside of each other only " +
    "the outermost are replaced.",
  parameters: Schema.Struct({
    ...query,
    rewrite: Schema.String.annotate({
      description: "The new code, with metavariables of the pattern, such as logger.info($$$ARGS); empty to remove"
    }),
    dryRun: Schema.optionalKey(Schema.Boolean.annotate({ description: "False to write; true when left out" })),
    version: Schema.optionalKey(Schema.String.annotate({
      description: "version of the dry run: nothing is written when the result would be another one"
    }))
  }),
  success: Replaced,
  failure: Failure
}).annotateMerge(hints("Rewrite code by its structure", true))

/**
 * Tool that lists the languages.
 *
 * @category tools
 * @since 0.1.0
 */
export const LanguagesTool = Tool.make("languages", {
  description: "List the languages that can be searched, their other names and the endings of their files.",
  parameters: Tool.EmptyParams,
  success: Schema.Struct({ languages: Schema.Array(LanguageInfo) })
}).annotateMerge(hints("List the languages", false))

/**
 * Toolkit with all tools.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const AstGrepToolkit = Toolkit.make(SearchTool, ReplaceTool, LanguagesTool)

/**
 * Layer that handles the tools with the `Search` service, and tells clients that want to know how far a call is.
 *
 * @category layers
 * @since 0.1.0
 */
export const AstGrepHandlers = AstGrepToolkit.toLayer(Effect.gen(function*() {
  const service = yield* Search
  const server = yield* McpServer.McpServer
  const onProgress: Effect.Effect<OnProgress> = Mcp.progress.pipe(
    Effect.map(({ report }): OnProgress => ({ done, total }) =>
      report(done, { total, message: `${done} of ${total} files` })
    ),
    Effect.provideService(McpServer.McpServer, server)
  )
  return AstGrepToolkit.of({
    search: (options) => Effect.flatMap(onProgress, (report) => service.search(options, report)),
    replace: (options) => Effect.flatMap(onProgress, (report) => service.replace(options, report)),
    languages: () =>
      Effect.succeed({
        languages: languages.map(({ aliases, endings, name }) => ({ name, aliases, endings }))
      })
  })
}))

/**
 * Layer that registers the tools with an MCP server: pass it to `McpServer.layer` as `registrations`.
 *
 * @category layers
 * @since 0.1.0
 */
export const AstGrepTools: Layer.Layer<never, never, McpServer.McpServer | Search> = McpServer.toolkit(AstGrepToolkit)
  .pipe(Layer.provide(AstGrepHandlers))

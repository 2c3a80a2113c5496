/**
 * An MCP server whose tool reports its progress, logs to the client, and has limits.
 *
 *     npx @modelcontextprotocol/inspector --cli node examples/docs/mcp-tool.ts --method tools/list
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"

const CountWords = Tool.make("count_words", {
  description: "Count the words of some texts",
  parameters: Schema.Struct({ texts: Schema.Array(Schema.String) }),
  success: Schema.Struct({ words: Schema.Int }),
  dependencies: [McpServer.McpServer]
})
const Tools = Toolkit.make(CountWords)
const Handlers = Tools.toLayer({
  count_words: ({ texts }) =>
    Effect.gen(function*() {
      const progress = yield* Mcp.progress
      let words = 0
      for (const [index, text] of texts.entries()) {
        words += text.match(/\S+/g)?.length ?? 0
        yield* Effect.logInfo(`${words} words so far`)
        yield* progress.report(index + 1, { total: texts.length })
      }
      return { words }
    })
})

StdioRuntime.runMain(
  Mcp.run({
    name: "words",
    version: "1.0.0",
    registrations: McpServer.toolkit(Tools).pipe(Layer.provide(Handlers)),
    logToClient: true,
    toolLimits: (tool) => tool === "count_words" ? { timeout: "1 minute", concurrency: 2 } : undefined
  }),
  { layer: Mcp.layerStdio() }
)

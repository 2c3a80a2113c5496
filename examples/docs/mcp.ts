/**
 * An MCP server with one tool and instructions for the model.
 *
 *     npx @modelcontextprotocol/inspector --cli node examples/docs/mcp.ts --method tools/list
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"

const Shout = Tool.make("shout", {
  description: "Say it louder",
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({ text: Schema.String })
})
const Tools = Toolkit.make(Shout)
const Handlers = Tools.toLayer({ shout: ({ text }) => Effect.succeed({ text: text.toUpperCase() }) })

StdioRuntime.runMain(
  Mcp.run({
    name: "shout",
    version: "1.0.0",
    instructions: "Use it sparingly.",
    registrations: McpServer.toolkit(Tools).pipe(Layer.provide(Handlers))
  }),
  { layer: Mcp.layerStdio() }
)

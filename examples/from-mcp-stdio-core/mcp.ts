/**
 * The same server without MCP by hand: Effect's McpServer answers `initialize`, `tools/list` and `tools/call`.
 *
 *     npx @modelcontextprotocol/inspector --cli node examples/from-mcp-stdio-core/mcp.ts --method tools/list
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"

const Tools = Toolkit.make(Tool.make("shout", {
  description: "Say it louder",
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({ text: Schema.String })
}))
const Handlers = Tools.toLayer({ shout: ({ text }) => Effect.succeed({ text: text.toUpperCase() }) })

StdioRuntime.runMain(
  Mcp.run({ name: "shout", version: "1.0.0", registrations: McpServer.toolkit(Tools).pipe(Layer.provide(Handlers)) }),
  { layer: Mcp.layerStdio({ idle: "5 minutes", parentPoll: "10 seconds" }) }
)

/**
 * An MCP server with one tool.
 *
 *     npx node examples/hello/mcp.ts
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"

const Add = Tool.make("add", {
  description: "Add two numbers",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Struct({ sum: Schema.Finite })
})

const Tools = Toolkit.make(Add)
const Handlers = Tools.toLayer({ add: ({ a, b }) => Effect.succeed({ sum: a + b }) })

StdioRuntime.runMain(
  Mcp.run({ name: "adder", version: "1.0.0", registrations: McpServer.toolkit(Tools).pipe(Layer.provide(Handlers)) }),
  { layer: Mcp.layerStdio() }
)

/** The MCP server that is measured, on tmcp. */
import { ValibotJsonSchemaAdapter } from "@tmcp/adapter-valibot"
import { StdioTransport } from "@tmcp/transport-stdio"
import { McpServer } from "tmcp"
import * as v from "valibot"

const server = new McpServer(
  { name: "bench", version: "1.0.0", description: "Answers what it is asked" },
  { adapter: new ValibotJsonSchemaAdapter(), capabilities: { tools: { listChanged: true } } }
)
server.tool(
  { name: "echo", title: "Echo", description: "Return a text as it is", schema: v.object({ text: v.string() }) },
  ({ text }) => ({ content: [{ type: "text", text }] })
)
new StdioTransport(server).listen()

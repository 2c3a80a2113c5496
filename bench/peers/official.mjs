/** The MCP server that is measured, on the official SDK. */
import { McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { z } from "zod"

serveStdio(() => {
  const server = new McpServer({ name: "bench", version: "1.0.0" })
  server.registerTool(
    "echo",
    { title: "Echo", description: "Return a text as it is", inputSchema: z.object({ text: z.string() }) },
    ({ text }) => ({ content: [{ type: "text", text }] })
  )
  return server
})

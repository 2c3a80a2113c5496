/**
 * A server as it was with mcp-stdio-core, to compare with `server.ts` and `mcp.ts`. That package is not installed here.
 */
import {
  errorResponse,
  isPlainRecord,
  jsonRpcId,
  runJsonRpcStdioServer,
  successResponse
} from "@oh-my-opencode/mcp-stdio-core"

const shout = {
  name: "shout",
  description: "Say it louder",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
}

await runJsonRpcStdioServer({
  input: process.stdin,
  output: process.stdout,
  handlerOptions: { version: "1.0.0" },
  handler: async (message, { version }) => {
    if (!isPlainRecord(message)) return errorResponse(null, -32600, "Invalid request")
    const id = jsonRpcId(message.id)
    switch (message.method) {
      case "initialize":
        return successResponse(id, {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "shout", version }
        })
      case "notifications/initialized":
        return undefined
      case "tools/list":
        return successResponse(id, { tools: [shout] })
      case "tools/call": {
        const text = message.params?.arguments?.text
        return message.params?.name === "shout" && typeof text === "string"
          ? successResponse(id, { content: [{ type: "text", text: text.toUpperCase() }] })
          : errorResponse(id, -32602, "Invalid params")
      }
      default:
        return errorResponse(id, -32601, "Method not found")
    }
  },
  idleTimeoutMs: 5 * 60_000,
  onIdleTimeout: () => console.error("nobody calls"),
  parentWatchdog: { pollIntervalMs: 10_000 },
  log: (event, fields) => process.stderr.write(`${JSON.stringify({ event, ...fields })}\n`)
})

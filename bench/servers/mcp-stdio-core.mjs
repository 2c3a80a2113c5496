/**
 * An echo server on mcp-stdio-core, which comes from where the environment variable MCP_STDIO_CORE says: the path of an
 * ESM file that exports `runJsonRpcStdioServer`.
 */
import { pathToFileURL } from "node:url"

const { runJsonRpcStdioServer } = await import(pathToFileURL(process.env.MCP_STDIO_CORE ?? "").href)

await runJsonRpcStdioServer({
  input: process.stdin,
  output: process.stdout,
  handlerOptions: undefined,
  handler: async ({ id, method, params }) => ({
    jsonrpc: "2.0",
    id,
    result: method === "big" ? "x".repeat(params.bytes) : params
  })
})

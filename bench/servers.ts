/**
 * The servers that are measured.
 */
import { fileURLToPath } from "node:url"
import type { Server } from "./driver.ts"

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

// -----------------------------------------------------------------------------
// JSON-RPC
// -----------------------------------------------------------------------------

/** The probe of this library. */
export const probe = (...flags: ReadonlyArray<string>): Server => ({
  name: "effect-stdio",
  args: [path("../examples/probe/server.ts"), ...flags],
  framing: "line"
})

/** The same server, spoken to with Content-Length. */
export const withContentLength = (server: Server): Server => ({
  ...server,
  name: `${server.name}, Content-Length`,
  framing: "content-length"
})

export const bare: Server = { name: "bare loop", args: [path("servers/bare.mjs")], framing: "line" }

export const vscodeJsonrpc: Server = {
  name: "vscode-jsonrpc 10",
  args: [path("peers/vscode-jsonrpc.mjs")],
  framing: "content-length"
}

/** There only where the environment says where it is. */
export const mcpStdioCore: Server | undefined = process.env.MCP_STDIO_CORE === undefined ? undefined : {
  name: "mcp-stdio-core",
  args: [path("servers/mcp-stdio-core.mjs")],
  framing: "line"
}

// -----------------------------------------------------------------------------
// MCP
// -----------------------------------------------------------------------------

/** The MCP probe of this library. */
export const mcpProbe = (...flags: ReadonlyArray<string>): Server => ({
  name: "effect-stdio",
  args: [path("../examples/probe/mcp.ts"), ...flags],
  framing: "line"
})

/** The same tools on the layer that comes with Effect. */
export const effectMcp: Server = {
  name: "Effect's layerStdio",
  args: [path("servers/effect-mcp.ts")],
  framing: "line"
}

/** The same tools on Effect's McpServer alone; it does not speak MCP, but is told what to ask itself. */
export const mcpFloor: Server = {
  name: "McpServer alone, in process",
  args: [path("servers/mcp-floor.ts")],
  framing: "line"
}

export const officialMcp: Server = {
  name: "@modelcontextprotocol/server 2.4",
  args: [path("peers/official.mjs")],
  framing: "line"
}

export const tmcp: Server = { name: "tmcp 1.20", args: [path("peers/tmcp.mjs")], framing: "line" }

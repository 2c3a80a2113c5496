/**
 * A functional stdio runtime: JSON-RPC and MCP servers, and their peers, on Effect.
 *
 * @since 0.1.0
 */
export * as Agent from "./Agent.ts"
export * as Approval from "./Approval.ts"
export * as Cancellation from "./Cancellation.ts"
export * as Codex from "./Codex.ts"
export * as Framing from "./Framing.ts"
export * as Lifecycle from "./Lifecycle.ts"
export * as Mcp from "./Mcp.ts"
export * as McpConnection from "./McpConnection.ts"
export * as ParentProbe from "./ParentProbe.ts"
export * as Peer from "./Peer.ts"
export * as Process from "./Process.ts"
export * as Progress from "./Progress.ts"
export * as Recording from "./Recording.ts"
export * as Router from "./Router.ts"
export * as JsonRpc from "./Schema.ts"
export * as Server from "./Server.ts"
export * as StdioRuntime from "./StdioRuntime.ts"
export * as StdioTransport from "./StdioTransport.ts"
export * as Supervisor from "./Supervisor.ts"
export * as Tap from "./Tap.ts"
export * as TestKit from "./TestKit.ts"
export * as Transport from "./Transport.ts"
export * as Watchdog from "./Watchdog.ts"

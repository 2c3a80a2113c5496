/**
 * The tools of the MCP probe on Effect's own layer for standard input and output, without this library around it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import * as McpServer from "effect/ai/McpServer"
import * as Layer from "effect/Layer"
import { registrations } from "../../examples/probe/mcp-tools.ts"
import { protocols } from "../../src/Mcp.ts"

const server = McpServer.layerStdio({ name: "probe", version: "1.0.0", protocols, registrations })

NodeRuntime.runMain(Layer.launch(Layer.provide(server, NodeStdio.layer)), { disableErrorReporting: true })

/**
 * An MCP server that reads Excel workbooks below a folder.
 *
 *     node examples/excel/server.ts [folder]
 *
 * The folder is the working directory when none is given; no file outside of it can be read.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Layer from "effect/Layer"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import { ExcelTools } from "./tools.ts"
import { Workbooks } from "./Workbooks.ts"

const server = Mcp.run({
  name: "excel",
  version: "0.1.0",
  instructions: "Call list_sheets first; read_sheet returns a large sheet page by page.",
  registrations: ExcelTools
})

const workbooks = Workbooks.layer({ root: process.argv[2] ?? process.cwd() }).pipe(
  Layer.provide([NodeFileSystem.layer, NodePath.layer])
)

StdioRuntime.runMain(server, { layer: Layer.merge(Mcp.layerStdio(), workbooks) })

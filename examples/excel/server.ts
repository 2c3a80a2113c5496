/**
 * An MCP server that reads Excel workbooks below a folder and changes cells in them.
 *
 *     node examples/excel/server.ts [--events] [folder]
 *
 * The folder is the working directory when none is given; no file outside of it can be read or written. With `--events`
 * the server tells on standard error what happens to it, one JSON line an event.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Layer from "effect/Layer"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import { folderOf, parse } from "../shared/arguments.ts"
import { ExcelTools } from "./tools.ts"
import { Workbooks } from "./Workbooks.ts"

const { positionals, values: { events } } = parse("excel", {
  allowPositionals: true,
  options: { events: { type: "boolean", default: false } }
})

const server = Mcp.run({
  name: "excel",
  version: "0.1.0",
  instructions: "Call list_sheets first; read_sheet returns a large sheet page by page. " +
    "Before write_cells, read the cells that it will overwrite.",
  registrations: ExcelTools
})

const workbooks = Workbooks.layer({ root: folderOf("excel", positionals) }).pipe(
  Layer.provide([NodeFileSystem.layer, NodePath.layer])
)

StdioRuntime.runMain(server, { layer: Layer.merge(Mcp.layerStdio(), workbooks), events })

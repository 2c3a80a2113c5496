/**
 * An MCP server that finds code by its structure below a folder, and rewrites it.
 *
 *     node examples/ast-grep/server.ts [--events] [folder]
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
import { endWithProcess } from "./parsing.ts"
import { Search } from "./Search.ts"
import { AstGrepTools } from "./tools.ts"

const { positionals, values: { events } } = parse("ast-grep", {
  allowPositionals: true,
  options: { events: { type: "boolean", default: false } }
})

const server = Mcp.run({
  name: "ast-grep",
  version: "0.1.0",
  instructions: "Use search to find code by its structure; a long result comes page by page. " +
    "Before replace with dryRun false, make a dry run and look at its diff.",
  registrations: AstGrepTools
})

const search = Search.layer({ root: folderOf("ast-grep", positionals) }).pipe(
  Layer.provide([NodeFileSystem.layer, NodePath.layer])
)

endWithProcess()

StdioRuntime.runMain(server, { layer: Layer.merge(Mcp.layerStdio(), search), events })

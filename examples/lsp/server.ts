/**
 * An MCP server that answers questions about the code below a folder with the language servers of editors.
 *
 *     node examples/lsp/server.ts [--events] [--parent-poll 10s] [--config file.json] [folder]
 *
 * The folder is the working directory when none is given; no file outside of it is read or written. `--config` names a
 * file with further language servers. With `--events` the server tells on standard error what happens to it, one JSON
 * line an event, and `--parent-poll` says how often it looks whether its host is still there.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import { folderOf, millisOf, parse } from "../shared/arguments.ts"
import * as Code from "./Code.ts"
import * as Config from "./config.ts"
import { LanguageServers } from "./LanguageServers.ts"
import { LspTools } from "./tools.ts"

const { positionals, values: { config, events, "parent-poll": poll } } = parse("lsp", {
  allowPositionals: true,
  options: {
    events: { type: "boolean", default: false },
    "parent-poll": { type: "string", default: "30s" },
    config: { type: "string" }
  }
})
const folder = folderOf("lsp", positionals)
const parentPoll = millisOf("lsp", "parent-poll", poll)

const server = Mcp.run({
  name: "lsp",
  version: "0.1.0",
  instructions: "Lines and columns are counted from 1. To point at a name, give its line and the name as symbol. " +
    "Files are read as they are on the disk now: there is nothing to save or to open first.",
  registrations: LspTools,
  drainTimeout: "5 seconds"
})

const readConfig = (file: string | undefined) => file === undefined ? Effect.succeed({}) : Config.read(file)

const services = Layer.unwrap(Effect.map(
  readConfig(config),
  (config: Config.Config) =>
    Code.Code.layer().pipe(Layer.provideMerge(LanguageServers.layer({
      root: folder,
      languages: Config.languagesOf(config),
      ...Config.times(config)
    })))
)).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))

// around the server and not beside its connection: what the language servers take to end belongs to its own end
StdioRuntime.runMain(Effect.provide(server, services), { layer: Mcp.layerStdio({ parentPoll }), events })

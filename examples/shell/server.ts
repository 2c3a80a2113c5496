/**
 * An MCP server that runs commands with bash, Git Bash on Windows.
 *
 *     node examples/shell/server.ts [--events] [--parent-poll 200ms] [folder]
 *
 * Commands start in the folder, which is the working directory when none is given, or in a folder below it; what they do
 * there is up to them. With `--events` the server tells on standard error what happens to it, one JSON line an event.
 * `--parent-poll` sets how often it looks whether its host is still there.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Layer from "effect/Layer"
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import { folderOf, millisOf, parse } from "../shared/arguments.ts"
import { Shell } from "./Shell.ts"
import { ShellTools } from "./tools.ts"

const { positionals, values: { events, "parent-poll": poll } } = parse("shell", {
  allowPositionals: true,
  options: { events: { type: "boolean", default: false }, "parent-poll": { type: "string", default: "30s" } }
})

const server = Mcp.run({
  name: "shell",
  version: "0.1.0",
  instructions: "Runs commands with bash in one folder. Look at exitCode and timedOut of each result. " +
    "When no command runs, call diagnose.",
  registrations: ShellTools,
  // nobody reads the result of a command that takes longer, and it must not outlive its host
  drainTimeout: "1 second"
})

const shell = Shell.layer({ root: folderOf("shell", positionals) }).pipe(
  Layer.provide([NodeFileSystem.layer, NodePath.layer])
)

StdioRuntime.runMain(server, {
  layer: Layer.merge(Mcp.layerStdio({ parentPoll: millisOf("shell", "parent-poll", poll) }), shell),
  events
})

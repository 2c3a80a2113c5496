/**
 * An MCP server to test clients against, and to watch: its tools are in `mcp-tools.ts`.
 *
 *     node examples/probe/mcp.ts --drain 2s --events
 *
 * Takes the flags of the other probe but `--cancel` and `--batch`, which MCP decides. As for any MCP server the idle
 * watch is off unless asked for.
 */
import * as Mcp from "../../src/Mcp.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import * as Flags from "./flags.ts"
import { registrations } from "./mcp-tools.ts"

const flags = Flags.read()
const { concurrency, drainTimeout } = Flags.serverOptions(flags)

StdioRuntime.runMain(
  Mcp.run({
    name: "probe",
    version: "1.0.0",
    instructions: "Each tool shows one behaviour of a server.",
    registrations,
    concurrency,
    drainTimeout
  }),
  { layer: Flags.layer({ idle: "0s", ...flags }), events: flags.events }
)

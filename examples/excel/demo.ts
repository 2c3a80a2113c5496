/**
 * Starts the Excel MCP server as a child process, reads a sheet of the bundled workbook through it, shows it as a table,
 * and tells how and why the server ended.
 *
 *     npm run demo
 *
 * The client is this library too: a Peer over the child's standard input and output.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ChildProcess from "effect/process/ChildProcess"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import * as Peer from "../../src/Peer.ts"
import * as Transport from "../../src/Transport.ts"
import { Page } from "./pages.ts"
import { table } from "./table.ts"

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url))

const ToolList = Schema.Struct({ tools: Schema.Array(Schema.Struct({ name: Schema.String, title: Schema.String })) })
const PageResult = Schema.Struct({ structuredContent: Page })
const Stopped = Schema.fromJsonString(
  Schema.Struct({ _tag: Schema.Literal("Stopped"), reason: Schema.Struct({ _tag: Schema.String }) })
)

const program = Effect.gen(function*() {
  const child = yield* ChildProcess.make(process.execPath, [path("server.ts"), "--events", path(".")], {
    extendEnv: true,
    forceKillAfter: "2 seconds"
  })
  const stopReason = yield* child.stderr.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.runFold(() => "unknown", (reason, line) => {
      const event = Schema.decodeUnknownResult(Stopped)(line)
      return event._tag === "Success" ? event.success.reason._tag : reason
    }),
    Effect.forkScoped
  )

  const transport = yield* Transport.make({ input: child.stdout, output: child.stdin }, { framing: "line" })
  const server = yield* Peer.make(transport, { onBadInput: "count" })

  yield* server.call("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "demo", version: "0.1.0" }
  })
  yield* server.notify("notifications/initialized")

  const { tools } = yield* Effect.flatMap(server.call("tools/list"), Schema.decodeUnknownEffect(ToolList))
  yield* Console.log("The tools of the server:\n")
  for (const tool of tools) yield* Console.log(`  ${tool.name}  ${tool.title}`)

  const { structuredContent: page } = yield* Effect.flatMap(
    server.call("tools/call", { name: "read_sheet", arguments: { file: "budget.xlsx", sheet: "Budget" } }),
    Schema.decodeUnknownEffect(PageResult)
  )
  yield* Console.log(`\nread_sheet: ${page.sheet} ${page.range}\n`)
  yield* Console.log(table(page))

  yield* transport.end
  const exitCode = yield* child.exitCode
  const reason = yield* Fiber.join(stopReason)
  yield* Console.log(`\nThe server ended because of ${reason}, with exit code ${exitCode}.`)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

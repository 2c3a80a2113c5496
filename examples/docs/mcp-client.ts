/**
 * An MCP client: starts a server, which is started again when it ends, follows a tool, hears its logs, and answers what it
 * asks.
 *
 *     npx node examples/docs/mcp-client.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import * as McpConnection from "../../src/McpConnection.ts"
import * as Process from "../../src/Process.ts"

const script = fileURLToPath(new URL("mcp-tool.ts", import.meta.url))
const server = McpConnection.supervised(Process.make(process.execPath, [script]), { maxRestarts: 3 })

const hooks: McpConnection.Hooks = {
  elicit: ({ message }) => Effect.as(Console.log(`the server asks: ${message}`), { action: "decline" }),
  listRoots: Effect.succeed([{ uri: "file:///tmp", name: "work" }])
}

const program = Effect.gen(function*() {
  const { client, connection } = yield* McpConnection.connect(server, {
    name: "docs",
    version: "1.0.0",
    hooks,
    logLevel: "info"
  })
  const tools = yield* client.listTools()
  yield* Console.log(
    `${client.serverInfo?.name} speaks ${client.protocolVersion}: ${tools.map(({ name }) => name).join(", ")}`
  )

  const logs = yield* connection.subscribe({ methods: ["notifications/message"] })
  const events = connection.callTool({ name: "count_words", arguments: { texts: ["one two", "three"] } })
  yield* Stream.runForEach(events, (event) =>
    event._tag === "Progress"
      ? Console.log(`${event.progress} of ${event.total}`)
      : Console.log(JSON.stringify(event.result.structuredContent)))
  yield* Stream.runForEach(Stream.take(logs, 2), ({ params }) => Console.log(`log: ${JSON.stringify(params)}`))
})

NodeRuntime.runMain(Effect.scoped(program))

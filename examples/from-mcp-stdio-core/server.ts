/**
 * What a handler with one `switch` over the methods becomes here: a router with a handler a method.
 *
 *     echo '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | npx node examples/from-mcp-stdio-core/server.ts
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Router from "../../src/Router.ts"
import * as Server from "../../src/Server.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import * as StdioTransport from "../../src/StdioTransport.ts"
import * as Watchdog from "../../src/Watchdog.ts"

const shout = {
  name: "shout",
  description: "Say it louder",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
}
const Call = Schema.Struct({ name: Schema.Literal("shout"), arguments: Schema.Struct({ text: Schema.String }) })

class About extends Context.Service<About, { readonly version: string }>()("shout/About") {}

const router = Router.empty.pipe(
  Router.rawRequest("initialize", () =>
    Effect.map(About, ({ version }) => ({
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "shout", version }
    }))),
  Router.rawRequest("tools/list", () => Effect.succeed({ tools: [shout] })),
  Router.request(
    "tools/call",
    { params: Call, result: Schema.Unknown },
    ({ arguments: { text } }) => Effect.succeed({ content: [{ type: "text", text: text.toUpperCase() }] })
  )
)

const program = Server.run({ router, concurrency: 1 }).pipe(
  Effect.tap((reason) => reason._tag === "IdleTimeout" ? Effect.logInfo("nobody calls") : Effect.void)
)

StdioRuntime.runMain(program, {
  layer: Layer.mergeAll(
    StdioTransport.layer(),
    Watchdog.layer({ idle: "5 minutes", parentPoll: "10 seconds" }),
    Layer.succeed(About, { version: "1.0.0" })
  ),
  events: true
})

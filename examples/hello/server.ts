/**
 * A JSON-RPC server with one method.
 *
 *     echo '{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"Ada"}}' | npx node examples/hello/server.ts
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Router from "../../src/Router.ts"
import * as Server from "../../src/Server.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import * as StdioTransport from "../../src/StdioTransport.ts"
import * as Watchdog from "../../src/Watchdog.ts"

const Greet = { params: Schema.Struct({ name: Schema.String }), result: Schema.String }

const router = Router.empty.pipe(
  Router.request("greet", Greet, ({ name }) => Effect.succeed(`Hello, ${name}!`))
)

StdioRuntime.runMain(Server.run({ router }), {
  layer: Layer.merge(StdioTransport.layer(), Watchdog.layer({ idle: "10 minutes" }))
})

/**
 * A server with a typed method that may fail, a notification, and a method that asks its caller something.
 *
 *     echo '{"jsonrpc":"2.0","id":1,"method":"divide","params":{"a":1,"b":4}}' | npx node examples/docs/serving.ts
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Peer from "../../src/Peer.ts"
import * as Router from "../../src/Router.ts"
import { JsonRpcError } from "../../src/Schema.ts"
import * as Server from "../../src/Server.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import * as StdioTransport from "../../src/StdioTransport.ts"
import * as Watchdog from "../../src/Watchdog.ts"

const router = Router.empty.pipe(
  Router.request("divide", {
    params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    result: Schema.Finite
  }, ({ a, b }) =>
    b === 0
      ? Effect.fail(new JsonRpcError({ code: 4000, message: "division by zero", data: { a } }))
      : Effect.succeed(a / b)),
  Router.notification("log", Schema.Struct({ text: Schema.String }), ({ text }) => Effect.log(text)),
  Router.rawRequest("whoami", () =>
    Effect.gen(function*() {
      const caller = yield* Peer.Caller
      return yield* Effect.orDie(caller.call("client/name"))
    }))
)

StdioRuntime.runMain(Server.run({ router, concurrency: 8, handlerTimeout: "1 minute" }), {
  layer: Layer.merge(StdioTransport.layer(), Watchdog.layer())
})

/**
 * Starts a server as a child process, calls it in every way, and answers what it asks back.
 *
 *     npx node examples/docs/calling.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { fileURLToPath } from "node:url"
import * as Peer from "../../src/Peer.ts"
import * as Process from "../../src/Process.ts"
import * as Router from "../../src/Router.ts"

const Divide = { params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }), result: Schema.Finite }

const router = Router.rawRequest(Router.empty, "client/name", () => Effect.succeed("Ada"))

const program = Effect.gen(function*() {
  const script = fileURLToPath(new URL("serving.ts", import.meta.url))
  const child = yield* Process.make(process.execPath, [script])
  const server = yield* Peer.make(child.transport, { router, onBadInput: "count", callTimeout: "10 seconds" })

  yield* server.notify("log", { text: "the client is here" })
  yield* Console.log(yield* Peer.request(server, "divide", Divide, { a: 1, b: 4 }))
  yield* Peer.request(server, "divide", Divide, { a: 1, b: 0 }).pipe(
    Effect.catchTag("JsonRpcError", ({ code, message }) => Console.log(`refused: ${code} ${message}`)),
    Effect.catchReason("PeerError", "Timeout", () => Console.log("no answer within 10 seconds"))
  )
  yield* Console.log(yield* server.call("whoami", undefined, { timeout: "1 minute" }))

  yield* child.end // closes the server's input, and the server leaves
  yield* Console.log(`exit code ${(yield* child.exited).exitCode}`)
})

NodeRuntime.runMain(Effect.scoped(program))

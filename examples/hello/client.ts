/**
 * Starts the hello server as a child process and calls it.
 *
 *     npx node examples/hello/client.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { fileURLToPath } from "node:url"
import * as Peer from "../../src/Peer.ts"
import * as Process from "../../src/Process.ts"

const script = fileURLToPath(new URL("server.ts", import.meta.url))
const Greet = { params: Schema.Struct({ name: Schema.String }), result: Schema.String }

const program = Effect.gen(function*() {
  const child = yield* Process.make(process.execPath, [script])
  const server = yield* Peer.make(child.transport, { onBadInput: "count" })

  yield* Console.log(yield* Peer.request(server, "greet", Greet, { name: "Ada" }))
  yield* child.end // closes the server's input, and the server leaves
  yield* Console.log(`exit code ${(yield* child.exited).exitCode}`)
})

NodeRuntime.runMain(Effect.scoped(program))

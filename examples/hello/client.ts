/**
 * Starts the hello server as a child process and calls it.
 *
 *     npx node examples/hello/client.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { fileURLToPath } from "node:url"
import * as Peer from "../../src/Peer.ts"
import * as Transport from "../../src/Transport.ts"

const program = Effect.gen(function*() {
  const script = fileURLToPath(new URL("server.ts", import.meta.url))
  const child = yield* ChildProcess.make(process.execPath, [script], { stderr: "inherit", forceKillAfter: "2 seconds" })
  const transport = yield* Transport.make({ input: child.stdout, output: child.stdin }, { framing: "line" })
  const server = yield* Peer.make(transport, { onBadInput: "count" })

  yield* Console.log(yield* server.call("greet", { name: "Ada" }))
  yield* transport.end // closes the server's input, and the server leaves
  yield* Console.log(`exit code ${yield* child.exitCode}`)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

/**
 * Starts a server as a child process, calls it in every way, and answers what it asks back.
 *
 *     npx node examples/docs/calling.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import * as Schema from "effect/Schema"
import { fileURLToPath } from "node:url"
import * as Peer from "../../src/Peer.ts"
import * as Router from "../../src/Router.ts"
import * as Transport from "../../src/Transport.ts"

const router = Router.rawRequest(Router.empty, "client/name", () => Effect.succeed("Ada"))

const program = Effect.gen(function*() {
  const script = fileURLToPath(new URL("serving.ts", import.meta.url))
  const child = yield* ChildProcess.make(process.execPath, [script], { stderr: "inherit", forceKillAfter: "2 seconds" })
  const transport = yield* Transport.make({ input: child.stdout, output: child.stdin }, { framing: "line" })
  const server = yield* Peer.make(transport, { router, onBadInput: "count", callTimeout: "10 seconds" })

  const divide = (a: number, b: number) =>
    Effect.flatMap(server.call("divide", { a, b }), Schema.decodeUnknownEffect(Schema.Finite))

  yield* server.notify("log", { text: "the client is here" })
  yield* Console.log(yield* divide(1, 4))
  yield* divide(1, 0).pipe(
    Effect.catchTag("JsonRpcError", ({ code, message }) => Console.log(`refused: ${code} ${message}`)),
    Effect.catchReason("PeerError", "Timeout", () => Console.log("no answer within 10 seconds"))
  )
  yield* Console.log(yield* server.call("whoami", undefined, { timeout: "1 minute" }))

  yield* transport.end // closes the server's input, and the server leaves
  yield* Console.log(`exit code ${yield* child.exitCode}`)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

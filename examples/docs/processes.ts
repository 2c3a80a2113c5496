/**
 * Starts a server as a child process, calls it, and sees how it ends: because it is asked to, and in a crash.
 *
 *     npx node examples/docs/processes.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"
import * as Peer from "../../src/Peer.ts"
import * as Process from "../../src/Process.ts"

const script = fileURLToPath(new URL("serving.ts", import.meta.url))

const start = Effect.gen(function*() {
  const child = yield* Process.make(process.execPath, [script], { env: { LOG_LEVEL: "debug" } })
  const server = yield* Peer.make(child.transport, { onBadInput: "count" })
  return { child, server }
})

const program = Effect.gen(function*() {
  const { child, server } = yield* start
  yield* Console.log(yield* server.call("divide", { a: 1, b: 4 }))
  yield* Console.log(JSON.stringify(yield* child.end))

  const other = yield* start
  process.kill(other.child.pid, "SIGKILL")
  yield* other.server.call("divide", { a: 1, b: 4 }).pipe(
    Effect.catchReason("PeerError", "Closed", ({ reason }) => Console.log(reason.message))
  )
})

NodeRuntime.runMain(Effect.scoped(program))

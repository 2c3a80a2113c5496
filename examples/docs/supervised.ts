/**
 * Keeps a server alive: initializes it with each start, and repeats what is safe to repeat when it crashes.
 *
 *     npx node examples/docs/supervised.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { fileURLToPath } from "node:url"
import * as Process from "../../src/Process.ts"
import * as Supervisor from "../../src/Supervisor.ts"

const script = fileURLToPath(new URL("serving.ts", import.meta.url))

const program = Effect.gen(function*() {
  const server = yield* Supervisor.make(Process.make(process.execPath, [script]), {
    handshake: (peer, generation) => peer.notify("log", { text: `generation ${generation}` }),
    healthCheck: { call: (peer) => peer.call("divide", { a: 1, b: 1 }), every: "30 seconds" }
  })
  const divide = server.call("divide", { a: 1, b: 4 }).pipe(
    // dividing twice does no harm
    Effect.retry({ times: 3, while: (error) => error._tag === "SupervisorError" })
  )

  yield* Console.log(yield* divide)
  const health = yield* SubscriptionRef.get(server.health)
  if (health._tag === "Up") process.kill(health.pid, "SIGKILL")
  yield* Console.log(yield* divide)
  yield* Console.log(`generation ${yield* server.generation}`)
})

NodeRuntime.runMain(Effect.scoped(program))

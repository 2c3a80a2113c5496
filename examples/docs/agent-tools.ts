/**
 * Lends an agent a tool of the program itself.
 *
 *     npx node examples/docs/agent-tools.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Codex from "../../src/Codex.ts"

const Orders = Toolkit.make(Tool.make("order", {
  description: "Looks up an order by its number",
  parameters: Schema.Struct({ number: Schema.Int }),
  success: Schema.Struct({ status: Schema.String }),
  failure: Schema.String,
  failureMode: "return"
}))

const handlers = Orders.toLayer({
  order: ({ number }) => number === 7 ? Effect.succeed({ status: "sent" }) : Effect.fail(`there is no order ${number}`)
})

const program = Effect.gen(function*() {
  const codex = yield* Codex.make({ tools: yield* Codex.fromToolkit(Orders) })
  const thread = yield* codex.thread()
  const { text } = yield* thread.send("Where is order 7?")
  yield* Console.log(text)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(handlers)))

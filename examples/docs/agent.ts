/**
 * Gives an agent something to do, says no to one kind of question, and shows what happens.
 *
 *     npx node examples/docs/agent.ts
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/Agent.ts"
import * as Codex from "../../src/Codex.ts"

const show = (event: Agent.AgentEvent) => {
  switch (event._tag) {
    case "ToolStart":
      return Console.log(`${event.kind}: ${event.name}`)
    case "ToolEnd":
      return Console.log(event.status)
    case "TextEnd":
      return Console.log(event.text)
    case "TurnEnd":
      return Console.log(`the turn is ${event.status}`)
    default:
      return Effect.void
  }
}

const program = Effect.gen(function*() {
  const agent = yield* Agent.Agent
  yield* Stream.runForEach(agent.stream("Tidy up this folder"), show)
  const { status, text } = yield* agent.send("What was left as it is, and why?")
  yield* Console.log(`${status}: ${text}`)
})

const codex = Codex.layerAgent({
  approvalPolicy: "untrusted",
  sandbox: "workspace-write",
  approvals: {
    command: ({ command }) => Effect.as(Console.log(`not allowed: ${command}`), "decline" as const)
  }
})

NodeRuntime.runMain(Effect.provide(program, codex))

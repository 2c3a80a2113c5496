/**
 * Another agent protocol over the same pipes: the Agent Client Protocol, as codex-acp speaks it, with the peer as it is.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import type * as Cancellation from "../../../src/Cancellation.ts"
import * as Peer from "../../../src/Peer.ts"
import * as Process from "../../../src/Process.ts"
import { isId, JsonRpcError } from "../../../src/Schema.ts"
import * as Child from "../../utils/child.ts"
import * as Os from "../../utils/os.ts"
import * as CodexHome from "../codexHome.ts"
import * as FakeModel from "../fakeModel.ts"
import { at, text } from "../raw.ts"
import * as Scenarios from "../scenarios.ts"

const PROGRAM = fileURLToPath(new URL("node_modules/@agentclientprotocol/codex-acp/dist/index.js", import.meta.url))

/** How the protocol cancels a request: it is answered all the same. */
const acp: Cancellation.Cancellation = {
  method: "$/cancel_request",
  requestId: (params) => {
    const id = at(params, "requestId")
    return isId(id) ? id : undefined
  },
  params: (requestId) => ({ requestId }),
  answered: true,
  protectedMethods: new Set(["initialize"])
}

const open = Effect.fnUntraced(function*(scenario: FakeModel.Scenario) {
  const model = yield* FakeModel.make(scenario)
  const folder = yield* Child.temporaryFolder
  const home = yield* CodexHome.make({
    modelUrl: model.url,
    config: "features.plugins = false\nfeatures.apps = false"
  })
  const child = yield* Process.make(process.execPath, [PROGRAM], {
    cwd: folder,
    env: { ...Child.environment, CODEX_HOME: home }
  })
  const peer = yield* Peer.make(child.transport, {
    profile: "strict",
    cancellation: acp,
    onBadInput: "count",
    callTimeout: "30 seconds"
  })
  const updates = yield* peer.subscribe()
  const initialized = yield* peer.call("initialize", {
    protocolVersion: 1,
    clientCapabilities: {},
    clientInfo: { name: "effect-stdio-tests", version: "0.0.0" }
  })
  return { child, folder, home, initialized, model, peer, updates }
})

const prompt = (sessionId: string, words: string) => ({ sessionId, prompt: [{ type: "text", text: words }] })

describe("codex-acp", () => {
  it.live("answers initialize, and refuses what it does not know", () =>
    Effect.gen(function*() {
      const { initialized, peer } = yield* open(Scenarios.hello)
      assert.strictEqual(at(initialized, "protocolVersion"), 1)
      assert.strictEqual(at(initialized, "agentInfo", "name"), "@agentclientprotocol/codex-acp")
      const error = yield* Effect.flip(peer.call("no/such/method", {}))
      assert.instanceOf(error, JsonRpcError)
      assert.strictEqual(error._tag === "JsonRpcError" ? error.code : undefined, -32_601)
      assert.deepInclude(yield* peer.stats, { badInput: 0, strayResponses: 0 })
    }))

  it.live("says in pieces what the model says, before it answers the prompt", () =>
    Effect.gen(function*() {
      const { folder, peer, updates } = yield* open(Scenarios.hello)
      const session = yield* peer.call("session/new", { cwd: folder, mcpServers: [] })
      const sessionId = text(at(session, "sessionId"))
      const heard = yield* updates.pipe(
        Stream.map(({ params }) => at(params, "update")),
        Stream.filter((update) => at(update, "sessionUpdate") === "agent_message_chunk"),
        Stream.map((update) => text(at(update, "content", "text"))),
        Stream.takeUntil((chunk) => chunk === "🐢"),
        Stream.runCollect,
        Effect.forkChild
      )
      const answer = yield* peer.call("session/prompt", prompt(sessionId, "Hi"), { timeout: 0 })
      assert.strictEqual(at(answer, "stopReason"), "end_turn")
      assert.include((yield* Fiber.join(heard)).join(""), "Hello, größe – 🐢")
    }))

  it.live("ends a prompt that is cancelled, and answers it", () =>
    Effect.gen(function*() {
      const aborted = yield* Deferred.make<void>()
      const { folder, model, peer } = yield* open(Scenarios.silent(aborted))
      const session = yield* peer.call("session/new", { cwd: folder, mcpServers: [] })
      const sessionId = text(at(session, "sessionId"))
      const answer = yield* Effect.forkChild(peer.call("session/prompt", prompt(sessionId, "Hi"), { timeout: 0 }))
      yield* model.request(1)
      yield* peer.notify("session/cancel", { sessionId })
      assert.strictEqual(at(yield* Fiber.join(answer), "stopReason"), "cancelled")
      yield* Deferred.await(aborted)
    }))

  it.live("is ended with the codex that it has started, although it stays when its input ends", () =>
    Effect.gen(function*() {
      const { child, home } = yield* open(Scenarios.hello)
      const alive = () => Os.withEnvironment(`CODEX_HOME=${home}`).filter((pid) => !Os.isGone(pid))
      if (Os.isLinux) assert.isAtLeast(alive().length, 2)
      yield* child.end
      if (Os.isLinux) yield* Os.eventually("nothing is left of it", () => alive().length === 0 || undefined)
    }))
})

Child.leavesNothingBehind()

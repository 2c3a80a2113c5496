/**
 * The real Codex behind the `Agent` interface, before a fake model.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Agent from "../../src/Agent.ts"
import * as Codex from "../../src/Codex.ts"
import * as Child from "../utils/child.ts"
import * as CodexHome from "./codexHome.ts"
import * as FakeModel from "./fakeModel.ts"

export type Events = ReadonlyArray<Agent.AgentEvent>

/** A codex of its own before a model, in an empty folder. */
export const open = Effect.fnUntraced(function*(
  scenario: FakeModel.Scenario,
  options?: Partial<Codex.Options> & { readonly home?: Partial<CodexHome.Options> }
) {
  const { home, ...rest } = options ?? {}
  const model = yield* FakeModel.make(scenario)
  const folder = yield* Child.temporaryFolder
  const env = {
    ...Child.environment,
    // codex runs commands in login shells: those of the one who tests, with their profile, are left alone
    HOME: folder,
    CODEX_HOME: yield* CodexHome.make({ modelUrl: model.url, ...home })
  }
  const codex = yield* Codex.make({
    command: CodexHome.binary(),
    args: [...CodexHome.args.slice(1), ...rest.args ?? []],
    env,
    cwd: folder,
    ...rest
  })
  return { codex, env, folder, model }
})

/** All events of a turn; warnings, which depend on the machine, left out. */
export const run = (agent: Agent.Agent["Service"], input: Agent.Input): Effect.Effect<Events, Agent.AgentError> =>
  Effect.map(Stream.runCollect(agent.stream(input)), withoutNoise)

export const withoutNoise = (events: Events): Events =>
  events.filter(({ _tag }) => _tag !== "Warning" && _tag !== "Unknown")

/** The tags of events, each run of the same once. */
export const tags = (events: Events): ReadonlyArray<string> =>
  events.map(({ _tag }) => _tag).filter((tag, index, all) => tag !== all[index - 1])

export const only = <T extends Agent.AgentEvent["_tag"]>(events: Events, tag: T) =>
  events.filter((event): event is Extract<Agent.AgentEvent, { readonly _tag: T }> => event._tag === tag)

/** The text of the messages, as a consumer has it that drops what was reset. */
export const textOf = (events: Events): string => {
  const texts = new Map<string, string>()
  for (const event of events) {
    if (event._tag === "Reset") texts.set(event.itemId, "")
    if (event._tag === "TextDelta") texts.set(event.itemId, (texts.get(event.itemId) ?? "") + event.text)
  }
  return [...texts.values()].join("")
}

/** Puts a conversation into plan mode, for which the adapter has no option: a request of its own, to be found experimental. */
export const planMode = Effect.fnUntraced(function*(codex: Codex.Codex["Service"], thread: Codex.Thread) {
  const peer = yield* codex.peer
  yield* peer.call("thread/settings/update", {
    threadId: yield* thread.id,
    collaborationMode: {
      mode: "plan",
      settings: { model: "fake-model", reasoning_effort: null, developer_instructions: null }
    }
  })
})

/** The last event, which must be the end, and the only one. */
export const endOf = (events: Events): Agent.TurnEnd => {
  const ends = only(events, "TurnEnd")
  assert.strictEqual(ends.length, 1)
  assert.strictEqual(events.at(-1), ends[0])
  return ends[0] ?? assert.fail("no end")
}

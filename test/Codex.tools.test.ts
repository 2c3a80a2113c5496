/**
 * Tools of ours that codex calls over the connection that is there already.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Codex from "effect-stdio/Codex"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Peer from "./utils/peer.ts"
import * as Script from "./utils/scriptedCodex.ts"

const { notification, turnCompleted } = Script

class NoSuchCity extends Schema.TaggedError<NoSuchCity>()("NoSuchCity", { city: Schema.String }) {
  override get message() {
    return `there is no city ${this.city}`
  }
}

const Weather = Tool.make("weather", {
  description: "The weather in a city",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.Struct({ degrees: Schema.Finite }),
  failure: NoSuchCity
})
const Silent = Tool.make("silent")
const Refusing = Tool.make("refusing", { description: "Says no", failure: Schema.Struct({ why: Schema.String }) })
const Plain = Tool.make("plain", { description: "Says no in a word", failure: Schema.String })
const Telling = Tool.make("telling", {
  description: "Returns its failure",
  success: Schema.String,
  failure: NoSuchCity,
  failureMode: "return"
})
const Broken = Tool.make("broken", { description: "Has a bug", success: Schema.String })
const Interrupting = Tool.make("interrupting", { description: "Interrupts itself" })
const Waiting = Tool.make("waiting", { description: "Never returns" })
const Asking = Tool.make("asking", { description: "Asks codex", success: Schema.Unknown })

const toolkit = Toolkit.make(Weather, Silent, Refusing, Plain, Telling, Broken, Interrupting, Waiting, Asking)

/** A turn of a codex that has these tools. */
const turn = Effect.gen(function*() {
  const interrupted = yield* Deferred.make<void>()
  const tools = yield* Effect.provide(
    Codex.fromToolkit(toolkit),
    toolkit.toLayer({
      weather: ({ city }) => city === "Oslo" ? Effect.succeed({ degrees: 21 }) : Effect.fail(new NoSuchCity({ city })),
      silent: () => Effect.void,
      refusing: () => Effect.fail({ why: "it is late" }),
      plain: () => Effect.fail("it is late"),
      telling: () => Effect.fail(new NoSuchCity({ city: "Atlantis" })),
      broken: () => Effect.die(new Error("the secret of the house")),
      interrupting: () => Effect.interrupt,
      waiting: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)),
      asking: () =>
        Effect.flatMap(script.codex.peer, (peer) => peer.call("thread/read", { threadId: "thread-1" })).pipe(
          Effect.orDie
        )
    })
  )
  const script: Effect.Success<ReturnType<typeof Script.make>> = yield* Script.make({
    tools,
    answers: { "thread/read": (request, { reply }) => reply(request, { preview: "Hi" }) }
  })
  const thread = yield* script.open()
  return { ...script, interrupted, thread, turn: yield* Script.follow(thread) }
})

const call = (tool: string, input: unknown, id: string | number = 0) => ({
  ...notification("item/tool/call", { callId: `call-${id}`, tool, namespace: null, arguments: input }),
  id
})

const outcome = (success: boolean, text: string) => ({ contentItems: [{ type: "inputText", text }], success })

describe("tools of ours", () => {
  it.effect("are told to codex at the start of a conversation, on a connection that allows them", () =>
    Effect.gen(function*() {
      const { last, say } = yield* turn
      const [{ capabilities } = {}] = last().requests("initialize")
      assert.deepInclude(capabilities, { experimentalApi: true })
      const [{ dynamicTools } = {}] = last().requests("thread/start")
      if (!Array.isArray(dynamicTools)) return assert.fail("no tools")
      const specs: ReadonlyArray<Record<string, unknown>> = dynamicTools
      assert.deepStrictEqual(specs.map(({ name }) => name), Object.keys(toolkit.tools))
      const [weather, silent] = specs
      assert.deepInclude(weather, { type: "function", name: "weather", description: "The weather in a city" })
      assert.deepInclude(weather?.["inputSchema"], { type: "object", required: ["city"] })
      // without a description and without parameters
      assert.deepInclude(silent, { type: "function", name: "silent", description: "" })
      assert.deepInclude(silent?.["inputSchema"], { type: "object" })
      yield* say(turnCompleted())
    }))

  for (
    const [name, tool, input, success, text] of [
      ["a value", "weather", { city: "Oslo" }, true, "{\"degrees\":21}"],
      ["nothing", "silent", {}, true, ""],
      ["a failure that it declares", "weather", { city: "Atlantis" }, false, "there is no city Atlantis"],
      ["a failure that is no error", "refusing", {}, false, "{\"why\":\"it is late\"}"],
      ["a failure that is a word", "plain", {}, false, "it is late"],
      ["the like for a bug, which is not for the model", "broken", {}, false, "the tool failed"],
      ["the like for one that interrupts itself", "interrupting", {}, false, "the tool failed"],
      ["that there is none of the name", "nonsense", {}, false, "there is no tool nonsense"],
      [
        "that there is none with the name of a member of all objects",
        "constructor",
        {},
        false,
        "there is no tool constructor"
      ]
    ] as const
  ) {
    it.effect(`tell the model ${name}`, () =>
      Effect.gen(function*() {
        const { last, say, turn: followed } = yield* turn
        yield* say(call(tool, input))
        assert.deepStrictEqual(last().answers(0), [{ id: 0, result: outcome(success, text) }])
        yield* say(turnCompleted())
        assert.strictEqual(Script.endOf(followed).status, "completed")
      }).pipe(Effect.provide(Peer.makeLog().layer)))
  }

  it.effect("tell the model of a failure that they return", () =>
    Effect.gen(function*() {
      const { last, say } = yield* turn
      yield* say(call("telling", {}))
      const [{ result } = {}] = last().answers(0)
      assert.deepInclude(result, { success: false })
      assert.include(JSON.stringify(result), "Atlantis")
      yield* say(turnCompleted())
    }))

  it.effect("tell the model what was wrong with its input", () =>
    Effect.gen(function*() {
      const { last, say } = yield* turn
      yield* say(call("weather", { town: "Oslo" }), call("weather", null, 1))
      for (const id of [0, 1]) {
        const [{ result } = {}] = last().answers(id)
        assert.deepInclude(result, { success: false })
        assert.notInclude(JSON.stringify(result), "the tool failed")
      }
      assert.include(JSON.stringify(last().answers(0)), "city")
      yield* say(turnCompleted())
    }))

  it.effect("have bugs for the log alone", () =>
    Effect.gen(function*() {
      const log = Peer.makeLog()
      yield* Effect.gen(function*() {
        const { last, say } = yield* turn
        yield* say(call("broken", {}))
        assert.notInclude(JSON.stringify(last().received), "secret")
        yield* say(turnCompleted())
      }).pipe(Effect.provide(log.layer))
      assert.include(log.lines.join("\n"), "the secret of the house")
    }))

  it.effect("may ask codex something before they answer", () =>
    Effect.gen(function*() {
      const { last, say } = yield* turn
      yield* say(call("asking", {}))
      assert.deepStrictEqual(last().requests("thread/read"), [{ threadId: "thread-1" }])
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: outcome(true, "{\"preview\":\"Hi\"}") }])
      yield* say(turnCompleted())
    }))

  it.effect("do not hold up each other, nor what codex says meanwhile", () =>
    Effect.gen(function*() {
      const { last, say, turn: followed } = yield* turn
      yield* say(call("waiting", {}, 0), call("weather", { city: "Oslo" }, 1), Script.delta("m", "meanwhile"))
      assert.deepStrictEqual(last().answers(0), [])
      assert.deepStrictEqual(last().answers(1), [{ id: 1, result: outcome(true, "{\"degrees\":21}") }])
      assert.strictEqual(Script.only(followed, "TextDelta").length, 1)
      yield* say(turnCompleted())
    }))

  it.effect("are interrupted when codex has ended", () =>
    Effect.gen(function*() {
      const { crash, interrupted, say } = yield* turn
      yield* say(call("waiting", {}))
      yield* crash()
      yield* Deferred.await(interrupted)
    }))

  it.effect("are interrupted when the turn has ended: nobody waits for them any longer", () =>
    Effect.gen(function*() {
      const { interrupted, say, thread } = yield* turn
      yield* say(call("waiting", {}))
      yield* thread.interrupt
      yield* Script.settled
      assert.isTrue(Deferred.isDoneUnsafe(interrupted))
    }))

  it.effect("are called with the services of the program", () =>
    Effect.gen(function*() {
      class Country extends Context.Service<Country, { readonly name: string }>()("test/Country") {}
      const Where = Tool.make("where", {
        description: "Where are we?",
        success: Schema.String,
        dependencies: [Country]
      })
      const kit = Toolkit.make(Where)
      const tools = yield* Codex.fromToolkit(kit).pipe(
        Effect.provide(kit.toLayer({ where: () => Effect.map(Country, ({ name }) => name) })),
        Effect.provideService(Country, { name: "Norway" })
      )
      const { last, say } = yield* Script.turn({ tools })
      yield* say(call("where", {}))
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: outcome(true, "Norway") }])
      yield* say(turnCompleted())
    }))

  it.effect("are none where none were given: a call of one is answered all the same", () =>
    Effect.gen(function*() {
      const { last, say } = yield* Script.turn()
      assert.notProperty(last().requests("thread/start")[0], "dynamicTools")
      yield* say(call("weather", { city: "Oslo" }))
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: outcome(false, "there is no tool weather") }])
      yield* say(turnCompleted())
    }))

  it.effect("that are called in a way that cannot be read are refused, and the turn goes on", () =>
    Effect.gen(function*() {
      const { last, say, turn: followed } = yield* turn
      yield* say({ id: 0, method: "item/tool/call", params: { tool: "weather" } })
      assert.strictEqual(last().answers(0)[0]?.error?.code, -32602)
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(followed).status, "completed")
    }))
})

/**
 * A codex that ends, before, in and between turns: the turn ends as failed, and the conversation goes on with the next.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Agent from "effect-stdio/Agent"
import * as Codex from "effect-stdio/Codex"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { readFileSync } from "node:fs"
import * as Script from "./utils/scriptedCodex.ts"

const { delta, started, turnCompleted } = Script

const PANIC = { exitCode: 101, stderrTail: "thread 'main' panicked at src/main.rs" }

describe("a codex that ends in the midst of a turn", () => {
  it.effect("closes what is open and fails the turn with what it has said last", () =>
    Effect.gen(function*() {
      const { crash, last, say, turn } = yield* Script.turn()
      yield* say(
        delta("m", "Hel"),
        started({ type: "commandExecution", id: "c", command: "ls", cwd: "/p", status: "inProgress" })
      )
      yield* crash(PANIC)
      assert.deepStrictEqual(turn.events.slice(3), [
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "cancelled", text: "Hel" },
        { _tag: "ToolEnd", itemId: "c", status: "cancelled", output: null },
        {
          _tag: "TurnEnd",
          turnId: "turn-1",
          status: "failed",
          text: "Hel",
          error: {
            message:
              "the process codex ended with code 101; its standard error ends with:\nthread 'main' panicked at src/main.rs",
            kind: "processExited"
          }
        }
      ])
      // the stream ends, it does not fail
      yield* Fiber.join(turn.fiber)
      assert.isTrue(last().isClosed())
      assert.deepStrictEqual(last().requests("turn/interrupt"), [])
    }))

  it.effect("heard all that it had said before", () =>
    Effect.gen(function*() {
      const { last, turn } = yield* Script.turn()
      last().say(delta("m", "Hello"), turnCompleted())
      last().crash(PANIC)
      yield* Script.settled
      assert.deepInclude(Script.endOf(turn), { status: "completed", text: "Hello" })
    }))

  it.effect("is started again for the next input, takes the conversation up, and is told nothing twice", () =>
    Effect.gen(function*() {
      const { crash, generations, last, say, thread } = yield* Script.turn({
        thread: { cwd: "/p", model: "m", effort: "low" }
      })
      yield* crash(PANIC)
      // not before it is needed
      assert.strictEqual(generations.length, 1)
      const next = yield* Script.follow(thread, "Go on")
      assert.strictEqual(generations.length, 2)
      assert.deepStrictEqual(last().received.map(({ method }) => method), [
        "initialize",
        "initialized",
        "thread/resume",
        "turn/start"
      ])
      assert.deepStrictEqual(last().requests("thread/resume"), [{
        cwd: "/p",
        model: "m",
        threadId: "thread-1",
        excludeTurns: true
      }])
      assert.deepStrictEqual(last().requests("turn/start"), [{
        effort: "low",
        threadId: "thread-1",
        input: [{ type: "text", text: "Go on" }]
      }])
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.deepInclude(Script.endOf(next), { turnId: "turn-2", status: "completed" })
      assert.strictEqual(yield* thread.id, "thread-1")
    }))

  it.effect("is not heard any longer: what an old one says does not reach the turn on the new one", () =>
    Effect.gen(function*() {
      const { crash, generations, say, thread } = yield* Script.turn()
      yield* crash()
      const next = yield* Script.follow(thread)
      generations[0]?.say(turnCompleted({ id: "turn-2" }))
      yield* Script.settled
      assert.deepStrictEqual(Script.tags(next), ["TurnStarted"])
      yield* say(turnCompleted({ id: "turn-2" }))
      Script.endOf(next)
    }))

  it.effect("fails the turns of all conversations, each of which is taken up again by itself", () =>
    Effect.gen(function*() {
      const { crash, generations, last, open, say } = yield* Script.make()
      const one = yield* open()
      const two = yield* open()
      const turns = [yield* Script.follow(one), yield* Script.follow(two)]
      yield* crash(PANIC)
      for (const turn of turns) {
        assert.strictEqual(Script.endOf(turn).error?.kind, "processExited")
        yield* Fiber.join(turn.fiber)
      }
      // both at once
      const first = yield* Effect.forkChild(one.send("Go on"), { startImmediately: true })
      const second = yield* Effect.forkChild(two.send("Go on"), { startImmediately: true })
      yield* Script.settled
      assert.strictEqual(generations.length, 2)
      assert.deepStrictEqual(last().requests("thread/resume").map(({ threadId }) => threadId), ["thread-1", "thread-2"])
      yield* say(turnCompleted({ id: "turn-3" }), turnCompleted({ id: "turn-4" }, "thread-2"))
      assert.strictEqual((yield* Fiber.join(first)).status, "completed")
      assert.strictEqual((yield* Fiber.join(second)).status, "completed")
    }))

  it.effect("may be interrupted, which returns: there is nothing more to wait for", () =>
    Effect.gen(function*() {
      const { answers, crash, thread, turn } = yield* Script.turn()
      answers["turn/interrupt"] = Script.silent
      const interruption = yield* Effect.forkChild(thread.interrupt, { startImmediately: true })
      yield* Script.settled
      yield* crash()
      yield* Fiber.join(interruption)
      assert.strictEqual(Script.endOf(turn).status, "failed")
    }))

  it.effect("and again in the next turn is started again each time", () =>
    Effect.gen(function*() {
      const { crash, generations, open } = yield* Script.make()
      const thread = yield* open()
      for (let times = 1; times <= 5; times++) {
        const turn = yield* Script.follow(thread)
        yield* crash(PANIC)
        assert.strictEqual(Script.endOf(turn).status, "failed")
        assert.strictEqual(generations.length, times)
      }
    }))
})

describe("a codex that ends while it is asked for a turn", () => {
  it.effect("has not answered, and may have begun or not; the next input may follow at once", () =>
    Effect.gen(function*() {
      const { answers, crash, generations, last, open, say } = yield* Script.make({
        answers: { "turn/start": Script.silent }
      })
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      yield* crash(PANIC)
      const error = yield* Effect.flip(Fiber.join(turn.fiber))
      assert.strictEqual(error.reason._tag, "NoAnswer")
      assert.include(error.message, "panicked")
      assert.deepStrictEqual(turn.events, [])
      // it is not asked for again by itself
      yield* Script.pass("1 minute")
      assert.strictEqual(generations.length, 1)
      answers["turn/start"] = (request, { reply }) => reply(request, { turn: { id: "turn-1" } })
      const next = yield* Script.follow(thread, "Again")
      assert.strictEqual(last().requests("turn/start").length, 1)
      yield* say(turnCompleted({}, yield* thread.id))
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("and has said that it started fails the turn, and is taken up with the next input: there is a turn", () =>
    Effect.gen(function*() {
      const { crash, last, open } = yield* Script.make({
        answers: { "turn/start": (_, { say }) => say(Script.turnStarted()) }
      })
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      yield* crash(PANIC)
      assert.strictEqual(Script.endOf(turn).error?.kind, "processExited")
      yield* Fiber.join(turn.fiber)
      yield* Script.follow(thread)
      assert.deepStrictEqual(last().requests("thread/resume"), [{ threadId: "thread-1", excludeTurns: true }])
      assert.deepStrictEqual(last().requests("thread/start"), [])
    }))

  it.effect("and has said so is taken up, too, when nobody followed the turn any longer", () =>
    Effect.gen(function*() {
      const { answers, crash, last, open, say } = yield* Script.make()
      const begin = answers["turn/start"] ?? Script.silent
      answers["turn/start"] = Script.silent
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      yield* say(Script.turnStarted())
      yield* Effect.forkChild(Fiber.interrupt(turn.fiber), { startImmediately: true })
      yield* crash(PANIC)
      answers["turn/start"] = begin
      const next = yield* Script.follow(thread)
      assert.deepStrictEqual(last().requests("thread/resume"), [{ threadId: "thread-1", excludeTurns: true }])
      assert.deepStrictEqual(last().requests("thread/start"), [])
      assert.strictEqual(yield* thread.id, "thread-1")
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("has begun none when it ends before, while it is told of the conversation", () =>
    Effect.gen(function*() {
      const { answers, crash, last, say, thread } = yield* Script.turn()
      yield* crash()
      answers["thread/resume"] = (_, generation) => generation.crash(PANIC)
      const error = yield* Effect.flip(thread.send("Go on"))
      assert.strictEqual(error.reason._tag, "NoAnswer")
      assert.include(error.message, "panicked")
      answers["thread/resume"] = (request, { reply }) => reply(request, { thread: { id: "thread-1" } })
      const next = yield* Script.follow(thread)
      assert.strictEqual(last().requests("turn/start").length, 1)
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("that does not answer in time has an unknown turn: it is interrupted when it starts, and codex ended else", () =>
    Effect.gen(function*() {
      const { last, open } = yield* Script.make({ answers: { "turn/start": Script.silent } })
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      yield* Script.pass("30 seconds")
      // it might have begun
      assert.strictEqual((yield* Effect.flip(thread.send("More"))).reason._tag, "TurnInProgress")
      yield* Script.pass("5 seconds")
      assert.strictEqual((yield* Effect.flip(Fiber.join(turn.fiber))).reason._tag, "NoAnswer")
      assert.isTrue(last().isClosed())
      assert.deepStrictEqual(turn.events, [])
    }))
})

describe("a codex that ends between turns", () => {
  it.effect("is started again for the next one, and takes up a conversation that has had one", () =>
    Effect.gen(function*() {
      const { crash, generations, last, say, thread } = yield* Script.turn()
      yield* say(turnCompleted())
      yield* crash()
      const next = yield* Script.follow(thread)
      assert.strictEqual(generations.length, 2)
      assert.strictEqual(last().requests("thread/resume").length, 1)
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))

  it.effect("knows nothing of a conversation without a turn: it begins anew", () =>
    Effect.gen(function*() {
      const { crash, last, open, say } = yield* Script.make()
      const thread = yield* open({ cwd: "/p" })
      assert.strictEqual(yield* thread.id, "thread-1")
      yield* crash()
      const turn = yield* Script.follow(thread)
      assert.deepStrictEqual(last().requests("thread/start"), [{ cwd: "/p" }])
      assert.deepStrictEqual(last().requests("thread/resume"), [])
      assert.strictEqual(yield* thread.id, "thread-2")
      yield* say(turnCompleted({}, "thread-2"))
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("and cannot be started again is none: the next input fails, and the one after that may not", () =>
    Effect.gen(function*() {
      const { answers, crash, say, thread } = yield* Script.turn()
      yield* crash()
      const initialize = answers["initialize"] ?? Script.silent
      answers["initialize"] = (_, generation) => generation.crash(PANIC)
      assert.strictEqual((yield* Effect.flip(thread.send("Go on"))).reason._tag, "NotStarted")
      answers["initialize"] = initialize
      const next = yield* Script.follow(thread)
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(next).status, "completed")
    }))
})

describe("a conversation of another day", () => {
  it.effect("is taken up, without its turns, which may be many", () =>
    Effect.gen(function*() {
      const { last, open, say } = yield* Script.make()
      const thread = yield* open({ resume: "thread-1", model: "m" })
      assert.deepStrictEqual(last().requests("thread/resume"), [{
        model: "m",
        threadId: "thread-1",
        excludeTurns: true
      }])
      assert.deepStrictEqual(last().requests("thread/start"), [])
      assert.strictEqual(yield* thread.id, "thread-1")
      const turn = yield* Script.follow(thread)
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))

  it.effect("that codex does not know is refused", () =>
    Effect.gen(function*() {
      const { codex } = yield* Script.make({
        answers: { "thread/resume": Script.refuse(-32600, "no rollout found for thread id thread-7") }
      })
      const error = yield* Effect.flip(Effect.asVoid(codex.thread({ resume: "thread-7" })))
      assert.deepStrictEqual(
        error.reason,
        new Agent.Refused({
          method: "thread/resume",
          code: -32600,
          message: "no rollout found for thread id thread-7"
        })
      )
    }))
})

describe("a codex that does not start", () => {
  it.effect("says what it has said last, and what to look at", () =>
    Effect.gen(function*() {
      const { codex, last } = yield* Script.make({
        answers: {
          initialize: (_, generation) =>
            generation.crash({ exitCode: 1, stderrTail: "Error: Model provider 'nope' not found" })
        }
      })
      const error = yield* Effect.flip(Effect.asVoid(codex.thread()))
      assert.strictEqual(error.reason._tag, "NotStarted")
      assert.include(error.message, "ended with code 1")
      assert.include(error.message, "Model provider 'nope' not found")
      assert.include(error.message, "config.toml")
      assert.isTrue(last().isClosed())
    }))

  it.effect("within 30 seconds is ended", () =>
    Effect.gen(function*() {
      const { codex, generations, last } = yield* Script.make({ answers: { initialize: Script.silent } })
      const opening = yield* Effect.forkChild(Effect.flip(codex.version), { startImmediately: true })
      yield* Script.pass("29999 millis")
      assert.isUndefined(opening.pollUnsafe())
      assert.isFalse(last().isClosed())
      yield* Script.pass("1 millis", 1)
      assert.strictEqual((yield* Fiber.join(opening)).reason._tag, "NotStarted")
      assert.isTrue(last().isClosed())
      assert.strictEqual(generations.length, 1)
    }))

  it.effect("within the time that is asked for is ended", () =>
    Effect.gen(function*() {
      const { codex, last } = yield* Script.make({ startTimeout: "1 second", answers: { initialize: Script.silent } })
      const opening = yield* Effect.forkChild(Effect.flip(codex.version), { startImmediately: true })
      yield* Script.pass("1 second")
      assert.strictEqual((yield* Fiber.join(opening)).reason._tag, "NotStarted")
      assert.isTrue(last().isClosed())
    }))

  it.effect("because nobody can connect to it in time is one that does not start in time", () =>
    Effect.gen(function*() {
      const codex = yield* Codex.make({ connect: Effect.never, startTimeout: "10 seconds" })
      const opening = yield* Effect.forkChild(Effect.flip(codex.version), { startImmediately: true })
      yield* Script.pass("9999 millis")
      assert.isUndefined(opening.pollUnsafe())
      yield* Script.pass("1 millis", 1)
      const error = yield* Fiber.join(opening)
      assert.strictEqual(error.reason._tag, "NotStarted")
      assert.include(error.message, "not ready within 10s")
    }))

  for (
    const [name, answer] of [
      ["refuses the handshake", Script.refuse(-32600, "Invalid request: missing field `version`")],
      ["answers with something else", (request: Script.Request, { reply }: Script.Generation) => reply(request, {})]
    ] as const
  ) {
    it.effect(`is not started when it ${name}, and may be the next time`, () =>
      Effect.gen(function*() {
        const { answers, codex, generations, last } = yield* Script.make()
        const initialize = answers["initialize"] ?? Script.silent
        answers["initialize"] = answer
        assert.strictEqual((yield* Effect.flip(codex.version)).reason._tag, "NotStarted")
        assert.isTrue(last().isClosed())
        answers["initialize"] = initialize
        assert.strictEqual(yield* codex.version, "0.171.0")
        assert.strictEqual(generations.length, 2)
      }))
  }

  it.effect("because nobody can connect to it says why", () =>
    Effect.gen(function*() {
      const codex = yield* Codex.make({ connect: Effect.fail(new Error("the socket is gone")) })
      const error = yield* Effect.flip(codex.version)
      assert.strictEqual(error.reason._tag, "NotStarted")
      assert.include(error.message, "the socket is gone")
    }))

  it.effect("is started once, although many ask for it at once", () =>
    Effect.gen(function*() {
      const { codex, generations, last } = yield* Script.make()
      yield* Effect.all(Array.from({ length: 10 }, () => codex.thread()), { concurrency: "unbounded" })
      assert.strictEqual(generations.length, 1)
      assert.strictEqual(last().requests("initialize").length, 1)
      assert.strictEqual(last().requests("thread/start").length, 10)
    }))
})

describe("a codex beside its turns", () => {
  it.effect("says its version, or nothing of it", () =>
    Effect.gen(function*() {
      for (
        const [userAgent, version] of [
          ["effect-stdio/0.171.0 (Linux; x86_64)", "0.171.0"],
          ["codex_cli_rs/0.172.0-alpha.3 (Mac OS 26)", "0.172.0-alpha.3"],
          ["something else", undefined]
        ] as const
      ) {
        const { codex } = yield* Script.make({
          answers: { initialize: (request, { reply }) => reply(request, { userAgent }) }
        })
        assert.strictEqual(yield* codex.version, version)
      }
    }))

  it("is tested in the version that is named", () => {
    const installed = readFileSync(new URL("codex/package.json", import.meta.url), "utf8")
    assert.include(installed, `"@openai/codex": "${Codex.testedVersion}"`)
  })

  it.effect("starts its MCP servers again", () =>
    Effect.gen(function*() {
      const { codex, last } = yield* Script.make()
      yield* codex.reloadMcpServers
      assert.deepStrictEqual(last().requests("config/mcpServer/reload"), [{}])
    }))

  it.effect("is reached by requests that have no function", () =>
    Effect.gen(function*() {
      const { codex } = yield* Script.make({
        answers: { "model/list": (request, { reply }) => reply(request, { data: ["m"] }) }
      })
      const peer = yield* codex.peer
      assert.deepStrictEqual(yield* peer.call("model/list", {}), { data: ["m"] })
    }))

  it.effect("that does not answer a request in time has not answered it, and is not ended", () =>
    Effect.gen(function*() {
      const { codex, last, open } = yield* Script.make({
        callTimeout: "10 seconds",
        answers: { "config/mcpServer/reload": Script.silent }
      })
      yield* open()
      const reloading = yield* Effect.forkChild(Effect.flip(codex.reloadMcpServers), { startImmediately: true })
      yield* Script.pass("10 seconds")
      assert.strictEqual((yield* Fiber.join(reloading)).reason._tag, "NoAnswer")
      assert.isFalse(last().isClosed())
    }))

  it.effect("is at most asked 64 things at once", () =>
    Effect.gen(function*() {
      const { codex, last } = yield* Script.make({ answers: { "config/mcpServer/reload": Script.silent } })
      yield* codex.version
      yield* Effect.forkChild(
        Effect.all(Array.from({ length: 100 }, () => codex.reloadMcpServers), { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      yield* Script.settled
      assert.strictEqual(last().requests("config/mcpServer/reload").length, 64)
      last().crash()
    }))

  it.effect("is a layer, and one conversation with it is the agent of a program", () =>
    Effect.gen(function*() {
      const script = yield* Script.make()
      const program = Effect.gen(function*() {
        const agent = yield* Agent.Agent
        const turn = yield* Script.follow(agent)
        yield* script.say(turnCompleted())
        return Script.endOf(turn).status
      })
      assert.strictEqual(
        yield* Effect.provide(program, Codex.layerAgent({ connect: script.connect, cwd: "/p", model: "m" })),
        "completed"
      )
      assert.deepStrictEqual(script.last().requests("thread/start"), [{ cwd: "/p", model: "m" }])
      assert.isTrue(script.last().isClosed())
      const version = Effect.flatMap(Codex.Codex, ({ version }) => version)
      assert.strictEqual(
        yield* Effect.provide(version, Layer.fresh(Codex.layer({ connect: script.connect }))),
        "0.171.0"
      )
      assert.isTrue(script.last().isClosed())
    }))
})

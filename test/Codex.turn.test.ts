/**
 * Turns of codex from their start to their end: which notifications belong to one, and what becomes of each.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Agent from "effect-stdio/Agent"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Script from "./utils/scriptedCodex.ts"

const { completed, delta, message, notification, started, turnCompleted } = Script

describe("a turn", () => {
  it.effect("begins with its start, ends with its end, and has the last message and the usage in it", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn()
      yield* say(
        started({ type: "userMessage", id: "u", content: [] }),
        completed({ type: "userMessage", id: "u", content: [] }),
        started(message("m", "")),
        delta("m", "Hel"),
        delta("m", "lo"),
        completed(message("m", "Hello")),
        notification("thread/tokenUsage/updated", {
          tokenUsage: { last: Script.tokens(10), total: Script.tokens(20), modelContextWindow: 1_000 }
        }),
        Script.status("idle"),
        turnCompleted({ items: [message("m", "Hello")] })
      )
      const usage: Agent.Usage = {
        _tag: "Usage",
        last: { input: 8, cachedInput: 1, output: 2, reasoning: 1, total: 10 },
        total: { input: 18, cachedInput: 1, output: 2, reasoning: 1, total: 20 },
        contextWindow: 1_000
      }
      assert.deepStrictEqual(turn.events, [
        { _tag: "TurnStarted", turnId: "turn-1" },
        { _tag: "TextDelta", itemId: "m", text: "Hel" },
        { _tag: "TextDelta", itemId: "m", text: "lo" },
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "completed", text: "Hello" },
        usage,
        { _tag: "TurnEnd", turnId: "turn-1", status: "completed", text: "Hello", usage }
      ])
      yield* Fiber.join(turn.fiber)
      assert.deepStrictEqual(last().requests("turn/start"), [{
        threadId: "thread-1",
        input: [{ type: "text", text: "Hi" }]
      }])
    }))

  it.effect("is what send waits for", () =>
    Effect.gen(function*() {
      const { open, say } = yield* Script.make()
      const thread = yield* open()
      const sent = yield* Effect.forkChild(thread.send("Hi"), { startImmediately: true })
      yield* Script.settled
      yield* say(completed(message("m", "Hello")), turnCompleted())
      assert.deepStrictEqual(yield* Fiber.join(sent), {
        _tag: "TurnEnd",
        turnId: "turn-1",
        status: "completed",
        text: "Hello"
      })
    }))

  it.effect("starts first, although warnings of before are waiting for it", () =>
    Effect.gen(function*() {
      const { answers, open, say } = yield* Script.make()
      const start = answers["thread/start"] ?? Script.silent
      answers["thread/start"] = (request, generation) => {
        // as it is: codex speaks of a conversation before it says which one it is
        generation.say(
          { method: "warning", params: { threadId: "thread-1", message: "of this one" } },
          { method: "warning", params: { threadId: "thread-9", message: "of another" } },
          { method: "configWarning", params: { summary: "of all", details: "in config.toml" } }
        )
        start(request, generation)
      }
      const thread = yield* open()
      const turn = yield* Script.follow(thread)
      yield* say(turnCompleted())
      assert.deepStrictEqual(turn.events.slice(0, -1), [
        { _tag: "TurnStarted", turnId: "turn-1" },
        { _tag: "Warning", message: "of this one" },
        { _tag: "Warning", message: "of all", details: "in config.toml" }
      ])
      Script.endOf(turn)
      // each is told once
      const next = yield* Script.follow(thread)
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.deepStrictEqual(Script.tags(next), ["TurnStarted", "TurnEnd"])
    }))

  it.effect("is told of an MCP server that did not start, although many others did meanwhile", () =>
    Effect.gen(function*() {
      const { open, say } = yield* Script.make()
      const thread = yield* open()
      const about = (name: string, status: string, error: string | null): Script.Message => ({
        method: "mcpServer/startupStatus/updated",
        params: { threadId: "thread-1", name, status, error }
      })
      yield* say(about("broken", "failed", "no such file"))
      yield* say(...Array.from({ length: 40 }, (_, index) => about(`server-${index}`, "ready", null)))
      const turn = yield* Script.follow(thread)
      assert.deepStrictEqual(Script.only(turn, "Warning"), [
        { _tag: "Warning", message: "the MCP server broken has not started", details: "no such file" }
      ])
      yield* say(turnCompleted())
    }))

  it.effect("starts first although its own notifications come before the response", () =>
    Effect.gen(function*() {
      const { open, last, say } = yield* Script.make({
        answers: {
          "turn/start": (request, generation) => {
            generation.say(Script.turnStarted(), delta("m", "early"), {
              id: request.id,
              result: { turn: { id: "turn-1" } }
            })
          }
        }
      })
      const turn = yield* Script.follow(yield* open())
      yield* say(turnCompleted())
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "TextDelta", "TextEnd", "TurnEnd"])
      assert.strictEqual(Script.endOf(turn).text, "early")
      assert.strictEqual(last().requests("turn/start").length, 1)
    }))

  it.effect("ends once, although codex says its end twice", () =>
    Effect.gen(function*() {
      const { say, thread, turn } = yield* Script.turn()
      yield* say(turnCompleted(), turnCompleted({ status: "failed" }))
      yield* say(turnCompleted(), delta("m", "late"))
      assert.deepStrictEqual(Script.endOf(turn), {
        _tag: "TurnEnd",
        turnId: "turn-1",
        status: "completed",
        text: ""
      })
      // nor does that end the next one
      const next = yield* Script.follow(thread)
      yield* say(turnCompleted(), delta("m", "late"))
      assert.deepStrictEqual(Script.tags(next), ["TurnStarted"])
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(next).turnId, "turn-2")
    }))

  it.effect("is one at a time in a conversation, and the next may begin at its end", () =>
    Effect.gen(function*() {
      const { last, say, thread, turn } = yield* Script.turn()
      const error = yield* Effect.flip(thread.send("Me too"))
      assert.strictEqual(error.reason._tag, "TurnInProgress")
      assert.strictEqual(last().requests("turn/start").length, 1)
      yield* say(turnCompleted())
      Script.endOf(turn)
      const next = yield* Script.follow(thread, "Me too")
      yield* say(turnCompleted({ id: "turn-2" }))
      assert.strictEqual(Script.endOf(next).turnId, "turn-2")
    }))

  it.effect("is none when codex refuses it, and the conversation is free for the next", () =>
    Effect.gen(function*() {
      const { answers, open, say } = yield* Script.make({
        answers: { "turn/start": Script.refuse(-32600, "thread not found") }
      })
      const thread = yield* open()
      const refused = yield* Effect.flip(thread.send("Hi"))
      assert.deepStrictEqual(
        refused.reason,
        new Agent.Refused({ method: "turn/start", code: -32600, message: "thread not found" })
      )
      answers["turn/start"] = (request, { reply }) => reply(request, { turn: { id: "turn-1" } })
      const turn = yield* Script.follow(thread)
      yield* say(turnCompleted())
      Script.endOf(turn)
    }))

  it.effect("has the effort, the summary and the parts of the input that it was given", () =>
    Effect.gen(function*() {
      const { open, last, say } = yield* Script.make()
      const thread = yield* open({
        cwd: "/p",
        model: "m",
        modelProvider: "fake",
        approvalPolicy: "untrusted",
        sandbox: "read-only",
        developerInstructions: "be kind",
        effort: "low",
        reasoningSummary: "detailed",
        mcpServers: { excel: { command: "node", args: ["server.js"] } },
        config: { show_raw_agent_reasoning: true }
      })
      assert.deepStrictEqual(last().requests("thread/start"), [{
        cwd: "/p",
        model: "m",
        modelProvider: "fake",
        approvalPolicy: "untrusted",
        sandbox: "read-only",
        developerInstructions: "be kind",
        config: { show_raw_agent_reasoning: true, mcp_servers: { excel: { command: "node", args: ["server.js"] } } }
      }])
      const input: Agent.Input = [{ type: "text", text: "What is this?" }, { type: "localImage", path: "/p/a.png" }]
      yield* Script.follow(thread, input)
      assert.deepStrictEqual(last().requests("turn/start"), [{
        effort: "low",
        summary: "detailed",
        threadId: "thread-1",
        input
      }])
      yield* say(turnCompleted())
    }))

  it.effect("is asked for again when codex has too much to do, and begins once", () =>
    Effect.gen(function*() {
      const { answers, open, last, say } = yield* Script.make()
      const start = answers["turn/start"] ?? Script.silent
      let refusals = 0
      answers["turn/start"] = (request, generation) =>
        refusals++ < 2
          ? Script.refuse(-32001, "Server overloaded; retry later.")(request, generation)
          : start(request, generation)
      const turn = yield* Script.follow(yield* open())
      assert.deepStrictEqual(turn.events, [])
      yield* Script.pass("10 seconds")
      assert.strictEqual(last().requests("turn/start").length, 3)
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).turnId, "turn-1")
    }))
})

describe("notifications of others", () => {
  it.effect("are left out: of another thread, and of another turn", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn()
      for (const at of [{ threadId: "thread-9" }, { turnId: "turn-9" }]) {
        yield* say(
          started(message("m", ""), at),
          delta("m", "not ours", at),
          completed(message("m", "not ours"), at),
          notification("error", { error: { message: "not ours" }, willRetry: true }, at),
          notification("turn/diff/updated", { diff: "not ours" }, at),
          notification("thread/tokenUsage/updated", {
            tokenUsage: { last: Script.tokens(10), total: Script.tokens(20) }
          }, at)
        )
      }
      yield* say(
        turnCompleted({ id: "turn-9" }),
        turnCompleted({}, "thread-9"),
        Script.turnStarted("turn-9")
      )
      assert.deepStrictEqual(turn.events, [{ _tag: "TurnStarted", turnId: "turn-1" }])
      yield* say(turnCompleted())
      assert.deepStrictEqual(Script.endOf(turn), { _tag: "TurnEnd", turnId: "turn-1", status: "completed", text: "" })
    }))

  it.effect("are left out while it is not known yet which turn is ours, after a resumption for example", () =>
    Effect.gen(function*() {
      const { answers, open, last, say } = yield* Script.make()
      answers["turn/start"] = Script.silent
      const turn = yield* Script.follow(yield* open({ resume: "thread-1" }))
      yield* say(
        notification("thread/tokenUsage/updated", {
          tokenUsage: { last: Script.tokens(10), total: Script.tokens(20) }
        }, { turnId: "turn-0" }),
        delta("m", "late", { turnId: "turn-0" }),
        turnCompleted({ id: "turn-0" })
      )
      assert.deepStrictEqual(turn.events, [])
      const request = last().received.find(({ method }) => method === "turn/start")
      yield* say({ id: request?.id ?? "", result: { turn: { id: "turn-1" } } }, Script.turnStarted(), turnCompleted())
      assert.deepStrictEqual(Script.endOf(turn), { _tag: "TurnEnd", turnId: "turn-1", status: "completed", text: "" })
    }))

  it.effect("do not tell which turn is ours: the response does", () =>
    Effect.gen(function*() {
      const { answers, open, last, say } = yield* Script.make()
      answers["turn/start"] = Script.silent
      const turn = yield* Script.follow(yield* open())
      yield* say(
        Script.turnStarted("turn-0"),
        delta("m", "not ours", { turnId: "turn-0" }),
        turnCompleted({ id: "turn-0" })
      )
      const request = last().received.find(({ method }) => method === "turn/start")
      yield* say(
        { id: request?.id ?? "", result: { turn: { id: "turn-1" } } },
        Script.turnStarted(),
        completed(message("m", "ours")),
        turnCompleted()
      )
      const end = Script.endOf(turn)
      assert.deepInclude(end, { turnId: "turn-1", status: "completed", text: "ours" })
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "TextDelta", "TextEnd", "TurnEnd"])
    }))

  it.effect("are kept apart: two conversations on one connection have each their own", () =>
    Effect.gen(function*() {
      const { open, generations, say } = yield* Script.make()
      const first = yield* Script.follow(yield* open())
      const second = yield* Script.follow(yield* open())
      yield* say(
        delta("m", "one"),
        delta("m", "two", { threadId: "thread-2", turnId: "turn-2" }),
        turnCompleted({ id: "turn-2" }, "thread-2"),
        turnCompleted()
      )
      assert.strictEqual(Script.endOf(first).text, "one")
      assert.strictEqual(Script.endOf(second).text, "two")
      assert.strictEqual(generations.length, 1)
    }))
})

describe("the end of a turn", () => {
  const error = (info: unknown) => ({ message: "it went wrong", codexErrorInfo: info, additionalDetails: "so it did" })

  for (
    const [name, info, expected] of [
      ["a word", "contextWindowExceeded", { kind: "contextWindowExceeded" }],
      ["a word with a status", { responseTooManyFailedAttempts: { httpStatusCode: 429 } }, {
        kind: "responseTooManyFailedAttempts",
        httpStatus: 429
      }],
      ["a word with something else", { activeTurnNotSteerable: { turnKind: "review" } }, {
        kind: "activeTurnNotSteerable"
      }],
      ["nothing", null, { kind: "other" }],
      ["a number", 7, { kind: "other" }],
      ["an empty object", {}, { kind: "other" }],
      ["a status that is none", { httpConnectionFailed: { httpStatusCode: null } }, { kind: "httpConnectionFailed" }]
    ] as const
  ) {
    it.effect(`says why it failed: ${name}`, () =>
      Effect.gen(function*() {
        const { say, turn } = yield* Script.turn()
        yield* say(turnCompleted({ status: "failed", error: error(info) }))
        assert.deepStrictEqual(Script.endOf(turn), {
          _tag: "TurnEnd",
          turnId: "turn-1",
          status: "failed",
          text: "",
          error: { message: "it went wrong", details: "so it did", ...expected }
        })
      }))
  }

  it.effect("takes the error that was reported before, where it has none itself", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn()
      yield* say(
        notification("error", { error: { message: "broke off", codexErrorInfo: "other" }, willRetry: false }),
        turnCompleted({ status: "failed" })
      )
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "TurnEnd"])
      assert.deepStrictEqual(Script.endOf(turn).error, { message: "broke off", kind: "other" })
    }))

  it.effect("is a failure when its status is a word that nobody knows", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn()
      yield* say(turnCompleted({ status: "evaporated" }))
      assert.deepStrictEqual(Script.endOf(turn).error, { message: "the turn is evaporated", kind: "other" })
    }))

  const open = [
    started(message("m", "")),
    delta("m", "Hel"),
    started({ type: "reasoning", id: "r", summary: [], content: [] }),
    notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: "so", summaryIndex: 0 }),
    started({ type: "plan", id: "p", text: "" }),
    notification("item/plan/delta", { itemId: "p", delta: "- one" }),
    started({ type: "commandExecution", id: "c", command: "ls", cwd: "/p", status: "inProgress" }),
    notification("item/commandExecution/outputDelta", { itemId: "c", delta: "a.txt" })
  ]

  const closed: ReadonlyArray<Agent.AgentEvent> = [
    { _tag: "TextEnd", itemId: "m", kind: "text", status: "cancelled", text: "Hel" },
    { _tag: "TextEnd", itemId: "r", kind: "reasoning", status: "cancelled", text: "so" },
    { _tag: "TextEnd", itemId: "p", kind: "plan", status: "cancelled", text: "- one" },
    { _tag: "ToolEnd", itemId: "c", status: "cancelled", output: null }
  ]

  const ends: ReadonlyArray<
    readonly [
      string,
      Agent.TurnEnd["status"],
      (script: Effect.Success<ReturnType<typeof Script.turn>>) => Effect.Effect<unknown>
    ]
  > = [
    ["completed", "completed", ({ say }) => say(turnCompleted())],
    ["failed", "failed", ({ say }) => say(turnCompleted({ status: "failed", error: error("other") }))],
    ["interrupted by codex", "interrupted", ({ say }) => say(turnCompleted({ status: "interrupted" }))],
    ["interrupted by us", "interrupted", ({ thread }) => thread.interrupt],
    ["the conversation is closed", "interrupted", ({ thread }) => thread.close],
    ["codex has ended", "failed", ({ crash }) => crash()],
    ["codex does not stop", "interrupted", ({ answers, thread }) =>
      Effect.gen(function*() {
        answers["turn/interrupt"] = Script.silent
        yield* Effect.forkChild(thread.interrupt, { startImmediately: true })
        yield* Script.pass("6 seconds")
      })],
    ["codex does not answer", "failed", ({ answers }) =>
      Effect.suspend(() => {
        answers["thread/turns/list"] = Script.silent
        return Script.pass("6 minutes")
      })],
    ["codex has it on record only", "completed", ({ answers, say }) =>
      Effect.gen(function*() {
        answers["thread/turns/list"] = Script.turns({ id: "turn-1", status: "completed" })
        yield* say(Script.status("idle"))
        yield* Script.pass("2 seconds")
      })]
  ]

  for (const [name, status, end] of ends) {
    it.effect(`comes after the end of all that is open: ${name}`, () =>
      Effect.gen(function*() {
        const script = yield* Script.turn()
        yield* script.say(...open)
        const before = script.turn.events.length
        yield* end(script)
        yield* Script.settled
        assert.deepStrictEqual(script.turn.events.slice(before, -1), closed)
        assert.deepInclude(Script.endOf(script.turn), { status, text: "Hel" })
        yield* Fiber.join(script.turn.fiber)
      }))
  }
})

describe("what was said to the agent in the midst of a turn", () => {
  it.effect("goes to the turn that is meant", () =>
    Effect.gen(function*() {
      const { last, say, thread, turn } = yield* Script.turn()
      yield* thread.steer("And quickly")
      assert.deepStrictEqual(last().requests("turn/steer"), [{
        threadId: "thread-1",
        expectedTurnId: "turn-1",
        input: [{ type: "text", text: "And quickly" }]
      }])
      yield* say(turnCompleted())
      Script.endOf(turn)
      assert.strictEqual((yield* Effect.flip(thread.steer("Too late"))).reason._tag, "NoTurn")
      assert.strictEqual(last().requests("turn/steer").length, 1)
    }))

  it.effect("has no turn to go to before there is one, and while it is not known which", () =>
    Effect.gen(function*() {
      const { answers, open, say } = yield* Script.make()
      const thread = yield* open()
      assert.strictEqual((yield* Effect.flip(thread.steer("Early"))).reason._tag, "NoTurn")
      answers["turn/start"] = Script.silent
      yield* Script.follow(thread)
      assert.strictEqual((yield* Effect.flip(thread.steer("Early"))).reason._tag, "NoTurn")
      yield* say(Script.turnStarted(), turnCompleted())
    }))

  it.effect("may be refused, with the words of codex", () =>
    Effect.gen(function*() {
      const { answers, say, thread } = yield* Script.turn()
      answers["turn/steer"] = Script.refuse(-32600, "expected turn-1, found turn-2")
      const exit = yield* Effect.exit(thread.steer("More"))
      assert.deepStrictEqual(
        exit,
        Exit.fail(
          new Agent.AgentError({
            reason: new Agent.Refused({
              method: "turn/steer",
              code: -32600,
              message: "expected turn-1, found turn-2"
            })
          })
        )
      )
      yield* say(turnCompleted())
    }))
})

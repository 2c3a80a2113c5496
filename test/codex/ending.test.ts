/**
 * The real Codex app server killed, closed, crowded, and with MCP servers that die: what goes on, and what is left.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { existsSync } from "node:fs"
import { join } from "node:path"
import type * as Codex from "../../src/Codex.ts"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import { endOf, type Events, only, open, run, withoutNoise } from "./agent.ts"
import { say } from "./reply.ts"
import * as Scenarios from "./scenarios.ts"

/** What is alive of a codex and of all that it has started. */
const alive = (home: string) => Os.withEnvironment(`CODEX_HOME=${home}`).filter((pid) => !Os.isGone(pid))

/** Those that we have started: codex itself. */
const processesOf = (home: string) => alive(home).filter((pid) => Os.parentOf(pid) === process.pid)

const pidOf = (home: string): number => processesOf(home)[0] ?? assert.fail("codex is not running")

/** Begins a turn, and returns when this has happened in it. */
const until = Effect.fnUntraced(function*(thread: Codex.Thread, tag: Events[number]["_tag"]) {
  const happened = yield* Deferred.make<void>()
  const turn = yield* thread.stream("Go on").pipe(
    Stream.tap((event) => event._tag === tag ? Deferred.succeed(happened, undefined) : Effect.void),
    Stream.runCollect,
    Effect.map(withoutNoise),
    Effect.forkChild
  )
  yield* Deferred.await(happened)
  return turn
})

describe.runIf(Os.isLinux)("a codex that is killed in the midst of a turn", () => {
  it.live("ends the turn as failed, and goes on with the conversation when it is spoken to again", () =>
    Effect.gen(function*() {
      let isSecond = false
      const { codex, env, model } = yield* open((request) =>
        (isSecond ? Scenarios.gated(Effect.never, ["never said"]) : Scenarios.hello)(request)
      )
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const id = yield* thread.id
      assert.strictEqual((yield* thread.send("The first thing")).status, "completed")

      isSecond = true
      const turn = yield* Effect.forkChild(run(thread, "The second thing"), { startImmediately: true })
      yield* model.request(2)
      process.kill(pidOf(env.CODEX_HOME), "SIGKILL")
      const end = endOf(yield* Fiber.join(turn))
      assert.strictEqual(end.status, "failed")
      assert.deepInclude(end.error, { kind: "processExited" })
      assert.include(end.error?.message, "SIGKILL")
      yield* Os.eventually("nothing is left of it", () => alive(env.CODEX_HOME).length === 0 || undefined)

      isSecond = false
      const events = yield* run(thread, "The third thing")
      assert.deepInclude(endOf(events), { status: "completed", text: "Hello, größe – 🐢" })
      assert.strictEqual(yield* thread.id, id)
      const said = model.requests.at(-1)?.messages.filter(({ text }) => /^(The \w+ thing|Hello)/.test(text)) ?? []
      // the second was heard before the end came, and nothing is said twice
      assert.deepStrictEqual(said, [
        { role: "user", text: "The first thing" },
        { role: "assistant", text: "Hello, größe – 🐢" },
        { role: "user", text: "The second thing" },
        { role: "user", text: "The third thing" }
      ])
      assert.strictEqual(model.requests.length, 3)
    }))

  it.live("takes the commands that it runs with it", () =>
    Effect.gen(function*() {
      const { codex, env, folder } = yield* open(Scenarios.command("touch begun; sleep 4711"))
      const thread = yield* codex.thread({ approvalPolicy: "never", sandbox: "danger-full-access" })
      const turn = yield* until(thread, "ToolStart")
      yield* Os.eventually("the command runs", () => existsSync(join(folder, "begun")) || undefined)
      process.kill(pidOf(env.CODEX_HOME), "SIGKILL")
      const events = yield* Fiber.join(turn)
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "cancelled")
      assert.strictEqual(endOf(events).status, "failed")
      yield* Os.eventually("nothing is left of it", () => alive(env.CODEX_HOME).length === 0 || undefined)
    }))

  it.live("ends the turns of all its conversations, each of which goes on", () =>
    Effect.gen(function*() {
      let isWell = false
      const { codex, env, model } = yield* open((request) =>
        (isWell ? Scenarios.hello : Scenarios.gated(Effect.never, ["never said"]))(request)
      )
      const threads = yield* Effect.forEach([1, 2], () => codex.thread({ approvalPolicy: "never" }))
      const turns = yield* Effect.forEach(threads, (thread) => Effect.forkChild(run(thread, "Hi")))
      yield* model.request(2)
      process.kill(pidOf(env.CODEX_HOME), "SIGKILL")
      for (const turn of turns) assert.deepInclude(endOf(yield* Fiber.join(turn)).error, { kind: "processExited" })
      isWell = true
      const ends = yield* Effect.forEach(threads, (thread) => thread.send("Again"), { concurrency: "unbounded" })
      assert.deepStrictEqual(ends.map(({ status }) => status), ["completed", "completed"])
    }))
})

describe.runIf(Os.isLinux)("a codex whose scope closes", () => {
  it.live("ends with its turn and its running command, and the turn ends as interrupted", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { codex, env, folder } = yield* Scope.provide(open(Scenarios.command("touch begun; sleep 4711")), scope)
      const thread = yield* Scope.provide(
        codex.thread({ approvalPolicy: "never", sandbox: "danger-full-access" }),
        scope
      )
      const turn = yield* until(thread, "ToolStart")
      yield* Os.eventually("the command runs", () => existsSync(join(folder, "begun")) || undefined)
      const pid = pidOf(env.CODEX_HOME)
      assert.isAtLeast(alive(env.CODEX_HOME).length, 2)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Os.isGone(pid))
      // the shell in which codex looks for settings ends by itself
      yield* Os.eventually("nothing is left of it", () => alive(env.CODEX_HOME).length === 0 || undefined)
      const events = yield* Fiber.join(turn)
      assert.strictEqual(only(events, "ToolEnd")[0]?.status, "cancelled")
      assert.strictEqual(endOf(events).status, "interrupted")
    }))
})

describe("one process of codex", () => {
  it.live("has two conversations at once, and each hears of itself alone", () =>
    Effect.gen(function*() {
      const isAsked = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // neither is answered before both have asked
      const both = Effect.all(isAsked.map((deferred) => Deferred.await(deferred)), { discard: true })
      const { codex, env, model } = yield* open(({ number, text }) => {
        const deferred = isAsked[number - 1]
        if (deferred !== undefined) Deferred.doneUnsafe(deferred, Exit.void)
        return Scenarios.gated(both, [`${text} `, "was ", "said"])({
          number,
          text,
          messages: [],
          model: "",
          outputs: [],
          tools: []
        })
      })
      const threads = yield* Effect.forEach([1, 2], () => codex.thread({ approvalPolicy: "never" }))
      const told = yield* Effect.forEach(threads, (thread, index) => run(thread, `This ${index}`), {
        concurrency: "unbounded"
      })
      for (const [index, events] of told.entries()) {
        assert.strictEqual(endOf(events).text, `This ${index} was said`)
        assert.strictEqual(only(events, "TextDelta").map(({ text }) => text).join(""), `This ${index} was said`)
        assert.strictEqual(only(events, "TurnStarted").length, 1)
        assert.strictEqual(only(events, "Usage").length, 1)
      }
      assert.strictEqual(model.requests.length, 2)
      if (Os.isLinux) assert.strictEqual(processesOf(env.CODEX_HOME).length, 1)
    }))

  it.live("tells a conversation nothing of another that begins", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { codex } = yield* open(Scenarios.gated(Deferred.await(gate), ["done"]))
      const thread = yield* codex.thread({ approvalPolicy: "never" })
      const turn = yield* Effect.forkChild(Stream.runCollect(thread.stream("Hi")), { startImmediately: true })
      const other = yield* codex.thread({ approvalPolicy: "never" })
      const id = yield* other.id
      yield* Deferred.succeed(gate, undefined)
      const events = yield* Fiber.join(turn)
      assert.notInclude(JSON.stringify(events), id)
      assert.deepStrictEqual(only(events, "Unknown"), [])
    }))

  it.live("answers 300 requests at once", () =>
    Effect.gen(function*() {
      const { codex } = yield* open(Scenarios.hello)
      yield* codex.thread({ approvalPolicy: "never" })
      const peer = yield* codex.peer
      const results = yield* Effect.forEach(
        Array.from({ length: 300 }),
        () => Effect.exit(peer.call("thread/loaded/list", {})),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(results.length, 300)
      assert.isTrue(results.every(Exit.isSuccess))
      assert.deepInclude(yield* peer.stats, { badInput: 0, strayResponses: 0 })
    }))

  it.live("is closed while nobody has asked anything of it, without having been started", () =>
    Effect.gen(function*() {
      const env = yield* Effect.scoped(Effect.map(open(Scenarios.hello), ({ env }) => env))
      if (Os.isLinux) assert.deepStrictEqual(alive(env.CODEX_HOME), [])
    }))
})

describe.runIf(Os.isLinux)("an MCP server of codex that has died", () => {
  /** The server that codex has started last. */
  const serverOf = (mark: string) =>
    Os.withEnvironment(`TEST_ADDER=${mark}`).filter((pid) => !Os.isGone(pid)).at(-1) ?? assert.fail("no MCP server")

  const server = (mark: string) => ({
    command: process.execPath,
    args: [Child.path("examples/hello/mcp.ts")],
    env: { ...Child.environment, TEST_ADDER: mark }
  })

  for (const where of ["config.toml", "the options of the conversation"] as const) {
    it.live(`fails its calls until they are started again, when it stands in ${where}`, () =>
      Effect.gen(function*() {
        const mark = `${process.pid}-${where.length}`
        const mcpServers = { adder: server(mark) }
        const { codex } = yield* open(({ number, ...request }) =>
          // the even requests follow the call of a tool
          number % 2 === 0
            ? say("It has answered.")
            : Scenarios.mcpTool("adder", "add", { a: 2, b: 3 })({ number, ...request, outputs: [] }), {
          home: where === "config.toml" ? { mcpServers } : {}
        })
        const thread = yield* codex.thread({
          approvalPolicy: "never",
          sandbox: "danger-full-access",
          ...(where === "config.toml" ? {} : { mcpServers })
        })
        const call = Effect.map(run(thread, "Add"), (events) => {
          assert.strictEqual(endOf(events).status, "completed")
          return only(events, "ToolEnd")[0]
        })
        assert.strictEqual((yield* call)?.status, "completed")
        const pid = serverOf(mark)
        process.kill(pid, "SIGKILL")
        yield* Os.gone(pid)
        const failed = yield* call
        assert.strictEqual(failed?.status, "failed")
        assert.include(JSON.stringify(failed?.output), "Transport closed")
        yield* codex.reloadMcpServers
        assert.strictEqual((yield* call)?.status, "completed")
      }))
  }
})

Child.leavesNothingBehind()

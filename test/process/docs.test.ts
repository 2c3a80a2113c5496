/**
 * The programs that the pages below docs show, run as a reader would run them.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as Child from "../utils/child.ts"

const ended = { code: 0, signal: null }

const initialize = (child: Child.Child) =>
  Effect.andThen(
    child.call("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "test", version: "1" }
    }),
    (reply) => Effect.as(child.send({ method: "notifications/initialized" }), reply)
  )

describe("docs/serving.md", () => {
  it.live("has a server that divides, refuses, logs, asks back, and ends with its input", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("examples/docs/serving.ts")
      yield* child.send({ method: "log", params: { text: "a line for the log" } })
      assert.strictEqual((yield* child.call("divide", { a: 1, b: 4 })).result, 0.25)
      assert.deepStrictEqual(
        (yield* child.call("divide", { a: 1, b: 0 })).error,
        { code: 4000, message: "division by zero", data: { a: 1 } }
      )
      assert.include((yield* child.call("divide", { a: 1 })).error, { code: -32602 })
      yield* child.send({ id: "who", method: "whoami" })
      const question = yield* child.until(
        "the question",
        () => child.messages.find(({ method }) => method !== undefined)
      )
      assert.strictEqual(question.method, "client/name")
      yield* child.write(`${JSON.stringify({ jsonrpc: "2.0", id: question.id, result: "Ada" })}\n`)
      assert.strictEqual((yield* child.reply("who")).result, "Ada")
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.include(child.stderr(), "a line for the log")
    }))
})

describe("docs/calling.md", () => {
  it("has a client that calls, notifies, catches, answers, and sees the server leave with 0", () => {
    const { status, stdout } = spawnSync(Child.runtime, [Child.path("examples/docs/calling.ts")], {
      encoding: "utf8",
      timeout: 20_000
    })
    assert.deepStrictEqual(
      { status, stdout },
      { status: 0, stdout: "0.25\nrefused: 4000 division by zero\nAda\nexit code 0\n" }
    )
  })
})

describe("docs/mcp.md", () => {
  it.live("has a server with instructions and a tool", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("examples/docs/mcp.ts")
      assert.deepInclude((yield* initialize(child)).result, { instructions: "Use it sparingly." })
      const { result } = yield* child.call("tools/call", { name: "shout", arguments: { text: "hé" } })
      assert.deepInclude(result, { structuredContent: { text: "HÉ" } })
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
    }))

  it.live("has a tool that reports its progress and logs to its client before it answers", () =>
    Effect.gen(function*() {
      const child = yield* Child.node("examples/docs/mcp-tool.ts")
      yield* initialize(child)
      yield* child.call("logging/setLevel", { level: "info" })
      const { result } = yield* child.call("tools/call", {
        name: "count_words",
        arguments: { texts: ["one two", "", " three "] },
        _meta: { progressToken: "p" }
      })
      assert.deepInclude(result, { structuredContent: { words: 3 } })
      const sent = (method: string) => child.messages.filter((message) => message.method === method)
      assert.deepStrictEqual(
        sent("notifications/progress").map(({ params }) => params),
        [1, 2, 3].map((progress) => ({ progressToken: "p", progress, total: 3 }))
      )
      assert.include(JSON.stringify(sent("notifications/message")), "3 words so far")
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, ended)
      assert.include(child.stderr(), "3 words so far")
    }))
})

Child.leavesNothingBehind()

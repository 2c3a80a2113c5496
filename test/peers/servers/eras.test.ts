/**
 * Two implementations of MCP servers that stand apart, in the eras that both serve.
 */
import { assert, describe, it } from "@effect/vitest"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Child from "../../utils/child.ts"
import { connect, follow, hooks, leave, text } from "../../utils/mcpServer.ts"

/** Older revisions have the copy as text only. */
const sumOf = (result: McpSchema.CallToolResult): unknown => result.structuredContent ?? JSON.parse(text(result))

const { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 } = McpProtocol

const servers = [
  {
    name: "the official SDK",
    file: "official.mjs",
    revisions: [v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28],
    isAborted: true,
    logs: true
  },
  // it does not know 2025-11-25
  {
    name: "tmcp",
    file: "tmcp.mjs",
    revisions: [v2024_11_05, v2025_03_26, v2025_06_18, v2026_07_28],
    isAborted: false,
    logs: false
  }
]

for (const { file, isAborted, logs, name, revisions } of servers) {
  it.live(`finds out what a server of ${name} speaks`, () =>
    Effect.gen(function*() {
      const { client, end } = yield* connect([Child.path(`test/peers/servers/${file}`)])
      assert.strictEqual(client.protocolVersion, "2026-07-28")
      assert.deepStrictEqual(yield* end, { ended: { exitCode: 0 }, badInput: 0 })
    }))

  for (const protocol of revisions) {
    const hasElicitation = protocol.protocolVersion >= "2025-06-18"
    const start = () => connect([Child.path(`test/peers/servers/${file}`)], { protocol, hooks, logLevel: "info" })

    describe(`a server of ${name} in ${protocol.protocolVersion}`, () => {
      it.live("lists and calls tools, and ends with its input", () =>
        Effect.gen(function*() {
          const { call, client, end, tools } = yield* start()
          assert.strictEqual(client.serverInfo?.name, file.replace(".mjs", ""))
          assert.sameMembers(tools.map((tool) => tool.name), ["add", "slow", "ask", "sample", "change"])
          assert.deepStrictEqual(sumOf(yield* call("add", { a: 1, b: 2 })), { sum: 3 })
          const sums = yield* Effect.forEach(
            Array.from({ length: 50 }, (_, a) => a),
            (a) => Effect.map(call("add", { a, b: 1 }), sumOf),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(sums, sums.map((_, a) => ({ sum: a + 1 })))
          assert.deepStrictEqual(yield* end, { ended: { exitCode: 0 }, badInput: 0 })
        }))

      it.live("asks the user and the model", () =>
        Effect.gen(function*() {
          const { call } = yield* start()
          if (hasElicitation) {
            assert.strictEqual(text(yield* call("ask", { question: "Sure?" })), "The user said: yes")
            assert.strictEqual(text(yield* call("ask", { question: "Refuse?" })), "The user said nothing")
          }
          assert.strictEqual(text(yield* call("sample", { text: "Hello" })), "The model said: 1 message")
        }))

      it.live("reports how far a tool is", () =>
        Effect.gen(function*() {
          const { connection } = yield* start()
          const { reports, results } = yield* follow(connection, "slow")
          assert.deepStrictEqual(reports, Array.from({ length: 20 }, (_, step) => step + 1))
          assert.deepStrictEqual(results, ["slow is done"])
        }))

      it.live("hears that a call is not wanted any more", () =>
        Effect.gen(function*() {
          const { call, child, connection } = yield* start()
          const aborted = yield* Effect.forkChild(
            Stream.runHead(Stream.filter(child.stderr, (line) => line.includes("aborted"))),
            { startImmediately: true }
          )
          yield* leave(connection, "slow")
          assert.deepStrictEqual(sumOf(yield* call("add", { a: 1, b: 2 })), { sum: 3 })
          if (isAborted) {
            yield* Effect.timeout(Fiber.join(aborted), "10 seconds")
          }
        }))

      it.live("tells that its tools have changed", () =>
        Effect.gen(function*() {
          const { call, client, connection } = yield* start()
          yield* connection.watch({ tools: true })
          const heard = yield* connection.subscribe({
            methods: ["notifications/tools/list_changed", "notifications/message"]
          })
          yield* call("change")
          const events = yield* Stream.runCollect(Stream.take(heard, logs ? 2 : 1))
          assert.include(events.map(({ method }) => method), "notifications/tools/list_changed")
          assert.include((yield* client.listTools()).map((tool) => tool.name), "new")
        }))
    })
  }
}

Child.leavesNothingBehind()

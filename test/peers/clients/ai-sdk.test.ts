/**
 * The client of the AI SDK, an implementation of its own, which speaks the newest revision unless told otherwise.
 */
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp"
import type { MCPClient, ToolResult } from "@ai-sdk/mcp"
import { StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio"
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Child from "../../utils/child.ts"
import type { Recorded } from "./recording.ts"
import { complaints, EXCEL, PROBE, recorded } from "./recording.ts"

interface Connected {
  readonly client: MCPClient
  readonly errors: ReadonlyArray<unknown>
  readonly recordings: Recorded["recordings"]
}

const connect = (protocolVersionDiscovery: boolean, program: ReadonlyArray<string>): Effect.Effect<
  Connected,
  never,
  Scope.Scope
> =>
  Effect.gen(function*() {
    const { args, command, env, recordings } = yield* recorded(program)
    // the client gives a server a second from its start to say which revisions there are, much less than it takes to
    // start one on a busy machine, unless its transport says that an answer comes
    const transport = Object.assign(new StdioMCPTransport({ command, args, env, stderr: "ignore" }), {
      waitsForProtocolVersionDiscovery: true
    })
    const errors: Array<unknown> = []
    const client = yield* Effect.acquireRelease(
      Effect.promise(() =>
        createMCPClient({
          transport,
          protocolVersionDiscovery,
          capabilities: { elicitation: {} },
          onUncaughtError: (error) => {
            errors.push(error)
          }
        })
      ),
      (client) => Effect.promise(() => client.close())
    )
    return { client, errors, recordings }
  })

class Connection extends Context.Service<
  Connection,
  Connected & {
    readonly call: (name: string, args?: Record<string, unknown>) => Effect.Effect<ToolResult>
  }
>()("effect-stdio/test/peers/clients/Connection") {
  static readonly layer = (protocolVersionDiscovery: boolean) =>
    Layer.effect(
      Connection,
      Effect.map(connect(protocolVersionDiscovery, PROBE), (connected) => {
        connected.client.onElicitationRequest(
          ElicitationRequestSchema,
          ({ params }) =>
            params.message === "Do you refuse?"
              ? { action: "decline" }
              : { action: "accept", content: { answer: `yes to "${params.message}"` } }
        )
        return Connection.of({
          ...connected,
          call: (name, args = {}) => Effect.promise(() => connected.client.callTool({ name, arguments: args }))
        })
      })
    )
}

const text = ({ content = [] }: ToolResult): string => content.map(({ text, type }) => text ?? type).join("\n")

const modes = [
  { name: "by default", discovery: true, version: "2026-07-28" },
  { name: "without discovery", discovery: false, version: "2025-11-25" }
]

for (const { discovery, name, version } of modes) {
  layer(Connection.layer(discovery), { excludeTestServices: true })(`the AI SDK's client ${name}`, (it) => {
    it.effect(`speaks ${version} and knows the server`, () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        assert.strictEqual(client.initializeResult.protocolVersion, version)
        assert.deepInclude(client.serverInfo, { name: "probe", version: "1.0.0" })
        assert.strictEqual(client.instructions, "Each tool shows one behaviour of a server.")
      }))

    it.effect("lists the tools and makes functions of them", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.includeMembers(tools.map((tool) => tool.title), ["Echo", "Add", "Ask"])
        const { add } = yield* Effect.promise(() => client.tools())
        assert.isDefined(add)
        const result = yield* Effect.promise(() => add.execute({ a: 1, b: 2 }, { toolCallId: "1", messages: [] }))
        assert.deepStrictEqual(result.structuredContent, { sum: 3 })
      }))

    it.effect("gets a structured result and its copy as text", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const result = yield* call("add", { a: 0.5, b: 2 })
        assert.deepStrictEqual(result.structuredContent, { sum: 2.5 })
        assert.deepStrictEqual(JSON.parse(text(result)), { sum: 2.5 })
      }))

    it.effect("gets a text back as it was, whatever is in it", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const original = "línea\nzwei\r\n三\u2028\u0000🚆 \"quoted\" \\"
        assert.strictEqual(text(yield* call("echo", { text: original })), original)
      }))

    it.effect("reads in the text of a tool error what is wrong with the arguments", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const result = yield* call("add", { a: "one" })
        assert.isTrue(result.isError)
        assert.match(text(result), /tool 'add'.*Expected number.*\["a"\]/s)
      }))

    it.effect("hears nothing of the cause when a tool crashes, and nothing of what one prints", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const result = yield* call("crash")
        assert.isTrue(result.isError)
        assert.strictEqual(text(result), "Tool execution failed due to an internal server error.")
        assert.deepStrictEqual((yield* call("print", { text: "printed by a tool" })).structuredContent, { printed: 2 })
      }))

    it.effect("lists and reads the resources", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { resources } = yield* Effect.promise(() => client.listResources())
        assert.deepStrictEqual(resources.map(({ uri }) => uri), ["probe://about", "probe://counter"])
        const { contents } = yield* Effect.promise(() => client.readResource({ uri: "probe://about" }))
        assert.deepStrictEqual(contents.map((content) => content.text), ["A server to test MCP clients against."])
      }))

    it.effect("lists, completes and gets a prompt", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { prompts } = yield* Effect.promise(() => client.listPrompts())
        assert.deepStrictEqual(prompts.map((prompt) => prompt.name), ["explain"])
        const { completion } = yield* Effect.promise(() =>
          client.complete({
            ref: { type: "ref/prompt", name: "explain" },
            argument: { name: "topic", value: "fram" }
          })
        )
        assert.deepStrictEqual(completion.values, ["frames", "framing"])
        const { messages } = yield* Effect.promise(() =>
          client.getPrompt({ name: "explain", arguments: { topic: "pipes" } })
        )
        assert.deepStrictEqual(messages, [
          { role: "user", content: { type: "text", text: "Explain pipes in one sentence." } }
        ])
      }))

    it.effect("answers for the user, who may also decline", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        assert.strictEqual(text(yield* call("ask", { question: "Sure?" })), "The user said: yes to \"Sure?\"")
        assert.strictEqual(text(yield* call("ask", { question: "Do you refuse?" })), "The user said nothing")
      }))

    it.effect("reads a page of the Excel example, and why a file cannot be read", () =>
      Effect.gen(function*() {
        const { client } = yield* connect(discovery, EXCEL)
        const { structuredContent } = yield* Effect.promise(() =>
          client.callTool({
            name: "read_sheet",
            arguments: { file: "budget.xlsx", sheet: "Ausgaben 支出", range: "B5:D5" }
          })
        )
        assert.deepNestedInclude(structuredContent, {
          "rows[0].cells": ["Zugfahrt Köln–Zürich 🚆", "Reisen 旅費", 148.5]
        })
        const failed = yield* Effect.promise(() =>
          client.callTool({ name: "list_sheets", arguments: { file: "nothing.xlsx" } })
        )
        assert.isTrue(failed.isError)
        assert.include(text(failed), "There is no file \"nothing.xlsx\"")
      }))

    it.effect("closes by a signal: the server ends with 0, and each request has had its reply", () =>
      Effect.gen(function*() {
        const { client, errors, recordings } = yield* Connection
        yield* Effect.promise(() => client.close())
        assert.deepStrictEqual(errors, [])
        const [conversation] = yield* recordings(1)
        assert.isDefined(conversation)
        assert.deepStrictEqual(conversation.ended, { code: 0, signal: null, terminated: true })
        assert.deepStrictEqual(complaints(conversation), [])
        assert.notInclude(JSON.stringify(conversation.fromServer), "the secret is 42")
      }))
  })
}

Child.leavesNothingBehind()

/**
 * The client of the protocol's authors, in each of its modes, on the MCP probe and on the Excel example.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import type { ClientCapabilities, Notification, VersionNegotiationMode } from "@modelcontextprotocol/client"
import { Client, ProtocolError } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Child from "../../utils/child.ts"
import type { Recorded } from "./recording.ts"
import { cancelled, complaints, EXCEL, PROBE, recorded } from "./recording.ts"

const COUNTER = "probe://counter"

interface Connected {
  readonly client: Client
  /** What the client found wrong with the connection. */
  readonly errors: ReadonlyArray<Error>
  /** The notifications it got, in their order. */
  readonly notified: Queue.Queue<Notification>
  readonly recordings: Recorded["recordings"]
}

const connect = (
  mode: VersionNegotiationMode,
  program: ReadonlyArray<string>,
  capabilities: ClientCapabilities,
  revisions?: Array<string>
): Effect.Effect<Connected, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { args, command, env, recordings } = yield* recorded(program)
    const transport = new StdioClientTransport({ command, args: [...args], env, stderr: "ignore" })
    const client = new Client({ name: "test", version: "1.0.0" }, {
      capabilities,
      versionNegotiation: { mode },
      ...(revisions === undefined ? {} : { supportedProtocolVersions: revisions })
    })
    const errors: Array<Error> = []
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no other way
    client.onerror = (error) => {
      errors.push(error)
    }
    const notified = yield* Queue.unbounded<Notification>()
    client.fallbackNotificationHandler = (notification) => {
      Queue.offerUnsafe(notified, notification)
      return Promise.resolve()
    }
    yield* Effect.acquireRelease(
      Effect.promise(() => client.connect(transport)),
      () => Effect.promise(() => client.close())
    )
    // of messages that came in one piece the client sees the reply first, and then the progress of what is over
    const deliver = transport.onmessage
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- nor has the transport
    transport.onmessage = (message) => {
      setImmediate(() => deliver?.(message))
    }
    return { client, errors, notified, recordings }
  })

/** The user and the model behind the client: they say the same every time. */
const answering = (client: Client) => {
  client.setRequestHandler("elicitation/create", ({ params }) =>
    params.message === "Do you refuse?"
      ? { action: "decline" }
      : { action: "accept", content: { answer: `yes to "${params.message}"` } })
  client.setRequestHandler("sampling/createMessage", ({ params }) => ({
    role: "assistant",
    model: "none",
    content: { type: "text", text: `heard ${JSON.stringify(params.messages.map(({ content }) => content))}` }
  }))
}

class Connection extends Context.Service<
  Connection,
  Connected & {
    readonly call: (name: string, args?: Record<string, unknown>) => Effect.Effect<Result>
  }
>()("effect-stdio/test/peers/clients/Connection") {
  static readonly layer = (mode: VersionNegotiationMode) =>
    Layer.effect(
      Connection,
      Effect.map(connect(mode, PROBE, { elicitation: { form: {} }, sampling: {} }), (connected) => {
        answering(connected.client)
        return Connection.of({
          ...connected,
          call: (name, args = {}) => Effect.promise(() => connected.client.callTool({ name, arguments: args }))
        })
      })
    )
}

type Result = Awaited<ReturnType<Client["callTool"]>>

const text = ({ content }: Pick<Result, "content">): string =>
  content.map((block) => block.type === "text" ? block.text : block.type).join("\n")

/** The error of a promise that is rejected. */
const rejection = (run: () => Promise<unknown>): Effect.Effect<unknown> =>
  Effect.flip(Effect.tryPromise({ try: run, catch: (error) => error })).pipe(
    Effect.catch((value) => Effect.die(new Error(`not rejected: ${JSON.stringify(value)}`)))
  )

const modes: ReadonlyArray<{
  readonly name: string
  readonly mode: VersionNegotiationMode
  readonly version: string
  readonly isModern: boolean
}> = [
  { name: "legacy mode", mode: "legacy", version: "2025-11-25", isModern: false },
  { name: "auto mode", mode: "auto", version: "2026-07-28", isModern: true },
  { name: "a mode pinned to 2026-07-28", mode: { pin: "2026-07-28" }, version: "2026-07-28", isModern: true }
]

for (const { isModern, mode, name, version } of modes) {
  layer(Connection.layer(mode), { excludeTestServices: true })(`the official client in ${name}`, (it) => {
    it.effect(`speaks ${version} and knows the server`, () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        assert.strictEqual(client.getNegotiatedProtocolVersion(), version)
        assert.deepInclude(client.getServerVersion(), { name: "probe", version: "1.0.0" })
        assert.strictEqual(client.getInstructions(), "Each tool shows one behaviour of a server.")
      }))

    it.effect("lists the tools with their titles and hints", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.sameMembers(
          tools.map((tool) => tool.name),
          ["echo", "add", "sleep", "count", "print", "crash", "log", "touch", "ask", "sample"]
        )
        for (const { annotations, description, title } of tools) {
          assert.isString(title)
          assert.isString(description)
          assert.strictEqual(annotations?.destructiveHint, false)
        }
        assert.deepNestedInclude(tools.find((tool) => tool.name === "add"), {
          "title": "Add",
          "inputSchema.required": ["a", "b"],
          "outputSchema.required": ["sum"]
        })
      }))

    it.effect("gets a text back as it was, whatever is in it", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const original = "línea\nzwei\r\n三\u2028\u0000🚆 \"quoted\" \\"
        const result = yield* call("echo", { text: original })
        assert.isNotTrue(result.isError)
        assert.strictEqual(text(result), original)
      }))

    it.effect("gets a text of a million characters back", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const original = "三 words ".repeat(125_000)
        assert.isTrue(text(yield* call("echo", { text: original })) === original)
      }))

    it.effect("gets a structured result and its copy as text", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const result = yield* call("add", { a: 0.5, b: 2 })
        assert.deepStrictEqual(result.structuredContent, { sum: 2.5 })
        assert.deepStrictEqual(JSON.parse(text(result)), { sum: 2.5 })
      }))

    it.effect("gets the replies to a hundred calls at once, each to its own", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const numbers = Array.from({ length: 100 }, (_, index) => index)
        const results = yield* Effect.forEach(numbers, (a) => call("add", { a, b: 1 }), { concurrency: "unbounded" })
        assert.deepStrictEqual(
          results.map(({ structuredContent }) => structuredContent),
          numbers.map((a) => ({ sum: a + 1 }))
        )
      }))

    it.effect("reads in the text of a tool error what is wrong with the arguments", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const result = yield* call("add", { a: "one" })
        assert.isTrue(result.isError)
        assert.match(text(result), /tool 'add'.*Expected number.*\["a"\].*Missing key.*\["b"\]/s)
      }))

    it.effect("gets a protocol error for a tool that is not there", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const error = yield* rejection(() => client.callTool({ name: "nothing", arguments: {} }))
        assert.instanceOf(error, ProtocolError)
        assert.strictEqual(error.code, -32602)
      }))

    it.effect("hears nothing of the cause when a tool crashes, and can go on", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const result = yield* call("crash")
        assert.isTrue(result.isError)
        assert.strictEqual(text(result), "Tool execution failed due to an internal server error.")
        assert.strictEqual(text(yield* call("echo", { text: "still here" })), "still here")
      }))

    it.effect("sees nothing of what a tool prints", () =>
      Effect.gen(function*() {
        const { call, errors } = yield* Connection
        const { structuredContent } = yield* call("print", { text: "printed by a tool" })
        assert.deepStrictEqual(structuredContent, { printed: 2 })
        assert.deepStrictEqual(errors, [])
      }))

    it.effect("lists and reads the resources", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { resources } = yield* Effect.promise(() => client.listResources())
        assert.deepStrictEqual(
          resources.map(({ mimeType, uri }) => ({ mimeType, uri })),
          [{ uri: "probe://about", mimeType: "text/plain" }, { uri: COUNTER, mimeType: "application/json" }]
        )
        const { contents } = yield* Effect.promise(() => client.readResource({ uri: "probe://about" }))
        assert.deepStrictEqual(contents, [
          { uri: "probe://about", mimeType: "text/plain", text: "A server to test MCP clients against." }
        ])
      }))

    it.effect("gets an error for a resource that is not there", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const error = yield* rejection(() => client.readResource({ uri: "probe://nothing" }))
        assert.instanceOf(error, ProtocolError)
        assert.strictEqual(error.code, isModern ? -32602 : -32002)
      }))

    it.effect("lists, completes and gets a prompt", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { prompts } = yield* Effect.promise(() => client.listPrompts())
        assert.deepStrictEqual(prompts.map((prompt) => ({ name: prompt.name, arguments: prompt.arguments })), [
          { name: "explain", arguments: [{ name: "topic", description: "What to explain", required: true }] }
        ])
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

    it.effect("follows the progress of a call to its end", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const reports: Array<unknown> = []
        const { structuredContent } = yield* Effect.promise(() =>
          client.callTool({ name: "count", arguments: { to: 3 } }, { onprogress: (progress) => reports.push(progress) })
        )
        assert.deepStrictEqual(structuredContent, { counted: 3 })
        assert.deepStrictEqual(reports, [
          { progress: 1, total: 3, message: "1 of 3" },
          { progress: 2, total: 3, message: "2 of 3" },
          { progress: 3, total: 3, message: "3 of 3" }
        ])
      }))

    it.effect("cancels a call: the tool is interrupted", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const controller = new AbortController()
        yield* rejection(() =>
          client.callTool({ name: "sleep", arguments: { ms: 3_600_000 } }, {
            signal: controller.signal,
            // it runs
            onprogress: () => controller.abort()
          })
        )
        const interrupted = Effect.promise(async () => {
          const { contents: [content] } = await client.readResource({ uri: COUNTER })
          const counter: unknown = JSON.parse(content !== undefined && "text" in content ? content.text : "{}")
          return (counter as { readonly interrupted?: unknown }).interrupted === 1
        })
        assert.isTrue(
          yield* Effect.repeat(interrupted, { until: (is) => is }).pipe(
            Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => Effect.succeed(false) })
          )
        )
      }))

    it.effect("answers for the user, who may also decline", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        assert.strictEqual(
          text(yield* call("ask", { question: "Sure?" })),
          "The user said: yes to \"Sure?\""
        )
        assert.strictEqual(text(yield* call("ask", { question: "Do you refuse?" })), "The user said nothing")
      }))

    it.effect("answers for the model", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        assert.strictEqual(
          text(yield* call("sample", { text: "hello" })),
          "The model said: heard [{\"type\":\"text\",\"text\":\"hello\"}]"
        )
      }))

    it.effect("gets the log messages of the level it asks for and above", () =>
      Effect.gen(function*() {
        const { client, notified } = yield* Connection
        // as the protocol asks: once for a session, in each request without one
        const _meta = isModern ? { "io.modelcontextprotocol/logLevel": "warning" } : {}
        if (!isModern) yield* Effect.promise(() => client.setLoggingLevel("warning"))
        for (const level of ["info", "warning", "error"]) {
          yield* Effect.promise(() => client.callTool({ name: "log", arguments: { level, text: level }, _meta }))
        }
        const messages = yield* Queue.takeN(notified, 2)
        assert.deepStrictEqual(messages.map(({ params }) => params?.["data"]), ["warning", "error"])
        assert.strictEqual(yield* Queue.size(notified), 0)
      }))

    if (isModern) {
      it.effect("listens: it hears of what it asked for, and of nothing after it closes the subscription", () =>
        Effect.gen(function*() {
          const { call, client, notified } = yield* Connection
          const subscription = yield* Effect.promise(() =>
            client.listen({ toolsListChanged: true, resourceSubscriptions: [COUNTER] })
          )
          assert.deepStrictEqual(subscription.honoredFilter, {
            toolsListChanged: true,
            resourceSubscriptions: [COUNTER]
          })
          yield* call("touch")
          yield* call("touch", { list: "prompts" })
          yield* call("touch", { list: "tools" })
          const heard = yield* Queue.takeN(notified, 2)
          assert.deepStrictEqual(heard.map(({ method }) => method), [
            "notifications/resources/updated",
            "notifications/tools/list_changed"
          ])
          assert.deepInclude(heard[0]?.params, { uri: COUNTER })
          yield* Effect.promise(() => subscription.close())
          assert.strictEqual(yield* Effect.promise(() => subscription.closed), "local")
          yield* call("touch")
          assert.strictEqual(yield* Queue.size(notified), 0)
        }))
    } else {
      it.effect("subscribes: it hears of the resource until it unsubscribes, and of all lists", () =>
        Effect.gen(function*() {
          const { call, client, notified } = yield* Connection
          yield* call("touch")
          yield* Effect.promise(() => client.subscribeResource({ uri: COUNTER }))
          yield* call("touch")
          yield* Effect.promise(() => client.unsubscribeResource({ uri: COUNTER }))
          yield* call("touch")
          const lists = ["tools", "resources", "prompts"]
          for (const list of lists) yield* call("touch", { list })
          const heard = yield* Queue.takeN(notified, 4)
          assert.deepStrictEqual(heard.map(({ method }) => method), [
            "notifications/resources/updated",
            ...lists.map((list) => `notifications/${list}/list_changed`)
          ])
          assert.deepInclude(heard[0]?.params, { uri: COUNTER })
          assert.strictEqual(yield* Queue.size(notified), 0)
        }))
    }

    it.effect("is not asked what it cannot answer", () =>
      Effect.gen(function*() {
        const { client } = yield* connect(mode, PROBE, {})
        const ask = () => client.callTool({ name: "ask", arguments: { question: "Sure?" } })
        if (isModern) {
          const error = yield* rejection(ask)
          assert.instanceOf(error, ProtocolError)
          assert.strictEqual(error.code, -32021)
        } else {
          const result = yield* Effect.promise(ask)
          assert.isTrue(result.isError)
          assert.match(text(result), /elicitation/)
        }
      }))

    it.effect("reads a page of the Excel example, and why a file cannot be read", () =>
      Effect.gen(function*() {
        const { client } = yield* connect(mode, EXCEL, {})
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

    it.effect("closes while a call runs and a subscription is open: the call is answered, the subscription ended", () =>
      Effect.gen(function*() {
        const { client, errors } = yield* Connection
        const subscription = isModern
          ? yield* Effect.promise(() => client.listen({ promptsListChanged: true }))
          : undefined
        const runs = yield* Deferred.make<void>()
        const call = client.callTool({ name: "sleep", arguments: { ms: 100 } }, {
          onprogress: () => Deferred.doneUnsafe(runs, Exit.void)
        })
        yield* Deferred.await(runs)
        yield* Effect.promise(() => client.close())
        assert.deepStrictEqual((yield* Effect.promise(() => call)).structuredContent, { slept: 100 })
        if (subscription !== undefined) {
          assert.strictEqual(yield* Effect.promise(() => subscription.closed), "graceful")
        }
        assert.deepStrictEqual(errors, [])
      }))

    it.effect("leaves a server that has ended with 0 by itself and replied to each request, to cancelled ones not", () =>
      Effect.gen(function*() {
        const { recordings } = yield* Connection
        // before it speaks a new revision the client asks a server of its own, which it ends by a signal, what it speaks
        const servers = yield* recordings(isModern ? 2 : 1)
        const conversation = servers.at(-1)
        assert.deepStrictEqual(
          servers.map(({ ended }) => ended),
          [
            ...(isModern ? [{ code: 0, signal: null, terminated: true }] : []),
            { code: 0, signal: null, terminated: false }
          ]
        )
        assert.deepStrictEqual(servers.flatMap(complaints), [])
        assert.isDefined(conversation)
        assert.strictEqual(cancelled(conversation, "tools/call").length, 1)
        const { fromServer, stderr } = conversation
        assert.notInclude(JSON.stringify(fromServer), "the secret is 42")
        assert.include(stderr, "the secret is 42")
        assert.strictEqual(stderr.split("printed by a tool").length - 1, 2)
      }))
  })
}

describe("the official client that knows only an older revision", () => {
  for (const version of ["2024-11-05", "2025-03-26", "2025-06-18"]) {
    it.live(`speaks ${version}`, () =>
      Effect.gen(function*() {
        const { client, errors, recordings } = yield* connect("legacy", PROBE, { elicitation: {} }, [version])
        assert.strictEqual(client.getNegotiatedProtocolVersion(), version)
        yield* Effect.promise(() => client.ping())
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.include(tools.map((tool) => tool.name), "add")
        const sum = yield* Effect.promise(() => client.callTool({ name: "add", arguments: { a: 1, b: 2 } }))
        assert.deepStrictEqual(JSON.parse(text(sum)), { sum: 3 })
        // wrong arguments are a tool error from 2025-11-25 on
        const error = yield* rejection(() => client.callTool({ name: "add", arguments: {} }))
        assert.instanceOf(error, ProtocolError)
        assert.strictEqual(error.code, -32602)
        const { contents } = yield* Effect.promise(() => client.readResource({ uri: "probe://about" }))
        assert.strictEqual(contents.length, 1)
        yield* Effect.promise(() => client.close())
        const [conversation] = yield* recordings(1)
        assert.isDefined(conversation)
        assert.deepStrictEqual(conversation.ended, { code: 0, signal: null, terminated: false })
        assert.deepStrictEqual(complaints(conversation), [])
        assert.deepStrictEqual(errors, [])
      }).pipe(Effect.scoped))
  }
})

Child.leavesNothingBehind()

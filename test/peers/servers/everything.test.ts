/**
 * The reference servers, on the first version of the official SDK.
 */
import { assert, describe, it } from "@effect/vitest"
import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as Child from "../../utils/child.ts"
import type { Roots } from "../../utils/mcpServer.ts"
import { connect, follow, hooks, leave, text } from "../../utils/mcpServer.ts"

const installed = (path: string) => Child.path(`test/peers/servers/node_modules/@modelcontextprotocol/${path}`)
const EVERYTHING = [installed("server-everything/dist/index.js"), "stdio"]
const FILESYSTEM = installed("server-filesystem/dist/index.js")

describe("server-everything", () => {
  it.live("is spoken to in 2025-11-25, lists and calls tools, and ends with its input", () =>
    Effect.gen(function*() {
      const { call, client, end, tools } = yield* connect(EVERYTHING)
      assert.strictEqual(client.protocolVersion, "2025-11-25")
      assert.isAbove(tools.length, 10)
      assert.strictEqual(text(yield* call("echo", { message: "línea 🚆" })), "Echo: línea 🚆")
      assert.include(text(yield* call("get-sum", { a: 1, b: 2 })), "3")
      const { structuredContent } = yield* call("get-structured-content", { location: "Chicago" })
      assert.hasAllKeys(structuredContent, ["temperature", "conditions", "humidity"])
      assert.deepInclude((yield* call("get-tiny-image")).content[1], { type: "image", mimeType: "image/png" })
      assert.deepStrictEqual(yield* end, { ended: { exitCode: 0 }, badInput: 0 })
    }))

  it.live("lists prompts and resources, and completes", () =>
    Effect.gen(function*() {
      const { client, connection } = yield* connect(EVERYTHING)
      const prompts = yield* client.listPrompts()
      const prompt = prompts.find(({ name }) => name === "args-prompt")
      assert.isDefined(prompt)
      const { messages } = yield* client.getPrompt({ prompt, arguments: { city: "Chicago" } })
      assert.include(JSON.stringify(messages), "Chicago")
      const [resource] = yield* client.listResources()
      assert.isDefined(resource)
      assert.strictEqual((yield* client.readResource({ uri: resource.uri })).contents.length, 1)
      const templates = yield* connection.request(McpSchema.ListResourceTemplates, undefined)
      assert.isAbove(templates.resourceTemplates.length, 0)
      const { completion } = yield* connection.request(McpSchema.Complete, {
        ref: { type: "ref/prompt", name: "completable-prompt" },
        argument: { name: "department", value: "E" }
      })
      assert.deepStrictEqual(completion.values, ["Engineering"])
    }))

  it.live("reports how far it is", () =>
    Effect.gen(function*() {
      const { connection } = yield* connect(EVERYTHING)
      const { reports, results } = yield* follow(connection, "trigger-long-running-operation", {
        duration: 0.5,
        steps: 5
      })
      assert.deepStrictEqual(reports, [1, 2, 3, 4, 5])
      assert.deepStrictEqual(results, ["Long running operation completed. Duration: 0.5 seconds, Steps: 5."])
    }))

  it.live("answers nothing to a call that is not wanted any more", () =>
    Effect.gen(function*() {
      const { connection } = yield* connect(EVERYTHING)
      yield* leave(connection, "trigger-long-running-operation", { duration: 0.4, steps: 4 })
      // by the end of this one the other would have been answered
      yield* follow(connection, "trigger-long-running-operation", { duration: 0.8, steps: 2 })
      const { strayResponses } = yield* Effect.flatMap(connection.peer, (peer) => peer.stats)
      assert.strictEqual(strayResponses, 0)
    }))

  it.live("asks the user, the model, and for the roots, which may change", () =>
    Effect.gen(function*() {
      let roots: Roots = [{ uri: "file:///one", name: "one" }]
      const { call, connection } = yield* connect(EVERYTHING, {
        hooks: {
          ...hooks,
          elicit: ({ requestedSchema }) =>
            Effect.succeed({
              action: "accept",
              content: { name: Object.keys(requestedSchema.properties).length.toString(), check: true }
            }),
          elicitUrl: () => Effect.succeed({ action: "accept" }),
          listRoots: Effect.sync(() => roots)
        }
      })
      const form = text(yield* call("trigger-elicitation-request"))
      assert.include(form, "- Name: 13")
      assert.include(form, "- Agreed to terms: true")
      assert.include(text(yield* call("trigger-sampling-request", { prompt: "Hello" })), "1 message")
      assert.include(text(yield* call("get-roots-list")), "file:///one")
      const heard = yield* connection.subscribe({ methods: ["notifications/message"] })
      roots = [{ uri: "file:///two" }]
      yield* connection.rootsChanged
      const [log] = yield* Stream.runCollect(Stream.take(heard, 1))
      assert.deepInclude(log?.params, { data: "Roots updated: 1 root(s) received from client" })
      assert.include(text(yield* call("get-roots-list")), "file:///two")
    }))

  it.live("tells of resources that are watched, and logs from the level that is asked for", () =>
    Effect.gen(function*() {
      const { call, client, connection } = yield* connect(EVERYTHING, { logLevel: "debug" })
      const [resource] = yield* client.listResources()
      assert.isDefined(resource)
      const updates = yield* connection.subscribe({ methods: ["notifications/resources/updated"] })
      const logs = yield* connection.subscribe({ methods: ["notifications/message"] })
      yield* connection.watch({ uris: [resource.uri] })
      yield* call("toggle-subscriber-updates")
      yield* call("toggle-simulated-logging")
      const [update] = yield* Stream.runCollect(Stream.take(updates, 1))
      assert.deepInclude(update?.params, { uri: resource.uri })
      assert.strictEqual((yield* Stream.runCollect(Stream.take(logs, 1))).length, 1)
    }))
})

describe("server-filesystem", () => {
  it.live("reads and writes below the folders it is given, and ends with its input", () =>
    Effect.gen(function*() {
      const folder = realpathSync(yield* Child.temporaryFolder)
      writeFileSync(join(folder, "a.txt"), "línea\n🚆\n")
      const { call, client, end } = yield* connect([FILESYSTEM, folder])
      assert.strictEqual(client.protocolVersion, "2025-11-25")
      assert.strictEqual(text(yield* call("read_text_file", { path: join(folder, "a.txt") })), "línea\n🚆\n")
      const large = "x".repeat(2_000_000)
      yield* call("write_file", { path: join(folder, "b.txt"), content: large })
      assert.strictEqual(readFileSync(join(folder, "b.txt"), "utf8").length, large.length)
      assert.strictEqual(text(yield* call("read_text_file", { path: join(folder, "b.txt") })).length, large.length)
      const refused = yield* call("read_text_file", { path: "/etc/hostname" })
      assert.isTrue(refused.isError)
      assert.include(text(refused), "Access denied")
      assert.deepStrictEqual(yield* end, { ended: { exitCode: 0 }, badInput: 0 })
    }))

  it.live("works in the roots that its client names", () =>
    Effect.gen(function*() {
      const folder = realpathSync(yield* Child.temporaryFolder)
      mkdirSync(join(folder, "one"))
      mkdirSync(join(folder, "two"))
      let root = "one"
      const { call, child, connection } = yield* connect([FILESYSTEM, folder], {
        hooks: { listRoots: Effect.sync(() => [{ uri: pathToFileURL(join(folder, root)).href }]) }
      })
      const allowed = (name: string) =>
        Effect.repeat(Effect.map(call("list_allowed_directories"), text), {
          until: (list) => list.includes(join(folder, name))
        }).pipe(Effect.timeout("10 seconds"))
      yield* allowed("one")
      root = "two"
      yield* connection.rootsChanged
      assert.notInclude(yield* allowed("two"), join(folder, "one"))
      assert.include(yield* child.stderrTail, "Updated allowed directories")
    }))
})

Child.leavesNothingBehind()

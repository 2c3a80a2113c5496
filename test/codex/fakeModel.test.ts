/**
 * The real Codex app server before a fake model, in its raw protocol: what each scenario makes it say.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import { existsSync, readFileSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import { request as httpRequest } from "node:http"
import { join } from "node:path"
import * as Child from "../utils/child.ts"
import * as FakeModel from "./fakeModel.ts"
import { at, open, text } from "./raw.ts"
import * as Scenarios from "./scenarios.ts"
import { USAGE } from "./sse.ts"

const APPROVAL = "item/commandExecution/requestApproval"

/** The text of the deltas of a method. */
const deltas = (notifications: ReadonlyArray<unknown>) => notifications.map((params) => at(params, "delta"))

/** The items of a type, as they were when they were completed. */
const completed = (notifications: ReadonlyArray<unknown>, type: string) =>
  notifications.map((params) => at(params, "item")).filter((item) => at(item, "type") === type)

/** Tells the status of HTTP that a path has. */
const status = (url: string, method: "GET" | "POST", body = "") =>
  Effect.callback<number | undefined>((resume) => {
    const sent = httpRequest(url, { method, agent: false }, (response) => {
      response.resume()
      resume(Effect.succeed(response.statusCode))
    })
    sent.on("error", (error) => resume(Effect.die(error))).end(body)
    return Effect.sync(() => sent.destroy())
  })

/** The answer to a request that a model can read, once it has begun; it is left with the scope. */
const begun = (url: string) =>
  Effect.acquireRelease(
    Effect.callback<IncomingMessage>((resume) => {
      httpRequest(`${url}/responses`, { method: "POST", agent: false }, (response) => resume(Effect.succeed(response)))
        .on("error", (error) => resume(Effect.die(error)))
        .end(JSON.stringify({ model: "any", stream: true, input: [] }))
    }),
    (response) => Effect.sync(() => response.destroy())
  )

/** What is said when a response ends before its end. */
const brokenOff = (response: IncomingMessage) =>
  Effect.sync(() => {
    const broken = Deferred.makeUnsafe<string>()
    response
      .on("error", ({ message }) => Deferred.doneUnsafe(broken, Effect.succeed(message)))
      .on("end", () => Deferred.doneUnsafe(broken, Effect.succeed("ended in order")))
      .resume()
    return broken
  })

/** The tools that a model is offered; those of a namespace with it before them. */
const offered = (request: FakeModel.ModelRequest | undefined) =>
  (request?.tools ?? []).map(({ name, namespace }) => namespace === undefined ? name : `${namespace}/${name}`)

describe("a fake model", () => {
  it.live("has no more than the paths that codex asks for", () =>
    Effect.gen(function*() {
      const model = yield* FakeModel.make(Scenarios.hello)
      assert.strictEqual(yield* status(`${model.url}/models?client_version=1`, "GET"), 200)
      assert.strictEqual(yield* status(`${model.url}/elsewhere`, "GET"), 404)
      assert.strictEqual(yield* status(`${model.url}/responses`, "GET"), 404)
    }))

  it.live("refuses a request that it cannot read", () =>
    Effect.gen(function*() {
      const model = yield* FakeModel.make(Scenarios.hello)
      assert.strictEqual(yield* status(`${model.url}/responses`, "POST", "no JSON"), 400)
      assert.strictEqual(
        yield* status(`${model.url}/responses`, "POST", JSON.stringify({ model: "m", input: [] })),
        400
      )
      assert.deepStrictEqual(model.requests, [])
    }))

  it.live("breaks off an answer that is cut, after what stands before the cut", () =>
    Effect.gen(function*() {
      const model = yield* FakeModel.make(Scenarios.cut(["half"]))
      const response = yield* begun(model.url)
      let received = ""
      const broken = yield* brokenOff(response.on("data", (chunk: Uint8Array) => {
        received += new TextDecoder().decode(chunk)
      }))
      assert.strictEqual(yield* Deferred.await(broken), "aborted")
      assert.include(received, `"delta":"half"`)
    }))

  it.live("breaks off what it has begun when its scope closes", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const model = yield* Scope.provide(FakeModel.make(Scenarios.gated(Effect.never, ["never"])), scope)
      const response = yield* begun(model.url)
      const broken = yield* brokenOff(response)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* Deferred.await(broken), "aborted")
    }))
})

describe("codex app-server", () => {
  it.live("tells five deltas and the end of the turn", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.hello)
      const threadId = yield* codex.startThread()
      const turn = yield* codex.runTurn(threadId, { input: [{ type: "text", text: "Good morning" }] })
      assert.strictEqual(at(turn, "status"), "completed")
      assert.deepStrictEqual(deltas(codex.all("item/agentMessage/delta")), ["Hello", ", ", "größe", " – ", "🐢"])
      assert.strictEqual(at(turn, "items", 0, "text"), "Hello, größe – 🐢")
      const usage = at(codex.all("thread/tokenUsage/updated")[0], "tokenUsage", "last")
      assert.strictEqual(at(usage, "totalTokens"), USAGE.total_tokens)
      const [asked] = codex.model.requests
      assert.strictEqual(codex.model.requests.length, 1)
      assert.strictEqual(asked?.text, "Good morning")
      assert.include(offered(asked), "exec_command")
      yield* codex.end
    }))

  it.live("asks before it runs a command, and gives the model what the command said", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.command("touch made; echo done"), {
        answers: { [APPROVAL]: () => Effect.succeed({ decision: "accept" }) }
      })
      const threadId = yield* codex.startThread({ approvalPolicy: "untrusted" })
      const turn = yield* codex.runTurn(threadId)
      assert.strictEqual(at(turn, "status"), "completed")
      const asked = codex.heard.filter(({ method }) => method === APPROVAL)
      assert.strictEqual(asked.length, 1)
      assert.strictEqual(asked[0]?.id, 0)
      assert.include(text(at(asked[0]?.params, "command")), "touch made; echo done")
      assert.deepStrictEqual(at(yield* codex.next("serverRequest/resolved"), "requestId"), 0)
      const [command] = completed(codex.all("item/completed"), "commandExecution")
      assert.deepInclude(command, { status: "completed", exitCode: 0, aggregatedOutput: "done\n" })
      assert.isTrue(existsSync(join(codex.folder, "made")))
      assert.include(codex.model.requests[1]?.outputs[0]?.text, "done")
      assert.include(text(at(turn, "items", 0, "text")), "done")
      yield* codex.end
    }))

  it.live("does not run what is declined, and lets the model go on", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.command("touch made"), {
        answers: { [APPROVAL]: () => Effect.succeed({ decision: "decline" }) }
      })
      const threadId = yield* codex.startThread({ approvalPolicy: "untrusted" })
      assert.strictEqual(at(yield* codex.runTurn(threadId), "status"), "completed")
      assert.deepInclude(completed(codex.all("item/completed"), "commandExecution")[0], { status: "declined" })
      assert.isFalse(existsSync(join(codex.folder, "made")))
      yield* codex.end
    }))

  it.live("tells each delta as the model says it", () =>
    Effect.gen(function*() {
      const said = yield* Queue.bounded<void>(1)
      const codex = yield* open(Scenarios.gated(Queue.take(said), ["one ", "two ", "three"]))
      const threadId = yield* codex.startThread()
      yield* codex.startTurn(threadId)
      yield* codex.model.request(1)
      for (const delta of ["one ", "two ", "three"]) {
        const from = codex.heard.length
        yield* Queue.offer(said, undefined)
        assert.strictEqual(at(yield* codex.next("item/agentMessage/delta", from), "delta"), delta)
      }
      assert.strictEqual(at(yield* codex.next("turn/completed"), "turn", "status"), "completed")
      yield* codex.end
    }))

  it.live("gives up its request when the turn is interrupted in the middle of a message", () =>
    Effect.gen(function*() {
      const said = yield* Queue.bounded<void>(1)
      const aborted = yield* Deferred.make<void>()
      const gate = Effect.onInterrupt(Queue.take(said), () => Deferred.succeed(aborted, undefined))
      const codex = yield* open(Scenarios.gated(gate, ["one ", "two"]))
      const threadId = yield* codex.startThread()
      const turnId = yield* codex.startTurn(threadId)
      yield* Queue.offer(said, undefined)
      assert.strictEqual(at(yield* codex.next("item/agentMessage/delta"), "delta"), "one ")
      assert.deepStrictEqual(yield* codex.peer.call("turn/interrupt", { threadId, turnId }), {})
      yield* Deferred.await(aborted)
      assert.strictEqual(at(yield* codex.next("turn/completed"), "turn", "status"), "interrupted")
      yield* codex.end
    }))

  it.live("is waited for without an answer until the turn is interrupted", () =>
    Effect.gen(function*() {
      const aborted = yield* Deferred.make<void>()
      const codex = yield* open(Scenarios.silent(aborted))
      const threadId = yield* codex.startThread()
      const turnId = yield* codex.startTurn(threadId)
      yield* codex.next("turn/started")
      yield* codex.model.request(1)
      assert.isFalse(Deferred.isDoneUnsafe(aborted))
      yield* codex.peer.call("turn/interrupt", { threadId, turnId })
      yield* Deferred.await(aborted)
      assert.strictEqual(at(yield* codex.next("turn/completed"), "turn", "status"), "interrupted")
      yield* codex.end
    }))

  it.live("calls the tool of an MCP server", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.mcpTool("adder", "add", { a: 2, b: 3 }), {
        mcpServers: {
          adder: { command: Child.runtime, args: [Child.path("examples/hello/mcp.ts")], env: Child.environment }
        }
      })
      const threadId = yield* codex.startThread()
      const turn = yield* codex.runTurn(threadId)
      assert.strictEqual(at(turn, "status"), "completed")
      assert.include(offered(codex.model.requests[0]), "mcp__adder/add")
      const [item] = completed(codex.all("item/completed"), "mcpToolCall")
      assert.deepInclude(item, { server: "adder", tool: "add", status: "completed", arguments: { a: 2, b: 3 } })
      assert.deepStrictEqual(at(item, "result", "structuredContent"), { sum: 5 })
      assert.include(codex.model.requests[1]?.outputs[0]?.text, "5")
      yield* codex.end
    }))

  it.live("tells the thoughts of the model and their summary", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.reasoning, { showRawReasoning: true })
      yield* codex.runTurn(yield* codex.startThread())
      assert.strictEqual(codex.all("item/reasoning/summaryPartAdded").length, 2)
      const summary = codex.all("item/reasoning/summaryTextDelta")
      assert.strictEqual(deltas(summary).join("|"), "**First** |this|**Then** |that")
      assert.deepStrictEqual(summary.map((params) => at(params, "summaryIndex")), [0, 0, 1, 1])
      assert.strictEqual(deltas(codex.all("item/reasoning/textDelta")).join(""), "what nobody should read")
      const [item] = completed(codex.all("item/completed"), "reasoning")
      assert.deepInclude(item, {
        summary: ["**First** this", "**Then** that"],
        content: ["what nobody should read"]
      })
      assert.deepStrictEqual(deltas(codex.all("item/agentMessage/delta")), ["Forty", "-two"])
      yield* codex.end
    }))

  it.live("tells a plan as an item of its own, beside the message around it", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.plan)
      yield* codex.runTurn(yield* codex.startThread(), planMode)
      assert.strictEqual(deltas(codex.all("item/plan/delta")).join(""), "# Plan\n- first\n- second\n")
      assert.deepInclude(completed(codex.all("item/completed"), "plan")[0], { text: "# Plan\n- first\n- second\n" })
      assert.deepInclude(completed(codex.all("item/completed"), "agentMessage")[0], { text: "Before.\nAfter." })
      yield* codex.end
    }))

  it.live("has a tool of the client called by the same pipe", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.dynamicTool("weather", { city: "Oslo" }), {
        answers: {
          "item/tool/call": (params) =>
            Effect.succeed({
              contentItems: [{ type: "inputText", text: `rain in ${text(at(params, "arguments", "city"))}` }],
              success: true
            })
        }
      })
      const threadId = yield* codex.startThread({
        dynamicTools: [{
          type: "function",
          name: "weather",
          description: "Tells the weather",
          inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
        }]
      })
      assert.strictEqual(at(yield* codex.runTurn(threadId), "status"), "completed")
      assert.deepInclude(codex.all("item/tool/call")[0], { tool: "weather", arguments: { city: "Oslo" } })
      assert.deepInclude(completed(codex.all("item/completed"), "dynamicToolCall")[0], { success: true })
      assert.include(codex.model.requests[1]?.outputs[0]?.text, "rain in Oslo")
      yield* codex.end
    }))

  it.live("asks the user what the model wants to know", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.userInput, {
        answers: {
          "item/tool/requestUserInput": () => Effect.succeed({ answers: { colour: { answers: ["Red"] } } })
        }
      })
      const turn = yield* codex.runTurn(yield* codex.startThread(), planMode)
      assert.strictEqual(at(turn, "status"), "completed")
      const [asked] = codex.all("item/tool/requestUserInput")
      assert.deepInclude(at(asked, "questions", 0), { id: "colour", question: "Which colour do you like?" })
      assert.include(codex.model.requests[1]?.outputs[0]?.text, "Red")
      yield* codex.end
    }))

  it.live("asks for the permissions that the model wants, and gives it those that were granted", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.permissions("/elsewhere"), {
        args: Scenarios.PERMISSIONS_ARGS,
        answers: {
          "item/permissions/requestApproval": () =>
            Effect.succeed({ permissions: { network: { enabled: true } }, scope: "turn" })
        }
      })
      const threadId = yield* codex.startThread({ approvalPolicy: "on-request", sandbox: "read-only" })
      assert.strictEqual(at(yield* codex.runTurn(threadId), "status"), "completed")
      const [asked] = codex.all("item/permissions/requestApproval")
      assert.deepInclude(asked, { threadId, reason: "to fetch it" })
      assert.deepStrictEqual(at(asked, "permissions", "network"), { enabled: true })
      assert.deepStrictEqual(at(asked, "permissions", "fileSystem", "write"), ["/elsewhere"])
      const granted = text(codex.model.requests[1]?.outputs[0]?.text)
      assert.include(granted, `"network":{"enabled":true}`)
      assert.notInclude(granted, "/elsewhere")
      yield* codex.end
    }))

  it.live("asks before it changes a file", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.patch("größe.txt", "12 €"), {
        model: "gpt-5.5",
        answers: { "item/fileChange/requestApproval": () => Effect.succeed({ decision: "accept" }) }
      })
      const threadId = yield* codex.startThread({ approvalPolicy: "untrusted" })
      assert.strictEqual(at(yield* codex.runTurn(threadId), "status"), "completed")
      assert.strictEqual(codex.all("item/fileChange/requestApproval").length, 1)
      const [item] = completed(codex.all("item/completed"), "fileChange")
      assert.strictEqual(at(item, "status"), "completed")
      assert.deepInclude(at(item, "changes", 0), { kind: { type: "add" }, diff: "12 €\n" })
      assert.strictEqual(readFileSync(join(codex.folder, "größe.txt"), "utf8"), "12 €\n")
      yield* codex.end
    }))

  it.live.each([
    // two attempts at the request, in each of two at the stream
    { status: 500, requests: 4, info: "internalServerError" },
    { status: 400, requests: 1, info: "other" },
    { status: 429, requests: 1, info: { responseTooManyFailedAttempts: { httpStatusCode: 429 } } }
  ])("fails the turn when the model answers $status", ({ info, requests, status }) =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.httpError(status))
      const turn = yield* codex.runTurn(yield* codex.startThread())
      assert.strictEqual(at(turn, "status"), "failed")
      assert.deepStrictEqual(at(turn, "error", "codexErrorInfo"), info)
      assert.strictEqual(codex.model.requests.length, requests)
      yield* codex.end
    }))

  it.live("fails the turn when the answer says that it has failed", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.failed("context_length_exceeded"))
      const turn = yield* codex.runTurn(yield* codex.startThread())
      assert.strictEqual(at(turn, "status"), "failed")
      assert.strictEqual(at(turn, "error", "codexErrorInfo"), "contextWindowExceeded")
      yield* codex.end
    }))

  it.live("asks again when an answer breaks off, and tells its text from the beginning", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.cutOnce(["one ", "two ", "three"], 2))
      const turn = yield* codex.runTurn(yield* codex.startThread())
      assert.strictEqual(at(turn, "status"), "completed")
      assert.deepInclude(codex.all("error")[0], { willRetry: true })
      assert.deepStrictEqual(deltas(codex.all("item/agentMessage/delta")), ["one ", "two ", "one ", "two ", "three"])
      assert.strictEqual(at(turn, "items", 0, "text"), "one two three")
      assert.strictEqual(codex.model.requests.length, 2)
      yield* codex.end
    }))

  it.live("gives up when every answer breaks off", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.cut(["half"]))
      const turn = yield* codex.runTurn(yield* codex.startThread())
      assert.strictEqual(at(turn, "status"), "failed")
      assert.deepStrictEqual(codex.all("error").map((params) => at(params, "willRetry")), [true, false])
      yield* codex.end
    }))

  it.live("loses none of many deltas", () =>
    Effect.gen(function*() {
      const codex = yield* open(Scenarios.many(5_000))
      const turn = yield* codex.runTurn(yield* codex.startThread())
      const expected = Array.from({ length: 5_000 }, (_, index) => `${index} `)
      assert.strictEqual(deltas(codex.all("item/agentMessage/delta")).join(""), expected.join(""))
      assert.strictEqual(at(turn, "items", 0, "text"), expected.join(""))
      yield* codex.end
    }))
})

/** Params of a turn in which codex plans and does nothing. */
const planMode = {
  collaborationMode: {
    mode: "plan",
    settings: { model: "fake-model", reasoning_effort: null, developer_instructions: null }
  }
}

Child.leavesNothingBehind()

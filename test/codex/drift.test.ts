/**
 * What the adapter reads and sends, compared with what the installed codex says of its own protocol. When this fails after
 * an update of codex, `src/internal/adapters/codexProtocol.ts` has to be looked at.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Approvals, Decision } from "../../src/Approval.ts"
import * as Codex from "../../src/Codex.ts"
import * as Approval from "../../src/internal/adapters/codexApprovals.ts"
import * as Protocol from "../../src/internal/adapters/codexProtocol.ts"
import { noTool } from "../../src/internal/adapters/codexTools.ts"
import * as Child from "../utils/child.ts"
import { open } from "./agent.ts"
import * as CodexHome from "./codexHome.ts"
import type { Place } from "./jsonSchema.ts"
import { drift, problems } from "./jsonSchema.ts"
import { at, text } from "./raw.ts"
import * as Scenarios from "./scenarios.ts"

const INFO = { approvalId: "0" }

/** The schemas that codex writes of itself, by the names of their files. */
const schemas = (() => {
  const folder = mkdtempSync(join(tmpdir(), "codex-schema-"))
  try {
    execFileSync(CodexHome.binary(), ["app-server", "generate-json-schema", "--out", folder, "--experimental"], {
      env: { ...process.env, ...Child.environment },
      stdio: "ignore"
    })
    const read = (name: string): unknown => {
      const file = ["", "v1", "v2"].map((inner) => join(folder, inner, `${name}.json`)).find((file) => existsSync(file))
      return file === undefined ? undefined : JSON.parse(readFileSync(file, "utf8"))
    }
    const responses = (methods: Place) =>
      namesOf(methods).flatMap((name) => [[name, read(name.replace(/Params$/, "Response"))] as const])
    const [notifications, asked, ours] = ["ServerNotification", "ServerRequest", "ClientRequest"].map((name) => {
      const schema = read(name)
      return { schema, root: schema }
    })
    if (notifications === undefined || asked === undefined || ours === undefined) throw new Error("unreachable")
    return { notifications, asked, ours, responses: new Map([...responses(asked), ...responses(ours)]) }
  } finally {
    rmSync(folder, { recursive: true })
  }
})()

/** One branch for each method. */
function methodsOf({ schema }: Place): ReadonlyArray<unknown> {
  const methods = at(schema, "oneOf")
  return Array.isArray(methods) ? methods : []
}

/** The names of all params. */
function namesOf(place: Place): ReadonlyArray<string> {
  return methodsOf(place).flatMap((method) => nameOf(method) ?? [])
}

function nameOf(method: unknown): string | undefined {
  const reference = at(method, "properties", "params", "$ref")
  return typeof reference === "string" ? reference.split("/").at(-1) : undefined
}

const find = (place: Place, method: string) =>
  methodsOf(place).find((one) => at(one, "properties", "method", "enum", 0) === method)

/** What codex says of the params of a method. */
const paramsOf = (place: Place, method: string): Place => {
  const found = find(place, method)
  assert.isDefined(found, `codex has no ${method} any longer`)
  return { root: place.root, schema: at(found, "properties", "params") }
}

/** What codex says of the response to a method. */
const responseOf = (place: Place, method: string): Place => {
  const schema = schemas.responses.get(nameOf(find(place, method)) ?? "")
  assert.isDefined(schema, `codex has no response to ${method} any longer`)
  return { root: schema, schema }
}

/** What we would read if codex sent it, as it does with other warnings. */
const neverThere = new Set(["configWarning: threadId is gone", "deprecationNotice: threadId is gone"])

const ourSchema = (schema: Schema.Constraint): Place => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema)
  return { schema: root, root: { $defs: definitions } }
}

describe("what codex says of itself", () => {
  it.each(Object.entries(Protocol.notifications))("has all that we read of %s", (method, schema) => {
    const problems = drift(ourSchema(schema), paramsOf(schemas.notifications, method))
    assert.deepStrictEqual(problems.filter((problem) => !neverThere.has(`${method}: ${problem}`)), [])
  })

  it.each(Object.entries(Protocol.serverRequests))("has all that we read of its request %s", (method, schema) => {
    assert.deepStrictEqual(drift(ourSchema(schema), paramsOf(schemas.asked, method)), [])
  })

  it.each(Object.entries(Protocol.results))("has all that we read of the response to %s", (method, schema) => {
    assert.deepStrictEqual(drift(ourSchema(schema), responseOf(schemas.ours, method)), [])
  })

  it.each(Protocol.commands)("has %s", (method) => {
    assert.isDefined(find(schemas.ours, method))
  })

  it.each([...Protocol.ignored])("has %s, which we ignore", (method) => {
    assert.isDefined(find(schemas.notifications, method))
  })

  it("has no request of its own that we do not answer on purpose", () => {
    const methods = methodsOf(schemas.asked).map((method) => text(at(method, "properties", "method", "enum", 0)))
    const options: Approval.Options = { approvals: {}, timeout: "1 second", onFailure: () => Effect.void }
    const unknown = methods.filter((method) =>
      method !== "item/tool/call" && Approval.read(method, {}, options, INFO) === undefined
    )
    // for hosts that log their users in themselves
    assert.deepStrictEqual(unknown.toSorted(), ["account/chatgptAuthTokens/refresh", "attestation/generate"])
  })
})

describe("our answers", () => {
  const about = { threadId: "thread", turnId: "turn", itemId: "item" }
  const decisions: ReadonlyArray<Decision> = ["accept", "acceptForSession", "acceptAlways", "decline", "cancel"]
  const tool = {
    ...about,
    serverName: "s",
    mode: "form",
    message: "m",
    _meta: { codex_approval_kind: "mcp_tool_call" }
  }
  const cases: ReadonlyArray<readonly [method: string, params: object, answers: ReadonlyArray<Approvals>]> = [
    [
      "item/commandExecution/requestApproval",
      { ...about, command: "ls", proposedExecpolicyAmendment: ["ls"] },
      decisions.map((decision) => ({ command: () => Effect.succeed(decision) }))
    ],
    [
      "item/fileChange/requestApproval",
      about,
      decisions.map((decision) => ({ fileChange: () => Effect.succeed(decision) }))
    ],
    [
      "item/permissions/requestApproval",
      { ...about, permissions: { network: { enabled: true } } },
      (["turn", "session"] as const).map((scope) => ({
        permission: () => Effect.succeed({ grant: { network: { enabled: true } }, scope })
      }))
    ],
    [
      "item/tool/requestUserInput",
      { ...about, questions: [{ id: "q", question: "?" }] },
      [{ questions: () => Effect.succeed({ q: ["yes"] }) }]
    ],
    ["mcpServer/elicitation/request", tool, decisions.map((decision) => ({ tool: () => Effect.succeed(decision) }))],
    [
      "mcpServer/elicitation/request",
      { ...tool, _meta: null },
      ([{ content: { name: "Ada" } }, "decline", "cancel"] as const).map((answer) => ({
        elicitation: () => Effect.succeed(answer)
      }))
    ]
  ]

  for (const [method, params, answers] of cases) {
    it.effect.each([{}, ...answers])(`to ${method} are what codex reads: %o`, (approvals) =>
      Effect.gen(function*() {
        const read = Approval.read(method, params, { approvals, timeout: "1 second", onFailure: Effect.die }, INFO)
        if (read === undefined || "declined" in read) return assert.fail("the question is not read")
        const { body } = yield* read.question.answer
        assert.deepStrictEqual(problems(body, responseOf(schemas.asked, method)), [])
      }))
  }

  it.each([...new Set(cases.map(([method]) => method)), "applyPatchApproval", "execCommandApproval"])(
    "to a %s that cannot be read is one that declines",
    (method) => {
      const read = Approval.read(method, {}, { approvals: {}, timeout: "1 second", onFailure: () => Effect.void }, INFO)
      if (read === undefined || "question" in read) return assert.fail("it is read")
      assert.deepStrictEqual(problems(read.declined, responseOf(schemas.asked, method)), [])
    }
  )

  it("to a call of a tool that is not ours is what codex reads", () => {
    assert.deepStrictEqual(problems(noTool("weather"), responseOf(schemas.asked, "item/tool/call")), [])
  })
})

describe("our requests", () => {
  it.live("have no member that codex does not know, with every option there is", () =>
    Effect.gen(function*() {
      const sent: Array<{ readonly method: string; readonly params: unknown }> = []
      const { codex, folder } = yield* open(Scenarios.gated(Effect.never, []), {
        tools: yield* Codex.fromToolkit(Toolkit.empty),
        tap: {
          payload: (message) => message,
          onMessage: ({ direction, id, method, payload }) => {
            if (direction === "out" && method !== undefined && id !== undefined) {
              sent.push({ method, params: at(payload, "params") })
            }
          }
        }
      })
      const options = {
        cwd: folder,
        model: "fake-model",
        modelProvider: "fake",
        approvalPolicy: "on-request",
        sandbox: "workspace-write",
        effort: "high",
        reasoningSummary: "concise",
        developerInstructions: "Be brief.",
        mcpServers: { absent: { command: "absent" } },
        config: { show_raw_agent_reasoning: true }
      } satisfies Required<Pick<Codex.ThreadOptions, "cwd">> & Codex.ThreadOptions
      yield* Effect.scoped(Effect.gen(function*() {
        const thread = yield* codex.thread(options)
        const turn = yield* Effect.forkChild(
          thread.send([
            { type: "text", text: "Hi" },
            { type: "image", url: "data:image/png;base64,iVBORw0KGgo=" },
            { type: "localImage", path: join(folder, "none.png") }
          ]),
          { startImmediately: true }
        )
        yield* Effect.sleep("10 millis").pipe(
          Effect.andThen(Effect.result(thread.steer("And be quick."))),
          Effect.repeat({ until: (result) => result._tag === "Success" })
        )
        yield* thread.interrupt
        yield* Fiber.await(turn)
      }))
      yield* codex.reloadMcpServers
      const methods = new Set(sent.map(({ method }) => method))
      for (
        const method of [
          "initialize",
          "thread/start",
          "turn/start",
          "turn/steer",
          "turn/interrupt",
          "thread/unsubscribe",
          "config/mcpServer/reload"
        ]
      ) assert.isTrue(methods.has(method), method)
      for (const { method, params } of sent) {
        const known = paramsOf(schemas.ours, method)
        // codex says that there are no params, and takes an object without members all the same
        if (at(known.schema, "type") === "null") assert.deepStrictEqual(params, {})
        else assert.deepStrictEqual(problems(params, known), [], method)
      }
    }))

  it.each((["untrusted", "on-request", "never"] as const).map((approvalPolicy) => ({ approvalPolicy })))(
    "may have %o",
    (params) => assert.deepStrictEqual(problems(params, paramsOf(schemas.ours, "thread/start")), [])
  )

  it.each((["read-only", "workspace-write", "danger-full-access"] as const).map((sandbox) => ({ sandbox })))(
    "may have %o",
    (params) => assert.deepStrictEqual(problems(params, paramsOf(schemas.ours, "thread/start")), [])
  )

  it("to resume a conversation and to ask how its turns stand are as codex reads them", () => {
    const resume = { threadId: "thread", excludeTurns: true, cwd: "/", model: "m", sandbox: "read-only" }
    assert.deepStrictEqual(problems(resume, paramsOf(schemas.ours, "thread/resume")), [])
    assert.deepStrictEqual(problems({ threadId: "thread", limit: 10 }, paramsOf(schemas.ours, "thread/turns/list")), [])
  })
})

describe("the comparison", () => {
  const method = "turn/started"
  /** What codex would say of it if it said something else. */
  const changed = (change: (turn: Record<string, unknown>) => void): Place => {
    const { root, schema } = paramsOf(schemas.notifications, method)
    const copy: unknown = structuredClone(root)
    const turn = at(copy, "definitions", "Turn")
    if (Predicate.isObject(turn)) change({ ...turn, properties: turn["properties"], required: turn["required"] })
    return { root: copy, schema }
  }
  const compared = (place: Place) => drift(ourSchema(Protocol.notifications[method]), place)

  it("sees a member that is gone", () => {
    const place = changed(({ properties }) => {
      if (Predicate.isObject(properties)) Reflect.deleteProperty(properties, "status")
    })
    assert.include(compared(place), "turn.status is gone")
  })

  it("sees a member that may be missing", () => {
    const place = changed(({ required }) => {
      if (Array.isArray(required)) required.length = 0
    })
    assert.include(compared(place), "turn.id may be missing")
  })

  it("sees a member of another type", () => {
    const place = changed(({ properties }) => {
      const id = at(properties, "id")
      if (Predicate.isObject(id)) Reflect.set(id, "type", "integer")
    })
    assert.include(compared(place), "turn.id may be of type integer, which is not read")
  })

  it("sees an answer that codex does not know", () => {
    const response = responseOf(schemas.asked, "item/fileChange/requestApproval")
    assert.deepStrictEqual(problems({ decision: "accept" }, response), [])
    assert.notDeepEqual(problems({ decision: "perhaps" }, response), [])
    assert.notDeepEqual(problems({}, response), [])
    assert.notDeepEqual(problems({ decision: "accept", why: "not" }, response), [])
  })
})

Child.leavesNothingBehind()

/**
 * What codex asks of its user: each kind with each answer, as it goes over the wire, and who answers when nobody does.
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Approval from "effect-stdio/Approval"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Peer from "./utils/peer.ts"
import * as Script from "./utils/scriptedCodex.ts"

const { notification, started, turnCompleted } = Script

const COMMAND = "item/commandExecution/requestApproval"
const FILES = "item/fileChange/requestApproval"
const PERMISSIONS = "item/permissions/requestApproval"
const QUESTIONS = "item/tool/requestUserInput"
const ELICITATION = "mcpServer/elicitation/request"

/** A question of codex under this id. */
const ask = (method: string, params: object, id: string | number = 0, at?: Parameters<typeof notification>[2]) => ({
  ...notification(method, params, at),
  id
})

const command = { itemId: "c", command: "ls", cwd: "/p", commandActions: [] }

const rule = { ...command, reason: "to look", proposedExecpolicyAmendment: ["ls"] }

const permissions = { network: { enabled: true }, fileSystem: { read: null, write: ["/tmp/x"] } }

const tool = {
  serverName: "excel",
  mode: "form",
  message: "Allow it?",
  requestedSchema: { type: "object", properties: {} },
  _meta: { codex_approval_kind: "mcp_tool_call", tool_name: "save", tool_params: { file: "a" }, persist: ["always"] }
}

const form = { serverName: "excel", mode: "form", message: "Which sheet?", requestedSchema: { type: "object" } }

const questions = {
  itemId: "q",
  isBlocking: true,
  questions: [{
    id: "colour",
    header: "Colour",
    question: "Which colour?",
    options: [{ label: "Blue", description: "As the sea" }, { label: "Red" }]
  }, { id: "why", question: "Why?", options: null }]
}

const commandApproval: Approval.CommandApproval = { _tag: "CommandApproval", itemId: "c", command: "ls", cwd: "/p" }

const none = { content: null, _meta: null }

/** Each kind with each answer of a function, and what codex is told. */
const answers: ReadonlyArray<
  readonly [
    string,
    method: string,
    params: object,
    approvals: Approval.Approvals,
    approval: Approval.Approval,
    decision: Approval.Decision,
    body: object
  ]
> = [
  ...(["accept", "acceptForSession", "decline", "cancel"] as const).flatMap((decision) => {
    const answer = () => Effect.succeed(decision)
    return [
      ["a command", COMMAND, command, { command: answer }, commandApproval, decision, { decision }],
      [
        "a change of files",
        FILES,
        { itemId: "f", reason: "to fix it", grantRoot: null },
        { fileChange: answer },
        { _tag: "FileChangeApproval", itemId: "f", reason: "to fix it" },
        decision,
        { decision }
      ]
    ] as const
  }),
  [
    "a command with a rule",
    COMMAND,
    rule,
    { command: () => Effect.succeed("acceptAlways") },
    { ...commandApproval, reason: "to look", rule: ["ls"] },
    "acceptAlways",
    { decision: { acceptWithExecpolicyAmendment: { execpolicy_amendment: ["ls"] } } }
  ],
  [
    "a command without a rule",
    COMMAND,
    command,
    { command: () => Effect.succeed("acceptAlways") },
    commandApproval,
    "acceptAlways",
    { decision: "acceptForSession" }
  ],
  [
    "a change of files",
    FILES,
    { itemId: "f" },
    { fileChange: () => Effect.succeed("acceptAlways") },
    { _tag: "FileChangeApproval", itemId: "f" },
    "acceptAlways",
    { decision: "acceptForSession" }
  ],
  ...([
    ["turn", "accept"],
    ["session", "acceptForSession"]
  ] as const).map(([scope, decision]) =>
    [
      `permissions for the ${scope}`,
      PERMISSIONS,
      { itemId: "p", cwd: "/p", reason: "need", permissions },
      { permission: () => Effect.succeed({ grant: { network: { enabled: true } }, scope }) },
      { _tag: "PermissionApproval", itemId: "p", permissions, cwd: "/p", reason: "need" },
      decision,
      { permissions: { network: { enabled: true } }, scope }
    ] as const
  ),
  [
    "permissions",
    PERMISSIONS,
    { itemId: "p", permissions },
    { permission: () => Effect.succeed("decline") },
    { _tag: "PermissionApproval", itemId: "p", permissions },
    "decline",
    { permissions: {}, scope: "turn" }
  ],
  ...([
    ["accept", { action: "accept", content: {}, _meta: null }],
    ["acceptForSession", { action: "accept", content: {}, _meta: { persist: "session" } }],
    ["acceptAlways", { action: "accept", content: {}, _meta: { persist: "always" } }],
    ["decline", { action: "decline", ...none }],
    ["cancel", { action: "cancel", ...none }]
  ] as const).map(([decision, body]) =>
    [
      "a tool of an MCP server",
      ELICITATION,
      tool,
      { tool: () => Effect.succeed(decision) },
      { _tag: "ToolApproval", server: "excel", tool: "save", message: "Allow it?", input: { file: "a" } },
      decision,
      body
    ] as const
  ),
  [
    "questions",
    QUESTIONS,
    questions,
    { questions: () => Effect.succeed({ colour: ["Blue", "Red"], why: ["Because"] }) },
    {
      _tag: "Questions",
      itemId: "q",
      questions: [{
        id: "colour",
        header: "Colour",
        question: "Which colour?",
        options: [{ label: "Blue", description: "As the sea" }, { label: "Red" }]
      }, { id: "why", question: "Why?", options: [] }]
    },
    "accept",
    { answers: { colour: { answers: ["Blue", "Red"] }, why: { answers: ["Because"] } } }
  ],
  [
    "questions",
    QUESTIONS,
    { itemId: "q", questions: [] },
    { questions: () => Effect.succeed("decline") },
    { _tag: "Questions", itemId: "q", questions: [] },
    "decline",
    { answers: {} }
  ],
  [
    "a form",
    ELICITATION,
    form,
    { elicitation: () => Effect.succeed({ content: { sheet: "A" } }) },
    { _tag: "Elicitation", server: "excel", message: "Which sheet?", schema: { type: "object" } },
    "accept",
    { action: "accept", content: { sheet: "A" }, _meta: null }
  ],
  [
    "an address to visit",
    ELICITATION,
    { serverName: "excel", mode: "url", message: "Sign in", url: "https://example.org", turnId: null },
    { elicitation: () => Effect.succeed({}) },
    { _tag: "Elicitation", server: "excel", message: "Sign in", url: "https://example.org" },
    "accept",
    { action: "accept", content: {}, _meta: null }
  ],
  ...(["decline", "cancel"] as const).map((decision) =>
    [
      "a form",
      ELICITATION,
      form,
      { elicitation: () => Effect.succeed(decision) },
      { _tag: "Elicitation", server: "excel", message: "Which sheet?", schema: { type: "object" } },
      decision,
      { action: decision, ...none }
    ] as const
  )
]

/** Each kind, and what declines it. */
const kinds: ReadonlyArray<readonly [method: string, params: object, body: object, name: keyof Approval.Approvals]> = [
  [COMMAND, command, { decision: "decline" }, "command"],
  [FILES, { itemId: "f" }, { decision: "decline" }, "fileChange"],
  [PERMISSIONS, { itemId: "p", permissions }, { permissions: {}, scope: "turn" }, "permission"],
  [QUESTIONS, questions, { answers: {} }, "questions"],
  [ELICITATION, tool, { action: "decline", ...none }, "tool"],
  [ELICITATION, form, { action: "decline", ...none }, "elicitation"]
]

describe("a question of codex", () => {
  for (const [name, method, params, approvals, approval, decision, body] of answers) {
    it.effect(`is answered in its own words: ${name}, ${decision}`, () =>
      Effect.gen(function*() {
        const { last, say, turn } = yield* Script.turn({ approvals })
        yield* say(ask(method, params, 7))
        assert.deepStrictEqual(last().answers(7), [{ id: 7, result: body }])
        assert.deepStrictEqual(turn.events.slice(1), [
          { _tag: "ApprovalAsked", approvalId: "7", approval },
          { _tag: "ApprovalSettled", approvalId: "7", decision, by: "handler" }
        ])
        yield* say(turnCompleted())
      }))
  }

  for (const [method, params, body, name] of kinds) {
    it.effect(`is declined without a function for it: ${name}`, () =>
      Effect.gen(function*() {
        // the others accept
        const others: Approval.Approvals = {
          command: () => Effect.succeed("accept"),
          fileChange: () => Effect.succeed("accept"),
          permission: ({ permissions }) => Effect.succeed({ grant: permissions, scope: "session" }),
          questions: () => Effect.succeed({}),
          tool: () => Effect.succeed("accept"),
          elicitation: () => Effect.succeed({})
        }
        const { last, say, turn } = yield* Script.turn({ approvals: { ...others, [name]: undefined } })
        yield* say(ask(method, params))
        assert.deepStrictEqual(last().answers(0), [{ id: 0, result: body }])
        assert.deepInclude(Script.only(turn, "ApprovalSettled")[0], { decision: "decline", by: "default" })
        yield* say(turnCompleted())
      }))

    for (
      const [what, handler] of [
        ["fails", () => Effect.fail("no")],
        ["dies", () => Effect.die(new Error("a bug"))],
        ["throws", () => {
          throw new Error("a bug")
        }],
        ["is interrupted from inside", () => Effect.interrupt]
      ] as const
    ) {
      it.effect(`is declined when its function ${what}: ${name}`, () =>
        Effect.gen(function*() {
          const { last, say, turn } = yield* Script.turn({ approvals: { [name]: handler } })
          yield* say(ask(method, params))
          assert.deepStrictEqual(last().answers(0), [{ id: 0, result: body }])
          assert.deepInclude(Script.only(turn, "ApprovalSettled")[0], { decision: "decline", by: "failure" })
          yield* say(turnCompleted())
          assert.strictEqual(Script.endOf(turn).status, "completed")
        }).pipe(Effect.provide(Peer.makeLog().layer)))
    }

    it.effect(`is declined when its function takes too long, and the function is interrupted: ${name}`, () =>
      Effect.gen(function*() {
        const interrupted = yield* Deferred.make<void>()
        const handler = () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
        const { last, say, turn } = yield* Script.turn({ approvals: { [name]: handler }, approvalTimeout: "1 minute" })
        yield* say(ask(method, params))
        yield* Script.pass("59 seconds")
        assert.deepStrictEqual(last().answers(0), [])
        yield* Script.pass("1 second", 1)
        assert.deepStrictEqual(last().answers(0), [{ id: 0, result: body }])
        yield* Deferred.await(interrupted)
        assert.deepInclude(Script.only(turn, "ApprovalSettled")[0], { decision: "decline", by: "timeout" })
        yield* say(turnCompleted())
      }))

    it.effect(`is declined when it cannot be read: ${method}, ${name}`, () =>
      Effect.gen(function*() {
        const { last, say, turn } = yield* Script.turn({
          approvals: { [name]: () => Effect.die(new Error("nobody can answer that")) }
        })
        yield* say(ask(method, { itemId: 5, serverName: 5, threadId: 5 }), { id: 1, method }, {
          id: 2,
          method,
          params: {}
        })
        assert.deepStrictEqual([0, 1, 2].flatMap(last().answers).map(({ result }) => result), [body, body, body])
        yield* say(turnCompleted())
        assert.strictEqual(Script.endOf(turn).status, "completed")
      }))
  }

  it.effect("is declined in time although its function cannot be interrupted", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn({
        approvals: { command: () => Effect.uninterruptible(Effect.never) },
        approvalTimeout: "1 minute"
      })
      yield* say(ask(COMMAND, command))
      yield* Script.pass("1 minute")
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: { decision: "decline" } }])
      assert.deepInclude(Script.only(turn, "ApprovalSettled")[0], { decision: "decline", by: "timeout" })
      yield* say(turnCompleted())
    }))

  it.effect("waits without a limit when that is asked for", () =>
    Effect.gen(function*() {
      for (const approvalTimeout of [0, "Infinity"] as const) {
        yield* Effect.scoped(Effect.gen(function*() {
          const { last, say } = yield* Script.turn({ approvals: { command: () => Effect.never }, approvalTimeout })
          yield* say(ask(COMMAND, command))
          yield* Script.pass("30 days")
          assert.deepStrictEqual(last().answers(0), [])
          yield* say(turnCompleted())
        }))
      }
    }))

  it.effect("waits for ten minutes when nothing is said of that", () =>
    Effect.gen(function*() {
      const { last, say } = yield* Script.turn({ approvals: { command: () => Effect.never } })
      yield* say(ask(COMMAND, command))
      yield* Script.pass("599 seconds")
      assert.deepStrictEqual(last().answers(0), [])
      yield* Script.pass("1 second", 1)
      assert.strictEqual(last().answers(0).length, 1)
      yield* say(turnCompleted())
    }))

  it.effect("of an older version is denied", () =>
    Effect.gen(function*() {
      const { last, say } = yield* Script.turn({ approvals: { command: () => Effect.succeed("accept") } })
      yield* say({ id: 0, method: "execCommandApproval", params: { conversationId: "x", command: ["ls"] } }, {
        id: 1,
        method: "applyPatchApproval",
        params: {}
      })
      assert.deepStrictEqual(last().answers(0), [{
        id: 0,
        result: { decision: { denied: { rejection: "declined" } } }
      }])
      assert.deepStrictEqual(last().answers(1), [{
        id: 1,
        result: { decision: { denied: { rejection: "declined" } } }
      }])
      yield* say(turnCompleted())
    }))

  it.effect("comes after the tool that it is about, although both come at once", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn({ approvals: { command: () => Effect.succeed("accept") } })
      const item = { type: "commandExecution", id: "c", command: "ls", cwd: "/p", status: "inProgress" }
      yield* say(
        started(item),
        ask(COMMAND, command),
        notification("item/commandExecution/outputDelta", { itemId: "c", delta: "a" })
      )
      yield* say(Script.completed({ ...item, status: "completed" }), turnCompleted())
      const tags = Script.tags(turn)
      assert.isBelow(tags.indexOf("ToolStart"), tags.indexOf("ApprovalAsked"))
      assert.isBelow(tags.indexOf("ApprovalAsked"), tags.indexOf("ApprovalSettled"))
      assert.isBelow(tags.indexOf("ApprovalAsked"), tags.indexOf("ToolOutput"))
      assert.isBelow(tags.indexOf("ApprovalSettled"), tags.indexOf("ToolEnd"))
    }))

  it.effect("has an id, and 0 is another than \"0\"", () =>
    Effect.gen(function*() {
      const gates = {
        number: yield* Deferred.make<Approval.Decision>(),
        text: yield* Deferred.make<Approval.Decision>()
      }
      const told: Array<string> = []
      const { last, say, turn } = yield* Script.turn({
        approvals: {
          command: ({ command }, { approvalId }) => {
            told.push(approvalId)
            return Deferred.await(command === "number" ? gates.number : gates.text)
          }
        }
      })
      yield* say(ask(COMMAND, { ...command, command: "number" }, 0), ask(COMMAND, { ...command, command: "text" }, "0"))
      const ids = Script.only(turn, "ApprovalAsked").map(({ approvalId }) => approvalId)
      assert.strictEqual(new Set(ids).size, 2)
      assert.deepStrictEqual(told, ids)
      yield* Deferred.succeed(gates.text, "decline")
      yield* Script.settled
      assert.deepStrictEqual(last().answers("0"), [{ id: "0", result: { decision: "decline" } }])
      assert.deepStrictEqual(last().answers(0), [])
      assert.strictEqual(Script.only(turn, "ApprovalSettled")[0]?.approvalId, ids[1])
      // the other one is withdrawn
      yield* say(notification("serverRequest/resolved", { requestId: 0 }))
      assert.deepStrictEqual(Script.only(turn, "ApprovalWithdrawn"), [{
        _tag: "ApprovalWithdrawn",
        approvalId: ids[0] ?? ""
      }])
      assert.deepStrictEqual(last().answers(0), [])
      yield* say(turnCompleted())
    }))

  it.effect("does not hold up what codex says meanwhile, nor another question", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn({
        approvals: { command: () => Effect.never, fileChange: () => Effect.succeed("accept") }
      })
      yield* say(ask(COMMAND, command, 0), Script.delta("m", "meanwhile"), ask(FILES, { itemId: "f" }, 1))
      assert.strictEqual(Script.only(turn, "TextDelta")[0]?.text, "meanwhile")
      assert.deepStrictEqual(last().answers(1), [{ id: 1, result: { decision: "accept" } }])
      yield* say(turnCompleted())
    }))

  it.effect("may be answered with the help of codex", () =>
    Effect.gen(function*() {
      const script: Effect.Success<ReturnType<typeof Script.make>> = yield* Script.make({
        answers: {
          "thread/read": (request, { reply }) => reply(request, { thread: { preview: "ok" } })
        },
        approvals: {
          command: () =>
            Effect.gen(function*() {
              const peer = yield* script.codex.peer
              const thread = yield* peer.call("thread/read", { threadId: "thread-1" })
              return JSON.stringify(thread).includes("ok") ? "accept" : "decline"
            })
        }
      })
      yield* Script.follow(yield* script.open())
      yield* script.say(ask(COMMAND, command))
      assert.deepStrictEqual(script.last().answers(0), [{ id: 0, result: { decision: "accept" } }])
      yield* script.say(turnCompleted())
    }))

  it.effect("may be answered with what the program provides", () =>
    Effect.gen(function*() {
      class Policy extends Context.Service<Policy, { readonly decision: Approval.Decision }>()("test/Policy") {}
      const { last, say } = yield* Script.turn<Policy>({
        approvals: { command: () => Effect.map(Policy, ({ decision }) => decision) }
      }).pipe(Effect.provideService(Policy, { decision: "acceptForSession" }))
      yield* say(ask(COMMAND, command))
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: { decision: "acceptForSession" } }])
      yield* say(turnCompleted())
    }))

  it.effect("that fails to be answered is for the log, and not for codex", () =>
    Effect.gen(function*() {
      const log = Peer.makeLog()
      yield* Effect.gen(function*() {
        const { last, say } = yield* Script.turn({
          approvals: { command: () => Effect.die(new Error("the secret of the house")) }
        })
        yield* say(ask(COMMAND, command))
        assert.notInclude(JSON.stringify(last().received), "secret")
        yield* say(turnCompleted())
      }).pipe(Effect.provide(log.layer))
      assert.include(log.lines.join("\n"), "the secret of the house")
    }))

  it.effect("of a sub-agent is answered, and is none of the turn's events", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn({ approvals: { command: () => Effect.succeed("accept") } })
      yield* say(ask(COMMAND, command, 0, { threadId: "thread-9", turnId: "turn-9" }))
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: { decision: "accept" } }])
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      yield* say(turnCompleted())
    }))

  it.effect("of another turn is answered, and is none of this turn's events", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn({ approvals: { command: () => Effect.succeed("accept") } })
      yield* say(ask(COMMAND, command, 0, { turnId: "turn-0" }))
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: { decision: "accept" } }])
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted"])
      yield* say(turnCompleted())
    }))
})

describe("a question that is withdrawn", () => {
  /** A turn with a function that waits, and says when it is interrupted. */
  const waiting = Effect.fnUntraced(function*(at?: Parameters<typeof notification>[2]) {
    const interrupted = yield* Deferred.make<void>()
    const script = yield* Script.turn({
      approvals: { command: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)) }
    })
    yield* script.say(ask(COMMAND, command, 0, at))
    return { ...script, interrupted }
  })

  it.effect("interrupts its function, and is not answered", () =>
    Effect.gen(function*() {
      const { interrupted, last, say, turn } = yield* waiting()
      yield* say(notification("serverRequest/resolved", { requestId: 0, turnId: undefined }))
      yield* Deferred.await(interrupted)
      assert.deepStrictEqual(turn.events.slice(2), [{ _tag: "ApprovalWithdrawn", approvalId: "0" }])
      yield* say(turnCompleted())
      assert.deepStrictEqual(last().answers(0), [])
      assert.deepStrictEqual(Script.tags(turn).filter((tag) => tag.startsWith("Approval")), [
        "ApprovalAsked",
        "ApprovalWithdrawn"
      ])
    }))

  it.effect("may be asked again under the same id", () =>
    Effect.gen(function*() {
      let times = 0
      const { last, say, turn } = yield* Script.turn({
        approvals: { command: () => times++ === 0 ? Effect.never : Effect.succeed("accept") }
      })
      yield* say(ask(COMMAND, command))
      yield* say(notification("serverRequest/resolved", { requestId: 0 }))
      yield* say(ask(COMMAND, command))
      assert.deepStrictEqual(last().answers(0), [{ id: 0, result: { decision: "accept" } }])
      yield* say(turnCompleted())
      assert.deepStrictEqual(Script.tags(turn).slice(1, -1), [
        "ApprovalAsked",
        "ApprovalWithdrawn",
        "ApprovalAsked",
        "ApprovalSettled"
      ])
    }))

  it.effect("is not withdrawn by what codex says of our own answer", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn({ approvals: { command: () => Effect.succeed("accept") } })
      yield* say(ask(COMMAND, command))
      yield* say(notification("serverRequest/resolved", { requestId: 0 }), turnCompleted())
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "ApprovalAsked", "ApprovalSettled", "TurnEnd"])
    }))

  for (
    const [name, end] of [
      ["ends", turnCompleted()],
      ["is interrupted", turnCompleted({ status: "interrupted" })],
      ["fails", turnCompleted({ status: "failed" })]
    ] as const
  ) {
    it.effect(`is so when its turn ${name}`, () =>
      Effect.gen(function*() {
        const { interrupted, last, say, turn } = yield* waiting()
        // codex says that it is resolved after the end
        yield* say(end, notification("serverRequest/resolved", { requestId: 0 }))
        yield* Deferred.await(interrupted)
        assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "ApprovalAsked", "ApprovalWithdrawn", "TurnEnd"])
        assert.deepStrictEqual(last().answers(0), [])
      }))
  }

  it.effect("is so when the turn is interrupted by us", () =>
    Effect.gen(function*() {
      const { interrupted, last, thread, turn } = yield* waiting()
      yield* thread.interrupt
      yield* Deferred.await(interrupted)
      yield* Fiber.join(turn.fiber)
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "ApprovalAsked", "ApprovalWithdrawn", "TurnEnd"])
      assert.deepStrictEqual(last().answers(0), [])
    }))

  it.effect("is so when codex has ended", () =>
    Effect.gen(function*() {
      const { crash, interrupted, turn } = yield* waiting()
      yield* crash()
      yield* Deferred.await(interrupted)
      assert.deepStrictEqual(Script.tags(turn), ["TurnStarted", "ApprovalAsked", "ApprovalWithdrawn", "TurnEnd"])
    }))

  it.effect("is so, too, when it is one of a sub-agent", () =>
    Effect.gen(function*() {
      const at = { threadId: "thread-9", turnId: "turn-9" }
      const { interrupted, last, say } = yield* waiting(at)
      yield* say(notification("serverRequest/resolved", { requestId: 0 }, at))
      assert.isTrue(Deferred.isDoneUnsafe(interrupted))
      assert.deepStrictEqual(last().answers(0), [])
      yield* say(turnCompleted())
    }))
})

describe("a request of codex that nobody knows", () => {
  it.effect("is refused at once, and told to the turn", () =>
    Effect.gen(function*() {
      const { last, say, turn } = yield* Script.turn()
      yield* say(ask("account/chatgptAuthTokens/refresh", { reason: "unauthorized" }, 0))
      const [{ error } = {}] = last().answers(0)
      assert.strictEqual(error?.code, -32601)
      assert.deepStrictEqual(turn.events.slice(1), [{
        _tag: "Unknown",
        method: "account/chatgptAuthTokens/refresh",
        params: { threadId: "thread-1", turnId: "turn-1", reason: "unauthorized" }
      }])
      yield* say({ id: "x", method: "attestation/generate", params: {} })
      assert.strictEqual(last().answers("x")[0]?.error?.code, -32601)
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
    }))
})

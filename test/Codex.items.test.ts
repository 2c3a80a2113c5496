/**
 * What codex does in a turn, an event for each: messages, reasoning, plans, tools, and whatever is not known.
 */
import { assert, describe, it } from "@effect/vitest"
import type * as Agent from "effect-stdio/Agent"
import * as Effect from "effect/Effect"
import * as Script from "./utils/scriptedCodex.ts"

const { completed, delta, message, notification, started, turnCompleted } = Script

type Events = ReadonlyArray<Agent.AgentEvent>

/** The events of a turn in which codex says this, without its start and its end. */
const eventsOf = Effect.fnUntraced(function*(...messages: ReadonlyArray<Script.Message>) {
  const { say, turn } = yield* Script.turn()
  yield* say(...messages)
  yield* say(turnCompleted())
  const end = Script.endOf(turn)
  return { events: turn.events.slice(1, -1), end }
})

/** What a consumer has on its screen that does what the events say, and nothing else. */
const shown = (events: Events): ReadonlyMap<string, string> => {
  const items = new Map<string, Map<string, string>>()
  for (const event of events) {
    if (event._tag === "Reset") items.delete(event.itemId)
    if (event._tag !== "TextDelta" && event._tag !== "PlanDelta" && event._tag !== "ReasoningDelta") continue
    const parts = items.get(event.itemId) ?? new Map<string, string>()
    items.set(event.itemId, parts)
    const part = event._tag === "ReasoningDelta" ? `${event.kind === "summary" ? 0 : 1} ${event.part}` : ""
    parts.set(part, (parts.get(part) ?? "") + event.text)
  }
  return new Map(
    [...items].map((
      [id, parts]
    ) => [id, [...parts].toSorted(([a], [b]) => a < b ? -1 : 1).map(([, text]) => text).join("\n")])
  )
}

const wholes = (events: Events): ReadonlyMap<string, string> =>
  new Map(events.flatMap((event) => event._tag === "TextEnd" ? [[event.itemId, event.text] as const] : []))

describe("text", () => {
  it.effect("of a message, of a plan and of reasoning comes as deltas and as a whole", () =>
    Effect.gen(function*() {
      const { events } = yield* eventsOf(
        started({ type: "reasoning", id: "r", summary: [], content: [] }),
        notification("item/reasoning/summaryPartAdded", { itemId: "r", summaryIndex: 0 }),
        notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: "**First**", summaryIndex: 0 }),
        notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: "**Then**", summaryIndex: 1 }),
        notification("item/reasoning/textDelta", { itemId: "r", delta: "raw", contentIndex: 0 }),
        completed({ type: "reasoning", id: "r", summary: ["**First**", "**Then**"], content: ["raw"] }),
        started(message("m", "")),
        started({ type: "plan", id: "p", text: "" }),
        delta("m", "Before. "),
        notification("item/plan/delta", { itemId: "p", delta: "- one\n" }),
        delta("m", "After."),
        notification("item/plan/delta", { itemId: "p", delta: "- two\n" }),
        completed({ type: "plan", id: "p", text: "- one\n- two\n" }),
        completed(message("m", "Before. After."))
      )
      assert.deepStrictEqual(events, [
        { _tag: "ReasoningDelta", itemId: "r", kind: "summary", part: 0, text: "**First**" },
        { _tag: "ReasoningDelta", itemId: "r", kind: "summary", part: 1, text: "**Then**" },
        { _tag: "ReasoningDelta", itemId: "r", kind: "raw", part: 0, text: "raw" },
        { _tag: "TextEnd", itemId: "r", kind: "reasoning", status: "completed", text: "**First**\n**Then**" },
        { _tag: "TextDelta", itemId: "m", text: "Before. " },
        { _tag: "PlanDelta", itemId: "p", text: "- one\n" },
        { _tag: "TextDelta", itemId: "m", text: "After." },
        { _tag: "PlanDelta", itemId: "p", text: "- two\n" },
        { _tag: "TextEnd", itemId: "p", kind: "plan", status: "completed", text: "- one\n- two\n" },
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "completed", text: "Before. After." }
      ])
    }))

  const reasoning = (summary: ReadonlyArray<string>, content: ReadonlyArray<string> = []) => ({
    type: "reasoning",
    id: "r",
    summary,
    content
  })
  const thought = (part: number, text: string) =>
    notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: text, summaryIndex: part })

  const stories: ReadonlyArray<readonly [string, string, ReadonlyArray<Script.Message>, text: string]> = [
    ["without deltas", "m", [started(message("m", "")), completed(message("m", "Hello"))], "Hello"],
    ["without a start", "m", [completed(message("m", "Hello"))], "Hello"],
    ["with deltas and without a start", "m", [delta("m", "Hello"), completed(message("m", "Hello"))], "Hello"],
    ["with its last delta missing", "m", [
      started(message("m", "")),
      delta("m", "Hel"),
      completed(message("m", "Hello"))
    ], "Hello"],
    ["with a delta in its midst missing", "m", [
      started(message("m", "")),
      delta("m", "He"),
      delta("m", "o"),
      completed(message("m", "Hello"))
    ], "Hello"],
    ["with one delta too many", "m", [
      started(message("m", "")),
      delta("m", "Hello"),
      delta("m", "Hello"),
      completed(message("m", "Hello"))
    ], "Hello"],
    ["that is begun again", "m", [
      started(message("m", "")),
      delta("m", "Hel"),
      notification("error", { error: { message: "broke off" }, willRetry: true }),
      started(message("m", "")),
      delta("m", "Hel"),
      delta("m", "lo"),
      completed(message("m", "Hello"))
    ], "Hello"],
    ["that is empty", "m", [started(message("m", "")), completed(message("m", ""))], ""],
    ["of reasoning without deltas", "r", [completed(reasoning(["one", "two"]))], "one\ntwo"],
    ["of reasoning without a summary", "r", [completed(reasoning([], ["raw", "more"]))], "raw\nmore"],
    ["of reasoning whose second part was not reported", "r", [
      started(reasoning([])),
      thought(0, "one"),
      completed(reasoning(["one", "two"]))
    ], "one\ntwo"],
    ["of reasoning whose first part came otherwise", "r", [
      started(reasoning([])),
      thought(0, "won"),
      thought(1, "two"),
      completed(reasoning(["one", "two"]))
    ], "one\ntwo"],
    ["of reasoning whose second part came otherwise", "r", [
      started(reasoning([])),
      thought(0, "one"),
      thought(1, "too"),
      completed(reasoning(["one", "two"]))
    ], "one\ntwo"],
    ["of a plan without deltas", "p", [completed({ type: "plan", id: "p", text: "- one" })], "- one"]
  ]

  for (const [name, id, messages, text] of stories) {
    it.effect(`is whole, and the same for who follows the deltas: ${name}`, () =>
      Effect.gen(function*() {
        const { events } = yield* eventsOf(...messages)
        assert.strictEqual(wholes(events).get(id), text)
        assert.strictEqual(shown(events).get(id) ?? "", text)
        assert.strictEqual(events.filter(({ _tag }) => _tag === "TextEnd").length, 1)
      }))
  }

  it.effect("is void when it is begun again, which is told at once", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn()
      yield* say(started(message("m", "")), delta("m", "Hel"))
      yield* say(
        notification("error", {
          error: { message: "Reconnecting... 1/5", additionalDetails: "stream disconnected" },
          willRetry: true
        }),
        started(message("m", ""))
      )
      assert.deepStrictEqual(turn.events.slice(2), [
        { _tag: "Retrying", message: "Reconnecting... 1/5", details: "stream disconnected" },
        { _tag: "Reset", itemId: "m" }
      ])
      // what was void is not counted
      yield* say(turnCompleted({ status: "interrupted" }))
      assert.deepStrictEqual(Script.only(turn, "TextEnd"), [
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "cancelled", text: "" }
      ])
    }))

  it.effect("ends once, although codex says its end twice", () =>
    Effect.gen(function*() {
      const { events } = yield* eventsOf(
        started(message("m", "")),
        delta("m", "Hello"),
        completed(message("m", "Hello")),
        completed(message("m", "Hello"))
      )
      assert.deepStrictEqual(events, [
        { _tag: "TextDelta", itemId: "m", text: "Hello" },
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "completed", text: "Hello" }
      ])
    }))

  it.effect("that comes after its end is dropped, of every kind", () =>
    Effect.gen(function*() {
      const reasoning = { type: "reasoning", id: "r", summary: ["so"], content: [] }
      const { end, events } = yield* eventsOf(
        completed(message("m", "Hello")),
        completed({ type: "plan", id: "p", text: "- more" }),
        completed(reasoning),
        delta("m", "lo"),
        notification("item/plan/delta", { itemId: "p", delta: "more" }),
        notification("item/reasoning/summaryTextDelta", { itemId: "r", delta: "o", summaryIndex: 0 }),
        notification("item/reasoning/textDelta", { itemId: "r", delta: "o", contentIndex: 0 })
      )
      assert.deepStrictEqual(events.map(({ _tag }) => _tag), [
        "TextDelta",
        "TextEnd",
        "PlanDelta",
        "TextEnd",
        "ReasoningDelta",
        "TextEnd"
      ])
      assert.strictEqual(end.text, "Hello")
    }))

  it.effect("of the turn is the last message, not what came before or between", () =>
    Effect.gen(function*() {
      const { end } = yield* eventsOf(
        completed(message("a", "I look")),
        completed({ type: "reasoning", id: "r", summary: ["thinking"], content: [] }),
        completed(message("b", "I have found it")),
        completed({ type: "plan", id: "p", text: "- more" })
      )
      assert.strictEqual(end.text, "I have found it")
    }))

  it.effect("of the turn is taken from its end, where nothing of it was reported before", () =>
    Effect.gen(function*() {
      const { say, turn } = yield* Script.turn()
      yield* say(turnCompleted({ items: [message("a", "first"), message("b", "last"), { type: "plan", id: "p" }] }))
      assert.strictEqual(Script.endOf(turn).text, "last")
    }))

  it.effect("of many thousand deltas is whole", () =>
    Effect.gen(function*() {
      const words = Array.from({ length: 10_000 }, (_, index) => `${index} `)
      const { end, events } = yield* eventsOf(started(message("m", "")), ...words.map((word) => delta("m", word)))
      assert.strictEqual(end.text, words.join(""))
      assert.strictEqual(shown(events).get("m"), words.join(""))
    }))
})

describe("a tool", () => {
  const tools: ReadonlyArray<
    readonly [string, begin: object, end: object, ReadonlyArray<Script.Message>, Events]
  > = [
    [
      "command",
      { type: "commandExecution", id: "t", command: "ls", cwd: "/p", status: "inProgress" },
      {
        type: "commandExecution",
        id: "t",
        command: "ls",
        cwd: "/p",
        status: "completed",
        aggregatedOutput: "a\n",
        exitCode: 0,
        durationMs: 12
      },
      [notification("item/commandExecution/outputDelta", { itemId: "t", delta: "a\n" })],
      [
        { _tag: "ToolStart", itemId: "t", kind: "command", name: "ls", input: { command: "ls", cwd: "/p" } },
        { _tag: "ToolOutput", itemId: "t", text: "a\n" },
        { _tag: "ToolEnd", itemId: "t", status: "completed", output: { output: "a\n", exitCode: 0 }, duration: 12 }
      ]
    ],
    [
      "command that was declined",
      { type: "commandExecution", id: "t", command: "rm -r /", cwd: "/p", status: "inProgress" },
      {
        type: "commandExecution",
        id: "t",
        command: "rm -r /",
        cwd: "/p",
        status: "declined",
        aggregatedOutput: null,
        exitCode: null,
        durationMs: null
      },
      [],
      [
        {
          _tag: "ToolStart",
          itemId: "t",
          kind: "command",
          name: "rm -r /",
          input: { command: "rm -r /", cwd: "/p" }
        },
        { _tag: "ToolEnd", itemId: "t", status: "declined", output: { output: "", exitCode: null } }
      ]
    ],
    [
      "change of files",
      { type: "fileChange", id: "t", changes: [{ path: "/p/a" }, { path: "/p/b" }], status: "inProgress" },
      { type: "fileChange", id: "t", changes: [{ path: "/p/a" }, { path: "/p/b" }], status: "failed" },
      [notification("item/fileChange/outputDelta", { itemId: "t", delta: "patched" })],
      [
        {
          _tag: "ToolStart",
          itemId: "t",
          kind: "file",
          name: "/p/a, /p/b",
          input: { changes: [{ path: "/p/a" }, { path: "/p/b" }] }
        },
        { _tag: "ToolOutput", itemId: "t", text: "patched" },
        { _tag: "ToolEnd", itemId: "t", status: "failed", output: { changes: [{ path: "/p/a" }, { path: "/p/b" }] } }
      ]
    ],
    [
      "tool of an MCP server",
      { type: "mcpToolCall", id: "t", server: "s", tool: "add", arguments: { a: 1 }, status: "inProgress" },
      {
        type: "mcpToolCall",
        id: "t",
        server: "s",
        tool: "add",
        arguments: { a: 1 },
        status: "completed",
        result: { content: [] },
        error: null,
        durationMs: 7
      },
      [notification("item/mcpToolCall/progress", { itemId: "t", message: "half" })],
      [
        { _tag: "ToolStart", itemId: "t", kind: "mcp", name: "s/add", input: { a: 1 } },
        { _tag: "ToolOutput", itemId: "t", text: "half" },
        { _tag: "ToolEnd", itemId: "t", status: "completed", output: { content: [] }, duration: 7 }
      ]
    ],
    [
      "tool of an MCP server that fails",
      { type: "mcpToolCall", id: "t", server: "s", tool: "add", arguments: {}, status: "inProgress" },
      {
        type: "mcpToolCall",
        id: "t",
        server: "s",
        tool: "add",
        arguments: {},
        status: "failed",
        result: null,
        error: { message: "there is no such row" }
      },
      [],
      [
        { _tag: "ToolStart", itemId: "t", kind: "mcp", name: "s/add", input: {} },
        { _tag: "ToolEnd", itemId: "t", status: "failed", output: { message: "there is no such row" } }
      ]
    ],
    [
      "tool of ours",
      { type: "dynamicToolCall", id: "t", tool: "weather", arguments: { city: "Oslo" }, status: "inProgress" },
      {
        type: "dynamicToolCall",
        id: "t",
        tool: "weather",
        arguments: { city: "Oslo" },
        status: "completed",
        success: false,
        contentItems: [{ type: "inputText", text: "no" }]
      },
      [],
      [
        { _tag: "ToolStart", itemId: "t", kind: "dynamic", name: "weather", input: { city: "Oslo" } },
        { _tag: "ToolEnd", itemId: "t", status: "failed", output: [{ type: "inputText", text: "no" }] }
      ]
    ],
    [
      "thing that nobody knows",
      { type: "timeTravel", id: "t", to: 1885, startedAtMs: 5 },
      { type: "timeTravel", id: "t", to: 1885, startedAtMs: 5, completedAtMs: 6 },
      [],
      [
        { _tag: "ToolStart", itemId: "t", kind: "timeTravel", name: "timeTravel", input: { to: 1885 } },
        { _tag: "ToolEnd", itemId: "t", status: "completed", output: { to: 1885 } }
      ]
    ],
    [
      "search, which begins and ends",
      { type: "webSearch", id: "t", query: "" },
      { type: "webSearch", id: "t", query: "effect" },
      [],
      [
        { _tag: "ToolStart", itemId: "t", kind: "webSearch", name: "webSearch", input: { query: "" } },
        { _tag: "ToolEnd", itemId: "t", status: "completed", output: { query: "effect" } }
      ]
    ]
  ]

  for (const [name, begin, end, between, expected] of tools) {
    it.effect(`has a start, an output and an end: a ${name}`, () =>
      Effect.gen(function*() {
        const { events } = yield* eventsOf(started(begin), ...between, completed(end))
        assert.deepStrictEqual(events, expected)
      }))
  }

  it.effect("has a start, although only its end was reported", () =>
    Effect.gen(function*() {
      const { events } = yield* eventsOf(completed({ type: "imageView", id: "t", path: "/p/a.png" }))
      assert.deepStrictEqual(events, [
        { _tag: "ToolStart", itemId: "t", kind: "imageView", name: "imageView", input: { path: "/p/a.png" } },
        { _tag: "ToolEnd", itemId: "t", status: "completed", output: { path: "/p/a.png" } }
      ])
    }))

  it.effect("that is begun again starts once", () =>
    Effect.gen(function*() {
      const item = { type: "commandExecution", id: "t", command: "ls", cwd: "/p" }
      const { events } = yield* eventsOf(started(item), started(item), completed({ ...item, status: "completed" }))
      assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["ToolStart", "Reset", "ToolEnd"])
    }))

  it.effect("ends once, although codex says its end twice", () =>
    Effect.gen(function*() {
      const item = { type: "commandExecution", id: "t", command: "ls", cwd: "/p", status: "completed" }
      const { events } = yield* eventsOf(started(item), completed(item), completed(item))
      assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["ToolStart", "ToolEnd"])
    }))

  it.effect("has no output after its end", () =>
    Effect.gen(function*() {
      const item = { type: "commandExecution", id: "t", command: "ls", cwd: "/p", status: "completed" }
      const output = (delta: string) => notification("item/commandExecution/outputDelta", { itemId: "t", delta })
      const { events } = yield* eventsOf(started(item), output("a"), completed(item), output("b"))
      assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["ToolStart", "ToolOutput", "ToolEnd"])
    }))

  it.effect("without any of the members that it should have is none the less told of", () =>
    Effect.gen(function*() {
      for (const type of ["commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall"]) {
        const { events } = yield* Effect.scoped(eventsOf(started({ type, id: "t" }), completed({ type, id: "t" })))
        assert.deepStrictEqual(events.map(({ _tag }) => _tag), ["ToolStart", "ToolEnd"], type)
      }
    }))
})

describe("a notification", () => {
  const warnings: ReadonlyArray<
    readonly [string, object, Omit<Extract<Agent.AgentEvent, { readonly _tag: "Warning" }>, "_tag">]
  > = [
    ["warning", { message: "w" }, { message: "w" }],
    ["guardianWarning", { message: "w" }, { message: "w" }],
    ["configWarning", { summary: "w", details: "d" }, { message: "w", details: "d" }],
    ["deprecationNotice", { summary: "w", details: null }, { message: "w" }],
    ["mcpServer/startupStatus/updated", { name: "s", status: "failed", error: "e" }, {
      message: "the MCP server s has not started",
      details: "e"
    }]
  ]

  for (const [method, params, expected] of warnings) {
    it.effect(`warns: ${method}`, () =>
      Effect.gen(function*() {
        const { events } = yield* eventsOf(notification(method, params))
        assert.deepStrictEqual(events, [{ _tag: "Warning", ...expected }])
      }))
  }

  it.effect("of a call that failed since its MCP server has ended warns, once a turn for each server", () =>
    Effect.gen(function*() {
      const call = (id: string, server: string, message: string) =>
        completed({ type: "mcpToolCall", id, server, tool: "t", arguments: {}, status: "failed", error: { message } })
      const ended = "tool call failed for `s/t`\n\nCaused by:\n    Transport closed"
      const { events } = yield* eventsOf(
        call("a", "s", ended),
        call("b", "s", ended),
        call("c", "other", "Transport closed"),
        call("d", "third", "there is no such row")
      )
      assert.deepStrictEqual(events.map((event) => event._tag === "Warning" ? event.message : event._tag), [
        "ToolStart",
        "ToolEnd",
        "the MCP server s has ended: its tools fail until codex is told to start it again (reloadMcpServers)",
        "ToolStart",
        "ToolEnd",
        "ToolStart",
        "ToolEnd",
        "the MCP server other has ended: its tools fail until codex is told to start it again (reloadMcpServers)",
        "ToolStart",
        "ToolEnd"
      ])
    }))

  it.effect("warns each conversation when it concerns none", () =>
    Effect.gen(function*() {
      const { open, say } = yield* Script.make()
      const first = yield* Script.follow(yield* open())
      const second = yield* Script.follow(yield* open())
      yield* say({ method: "configWarning", params: { summary: "w" } })
      for (const turn of [first, second]) {
        assert.deepStrictEqual(Script.only(turn, "Warning"), [{ _tag: "Warning", message: "w" }])
      }
      yield* say(turnCompleted(), turnCompleted({ id: "turn-2" }, "thread-2"))
    }))

  it.effect("that says nothing of use is left out", () =>
    Effect.gen(function*() {
      const { events } = yield* eventsOf(
        notification("mcpServer/startupStatus/updated", { name: "s", status: "ready", error: null }),
        notification("thread/started", {}),
        notification("item/reasoning/summaryPartAdded", { itemId: "r" }),
        Script.status("active"),
        { method: "account/rateLimits/updated", params: { limits: [] } },
        { method: "thread/readState/changed", params: { threadId: "thread-1" } }
      )
      assert.deepStrictEqual(events, [])
    }))

  it.effect("that is not known passes through as it is", () =>
    Effect.gen(function*() {
      const params = { threadId: "thread-1", turnId: "turn-1", plan: [{ step: "one", status: "pending" }] }
      const { events } = yield* eventsOf(
        { method: "turn/plan/updated", params },
        { method: "weather/changed", params: { to: "rain" } },
        { method: "thread/odd", params: { threadId: "thread-1" } }
      )
      assert.deepStrictEqual(events, [
        { _tag: "Unknown", method: "turn/plan/updated", params },
        { _tag: "Unknown", method: "weather/changed", params: { to: "rain" } },
        { _tag: "Unknown", method: "thread/odd", params: { threadId: "thread-1" } }
      ])
    }))

  it.effect("that is not as it was passes through as it is, and the turn goes on", () =>
    Effect.gen(function*() {
      const odd = [
        notification("item/started", { item: { id: "m" } }),
        notification("item/agentMessage/delta", { itemId: "m", delta: 5 }),
        notification("thread/tokenUsage/updated", { tokenUsage: {} }),
        notification("turn/completed", { turn: { id: "turn-1" } })
      ]
      const { end, events } = yield* eventsOf(...odd, completed(message("m", "Hello")))
      assert.deepStrictEqual(
        events.slice(0, odd.length),
        odd.map(({ method = "", params }): Agent.AgentEvent => ({ _tag: "Unknown", method, params }))
      )
      assert.deepInclude(end, { status: "completed", text: "Hello" })
    }))

  it.effect("may have more members than are known, and fewer than it has today", () =>
    Effect.gen(function*() {
      const { last, total } = { last: { ...Script.tokens(10), cachedInputTokens: null }, total: Script.tokens(20) }
      const { events } = yield* eventsOf(
        notification("item/agentMessage/delta", { itemId: "m", delta: "Hello", phase: "final", mood: { good: true } }),
        notification("thread/tokenUsage/updated", { tokenUsage: { last, total, carbon: 3 } })
      )
      assert.deepStrictEqual(events[0], { _tag: "TextDelta", itemId: "m", text: "Hello" })
      assert.deepStrictEqual(events[1], {
        _tag: "Usage",
        last: { input: 8, cachedInput: 0, output: 2, reasoning: 1, total: 10 },
        total: { input: 18, cachedInput: 1, output: 2, reasoning: 1, total: 20 }
      })
    }))

  it.effect("is asked for only where it is of use", () =>
    Effect.gen(function*() {
      const { last, open } = yield* Script.make({ clientInfo: { name: "editor", version: "1" } })
      yield* open()
      const [{ capabilities, clientInfo } = {}] = last().requests("initialize")
      assert.deepStrictEqual(clientInfo, { name: "editor", version: "1" })
      assert.deepStrictEqual(capabilities, {
        experimentalApi: false,
        optOutNotificationMethods: [
          "account/rateLimits/updated",
          "remoteControl/status/changed",
          "thread/readState/changed",
          "thread/settings/updated",
          "app/list/updated",
          "skills/changed"
        ]
      })
      // and no message names a version of JSON-RPC
      assert.isTrue(last().received.every((message) => !("jsonrpc" in message)))
      assert.deepStrictEqual(last().received.map(({ method }) => method), ["initialize", "initialized", "thread/start"])
    }))

  it.effect("that is no JSON is passed over", () =>
    Effect.gen(function*() {
      const { codex, last, say, turn } = yield* Script.turn()
      last().write("warning: this is no JSON\n\n[1,2\n")
      yield* say(turnCompleted())
      assert.strictEqual(Script.endOf(turn).status, "completed")
      const stats = yield* Effect.flatMap(codex.peer, ({ stats }) => stats)
      assert.isAbove(stats.badInput, 0)
    }))
})

/**
 * The program of examples/codex: what it makes of events, and all of it with the real Codex app server before a fake
 * model, behind pipes and on a terminal.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { makeRendering } from "../../examples/codex/render.ts"
import { makePlain, visible } from "../../examples/codex/text.ts"
import * as Agent from "../../src/Agent.ts"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import * as CodexHome from "./codexHome.ts"
import * as FakeModel from "./fakeModel.ts"
import * as Program from "./program.ts"
import { call, say } from "./reply.ts"
import * as Scenarios from "./scenarios.ts"

const CTRL_C = "\u0003"
const CTRL_D = "\u0004"
const QUESTION = "[y]es, [n]o, [a]lways in this session: "
const FREE = ["--sandbox", "danger-full-access"]
const ASKING = ["--approve", "untrusted", ...FREE]

// oxlint-disable-next-line no-control-regex -- what must not come
const RAW = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

/** A model, a home of codex for it, and an empty folder. */
const serve = Effect.fnUntraced(function*(scenario: FakeModel.Scenario, modelName?: string) {
  const model = yield* FakeModel.make(scenario)
  const home = yield* CodexHome.make({
    modelUrl: model.url,
    model: modelName,
    config: "features.plugins = false\nfeatures.apps = false"
  })
  const folder = yield* Child.temporaryFolder
  // commands run in a login shell, which reads what is at home
  return { folder, model, env: { CODEX_HOME: home, CODEX_PATH: CodexHome.binary(), HOME: folder } }
})

const open = Effect.fnUntraced(function*(
  scenario: FakeModel.Scenario,
  args: ReadonlyArray<string>,
  options?: Program.Options & { readonly model?: string }
) {
  const { env, folder, model } = yield* serve(scenario, options?.model)
  const start = (args: ReadonlyArray<string>, options?: Program.Options) =>
    Program.start("examples/codex/main.ts", args, { cwd: folder, ...options, env: { ...env, ...options?.env } })
  return { folder, model, start, program: yield* start(args, options) }
})

const nothingLeft = (program: Program.Program) =>
  Os.eventually("nothing is left of it", () => program.alive().length === 0 || undefined)

const render = (...events: ReadonlyArray<Agent.AgentEvent>) => {
  const rendering = makeRendering({ dim: false, canAsk: false })
  return events.flatMap(rendering)
}

const written = (...events: ReadonlyArray<Agent.AgentEvent>) => render(...events).map(({ text }) => text).join("")

const command = (itemId: string, name: string): Agent.AgentEvent => ({
  _tag: "ToolStart",
  itemId,
  kind: "command",
  name,
  input: { command: name }
})

const printed = (itemId: string, text: string): Agent.AgentEvent => ({ _tag: "ToolOutput", itemId, text })

const exited = (itemId: string, output = ""): Agent.AgentEvent => ({
  _tag: "ToolEnd",
  itemId,
  status: "completed",
  output: { output, exitCode: 0 },
  duration: 1_500
})

describe("text", () => {
  it("loses control sequences, also those that are cut in two", () => {
    const plain = makePlain()
    const pieces = [
      "a\u001b",
      "[31",
      "mb\u001b[0m",
      "\u001b]0;title",
      "\u0007c\r",
      "\nd\re\u009b1mf\u0007\u0000\tg",
      "\u001b(Bh\u001bP1"
    ]
    assert.strictEqual(pieces.map(plain).join(""), "abc\nd\nef\tgh")
  })

  it("is never held for long, whatever begins and does not end", () => {
    const plain = makePlain()
    assert.strictEqual(plain("\u001b]x"), "")
    assert.strictEqual(plain("x".repeat(5_000)), `]${"x".repeat(5_001)}`)
    assert.strictEqual(plain("after"), "after")
  })

  it("shows what cannot be seen to those who decide", () => {
    assert.strictEqual(visible("rm\u202e -rf\u001b[8m \u200bx\n\u00e4"), "rm\\u202e -rf\\u001b[8m \\u200bx\nä")
  })
})

describe("events", () => {
  it("become text on standard output, and the rest on standard error", () => {
    assert.deepStrictEqual(
      render(
        { _tag: "ReasoningDelta", itemId: "r", kind: "summary", part: 0, text: "first" },
        { _tag: "TextDelta", itemId: "m", text: "Hel" },
        { _tag: "TextDelta", itemId: "m", text: "lo" },
        { _tag: "TextEnd", itemId: "m", kind: "text", status: "completed", text: "Hello" },
        command("c", "ls"),
        printed("c", "a\nb"),
        exited("c")
      ),
      [
        { to: "err", text: "first" },
        { to: "err", text: "\n" },
        { to: "out", text: "Hel" },
        { to: "out", text: "lo" },
        { to: "out", text: "\n" },
        { to: "err", text: "$ ls\n" },
        { to: "err", text: "  a\n" },
        { to: "err", text: "  b\n" },
        { to: "err", text: "  completed, exit code 0, 1.5 s\n" }
      ]
    )
  })

  it("name the tool again when another one has come in between", () => {
    assert.strictEqual(
      written(
        command("1", "one"),
        command("2", "two"),
        printed("1", "x\n"),
        printed("2", "y\n"),
        exited("2"),
        exited("1")
      ),
      "$ one\n$ two\n$ one (goes on)\n  x\n$ two (goes on)\n  y\n  completed, exit code 0, 1.5 s\n" +
        "$ one (ends)\n  completed, exit code 0, 1.5 s\n"
    )
  })

  it("show the beginning of much output, and how much there is", () => {
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => `${index + from}\n`).join("")
    const text = written(command("1", "seq"), printed("1", lines(0, 15)), printed("1", lines(15, 100)), exited("1"))
    assert.include(text, "  19\n  … 80 more lines\n  completed")
    assert.notInclude(text, "  20\n")
    assert.isBelow(written(command("1", "yes"), printed("1", "y".repeat(10_000_000)), exited("1")).length, 300)
    // and that which comes at the end only
    assert.include(written(command("1", "seq"), exited("1", lines(0, 100))), "  19\n  … 80 more lines\n")
  })

  it("let no control character through, wherever it stands", () => {
    const bad = "\u001b[31m\u009b2J\u0007"
    const text = written(
      { _tag: "TextDelta", itemId: bad, text: bad },
      command("1", bad),
      printed("1", `${bad}\n`),
      exited("1"),
      { _tag: "ToolStart", itemId: "2", kind: bad, name: bad, input: { bad } },
      { _tag: "ToolEnd", itemId: "2", status: "failed", output: { content: [{ text: bad }] } },
      {
        _tag: "ToolStart",
        itemId: "3",
        kind: "file",
        name: bad,
        input: { changes: [{ path: bad, kind: bad, diff: bad }] }
      },
      { _tag: "ApprovalAsked", approvalId: "0", approval: { _tag: "FileChangeApproval", itemId: "3", reason: bad } },
      { _tag: "ToolEnd", itemId: "3", status: "declined", output: { changes: [{ path: bad, diff: bad }] } },
      {
        _tag: "ApprovalAsked",
        approvalId: "1",
        approval: { _tag: "CommandApproval", itemId: "1", command: bad, cwd: bad, reason: bad }
      },
      {
        _tag: "ApprovalAsked",
        approvalId: "2",
        approval: { _tag: "ToolApproval", server: bad, tool: bad, message: bad, input: { bad } }
      },
      {
        _tag: "ApprovalAsked",
        approvalId: "3",
        approval: {
          _tag: "Questions",
          itemId: bad,
          questions: [{ id: bad, question: bad, options: [{ label: bad, description: bad }] }]
        }
      },
      {
        _tag: "ApprovalAsked",
        approvalId: "4",
        approval: { _tag: "Elicitation", server: bad, message: bad, url: bad }
      },
      {
        _tag: "ApprovalAsked",
        approvalId: "5",
        approval: { _tag: "PermissionApproval", itemId: bad, permissions: { [bad]: bad } }
      },
      { _tag: "Warning", message: bad, details: bad },
      { _tag: "Retrying", message: bad },
      { _tag: "TurnEnd", turnId: bad, status: "failed", text: bad, error: { message: bad, kind: bad, details: bad } }
    )
    assert.notMatch(text, RAW)
    assert.include(text, "\\u001b[31m")
  })

  it("show a change of files in full before it is decided on", () => {
    const diff = Array.from({ length: 50 }, (_, index) => `+line ${index}`).join("\n")
    const text = written(
      {
        _tag: "ToolStart",
        itemId: "1",
        kind: "file",
        name: "a.ts",
        input: { changes: [{ path: "a.ts", kind: { type: "update" }, diff }] }
      },
      { _tag: "ApprovalAsked", approvalId: "0", approval: { _tag: "FileChangeApproval", itemId: "1" } }
    )
    assert.include(text, "May these files be changed?\n  update a.ts\n    +line 0\n")
    assert.include(text, "    +line 49\n")
  })
})

describe("the program behind pipes", () => {
  it.live("prints what the agent says, and nothing else, on standard output", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.hello, ["Hi", "there"])
      assert.deepStrictEqual(yield* program.ended, { code: 0, signal: null })
      assert.strictEqual(program.out(), "Hello, größe – 🐢\n")
      assert.match(
        program.err(),
        /tokens: 20 in \(5 cached\), 8 out \(3 reasoning\)\nto go on: --resume [0-9a-f-]{36}\n$/
      )
      assert.notMatch(program.err(), RAW)
      yield* nothingLeft(program)
    }))

  it.live("takes the prompt from standard input, and goes on with a conversation of before", () =>
    Effect.gen(function*() {
      const { model, program, start } = yield* open(Scenarios.hello, [], { input: "First line\nsecond – größe\n" })
      assert.strictEqual((yield* program.ended).code, 0)
      assert.strictEqual(model.requests[0]?.text, "First line\nsecond – größe\n")
      const [, id = ""] = /--resume (\S+)/.exec(program.err()) ?? []
      const next = yield* start(["--resume", id, "Again"])
      assert.strictEqual((yield* next.ended).code, 0)
      assert.strictEqual(model.requests[1]?.text, "Again")
      assert.include(next.err(), `--resume ${id}\n`)
    }))

  it.live("shows reasoning and what came of a command without its control characters", () =>
    Effect.gen(function*() {
      const line = "printf '\\033[31mred\\033[0m\\n'; printf 'x\\007y\\n' >&2; exit 3"
      const { program } = yield* open(({ outputs }) =>
        outputs.length === 0 ? call("exec_command", { cmd: line }) : say("\u001b[2J", "done\u001b", "[1m."), [
        "--approve",
        "never",
        ...FREE,
        "Do it"
      ])
      assert.strictEqual((yield* program.ended).code, 0)
      assert.strictEqual(program.out(), "done.\n")
      assert.match(program.err(), /^\$ .*printf.*\n {2}red\n {2}xy\n {2}failed, exit code 3/m)
      assert.notMatch(program.err(), RAW)
    }))

  it.live("declines what it is asked, and says that there is no terminal", () =>
    Effect.gen(function*() {
      const { folder, program } = yield* open(Scenarios.command("touch made.txt"), [...ASKING, "Make a file"])
      assert.strictEqual((yield* program.ended).code, 0)
      assert.match(program.err(), /May this run\?\n.*touch made.txt/)
      assert.include(program.err(), "  declined: there is no terminal to ask on\n  declined\n")
      assert.isFalse(existsSync(join(folder, "made.txt")))
    }))

  it.live("prints events as lines of JSON, of which the last is the end, and asks nothing", () =>
    Effect.gen(function*() {
      const { program } = yield* open(
        ({ outputs }) => outputs.length === 0 ? call("exec_command", { cmd: "touch made.txt" }) : say("a\u009b", "b"),
        [
          "--json",
          ...ASKING,
          "Hi"
        ],
        { terminal: false }
      )
      assert.strictEqual((yield* program.ended).code, 0)
      assert.match(program.out(), /\n$/)
      const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Agent.AgentEvent))
      const events = program.out().trimEnd().split("\n").map((line) => decode(line))
      assert.strictEqual(events[0]?._tag, "TurnStarted")
      assert.deepInclude(events.at(-1), { _tag: "TurnEnd", status: "completed", text: "a\u009bb" })
      assert.deepInclude(events.find(({ _tag }) => _tag === "ApprovalSettled"), { decision: "decline", by: "default" })
      assert.notMatch(program.out(), RAW)
      assert.match(program.err(), /^to go on: --resume \S+\n$/)
    }))

  it.live("fails with the turn, and says why", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.httpError(400), ["Hi"])
      assert.strictEqual((yield* program.ended).code, 1)
      assert.match(program.err(), /codex: the turn failed: .*refused with 400/)
      assert.strictEqual(program.out(), "")
    }))

  it.live("fails when the conversation to go on with is not there", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.hello, ["--resume", "01a22fa1-d64d-7bb3-9d53-38b1fda3a288", "Hi"])
      assert.strictEqual((yield* program.ended).code, 1)
      assert.match(program.err(), /^codex: the agent refused thread\/resume .*\n$/)
    }))

  it.live("says how to install codex when it is not there", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.hello, ["Hi"], { env: { PATH: "", CODEX_PATH: undefined } })
      assert.deepStrictEqual(yield* program.ended, { code: 1, signal: null })
      assert.match(program.err(), /^codex: the agent cannot be started: .*npm install @openai\/codex.*\n$/)
    }))

  it.live("is interrupted by SIGINT, and leaves by SIGTERM", () =>
    Effect.gen(function*() {
      const { model, program, start } = yield* open(Scenarios.gated(Effect.never, ["never said"]), ["Hi"])
      yield* model.request(1)
      yield* program.signal("SIGINT")
      assert.strictEqual((yield* program.ended).code, 130)
      assert.match(program.err(), /\ninterrupted\n(tokens.*\n)?to go on: --resume \S+\n$/)
      yield* nothingLeft(program)
      const other = yield* start(["--json", "Hi"])
      yield* model.request(2)
      yield* other.signal("SIGTERM")
      assert.strictEqual((yield* other.ended).code, 143)
      yield* nothingLeft(other)
    }))

  it.live("ends the turn and itself when nobody reads what it prints", () =>
    Effect.gen(function*() {
      const gate = yield* Queue.unbounded<void>()
      const { program } = yield* open(Scenarios.gated(Queue.take(gate), ["one ", "two ", "three"]), ["Hi"])
      yield* Queue.offer(gate, undefined)
      yield* program.sees("one ")
      yield* program.closeOutput
      yield* Queue.offer(gate, undefined)
      assert.strictEqual((yield* program.ended).code, 130)
      assert.notInclude(program.err(), "Error")
      yield* nothingLeft(program)
    }))

  it.live("refuses a command line that it does not understand", () =>
    Effect.gen(function*() {
      for (
        const [args, text] of [
          [["--approve", "sometimes", "Hi"], "--approve is sometimes; give one of untrusted, on-request, never"],
          [["--sandbox", "none", "Hi"], "--sandbox is none; give one of read-only"],
          [["--cwd", "nowhere", "Hi"], "nowhere is not a folder"],
          [["--colour", "Hi"], "--colour"],
          [[""], "the prompt is empty"],
          [[], "the input is empty"]
        ] as const
      ) {
        const program = yield* Program.start("examples/codex/main.ts", args, { input: " \n" })
        assert.strictEqual((yield* program.ended).code, 2)
        assert.match(program.err(), /^codex: [^\n]*\n$/)
        assert.include(program.err(), text)
      }
    }))
})

/** Runs the same command twice. */
const twice = (line: string): FakeModel.Scenario => ({ outputs }) =>
  outputs.length < 2 ? call("exec_command", { cmd: line }) : say("done")

describe("the program on a terminal", () => {
  it.live("asks before a command runs, and runs it after y", () =>
    Effect.gen(function*() {
      const { folder, program } = yield* open(Scenarios.command("touch made.txt"), [...ASKING, "Make a file"], {
        terminal: true
      })
      yield* program.sees("May this run?")
      yield* program.sees("touch made.txt")
      yield* program.sees(QUESTION)
      assert.isFalse(existsSync(join(folder, "made.txt")))
      yield* program.type("perhaps\n")
      yield* program.sees(QUESTION)
      yield* program.type("y\n")
      yield* program.sees("completed, exit code 0")
      yield* program.sees("It said: ")
      assert.strictEqual((yield* program.ended).code, 0)
      assert.isTrue(existsSync(join(folder, "made.txt")))
      assert.include(program.out(), "\u001b[2mtokens: ")
      yield* nothingLeft(program)
    }))

  it.live("does not run it after n, nor because of what was typed before the question", () =>
    Effect.gen(function*() {
      const { folder, program } = yield* open(Scenarios.command("touch made.txt"), [...ASKING, "Make a file"], {
        terminal: true,
        env: { NO_COLOR: "1" }
      })
      yield* program.type("y\ny\n")
      yield* program.sees(QUESTION)
      yield* program.type("n\n")
      yield* program.sees("declined")
      assert.strictEqual((yield* program.ended).code, 0)
      assert.isFalse(existsSync(join(folder, "made.txt")))
      assert.notInclude(program.out(), "\u001b")
    }))

  it.live("asks once for what is allowed always", () =>
    Effect.gen(function*() {
      const { program } = yield* open(twice("touch made.txt"), [...ASKING, "Make a file"], { terminal: true })
      yield* program.sees(QUESTION)
      yield* program.type("a\n")
      assert.strictEqual((yield* program.ended).code, 0)
      assert.strictEqual(program.out().split(QUESTION).length - 1, 1)
      assert.strictEqual(program.out().split("completed, exit code 0").length - 1, 2)
    }))

  it.live("shows the change of a file before it asks", () =>
    Effect.gen(function*() {
      const { folder, program } = yield* open(
        Scenarios.patch("new.txt", "größe"),
        ["--approve", "untrusted", "--sandbox", "read-only", "Add a file"],
        { terminal: true, model: "gpt-5.5" }
      )
      yield* program.sees("add ")
      yield* program.sees("größe")
      yield* program.sees(QUESTION)
      yield* program.type("yes\n")
      assert.strictEqual((yield* program.ended).code, 0)
      assert.isTrue(existsSync(join(folder, "new.txt")))
    }))

  it.live("interrupts the turn at the first Ctrl-C, also while it asks", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.command("touch made.txt"), [...ASKING, "Make a file"], {
        terminal: true
      })
      yield* program.sees(QUESTION)
      yield* program.type(CTRL_C)
      yield* program.sees("interrupted")
      yield* program.sees("to go on: --resume ")
      assert.strictEqual((yield* program.ended).code, 130)
      yield* nothingLeft(program)
    }))

  it.live("leaves at the second Ctrl-C, although codex does nothing any more", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.command("sleep 1001"), ["--approve", "never", ...FREE, "Wait"], {
        terminal: true
      })
      yield* program.process("sleep 1001")
      process.kill(yield* program.process("app-server"), "SIGSTOP")
      yield* program.type(CTRL_C)
      yield* program.sees("Ctrl-C again leaves")
      const begun = performance.now()
      yield* program.type(CTRL_C)
      assert.strictEqual((yield* program.ended).code, 130)
      // a second, and time for a busy machine; codex has 5 seconds for an interruption
      assert.isBelow(performance.now() - begun, 3_000)
      yield* nothingLeft(program)
    }))

  it.live("asks for one prompt after the other, also after one that was interrupted, until the input ends", () =>
    Effect.gen(function*() {
      const { model, program } = yield* open(
        (request) => request.number === 2 ? Scenarios.gated(Effect.never, ["never said"])(request) : say("Hello"),
        [],
        { terminal: true }
      )
      yield* program.sees("> ")
      yield* program.type("\nFirst\n")
      yield* program.sees("Hello")
      yield* program.sees("> ")
      yield* program.type("Second\n")
      yield* model.request(2)
      yield* program.type(CTRL_C)
      yield* program.sees("interrupted")
      yield* program.sees("> ")
      yield* program.type("Third\n")
      yield* program.sees("Hello")
      yield* program.sees("> ")
      assert.deepStrictEqual(model.requests.map(({ text }) => text), ["First", "Second", "Third"])
      yield* program.type(CTRL_D)
      yield* program.sees("to go on: --resume ")
      assert.strictEqual((yield* program.ended).code, 0)
      yield* nothingLeft(program)
    }))

  it.live("leaves at Ctrl-C when there is no turn", () =>
    Effect.gen(function*() {
      const { program } = yield* open(Scenarios.hello, [], { terminal: true })
      yield* program.sees("> ")
      yield* program.type(CTRL_C)
      assert.strictEqual((yield* program.ended).code, 130)
      yield* nothingLeft(program)
    }))
})

describe("the programs that docs/agents.md shows", () => {
  const run = Effect.fnUntraced(function*(file: string, scenario: FakeModel.Scenario) {
    const { env, folder, model } = yield* serve(scenario)
    const program = yield* Program.start(file, [], { cwd: folder, env })
    assert.deepStrictEqual([yield* program.ended, program.err()], [{ code: 0, signal: null }, ""])
    yield* nothingLeft(program)
    return { model, text: program.out() }
  })

  it.live("show what an agent does, and decline what it asks", () =>
    Effect.gen(function*() {
      const { text } = yield* run("examples/docs/agent.ts", Scenarios.command("rm -r old"))
      const lines = text.split("\n")
      assert.match(lines[0] ?? "", /^command: .*rm -r old/)
      assert.match(lines[1] ?? "", /^not allowed: .*rm -r old/)
      assert.strictEqual(lines[2], "declined")
      assert.match(lines[3] ?? "", /^It said: .*rejected by user/)
      assert.include(lines, "the turn is completed")
      assert.match(text, /\ncompleted: It said: /)
    }))

  it.live("lend an agent a tool of the program", () =>
    Effect.gen(function*() {
      const { model, text } = yield* run("examples/docs/agent-tools.ts", Scenarios.dynamicTool("order", { number: 7 }))
      assert.strictEqual(text, "The client has answered.\n")
      assert.include(JSON.stringify(model.requests[1]?.outputs), "sent")
    }))
})

Child.leavesNothingBehind()

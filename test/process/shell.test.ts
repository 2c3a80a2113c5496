/**
 * The shell server as a process, with the client of the protocol's authors.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import type { Outcome } from "../../examples/shell/Shell.ts"
import { busy, decodeOutcome, HELLO, open, SERVER, STUBBORN, STUBBORN_FILES } from "../shell/support.ts"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import * as Project from "../utils/project.ts"

const quiet = {
  signal: null,
  timedOut: false,
  stderr: "",
  stdoutBytesLeftOut: 0,
  stderrBytesLeftOut: 0,
  leftRunning: false
}

const shape = ({ durationMs, ...rest }: Outcome) => {
  assert.isAtLeast(durationMs, 0)
  return rest
}

describe("the shell server", () => {
  it.live("tells hosts that a command may change anything anywhere, and that the other tools only look", () =>
    Effect.gen(function*() {
      const { client } = yield* open()
      const { tools } = yield* Effect.promise(() => client.listTools())
      const looks = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      assert.deepStrictEqual(tools.map(({ annotations, name }) => ({ name, ...annotations })), [
        {
          name: "run",
          title: "Run a command",
          readOnlyHint: false,
          destructiveHint: true,
          idempotentHint: false,
          openWorldHint: true
        },
        { name: "which_bash", title: "Which bash runs the commands", ...looks },
        { name: "diagnose", title: "What this server can run", ...looks }
      ])
    }))

  it.live("returns what a command wrote, and how it ended", () =>
    Effect.gen(function*() {
      const { call, run } = yield* open()
      assert.deepStrictEqual(shape(yield* run("echo out; echo problem >&2; exit 3")), {
        ...quiet,
        exitCode: 3,
        stdout: "out\n",
        stderr: "problem\n"
      })
      assert.deepStrictEqual(shape(yield* run("true")), { ...quiet, exitCode: 0, stdout: "" })
      // what begins with a dash is no option of bash
      assert.strictEqual((yield* run("-x")).exitCode, 127)
      assert.strictEqual((yield* run("if")).exitCode, 2)
      assert.strictEqual((yield* run("for i in 1 2\ndo echo $i\ndone")).stdout, "1\n2\n")
      const { structuredContent } = yield* call("which_bash")
      assert.deepStrictEqual(structuredContent, { path: (yield* run("type -P bash")).stdout.trim(), source: "PATH" })
    }))

  it.live("gives a command no input, no pager, no editor and no terminal", () =>
    Effect.gen(function*() {
      const { run } = yield* open({ PAGER: "less", GIT_EDITOR: "vi" })
      const { exitCode, stdout } = yield* run(
        "cat; read line || echo no input; $PAGER src/ledger.ts | head -1; echo $GIT_PAGER $GIT_EDITOR $GIT_TERMINAL_PROMPT; (: < /dev/tty) 2>/dev/null || echo no terminal"
      )
      assert.strictEqual(exitCode, 0)
      assert.match(stdout, /^no input\n.*\ncat true 0\nno terminal\n$/)
    }))

  it.live("lets nothing ask for a password, and reads no profile", () =>
    Effect.gen(function*() {
      const home = yield* Child.temporaryFolder
      yield* Effect.sync(() => writeFileSync(`${home}/.bashrc`, "echo profile\n"))
      const { project, run } = yield* open({ HOME: home, SSH_CLIENT: "::1 1 22", SHLVL: "0", GIT_ASKPASS: "./ask" })
      project.write("ask", "#!/bin/sh\ntouch asked\n")
      yield* Effect.sync(() => chmodSync(project.path("ask"), 0o755))
      const { exitCode, stdout } = yield* run(
        "printf 'protocol=https\\nhost=localhost\\n\\n' | git credential fill; status=$?; ls asked; exit $status"
      )
      assert.deepStrictEqual([exitCode, stdout], [128, ""])
    }))

  it.live("refuses what cannot be run, and says what to do", () =>
    Effect.gen(function*() {
      const { project, refusal } = yield* open()
      const files = project.files()
      for (const command of ["", " \n"]) assert.match(yield* refusal(command), /command is empty\. Give a command line/)
      assert.match(yield* refusal("echo a\0b"), /NUL character.*printf/)
      assert.match(yield* refusal("echo \ud83d"), /half of a character/)
      assert.match(yield* refusal(`: ${"x".repeat(100_000)}`), /100002 bytes, and at most 100000.*Write it to a file/)
      for (const timeout of [0, -1, 1.5, 1_800_001]) {
        assert.match(
          yield* refusal("true", { timeout }),
          new RegExp(`^${timeout} is not a timeout\\. Give whole milliseconds from 1 to 1800000`)
        )
      }
      assert.match(yield* refusal("true", { timeout: "5" }), /timeout/)
      assert.match(yield* refusal("touch new", { cwd: "src" }), /cwd/)
      assert.deepStrictEqual(project.files(), files)
    }))

  it.live("runs in a folder of the project, and in none outside", () =>
    Effect.gen(function*() {
      const { project, refusal, run } = yield* open()
      mkdirSync(project.path("größe 支出/子"), { recursive: true })
      const workdirs = [
        [undefined, ""],
        ["", ""],
        [".", ""],
        ["src", "/src"],
        ["src/..", ""],
        [project.path("src"), "/src"],
        ["größe 支出/子", "/größe 支出/子"]
      ] as const
      for (const [workdir, folder] of workdirs) {
        const { stdout } = yield* run("pwd", workdir === undefined ? {} : { workdir })
        assert.strictEqual(stdout, `${project.folder}${folder}\n`)
      }
      const files = project.files()
      for (const workdir of ["..", "elsewhere", "/", "src/../../elsewhere"]) {
        assert.match(yield* refusal("touch new", { workdir }), /leads out of the server's folder/)
      }
      assert.match(yield* refusal("pwd", { workdir: "src/ledger.ts" }), /is not a folder/)
      assert.match(yield* refusal("pwd", { workdir: "nothing" }), /There is no "nothing"/)
      assert.match(yield* refusal("pwd", { workdir: "a\0b" }), /There is no/)
      assert.deepStrictEqual(project.files(), files)
      assert.deepStrictEqual(readdirSync(project.path("elsewhere")), ["outside.ts"])
    }))

  it.live("passes text on as it is: other scripts, carriage returns, names of files", () =>
    Effect.gen(function*() {
      const { project, run } = yield* open()
      assert.strictEqual((yield* run("cat src/windows.ts")).stdout, project.read("src/windows.ts"))
      assert.include(project.read("src/windows.ts"), "\r\n")
      assert.strictEqual((yield* run("cat 'src/größe 支出.ts'")).stdout, project.read("src/größe 支出.ts"))
      assert.strictEqual((yield* run("printf '🚆 \\xff\\n' >&2")).stderr, "🚆 \uFFFD\n")
      const before = project.files()
      yield* run("printf 'Köln → 東京\\n' > 'src/新しい ä.txt'")
      assert.strictEqual(project.read("src/新しい ä.txt"), "Köln → 東京\n")
      assert.deepStrictEqual(Object.keys(project.files()).filter((name) => !(name in before)), ["src/新しい ä.txt"])
    }))

  it.live("keeps the beginning and the end of a large output", () =>
    Effect.gen(function*() {
      const { project, run } = yield* open()
      const huge = Array.from({ length: 200_000 }, (_, line) => `line ${line} of größe\n`).join("")
      project.write("huge.txt", huge)
      const bytes = Buffer.byteLength(huge)
      assert.isAbove(bytes, 4_000_000)
      const { stderr, stderrBytesLeftOut, stdout, stdoutBytesLeftOut } = yield* run("cat huge.txt; cat huge.txt >&2")
      for (const [text, leftOut] of [[stdout, stdoutBytesLeftOut], [stderr, stderrBytesLeftOut]] as const) {
        const [head = "", tail = "", ...more] = text.split(`\n[… ${leftOut} bytes left out …]\n`)
        assert.deepStrictEqual(more, [])
        assert.isTrue(huge.startsWith(head))
        assert.isTrue(huge.endsWith(tail))
        assert.strictEqual(Buffer.byteLength(head) + leftOut + Buffer.byteLength(tail), bytes)
        assert.isAtLeast(Buffer.byteLength(tail), 16_380)
      }
    }))

  it.live("shows output while the command runs, and all of it in the result", () =>
    Effect.gen(function*() {
      const { project, run } = yield* open()
      let shown = ""
      const numbers: Array<number> = []
      const { stdout } = yield* run("echo größe; until [ -e seen ]; do sleep 0.05; done; echo over", {}, {
        onprogress: ({ message, progress }) => {
          shown += message ?? ""
          numbers.push(progress)
          // the command goes on when its first line was seen
          if (shown.startsWith("größe\n")) project.write("seen", "")
        }
      })
      assert.strictEqual(stdout, "größe\nover\n")
      assert.isTrue(stdout.startsWith(shown))
      assert.strictEqual(numbers[0], 8)
    }))

  it.live("returns what there is when the time is over, also after a millisecond", () =>
    Effect.gen(function*() {
      const { run } = yield* open()
      const partial = yield* run("echo begun; sleep 600; echo never", { timeout: 1_000 })
      assert.deepStrictEqual(shape(partial), {
        ...quiet,
        exitCode: null,
        signal: "SIGTERM",
        timedOut: true,
        stdout: "begun\n"
      })
      assert.isAtLeast(partial.durationMs, 1_000)
      const { signal, timedOut } = yield* run("sleep 600", { timeout: 1 })
      assert.deepStrictEqual({ signal, timedOut }, { signal: "SIGTERM", timedOut: true })
      // one that cleans up may say so
      const tidy = yield* run("trap 'echo tidy; exit 7' TERM; while :; do sleep 0.05; done", { timeout: 1_000 })
      assert.deepStrictEqual([tidy.exitCode, tidy.timedOut, tidy.stdout], [7, true, "tidy\n"])
    }))

  it.live("takes the default timeout from the environment, and says where it is from", () =>
    Effect.gen(function*() {
      const { call, run } = yield* open({
        EFFECT_STDIO_SHELL_TIMEOUT_MS: "soon",
        CODEX_EXEC_COMMAND_TIMEOUT_MS: "300",
        EXEC_COMMAND_TIMEOUT_MS: "400"
      })
      assert.isTrue((yield* run("sleep 600")).timedOut)
      const { structuredContent } = yield* call("diagnose")
      assert.deepInclude(structuredContent, {
        defaultTimeoutMs: 300,
        defaultTimeoutFrom: "CODEX_EXEC_COMMAND_TIMEOUT_MS",
        invalidTimeouts: [{ variable: "EFFECT_STDIO_SHELL_TIMEOUT_MS", value: "soon" }]
      })
    }))

  it.live("says what it can run, and how many commands run", () =>
    Effect.gen(function*() {
      const { call, pid, project, run } = yield* open()
      const running = yield* Effect.forkChild(run("echo $$ > pid; until [ -e go ]; do sleep 0.05; done"))
      yield* pid("pid")
      const { structuredContent } = yield* call("diagnose")
      assert.deepInclude(structuredContent, {
        platform: process.platform,
        folder: project.folder,
        problem: null,
        defaultTimeoutMs: 120_000,
        defaultTimeoutFrom: "built in",
        invalidTimeouts: [],
        running: 1,
        maxRunning: 16
      })
      assert.match(String((structuredContent as { readonly version: unknown }).version), /^GNU bash, version \d/)
      project.write("go", "")
      yield* Fiber.join(running)
    }))

  it.live("says which variable names a wrong bash, and runs none", () =>
    Effect.gen(function*() {
      const { call, refusal } = yield* open({ EFFECT_STDIO_BASH: "/nowhere/bash" })
      const expected = /^EFFECT_STDIO_BASH in the server's environment is "\/nowhere\/bash", which does not exist\./
      assert.match(yield* refusal("true"), expected)
      assert.isTrue((yield* call("which_bash")).isError)
      const { structuredContent } = yield* call("diagnose")
      const { problem, ...rest } = structuredContent as { readonly problem: string }
      assert.match(problem, expected)
      assert.deepInclude(rest, {
        bash: null,
        version: null,
        tried: [{ path: "/nowhere/bash", source: "EFFECT_STDIO_BASH", refused: "does not exist" }]
      })
    }))

  it.live("says so when its bash cannot be started", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      project.write("bash", "#!/nowhere/interpreter\n")
      const bash = project.path("bash")
      yield* Effect.sync(() => chmodSync(bash, 0o755))
      const { call, refusal } = yield* open({ EFFECT_STDIO_BASH: bash })
      assert.match(yield* refusal("true"), /did not start bash \(ENOENT\): workdir .* Try another workdir/)
      assert.deepInclude((yield* call("diagnose")).structuredContent, { version: null, running: 0 })
    }))

  it.live("runs commands at the same time, up to sixteen", () =>
    Effect.gen(function*() {
      const { call, pid, project, refusal, run } = yield* open()
      // each waits for the other
      const [one, two] = yield* Effect.all([
        run("touch one; until [ -e two ]; do sleep 0.02; done; echo 1"),
        run("touch two; until [ -e one ]; do sleep 0.02; done; echo 2")
      ], { concurrency: 2 })
      assert.deepStrictEqual([one.stdout, two.stdout], ["1\n", "2\n"])
      const many = yield* Effect.forkChild(Effect.all(
        Array.from({ length: 16 }, (_, index) => run(`echo $$ > pid${index}; until [ -e go ]; do sleep 0.1; done`)),
        { concurrency: 16 }
      ))
      for (let index = 0; index < 16; index++) yield* pid(`pid${index}`)
      assert.match(yield* refusal("true"), /^16 commands are running.*Wait until one of them ends/)
      assert.isNotTrue((yield* call("which_bash")).isError)
      project.write("go", "")
      assert.isTrue((yield* Fiber.join(many)).every(({ exitCode }) => exitCode === 0))
      assert.strictEqual((yield* run("true")).exitCode, 0)
    }))
})

const allGone = (pids: ReadonlyArray<number>) => Effect.forEach(pids, Os.gone, { discard: true })

describe.runIf(Os.isLinux)("a command that ends before all that it started", () => {
  it.live("is cancelled with everything", () =>
    Effect.gen(function*() {
      const { pid, run, running: count } = yield* open()
      const running = yield* Effect.forkChild(run(`${STUBBORN}\necho $$ > bash; sleep 600; :`))
      const pids = yield* Effect.forEach([...STUBBORN_FILES, "bash"], pid)
      assert.isFalse(pids.some(Os.isGone))
      yield* Fiber.interrupt(running)
      yield* allGone(pids)
      // its place is free again soon
      yield* count.pipe(Effect.repeat({ until: (count) => count === 0 }), Effect.timeout("20 seconds"))
    }))

  it.live("is ended with everything when its time is over", () =>
    Effect.gen(function*() {
      const { pid, run } = yield* open()
      const { timedOut } = yield* run(`${STUBBORN}\nsleep 600; :`, { timeout: 2_000 })
      assert.isTrue(timedOut)
      // nothing is left when the result is there
      assert.isTrue((yield* Effect.forEach(STUBBORN_FILES, pid)).every(Os.isGone))
    }))

  it.live("is asked to end once, so that what ends at once when it is asked again has its time", () =>
    Effect.gen(function*() {
      const { run } = yield* open()
      // of many at least one would be on its way between two signals
      const counting = "trap 'echo asked' TERM; echo up; while :; do read -t 0.01 < <(sleep 1); done"
      const { stdout } = yield* run(`for i in {1..12}; do bash -c "${counting}" & done; wait; wait`, { timeout: 5_000 })
      assert.strictEqual(stdout.match(/up/g)?.length, 12)
      const asked = stdout.match(/asked/g)?.length ?? 0
      // a busy machine may leave one of them no time to say so
      assert.isTrue(asked > 0 && asked <= 12, `asked ${asked} times`)
    }))

  it.live("does not hang with its pipes in other hands, and leaves nothing", () =>
    Effect.gen(function*() {
      const { pid, run } = yield* open()
      const holding = yield* run("sleep 600 & echo $! > held; echo begun")
      assert.deepStrictEqual(shape(holding), { ...quiet, exitCode: 0, stdout: "begun\n", leftRunning: true })
      assert.isTrue(Os.isGone(yield* pid("held")))
      // what ends soon is waited for
      const late = yield* run("(sleep 0.1; echo late) & echo soon; exit 4")
      assert.deepStrictEqual(shape(late), { ...quiet, exitCode: 4, stdout: "soon\nlate\n" })
      const tidy = yield* run("(sleep 0.1; echo $BASHPID > tidy) >/dev/null 2>&1 & echo soon")
      assert.isFalse(tidy.leftRunning)
      assert.isTrue(Os.isGone(yield* pid("tidy")))
      const silent = yield* run("setsid sleep 600 >/dev/null 2>&1 & echo $! > silent")
      assert.isTrue(silent.leftRunning)
      assert.isTrue(Os.isGone(yield* pid("silent")))
      const nameless = yield* run("env -i PATH=\"$PATH\" sleep 600 >/dev/null 2>&1 & echo $! > nameless")
      assert.isTrue(nameless.leftRunning)
      assert.isTrue(Os.isGone(yield* pid("nameless")))
    }))

  it.live("is killed from outside, and says by which signal", () =>
    Effect.gen(function*() {
      const { pid, run } = yield* open()
      const running = yield* Effect.forkChild(run("echo before; sleep 600 & echo $! > inner; echo $$ > bash; wait"))
      const bash = yield* pid("bash")
      yield* Effect.sync(() => process.kill(bash, "SIGKILL"))
      const { leftRunning, signal, stdout, timedOut } = yield* Fiber.join(running)
      assert.deepStrictEqual({ leftRunning, signal, stdout, timedOut }, {
        leftRunning: true,
        signal: "SIGKILL",
        stdout: "before\n",
        timedOut: false
      })
      assert.isTrue(Os.isGone(yield* pid("inner")))
    }))
})

describe.runIf(Os.isLinux)("a server that ends while a command runs", () => {
  const ends = [
    ["its input ends", (child: Child.Child) => child.endInput],
    ["it gets SIGTERM", (child: Child.Child) => child.kill("SIGTERM")],
    ["it gets SIGINT", (child: Child.Child) => child.kill("SIGINT")],
    [
      "nobody reads its output",
      (child: Child.Child) => Effect.andThen(child.destroy("stdout"), child.send({ id: "ping", method: "ping" }))
    ]
  ] as const
  for (const [why, end] of ends) {
    it.live(`leaves nothing of it when ${why}`, () =>
      Effect.gen(function*() {
        const project = yield* Project.make
        const { child, pids } = yield* busy(Child.runtime, [Child.path(SERVER), project.folder], project)
        yield* end(child)
        assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
        yield* allGone(pids)
      }))
  }

  it.live("leaves nothing of it when it is told a second time, and has no time left", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const { child, pids } = yield* busy(Child.runtime, [Child.path(SERVER), project.folder], project)
      yield* child.kill("SIGTERM")
      yield* Os.delivered(child.pid, "SIGTERM")
      yield* child.kill("SIGTERM")
      assert.deepStrictEqual(yield* child.closed, { code: 143, signal: null })
      yield* allGone(pids)
    }))

  const holder = ["-c", "\"$@\"; exec sleep 600", "holder"]
  for (const wrapper of ["nothing", "npm exec"]) {
    it.live(`leaves nothing of it when its host is killed, with ${wrapper} between them`, () =>
      Effect.gen(function*() {
        const project = yield* Project.make
        const server = [Child.runtime, Child.path(SERVER), "--events", "--parent-poll", "200ms", project.folder]
        const command = wrapper === "nothing"
          ? server
          : ["npm", "exec", "--offline", "-c", server.map((word) => `'${word}'`).join(" ")]
        const { child, pids } = yield* busy(
          "/bin/sh",
          [...holder, process.execPath, Child.path("test/fixtures/host.ts"), ...command],
          project
        )
        const { host } = yield* child.event("Spawned")
        yield* Effect.sync(() => process.kill(Number(host), "SIGKILL"))
        yield* child.event("ParentExit")
        yield* allGone(pids)
        yield* child.kill("SIGKILL")
      }))
  }

  it.live("has told all output, to the last byte, before its reply", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const child = yield* Child.node(SERVER, [project.folder])
      yield* child.call("initialize", HELLO)
      const reply = yield* child.call("tools/call", {
        name: "run",
        arguments: { command: "echo first; echo second >&2; sleep 0.4; printf 'third\nlast'" },
        _meta: { progressToken: "all" }
      })
      assert.strictEqual(child.messages.at(-1), reply)
      const told = child.messages.filter(({ method }) => method === "notifications/progress")
        .map(({ params }) => params as { readonly message: string; readonly progress: number })
      assert.sameMembers(told.map(({ message }) => message).join("").split("\n"), ["first", "second", "third", "last"])
      assert.strictEqual(told.at(-1)?.progress, "first\nsecond\nthird\nlast".length)
    }))

  it.live("has bounded memory under a flood", () =>
    Effect.gen(function*() {
      const project = yield* Project.make
      const child = yield* Child.node(SERVER, [project.folder])
      yield* child.call("initialize", HELLO)
      yield* child.call("tools/call", { name: "run", arguments: { command: "head -c 50000000 /dev/zero" } })
      const before = Os.memory(child.pid, "VmHWM")
      const reply = yield* child.call("tools/call", {
        name: "run",
        arguments: { command: "yes", timeout: 3_000 },
        _meta: { progressToken: "flood" }
      })
      const outcome = decodeOutcome((reply.result as { readonly structuredContent: unknown }).structuredContent)
      assert.isTrue(outcome.timedOut)
      // far more went through than is there now
      assert.isAbove(outcome.stdoutBytesLeftOut, 100_000_000)
      assert.isBelow(outcome.stdout.length, 40_000)
      assert.isBelow(Os.memory(child.pid, "VmHWM") - before, 64)
      const progress = child.messages.filter(({ method }) => method === "notifications/progress")
      assert.isAbove(progress.length, 1)
      // four a second, for as long as it took
      assert.isBelow(progress.length, 60)
      assert.isTrue(progress.every((message) => JSON.stringify(message).length < 10_000))
    }))
})

Child.leavesNothingBehind()

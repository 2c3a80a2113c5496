/**
 * Children that misbehave in one way each, and what becomes of the calls to them.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Peer from "effect-stdio/Peer"
import * as Process from "effect-stdio/Process"
import * as Router from "effect-stdio/Router"
import { JsonRpcError } from "effect-stdio/Schema"
import * as Transport from "effect-stdio/Transport"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Child from "../utils/child.ts"
import * as Os from "../utils/os.ts"
import { exitOf, failedWithExit, peer, said, script } from "../utils/process.ts"

const millis = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([time, value]) => [Duration.toMillis(time), value] as const)

/** Runs an effect in a scope of its own, closes it, and returns how long that took. */
const closing = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>, exit: Exit.Exit<unknown> = Exit.void) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const value = yield* Scope.provide(effect, scope)
    const [time] = yield* millis(Scope.close(scope, exit))
    return [time, value] as const
  })

describe("a child", () => {
  it.live("answers calls, and ends with its input when the scope closes", () =>
    Effect.gen(function*() {
      const [time, { process }] = yield* closing(Effect.tap(
        peer("answers"),
        ({ peer }) =>
          Effect.map(peer.call("echo", { text: "hé" }), (answer) => assert.deepStrictEqual(answer, { text: "hé" }))
      ))
      assert.isTrue(Os.isGone(process.pid))
      assert.deepStrictEqual(yield* process.exited, { exitCode: 0 })
      assert.isBelow(time, 1_900)
    }))

  it.live("gets its arguments as they are, without a shell", () =>
    Effect.gen(function*() {
      const args = ["", "a b", "$HOME", "`id`", "\"", "*", "; exit 1"]
      const { peer: server } = yield* peer("answers", { child: { args } })
      assert.deepStrictEqual(yield* server.call("args"), args)
    }))

  it.live("runs in the folder that it is given", () =>
    Effect.gen(function*() {
      const folder = yield* Child.temporaryFolder
      const { peer: server } = yield* peer("answers", { child: { cwd: folder } })
      assert.include(yield* server.call("cwd"), folder)
    }))

  it.live("is a layer that provides the connection", () =>
    Effect.gen(function*() {
      const transport = yield* Transport.Transport
      const process = yield* Process.Process
      const server = yield* Peer.make(transport, { onBadInput: "count" })
      assert.deepStrictEqual(yield* server.call("echo", [1]), [1])
      assert.deepStrictEqual(yield* process.end, { exitCode: 0 })
    }).pipe(
      Effect.scoped,
      Effect.provide(Process.layer(Child.runtime, [script("answers")], { env: Child.environment }))
    ))

  it.live("is spoken to with the framing that it is given", () =>
    Effect.gen(function*() {
      const process = yield* Process.make(Child.runtime, [
        "-e",
        "process.stdin.once('data', () => process.stdout.write('Content-Length: 36\\r\\n\\r\\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":17}'))"
      ], { framing: "content-length", env: Child.environment })
      const server = yield* Peer.make(process.transport, { onBadInput: "count" })
      assert.strictEqual(yield* server.call("m"), 17)
    }))
})

describe("the environment of a child", () => {
  const envOf = (options: Process.Options, name = "answers") =>
    Effect.flatMap(
      peer(name, { child: options }),
      ({ peer }) =>
        Effect.flatMap(peer.call("env"), Schema.decodeUnknownEffect(Schema.Record(Schema.String, Schema.String)))
    )

  it.live("is ours with what is given over it (F138)", () =>
    Effect.gen(function*() {
      const env = yield* envOf({ env: { API_KEY: Redacted.make("s3cret"), HOME: undefined } })
      assert.strictEqual(env["PATH"], process.env["PATH"])
      assert.strictEqual(env["API_KEY"], "s3cret")
      assert.notProperty(env, "HOME")
    }))

  it.live("finds a program by name although it is given variables (F138)", () =>
    Effect.gen(function*() {
      const process = yield* Process.make("node", [script("answers")], { env: { ...Child.environment, API_KEY: "x" } })
      const server = yield* Peer.make(process.transport)
      assert.deepInclude(yield* server.call("env"), { API_KEY: "x" })
    }))

  it.live("has nothing of ours but what is listed, where a list is given", () =>
    Effect.gen(function*() {
      const env = yield* envOf({ inheritEnv: ["PATH", "NO_SUCH_VARIABLE"] })
      assert.deepStrictEqual(Object.keys(env).toSorted(), ["PATH", ...Object.keys(Child.environment)].toSorted())
    }))
})

describe("a child that cannot be started", () => {
  const failure = (command: string, options?: Process.Options, args: Parameters<typeof Process.make>[1] = ["--flag"]) =>
    Effect.map(Effect.flip(Effect.scoped(Process.make(command, args, options))), (error) => {
      assert.instanceOf(error, Process.ProcessError)
      return error
    })

  it.live("is missing: the error says what was run and what to look at (F132)", () =>
    Effect.gen(function*() {
      const error = yield* failure("no-such-program")
      assert.deepStrictEqual(error.reason, new Process.NotFound({ command: "no-such-program --flag" }))
      assert.strictEqual(
        error.message,
        "cannot start no-such-program --flag: there is no such program. Is it installed, and its folder in the PATH of the child's environment?"
      )
      assert.strictEqual((yield* failure("/no/such/program")).reason._tag, "NotFound")
    }))

  it.live("is a file without permission, or a folder (F132)", () =>
    Effect.gen(function*() {
      const folder = yield* Child.temporaryFolder
      const file = join(folder, "not-executable")
      writeFileSync(file, "#!/bin/sh\n")
      assert.deepStrictEqual(
        (yield* failure(file)).reason,
        new Process.NotExecutable({ command: `${file} --flag`, detail: "it is not marked as executable" })
      )
      assert.deepStrictEqual(
        (yield* failure(folder)).reason,
        new Process.NotExecutable({ command: `${folder} --flag`, detail: "it is a folder" })
      )
    }))

  it.live("has an interpreter that does not exist", () =>
    Effect.gen(function*() {
      const file = join(yield* Child.temporaryFolder, "script")
      writeFileSync(file, "#!/no/such/interpreter\n")
      chmodSync(file, 0o755)
      const error = yield* failure(file)
      assert.include(error.message, "what its first line names to interpret it does not exist")
    }))

  it.live("has a working directory that does not exist, or is a file (F132)", () =>
    Effect.gen(function*() {
      for (const cwd of ["/no/such/folder", script("answers")]) {
        const error = yield* failure(Child.runtime, { cwd })
        assert.deepInclude(error.reason, { _tag: "BadWorkingDirectory", cwd })
      }
    }))

  it.live("has a NUL character in an argument or variable, whose value is not shown", () =>
    Effect.gen(function*() {
      const args = yield* failure(Child.runtime, {}, [Redacted.make("s3cret\0")])
      const env = yield* failure(Child.runtime, { env: { TOKEN: Redacted.make("s3cret\0") } })
      assert.deepStrictEqual([args.reason._tag, env.reason._tag], ["InvalidArgument", "InvalidArgument"])
      assert.include(env.message, "TOKEN")
      assert.notInclude(JSON.stringify([args, env, args.message, env.message]), "s3cret")
    }))

  it.live("does not show what is redacted", () =>
    Effect.gen(function*() {
      const error = yield* failure("no-such-program", {}, ["--token", Redacted.make("s3cret")])
      assert.strictEqual(error.reason.command, "no-such-program --token <redacted>")
      assert.notInclude(JSON.stringify(error), "s3cret")
    }))
})

describe("a child that ends", () => {
  it.live("at once: the call fails with its code and its last words (F129, F131)", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("exits-at-once")
      const exit = yield* failedWithExit(server.call("initialize"))
      assert.deepStrictEqual(
        exit,
        new Transport.ProcessExited({
          command: process.command,
          exitCode: 3,
          stderrTail: "Error: Cannot find module 'left-pad'\n"
        })
      )
      const error = yield* Effect.flip(server.call("initialize"))
      assert.match(
        error.message,
        /ended with code 3; its standard error ends with:\nError: Cannot find module 'left-pad'$/
      )
    }))

  it.live("before the first write, as a shell that exits does: nothing is thrown (F129)", () =>
    Effect.gen(function*() {
      for (let round = 0; round < 20; round++) {
        const process = yield* Process.make("/bin/sh", ["-c", "exit 3"], { env: Child.environment })
        const server = yield* Peer.make(process.transport)
        assert.deepInclude(yield* failedWithExit(server.call("initialize")), { exitCode: 3 })
      }
    }))

  it.live("in the middle of a call: it fails, and all later ones at once (F125)", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("exits-mid-call")
      const first = yield* failedWithExit(server.call("a"))
      assert.deepInclude(first, { exitCode: 7, stderrTail: "fatal: out of ideas\n" })
      const [time, later] = yield* millis(
        Effect.all([failedWithExit(server.call("b")), failedWithExit(server.call("c"))])
      )
      assert.deepStrictEqual(later, [first, first])
      assert.isBelow(time, 200)
      assert.deepStrictEqual(yield* failedWithExit(server.notify("d")), first)
    }))

  it.live("by a signal: the call fails with it", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("killed-mid-call")
      const exit = yield* failedWithExit(server.call("m"))
      assert.deepInclude(exit, { signal: "SIGKILL" })
      assert.notProperty(exit, "exitCode")
      assert.deepStrictEqual(yield* process.exited, { signal: "SIGKILL" })
      assert.deepStrictEqual(exitOf(yield* process.transport.closed), exit)
    }))

  it.live("with the answer still in the pipe: the call gets it", () =>
    Effect.gen(function*() {
      for (let round = 0; round < 5; round++) {
        const { peer: server } = yield* peer("answers-and-exits")
        // a write that finds the process dead must not outrun the answer
        const [answer, other] = yield* Effect.all([
          server.call("m"),
          Effect.exit(server.call("n", { text: "x".repeat(1_000_000) }))
        ], { concurrency: 2 })
        assert.strictEqual(String(answer).length, 150_000)
        assert.isTrue(Exit.isFailure(other))
      }
    }))

  it.live("after half a line: that is no answer", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("half-line")
      assert.deepInclude(yield* failedWithExit(server.call("m")), { exitCode: 1 })
      assert.strictEqual((yield* server.stats).badInput, 1)
    }))

  it.live("and leaves a grandchild that holds the pipes: the wait for them is bounded", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("leaves-grandchild")
      const grandchild = Number(yield* server.call("m"))
      yield* process.exited
      const [time, exit] = yield* millis(failedWithExit(server.call("n")))
      assert.deepInclude(exit, { exitCode: 0 })
      assert.isBelow(time, 1_500)
      assert.isFalse(Os.isGone(grandchild))
      yield* process.end
      assert.isTrue(Os.isGone(grandchild))
    }))

  it.live("while we send it 50 MB that it does not read: all senders fail, none stays", () =>
    Effect.gen(function*() {
      const { peer: server, process: target } = yield* peer("stops-reading-and-exits", {
        child: { maxQueuedBytes: 4_000_000 }
      })
      const text = "x".repeat(1_000_000)
      const calls = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 50 }), () => failedWithExit(server.call("m", { text })), {
          concurrency: "unbounded"
        })
      )
      yield* said(target, "STOPPED")
      process.kill(target.pid, "SIGUSR2")
      for (const exit of yield* Fiber.join(calls)) assert.deepInclude(exit, { exitCode: 5 })
    }))
})

describe("a child that stays and misbehaves", () => {
  it.live("never answers: the call times out, is cancelled, and the next one goes on (F126)", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("never-answers", { peer: { cancellation: Cancellation.mcp } })
      const error = yield* Effect.flip(server.call("wait", {}, { timeout: "50 millis" }))
      assert.deepStrictEqual(error, new Peer.PeerError({ reason: new Peer.Timeout({ method: "wait" }) }))
      yield* said(process, "notifications/cancelled\n")
      yield* server.notify("still-there")
      yield* said(process, "still-there\n")
    }))

  it.live("never answers: closing settles what waits (F126)", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { peer: server, process } = yield* Scope.provide(peer("never-answers"), scope)
      const calls = yield* Effect.forkChild(
        Effect.all(["a", "b"].map((method) => Effect.flip(server.call(method, {}, { timeout: 0 }))), { concurrency: 2 })
      )
      yield* said(process, "b\n")
      yield* Scope.close(scope, Exit.void)
      for (const error of yield* Fiber.join(calls)) {
        assert.include(error.message, "this side ended the connection")
      }
      assert.isTrue(Os.isGone(process.pid))
    }))

  it.live("never answers a call that is interrupted: its finalizers run at once (F148)", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("never-answers", { peer: { cancellation: Cancellation.lsp } })
      let cleaned = false
      const call = yield* Effect.forkChild(
        Effect.ensuring(
          server.call("slow"),
          Effect.sync(() => {
            cleaned = true
          })
        )
      )
      yield* said(process, "slow\n")
      yield* Fiber.interrupt(call)
      assert.isTrue(cleaned)
      assert.deepStrictEqual((yield* server.inFlight).calls, [])
      yield* said(process, "$/cancelRequest\n")
    }))

  it.live("prints a banner and debug output: it is skipped and counted", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("prints-banner")
      assert.strictEqual(yield* server.call("m"), "past the banner")
      assert.strictEqual((yield* server.stats).badInput, 3)
    }))

  it.live("prints nothing but text: the call says what came, and asks whether this is the right command", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("prints-garbage-only")
      const error = yield* Effect.flip(server.call("m"))
      assert.include(error.message, "which begin with \"usage: something [options]")
      assert.include(error.message, "wrong command, or wrong framing?")
    }))

  it.live("floods its standard error: the answer comes, and the newest of it is kept (F140)", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("floods-stderr")
      assert.strictEqual(yield* server.call("m"), "after the flood")
      yield* said(process, "line 200099 of the log\n")
      assert.isAtMost((yield* process.stderrTail).length, 65_536)
      assert.isAbove((yield* process.stderrTail).length, 65_000)
    }))

  it.live("answers twice: the first counts", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("answers-twice")
      assert.strictEqual(yield* server.call("a"), "first")
      assert.strictEqual(yield* server.call("b"), "first")
      assert.isAtLeast((yield* server.stats).strayResponses, 1)
    }))

  it.live("answers late: that is dropped, and the next call is fine (F142)", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("answers-late")
      assert.strictEqual((yield* Effect.flip(server.call("a", {}, { timeout: "50 millis" })))._tag, "PeerError")
      assert.strictEqual(yield* server.call("b"), "in time")
      assert.strictEqual((yield* server.stats).strayResponses, 1)
    }))

  it.live("answers under ids of another type or of nobody: these resolve nothing", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("answers-other-ids")
      assert.strictEqual(yield* server.call("m"), "right")
      assert.strictEqual((yield* server.stats).strayResponses, 2)
    }))

  it.live("answers with neither a result nor an error: that call cannot be read", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("answers-nothing-valid")
      const error = yield* Effect.flip(server.call("m"))
      assert.strictEqual(error._tag === "PeerError" && error.reason._tag, "DecodeFailure")
      assert.strictEqual((yield* Effect.flip(server.call("m")))._tag, "PeerError")
    }))

  it.live("answers with more than the limit: that call says so, and others go on (F131)", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("answers-large", { child: { maxFrameBytes: 500_000 } })
      const [large, small] = yield* Effect.all([Effect.flip(server.call("large")), server.call("small")], {
        concurrency: 2
      })
      assert.strictEqual(large._tag === "PeerError" && large.reason._tag, "DecodeFailure")
      assert.include(large.message, "500000")
      assert.strictEqual(small, "small")
    }))

  it.live("asks under the ids of our calls: neither is taken for the other (F150)", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "ask", () => Effect.succeed("ours"))
      const { peer: server } = yield* peer("asks-with-our-ids", { peer: { router } })
      assert.deepStrictEqual(
        yield* Effect.all([server.call("a"), server.call("b")], { concurrency: 2 }),
        [{ jsonrpc: "2.0", result: "ours" }, { jsonrpc: "2.0", result: "ours" }]
      )
    }))

  it.live("asks what nobody handles, what crashes, and what calls back: it gets an answer each time", () =>
    Effect.gen(function*() {
      const router = Router.empty.pipe(
        Router.rawRequest("crash", () => Effect.die(new Error("the secret is 42"))),
        Router.rawRequest("refuse", () => Effect.fail(new JsonRpcError({ code: 4000, message: "no" }))),
        Router.rawRequest(
          "back",
          () => Effect.flatMap(Peer.Caller, (caller) => Effect.orDie(caller.call("m", { ask: "refuse" })))
        )
      )
      const { peer: server } = yield* peer("asks-with-our-ids", { peer: { router } })
      const ask = (method: string) => server.call("m", { ask: method })
      assert.deepInclude(yield* ask("unknown"), { error: { code: -32601, message: "Method not found: unknown" } })
      assert.notInclude(JSON.stringify(yield* ask("crash")), "42")
      assert.deepInclude(yield* ask("refuse"), { error: { code: 4000, message: "no" } })
      assert.deepStrictEqual(yield* ask("back"), {
        jsonrpc: "2.0",
        result: { jsonrpc: "2.0", error: { code: 4000, message: "no" } }
      })
      // the crash is logged
    }).pipe(Effect.provide(Logger.layer([]))))

  it.live("asks what takes for ever: it is refused when the handler's time is over", () =>
    Effect.gen(function*() {
      const router = Router.rawRequest(Router.empty, "ask", () => Effect.never)
      const { peer: server } = yield* peer("asks-with-our-ids", { peer: { router, handlerTimeout: "50 millis" } })
      assert.nestedPropertyVal(yield* server.call("m"), "error.code", -32603)
    }))

  it.live("floods us with notifications: a subscriber that is slow fails, answers and others do not", () =>
    Effect.gen(function*() {
      const { peer: server } = yield* peer("floods-notifications")
      const slow = yield* server.subscribe({ capacity: 100 })
      const fast = yield* server.subscribe({ capacity: 20_000 })
      assert.strictEqual(yield* server.call("m"), "after the ticks")
      assert.deepStrictEqual(
        yield* Effect.flip(Stream.runDrain(slow)),
        new Peer.PeerError({ reason: new Peer.Lagged({ capacity: 100 }) })
      )
      assert.strictEqual(yield* Stream.runCount(Stream.take(fast, 10_000)), 10_000)
    }))

  it.live("withdraws its request: the handler is interrupted, and no reply is sent", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const router = Router.rawRequest(Router.empty, "think", () =>
        Deferred.succeed(begun, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        ))
      const { peer: server } = yield* peer("withdraws-its-request", {
        peer: { router, cancellation: Cancellation.mcp }
      })
      yield* server.call("begin")
      yield* Deferred.await(begun)
      yield* server.call("withdraw")
      yield* Deferred.await(interrupted)
      assert.deepStrictEqual(yield* server.call("answers"), [])
    }))

  it.live("leaves out jsonrpc: a response, a notification and a request are told apart (F152)", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const router = Router.empty.pipe(
        Router.notification("turn/started", Schema.Struct({}), () => Deferred.succeed(started, undefined)),
        Router.rawRequest("item/commandExecution/requestApproval", () => Effect.succeed({ decision: "decline" }))
      )
      const { peer: server } = yield* peer("omits-jsonrpc", { peer: { router, profile: "omit" } })
      assert.deepStrictEqual(yield* server.call("initialize"), { userAgent: "x" })
      yield* Deferred.await(started)
      assert.deepStrictEqual(yield* server.call("received"), [
        { id: 1, method: "initialize" },
        { id: 1, result: { decision: "decline" } },
        { id: 2, method: "received" }
      ])
    }))

  it.live("closes its input and lives on: the connection says so, not that it ended", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("closes-input")
      yield* said(process, "CLOSED")
      const error = yield* Effect.flip(server.call("m"))
      assert.deepStrictEqual(
        error,
        new Peer.PeerError({
          reason: new Peer.Closed({
            method: "m",
            reason: new Transport.TransportError({ reason: new Transport.OutputClosed({ code: "EPIPE" }) })
          })
        })
      )
      assert.isFalse(Os.isGone(process.pid))
    }))

  it.live("closes its output and lives on: the connection says so, not that it ended", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("closes-output")
      const error = yield* Effect.flip(server.call("m"))
      assert.include(error.message, "the other side closed its output")
      assert.isFalse(Os.isGone(process.pid))
    }))

  it.live("stops reading while we send 50 MB: calls wait no longer than their deadline, and it is ended in time", () =>
    Effect.gen(function*() {
      const [time, process] = yield* closing(Effect.gen(function*() {
        const { peer: server, process } = yield* peer("stops-reading", { child: { maxQueuedBytes: 4_000_000 } })
        const text = "x".repeat(1_000_000)
        const errors = yield* Effect.forEach(
          Array.from({ length: 50 }),
          () => Effect.flip(server.call("m", { text }, { timeout: "300 millis" })),
          { concurrency: "unbounded" }
        )
        assert.isTrue(errors.every((error) => error._tag === "PeerError" && error.reason._tag === "Timeout"))
        assert.isBelow(process.transport.queuedBytesUnsafe(), 8_000_000)
        return process
      }))
      assert.isTrue(Os.isGone(process.pid))
      assert.deepStrictEqual(yield* process.exited, { signal: "SIGTERM" })
      assert.isBelow(time, 3_500)
    }))
})

describe("the standard error of a child", () => {
  it.live("is a stream of what comes from now on, which ends with it", () =>
    Effect.gen(function*() {
      const { peer: server, process } = yield* peer("answers")
      const log = (text: string) => server.call("log", { text })
      yield* log("before ")
      yield* said(process, "before")
      const lines = yield* Effect.forkChild(Stream.runCollect(process.stderr), { startImmediately: true })
      yield* log("é")
      yield* log("after")
      yield* said(process, "after")
      yield* process.end
      assert.strictEqual((yield* Fiber.join(lines)).join(""), "éafter")
      assert.strictEqual(yield* process.stderrTail, "before éafter")
      assert.deepStrictEqual(yield* Stream.runCollect(process.stderr), [])
    }))
})

Child.leavesNothingBehind()

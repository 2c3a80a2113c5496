/**
 * A child process as a transport, with a child that is played by the test and time that is the test's.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Process from "effect-stdio/Process"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { lastOf, makeTail } from "../src/internal/tail.ts"
import * as Scripted from "./utils/scriptedChild.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

const leaves = (ended: Process.Ended) => (script: Scripted.Script) => script.leave(ended)

/** Starts a child in a scope of its own, and returns what closes it. */
const start = Effect.fnUntraced(function*(script?: Scripted.Options, options?: Process.Options) {
  const child = yield* Scripted.make(script)
  const scope = yield* Scope.make()
  const process = yield* Scope.provide(child.start(options), scope)
  return { ...child, process, close: (exit: Exit.Exit<unknown, unknown> = Exit.void) => Scope.close(scope, exit) }
})

describe("the end of a child", () => {
  it.effect("is the end of its input, where that suffices (F137)", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { end: leaves({ exitCode: 0 }) } })
      yield* child.close()
      assert.deepStrictEqual(yield* child.process.exited, { exitCode: 0 })
      assert.deepStrictEqual(child.log.map(([, what]) => what), ["end", "close", "close"])
    }))

  it.effect("is SIGTERM after two seconds, where that suffices (F137)", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { SIGTERM: leaves({ exitCode: 143 }) } })
      const ended = yield* Effect.forkChild(child.process.end, { startImmediately: true })
      yield* TestClock.adjust("1999 millis")
      assert.deepStrictEqual(child.log, [[0, "end"]])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(ended), { exitCode: 143 })
      assert.deepStrictEqual(child.log.slice(0, 2), [[0, "end"], [2_000, "SIGTERM"]])
    }))

  it.effect("is SIGKILL two seconds later, where nothing else helps (F137)", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { SIGKILL: leaves({ signal: "SIGKILL" }) } })
      const ended = yield* Effect.forkChild(child.process.end, { startImmediately: true })
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* Fiber.join(ended), { signal: "SIGKILL" })
      assert.deepStrictEqual(child.log.slice(0, 3), [[0, "end"], [2_000, "SIGTERM"], [4_000, "SIGKILL"]])
    }))

  it.effect("takes its times from the options; zero is at once", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { SIGKILL: leaves({ signal: "SIGKILL" }) } }, {
        endTimeout: 0,
        killTimeout: "1 minute"
      })
      const ended = yield* Effect.forkChild(child.process.end, { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(ended)
      assert.deepStrictEqual(child.log.slice(0, 3), [[0, "end"], [0, "SIGTERM"], [60_000, "SIGKILL"]])
    }))

  it.effect("is not waited for for ever: what even SIGKILL does not end is given up a second later", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const ended = yield* Effect.forkChild(child.process.end, { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(ended), {})
    }))

  it.effect("includes what it started and left behind (F134)", () =>
    Effect.gen(function*() {
      const child = yield* start({
        on: { end: (script) => script.exit({ exitCode: 0 }), SIGKILL: (script) => script.groupEnds() }
      })
      const ended = yield* Effect.forkChild(child.process.end, { startImmediately: true })
      yield* TestClock.adjust("4 seconds")
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* Fiber.join(ended), { exitCode: 0 })
      assert.includeDeepMembers(child.log, [[2_000, "SIGTERM"], [4_000, "SIGKILL"]])
    }))

  it.effect("happens once, whoever asks for it and however often", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { SIGTERM: leaves({ exitCode: 1 }) } })
      const ends = yield* Effect.forEach(
        [1, 2, 3],
        () => Effect.forkChild(child.process.end, { startImmediately: true })
      )
      const closed = yield* Effect.forkChild(child.close(), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.joinAll(ends), [{ exitCode: 1 }, { exitCode: 1 }, { exitCode: 1 }])
      yield* Fiber.join(closed)
      assert.deepStrictEqual(yield* child.process.end, { exitCode: 1 })
      assert.deepStrictEqual(child.log.filter(([, what]) => what !== "close"), [[0, "end"], [2_000, "SIGTERM"]])
    }))

  it.effect("is fast where a scope closes by an interruption, as a signal does it", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { SIGKILL: leaves({ signal: "SIGKILL" }) } })
      const closed = yield* Effect.forkChild(child.close(Exit.interrupt()), { startImmediately: true })
      yield* TestClock.adjust("1500 millis")
      yield* Fiber.join(closed)
      assert.deepStrictEqual(child.log.slice(0, 3), [[0, "end"], [500, "SIGTERM"], [1_000, "SIGKILL"]])
    }))

  it.effect("becomes fast where it is interrupted in the midst of it, and is not left half done", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { SIGKILL: leaves({ signal: "SIGKILL" }) } }, { endTimeout: "1 minute" })
      const ended = yield* Effect.forkChild(child.process.end, { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(ended), { startImmediately: true })
      yield* TestClock.adjust("1500 millis")
      yield* Fiber.join(interrupted)
      assert.deepStrictEqual(child.log.slice(0, 3), [[0, "end"], [10_500, "SIGTERM"], [11_000, "SIGKILL"]])
    }))

  it.effect("becomes fast where the fiber is interrupted that closes the scope", () =>
    Effect.gen(function*() {
      const child = yield* Scripted.make({ on: { SIGKILL: leaves({ signal: "SIGKILL" }) } })
      const program = yield* Effect.forkChild(Effect.scoped(child.start({ endTimeout: "1 minute" })), {
        startImmediately: true
      })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(child.log, [[0, "end"]])
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(program), { startImmediately: true })
      yield* TestClock.adjust("1500 millis")
      yield* Fiber.join(interrupted)
      assert.deepStrictEqual(child.log.slice(0, 3), [[0, "end"], [10_500, "SIGTERM"], [11_000, "SIGKILL"]])
    }))

  it.effect("writes what is queued before it ends the input", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { end: leaves({ exitCode: 0 }) } })
      const peer = yield* Peer.make(child.process.transport)
      yield* peer.notify("bye")
      yield* child.process.end
      assert.strictEqual(child.received(), "{\"jsonrpc\":\"2.0\",\"method\":\"bye\"}\n")
    }))
})

describe("a child that ends by itself", () => {
  const closedBy = (ended: Process.Ended, stderrTail = "") =>
    new Transport.ProcessExited({ command: "server --stdio", ...ended, stderrTail })

  const call = Effect.fnUntraced(function*(child: { readonly process: Process.Process["Service"] }) {
    const peer = yield* Peer.make(child.process.transport, { onBadInput: "count" })
    return yield* Effect.forkChild(Effect.result(peer.call("m")), { startImmediately: true })
  })

  const failure = (reason: Transport.CloseReason) =>
    new Peer.PeerError({
      reason: new Peer.Closed({ method: "m", reason: new Transport.TransportError({ reason }) })
    })

  it.effect("fails what waits when its output has ended, not before (F125)", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const waiting = yield* call(child)
      child.logs("no space left\n")
      child.groupEnds()
      child.exit({ exitCode: 28 })
      yield* TestClock.adjust("499 millis")
      assert.isUndefined(waiting.pollUnsafe())
      child.print("{\"jsonrpc\":\"2.0\",\"method\":\"last words\"}\n")
      child.endOutput()
      assert.deepStrictEqual(
        yield* Effect.flip(Effect.fromResult(yield* Fiber.join(waiting))),
        failure(closedBy({ exitCode: 28 }, "no space left\n"))
      )
    }))

  it.effect("is waited for half a second where another process holds its output", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const waiting = yield* call(child)
      child.exit({ signal: "SIGSEGV" })
      yield* TestClock.adjust("499 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(
        yield* Effect.flip(Effect.fromResult(yield* Fiber.join(waiting))),
        failure(closedBy({ signal: "SIGSEGV" }))
      )
    }))

  it.effect("is an ended input where it closes its output and has not ended half a second later", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const waiting = yield* call(child)
      child.endOutput()
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(
        yield* Effect.flip(Effect.fromResult(yield* Fiber.join(waiting))),
        failure(new Transport.InputEnded())
      )
    }))

  it.effect("closes the output too, so that nothing can be sent any more", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const waiting = yield* call(child)
      child.leave({ exitCode: 1 })
      yield* Fiber.join(waiting)
      assert.isTrue(child.process.transport.isOutputClosedUnsafe())
      assert.deepStrictEqual(yield* child.process.transport.outputClosed, closedBy({ exitCode: 1 }))
    }))

  it.effect("keeps the output open until what it wrote before has been handled", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const { transport } = child.process
      child.print("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"the answer\"}\n")
      child.leave({ exitCode: 1 })
      yield* TestClock.adjust("499 millis")
      assert.isFalse(transport.isOutputClosedUnsafe())
      assert.strictEqual((yield* Stream.runCollect(transport.incoming)).length, 1)
      assert.isTrue(transport.isOutputClosedUnsafe())
      assert.deepStrictEqual(yield* transport.closed, closedBy({ exitCode: 1 }))
    }))

  it.effect("closes the output although nobody reads its output", () =>
    Effect.gen(function*() {
      const child = yield* start()
      child.leave({ exitCode: 1 })
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(yield* child.process.transport.closed, closedBy({ exitCode: 1 }))
    }))

  it.effect("is reported with the last lines of its standard error, not with all that is kept", () =>
    Effect.gen(function*() {
      const child = yield* start()
      const waiting = yield* call(child)
      child.logs("a line of the log\n".repeat(5_000))
      child.leave({ exitCode: 1 })
      yield* Fiber.join(waiting)
      const reason = yield* child.process.transport.closed
      assert.strictEqual(reason._tag, "ProcessExited")
      const reported = reason._tag === "ProcessExited" ? reason.stderrTail : ""
      assert.match(reported, /^(a line of the log\n)+$/)
      assert.isAtMost(reported.length, 4_096)
      assert.strictEqual((yield* child.process.stderrTail).length, 65_536)
    }))
})

describe("what is started", () => {
  const spec = (
    script: Scripted.Options,
    options?: Process.Options,
    ...command: readonly [command?: string, args?: Parameters<typeof Process.make>[1]]
  ) =>
    Effect.gen(function*() {
      const child = yield* Scripted.make({ ...script, on: { end: leaves({ exitCode: 0 }) } })
      const process = yield* Effect.scoped(child.start(options, ...command))
      return { ...child.specs[0], display: process.command }
    })

  it.effect("gets the values that are redacted, which its name leaves out", () =>
    Effect.gen(function*() {
      const { args, command, display } = yield* spec({}, {}, "a b", ["--token", Redacted.make("s3cret")])
      assert.deepStrictEqual({ args, command, display }, {
        command: "a b",
        args: ["--token", "s3cret"],
        display: "'a b' --token <redacted>"
      })
    }))

  it.effect("inherits all variables, without those that are taken away (F138)", () =>
    Effect.gen(function*() {
      const environment = { PATH: "/bin", HOME: "/root", EMPTY: "", GONE: undefined }
      const { env } = yield* spec({ environment }, { env: { HOME: undefined, TOKEN: Redacted.make("s3cret"), A: "1" } })
      assert.deepStrictEqual(env, { PATH: "/bin", EMPTY: "", TOKEN: "s3cret", A: "1" })
    }))

  it.effect("inherits the variables of a list, or none", () =>
    Effect.gen(function*() {
      const environment = { PATH: "/bin", HOME: "/root", AWS_SECRET: "x" }
      const some = yield* spec({ environment }, { inheritEnv: Process.basicEnv, env: { A: "1" } })
      assert.deepStrictEqual(some.env, { PATH: "/bin", HOME: "/root", A: "1" })
      assert.deepStrictEqual((yield* spec({ environment }, { inheritEnv: [] })).env, {})
    }))

  it.effect("has each variable once on Windows, whatever the case of its name", () =>
    Effect.gen(function*() {
      const environment = { Path: "C:\\Windows", ComSpec: "cmd.exe", Secret: "x" }
      const script = { isWindows: true, environment }
      assert.deepStrictEqual((yield* spec(script, { env: { PATH: "D:\\bin" } })).env, {
        ComSpec: "cmd.exe",
        Secret: "x",
        PATH: "D:\\bin"
      })
      assert.deepStrictEqual((yield* spec(script, { inheritEnv: ["PATH", "COMSPEC"] })).env, {
        Path: "C:\\Windows",
        ComSpec: "cmd.exe"
      })
      assert.deepStrictEqual((yield* spec(script, { env: { SECRET: undefined } })).env, {
        Path: "C:\\Windows",
        ComSpec: "cmd.exe"
      })
    }))
})

describe("standard error", () => {
  it.effect("reaches each consumer from when it listens, whole characters only", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { end: leaves({ exitCode: 0 }) } })
      child.logs("before")
      const first = yield* Effect.forkChild(Stream.runCollect(child.process.stderr), { startImmediately: true })
      child.logs("one")
      const second = yield* Effect.forkChild(Stream.runCollect(child.process.stderr), { startImmediately: true })
      child.logs("two")
      yield* child.process.end
      assert.strictEqual((yield* Fiber.join(first)).join(""), "onetwo")
      assert.strictEqual((yield* Fiber.join(second)).join(""), "two")
      assert.deepStrictEqual(yield* Stream.runCollect(child.process.stderr), [])
      assert.strictEqual(yield* child.process.stderrTail, "beforeonetwo")
    }))

  it.effect("drops the oldest for a consumer that lags behind", () =>
    Effect.gen(function*() {
      const child = yield* start({ on: { end: leaves({ exitCode: 0 }) } })
      const lines = yield* Effect.forkChild(Stream.runCollect(child.process.stderr), { startImmediately: true })
      for (let n = 1; n <= 1_000; n++) child.logs(`${n}\n`)
      yield* child.process.end
      const collected = yield* Fiber.join(lines)
      assert.isBelow(collected.length, 300)
      assert.strictEqual(collected.at(-1), "1000\n")
    }))
})

describe("a tail", () => {
  it("is all of a short text, and the end of a long one", () => {
    const tail = makeTail(8)
    assert.strictEqual(tail.text(), "")
    tail.push(bytes("abc"))
    assert.strictEqual(tail.text(), "abc")
    tail.push(bytes("defgh"))
    assert.strictEqual(tail.text(), "abcdefgh")
    tail.push(bytes("ij"))
    assert.strictEqual(tail.text(), "cdefghij")
    tail.push(bytes("a chunk longer than all of it"))
    assert.strictEqual(tail.text(), "l of it".padStart(8, "l"))
  })

  it("is the same for any split of the bytes", () => {
    const text = bytes(Array.from({ length: 50 }, (_, n) => `line ${n}\n`).join(""))
    for (const size of [1, 2, 3, 7, 13, 64, 500]) {
      const tail = makeTail(29)
      for (let at = 0; at < text.length; at += size) tail.push(text.subarray(at, at + size))
      assert.strictEqual(tail.text(), new TextDecoder().decode(text.subarray(-29)))
    }
  })

  it("does not begin in the middle of a character", () => {
    const tail = makeTail(6)
    tail.push(bytes("€€€€"))
    assert.strictEqual(tail.text(), "€€")
    tail.push(bytes("x"))
    assert.strictEqual(tail.text(), "€x")
  })

  it("may have no room at all", () => {
    const tail = makeTail(0)
    tail.push(bytes("abc"))
    assert.strictEqual(tail.text(), "")
  })

  it("is shortened at the start of a line, unless that is too far away", () => {
    assert.strictEqual(lastOf("one\ntwo\nthree\n", 13), "two\nthree\n")
    assert.strictEqual(lastOf("short", 13), "short")
    assert.strictEqual(lastOf("0123456789\nx", 6), "6789\nx")
  })
})

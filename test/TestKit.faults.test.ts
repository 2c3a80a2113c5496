/**
 * The faults that the test kit makes on demand do what their names say.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { bytes, counted, line, seen, text } from "./utils/bytes.ts"

const frame = (content: string) => Framing.frameOfText(content, "line")

const echo = Router.rawRequest(Router.empty, "echo", (params) => Effect.succeed(params))

describe("chunks", () => {
  const cut = (content: string, sizes: ReadonlyArray<number>) => TestKit.chunks(bytes(content), sizes).map(text)

  it("cuts by sizes, of which the last repeats", () => {
    assert.deepStrictEqual(
      [cut("abcdefgh", [3, 1, 2]), cut("abcdefgh", [3]), cut("abc", [5]), cut("abcd", [1, 9])],
      [["abc", "d", "ef", "gh"], ["abc", "def", "gh"], ["abc"], ["a", "bcd"]]
    )
  })

  it("counts sizes below one as one", () => {
    assert.deepStrictEqual([cut("abc", [0]), cut("abc", [-5, 2])], [["a", "b", "c"], ["a", "bc"]])
  })

  it("leaves bytes whole without sizes, and gives nothing for no bytes", () => {
    assert.deepStrictEqual([cut("abc", []), cut("", [1])], [["abc"], []])
  })

  it("cuts characters of several bytes apart", () => {
    assert.deepStrictEqual(TestKit.chunks(bytes("日"), [1, 2]), [bytes([0xe6]), bytes([0x97, 0xa5])])
  })
})

describe("feed and receive", () => {
  it.effect("bring bytes, whole or in chunks", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.feed("\"日\"\n", [2])
      yield* wire.feed(bytes("[2]\n[3"))
      yield* wire.feed("]\n")
      yield* wire.endInput
      const items = yield* Stream.runCollect(wire.transport.incoming)
      assert.deepStrictEqual(items.map(seen), [line("\"日\""), line("[2]"), line("[3]")])
    }))

  it.effect("bring the chunks as they were cut", () =>
    Effect.gen(function*() {
      const server = yield* TestKit.serve({ router: echo })
      const message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"s\":\"日—🎉\"}}"
      yield* server.feed(counted(message), [1])
      yield* server.feed(counted(message.replace("1,", "2,")), [3, 50, 1])
      yield* server.expectSent(
        { jsonrpc: "2.0", id: 1, result: { s: "日—🎉" } },
        { jsonrpc: "2.0", id: 2, result: { s: "日—🎉" } }
      )
    }))

  it.effect.each(["line", "content-length", "native"] as const)(
    "frame messages in %s",
    (framing) =>
      Effect.gen(function*() {
        const wire = yield* TestKit.make({ framing })
        yield* wire.receive({ id: 1, method: "m" }, [{ jsonrpc: "2.0", method: "n" }], { jsonrpc: "1.0" })
        yield* wire.endInput
        assert.deepStrictEqual((yield* Stream.runCollect(wire.transport.incoming)).map(seen), [
          { framing, text: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}" },
          { framing, text: "[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]" },
          { framing, text: "{\"jsonrpc\":\"1.0\"}" }
        ])
      })
  )
})

describe("endInput and failInput", () => {
  it.effect("end the input after what was fed", () =>
    Effect.gen(function*() {
      const server = yield* TestKit.serve({ router: echo })
      yield* server.receive({ id: 1, method: "echo", params: [1] })
      yield* server.endInput
      assert.deepStrictEqual(yield* server.reason, { _tag: "InputEnded" })
      yield* server.expectSent({ jsonrpc: "2.0", id: 1, result: [1] })
    }))

  it.effect("fail the input after what was fed", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.feed("[1]\n[2")
      yield* wire.failInput("EISDIR")
      const items: Array<unknown> = []
      const exit = yield* Effect.exit(
        Stream.runForEach(wire.transport.incoming, (item) => Effect.sync(() => items.push(seen(item))))
      )
      const reason = new Transport.InputFailed({ cause: { code: "EISDIR" } })
      assert.deepStrictEqual(items, [line("[1]")])
      assert.deepStrictEqual(exit, Exit.fail(new Transport.TransportError({ reason })))
      assert.deepStrictEqual(yield* wire.transport.closed, reason)
    }))

  it.effect("fail a server with what is not an end, and end it with EIO", () =>
    Effect.gen(function*() {
      const failed = yield* TestKit.serve({ router: echo })
      yield* failed.failInput("EISDIR")
      const error = yield* Effect.flip(failed.reason)
      assert.deepStrictEqual(error.reason, new Transport.InputFailed({ cause: { code: "EISDIR" } }))
      const ended = yield* TestKit.serve({ router: echo })
      yield* ended.failInput("EIO")
      assert.deepStrictEqual(yield* ended.reason, { _tag: "InputEnded" })
    }))
})

describe("breakOutput", () => {
  it.effect("fails the next write, with EPIPE when nothing is said", () =>
    Effect.gen(function*() {
      const server = yield* TestKit.serve({ router: echo })
      yield* server.receive({ id: 1, method: "echo", params: [1] })
      yield* server.settled
      yield* server.breakOutput()
      yield* server.settled
      assert.deepStrictEqual((yield* server.events).filter(({ _tag }) => _tag === "OutputError"), [])
      yield* server.receive({ id: 2, method: "echo", params: [2] })
      assert.deepStrictEqual(yield* server.reason, { _tag: "OutputClosed", code: "EPIPE" })
      yield* server.expectSent({ jsonrpc: "2.0", id: 1, result: [1] })
    }))

  it.effect("fails with the code that is asked for", () =>
    Effect.gen(function*() {
      const server = yield* TestKit.serve({ router: echo })
      yield* server.breakOutput("ENOSPC")
      yield* server.receive({ id: 1, method: "echo", params: [1] })
      const error = yield* Effect.flip(server.reason)
      assert.deepStrictEqual(error.reason, new Transport.OutputFailed({ cause: { code: "ENOSPC" } }))
    }))

  it.effect("fails a write that is stalled", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.stall
      yield* wire.transport.send(frame("1"))
      yield* wire.settled
      yield* wire.breakOutput("ECONNRESET")
      assert.deepStrictEqual(
        [yield* wire.transport.closed, yield* wire.sentText],
        [new Transport.OutputClosed({ code: "ECONNRESET" }), ""]
      )
    }))
})

describe("stall and resume", () => {
  it.effect("take nothing, then everything in order", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make({ maxQueuedBytes: 4 })
      yield* wire.stall
      yield* wire.transport.send(frame("100"))
      const waiting = yield* Effect.forkChild(wire.transport.send(frame("200")))
      yield* wire.settled
      assert.deepStrictEqual([waiting.pollUnsafe(), yield* wire.sent], [undefined, []])
      yield* wire.resume
      yield* Fiber.join(waiting)
      yield* wire.expectSent(100, 200)
      assert.strictEqual(yield* wire.sentText, "100\n200\n")
    }))

  it.effect("let a server stall", () =>
    Effect.gen(function*() {
      const server = yield* TestKit.serve({
        router: echo,
        transport: { maxQueuedBytes: 10, stallTimeout: "5 seconds" }
      })
      yield* server.stall
      yield* server.receive({ id: 1, method: "echo", params: ["too much"] })
      yield* TestClock.adjust("5 seconds")
      const error = yield* Effect.flip(server.reason)
      assert.strictEqual(error.reason._tag, "OutputStalled")
    }))
})

describe("what was sent", () => {
  it.effect("is told as messages, as text and as the number of writes", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.transport.send(frame("{\"a\":1}"))
      yield* wire.transport.send(Framing.frameOfText("[2]", "content-length"))
      yield* wire.settled
      yield* wire.transport.send(frame("3"))
      yield* wire.settled
      assert.deepStrictEqual(
        [yield* wire.sent, yield* wire.sentText, yield* wire.writes],
        [[{ a: 1 }, [2], 3], `{"a":1}\n${counted("[2]")}3\n`, 2]
      )
    }))

  it.effect("is waited for by next, in order, and stays", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      const waiting = yield* Effect.forkChild(wire.next)
      yield* wire.settled
      assert.isUndefined(waiting.pollUnsafe())
      yield* wire.transport.send(frame("1"))
      yield* wire.transport.send(frame("2"))
      assert.deepStrictEqual([yield* Fiber.join(waiting), yield* wire.next, yield* wire.sent], [1, 2, [1, 2]])
    }))

  it.effect("is expected exactly: expectSent shows both sides, a line a message", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.transport.send(frame("{\"id\":1}"))
      yield* wire.transport.send(frame("{\"id\":2}"))
      yield* wire.expectSent({ id: 1 }, { id: 2 })
      const messages = yield* Effect.forEach(
        [wire.expectSent(), wire.expectSent({ id: 1 }), wire.expectSent({ id: 2 }, { id: 1 })],
        (expectation) => Effect.map(Effect.flip(expectation), (error) => error.message)
      )
      assert.deepStrictEqual(messages, [
        "the frames sent differ\nexpected:\n  (none)\nactual:\n  {\"id\":1}\n  {\"id\":2}",
        "the frames sent differ\nexpected:\n  {\"id\":1}\nactual:\n  {\"id\":1}\n  {\"id\":2}",
        "the frames sent differ\nexpected:\n  {\"id\":2}\n  {\"id\":1}\nactual:\n  {\"id\":1}\n  {\"id\":2}"
      ])
    }))

  it.effect("is expected exactly: nothing sent is nothing", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.expectSent()
      const error = yield* Effect.flip(wire.expectSent({ id: 1 }))
      assert.strictEqual(error.message, "the frames sent differ\nexpected:\n  {\"id\":1}\nactual:\n  (none)")
    }))

  it.effect("shows what is no JSON as the fault that a reader would see", () =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make()
      yield* wire.transport.send(frame("not JSON"))
      yield* wire.transport.send(Framing.frame(bytes("\"", [0xff], "\""), "line"))
      yield* wire.settled
      const tags = (yield* wire.sent).map((value) => (value as { readonly reason: string }).reason)
      assert.deepStrictEqual(tags, ["InvalidJson", "InvalidUtf8"])
    }))
})

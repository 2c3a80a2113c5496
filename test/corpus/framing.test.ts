/**
 * Failures of framing that happened to other programs, each with the input that caused it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import type * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { block, bytes, counted, decodeAll, decodeChunks, fault, line, split, text } from "../utils/bytes.ts"

const router = Router.empty.pipe(
  Router.rawRequest("ping", () => Effect.succeed({})),
  Router.rawRequest("echo", (params) => Effect.succeed(params)),
  Router.rawRequest("initialize", () => Effect.succeed({ ready: true }))
)

const serve = (transport?: Transport.Options) => TestKit.serve({ router, transport })

const ping = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`
const pong = (id: number) => ({ jsonrpc: "2.0", id, result: {} })
const error = (id: JsonRpc.Id | null, code: number, message: string) => ({
  jsonrpc: "2.0",
  id,
  error: { code, message }
})
const parseError = error(null, -32_700, "Parse error: the frame is not valid JSON")

/** A client that talks to a child, whose side is the test. */
const client = Effect.gen(function*() {
  const wire = yield* TestKit.make({ framing: "line" })
  const peer = yield* Peer.make(wire.transport, { onBadInput: "count" })
  return { ...wire, peer }
})

const texts = (items: ReadonlyArray<Framing.Item>) =>
  items.map((item) =>
    item._tag === "Frame" ? Result.getOrElse(Framing.text(item), (fault) => fault.reason) : item.reason
  )

describe("characters and bytes", () => {
  it("F01 keeps a character of several bytes whole at every cut", () => {
    const content = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"s\":\"日\"}}"
    const whole = bytes(`${content}\n`)
    for (let cut = 1; cut < whole.length; cut++) {
      assert.deepStrictEqual(texts(decodeChunks(undefined, [whole.slice(0, cut), whole.slice(cut)])), [content])
    }
    assert.deepStrictEqual(texts(decodeChunks(undefined, split(whole, [1]))), [content])
    const start = bytes(content.slice(0, content.indexOf("日"))).length
    assert.deepStrictEqual(texts(decodeChunks(undefined, split(whole, [start + 1, 1, whole.length]))), [content])
  })

  it.effect("F01 answers with the characters that came, a byte a chunk", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.feed("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"s\":\"日\"}}\n", [1])
      yield* server.expectSent({ jsonrpc: "2.0", id: 1, result: { s: "日" } })
    }))

  it("F03 gives a relay the exact bytes to pass on, wherever they were cut", () => {
    const wire = bytes("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"d\":\"alert — ✅\"}}\n")
    const cut = wire.indexOf(0x94)
    assert.isAbove(cut, 0)
    const frames = decodeChunks({ framing: "line" }, [wire.slice(0, cut), wire.slice(cut)])
    assert.deepStrictEqual(
      Framing.encode(frames.flatMap((item) => item._tag === "Frame" ? [item] : [])),
      wire
    )
  })

  it("F04 ends a line at a newline only, not at U+2028 or U+2029", () => {
    const content = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"a\u2028b\u2029c\"}}"
    assert.deepStrictEqual(decodeAll(undefined, `${content}\n`), [line(content)])
  })

  it.effect("F07 answers a request that ends in CRLF", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.feed(`${ping(1)}\r\n`)
      yield* server.expectSent(pong(1))
      yield* server.feed(`${ping(2)}\r`)
      yield* server.feed("\n")
      yield* server.expectSent(pong(1), pong(2))
    }))

  it.effect("F10 settles a call whose response begins with a byte order mark, on any line", () =>
    Effect.gen(function*() {
      const { feed, peer, settled } = yield* client
      const calls = yield* Effect.forkChild(
        Effect.all([peer.call("tools/list"), peer.call("tools/list")], { concurrency: 2 })
      )
      yield* settled
      const { calls: waiting } = yield* peer.inFlight
      for (const { id } of waiting) {
        yield* feed(bytes([0xef, 0xbb, 0xbf], `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[]}}\n`))
      }
      assert.deepStrictEqual(yield* Fiber.join(calls), [{ tools: [] }, { tools: [] }])
      assert.strictEqual((yield* peer.stats).badInput, 0)
    }))

  it("F34 counts a body in bytes, reading and writing", () => {
    const bodies = [
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"你好—🎉\"}",
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}"
    ]
    const wire = Framing.encode(bodies.map((body) => Framing.frameOfText(body, "content-length")))
    assert.strictEqual(
      text(wire),
      `Content-Length: ${Buffer.byteLength(bodies[0] ?? "")}\r\n\r\n${bodies[0]}`
        + `Content-Length: ${Buffer.byteLength(bodies[1] ?? "")}\r\n\r\n${bodies[1]}`
    )
    assert.deepStrictEqual(decodeAll({ framing: "content-length" }, wire), bodies.map(block))
  })

  it.effect("F41 writes no half of a surrogate pair, in values and keys, and leaves pairs", () =>
    Effect.gen(function*() {
      const results: ReadonlyArray<unknown> = [{ t: "abc\ud83d" }, { t: "\udc00x" }, { "\ud83d": "🎉" }]
      const server = yield* TestKit.serve({
        router: Router.raw((_, { id }) => Effect.succeed(results[Number(id)]))
      })
      yield* server.receive({ id: 0, method: "m" }, { id: 1, method: "m" }, { id: 2, method: "m" })
      yield* server.settled
      assert.strictEqual(
        yield* server.sentText,
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"t\":\"abc\ufffd\"}}\n"
          + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"\ufffdx\"}}\n"
          + "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"\ufffd\":\"🎉\"}}\n"
      )
    }))

  it.effect("F42 settles a call whose response is not UTF-8", () =>
    Effect.gen(function*() {
      const { feed, next, peer } = yield* client
      const call = yield* Effect.forkChild(Effect.flip(peer.call("read")))
      const { id } = (yield* next) as { readonly id: JsonRpc.Id }
      yield* feed(bytes(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"s":"`, [0xb0, 0xa1], "\"}}\n"))
      const failure = yield* Fiber.join(call)
      assert.deepStrictEqual(
        failure._tag === "PeerError" ? failure.reason : failure,
        new Peer.DecodeFailure({ method: "read", detail: "the frame is not valid UTF-8" })
      )
    }))
})

describe("sizes", () => {
  const MIB = 1024 * 1024

  it("F16 reads one long line in work that grows with its length", () => {
    const content = `"${"x".repeat(16 * MIB)}"`
    const sizes = (chunks: ReadonlyArray<number>) =>
      decodeChunks(undefined, split(bytes(`${content}\n`), chunks)).map((item) =>
        item._tag === "Frame" ? item.bytes.length : item
      )
    assert.deepStrictEqual([sizes([65_536]), sizes([1, 4_096, 100, 2_000, 7])], [[content.length], [content.length]])
  })

  it.effect("F17 skips a line over the limit to its newline and answers the next request", () =>
    Effect.gen(function*() {
      const server = yield* serve({ maxFrameBytes: MIB })
      yield* server.feed("x".repeat(3 * MIB), [65_536])
      yield* server.feed(`\n${ping(2)}\n`)
      yield* server.expectSent(error(null, -32_600, "frame too large: more than the limit of 1048576 bytes"), pong(2))
    }))

  it.effect("F20 answers a result over the outgoing limit with an error that names it, and serves on", () =>
    Effect.gen(function*() {
      const limit = 10 * MIB
      const server = yield* TestKit.serve({
        router: Router.rawRequest(router, "big", () => Effect.succeed("x".repeat(11 * MIB))),
        transport: { maxSendBytes: limit }
      })
      yield* server.receive({ id: 1, method: "big" }, { id: 2, method: "ping" })
      const size = `{"jsonrpc":"2.0","id":1,"result":""}`.length + 11 * MIB
      yield* server.expectSent(
        error(1, -32_603, `The result has ${size} bytes, this connection sends at most ${limit}`),
        pong(2)
      )
    }))
})

describe("junk and resynchronisation", () => {
  it.effect("F21 answers two broken lines with parse errors and serves the request behind them", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.feed(`NOT VALID JSON\n{"jsonrpc":"2.0","method":"test","params": \n${ping(2)}\n`)
      yield* server.expectSent(parseError, parseError, pong(2))
    }))

  it.effect("F22 is not poisoned by a syntax error", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.feed(`}{\n[1,\n"x\n${ping(3)}\n`)
      yield* server.expectSent(parseError, parseError, parseError, pong(3))
    }))

  it.effect("F25 survives a message over many lines, with a bounded number of reports", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"method\": \"ping\"\n}\n"
      for (let count = 0; count < 10; count++) yield* server.feed(pretty)
      yield* server.feed(`${ping(2)}\n`)
      yield* server.expectSent(...new Array<unknown>(10).fill(parseError), pong(2))
    }))

  it.effect("F26 answers a last message without a newline, and reports one that is incomplete", () =>
    Effect.gen(function*() {
      const complete = yield* serve()
      yield* complete.feed(ping(9))
      yield* complete.endInput
      assert.deepStrictEqual(yield* complete.reason, { _tag: "InputEnded" })
      yield* complete.expectSent(pong(9))
      const incomplete = yield* serve()
      yield* incomplete.feed(ping(9).slice(0, -1))
      yield* incomplete.endInput
      assert.deepStrictEqual(yield* incomplete.reason, { _tag: "InputEnded" })
      yield* incomplete.expectSent(parseError)
    }))

  it.effect("F27 settles a call whose response arrives together with the end", () =>
    Effect.gen(function*() {
      const { endInput, feed, next, peer } = yield* client
      const call = yield* Effect.forkChild(peer.call("last"))
      const { id } = (yield* next) as { readonly id: JsonRpc.Id }
      yield* feed(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":1}\n`)
      yield* endInput
      assert.strictEqual(yield* Fiber.join(call), 1)
      assert.deepStrictEqual(yield* peer.closed, new Transport.InputEnded())
    }))

  it.effect("F27 settles it over a pair whose other side ends at once", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair()
      const peer = yield* Peer.make(left, { ownFraming: "line" })
      yield* Effect.forkChild(
        Stream.runForEach(right.incoming, () =>
          Effect.andThen(
            right.send(Framing.frameOfText("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}", "line")),
            right.end
          ))
      )
      assert.strictEqual(yield* peer.call("last"), 1)
    }))

  it("F35 shows the text before a header and reads the message behind it", () => {
    assert.deepStrictEqual(
      decodeAll({ framing: "content-length" }, `debug text\nContent-Length: 40\r\n\r\n${ping(1)}`),
      [
        fault("InvalidHeader", "content-length", 10, { sample: "debug text" }),
        block(ping(1))
      ]
    )
  })

  it.effect("F35 serves the message behind the text where both framings are read", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* server.feed(`debug text\nContent-Length: 40\r\n\r\n${ping(1)}`)
      yield* server.expectSent(parseError, pong(1))
    }))
})

describe("framings that meet", () => {
  const initialize = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}"
  const initialized = { jsonrpc: "2.0", id: 1, result: { ready: true } }

  it.effect("F28 says at the first header that one message a line is expected", () =>
    Effect.gen(function*() {
      const server = yield* serve({ framing: "line" })
      yield* server.feed(`Content-Length: 58\r\n\r\n${initialize}`)
      yield* server.expectSent(error(
        null,
        -32_700,
        "a Content-Length header where one message a line is expected; set the framing to auto or content-length"
      ))
    }))

  it.effect("F28 says at the first line that a header is expected", () =>
    Effect.gen(function*() {
      const server = yield* serve({ framing: "content-length" })
      yield* server.feed(`${initialize}\n`)
      yield* server.settled
      const sent = (yield* server.sent) as ReadonlyArray<{ readonly error: JsonRpc.JsonRpcError }>
      assert.deepStrictEqual(sent.map(({ error }) => error.code), [-32_700])
      assert.include(
        sent[0]?.error.message,
        "no valid Content-Length header (is the other side writing one message a line?)"
      )
    }))

  it.effect("F28 serves both framings when nothing is said", () =>
    Effect.gen(function*() {
      const headers = yield* serve()
      yield* headers.feed(`Content-Length: 58\r\n\r\n${initialize}`)
      yield* headers.settled
      const lines = yield* serve()
      yield* lines.feed(`${initialize}\n`)
      yield* lines.settled
      const reply = JSON.stringify(initialized)
      assert.deepStrictEqual([yield* headers.sentText, yield* lines.sentText], [counted(reply), `${reply}\n`])
    }))

  it.effect.each<[Framing.Kind, (body: string) => string]>([
    ["line", (body) => `${body}\n`],
    ["content-length", counted]
  ])(
    "F29 writes nothing of its own before the framing is known, and then that of the first message: %s",
    ([, wrap]) =>
      Effect.gen(function*() {
        const wire = yield* TestKit.make()
        const peer = yield* Peer.make(wire.transport, { router })
        const notifying = yield* Effect.forkChild(peer.notify("log", { n: 1 }))
        yield* wire.settled
        assert.deepStrictEqual([notifying.pollUnsafe(), yield* wire.sentText], [undefined, ""])
        yield* wire.feed(wrap(initialize))
        yield* Fiber.join(notifying)
        yield* wire.settled
        const expected = [JSON.stringify(initialized), "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"n\":1}}"]
          .map(wrap)
        const sent = yield* wire.sentText
        assert.deepStrictEqual([sent.length, ...expected.map((part) => sent.includes(part))], [
          expected.join("").length,
          true,
          true
        ])
        // a message in the other framing does not change what we start
        yield* wire.feed(`${ping(2)}\n${counted(ping(3))}`)
        yield* peer.notify("log", { n: 2 })
        yield* wire.settled
        const last = (yield* wire.sentText).slice(sent.length)
        assert.include(last, wrap("{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"n\":2}}"))
      })
  )

  it.each([
    "content-length: 40\r\n\r\n",
    "CONTENT-LENGTH: 40\r\n\r\n",
    "Content-Length:40\r\n\r\n",
    "Content-Length:   40\r\n\r\n",
    "Content-Length:\t40\r\n\r\n",
    "Content-Length: 40  \r\n\r\n"
  ])("F31 accepts the header %j", (header) => {
    assert.deepStrictEqual(
      [decodeAll({ framing: "content-length" }, header + ping(1)), decodeAll(undefined, header + ping(1))],
      [[block(ping(1))], [block(ping(1))]]
    )
  })

  it("F32 accepts headers in any order and ignores those it does not know", () => {
    const type = "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
    const length = "Content-Length: 40\r\n"
    const extra = "X-Extra: a:b\r\n"
    for (
      const headers of [type + length + extra, length + type + extra, length + extra + type, type + extra + length]
    ) {
      const wire = `${headers}\r\n${ping(1)}`
      assert.deepStrictEqual([decodeAll({ framing: "content-length" }, wire), decodeAll(undefined, wire)], [
        [block(ping(1))],
        [block(ping(1))]
      ])
    }
    assert.deepStrictEqual(decodeAll({ framing: "content-length" }, `${extra + length + type}\r\n${ping(1)}`), [
      block(ping(1))
    ])
  })
})

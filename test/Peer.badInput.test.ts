/**
 * Input that is no valid message: how it is answered, counted and survived.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import type * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { counted } from "./utils/bytes.ts"
import { connect, failure, makeLog, success } from "./utils/peer.ts"

const SECRET = "hunter2-planted"

const router = Router.raw(() => Effect.succeed("pong"))
const ping = (id: JsonRpc.Id) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"ping"}\n`

const notJson = failure(null, -32700, "Parse error: the frame is not valid JSON")
const wrongVersion = (id: JsonRpc.Id | null) => failure(id, -32600, "Invalid request: jsonrpc must be \"2.0\"")
const wrongMethod = (id: JsonRpc.Id | null) => failure(id, -32600, "Invalid request: method must be a string")
const wrongParams = (id: JsonRpc.Id | null) =>
  failure(id, -32600, "Invalid request: params must be an object or an array")
const wrongId = failure(
  null,
  -32600,
  "Invalid request: id must be a string or an integer between -(2^53 - 1) and 2^53 - 1"
)
const notAMessage = (id: JsonRpc.Id | null) =>
  failure(id, -32600, "Invalid request: not a JSON-RPC message (an object with a method, a result or an error)")

/** JSON text of arrays in arrays; a request around it adds two levels. */
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)

describe("is answered", () => {
  it.effect.each<readonly [text: string, reply: object]>([
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"method\"", notJson],
    ["Server listening on port 3000", notJson],
    ["1", notAMessage(null)],
    ["\"ping\"", notAMessage(null)],
    ["null", notAMessage(null)],
    ["true", notAMessage(null)],
    ["{}", wrongVersion(null)],
    ["{\"jsonrpc\":\"2.0\"}", notAMessage(null)],
    ["{\"jsonrpc\":\"2.0\",\"id\":4}", notAMessage(4)],
    ["{\"id\":7,\"method\":\"ping\"}", wrongVersion(7)],
    ["{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"ping\"}", wrongVersion(8)],
    ["{\"jsonrpc\":2,\"id\":\"a\",\"method\":\"ping\"}", wrongVersion("a")],
    ["{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":42}", wrongMethod(9)],
    ["{\"jsonrpc\":\"2.0\",\"method\":42}", wrongMethod(null)],
    ["{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":5}", wrongParams(1)],
    ["{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\",\"params\":\"x\"}", wrongParams(0)],
    ["{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":5}", wrongParams(null)],
    ["{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", wrongId],
    ["{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", wrongId],
    ["{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}", wrongId],
    ["{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", wrongId],
    ["{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", wrongId],
    ["{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", wrongId]
  ])("under its id, or null: %s", ([text, reply]) =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      yield* peer.feed(`${ping("before")}${text}\n${ping("after")}`)
      yield* peer.expectSent(success("before", "pong"), reply, success("after", "pong"))
    }))

  it.effect("under the id of a frame that is too long", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, transport: { maxFrameBytes: 100 } })
      const params = `{"text":"${"x".repeat(200)}"}`
      yield* peer.feed(
        `{"jsonrpc":"2.0","id":"big","method":"ping","params":${params}}\n` +
          `{"jsonrpc":"2.0","method":"ping","params":${params}}\n` +
          ping(1)
      )
      const message = "frame too large: more than the limit of 100 bytes"
      yield* peer.expectSent(failure("big", -32600, message), failure(null, -32600, message), success(1, "pong"))
    }))

  it.effect("under the id of a frame that is not UTF-8", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      const text = new TextEncoder().encode("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":[\"?\"]}\n")
      yield* peer.feed(text.map((byte) => byte === 0x3f ? 0xff : byte))
      yield* peer.feed(ping(6))
      yield* peer.expectSent(failure(5, -32700, "the frame is not valid UTF-8"), success(6, "pong"))
    }))

  it.effect("under the id of a frame that nests deeper than 1,000 levels", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw((params) => Effect.succeed(params)) })
      // the message and its params are two levels
      const request = (id: number, levels: number) =>
        `{"jsonrpc":"2.0","id":${id},"method":"echo","params":{"a":${nested(levels - 2)}}}\n`
      yield* peer.feed(request(1, 1_000) + request(2, 1_001))
      yield* peer.expectSent(
        success(1, { a: JSON.parse(nested(998)) as unknown }),
        failure(2, -32600, "Invalid request: nested deeper than 1000 levels")
      )
    }))

  it.effect("when its header cannot be read", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, transport: { framing: "content-length" } })
      yield* peer.feed("Content-Length: many\r\n\r\n")
      yield* peer.feed(Framing.encode([Framing.frameOfText(ping(1).trim(), "content-length")]))
      yield* peer.settled
      const [first, second] = yield* peer.sent
      assert.deepStrictEqual(
        [(first as JsonRpc.Failure).id, (first as JsonRpc.Failure).error.code, second],
        [null, -32700, success(1, "pong")]
      )
    }))

  it.effect("when the input ends inside it", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      yield* peer.feed("Content-Length: 100\r\n\r\n{\"jsonrpc\":")
      yield* peer.endInput
      yield* peer.expectSent(failure(null, -32700, "the input ended inside a frame"))
    }))

  it.effect("not when its version is missing and may be missing", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, profile: "lenient" })
      yield* peer.feed("{\"id\":7,\"method\":\"ping\"}\n{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"ping\"}\n")
      yield* peer.expectSent(success(7, "pong"), wrongVersion(8))
    }))
})

describe("is never answered when it has the shape of a response", () => {
  it.effect.each([
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}",
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"x\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"999\",\"error\":{\"code\":1,\"message\":\"x\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":999,\"error\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":999,\"error\":\"x\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":1}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":1}",
    "{\"jsonrpc\":\"2.0\",\"result\":1}",
    "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":1}",
    "{\"id\":1,\"result\":1}",
    `{"jsonrpc":"2.0","id":999,"result":"${"x".repeat(300)}"}`,
    `{"jsonrpc":"2.0","id":999,"error":{"code":1,"message":"${"x".repeat(300)}"}}`,
    "[{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}]"
  ])("%s", (text) =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, transport: { maxFrameBytes: 200 } })
      yield* peer.feed(`${text}\n${ping(1)}`)
      yield* peer.expectSent(success(1, "pong"))
    }))

  it.effect("which does not touch a call of ours that waits", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, ownFraming: "line" })
      const call = yield* Effect.forkChild(peer.peer.call("name"), { startImmediately: true })
      yield* peer.receive({ id: null, error: { code: -32700, message: "x" } }, { id: 999, result: 1 })
      yield* peer.settled
      assert.isUndefined(call.pollUnsafe())
      yield* peer.receive({ id: 1, result: "Ada" })
      assert.strictEqual(yield* Fiber.join(call), "Ada")
    }))
})

describe("is counted", () => {
  it.effect("and not answered where that is asked for, while valid messages are", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, onBadInput: "count" })
      yield* peer.feed(`Listening...\n{"id":7,"method":"ping"}\n[]\n{"id":1,"result":1}\n${ping(1)}`)
      yield* peer.receive({ id: 2, method: "ping", params: 5 })
      yield* peer.expectSent(success(1, "pong"))
      // the response is none that could have been answered
      assert.deepStrictEqual(yield* peer.peer.stats, {
        messages: 1,
        badInput: 5,
        unanswered: 4,
        noReplies: 0,
        strayResponses: 0
      })
    }))

  it.effect("and told by events that name the rule and never repeat the content", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, transport: { maxFrameBytes: 200 } })
      yield* peer.feed(
        `${SECRET}\n{"jsonrpc":"2.0","id":1,"method":5,"params":["${SECRET}"]}\n` +
          `{"jsonrpc":"2.0","id":2,"method":"ping","params":["${SECRET.repeat(20)}"]}\n`
      )
      yield* peer.settled
      assert.deepStrictEqual(peer.events, [
        { _tag: "BadInput", reason: "InvalidJson", message: "Parse error: the frame is not valid JSON" },
        { _tag: "BadInput", reason: "InvalidMethod", message: "Invalid request: method must be a string" },
        { _tag: "BadInput", reason: "TooLarge", message: "frame too large: more than the limit of 200 bytes" }
      ])
      assert.notInclude(yield* peer.sentText, SECRET)
    }))

  it.effect("and told by events that never repeat a message in a framing that is not read", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, transport: { framing: "content-length" } })
      yield* peer.feed(`{"jsonrpc":"2.0","id":1,"method":"login","params":["${SECRET}"]}\n`)
      yield* peer.settled
      assert.strictEqual(peer.events.length, 1)
      assert.notInclude(JSON.stringify(peer.events) + (yield* peer.sentText), SECRET)
    }))

  it.effect("with messages and stray responses apart", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      yield* peer.receive(
        { id: 1, method: "ping" },
        { method: "note" },
        { id: 5, result: 1 },
        { id: null, error: { code: 1, message: "x" } },
        { id: 2, method: 3 }
      )
      yield* peer.settled
      assert.deepStrictEqual(yield* peer.peer.stats, {
        messages: 4,
        badInput: 1,
        unanswered: 0,
        noReplies: 0,
        strayResponses: 2
      })
    }))
})

describe("is answered as a function says", () => {
  const junk = "{\"jsonrpc\":\"2.0\",\"id\":1\n"
  const malformed = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}\n"

  it.effect("with nothing for text that is not JSON, while all else gets its usual answer", () =>
    Effect.gen(function*() {
      const peer = yield* connect({
        router,
        onBadInput: ({ error, reason }) => reason === "InvalidJson" ? undefined : error
      })
      yield* peer.feed(junk + malformed + ping(1))
      yield* peer.expectSent(wrongMethod(7), success(1, "pong"))
      assert.deepInclude(yield* peer.peer.stats, { badInput: 2, unanswered: 1 })
    }))

  it.effect("with an error of its own, under the id that was read and in the framing that it came in", () =>
    Effect.gen(function*() {
      const seen: Array<Omit<Peer.BadInput, "error">> = []
      const peer = yield* connect({
        router,
        onBadInput: ({ id, reason }) => {
          seen.push({ id, reason })
          return new JsonRpc.JsonRpcError({ code: 4000, message: "not today", data: { reason } })
        }
      })
      yield* peer.feed(junk + counted(malformed.trim()))
      yield* peer.settled
      const answer = (id: JsonRpc.Id | null, reason: string) => {
        const error = { code: 4000, message: "not today", data: { reason } }
        return JSON.stringify({ jsonrpc: "2.0", id, error })
      }
      assert.strictEqual(
        yield* peer.sentText,
        `${answer(null, "InvalidJson")}\n${counted(answer(7, "InvalidMethod"))}`
      )
      assert.deepStrictEqual(seen, [{ id: null, reason: "InvalidJson" }, { id: 7, reason: "InvalidMethod" }])
    }))

  it.effect("at most ten times a second where no id was read", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, onBadInput: ({ error }) => error })
      yield* peer.feed(junk.repeat(25))
      yield* peer.expectSent(...Array.from({ length: 10 }, () => notJson))
    }))

  it.effect("and as usual when the function throws, which is logged", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const onBadInput = (): never => {
        throw new Error("no answer")
      }
      const peer = yield* Effect.provide(connect({ router, onBadInput }), log.layer)
      yield* peer.feed(junk + ping(1))
      yield* peer.expectSent(notJson, success(1, "pong"))
      assert.strictEqual(log.lines.length, 1)
      assert.match(log.lines[0] ?? "", /an option of the peer threw.*no answer/)
    }))

  it.effect("which is not asked about what has the shape of a response", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router, onBadInput: ({ error }) => error })
      yield* peer.feed(`{"id":1,"result":1}\n${ping(1)}`)
      yield* peer.expectSent(success(1, "pong"))
    }))
})

describe("without a readable id", () => {
  it.effect("is answered at most ten times a second, and again after a second", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      const count = Effect.andThen(peer.settled, Effect.map(peer.sent, (sent) => sent.length))
      const counts: Array<number> = []
      yield* peer.feed("junk\n".repeat(25))
      counts.push(yield* count)
      yield* TestClock.adjust("999 millis")
      yield* peer.feed("junk\n".repeat(25))
      counts.push(yield* count)
      yield* TestClock.adjust("1 millis")
      yield* peer.feed("junk\n".repeat(25))
      counts.push(yield* count)
      assert.deepStrictEqual(counts, [10, 10, 20])
      assert.deepStrictEqual(yield* peer.peer.stats, {
        messages: 0,
        badInput: 75,
        unanswered: 55,
        noReplies: 0,
        strayResponses: 0
      })
    }))

  it.effect("does not use up the replies of requests whose id was read", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      const bad = Array.from({ length: 50 }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":5}\n`).join("")
      yield* peer.feed("junk\n".repeat(25) + bad + ping("valid"))
      yield* peer.expectSent(
        ...Array.from({ length: 10 }, () => notJson),
        ...Array.from({ length: 50 }, (_, id) => wrongMethod(id)),
        success("valid", "pong")
      )
    }))

  it.effect("does not make two peers answer each other for ever", () =>
    Effect.gen(function*() {
      // what one sends as an answer must not be answered by the other
      const first = yield* connect({ router })
      const second = yield* connect({ router })
      yield* first.feed("junk\n")
      yield* first.settled
      yield* second.feed(yield* first.sentText)
      yield* second.expectSent()
    }))
})

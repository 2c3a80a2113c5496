/**
 * Batches: several messages in one frame, answered in one frame.
 *
 * @see https://www.jsonrpc.org/specification#batch
 */
import { assert, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Framing from "effect-stdio/Framing"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { connect, failure, success } from "./utils/peer.ts"

const request = (id: JsonRpc.Id, method: string, params?: unknown) => ({ jsonrpc: "2.0", id, method, params })
const notification = (method: string, params?: unknown) => ({ jsonrpc: "2.0", method, params })

const notAMessage = failure(
  null,
  -32600,
  "Invalid request: not a JSON-RPC message (an object with a method, a result or an error)"
)
const batchRefused = failure(null, -32600, "Invalid request: batches are not supported on this connection")

/** Serves "ping", "sleep" (the seconds that its params say) and "fail". */
const router = Router.empty.pipe(
  Router.rawRequest("ping", () => Effect.succeed("pong")),
  Router.rawRequest("sleep", (params) => {
    const [seconds] = params as ReadonlyArray<number>
    return Effect.as(Effect.sleep(`${seconds ?? 0} seconds`), seconds)
  }),
  Router.rawRequest("fail", () => Effect.fail(new JsonRpc.JsonRpcError({ code: 7, message: "no" })))
)

it.effect("answers the requests of a batch in one batch, and the notifications not at all", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([
      request(1, "ping"),
      notification("note"),
      request("a", "fail"),
      { foo: "boo" },
      request(2, "no/such")
    ])
    yield* peer.settled
    const replies = (yield* peer.sent)[0] as ReadonlyArray<unknown>
    const expected = [
      success(1, "pong"),
      failure("a", 7, "no"),
      failure(null, -32600, "Invalid request: jsonrpc must be \"2.0\""),
      failure(2, -32601, "Method not found: no/such")
    ]
    assert.strictEqual((yield* peer.sent).length, 1)
    assert.sameDeepMembers([...replies], expected)
  }))

it.effect("answers a batch of one request with a batch of one reply", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([request(1, "ping")])
    yield* peer.expectSent([success(1, "pong")])
  }))

it.effect("sends nothing for a batch of notifications", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([notification("n1"), notification("n2")])
    yield* peer.settled
    assert.strictEqual(yield* peer.sentText, "")
  }))

it.effect("answers an empty batch with one -32600, not in a batch", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.feed("[]\n")
    yield* peer.expectSent(failure(null, -32600, "Invalid request: an empty batch"))
  }))

it.effect("answers each invalid member of a batch", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.feed("[1,2]\n[[]]\n")
    yield* peer.expectSent([notAMessage, notAMessage], [notAMessage])
    assert.deepStrictEqual(yield* peer.peer.stats, {
      messages: 0,
      badInput: 3,
      unanswered: 0,
      noReplies: 0,
      strayResponses: 0
    })
  }))

it.effect("answers an invalid member under its id where that can be read", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([{ id: 7, method: "ping" }, request(8, "ping")])
    yield* peer.settled
    assert.sameDeepMembers([...(yield* peer.sent)[0] as ReadonlyArray<unknown>], [
      failure(7, -32600, "Invalid request: jsonrpc must be \"2.0\""),
      success(8, "pong")
    ])
  }))

it.effect("holds the replies of a batch until the slowest member is done, and sends them in one write", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([request(1, "sleep", [3]), request(2, "sleep", [1]), request(3, "ping")])
    yield* TestClock.adjust("2999 millis")
    yield* peer.expectSent()
    yield* TestClock.adjust("1 millis")
    yield* peer.expectSent([success(3, "pong"), success(2, 1), success(1, 3)])
    assert.strictEqual(yield* peer.writes, 1)
  }))

it.effect("does not hold messages outside a batch until the batch is done", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([request(1, "sleep", [3]), request(2, "ping")], request(3, "ping"), [request(4, "ping")])
    yield* peer.expectSent(success(3, "pong"), [success(4, "pong")])
    yield* TestClock.adjust("3 seconds")
    yield* peer.expectSent(success(3, "pong"), [success(4, "pong")], [success(2, "pong"), success(1, 3)])
  }))

it.effect("runs the members of a batch at the same time, as far as the concurrency allows", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, concurrency: 2 })
    yield* peer.receive([1, 2, 3, 4].map((id) => request(id, "sleep", [1])))
    yield* TestClock.adjust("1 second")
    yield* peer.expectSent()
    yield* TestClock.adjust("1 second")
    yield* peer.expectSent([1, 2, 3, 4].map((id) => success(id, 1)))
  }))

it.effect("answers the members of a batch that find the queue full", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, concurrency: 1, maxQueuedRequests: 1 })
    yield* peer.receive([1, 2, 3].map((id) => request(id, "sleep", [1])))
    yield* TestClock.adjust("2 seconds")
    yield* peer.expectSent([failure(3, -32603, "too many requests"), success(1, 1), success(2, 1)])
  }))

it.effect("leaves a cancelled member out", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, cancellation: Cancellation.mcp })
    yield* peer.receive([request(1, "sleep", [3]), request(2, "ping")])
    yield* peer.settled
    yield* peer.receive(notification("notifications/cancelled", { requestId: 1 }))
    yield* peer.expectSent([success(2, "pong")])
  }))

it.effect("leaves a member out that waited in the queue when it was cancelled", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, cancellation: Cancellation.mcp, concurrency: 1 })
    yield* peer.receive([request(1, "sleep", [1]), request(2, "sleep", [1])])
    yield* peer.settled
    yield* peer.receive(notification("notifications/cancelled", { requestId: 2 }))
    yield* TestClock.adjust("1 second")
    yield* peer.expectSent([success(1, 1)])
  }))

it.effect("obeys a cancellation in the batch of its request", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, cancellation: Cancellation.lsp })
    yield* peer.receive([request(1, "sleep", [3]), notification("$/cancelRequest", { id: 1 }), request(2, "ping")])
    yield* peer.settled
    assert.sameDeepMembers([...(yield* peer.sent)[0] as ReadonlyArray<unknown>], [
      failure(1, -32800, "Request cancelled"),
      success(2, "pong")
    ])
  }))

it.effect("sends nothing when all members were cancelled", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, cancellation: Cancellation.mcp })
    yield* peer.receive([request(1, "sleep", [3]), request(2, "sleep", [3])])
    yield* peer.settled
    yield* peer.receive(
      notification("notifications/cancelled", { requestId: 1 }),
      notification("notifications/cancelled", { requestId: 2 })
    )
    yield* peer.expectSent()
    yield* TestClock.adjust("3 seconds")
    yield* peer.expectSent()
  }))

it.effect("leaves a member out whose handler answers nothing", () =>
  Effect.gen(function*() {
    const peer = yield* connect({
      router: Router.rawRequest(router, "nothing", () => Effect.succeed(Router.noReply))
    })
    yield* peer.receive([request(1, "nothing"), request(2, "ping")], [request(3, "nothing")])
    yield* peer.expectSent([success(2, "pong")])
  }))

it.effect("refuses the second of two members with the same id", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    yield* peer.receive([request(1, "sleep", [1]), request(1, "ping")])
    yield* TestClock.adjust("1 second")
    yield* peer.expectSent([
      failure(1, -32600, "Invalid request: a request with this id is in flight"),
      success(1, 1)
    ])
  }))

it.effect("serves both of two members with the same id where that is asked for", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, duplicateIds: "serve" })
    yield* peer.receive([request(1, "sleep", [1]), request(1, "ping")])
    yield* TestClock.adjust("1 second")
    yield* peer.expectSent([success(1, 1), success(1, "pong")])
  }))

it.effect("settles our calls with the responses of a batch", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, ownFraming: "line" })
    const first = yield* Effect.forkChild(peer.peer.call("a"), { startImmediately: true })
    const second = yield* Effect.forkChild(Effect.flip(peer.peer.call("b")), { startImmediately: true })
    yield* peer.receive([failure(2, 7, "no"), request(1, "ping"), success(1, "yes")])
    assert.deepStrictEqual(
      [yield* Fiber.join(first), yield* Fiber.join(second)],
      ["yes", new JsonRpc.JsonRpcError({ code: 7, message: "no" })]
    )
    yield* peer.expectSent(
      { jsonrpc: "2.0", id: 1, method: "a" },
      { jsonrpc: "2.0", id: 2, method: "b" },
      [success(1, "pong")]
    )
  }))

it.effect("refuses a batch where that is asked for, runs none of it, and settles nothing", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router, batch: "refuse" })
    yield* peer.receive([request(1, "ping"), request(2, "ping")], request(3, "ping"), [notification("note")])
    yield* peer.expectSent(batchRefused, success(3, "pong"), batchRefused)
    assert.deepStrictEqual(yield* peer.peer.stats, {
      messages: 1,
      badInput: 2,
      unanswered: 0,
      noReplies: 0,
      strayResponses: 0
    })
  }))

it.effect("serves batches of 1,000 messages and refuses longer ones with one -32600", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    const batch = (length: number) => Array.from({ length }, (_, id) => request(id, "ping"))
    yield* peer.receive(batch(1_000), batch(1_001))
    yield* peer.expectSent(
      batch(1_000).map(({ id }) => success(id, "pong")),
      failure(null, -32600, "Invalid request: a batch of more than 1000 messages")
    )
  }))

it.effect("answers a batch in time although one of its handlers cannot be interrupted", () =>
  Effect.gen(function*() {
    const peer = yield* connect({
      router: Router.rawRequest(router, "stubborn", () => Effect.uninterruptible(Effect.sleep("1 minute"))),
      handlerTimeout: "5 seconds"
    })
    yield* peer.receive([request(1, "stubborn"), request(2, "ping")])
    yield* TestClock.adjust("5 seconds")
    yield* peer.settled
    const inTime = yield* peer.sent
    yield* TestClock.adjust("1 minute")
    const expected = [[success(2, "pong"), failure(1, -32603, "The handler took too long")]]
    assert.deepStrictEqual(inTime, expected)
    yield* peer.expectSent(...expected)
  }))

it.effect("asks a function batch by batch", () =>
  Effect.gen(function*() {
    let version = "2025-03-26"
    const peer = yield* connect({ router, batch: () => version === "2025-03-26" ? "serve" : "refuse" })
    yield* peer.receive([request(1, "ping")])
    yield* peer.settled
    version = "2025-06-18"
    yield* peer.receive([request(2, "ping")])
    yield* peer.expectSent([success(1, "pong")], batchRefused)
  }))

it.effect("answers a batch in its own framing", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router })
    const text = JSON.stringify([request(1, "ping"), request(2, "ping")])
    yield* peer.feed(Framing.encode([Framing.frameOfText(text, "content-length")]))
    yield* peer.settled
    const reply = JSON.stringify([success(1, "pong"), success(2, "pong")])
    assert.strictEqual(yield* peer.sentText, `Content-Length: ${reply.length}\r\n\r\n${reply}`)
  }))

it.effect("answers a member under its id when its result cannot be written", () =>
  Effect.gen(function*() {
    const peer = yield* connect({ router: Router.rawRequest(router, "big", () => Effect.succeed(1n)) })
    yield* peer.receive([request(1, "big"), request(2, "ping")])
    yield* peer.expectSent([failure(1, -32603, "The result cannot be written as JSON"), success(2, "pong")])
  }))

it.effect("sends no batch that is longer than the connection allows", () =>
  Effect.gen(function*() {
    const maxSendBytes = 350
    const peer = yield* connect({
      router: Router.rawRequest(router, "long", () => Effect.succeed("x".repeat(150))),
      transport: { framing: "line", maxSendBytes }
    })
    yield* peer.receive([request(1, "long"), request(2, "long")])
    yield* peer.settled
    const lines = (yield* peer.sentText).split("\n").filter((line) => line !== "")
    assert.deepStrictEqual(lines.filter((line) => line.length > maxSendBytes), [])
    // each request still gets its one reply
    const ids = (yield* peer.sent).flat().map((reply) => (reply as JsonRpc.Success).id)
    assert.sameDeepMembers(ids, [1, 2])
  }))

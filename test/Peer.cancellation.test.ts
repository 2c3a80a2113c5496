/**
 * Cancelling requests, theirs and ours, in the words of each protocol.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import * as Router from "effect-stdio/Router"
import type * as JsonRpc from "effect-stdio/Schema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { connect, success } from "./utils/peer.ts"

const failure = (id: JsonRpc.Id, code: number, message: string) => ({ jsonrpc: "2.0", id, error: { code, message } })
const cancelled = (id: JsonRpc.Id) => failure(id, -32800, "Request cancelled")

const mcpCancel = (requestId: unknown) => ({ method: "notifications/cancelled", params: { requestId } })
const lspCancel = (id: unknown) => ({ method: "$/cancelRequest", params: { id } })

/** Handlers that note what happens to them; "slow" takes ten seconds and "stubborn" cannot be interrupted. */
const makeRouter = () => {
  const log: Array<string> = []
  const note = (id: JsonRpc.Id, what: string) =>
    Effect.sync(() => {
      log.push(`${JSON.stringify(id)} ${what}`)
    })
  const slow: Router.RequestHandler = (_, { id }) =>
    note(id, "begins").pipe(
      Effect.andThen(Effect.sleep("10 seconds")),
      Effect.as("slept"),
      Effect.onExit((exit) => note(id, Exit.isSuccess(exit) ? "ends" : "is interrupted"))
    )
  const router = Router.empty.pipe(
    Router.rawRequest("slow", slow),
    Router.rawRequest("initialize", slow),
    Router.rawRequest("stubborn", (params, info) => Effect.uninterruptible(slow(params, info))),
    Router.rawRequest("ping", () => Effect.succeed("pong"))
  )
  return { log, router }
}

describe("their requests, in MCP", () => {
  it.effect("are interrupted and not answered", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: 5, method: "slow" }, { id: "5", method: "slow" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(5))
      yield* peer.expectSent()
      assert.deepStrictEqual(log, ["5 begins", "\"5\" begins", "5 is interrupted"])
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success("5", "slept"))
      assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
    }))

  it.effect("are not answered when their handler cannot be interrupted and ends with a result", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: 5, method: "stubborn" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(5))
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent()
      assert.deepStrictEqual(log, ["5 begins", "5 ends"])
    }))

  it.effect("are never begun when they waited in the queue", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp, concurrency: 1 })
      yield* peer.receive({ id: 1, method: "slow" }, { id: 2, method: "slow" }, { id: 3, method: "ping" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(2))
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(1, "slept"), success(3, "pong"))
      assert.deepStrictEqual(log, ["1 begins", "1 ends"])
    }))

  it.effect("free their place in a queue that is full", () =>
    Effect.gen(function*() {
      const { router } = makeRouter()
      const peer = yield* connect({
        router,
        cancellation: Cancellation.mcp,
        concurrency: 1,
        maxQueuedRequests: 1
      })
      yield* peer.receive({ id: 1, method: "slow" }, { id: 2, method: "slow" }, mcpCancel(2), {
        id: 3,
        method: "ping"
      })
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(1, "slept"), success(3, "pong"))
    }))

  it.effect("make the next in the queue begin", () =>
    Effect.gen(function*() {
      const { router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp, concurrency: 1 })
      yield* peer.receive({ id: 1, method: "slow" }, { id: 2, method: "ping" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(1))
      yield* peer.expectSent(success(2, "pong"))
    }))

  it.effect("go on when initialize is cancelled", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: 0, method: "initialize" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(0))
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(0, "slept"))
      assert.deepStrictEqual(log, ["0 begins", "0 ends"])
    }))

  it.effect.each<readonly [name: string, params: unknown]>([
    ["an unknown id", { requestId: 999 }],
    ["no id", {}],
    ["no params", undefined],
    ["params of null", null],
    ["params by position", [6]],
    ["the id as text", { requestId: "6" }],
    ["an id that is none", { requestId: null }],
    ["a fraction", { requestId: 6.5 }],
    ["an object", { requestId: { id: 6 } }],
    ["the word of another protocol", { id: 6 }]
  ])("go on when a cancellation names %s", ([_, params]) =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: 6, method: "slow" })
      yield* peer.settled
      yield* peer.receive({ method: "notifications/cancelled", params })
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(6, "slept"))
      assert.deepStrictEqual(log, ["6 begins", "6 ends"])
    }))

  it.effect("ignore a cancellation that comes twice, or after the reply", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive(
        { id: 1, method: "ping" },
        mcpCancel(1),
        { id: 2, method: "slow" },
        mcpCancel(2),
        mcpCancel(2)
      )
      yield* peer.settled
      yield* peer.receive({ id: 1, method: "ping" }, { id: 2, method: "ping" })
      yield* peer.expectSent(success(1, "pong"), success(1, "pong"), success(2, "pong"))
      assert.deepStrictEqual(log, ["2 begins", "2 is interrupted"])
    }))

  it.effect("mean the newest request where an id is reused before the cancelled one has ended", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.mcp })
      yield* peer.receive({ id: 1, method: "stubborn" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(1), { id: 1, method: "slow" }, mcpCancel(1), { id: 1, method: "ping" })
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(1, "pong"))
      assert.deepStrictEqual(log, ["1 begins", "1 ends"])
    }))

  it.effect("mean the newest of several requests with one id", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const router = Router.raw((params) =>
        Effect.suspend(() => {
          seen.push(params)
          return Effect.as(Effect.sleep("1 second"), params)
        })
      )
      const peer = yield* connect({ router, cancellation: Cancellation.mcp, duplicateIds: "serve" })
      yield* peer.receive(
        ...["first", "second", "third"].map((name) => ({ id: 1, method: "m", params: [name] })),
        mcpCancel(1)
      )
      yield* TestClock.adjust("3 seconds")
      yield* peer.expectSent(success(1, ["first"]), success(1, ["second"]))
      assert.deepStrictEqual(seen, [["first"], ["second"]])
      // and then the newest of those that are left
      yield* peer.receive(
        ...["fourth", "fifth", "sixth"].map((name) => ({ id: 1, method: "m", params: [name] })),
        mcpCancel(1),
        mcpCancel(1)
      )
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(seen, [["first"], ["second"], ["fourth"]])
    }))
})

describe("their requests, in LSP", () => {
  it.effect("are interrupted and answered with -32800, once", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.lsp })
      yield* peer.receive({ id: 5, method: "slow" })
      yield* peer.settled
      yield* peer.receive(lspCancel(5), lspCancel(5))
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(cancelled(5))
      assert.deepStrictEqual(log, ["5 begins", "5 is interrupted"])
    }))

  it.effect("are answered once, when they have ended, where their handler cannot be interrupted", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.lsp })
      yield* peer.receive({ id: 5, method: "stubborn" })
      yield* peer.settled
      yield* peer.receive(lspCancel(5))
      yield* peer.expectSent()
      yield* TestClock.adjust("10 seconds")
      yield* peer.settled
      assert.deepStrictEqual((yield* peer.sent).map((reply) => (reply as JsonRpc.Failure).id), [5])
      assert.deepStrictEqual(log, ["5 begins", "5 ends"])
    }))

  it.effect("are answered at once when they waited in the queue", () =>
    Effect.gen(function*() {
      const { log, router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.lsp, concurrency: 1 })
      yield* peer.receive({ id: 1, method: "slow" }, { id: 2, method: "slow" }, lspCancel(2))
      yield* peer.expectSent(cancelled(2))
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(cancelled(2), success(1, "slept"))
      assert.deepStrictEqual(log, ["1 begins", "1 ends"])
    }))

  it.effect("are not cancelled by the word of another protocol", () =>
    Effect.gen(function*() {
      const { router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.lsp })
      yield* peer.receive({ id: 1, method: "slow" })
      yield* peer.settled
      yield* peer.receive(mcpCancel(1), { method: "$/cancelRequest", params: { requestId: 1 } })
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(1, "slept"))
    }))

  it.effect("hold a new request with their id until they have ended", () =>
    Effect.gen(function*() {
      const { router } = makeRouter()
      const peer = yield* connect({ router, cancellation: Cancellation.lsp })
      yield* peer.receive({ id: 1, method: "stubborn" })
      yield* peer.settled
      yield* peer.receive(lspCancel(1), { id: 1, method: "ping" })
      yield* peer.expectSent()
      yield* TestClock.adjust("10 seconds")
      yield* peer.settled
      assert.deepStrictEqual((yield* peer.sent).slice(1), [success(1, "pong")])
    }))
})

describe("their requests, without a protocol for it", () => {
  it.effect("go on, and the notification is one like any other", () =>
    Effect.gen(function*() {
      const { router } = makeRouter()
      const seen: Array<unknown> = []
      const peer = yield* connect({
        router: Router.merge(
          router,
          Router.raw(() => Effect.succeed(null), (params, method) =>
            Effect.sync(() => {
              seen.push([method, params])
            }))
        )
      })
      yield* peer.receive({ id: 1, method: "slow" }, mcpCancel(1), lspCancel(1))
      yield* TestClock.adjust("10 seconds")
      yield* peer.expectSent(success(1, "slept"))
      assert.deepStrictEqual(seen, [
        ["notifications/cancelled", { requestId: 1 }],
        ["$/cancelRequest", { id: 1 }]
      ])
    }))
})

describe("our calls", () => {
  const call = { jsonrpc: "2.0", id: 1, method: "roots/list" }
  const mcp = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }

  it.effect("tell the other side when their caller is interrupted, once, and settle at once", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.mcp })
      const fiber = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      yield* Fiber.interrupt(fiber)
      yield* peer.expectSent(call, mcp)
      assert.deepStrictEqual(yield* peer.peer.inFlight, { requests: [], calls: [] })
      // later the deadline passes and the answer comes after all
      yield* TestClock.adjust("1 minute")
      yield* peer.receive({ id: 1, result: [] })
      yield* peer.expectSent(call, mcp)
      assert.strictEqual((yield* peer.peer.stats).strayResponses, 1)
    }))

  it.effect("tell the other side when their time is over", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.mcp })
      const fiber = yield* Effect.forkChild(Effect.exit(peer.peer.call("roots/list")), { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)))
      yield* peer.expectSent(call, mcp)
    }))

  it.effect("use the word of the Language Server Protocol there", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.lsp })
      const fiber = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
      yield* peer.settled
      yield* Fiber.interrupt(fiber)
      yield* peer.expectSent(call, { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } })
    }))

  it.effect("leave the version out in the profile that omits it", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.mcp, profile: "omit" })
      const fiber = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
      yield* peer.settled
      yield* Fiber.interrupt(fiber)
      yield* peer.expectSent(
        { id: 1, method: "roots/list" },
        { method: "notifications/cancelled", params: { requestId: 1 } }
      )
    }))

  it.effect("say nothing where there is no word for it", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line" })
      const fiber = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
      yield* peer.settled
      yield* Fiber.interrupt(fiber)
      yield* peer.expectSent(call)
    }))

  it.effect("say nothing when they were answered", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.mcp })
      const fiber = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
      yield* peer.receive({ id: 1, error: { code: 1, message: "no" } })
      yield* Fiber.await(fiber)
      yield* peer.expectSent(call)
    }))

  it.effect("do not cancel an initialize", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.mcp })
      const fiber = yield* Effect.forkChild(peer.peer.call("initialize"), { startImmediately: true })
      yield* peer.settled
      yield* Fiber.interrupt(fiber)
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "initialize" })
    }))

  it.effect("are neither sent nor cancelled when they are interrupted before the framing is known", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp })
      const fiber = yield* Effect.forkChild(peer.peer.call("roots/list"), { startImmediately: true })
      yield* peer.settled
      yield* Fiber.interrupt(fiber)
      yield* peer.receive({ method: "note" })
      yield* peer.expectSent()
    }))

  it.effect("are neither sent nor cancelled when they are interrupted in the queue", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ ownFraming: "line", cancellation: Cancellation.mcp, maxCallsInFlight: 1 })
      yield* Effect.forkChild(Effect.exit(peer.peer.call("roots/list")), { startImmediately: true })
      const second = yield* Effect.forkChild(peer.peer.call("second"), { startImmediately: true })
      yield* peer.settled
      yield* Fiber.interrupt(second)
      yield* peer.receive({ id: 1, result: [] })
      yield* peer.expectSent(call)
    }))
})

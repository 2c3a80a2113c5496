/**
 * What a tap is told of the messages that go by.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cancellation from "effect-stdio/Cancellation"
import type * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import type * as Tap from "effect-stdio/Tap"
import type * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer, failure, makeLog, success } from "./utils/peer.ts"

/** A peer whose tap keeps what it is told. */
const connect = Effect.fnUntraced(function*<R = never>(
  options?: Peer.Options<R> & { readonly transport?: Transport.Options; readonly payload?: Tap.Tap["payload"] }
) {
  const entries: Array<Tap.Entry> = []
  const peer = yield* connectPeer<R>({
    ownFraming: "line",
    ...options,
    tap: {
      onMessage: (entry) => {
        entries.push(entry)
      },
      payload: options?.payload
    }
  })
  return { ...peer, entries }
})

const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })
const size = (message: unknown) => new TextEncoder().encode(JSON.stringify(message)).length
const v2 = (message: object) => ({ jsonrpc: "2.0", ...message })

const router = Router.empty.pipe(
  Router.rawRequest("ping", () => Effect.succeed("pöng")),
  Router.rawRequest("refuse", () => Effect.fail(new JsonRpc.JsonRpcError({ code: 1, message: "no" }))),
  Router.rawNotification("log", () => Effect.void)
)

describe("a tap is told of", () => {
  it.effect("the requests of the other side, and what they are answered", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      const [ping, refuse] = [{ id: "ä", method: "ping" }, { id: 2, method: "refuse", params: { secret: 1 } }]
      yield* peer.receive(ping, refuse)
      yield* peer.settled
      assert.deepStrictEqual(peer.entries, [
        { direction: "in", time: 0, kind: "request", bytes: size(v2(ping)), method: "ping", id: "ä" },
        { direction: "out", time: 0, kind: "success", bytes: size(success("ä", "pöng")), id: "ä" },
        { direction: "in", time: 0, kind: "request", bytes: size(v2(refuse)), method: "refuse", id: 2 },
        { direction: "out", time: 0, kind: "failure", bytes: size(failure(2, 1, "no")), id: 2 }
      ])
    }))

  it.effect("our calls, and how they are answered", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* start(peer.peer.call("a", { secret: 1 }))
      yield* start(peer.peer.call("b"))
      yield* TestClock.adjust("5 millis")
      yield* peer.receive({ id: 1, result: 1 }, { id: 2, error: { code: 1, message: "no" } })
      yield* peer.settled
      assert.deepStrictEqual(peer.entries, [
        {
          direction: "out",
          time: 0,
          kind: "request",
          bytes: size(v2({ id: 1, method: "a", params: { secret: 1 } })),
          method: "a",
          id: 1
        },
        { direction: "out", time: 0, kind: "request", bytes: size(v2({ id: 2, method: "b" })), method: "b", id: 2 },
        { direction: "in", time: 5, kind: "success", bytes: size(v2({ id: 1, result: 1 })), id: 1 },
        { direction: "in", time: 5, kind: "failure", bytes: size(failure(2, 1, "no")), id: 2 }
      ])
    }))

  it.effect("notifications both ways, cancellations among them", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ cancellation: Cancellation.mcp })
      yield* peer.peer.notify("hello")
      const call = yield* start(peer.peer.call("m"))
      yield* Fiber.interrupt(call)
      yield* peer.receive({ method: "log" }, { method: "notifications/cancelled", params: { requestId: 9 } })
      yield* peer.settled
      const cancel = v2({ method: "notifications/cancelled", params: { requestId: 1 } })
      assert.deepStrictEqual(peer.entries, [
        { direction: "out", time: 0, kind: "notification", bytes: size(v2({ method: "hello" })), method: "hello" },
        { direction: "out", time: 0, kind: "request", bytes: size(v2({ id: 1, method: "m" })), method: "m", id: 1 },
        {
          direction: "out",
          time: 0,
          kind: "notification",
          bytes: size(cancel),
          method: "notifications/cancelled"
        },
        { direction: "in", time: 0, kind: "notification", bytes: size(v2({ method: "log" })), method: "log" },
        {
          direction: "in",
          time: 0,
          kind: "notification",
          bytes: size(cancel),
          method: "notifications/cancelled"
        }
      ])
    }))

  it.effect("the members of a batch, which share its bytes", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router })
      const batch = [v2({ id: 1, method: "ping" }), v2({ method: "log" }), { no: "message" }]
      yield* peer.receive(batch)
      yield* peer.settled
      const bytes = Math.ceil(size(batch) / 3)
      const invalid = "Invalid request: jsonrpc must be \"2.0\""
      assert.deepStrictEqual(peer.entries, [
        { direction: "in", time: 0, kind: "request", bytes, method: "ping", id: 1 },
        { direction: "out", time: 0, kind: "success", bytes: size(success(1, "pöng")), id: 1 },
        { direction: "in", time: 0, kind: "notification", bytes, method: "log" },
        { direction: "in", time: 0, kind: "invalid", bytes, id: null },
        { direction: "out", time: 0, kind: "failure", bytes: size(failure(null, -32_600, invalid)), id: null }
      ])
    }))

  it.effect("input that is no message, by its size and the id it may have", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ onBadInput: "count", transport: { framing: "line", maxFrameBytes: 60 } })
      const noMessage = { jsonrpc: "1.0", id: 7, method: "m" }
      const long = v2({ id: 8, method: "m".repeat(60) })
      yield* peer.feed(`junk\n[]\n${JSON.stringify(noMessage)}\n${JSON.stringify(long)}\n`)
      yield* peer.settled
      assert.deepStrictEqual(peer.entries, [
        { direction: "in", time: 0, kind: "invalid", bytes: 4, id: null },
        { direction: "in", time: 0, kind: "invalid", bytes: 2, id: null },
        { direction: "in", time: 0, kind: "invalid", bytes: size(noMessage), id: 7 },
        { direction: "in", time: 0, kind: "invalid", bytes: size(long), id: 8 }
      ])
    }))

  it.effect("the error that is sent instead of a result that cannot be written", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw(() => Effect.succeed(1n)) })
      yield* peer.receive({ id: 1, method: "m" })
      yield* peer.settled
      const [answer] = yield* peer.sent
      assert.deepStrictEqual(peer.entries.at(-1), {
        direction: "out",
        time: 0,
        kind: "failure",
        bytes: size(answer),
        id: 1
      })
    }))

  it.effect("not what does not leave: too large, too late, or given up", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ transport: { maxSendBytes: 100, maxQueuedBytes: 64 } })
      yield* Effect.result(peer.peer.call("large", { text: "x".repeat(100) }))
      yield* peer.stall
      yield* peer.peer.notify("fills", { text: "x".repeat(40) })
      const waits = yield* start(peer.peer.notify("waits"))
      const givenUp = yield* start(peer.peer.call("given up"))
      yield* Fiber.interrupt(givenUp)
      assert.deepStrictEqual(peer.entries.map(({ method }) => method), ["fills"])
      yield* peer.resume
      yield* Fiber.join(waits)
      yield* peer.transport.end
      yield* Effect.result(peer.peer.notify("too late"))
      yield* peer.feed("junk\n")
      yield* peer.settled
      assert.deepStrictEqual(
        peer.entries.map(({ direction, kind, method }) => `${direction} ${kind} ${method ?? ""}`),
        ["out notification fills", "out notification waits", "in invalid "]
      )
    }))

  it.effect("not of params that cannot be written", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* Effect.exit(peer.peer.notify("m", { amount: 1n }))
      assert.deepStrictEqual(peer.entries, [])
    }))
})

describe("the payload of an entry", () => {
  it.effect("is what a function makes of the message", () =>
    Effect.gen(function*() {
      const peer = yield* connect({
        router,
        payload: (message) => "method" in message ? Object.keys(message.params ?? {}) : "response"
      })
      yield* peer.peer.notify("hello", { secret: 1, token: 2 })
      yield* peer.receive({ id: 1, method: "ping", params: { name: "x" } })
      yield* peer.feed("junk\n")
      yield* peer.settled
      assert.deepStrictEqual(peer.entries.map(({ direction, kind, payload }) => [direction, kind, payload]), [
        ["out", "notification", ["secret", "token"]],
        ["in", "request", ["name"]],
        ["out", "success", "response"],
        ["in", "invalid", undefined],
        ["out", "failure", "response"]
      ])
    }))

  it.effect("is not there where no function is given, so that no secret is told", () =>
    Effect.gen(function*() {
      const peer = yield* connect({ router: Router.raw(() => Effect.succeed("a secret")) })
      yield* start(peer.peer.call("m", { password: "a secret" }))
      yield* peer.receive({ id: 1, result: "a secret" }, { id: 1, method: "m", params: ["a secret"] })
      yield* peer.feed("a secret\n")
      yield* peer.settled
      assert.lengthOf(peer.entries, 6)
      assert.notInclude(JSON.stringify(peer.entries), "secret")
    }))
})

describe("a tap that throws", () => {
  it.effect("is logged, and hinders nothing", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const peer = yield* Effect.provide(
        connectPeer({
          ownFraming: "line",
          router,
          tap: {
            onMessage: () => {
              throw new Error("no space left")
            }
          }
        }),
        log.layer
      )
      const call = yield* start(peer.peer.call("m"))
      yield* peer.receive({ id: 1, result: "r" }, { id: 1, method: "ping" })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed("r"))
      yield* peer.expectSent(v2({ id: 1, method: "m" }), success(1, "pöng"))
      assert.lengthOf(log.lines.filter((line) => line.includes("no space left")), 4)
    }))

  it.effect("while it makes a payload is logged too, and is told of the message without it", () =>
    Effect.gen(function*() {
      const log = makeLog()
      const peer = yield* Effect.provide(
        connect({
          router,
          payload: () => {
            throw new Error("no payload")
          }
        }),
        log.layer
      )
      yield* peer.receive({ id: 1, method: "ping" })
      yield* peer.expectSent(success(1, "pöng"))
      assert.lengthOf(log.lines.filter((line) => line.includes("no payload")), 2)
      assert.deepStrictEqual(peer.entries, [
        {
          direction: "in",
          time: 0,
          kind: "request",
          bytes: size(v2({ id: 1, method: "ping" })),
          method: "ping",
          id: 1
        },
        { direction: "out", time: 0, kind: "success", bytes: size(success(1, "pöng")), id: 1 }
      ])
    }))
})

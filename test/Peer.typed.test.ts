/**
 * Calls and notifications by schemas, as their server has given them to its router.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer } from "./utils/peer.ts"

const connect = (options?: Peer.Options) => connectPeer({ ownFraming: "line", ...options })
const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

const Later = {
  params: Schema.Struct({ at: Schema.Date, by: Schema.Finite }),
  result: Schema.Struct({ at: Schema.Date, data: Schema.Uint8Array })
}
const at = new Date("2026-01-02T03:04:05.000Z")

describe("a typed call", () => {
  it.effect("writes its params and reads its result by their schemas", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(Peer.request(peer.peer, "later", Later, { at, by: 60 }))
      yield* peer.expectSent({
        jsonrpc: "2.0",
        id: 1,
        method: "later",
        params: { at: "2026-01-02T03:04:05.000Z", by: 60 }
      })
      yield* peer.receive({ id: 1, result: { at: "2026-01-02T03:05:05.000Z", data: "AQI=" } })
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.succeed({ at: new Date("2026-01-02T03:05:05.000Z"), data: new Uint8Array([1, 2]) })
      )
    }))

  it.effect("meets a handler that is typed by the same schemas", () =>
    Effect.gen(function*() {
      const [left, right] = yield* Transport.makePair()
      const router = Router.request(Router.empty, "later", Later, ({ at, by }) =>
        Effect.succeed({ at: new Date(at.getTime() + by * 1_000), data: new Uint8Array([by]) }))
      yield* Peer.make(right, { router })
      const client = yield* Peer.make(left, { ownFraming: "line" })
      assert.deepStrictEqual(
        yield* Peer.request(client, "later", Later, { at, by: 60 }),
        { at: new Date("2026-01-02T03:05:05.000Z"), data: new Uint8Array([60]) }
      )
    }))

  it.effect("has no params where their schema has nothing to write", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* start(Peer.request(peer.peer, "a", { params: Schema.Void, result: Schema.Null }, undefined))
      yield* start(Peer.request(peer.peer, "b", { params: Schema.Null, result: Schema.Null }, null))
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "a" }, { jsonrpc: "2.0", id: 2, method: "b" })
    }))

  it.effect("may have an array of params", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const schemas = { params: Schema.Tuple([Schema.Finite, Schema.Date]), result: Schema.Null }
      const call = yield* start(Peer.request(peer.peer, "m", schemas, [1, at]))
      yield* peer.expectSent({ jsonrpc: "2.0", id: 1, method: "m", params: [1, "2026-01-02T03:04:05.000Z"] })
      yield* peer.receive({ id: 1, result: null })
      assert.deepStrictEqual(yield* Fiber.join(call), Result.succeed(null))
    }))

  it.effect("fails when its result does not fit, and says where", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(Peer.request(peer.peer, "later", Later, { at, by: 60 }))
      yield* peer.receive({ id: 1, result: { at: "2026-01-02T03:05:05.000Z" } })
      const outcome = yield* Fiber.join(call)
      assert.isTrue(Result.isFailure(outcome))
      const error = Result.isFailure(outcome) ? outcome.failure : undefined
      assert.strictEqual(error?._tag, "PeerError")
      assert.strictEqual(error?._tag === "PeerError" ? error.reason._tag : undefined, "DecodeFailure")
      assert.match(error?.message ?? "", /^the response to later cannot be read: .*"data"/)
      assert.notInclude(error?.message ?? "", "\n")
    }))

  it.effect("fails with the error of its response, unchanged", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(Peer.request(peer.peer, "later", Later, { at, by: 60 }))
      yield* peer.receive({ id: 1, error: { code: 4, message: "no", data: { at: 1 } } })
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(new JsonRpc.JsonRpcError({ code: 4, message: "no", data: { at: 1 } }))
      )
    }))

  it.effect("has the options of a call", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const call = yield* start(Peer.request(peer.peer, "later", Later, { at, by: 60 }, { timeout: "1 second" }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(
        yield* Fiber.join(call),
        Result.fail(new Peer.PeerError({ reason: new Peer.Timeout({ method: "later" }) }))
      )
    }))

  it.effect.each(["text", 1, true])(
    "dies of params that are no object or array: %j",
    (params) =>
      Effect.gen(function*() {
        const peer = yield* connect()
        const schemas = { params: Schema.Unknown, result: Schema.Unknown }
        const exit = yield* Effect.exit(Peer.request(peer.peer, "m", schemas, params))
        assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
        yield* peer.expectSent()
      })
  )

  it.effect("dies of an object that its schema writes as text", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const exit = yield* Effect.exit(
        Peer.request(peer.peer, "m", { params: Schema.Date, result: Schema.Unknown }, at)
      )
      assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
      yield* peer.expectSent()
    }))

  it.effect("dies of params that their schema cannot write", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      // @ts-expect-error: the types say so as well
      const call = Peer.request(peer.peer, "later", Later, { at, by: "60" })
      const exit = yield* Effect.exit(call)
      assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
      yield* peer.expectSent()
    }))
})

describe("a typed notification", () => {
  it.effect("writes its params by their schema", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* Peer.notification(peer.peer, "seen", Schema.Struct({ at: Schema.Date }), { at })
      yield* peer.expectSent({ jsonrpc: "2.0", method: "seen", params: { at: "2026-01-02T03:04:05.000Z" } })
    }))

  it.effect("dies of params that are no object or array", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      const exit = yield* Effect.exit(Peer.notification(peer.peer, "seen", Schema.String, "text"))
      assert.isTrue(Exit.isFailure(exit) && Exit.hasDies(exit))
      yield* peer.expectSent()
    }))

  it.effect("fails as others do when the connection has ended", () =>
    Effect.gen(function*() {
      const peer = yield* connect()
      yield* peer.breakOutput("EPIPE")
      yield* peer.peer.notify("breaks")
      yield* peer.settled
      const reason = new Transport.TransportError({ reason: new Transport.OutputClosed({ code: "EPIPE" }) })
      assert.deepStrictEqual(
        yield* Effect.result(Peer.notification(peer.peer, "seen", Schema.Struct({}), {})),
        Result.fail(new Peer.PeerError({ reason: new Peer.Closed({ method: "seen", reason }) }))
      )
    }))
})

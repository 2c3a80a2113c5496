/**
 * The tests that docs/calling.md shows.
 */
import { assert, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const Now = { params: Schema.Struct({}), result: Schema.Date }
const router = Router.request(Router.empty, "now", Now, () => Effect.succeed(new Date(0)))

// what is under test: it asks whatever Peer it is given
const now = (server: Peer.Peer["Service"]) =>
  server.call("now").pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Schema.toCodecJson(Now.result))),
    Effect.catchReason("PeerError", "Timeout", () => Effect.succeed(undefined))
  )

it.effect("reads the date that a server wrote", () =>
  Effect.gen(function*() {
    const [left, right] = yield* Transport.makePair()
    yield* Peer.make(right, { router })
    const server = yield* Peer.make(left, { ownFraming: "line" })
    assert.deepStrictEqual(yield* now(server), new Date(0))
  }))

it.effect("has no date when nobody answers for half a minute", () =>
  Effect.gen(function*() {
    const wire = yield* TestKit.make()
    const server = yield* Peer.make(wire.transport, { ownFraming: "line" })
    const fiber = yield* Effect.forkChild(now(server))
    yield* wire.expectSent({ jsonrpc: "2.0", id: 1, method: "now" })
    yield* TestClock.adjust("30 seconds")
    assert.isUndefined(yield* Fiber.join(fiber))
  }))

/**
 * What can be seen of a peer from outside: spans and metrics.
 */
import { assert, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import { connect as connectPeer } from "./utils/peer.ts"

const router = Router.empty.pipe(
  Router.rawRequest("work", () => Effect.as(Effect.withSpan(Effect.void, "inside"), "done")),
  Router.rawRequest("crash", () => Effect.die("defect")),
  Router.rawRequest("ask", () =>
    Effect.gen(function*() {
      const caller = yield* Peer.Caller
      return yield* Effect.orDie(caller.call("name"))
    }))
)

const makeTracer = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}

it.effect("each request has a span named by its method, the parent of what its handler does", () =>
  Effect.gen(function*() {
    const { spans, tracer } = makeTracer()
    const peer = yield* Effect.provideService(connectPeer({ router }), Tracer.Tracer, tracer)
    yield* peer.receive({ id: 7, method: "work" })
    yield* peer.expectSent({ jsonrpc: "2.0", id: 7, result: "done" })
    const [request, inside] = spans
    assert.deepStrictEqual(
      [
        request?.name,
        request?.kind,
        request?.attributes.get("rpc.system"),
        request?.attributes.get("rpc.jsonrpc.request_id")
      ],
      ["work", "server", "jsonrpc", 7]
    )
    assert.strictEqual(request?.status._tag, "Ended")
    assert.strictEqual(inside?.name, "inside")
    assert.strictEqual(Option.getOrUndefined(inside?.parent ?? Option.none())?.spanId, request?.spanId)
  }))

it.effect("each call has a span, the child of the request that made it", () =>
  Effect.gen(function*() {
    const { spans, tracer } = makeTracer()
    const peer = yield* Effect.provideService(connectPeer({ router, ownFraming: "line" }), Tracer.Tracer, tracer)
    yield* peer.receive({ id: 1, method: "ask" })
    yield* peer.settled
    yield* peer.receive({ id: 1, result: "Ada" })
    yield* peer.settled
    assert.deepStrictEqual(spans.map(({ kind, name }) => [name, kind]), [["ask", "server"], ["name", "client"]])
    assert.strictEqual(Option.getOrUndefined(spans[1]?.parent ?? Option.none())?.spanId, spans[0]?.spanId)
  }))

it.effect("a long method makes a short span name", () =>
  Effect.gen(function*() {
    const { spans, tracer } = makeTracer()
    const peer = yield* Effect.provideService(
      connectPeer({ router: Router.raw(() => Effect.succeed(1)) }),
      Tracer.Tracer,
      tracer
    )
    yield* peer.receive({ id: 1, method: "m".repeat(10_000) })
    yield* peer.settled
    assert.strictEqual(spans[0]?.name.length, 129)
  }))

it.effect("metrics count requests, errors, notifications, bad input and calls", () =>
  Effect.gen(function*() {
    const names = ["requests", "request_errors", "notifications", "bad_input", "calls"]
    const counts = Effect.map(Metric.snapshot, (all) =>
      names.map((name) => {
        const found = all.find(({ id }) => id === `effect_stdio_${name}`)
        return found?.type === "Counter" ? Number(found.state.count) : 0
      }))
    const before = yield* counts
    const peer = yield* connectPeer({ router, ownFraming: "line" })
    const call = yield* Effect.forkChild(peer.peer.call("theirs"))
    yield* peer.receive({ id: 1, method: "work" }, { id: 2, method: "crash" }, { id: 3, method: "none" }, {
      method: "note"
    })
    yield* peer.feed("junk\n")
    yield* peer.settled
    const after = yield* counts
    assert.deepStrictEqual(after.map((count, index) => count - (before[index] ?? 0)), [3, 2, 1, 1, 1])
    yield* Fiber.interrupt(call)
  }).pipe(Effect.provide(Logger.layer([]))))

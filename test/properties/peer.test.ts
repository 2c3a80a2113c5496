/**
 * What holds for any input and any order of events: one reply a request, and an end within the time for it.
 */
import { assert, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as Server from "effect-stdio/Server"
import * as TestKit from "effect-stdio/TestKit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

const Sizes = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })))
  .check(Schema.isMinLength(1), Schema.isMaxLength(4))

// -----------------------------------------------------------------------------
// random bytes
// -----------------------------------------------------------------------------

/** Bytes, and pieces of what a decoder looks for. */
const Piece = Schema.Union([
  Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))).check(Schema.isMaxLength(12)),
  Schema.Literals([
    "\n",
    "\r\n\r\n",
    "Content-Length: ",
    "Content-Length: 5\r\n\r\n",
    "content-type: x\r\n",
    "7",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\ufeff",
    "\u2028",
    "{\"jsonrpc\":\"2.0\"",
    ",\"id\":1",
    ",\"id\":null",
    ",\"method\":\"m\"",
    ",\"result\":1",
    ",\"error\":{\"code\":1,\"message\":\"x\"}",
    ",\"params\":[1]"
  ])
])

const encoder = new TextEncoder()

const bytesOf = (pieces: ReadonlyArray<ReadonlyArray<number> | string>) =>
  Uint8Array.from(pieces.flatMap((piece) => typeof piece === "string" ? [...encoder.encode(piece)] : piece))

it.effect.prop(
  "random bytes neither fail the input nor leave anything in flight, and every answer is a response",
  {
    pieces: Schema.Array(Piece).check(Schema.isMaxLength(60)),
    sizes: Sizes,
    framing: Schema.Literals(["auto", "line", "content-length", "native"])
  },
  ({ framing, pieces, sizes }) =>
    Effect.gen(function*() {
      const wire = yield* TestKit.make({ framing, maxFrameBytes: 100 })
      const peer = yield* Peer.make(wire.transport, { router: Router.raw(() => Effect.succeed("done")) })
      yield* wire.feed(bytesOf(pieces), sizes)
      yield* wire.endInput
      yield* peer.inputEnded
      yield* peer.drained
      yield* wire.settled
      assert.deepStrictEqual(yield* peer.inFlight, { requests: [], calls: [] })
      for (const reply of (yield* wire.sent).flat()) {
        const { error, id, jsonrpc, result } = reply as Partial<JsonRpc.Success & JsonRpc.Failure>
        assert.deepStrictEqual([jsonrpc, (result === undefined) !== (error === undefined)], ["2.0", true])
        assert.isTrue(id === null || typeof id === "string" || typeof id === "number")
      }
    }).pipe(Effect.scoped),
  { arbitrary: { runs: 200 }, timeout: 20_000 }
)

// -----------------------------------------------------------------------------
// message soup
// -----------------------------------------------------------------------------

const methods = ["now", "later", "sleep", "fail", "die", "bigint", "undefined", "no/such"] as const

const router = Router.empty.pipe(
  Router.rawRequest("now", () => Effect.succeed("done")),
  Router.rawRequest("later", () => Effect.as(Effect.repeat(Effect.yieldNow, { times: 3 }), "done")),
  Router.rawRequest("sleep", () => Effect.as(Effect.sleep("1 second"), "done")),
  Router.rawRequest(
    "fail",
    () => Effect.fail(new JsonRpc.JsonRpcError({ code: 7, message: "no" }))
  ),
  Router.rawRequest("die", () => Effect.die(new Error("died"))),
  Router.rawRequest("bigint", () => Effect.succeed(1n)),
  Router.rawRequest("undefined", () => Effect.succeed(undefined)),
  Router.notification("note", Schema.Struct({}), () => Effect.sleep("1 second"))
)

const codes: Record<typeof methods[number], number | "result"> = {
  now: "result",
  later: "result",
  sleep: "result",
  undefined: "result",
  fail: 7,
  die: -32603,
  bigint: -32603,
  "no/such": -32601
}

const RequestLike = Schema.Struct({ _tag: Schema.tag("request"), method: Schema.Literals(methods) })
const BadRequest = Schema.Struct({
  _tag: Schema.tag("bad"),
  how: Schema.Literals(["version", "method", "params"])
})
const Other = Schema.Struct({
  _tag: Schema.tag("other"),
  text: Schema.Literals([
    "",
    "junk",
    "{\"jsonrpc\":\"2.0\",\"id\":",
    "\"text\"",
    "null",
    "[]",
    "{\"jsonrpc\":\"2.0\",\"method\":\"note\"}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"now\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"never used\",\"result\":1}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"never used\",\"error\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}"
  ])
})
const Member = Schema.Union([RequestLike, BadRequest])
const Batch = Schema.Struct({
  _tag: Schema.tag("batch"),
  members: Schema.Array(Member).check(Schema.isMinLength(1), Schema.isMaxLength(4))
})
const Item = Schema.Struct({
  content: Schema.Union([RequestLike, BadRequest, Batch, Other]),
  framing: Schema.Literals(["line", "content-length"])
})

/** Writes the items with ids of their own, and tells the reply that each id must get. */
const soup = (items: ReadonlyArray<typeof Item.Type>) => {
  const expected = new Map<JsonRpc.Id, number | "result">()
  let count = 0
  const nextId = (): JsonRpc.Id => {
    count++
    // numbers, negative ones, and texts that look like them
    return count % 3 === 0 ? String(count - 1) : count % 3 === 1 ? count : -count
  }
  const member = (item: typeof Member.Type): string => {
    const id = nextId()
    if (item._tag === "request") {
      expected.set(id, codes[item.method])
      return JSON.stringify({ jsonrpc: "2.0", id, method: item.method })
    }
    expected.set(id, -32600)
    const request = { jsonrpc: "2.0", id, method: "now", params: {} }
    const wrong = { version: { jsonrpc: "1.0" }, method: { method: 5 }, params: { params: "text" } }[item.how]
    return JSON.stringify({ ...request, ...wrong })
  }
  const frames = items.map(({ content, framing }) => {
    const text = content._tag === "batch"
      ? `[${content.members.map(member).join(",")}]`
      : content._tag === "other"
      ? content.text
      : member(content)
    // what stands in a body must be a message; blank lines and junk are for lines
    return Framing.frameOfText(text, content._tag === "other" ? "line" : framing)
  })
  return { bytes: Framing.encode(frames), expected }
}

it.effect.prop(
  "among any messages, each request whose id can be read gets exactly one reply",
  {
    items: Schema.Array(Item).check(Schema.isMaxLength(40)),
    sizes: Sizes,
    concurrency: Schema.Literals([1, 3, "unbounded"])
  },
  ({ concurrency, items, sizes }) =>
    Effect.gen(function*() {
      const { bytes, expected } = soup(items)
      const wire = yield* TestKit.make()
      const peer = yield* Peer.make(wire.transport, { router, concurrency })
      yield* wire.feed(bytes, sizes)
      yield* wire.endInput
      yield* peer.inputEnded
      yield* wire.settled
      // each request and each notification takes a second at most
      for (let second = 0; second < 300 && peer.activity.isBusyUnsafe(); second++) {
        yield* Effect.andThen(TestClock.adjust("1 second"), wire.settled)
      }
      const replies = (yield* wire.sent).flat() as ReadonlyArray<Partial<JsonRpc.Success & JsonRpc.Failure>>
      const answered = replies.filter(({ id }) => id !== null)
      const actual = new Map(answered.map(({ error, id }) => [id ?? null, error?.code ?? "result"]))
      assert.strictEqual(answered.length, actual.size)
      assert.sameDeepMembers([...actual], [...expected])
      assert.isAtMost(replies.length - answered.length, 10)
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))),
  { arbitrary: { runs: 100 }, timeout: 20_000 }
)

// -----------------------------------------------------------------------------
// the end
// -----------------------------------------------------------------------------

const Handler = Schema.Literals(["quick", "sleep", "never", "stubborn", "batch", "notification"])

const CloseEvent = Schema.Struct({
  what: Schema.Literals(["input end", "EPIPE", "EIO", "parent exit", "interrupt", "stop", "stall"]),
  // milliseconds since the event before
  after: Schema.Literals([0, 0, 1, 400, 900, 1_500])
})

const DRAIN = 3_000
// interruption, the last flush, and the parent's poll
const BUDGET = DRAIN + 500 + 500

const handlers = Router.raw(
  (_, { method }) => {
    switch (method) {
      case "sleep":
        return Effect.sleep("1 second")
      case "never":
        return Effect.never
      case "stubborn":
        return Effect.uninterruptible(Effect.sleep("1 hour"))
      default:
        return Effect.succeed("done")
    }
  },
  () => Effect.never
)

const begin = (server: TestKit.Wire, kinds: ReadonlyArray<typeof Handler.Type>) =>
  Effect.forEach(kinds, (kind, index) => {
    const request = (method: string, id: string) => ({ jsonrpc: "2.0", id, method })
    return kind === "notification"
      ? server.receive({ method: "note" })
      : kind === "batch"
      ? server.receive([request("quick", `${index} a`), request("never", `${index} b`)])
      : server.receive(request(kind, `${index}`))
  })

it.effect.prop(
  "whatever ends a server, in whatever order, it stops once and within its time, and answers no request twice",
  {
    kinds: Schema.Array(Handler).check(Schema.isMaxLength(5)),
    events: Schema.Array(CloseEvent).check(Schema.isMaxLength(5))
  },
  ({ events, kinds }) =>
    Effect.gen(function*() {
      const parent = TestKit.makeParent(4_242)
      const stop = Router.rawRequest(
        handlers,
        "stop",
        () => Effect.flatMap(Server.Control, (control) => control.stop(7))
      )
      const server = yield* TestKit.serve({
        router: stop,
        parent,
        drainTimeout: DRAIN,
        watchdog: { idle: 0, parentPoll: "1 millis" }
      })
      const started = yield* Clock.currentTimeMillis
      let endedAfter = Infinity
      const outcome = yield* Effect.forkChild(
        Effect.exit(server.reason).pipe(
          Effect.tap(Effect.map(Clock.currentTimeMillis, (now) => {
            endedAfter = now - started
          }))
        )
      )
      yield* begin(server, kinds)
      yield* server.settled

      let firstEnd: number | undefined
      let elapsed = 0
      // an end of the input comes last, so that there is one in any case
      for (const { after, what } of [...events, { what: "input end", after: 0 } as const]) {
        yield* TestClock.adjust(after)
        elapsed += after
        if (what === "input end") yield* server.endInput
        else if (what === "parent exit") yield* parent.exit
        else if (what === "interrupt") yield* Effect.forkDetach(server.interrupt)
        else if (what === "stop") yield* server.receive({ id: "stop", method: "stop" })
        else if (what === "stall") yield* server.stall
        else yield* Effect.andThen(server.breakOutput(what), server.receive({ id: "ping", method: "quick" }))
        if (what !== "stall") firstEnd ??= elapsed
        yield* server.settled
      }
      for (let step = 0; step < 12; step++) yield* Effect.andThen(TestClock.adjust(500), server.settled)

      yield* Fiber.join(outcome)
      const told = (yield* server.events).filter(({ _tag }) => _tag === "Stopped" || _tag === "Failed")
      assert.strictEqual(told.length, 1)
      assert.isAtMost(endedAfter, (firstEnd ?? 0) + BUDGET + 10)
      const ids = (yield* server.sent).flat().map((reply) => (reply as JsonRpc.Success).id)
      assert.strictEqual(new Set(ids).size, ids.length)
    }).pipe(Effect.scoped),
  { arbitrary: { runs: 80 }, timeout: 20_000 }
)

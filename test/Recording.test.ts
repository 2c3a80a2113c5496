/**
 * Conversations on record: what is written of them, how it is read, and how it is played back.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Peer from "effect-stdio/Peer"
import * as Recording from "effect-stdio/Recording"
import * as Router from "effect-stdio/Router"
import type * as JsonRpc from "effect-stdio/Schema"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { connect as connectPeer } from "./utils/peer.ts"

const start = <A, E>(call: Effect.Effect<A, E>) => Effect.forkChild(Effect.result(call), { startImmediately: true })

/** A peer that is recorded. */
const record = Effect.fnUntraced(function*(redact?: (message: JsonRpc.Message) => unknown) {
  const lines: Array<string> = []
  const peer = yield* connectPeer({
    ownFraming: "line",
    onBadInput: "count",
    router: Router.rawRequest(Router.empty, "approve", () => Effect.succeed("yes")),
    tap: Recording.recorder((line) => lines.push(line), redact)
  })
  return { ...peer, lines }
})

const out = (message: unknown, time = 0): Recording.Entry => ({ time, direction: "out", message })
const into = (message: unknown, time = 0): Recording.Entry => ({ time, direction: "in", message })

describe("a recorder", () => {
  it.effect("writes a line a message, with its direction and the time since the first", () =>
    Effect.gen(function*() {
      const peer = yield* record()
      yield* TestClock.adjust("1 hour")
      yield* start(peer.peer.call("ping", { n: 1 }))
      yield* TestClock.adjust("12 millis")
      yield* peer.receive({ method: "working" }, { id: "s", method: "approve" })
      yield* peer.settled
      yield* TestClock.adjust("1 second")
      yield* peer.receive({ id: 1, result: "pong" })
      yield* peer.settled
      assert.deepStrictEqual(peer.lines, [
        "{\"t\":0,\"dir\":\">\",\"msg\":{\"id\":1,\"method\":\"ping\",\"params\":{\"n\":1}}}\n",
        "{\"t\":12,\"dir\":\"<\",\"msg\":{\"jsonrpc\":\"2.0\",\"method\":\"working\"}}\n",
        "{\"t\":12,\"dir\":\"<\",\"msg\":{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"approve\"}}\n",
        "{\"t\":12,\"dir\":\">\",\"msg\":{\"id\":\"s\",\"result\":\"yes\"}}\n",
        "{\"t\":1012,\"dir\":\"<\",\"msg\":{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"pong\"}}\n"
      ])
    }))

  it.effect("notes input that is no message by its size alone", () =>
    Effect.gen(function*() {
      const peer = yield* record()
      yield* peer.feed("a secret\n")
      yield* peer.settled
      assert.deepStrictEqual(peer.lines, ["{\"t\":0,\"dir\":\"<\",\"note\":\"invalid\",\"bytes\":8}\n"])
    }))

  it.effect("writes what is left of a message when it is redacted", () =>
    Effect.gen(function*() {
      const peer = yield* record((message) =>
        "method" in message ? { method: message.method, params: { name: "…" } } : message
      )
      yield* peer.peer.notify("login", { name: "Ada", password: "a secret" })
      yield* peer.receive({ method: "login", params: { password: "a secret" } })
      yield* peer.settled
      assert.deepStrictEqual(peer.lines, [
        "{\"t\":0,\"dir\":\">\",\"msg\":{\"method\":\"login\",\"params\":{\"name\":\"…\"}}}\n",
        "{\"t\":0,\"dir\":\"<\",\"msg\":{\"method\":\"login\",\"params\":{\"name\":\"…\"}}}\n"
      ])
    }))

  it.effect("notes a message of which nothing may be written", () =>
    Effect.gen(function*() {
      const peer = yield* record(() => undefined)
      yield* peer.receive({ method: "login" })
      yield* peer.settled
      assert.deepStrictEqual(peer.lines, ["{\"t\":0,\"dir\":\"<\",\"note\":\"redacted\",\"bytes\":34}\n"])
      assert.deepStrictEqual(Recording.parse(peer.lines.join("")), Result.succeed([]))
    }))

  it.effect("writes each member of a batch as a message", () =>
    Effect.gen(function*() {
      const peer = yield* record()
      yield* peer.receive([
        { jsonrpc: "2.0", method: "a" },
        { jsonrpc: "2.0", id: 1, method: "approve" }
      ])
      yield* peer.settled
      assert.deepStrictEqual(
        Result.getOrThrow(Recording.parse(peer.lines.join(""))),
        [
          into({ jsonrpc: "2.0", method: "a" }),
          into({ jsonrpc: "2.0", id: 1, method: "approve" }),
          out({ id: 1, result: "yes" })
        ]
      )
    }))

  it.effect("writes what is read again as it was, and played back as it went", () =>
    Effect.gen(function*() {
      const peer = yield* record()
      const call = yield* start(peer.peer.call("ask", { text: "é\n\u2028" }))
      yield* peer.receive({ id: 7, method: "approve" })
      yield* peer.settled
      yield* peer.feed("a banner\n")
      yield* peer.receive({ method: "note" }, { id: 1, error: { code: 3, message: "no", data: [null] } })
      const recorded = yield* Fiber.join(call)

      const entries = Result.getOrThrow(Recording.parse(peer.lines.join("")))
      const asked: Array<string> = []
      const replay = yield* Recording.replay(entries)
      const again = yield* Peer.make(replay.transport, {
        onBadInput: "count",
        router: Router.rawRequest(Router.empty, "approve", () =>
          Effect.sync(() => {
            asked.push("approve")
            return "yes"
          }))
      })
      const notes = yield* again.subscribe()
      assert.deepStrictEqual(yield* Effect.result(again.call("ask")), recorded)
      yield* replay.done
      assert.deepStrictEqual(asked, ["approve"])
      assert.deepStrictEqual((yield* Stream.runCollect(Stream.take(notes, 1))).map(({ method }) => method), ["note"])
    }))
})

describe("a recording", () => {
  it("is read line by line, and lines of other kinds are passed over", () => {
    const text = [
      "{\"t\":0,\"dir\":\">\",\"msg\":{\"id\":1,\"method\":\"m\"}}",
      "",
      "{\"note\":\"the user waits\"}",
      "{\"t\":3,\"dir\":\"<\",\"note\":\"invalid\",\"bytes\":9}",
      "{\"t\":4,\"dir\":\"!\",\"msg\":{}}",
      "{\"dir\":\"<\",\"msg\":{\"id\":1,\"result\":null}}\r",
      "  "
    ].join("\n")
    assert.deepStrictEqual(
      Recording.parse(text),
      Result.succeed([out({ id: 1, method: "m" }), into({ id: 1, result: null })])
    )
  })

  it("may be empty", () => {
    assert.deepStrictEqual(Recording.parse(""), Result.succeed([]))
  })

  it.each(["junk", "[]", "1", "null", "\"text\"", "{\"t\":0"])("has no line such as %s", (line) => {
    const error = new Recording.RecordingError({ reason: new Recording.InvalidLine({ line: 3 }) })
    assert.deepStrictEqual(Recording.parse(`{}\n\n${line}\n{}`), Result.fail(error))
    assert.strictEqual(error.message, "line 3 of the recording is no JSON object")
  })
})

/** Plays a recording to a peer that calls and serves. */
const play = Effect.fnUntraced(function*(entries: ReadonlyArray<Recording.Entry>, framing?: Framing.Kind) {
  const replay = yield* Recording.replay(entries, { framing })
  const peer = yield* Peer.make(replay.transport, {
    onBadInput: "count",
    router: Router.raw((params) => Effect.succeed(params ?? null))
  })
  return { ...replay, peer }
})

const notOnRecord = (what: string) => new Recording.RecordingError({ reason: new Recording.NotOnRecord({ what }) })

const result = (id: JsonRpc.Id, result: unknown) => into({ jsonrpc: "2.0", id, result })

describe("a recording that is played back", () => {
  it.effect("answers the requests of a program under the ids that it uses", () =>
    Effect.gen(function*() {
      const { done, peer } = yield* play([
        out({ id: "seven", method: "a" }),
        result("seven", "to a"),
        out({ id: 100, method: "b" }),
        result(100, "to b")
      ])
      assert.deepStrictEqual([yield* peer.call("a"), yield* peer.call("b")], ["to a", "to b"])
      yield* done
    }))

  it.effect("lets what was sent together be sent in another order", () =>
    Effect.gen(function*() {
      const { done, peer } = yield* play([
        out({ id: 1, method: "a" }),
        out({ method: "note" }),
        out({ id: 2, method: "b" }),
        result(2, "to b"),
        result(1, "to a")
      ])
      const b = yield* start(peer.call("b"))
      const a = yield* start(peer.call("a"))
      yield* peer.notify("note")
      assert.deepStrictEqual(yield* Fiber.joinAll([a, b]), [Result.succeed("to a"), Result.succeed("to b")])
      yield* done
    }))

  it.effect("answers requests of the same method one after the other", () =>
    Effect.gen(function*() {
      const { peer } = yield* play([
        out({ id: 1, method: "m" }),
        out({ id: 2, method: "m" }),
        result(2, "second"),
        result(1, "first")
      ])
      const first = yield* start(peer.call("m"))
      const second = yield* start(peer.call("m"))
      assert.deepStrictEqual(yield* Fiber.joinAll([first, second]), [
        Result.succeed("first"),
        Result.succeed("second")
      ])
    }))

  it.effect("says nothing before its turn has come", () =>
    Effect.gen(function*() {
      const { left, peer } = yield* play([
        out({ id: 1, method: "a" }),
        out({ id: 2, method: "b" }),
        result(1, "to a"),
        result(2, "to b")
      ])
      const a = yield* start(peer.call("a"))
      yield* TestClock.adjust("1 second")
      assert.isUndefined(a.pollUnsafe())
      assert.deepStrictEqual(yield* left, [out({ id: 2, method: "b" })])
      yield* peer.call("b")
      assert.deepStrictEqual(yield* Fiber.join(a), Result.succeed("to a"))
    }))

  it.effect("begins with what came before anything was sent", () =>
    Effect.gen(function*() {
      const { done, peer } = yield* play([
        into({ jsonrpc: "2.0", id: 0, method: "echo", params: { n: 1 } }),
        out({ id: 0, result: { n: 1 } }),
        out({ method: "after" })
      ])
      yield* peer.notify("after")
      yield* done
    }))

  it.effect("asks what the other side asked, and counts the answers by their ids", () =>
    Effect.gen(function*() {
      const { done, left, peer } = yield* play([
        out({ id: 1, method: "start" }),
        into({ jsonrpc: "2.0", id: 1, method: "approve" }),
        into({ jsonrpc: "2.0", id: 2, method: "approve" }),
        out({ id: 2, result: "second" }),
        out({ id: 1, result: "first" }),
        result(1, "started")
      ])
      assert.deepStrictEqual(yield* peer.call("start"), "started")
      assert.deepStrictEqual(yield* left, [])
      yield* done
    }))

  it.effect("is done at once when nothing was sent", () =>
    Effect.gen(function*() {
      const { done } = yield* play([into({ jsonrpc: "2.0", method: "note" })])
      yield* done
    }))

  it.effect("fails when a request is sent that is not on record", () =>
    Effect.gen(function*() {
      const { done, peer } = yield* play([out({ id: 1, method: "a" }), result(1, "r")])
      yield* start(peer.call("b"))
      assert.deepStrictEqual(yield* Effect.result(done), Result.fail(notOnRecord("b")))
      assert.strictEqual(notOnRecord("b").message, "b was sent, which is not on record")
      assert.strictEqual(yield* peer.call("a"), "r")
    }))

  it.effect("fails when a request is sent more often than on record, or as a notification", () =>
    Effect.gen(function*() {
      const twice = yield* play([out({ id: 1, method: "a" }), result(1, "r"), out({ id: 2, method: "b" })])
      yield* twice.peer.call("a")
      yield* start(twice.peer.call("a"))
      assert.deepStrictEqual(yield* Effect.result(twice.done), Result.fail(notOnRecord("a")))
      const note = yield* play([out({ id: 1, method: "a" })])
      yield* note.peer.notify("a")
      assert.deepStrictEqual(yield* Effect.result(note.done), Result.fail(notOnRecord("a")))
    }))

  it.effect("fails when an answer is sent that is not on record", () =>
    Effect.gen(function*() {
      const { done } = yield* play([
        into({ jsonrpc: "2.0", id: "x", method: "echo" }),
        out({ method: "never" })
      ])
      assert.deepStrictEqual(yield* Effect.result(done), Result.fail(notOnRecord("a response to \"x\"")))
    }))

  it.effect("fails when something is sent that is no message", () =>
    Effect.gen(function*() {
      const replay = yield* Recording.replay([out({ method: "a" })])
      yield* replay.transport.send(Framing.frameOfText("junk", "line"))
      assert.deepStrictEqual(
        yield* Effect.result(replay.done),
        Result.fail(notOnRecord("what is no message"))
      )
    }))

  it.effect("takes the members of a batch as messages", () =>
    Effect.gen(function*() {
      const replay = yield* Recording.replay([out({ method: "a" }), out({ id: 1, method: "b" })])
      yield* replay.transport.send(
        Framing.frameOfText(
          JSON.stringify([{ jsonrpc: "2.0", id: 5, method: "b" }, { jsonrpc: "2.0", method: "a" }]),
          "line"
        )
      )
      yield* replay.done
    }))

  it.effect.each(["line", "content-length", "native"] as const)(
    "speaks the framing %s",
    (framing) =>
      Effect.gen(function*() {
        const { peer, transport } = yield* play([out({ id: 1, method: "a" }), result(1, "r")], framing)
        assert.strictEqual(transport.framing, framing)
        assert.strictEqual(yield* peer.call("a"), "r")
      })
  )

  it.effect("fails when the program ends its output before it has sent all of it", () =>
    Effect.gen(function*() {
      const { done, peer, transport } = yield* play([out({ method: "a" }), out({ method: "b" }), out({ method: "c" })])
      yield* peer.notify("b")
      yield* transport.end
      const reason = new Recording.NotSent({ left: 2 })
      assert.deepStrictEqual(yield* Effect.flip(done), new Recording.RecordingError({ reason }))
    }))

  it.effect("plays batches, sent and received", () =>
    Effect.gen(function*() {
      const { done, peer } = yield* play([
        out([{ id: 7, method: "a" }, { id: 8, method: "b" }]),
        into([{ jsonrpc: "2.0", id: 8, result: "to b" }, { jsonrpc: "2.0", id: 7, result: "to a" }])
      ])
      const a = yield* start(peer.call("a"))
      const b = yield* start(peer.call("b"))
      assert.deepStrictEqual(yield* Fiber.joinAll([a, b]), [Result.succeed("to a"), Result.succeed("to b")])
      yield* done
    }))

  it.effect("tells requests apart whose id was used again, also when the second is sent early", () =>
    Effect.gen(function*() {
      const { done, peer } = yield* play([
        out({ id: 1, method: "a" }),
        out({ method: "go" }),
        result(1, "to a"),
        out({ id: 1, method: "b" }),
        result(1, "to b")
      ])
      const a = yield* start(peer.call("a"))
      const b = yield* start(peer.call("b"))
      yield* peer.notify("go")
      yield* done
      assert.deepStrictEqual(yield* Fiber.joinAll([a, b]), [Result.succeed("to a"), Result.succeed("to b")])
    }))

  it.effect("plays a long conversation whose messages all come at once", () =>
    Effect.gen(function*() {
      const count = 2_000
      const { done, peer } = yield* play([
        out({ id: 1, method: "go" }),
        ...Array.from({ length: count }, (_, n) => into({ jsonrpc: "2.0", method: "n", params: { n } })),
        result(1, "done")
      ])
      const notes = yield* peer.subscribe({ capacity: 1, policy: "suspend" })
      const heard = yield* Effect.forkChild(Stream.runCollect(Stream.take(notes, count)))
      assert.strictEqual(yield* peer.call("go"), "done")
      assert.deepStrictEqual(
        (yield* Fiber.join(heard)).map(({ params }) => params),
        Array.from({ length: count }, (_, n) => ({ n }))
      )
      yield* done
    }))

  it.effect("ends with the scope it was made in", () =>
    Effect.gen(function*() {
      const closed = yield* Effect.scoped(
        Effect.map(Recording.replay([]), ({ transport }) => transport.closed)
      )
      assert.deepStrictEqual(yield* closed, new Transport.Ended())
    }))
})

/**
 * Failures of reading messages that happened to other programs, each with the input that caused it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Framing from "effect-stdio/Framing"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const none = { params: Schema.Struct({}), result: Schema.Struct({}) }

const serve = Effect.gen(function*() {
  const calls: Array<unknown> = []
  const server = yield* TestKit.serve({
    router: Router.empty.pipe(
      Router.request("ping", none, () => Effect.succeed({})),
      Router.rawRequest("echo", (params) => Effect.succeed(params)),
      Router.rawRequest("tools/list", (params, { id, method }) =>
        Effect.sync(() => {
          calls.push({ id, method, params })
          return { tools: [] }
        }))
    )
  })
  return { ...server, calls }
})

const pong = (id: number) => ({ jsonrpc: "2.0", id, result: {} })

describe("messages", () => {
  it.effect("F115 passes __proto__ and constructor on as own keys and pollutes nothing", () =>
    Effect.gen(function*() {
      const server = yield* serve
      const params = "{\"__proto__\":{\"admin\":true},\"constructor\":{\"prototype\":{\"x\":1}},\"a\":1}"
      yield* server.feed(`{"jsonrpc":"2.0","id":1,"method":"echo","params":${params}}\n`)
      yield* server.settled
      assert.strictEqual(yield* server.sentText, `{"jsonrpc":"2.0","id":1,"result":${params}}\n`)
      const plain = {} as { readonly admin?: boolean; readonly x?: number }
      assert.deepStrictEqual([plain.admin, plain.x], [undefined, undefined])
    }))

  it("F116 reads an integer beyond 2^53 as a number that can be written again, and keeps its frame's bytes", () => {
    const text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"addr\":7795506888185572399}}}"
    const message = Result.getOrThrow(Result.flatMap(JsonRpc.parse(text), JsonRpc.decode))
    const expected = JsonRpc.success(1, { structuredContent: { addr: Number("7795506888185572399") } })
    assert.deepStrictEqual(message, expected)
    assert.deepStrictEqual(
      Result.getOrThrow(JsonRpc.encode(message)),
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"addr\":7795506888185572000}}}"
    )
    // a relay passes on the frame, not the message
    const decoder = Framing.makeDecoder()
    const items: Array<Framing.Item> = []
    const wire = new TextEncoder().encode(`${text}\n`)
    decoder.push(wire, items)
    assert.deepStrictEqual(Framing.encode(items.flatMap((item) => item._tag === "Frame" ? [item] : [])), wire)
  })

  it.effect("F116 refuses such an integer as an id instead of rounding it", () =>
    Effect.gen(function*() {
      const server = yield* serve
      yield* server.feed("{\"jsonrpc\":\"2.0\",\"id\":7795506888185572399,\"method\":\"ping\"}\n")
      yield* server.settled
      const sent = (yield* server.sent) as ReadonlyArray<JsonRpc.Failure>
      assert.deepStrictEqual(sent.map(({ error, id }) => [id, error.code]), [[null, -32_600]])
    }))

  it.effect("F117 accepts null, [] and {} for no params and refuses a string or a number under the id", () =>
    Effect.gen(function*() {
      const server = yield* serve
      yield* server.feed(
        ["null", "[]", "{}", "\"x\"", "5"]
          .map((params, id) => `{"jsonrpc":"2.0","id":${id},"method":"ping","params":${params}}\n`)
          .join("")
      )
      yield* server.feed("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n")
      const refusal = (id: number) => ({
        jsonrpc: "2.0",
        id,
        error: { code: -32_600, message: "Invalid request: params must be an object or an array" }
      })
      yield* server.settled
      const sent = (yield* server.sent) as ReadonlyArray<JsonRpc.Success | JsonRpc.Failure>
      assert.deepStrictEqual<unknown>(
        sent.toSorted((a, b) => Number(a.id) - Number(b.id)),
        [pong(0), pong(1), pong(2), refusal(3), refusal(4), pong(5)]
      )
    }))

  it.effect("F118 calls a damaged line a parse error, wherever it is damaged", () =>
    Effect.gen(function*() {
      const request =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"arguments\":{}}}"
      // every structural character replaced by one that JSON does not know there
      const places = [...request.matchAll(/[{}:,]/g)].map(({ index }) => index)
      assert.isAbove(places.length, 10)
      for (const place of places) {
        const damaged = `${request.slice(0, place)}#${request.slice(place + 1)}`
        const result = JsonRpc.parse(damaged)
        assert.strictEqual(Result.isFailure(result) ? result.failure.reason : damaged, "InvalidJson")
      }
      const server = yield* serve
      yield* server.feed(`${request.replace("\"params\":", "\"params\"#")}\n`)
      yield* server.expectSent({
        jsonrpc: "2.0",
        id: null,
        error: { code: -32_700, message: "Parse error: the frame is not valid JSON" }
      })
    }))

  it.effect("F120 takes the last of doubled keys everywhere", () =>
    Effect.gen(function*() {
      const server = yield* serve
      const text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\",\"method\":\"tools/list\"}"
      yield* server.feed(`${text}\n`)
      yield* server.expectSent({ jsonrpc: "2.0", id: 2, result: { tools: [] } })
      assert.deepStrictEqual(server.calls, [{ id: 2, method: "tools/list", params: undefined }])
      // the scanner of frames that are too long reads the same id
      const items: Array<Framing.Item> = []
      Framing.makeDecoder({ maxFrameBytes: 10 }).push(new TextEncoder().encode(`${text}\n`), items)
      assert.deepStrictEqual(items.map((item) => item._tag === "Fault" ? item.id : item), [2])
    }))

  it.effect("F122 ignores blank lines and spaces around messages", () =>
    Effect.gen(function*() {
      const server = yield* serve
      yield* server.feed("\n\n   \n\t{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}  \n")
      yield* server.expectSent(pong(1))
      assert.deepStrictEqual((yield* server.events).filter(({ _tag }) => _tag === "BadInput"), [])
    }))
})

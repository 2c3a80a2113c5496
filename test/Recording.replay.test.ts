/**
 * Real conversations with codex app-server, played back to a peer: whatever it heard then, it hears now.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Recording from "effect-stdio/Recording"
import * as Router from "effect-stdio/Router"
import * as JsonRpc from "effect-stdio/Schema"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { readdirSync, readFileSync } from "node:fs"

const folder = new URL("fixtures/recordings/codex/", import.meta.url)

interface Message {
  readonly id?: JsonRpc.Id
  readonly method?: string
  readonly params?: object
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

// the recordings are ours, and were read as JSON objects
const messageOf = ({ message }: Recording.Entry) => message as Message

const read = (name: string) => Result.getOrThrow(Recording.parse(readFileSync(new URL(name, folder), "utf8")))

/** How a response settles a call. */
const outcome = ({ error, result }: Message) =>
  error === undefined ? Result.succeed(result) : Result.fail(new JsonRpc.JsonRpcError(error))

const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"))

describe("a recorded conversation", () => {
  it("is there in numbers", () => {
    assert.isAtLeast(names.length, 30)
  })

  it.effect.each(names)(
    "has every response of %s reach its call, and every notification its subscriber",
    (name) =>
      Effect.gen(function*() {
        const entries = read(name)
        const sent = entries.filter(({ direction }) => direction === "out").map(messageOf)
        const received = entries.filter(({ direction }) => direction === "in").map(messageOf)
        const answers = new Map(
          sent.filter(({ method }) => method === undefined).map((message) => [message.id, message])
        )
        const { transport } = yield* Recording.replay(entries)
        const peer = yield* Peer.make(transport, {
          profile: "omit",
          onBadInput: "count",
          callTimeout: 0,
          router: Router.raw((_, { id }) => {
            const answer = answers.get(id)
            return answer === undefined ? Effect.never : Effect.fromResult(outcome(answer))
          })
        })
        const notifications = received.filter(({ id, method }) => method !== undefined && id === undefined)
        const heard = yield* Effect.forkScoped(
          (yield* peer.subscribe()).pipe(Stream.take(notifications.length), Stream.runCollect)
        )
        const calls: Array<readonly [Message, Fiber.Fiber<Result.Result<unknown, unknown>>]> = []
        for (const message of sent) {
          if (message.method === undefined) continue
          if (message.id === undefined) yield* peer.notify(message.method, message.params)
          else {
            const call = Effect.result(peer.call(message.method, message.params))
            calls.push([message, yield* Effect.forkScoped(call, { startImmediately: true })])
          }
        }
        if (notifications.length > 0) {
          const methods = (yield* Fiber.join(heard)).map(({ method }) => method)
          assert.deepStrictEqual(methods, notifications.map(({ method }) => method))
        }
        let answered = 0
        for (const [{ id }, fiber] of calls) {
          const response = received.find((message) => message.method === undefined && message.id === id)
          if (response === undefined) continue
          assert.deepStrictEqual(yield* Fiber.join(fiber), outcome(response))
          answered++
        }
        assert.isAbove(answered, 0)
      })
  )
})

/**
 * A peer whose other end is the test, and the messages its tests speak in.
 */
import { assert } from "@effect/vitest"
import * as Lifecycle from "effect-stdio/Lifecycle"
import * as Peer from "effect-stdio/Peer"
import type * as JsonRpc from "effect-stdio/Schema"
import * as TestKit from "effect-stdio/TestKit"
import type * as Transport from "effect-stdio/Transport"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"

export const success = (id: JsonRpc.Id, result: unknown) => ({ jsonrpc: "2.0", id, result })

export const failure = (id: JsonRpc.Id | null, code: number, message: string) => ({
  jsonrpc: "2.0",
  id,
  error: { code, message }
})

/** Makes a peer on a transport whose other end is the test, and collects its events. */
export const connect = Effect.fnUntraced(
  function*<R = never>(options?: Peer.Options<R> & { readonly transport?: Transport.Options }) {
    const events: Array<Lifecycle.Event> = []
    const wire = yield* TestKit.make(options?.transport)
    const peer = yield* Effect.provideService(Peer.make<R>(wire.transport, options), Lifecycle.Observer, (event) => {
      events.push(event)
    })
    // A TestClock that was never moved lets the first sleep of an interrupted fiber's finalizer be interrupted.
    yield* TestClock.adjust(0)
    const expectSent = (...expected: ReadonlyArray<unknown>) =>
      Effect.gen(function*() {
        yield* wire.settled
        assert.deepStrictEqual(yield* wire.sent, expected)
      })
    return { ...wire, peer, events, expectSent }
  }
)

/** Collects what is logged, causes included. */
export const makeLog = () => {
  const lines: Array<string> = []
  const layer = Logger.layer([
    Logger.make(({ cause, logLevel, message }) => {
      lines.push(`${logLevel}: ${String(message)} ${Cause.pretty(cause)}`)
    })
  ])
  return { lines, layer }
}

/**
 * Starts the programs of `test/fixtures/children` with the Process under test.
 *
 * Like every process of a test they carry the mark of the test file, by which those are found that were left behind.
 */
import { assert } from "@effect/vitest"
import * as Peer from "effect-stdio/Peer"
import * as Process from "effect-stdio/Process"
import type * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Child from "./child.ts"

export const script = (name: string): string => Child.path(`test/fixtures/children/${name}.ts`)

export interface Options extends Process.Options {
  readonly args?: Parameters<typeof Process.make>[1]
}

/** Starts a program that was named for what it does. */
export const child = (name: string, options?: Options) =>
  Process.make(Child.runtime, [script(name), ...options?.args ?? []], {
    ...options,
    env: { ...Child.environment, ...options?.env }
  })

/** The same with a peer on it, as a client makes one. */
export const peer = Effect.fnUntraced(function*<R = never>(
  name: string,
  options?: { readonly child?: Options; readonly peer?: Peer.Options<R> }
) {
  const process = yield* child(name, options?.child)
  const peer = yield* Peer.make<R>(process.transport, {
    onBadInput: "count",
    callTimeout: "20 seconds",
    ...options?.peer
  })
  return { process, peer }
})

/** Returns when this text came on standard error: now, or before. */
export const said = (process: Process.Process["Service"], text: string): Effect.Effect<void> => {
  const look = Effect.map(process.stderrTail, (tail) => tail.includes(text))
  return process.stderr.pipe(
    Stream.map(() => undefined),
    // it may have come before we listened
    Stream.merge(Stream.fromEffect(Effect.as(Effect.sleep(20), undefined)).pipe(Stream.forever)),
    Stream.mapEffect(() => look),
    Stream.takeUntil((found) => found),
    Stream.runDrain,
    Effect.timeoutOrElse({
      duration: "15 seconds",
      orElse: () => Effect.die(new Error(`${process.command} never said ${JSON.stringify(text)}`))
    })
  )
}

/** The reason why a connection ended, which must be that the process did. */
export const exitOf = (reason: Transport.CloseReason | Transport.TransportError["reason"]): Transport.ProcessExited => {
  assert.strictEqual(reason._tag, "ProcessExited")
  if (reason._tag !== "ProcessExited") throw new Error("unreachable")
  return reason
}

/** The process exit that a call failed with. */
export const failedWithExit = <A, E>(call: Effect.Effect<A, E | Peer.PeerError>) =>
  Effect.map(Effect.flip(call), (error) => {
    assert.instanceOf(error, Peer.PeerError)
    if (!(error instanceof Peer.PeerError) || error.reason._tag !== "Closed") throw error
    return exitOf(error.reason.reason.reason)
  })

/**
 * Calls a child with this library, and measures itself: for each line on standard input one on standard output.
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { createInterface } from "node:readline"
import * as Peer from "../../src/Peer.ts"
import * as Process from "../../src/Process.ts"
import * as Supervisor from "../../src/Supervisor.ts"
import type { Load, Measured } from "../sections/calls.ts"

const [, , script = "", framing = "line"] = process.argv
const PARAMS = { text: "a text of some length" }

const start = Process.make(process.execPath, [script], {
  framing: framing === "line" ? "line" : "content-length"
})

const drive = Effect.fnUntraced(function*(peer: Peer.Peer["Service"], { calls, inFlight, seconds }: Load) {
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const deadline = begun + seconds * 1_000
  let begunCalls = 0
  let messages = 0
  const caller = Effect.gen(function*() {
    while (begunCalls < calls && performance.now() < deadline) {
      begunCalls++
      yield* peer.call("echo", PARAMS)
      messages++
    }
  })
  yield* Effect.all(Array.from({ length: inFlight }, () => caller), { concurrency: "unbounded", discard: true })
  return { messages, seconds: (performance.now() - begun) / 1_000, cpu: micros(process.cpuUsage(cpu)) }
})

const micros = ({ system, user }: NodeJS.CpuUsage) => system + user

/** How long a supervised child takes from its start to its first answer. */
const startOnce = Effect.scoped(Effect.gen(function*() {
  const begun = performance.now()
  const supervisor = yield* Supervisor.make(start)
  yield* supervisor.call("echo", PARAMS)
  return { messages: 1, seconds: (performance.now() - begun) / 1_000, cpu: 0 }
}))

const program = Effect.scoped(Effect.gen(function*() {
  const child = yield* start
  const peer = yield* Peer.make(child.transport, { onBadInput: "count" })
  const answer = JSON.stringify(yield* peer.call("echo", PARAMS))
  if (answer !== JSON.stringify(PARAMS)) return yield* Effect.die(new Error(`not an echo: ${answer}`))
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  for (;;) {
    const line = yield* Effect.promise(() => lines.next())
    if (line.done === true) return
    const load = JSON.parse(line.value) as Load | "start"
    const measured: Measured = yield* load === "start" ? startOnce : drive(peer, load)
    process.stdout.write(`${JSON.stringify(measured)}\n`)
  }
}))

await Effect.runPromise(Effect.provide(program, Logger.layer([])))

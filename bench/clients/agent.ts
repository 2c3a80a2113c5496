/**
 * Follows turns of an agent, and measures itself: for each line on standard input one on standard output. The argument
 * says how it follows them: with `Codex`, with a subscription of a `Peer`, or by reading lines and parsing them.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import * as Codex from "../../src/Codex.ts"
import * as Peer from "../../src/Peer.ts"
import * as Process from "../../src/Process.ts"
import type { Load, Measured } from "../sections/agent.ts"

const [, , kind = "", script = ""] = process.argv

/** Runs a turn, and returns how many pieces of text and how many characters came. */
type Follow = (load: Load) => Effect.Effect<{ readonly pieces: number; readonly length: number; readonly peak: number }>

const memory = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed + process.memoryUsage().external
}

const withCodex = Effect.gen(function*() {
  const child = yield* Process.make(process.execPath, [script])
  const codex = yield* Codex.make({ connect: Effect.succeed(child.transport) })
  const thread = yield* codex.thread()
  const follow: Follow = ({ deltas, slow }) =>
    Effect.gen(function*() {
      const written = yield* Deferred.make<void>()
      yield* child.stderr.pipe(
        Stream.filter((text) => text.includes("written")),
        Stream.take(1),
        Stream.runForEach(() => Deferred.succeed(written, undefined)),
        Effect.forkScoped({ startImmediately: true })
      )
      let pieces = 0
      let length = 0
      let peak = 0
      const before = slow === undefined ? 0 : memory()
      // a consumer that takes nothing until all has come, or until what may come has come
      const wait = slow === "merge" ? Deferred.await(written) : Effect.sleep("2 seconds")
      yield* Stream.runForEachArray(
        thread.stream(String(deltas), { whenSlow: slow }),
        (events) =>
          Effect.gen(function*() {
            for (const event of events) {
              if (event._tag !== "TextDelta") continue
              pieces++
              length += event.text.length
            }
            if (slow === undefined || peak > 0) return
            yield* wait
            // what has been written may not have been read yet
            yield* Effect.sleep("1 second")
            peak = memory() - before
          })
      )
      return { pieces, length, peak }
    }).pipe(Effect.scoped, Effect.orDie)
  return follow
})

const withPeer = Effect.gen(function*() {
  const child = yield* Process.make(process.execPath, [script])
  const peer = yield* Peer.make(child.transport, { profile: "omit", onBadInput: "count" })
  const follow: Follow = ({ deltas }) =>
    Effect.gen(function*() {
      const heard = yield* peer.subscribe({ policy: "suspend" })
      yield* peer.call("turn/start", { input: [{ type: "text", text: String(deltas) }] })
      let pieces = 0
      let length = 0
      yield* heard.pipe(
        Stream.takeUntil(({ method }) => method === "turn/completed"),
        Stream.runForEachArray((notifications) =>
          Effect.sync(() => {
            for (const { params } of notifications) {
              // ours are what we wrote
              const { delta } = params as { readonly delta?: string }
              if (delta === undefined) continue
              pieces++
              length += delta.length
            }
          })
        )
      )
      return { pieces, length, peak: 0 }
    }).pipe(Effect.scoped, Effect.orDie)
  return follow
})

const withLines = Effect.gen(function*() {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "ignore"] })),
    (child) => Effect.sync(() => child.stdin.end())
  )
  const lines = createInterface({ input: child.stdout })
  const follow: Follow = ({ deltas }) =>
    Effect.callback((resume) => {
      let pieces = 0
      let length = 0
      const onLine = (line: string) => {
        const { method, params } = JSON.parse(line) as { method?: string; params?: { readonly delta?: string } }
        if (params?.delta !== undefined) {
          pieces++
          length += params.delta.length
        }
        if (method !== "turn/completed") return
        lines.off("line", onLine)
        resume(Effect.succeed({ pieces, length, peak: 0 }))
      }
      lines.on("line", onLine)
      const input = [{ type: "text", text: String(deltas) }]
      child.stdin.write(`${JSON.stringify({ id: 1, method: "turn/start", params: { input } })}\n`)
    })
  return follow
})

const micros = ({ system, user }: NodeJS.CpuUsage) => system + user

const program = Effect.scoped(Effect.gen(function*() {
  const follow = yield* kind === "codex" ? withCodex : kind === "peer" ? withPeer : withLines
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  for (;;) {
    const line = yield* Effect.promise(() => lines.next())
    if (line.done === true) return
    const load = JSON.parse(line.value) as Load
    const cpu = process.cpuUsage()
    const begun = performance.now()
    let messages = 0
    let peak = 0
    let pieces = 0
    do {
      const turn = yield* follow(load)
      if (turn.length !== lengthOf(load.deltas)) yield* Effect.die(new Error(`${turn.length} characters came`))
      messages += load.deltas
      pieces += turn.pieces
      peak = Math.max(peak, turn.peak)
    } while (performance.now() - begun < load.seconds * 1_000)
    const seconds = (performance.now() - begun) / 1_000
    const measured: Measured = { messages, seconds, pieces, peak, cpu: micros(process.cpuUsage(cpu)) }
    process.stdout.write(`${JSON.stringify(measured)}\n`)
  }
}))

/** The length of the text that so many deltas are. */
const lengthOf = (deltas: number) => {
  let length = 0
  for (let index = 0; index < deltas; index++) length += `word${index} `.length
  return length
}

await Effect.runPromise(Effect.provide(program, Logger.layer([])))

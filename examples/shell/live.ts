/**
 * What a command writes, told while it runs: often enough to watch, seldom enough not to flood a client.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"

const DEFAULT_INTERVAL: Duration.Input = "250 millis"
const DEFAULT_MAX_LENGTH = 4_096

/**
 * One of the two outputs of a command.
 *
 * @category models
 * @since 0.1.0
 */
export type Source = "stdout" | "stderr"

/**
 * Tells the client new text, and how many bytes there were up to its end: more with each report.
 *
 * @category models
 * @since 0.1.0
 */
export type Report = (bytes: number, text: string) => Effect.Effect<void>

/**
 * The output of a running command, on its way to the client.
 *
 * @category models
 * @since 0.1.0
 */
export interface Live {
  /** Adds bytes of an output. */
  readonly push: (source: Source, chunk: Uint8Array) => void
  /** Reports what is left, and nothing more from then on. */
  readonly end: Effect.Effect<void>
}

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Time between two reports. @default "250 millis" */
  readonly interval?: Duration.Input | undefined
  /** Longest text of a report, in UTF-16 code units. @default 4096 */
  readonly maxLength?: number | undefined
}

/**
 * Reports output in whole lines, the first at once and each further report one `interval` after the one before.
 *
 * **Details**
 *
 * A line without an end, such as a question, is reported when it has waited for one interval. Of what comes within an
 * interval the newest `maxLength` code units are reported, from the beginning of a line where there is one, after a
 * note that something was left out. Both outputs are one text, in the order in which they were read; a character whose
 * bytes come in two chunks stays whole.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  report: Report,
  options?: Options
): Effect.fn.Return<Live, never, Scope.Scope> {
  const interval = options?.interval ?? DEFAULT_INTERVAL
  const maxLength = options?.maxLength ?? DEFAULT_MAX_LENGTH
  const news = yield* Latch.make()
  const decoders = { stdout: makeDecoder(), stderr: makeDecoder() }
  let bytes = 0
  let told = 0
  let pending = ""
  let leftOut = false

  const add = (text: string) => {
    pending += text
    if (pending.length <= maxLength) return
    const kept = pending.slice(-maxLength)
    const line = kept.indexOf("\n") + 1
    // a line that is longer than the limit is cut, between two characters
    pending = kept.slice(line > 0 && line < kept.length ? line : isLowSurrogate(kept) ? 1 : 0)
    leftOut = true
  }

  /** Takes what can be reported: whole lines, or everything. */
  const take = (everything: boolean): string => {
    const end = everything ? pending.length : pending.lastIndexOf("\n") + 1
    const text = pending.slice(0, end)
    pending = pending.slice(end)
    if (pending === "") news.closeUnsafe()
    if (text === "" || !leftOut) return text
    leftOut = false
    return `[…]\n${text}`
  }

  // not to be interrupted: what was taken and not told would be lost
  const tell = (everything: boolean) =>
    Effect.uninterruptible(Effect.suspend(() => {
      const text = take(everything)
      if (text === "") return Effect.succeed(false)
      // what is no UTF-8 has fewer bytes than its text
      told = Math.max(told + 1, bytes - Buffer.byteLength(pending))
      return Effect.as(report(told, text), true)
    }))

  const loop = yield* Effect.gen(function*() {
    yield* news.await
    const isTold = yield* tell(false)
    yield* Effect.sleep(interval)
    // what has no end yet has waited long enough
    if (!isTold) yield* Effect.andThen(tell(true), Effect.sleep(interval))
  }).pipe(Effect.forever, Effect.forkScoped)

  return {
    push: (source, chunk) => {
      bytes += chunk.length
      add(decoders[source].decode(chunk, { stream: true }))
      if (pending !== "") news.openUnsafe()
    },
    end: Effect.gen(function*() {
      yield* Fiber.interrupt(loop)
      add(decoders.stdout.decode() + decoders.stderr.decode())
      yield* tell(true)
    })
  }
})

const makeDecoder = () => new TextDecoder("utf-8", { ignoreBOM: true })

const isLowSurrogate = (text: string): boolean => {
  const unit = text.charCodeAt(0)
  return unit >= 0xdc00 && unit <= 0xdfff
}

/**
 * The diagnostics that a language server publishes on its own, and when they are those of the text it was sent last.
 *
 * A server that tells the version of the text is believed. One that does not is waited for until it has been quiet for
 * a while, has no work open, and answers: one that is silent because it still checks the text does not.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Protocol from "./protocol.ts"
import * as Uris from "./uris.ts"

/**
 * Diagnostics of a file, and whether they are known to be those of its text as it was sent last.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report extends Protocol.Items<Protocol.Diagnostic> {
  readonly fresh: boolean
}

interface Entry {
  readonly at: number
  readonly version: number | undefined
  readonly diagnostics: unknown
}

/**
 * What a server has published.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reports {
  readonly published: (params: typeof Protocol.Published.Type) => Effect.Effect<void>
  /** The diagnostics of a file that was just sent in this version; `probe` ends when the server has answered anything. */
  readonly settled: (path: string, version: number, probe?: Effect.Effect<unknown>) => Effect.Effect<Report>
  readonly forget: (path: string) => void
  readonly clear: () => void
}

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Whether the server has work open: it is not quiet then. */
  readonly isBusy: () => boolean
  /** How long the diagnostics of a file must not have changed, where a server tells no versions. @default "2 seconds" */
  readonly quiet?: Duration.Input | undefined
  /** After this what is known is returned, fresh or not. @default "20 seconds" */
  readonly timeout?: Duration.Input | undefined
}

/** While a server works, it is looked again after this, in milliseconds. */
const BUSY_POLL = 100

/**
 * Makes the record of a server that has published nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Reports => {
  const quiet = Duration.toMillis(Duration.fromInputUnsafe(options.quiet ?? "2 seconds"))
  const timeout = Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "20 seconds"))
  const entries = new Map<string, Entry>()
  let tellsVersions = false
  let lastBusy = 0
  let changed = Deferred.makeUnsafe<void>()

  const reportOf = (entry: Entry | undefined, fresh: boolean): Report => ({
    ...Protocol.diagnostics(entry?.diagnostics),
    fresh
  })

  return {
    published: ({ diagnostics, uri, version }) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        const path = Uris.toPath(uri)
        if (path === undefined) return Effect.void
        if (typeof version === "number") tellsVersions = true
        entries.set(path, { at, version: version ?? undefined, diagnostics })
        const waiting = changed
        changed = Deferred.makeUnsafe()
        return Deferred.succeed(waiting, undefined)
      }),
    settled: Effect.fnUntraced(function*(path, version, probe) {
      const sent = yield* Clock.currentTimeMillis
      let answered = 0
      for (;;) {
        const now = yield* Clock.currentTimeMillis
        const entry = entries.get(path)
        if (entry?.version !== undefined && entry.version >= version) return reportOf(entry, true)
        let next = Infinity
        if (entry !== undefined && !tellsVersions) {
          if (options.isBusy()) lastBusy = now
          const isQuietAt = Math.max(sent, entry.at, lastBusy, answered) + quiet
          if (now >= isQuietAt) {
            const left = Math.max(0, sent + timeout - now)
            const isUp = yield* Effect.timeoutOption(probe ?? Effect.void, left)
            if (isUp._tag === "None") return reportOf(entries.get(path), false)
            const after = yield* Clock.currentTimeMillis
            if (after - now < BUSY_POLL && entries.get(path) === entry) return reportOf(entry, true)
            // it was not quiet but busy: what it has found follows
            answered = after
            continue
          }
          next = Math.min(isQuietAt, now + BUSY_POLL)
        }
        if (now >= sent + timeout) return reportOf(entry, false)
        yield* Effect.raceFirst(
          Deferred.await(changed),
          Effect.sleep(Math.min(next, sent + timeout) - now)
        )
      }
    }),
    forget: (path) => void entries.delete(path),
    clear: () => entries.clear()
  }
}

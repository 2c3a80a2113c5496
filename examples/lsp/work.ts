/**
 * What a language server is doing: its `$/progress`, of calls and of its own accord.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Protocol from "./sessionProtocol.ts"

/** A server that begins work and never ends it does not fill the memory. */
const MAX_WORK = 100
/** Of reports that are not passed on in time, the newest are kept. */
const MAX_REPORTS = 16

/**
 * The work of a server.
 *
 * @category models
 * @since 0.1.0
 */
export interface Work {
  /** Takes the value of a `$/progress`; `token` tells one work from the other. */
  readonly report: (token: unknown, value: unknown) => void
  readonly end: (token: unknown) => void
  readonly clear: () => void
  /** What is being done, in words. */
  readonly current: () => ReadonlyArray<string>
  /** What is reported from now on, in words. */
  readonly steps: Effect.Effect<Stream.Stream<string>, never, Scope.Scope>
}

/**
 * Makes the record of a server that does nothing yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): Work => {
  const running = new Map<unknown, Protocol.WorkReport>()
  const listeners = new Set<Queue.Queue<string>>()

  const tell = (step: string) => {
    if (step !== "") { for (const listener of listeners) Queue.offerUnsafe(listener, step) }
  }

  return {
    report: (token, value) => {
      const report = Protocol.workReport(value)
      if (report === undefined) return
      const before = running.get(token)
      // what comes late, of a call that is over, begins nothing
      if (report.kind === "end") running.delete(token)
      else if (before !== undefined || (report.kind === "begin" && running.size < MAX_WORK)) {
        running.set(token, { ...report, title: report.title ?? before?.title })
      }
      tell(describe({ ...report, title: report.title ?? before?.title }))
    },
    end: (token) => void running.delete(token),
    clear: () => running.clear(),
    current: () => Array.from(running.values(), describe).filter((step) => step !== ""),
    steps: Effect.map(
      Effect.acquireRelease(
        Effect.tap(Queue.sliding<string>(MAX_REPORTS), (queue) => Effect.sync(() => listeners.add(queue))),
        (queue) => Effect.sync(() => listeners.delete(queue))
      ),
      Stream.fromQueue
    )
  }
}

const describe = ({ message, percentage, title }: Protocol.WorkReport): string =>
  [title, message].filter((text) => text !== undefined && text !== "").join(": ") +
  (percentage === undefined ? "" : ` (${Math.round(percentage)} %)`)

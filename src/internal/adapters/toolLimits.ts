/**
 * Limits of single tools: how many calls of one run at the same time, and for how long.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Semaphore from "effect/Semaphore"
import type { JsonRpcError } from "../../Schema.ts"
import { shorten } from "../shorten.ts"

/** @internal */
export interface ToolLimits {
  readonly timeout?: Duration.Input | undefined
  readonly concurrency?: number | undefined
}

type Call = Effect.Effect<unknown, JsonRpcError>

/** @internal */
export const makeToolLimits = (limitsOf: (tool: string) => ToolLimits | undefined) => {
  // of the tools that are being called: clients can ask for any name
  const permits = new Map<string, { readonly semaphore: Semaphore.Semaphore; users: number }>()

  const withPermit = (tool: string, concurrency: number, call: Call): Call =>
    Effect.suspend(() => {
      if (!(concurrency >= 1)) return Effect.die(new RangeError(`the concurrency of ${tool} must be at least 1`))
      const entry = permits.get(tool) ?? { semaphore: Semaphore.makeUnsafe(concurrency), users: 0 }
      permits.set(tool, entry)
      entry.users++
      return Effect.ensuring(
        entry.semaphore.withPermits(1)(call),
        Effect.sync(() => {
          if (--entry.users === 0) permits.delete(tool)
        })
      )
    })

  /** Runs a call of a tool within its limits; `tookTooLong` is what is answered when the time is over. */
  return (params: unknown, call: Call, tookTooLong: (message: string) => unknown): Call => {
    const tool = Predicate.isObject(params) && typeof params.name === "string" ? params.name : undefined
    const limits = tool === undefined ? undefined : limitsOf(tool)
    if (tool === undefined || limits === undefined) return call
    const limited = limits.concurrency === undefined ? call : withPermit(tool, limits.concurrency, call)
    const timeout = limits.timeout === undefined ? Duration.infinity : Duration.fromInputUnsafe(limits.timeout)
    if (!Duration.isFinite(timeout) || Duration.isZero(timeout)) return limited
    return Effect.timeoutOrElse(limited, {
      duration: timeout,
      orElse: () =>
        Effect.succeed(
          tookTooLong(`The tool ${shorten(tool)} was stopped: it took longer than ${Duration.format(timeout)}`)
        )
    })
  }
}

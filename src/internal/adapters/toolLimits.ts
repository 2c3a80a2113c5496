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
  const permits = new Map<string, Semaphore.Semaphore>()

  const permitsOf = (tool: string, concurrency: number) => {
    const known = permits.get(tool)
    if (known !== undefined) return known
    const made = Semaphore.makeUnsafe(concurrency)
    permits.set(tool, made)
    return made
  }

  /** Runs a call of a tool within its limits; `tookTooLong` is what is answered when the time is over. */
  return (params: unknown, call: Call, tookTooLong: (message: string) => unknown): Call => {
    const tool = Predicate.isObject(params) && typeof params.name === "string" ? params.name : undefined
    const limits = tool === undefined ? undefined : limitsOf(tool)
    if (tool === undefined || limits === undefined) return call
    const limited = limits.concurrency === undefined
      ? call
      : permitsOf(tool, limits.concurrency).withPermits(1)(call)
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

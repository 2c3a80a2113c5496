/**
 * A logger that turns the logs of an MCP handler into `notifications/message`.
 *
 * @since 0.1.0
 */
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { messageFrom, stringify } from "../../Schema.ts"

// what a client does not read is not kept for ever; the other loggers have it all
const MAX_WAITING = 10_000
// milliseconds that a reply waits for the logs before it, where the client does not read
const DELIVERY_LIMIT = 500

const levels: Record<LogLevel.LogLevel, McpSchema.LoggingLevel | undefined> = {
  All: "debug",
  Trace: "debug",
  Debug: "debug",
  Info: "info",
  Warn: "warning",
  Error: "error",
  Fatal: "critical",
  None: undefined
}

/** @internal */
export interface ClientLogger {
  readonly logger: Logger.Logger<unknown, void>
  /** Returns when the logs so far are on their way, so that they come before the reply of their request. */
  readonly delivered: Effect.Effect<void>
}

/** @internal */
export const makeClientLogger = (
  name: string,
  server: () => McpServer.McpServer["Service"] | undefined
): ClientLogger => {
  const waiting = new Set<Fiber.Fiber<void>>()
  let dropped = 0

  const send = (context: Context.Context<never>, level: McpSchema.LoggingLevel, data: unknown) => {
    const current = server()
    if (current === undefined) return
    // with the handler's context, which says whose log it is and what level its client asked for
    const fiber = Effect.runForkWith(context)(
      Effect.ignoreCause(current.notifications["notifications/message"]({ level, logger: name, data }))
    )
    waiting.add(fiber)
    fiber.addObserver(() => {
      waiting.delete(fiber)
      if (dropped === 0 || waiting.size > 0) return
      const count = dropped
      dropped = 0
      send(context, "warning", `${count} more log messages were not sent`)
    })
  }

  return {
    logger: Logger.make(({ fiber, logLevel, message }) => {
      const level = levels[logLevel]
      const isHandler = Context.getOrUndefined(fiber.context, McpSchema.McpRequestContext) !== undefined
      // the scope of a request ends with it, and so does what may be said about it
      const isOver = Context.getOrUndefined(fiber.context, Scope.Scope)?.state._tag === "Closed"
      const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
      // a cause alone is for our own log
      if (level === undefined || !isHandler || isOver || parts.length === 0) return
      if (waiting.size >= MAX_WAITING) dropped++
      else send(fiber.context, level, parts.length === 1 ? toJson(parts[0]) : parts.map(toJson))
    }),
    delivered: Effect.suspend(() =>
      waiting.size === 0
        ? Effect.void
        : Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll([...waiting]), DELIVERY_LIMIT))
    )
  }
}

const toJson = (value: unknown): unknown =>
  value instanceof Error
    ? messageFrom(value)
    : Result.match(stringify(value), {
      onSuccess: (text): unknown => JSON.parse(text),
      onFailure: () => messageFrom(value)
    })

/**
 * A logger that turns the logs of an MCP handler into `notifications/message`.
 *
 * @since 0.1.0
 */
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { stringify } from "../../Schema.ts"

// what a client does not read is not kept for ever; the other loggers have it all
const MAX_WAITING = 1_000

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
export const makeClientLogger = (
  name: string,
  server: () => McpServer.McpServer["Service"] | undefined
): Logger.Logger<unknown, void> => {
  let waiting = 0
  return Logger.make(({ fiber, logLevel, message }) => {
    const level = levels[logLevel]
    const current = server()
    const isHandler = Context.getOrUndefined(fiber.context, McpSchema.McpRequestContext) !== undefined
    // the scope of a request ends with it, and so does what may be said about it
    const isOver = Context.getOrUndefined(fiber.context, Scope.Scope)?.state._tag === "Closed"
    if (current === undefined || level === undefined || !isHandler || isOver || waiting >= MAX_WAITING) return
    waiting++
    const parts = Array.isArray(message) ? message : [message]
    const data = toJson(parts.length === 1 ? parts[0] : parts)
    // with the handler's context, which says whose log it is and what level its client asked for
    Effect.runForkWith(fiber.context)(
      Effect.ignoreCause(current.notifications["notifications/message"]({ level, logger: name, data }))
    ).addObserver(() => {
      waiting--
    })
  })
}

const toJson = (value: unknown): unknown =>
  Result.match(stringify(value), { onSuccess: (text): unknown => JSON.parse(text), onFailure: () => String(value) })

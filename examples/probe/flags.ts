/**
 * The flags that the probes share, read from the command line and checked by Schema.
 */
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { parseArgs } from "node:util"
import * as Cancellation from "../../src/Cancellation.ts"
import type * as Server from "../../src/Server.ts"
import * as StdioTransport from "../../src/StdioTransport.ts"
import * as Watchdog from "../../src/Watchdog.ts"

const ShortDuration = Schema.TemplateLiteral([Schema.Finite, Schema.Literals(["ms", "s", "m"])])
const WholeNumber = Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThan(0))

const Flags = Schema.Struct({
  framing: Schema.optionalKey(Schema.Literals(["auto", "line", "content-length", "native"])),
  idle: Schema.optionalKey(ShortDuration),
  "parent-pid": Schema.optionalKey(WholeNumber),
  "parent-poll": Schema.optionalKey(ShortDuration),
  startup: Schema.optionalKey(ShortDuration),
  drain: Schema.optionalKey(ShortDuration),
  "max-frame": Schema.optionalKey(WholeNumber),
  concurrency: Schema.optionalKey(WholeNumber),
  cancel: Schema.optionalKey(Schema.Literals(["mcp", "lsp", "none"])),
  batch: Schema.optionalKey(Schema.Literals(["allow", "refuse"])),
  events: Schema.optionalKey(Schema.Boolean)
})

const string = { type: "string" } as const

/** Reads the flags of this process; a wrong one ends it with a message that names it. */
export const read = () => {
  try {
    const { values } = parseArgs({
      options: {
        framing: string,
        idle: string,
        "parent-pid": string,
        "parent-poll": string,
        startup: string,
        drain: string,
        "max-frame": string,
        concurrency: string,
        cancel: string,
        batch: string,
        events: { type: "boolean" }
      }
    })
    return Schema.decodeUnknownSync(Flags)({ ...values })
  } catch (error) {
    console.error(`probe: ${error instanceof Error ? error.message : String(error)}`)
    console.error("durations are written 200ms, 2s or 1m; --max-frame is in bytes")
    return process.exit(2)
  }
}

export type Flags = typeof Flags.Type

const units = { ms: 1, s: 1_000, m: 60_000 }

const duration = (text: string | undefined): Duration.Duration | undefined => {
  const [, amount, unit] = /^([\d.]+)(ms|s|m)$/.exec(text ?? "") ?? []
  return amount === undefined || !(unit === "ms" || unit === "s" || unit === "m")
    ? undefined
    : Duration.millis(Number(amount) * units[unit])
}

/** The options of the server that the flags ask for. */
export const serverOptions = (flags: Flags) =>
  ({
    cancellation: Cancellation[flags.cancel ?? "none"],
    batch: flags.batch === "refuse" ? "refuse" : "serve",
    concurrency: flags.concurrency,
    drainTimeout: duration(flags.drain)
  }) satisfies Server.Options

/** The layers that the flags ask for: connection and watchdog. */
export const layer = (flags: Flags) =>
  Layer.merge(
    StdioTransport.layer({ framing: flags.framing, maxFrameBytes: flags["max-frame"] }),
    Watchdog.layer({
      idle: duration(flags.idle),
      startup: duration(flags.startup),
      parentPids: flags["parent-pid"] === undefined ? undefined : [flags["parent-pid"]],
      parentPoll: duration(flags["parent-poll"])
    })
  )

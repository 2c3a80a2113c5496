/**
 * The configuration file: language servers that are added or changed, and times.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { quote } from "../shared/FileError.ts"
import { type Language, table } from "./languages.ts"

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/**
 * Schema for a time as `500ms`, `30s`, `15m` or `1h`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Time = Schema.String.check(Schema.isPattern(/^\d+(?:\.\d+)?(?:ms|s|m|h)$/, {
  expected: "a time such as 500ms, 30s, 15m or 1h"
}))

/**
 * Reads a time; `undefined` where it is none.
 *
 * @category decoding
 * @since 0.1.0
 */
export const duration = (text: string): Duration.Duration | undefined => {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? []
  return amount !== undefined && (unit === "ms" || unit === "s" || unit === "m" || unit === "h")
    ? Duration.millis(Number(amount) * UNITS[unit])
    : undefined
}

const Record = Schema.Record(Schema.String, Schema.Unknown)
const Texts = Schema.Record(Schema.String, Schema.String)

const Server = Schema.Struct({
  command: Schema.optionalKey(Schema.NonEmptyString),
  args: Schema.optionalKey(Schema.Array(Schema.String)),
  languages: Schema.optionalKey(Schema.Record(Schema.String, Schema.NonEmptyString)),
  install: Schema.optionalKey(Schema.String),
  initializationOptions: Schema.optionalKey(Schema.Unknown),
  settings: Schema.optionalKey(Record),
  env: Schema.optionalKey(Texts),
  disabled: Schema.optionalKey(Schema.Boolean)
})

/**
 * Schema for a configuration.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Config = Schema.Struct({
  servers: Schema.optionalKey(Schema.Record(Schema.NonEmptyString, Server)),
  initializeTimeout: Schema.optionalKey(Time),
  requestTimeout: Schema.optionalKey(Time),
  diagnosticsTimeout: Schema.optionalKey(Time),
  idleTimeout: Schema.optionalKey(Time)
})

/**
 * Type of `Config`.
 *
 * @category models
 * @since 0.1.0
 */
export type Config = typeof Config.Type

/**
 * Why a configuration file cannot be used: `problem` says what is wrong, and where.
 *
 * @category errors
 * @since 0.1.0
 */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", {
  file: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `the configuration ${quote(this.file)} cannot be used: ${this.problem}`
  }
}

/**
 * Reads a configuration from the text of a file.
 *
 * @category decoding
 * @since 0.1.0
 */
export const parse = Effect.fnUntraced(function*(file: string, text: string): Effect.fn.Return<Config, ConfigError> {
  const config = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Config))(text, {
    onExcessProperty: "error"
  }).pipe(Effect.mapError(({ message }) => new ConfigError({ file, problem: message })))
  const known = new Set(table.map(({ name }) => name))
  for (const [name, { command, languages }] of Object.entries(config.servers ?? {})) {
    const wrong = Object.keys(languages ?? {}).find((ending) => !/^\.[^./\\\p{Lu}]+$/u.test(ending))
    if (wrong !== undefined) {
      const problem = `${quote(wrong)} of the server ${quote(name)} is not an ending such as .ts, in lower case`
      return yield* new ConfigError({ file, problem })
    }
    if (!known.has(name) && (command === undefined || languages === undefined)) {
      return yield* new ConfigError({ file, problem: `the new server ${quote(name)} needs command and languages` })
    }
  }
  return config
})

/**
 * Reads a configuration file.
 *
 * @category decoding
 * @since 0.1.0
 */
export const read = Effect.fnUntraced(function*(
  file: string
): Effect.fn.Return<Config, ConfigError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(
    fs.readFileString(file),
    ({ reason }) =>
      new ConfigError({ file, problem: reason._tag === "NotFound" ? "there is no such file" : "it cannot be read" })
  )
  return yield* parse(file, text)
})

/**
 * The table with the servers of a configuration: what a server does not say anew stays as it is, and `settings`,
 * `languages` and `env` are replaced as a whole. A disabled server is left out.
 *
 * @category combinators
 * @since 0.1.0
 */
export const languagesOf = (config: Config): ReadonlyArray<Language> => {
  const servers = new Map(Object.entries(config.servers ?? {}))
  const kept = table.filter(({ name }) => !servers.has(name))
  const changed = Array.from(servers, ([name, { disabled, ...server }]): Option.Option<Language> => {
    const base = table.find((language) => language.name === name) ?? {
      command: "",
      args: [],
      languages: {},
      install: "Install it, or correct its command in the configuration."
    }
    return disabled === true ? Option.none() : Option.some({ ...base, ...server, name })
  })
  return [...kept, ...changed.flatMap(Option.toArray)]
}

/**
 * The times of a configuration, as the service takes them.
 *
 * @category combinators
 * @since 0.1.0
 */
export const times = (config: Config) => {
  const time = (text: string | undefined) => text === undefined ? undefined : duration(text)
  return {
    initializeTimeout: time(config.initializeTimeout),
    requestTimeout: time(config.requestTimeout),
    diagnosticsTimeout: time(config.diagnosticsTimeout),
    idleTimeout: time(config.idleTimeout)
  }
}

/**
 * What language servers say of themselves and of their work: read with forgiveness, as their answers are.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#lifeCycleMessages
 * @since 0.1.0
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { itemsOf } from "./protocol.ts"

/**
 * What a server said of itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerInfo {
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly name?: string | undefined
  readonly version?: string | undefined
}

const readInitialized = Schema.decodeUnknownOption(Schema.Struct({
  capabilities: Schema.Record(Schema.String, Schema.Unknown),
  serverInfo: Schema.optional(Schema.Unknown)
}))

/**
 * Reads the answer to `initialize`.
 *
 * @category decoding
 * @since 0.1.0
 */
export const initialized = (value: unknown): ServerInfo | undefined => {
  const read = Option.getOrUndefined(readInitialized(value))
  if (read === undefined) return undefined
  const text = (member: "name" | "version") => {
    const info: unknown = read.serverInfo
    const value: unknown = Predicate.isObject(info) ? info[member] : undefined
    return typeof value === "string" ? value : undefined
  }
  return { capabilities: read.capabilities, name: text("name"), version: text("version") }
}

/**
 * Schema for the params of `client/registerCapability`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Registrations = Schema.Struct({
  registrations: Schema.Array(Schema.Struct({
    id: Schema.String,
    method: Schema.String,
    registerOptions: Schema.optional(Schema.Unknown)
  }))
})

/**
 * Schema for the params of `client/unregisterCapability`, whose name for the list is misspelled in the protocol.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Unregistrations = Schema.Struct({
  unregisterations: Schema.Array(Schema.Struct({ id: Schema.String, method: Schema.String }))
})

const readWatchers = Schema.decodeUnknownOption(Schema.Struct({ watchers: Schema.Array(Schema.Unknown) }))
const readWatcher = Schema.decodeUnknownOption(Schema.Struct({
  globPattern: Schema.Union([
    Schema.String,
    Schema.Struct({
      baseUri: Schema.Union([Schema.String, Schema.Struct({ uri: Schema.String })]),
      pattern: Schema.String
    })
  ]),
  kind: Schema.optional(Schema.NullOr(Schema.Finite))
}))

/**
 * Which files a server wants to hear of: 1, 2 and 4 of `kind` are new, changed and deleted ones.
 *
 * @category models
 * @since 0.1.0
 */
export interface Watcher {
  readonly base?: string | undefined
  readonly pattern: string
  readonly kind: number
}

/**
 * Reads the options of a registration for `workspace/didChangeWatchedFiles`.
 *
 * @category decoding
 * @since 0.1.0
 */
export const watchers = (registerOptions: unknown): ReadonlyArray<Watcher> =>
  Option.match(readWatchers(registerOptions), {
    onNone: () => [],
    onSome: ({ watchers }) =>
      itemsOf(watchers, readWatcher).items.map(({ globPattern: glob, kind }) =>
        typeof glob === "string"
          ? { pattern: glob, kind: kind ?? 7 }
          : {
            base: typeof glob.baseUri === "string" ? glob.baseUri : glob.baseUri.uri,
            pattern: glob.pattern,
            kind: kind ?? 7
          }
      )
  })

const readWork = Schema.decodeUnknownOption(Schema.Struct({
  kind: Schema.String,
  title: Schema.optional(Schema.String),
  message: Schema.optional(Schema.NullOr(Schema.String)),
  percentage: Schema.optional(Schema.NullOr(Schema.Finite))
}))

/**
 * A report of work that a server does.
 *
 * @category models
 * @since 0.1.0
 */
export interface WorkReport {
  readonly kind: string
  readonly title?: string | undefined
  readonly message?: string | undefined
  readonly percentage?: number | undefined
}

/**
 * Reads the value of a `$/progress` that tells of work.
 *
 * @category decoding
 * @since 0.1.0
 */
export const workReport = (value: unknown): WorkReport | undefined =>
  Option.getOrUndefined(Option.map(readWork(value), ({ kind, message, percentage, title }) => ({
    kind,
    title,
    message: message ?? undefined,
    percentage: percentage ?? undefined
  })))

/**
 * What a language server gets when it is the one that asks or tells.
 *
 * It may know the settings and say which files it wants to hear of; it may not write. What it logs goes to the log.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Router from "../../src/Router.ts"
import type { Root } from "../shared/Root.ts"
import type * as Diagnostics from "./diagnostics.ts"
import type { Language } from "./languages.ts"
import { Published } from "./protocol.ts"
import * as Protocol from "./sessionProtocol.ts"
import * as Uris from "./uris.ts"
import type { WatchedFiles } from "./WatchedFiles.ts"
import type { Work } from "./work.ts"

const WATCHED_FILES = "workspace/didChangeWatchedFiles"

/**
 * What the answers are made of, and what is told to.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly language: Language
  readonly root: Root
  readonly work: Work
  readonly reports: Diagnostics.Reports
  readonly watched: WatchedFiles
  /** Methods that the server has registered, by the id of the registration. */
  readonly dynamic: Map<string, string>
}

const Nothing = Schema.Unknown
const Configuration = Schema.Struct({
  items: Schema.Array(Schema.Struct({ section: Schema.optional(Schema.NullOr(Schema.String)) }))
})
const Message = Schema.Struct({ type: Schema.optional(Schema.Unknown), message: Schema.String })

/**
 * The router of a session.
 *
 * @category constructors
 * @since 0.1.0
 */
export const router = ({ dynamic, language, reports, root, watched, work }: Options): Router.Router => {
  const always = (method: string, answer: unknown) => Router.rawRequest(method, () => Effect.succeed(answer))
  const log = (levels: ReadonlyArray<typeof Effect.logInfo>) => ({ message, type }: typeof Message.Type) =>
    Effect.annotateLogs(
      (levels[typeof type === "number" ? type - 1 : levels.length] ?? Effect.logDebug)(message),
      "server",
      language.name
    )
  const uri = Uris.fromPath(root.folder)

  return Router.empty.pipe(
    Router.request(
      "workspace/configuration",
      { params: Configuration, result: Nothing },
      ({ items }) => Effect.succeed(items.map(({ section }) => sectionOf(language.settings, section ?? undefined)))
    ),
    Router.request(
      "client/registerCapability",
      { params: Protocol.Registrations, result: Nothing },
      (params) =>
        Effect.sync(() => {
          for (const { id, method, registerOptions } of params.registrations) {
            dynamic.set(id, method)
            if (method === WATCHED_FILES) watched.register(id, Protocol.watchers(registerOptions))
          }
          return null
        })
    ),
    Router.request(
      "client/unregisterCapability",
      { params: Protocol.Unregistrations, result: Nothing },
      (params) =>
        Effect.sync(() => {
          for (const { id } of params.unregisterations) {
            dynamic.delete(id)
            watched.unregister(id)
          }
          return null
        })
    ),
    always("workspace/applyEdit", {
      applied: false,
      failureReason: "This client applies no edits on its own: it has asked for none."
    }),
    always("workspace/workspaceFolders", [{ uri, name: "project" }]),
    always("window/workDoneProgress/create", null),
    always("window/showMessageRequest", null),
    always("window/showDocument", { success: false }),
    always("workspace/codeLens/refresh", null),
    always("workspace/semanticTokens/refresh", null),
    always("workspace/inlayHint/refresh", null),
    always("workspace/inlineValue/refresh", null),
    always("workspace/diagnostic/refresh", null),
    always("workspace/foldingRange/refresh", null),
    Router.notification("textDocument/publishDiagnostics", Published, reports.published),
    Router.rawNotification("$/progress", (params) =>
      Effect.sync(() => {
        if (Predicate.hasProperty(params, "token") && Predicate.hasProperty(params, "value")) {
          work.report(params.token, params.value)
        }
      })),
    // what is not an error or a warning is many lines a minute for some servers
    Router.notification("window/logMessage", Message, log([Effect.logError, Effect.logWarning])),
    Router.notification("window/showMessage", Message, log([Effect.logError, Effect.logWarning, Effect.logInfo])),
    Router.rawNotification("telemetry/event", () => Effect.void)
  )
}

/** A part of the settings by its name, such as `python.analysis`; all of them without a name, null where there is none. */
const sectionOf = (settings: unknown, section: string | undefined): unknown => {
  if (section === undefined || section === "") return settings ?? null
  if (Predicate.isObject(settings) && Object.hasOwn(settings, section)) return settings[section]
  let value: unknown = settings
  for (const name of section.split(".")) {
    if (!Predicate.isObject(value) || !Object.hasOwn(value, name)) return null
    value = value[name]
  }
  return value ?? null
}

/**
 * The language servers of a folder: each is started when it is asked for the first time, and stopped when nobody has
 * asked it for long.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Process from "../../src/Process.ts"
import * as Supervisor from "../../src/Supervisor.ts"
import type { FileError } from "../shared/FileError.ts"
import * as Root from "../shared/Root.ts"
import type * as Failures from "./failures.ts"
import { isInstalled } from "./installed.ts"
import * as Languages from "./languages.ts"
import { fail, type LspError, type NotInstalled, type NotReady, UnknownLanguage } from "./LspError.ts"
import * as Session from "./session.ts"
import * as Uris from "./uris.ts"

/**
 * Schema for how it stands with a language server.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Status = Schema.Struct({
  server: Schema.String,
  command: Schema.String,
  endings: Schema.Array(Schema.String),
  state: Schema.Literals(["not started", "not installed", "starting", "running", "restarting", "crashed"]),
  pid: Schema.optionalKey(Schema.Int),
  version: Schema.optionalKey(Schema.String.annotate({ description: "What the server says of itself" })),
  openDocuments: Schema.optionalKey(Schema.Int),
  restarts: Schema.optionalKey(Schema.Int),
  doing: Schema.optionalKey(Schema.Array(Schema.String)),
  reason: Schema.optionalKey(Schema.String.annotate({ description: "Why it crashed, or what to install" }))
})

/**
 * Type of `Status`.
 *
 * @category models
 * @since 0.1.0
 */
export type Status = typeof Status.Type

/**
 * Which servers there are, and how they are used.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Session.Options {
  /** The folder with the project. */
  readonly root: string
  /** The servers that are known. @default Languages.table */
  readonly languages?: ReadonlyArray<Languages.Language> | undefined
  /** A server that nobody has asked for so long is stopped. @default "15 minutes" */
  readonly idleTimeout?: Duration.Input | undefined
  /** Starts the program of a server. @default as a child process in the folder */
  readonly start?:
    | ((language: Languages.Language) => Effect.Effect<Process.Process["Service"], unknown, Scope.Scope>)
    | undefined
}

/**
 * The language servers of a folder, as a service.
 *
 * @category services
 * @since 0.1.0
 */
export class LanguageServers extends Context.Service<LanguageServers, {
  readonly root: Root.Root
  readonly maxFileBytes: number
  /** Puts a question about a file to the server that knows it. */
  readonly ask: <A>(
    file: { readonly path: string; readonly anew?: boolean | undefined },
    onStep: Session.OnStep,
    question: Session.Question<A>
  ) => Effect.Effect<A, LspError | FileError>
  /** Puts a question about the project to a server, which is started for it. */
  readonly askAll: <A>(
    language: Languages.Language,
    onStep: Session.OnStep,
    question: (asking: Session.Asking) => Effect.Effect<A, Failures.Failure>
  ) => Effect.Effect<A, LspError | FileError>
  /** The servers that were started and not stopped. */
  readonly started: Effect.Effect<ReadonlyArray<Languages.Language>>
  /** Tells all servers that are up what changed on the disk. */
  readonly refresh: Effect.Effect<void>
  readonly status: Effect.Effect<ReadonlyArray<Status>>
}>()("effect-stdio/examples/LanguageServers") {
  static readonly layer = (
    options: Options
  ): Layer.Layer<LanguageServers, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(LanguageServers, make(options))
}

const MAX_FILE_BYTES = 4_194_304

/**
 * Makes the service; nothing is started yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<
  LanguageServers["Service"],
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const root = yield* Root.make(options.root)
  const languages = options.languages ?? Languages.table
  const maxFileBytes = options.maxFileBytes ?? MAX_FILE_BYTES
  const sessions = new Map<string, Session.Session>()
  // of those that were given up
  const failures = new Map<string, NotReady | NotInstalled>()

  const start = options.start ?? (({ args, command, env }: Languages.Language) =>
    Process.make(command, args, {
      framing: "content-length",
      cwd: root.folder,
      env,
      endTimeout: "1 second",
      killTimeout: "500 millis"
    }))

  const servers = yield* RcMap.make({
    lookup: Effect.fnUntraced(function*(language: Languages.Language) {
      const session = yield* Session.make(root, language, start(language), { ...options, maxFileBytes })
      sessions.set(language.name, session)
      failures.delete(language.name)
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => sessions.get(language.name) === session && sessions.delete(language.name))
      )
      return session
    }),
    idleTimeToLive: options.idleTimeout ?? "15 minutes"
  })

  /** A server that was given up is forgotten, so that the next question starts it anew. */
  const use = <A>(
    language: Languages.Language,
    f: (session: Session.Session) => Effect.Effect<A, LspError | FileError>
  ): Effect.Effect<A, LspError | FileError> =>
    Effect.scoped(
      Effect.flatMap(RcMap.get(servers, language), (session) =>
        Effect.tapError(f(session), ({ reason }) => {
          const isGivenUp = reason._tag === "NotReady" || reason._tag === "NotInstalled"
          if (!isGivenUp || sessions.get(language.name) !== session) return Effect.void
          failures.set(language.name, reason)
          sessions.delete(language.name)
          return RcMap.invalidate(servers, language)
        }))
    )

  return LanguageServers.of({
    root,
    maxFileBytes,
    ask: Effect.fnUntraced(function*({ anew, path }, onStep, question) {
      const place = yield* root.file(path)
      const found = Languages.find(languages, place.name)
      if (found === undefined) {
        return yield* fail(new UnknownLanguage({ file: path, endings: Languages.endings(languages) }))
      }
      const { language, languageId } = found
      return yield* use(language, (session) => session.ask({ place, languageId, anew }, onStep, question))
    }),
    askAll: (language, onStep, question) => use(language, (session) => session.askAll(onStep, question)),
    started: Effect.sync(() => languages.filter(({ name }) => sessions.has(name))),
    refresh: Effect.suspend(() =>
      Effect.forEach(Array.from(sessions.values()), ({ refresh }) => refresh, { discard: true })
    ),
    status: Effect.forEach(languages, (language) => {
      const session = sessions.get(language.name)
      return session === undefined
        ? restingStatus(root.folder, language, failures.get(language.name))
        : Effect.map(session.condition, (condition) => runningStatus(root.folder, language, condition))
    })
  })
})

const base = ({ args, command, languages, name }: Languages.Language) => ({
  server: name,
  command: [command, ...args].join(" "),
  endings: Object.keys(languages)
})

const restingStatus = (
  folder: string,
  language: Languages.Language,
  failure: NotReady | NotInstalled | undefined
): Effect.Effect<Status> =>
  Effect.map(isInstalled(language.command, folder, language.env), (installed): Status => {
    if (!installed) return { ...base(language), state: "not installed", reason: language.install }
    return failure?._tag === "NotReady"
      ? { ...base(language), state: "crashed", reason: failure.detail }
      : { ...base(language), state: "not started" }
  })

const STATES = {
  Starting: "starting",
  Up: "running",
  Restarting: "restarting",
  GaveUp: "crashed",
  Stopped: "not started"
} as const

const runningStatus = (folder: string, language: Languages.Language, condition: Session.Condition): Status => {
  const { doing, health, info, openDocuments, restarts } = condition
  const version = [info?.name, info?.version].filter((text) => text !== undefined).join(" ")
  return {
    ...base(language),
    state: STATES[health._tag],
    ...(health._tag === "Up" ? { pid: health.pid } : {}),
    ...(version === "" ? {} : { version }),
    openDocuments,
    restarts,
    doing,
    ...("failure" in health ? { reason: Uris.relativeTo(folder, Supervisor.describe(health.failure)) } : {})
  }
}

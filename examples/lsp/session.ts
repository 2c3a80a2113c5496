/**
 * One language server: kept alive by a supervisor, initialized with each start, told of the files, and asked.
 *
 * A question is a read: when the server ends before it has answered, the next generation is asked once more.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Cancellation from "../../src/Cancellation.ts"
import * as Peer from "../../src/Peer.ts"
import type * as Process from "../../src/Process.ts"
import * as Progress from "../../src/Progress.ts"
import * as Supervisor from "../../src/Supervisor.ts"
import { TransportError } from "../../src/Transport.ts"
import type { FileError } from "../shared/FileError.ts"
import type { Place, Root } from "../shared/Root.ts"
import * as Answers from "./answers.ts"
import { clientCapabilities } from "./capabilities.ts"
import * as Diagnostics from "./diagnostics.ts"
import * as Documents from "./Documents.ts"
import * as Failures from "./failures.ts"
import type { Language } from "./languages.ts"
import { BadAnswer, fail, type LspError, NotSupported } from "./LspError.ts"
import * as Protocol from "./protocol.ts"
import * as SessionProtocol from "./sessionProtocol.ts"
import * as Uris from "./uris.ts"
import * as WatchedFiles from "./WatchedFiles.ts"
import * as Work from "./work.ts"

/** Restarts within a minute, after which a server that ends again and again is left alone. */
const MAX_RESTARTS = 3
/** Time for `shutdown`, in milliseconds: a signal leaves 1.5 seconds for everything. */
const SHUTDOWN_TIMEOUT = 400
/** Reports of progress let a request take longer, this many times its limit at most. */
const PATIENCE = 5

/**
 * Times and sizes of a session.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Time for a server to start and to answer `initialize`. @default "30 seconds" */
  readonly initializeTimeout?: Duration.Input | undefined
  /** Time for an answer; each report of progress begins it anew. @default "60 seconds" */
  readonly requestTimeout?: Duration.Input | undefined
  /** Time for fresh diagnostics. @default "20 seconds" */
  readonly diagnosticsTimeout?: Duration.Input | undefined
  /** Largest file, in bytes. @default 4194304 (4 MiB) */
  readonly maxFileBytes?: number | undefined
  /** Documents that are open at the same time. @default 50 */
  readonly maxOpen?: number | undefined
  /** Files that are compared with what they were. @default 20000 */
  readonly maxWatched?: number | undefined
}

/**
 * What a question has at hand.
 *
 * @category models
 * @since 0.1.0
 */
export interface Asking {
  /** The name of the server. */
  readonly server: string
  /** Calls the server, which must say that it can do it: `provider` is the name of its capability. */
  readonly call: (method: string, provider: string, params: object) => Effect.Effect<unknown, Failures.Failure>
  /** What the server says of one of its capabilities. */
  readonly capability: (name: string) => unknown
  /** What the server had been told of a file when the question was put, if it was open. */
  readonly documentAt: (path: string) => Documents.Document | undefined
  /** Whether the server has not been told of another text of a document since; a `version` must be one of this text. */
  readonly isCurrent: (document: Documents.Document, version?: number) => boolean
  /** Whether a file is the one that it was when the question was put, as far as that is known. */
  readonly isSame: (path: string) => Effect.Effect<boolean>
  readonly diagnostics: (document: Documents.Document) => Effect.Effect<Diagnostics.Report, Failures.Failure>
}

/**
 * A file that is asked about.
 *
 * @category models
 * @since 0.1.0
 */
export interface AskedFile {
  readonly place: Place
  /** What the server calls the language of the file. */
  readonly languageId: string
  /** Whether the text is sent again, also where it is open and has not changed. @default false */
  readonly anew?: boolean | undefined
}

/**
 * A question about a file: it changes nothing, so that it may be put again.
 *
 * @category models
 * @since 0.1.0
 */
export type Question<A> = (asking: Asking, document: Documents.Document) => Effect.Effect<A, Failures.Failure>

/**
 * Hears what a server is doing while it is asked.
 *
 * @category models
 * @since 0.1.0
 */
export type OnStep = (step: string) => Effect.Effect<void>

/**
 * How it stands with a server.
 *
 * @category models
 * @since 0.1.0
 */
export interface Condition {
  readonly health: Supervisor.Health
  readonly info: SessionProtocol.ServerInfo | undefined
  readonly restarts: number
  readonly openDocuments: number
  readonly doing: ReadonlyArray<string>
}

/**
 * A language server that can be asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface Session {
  /** Puts a question about a file, which is open and as it is on the disk by then. */
  readonly ask: <A>(file: AskedFile, onStep: OnStep, question: Question<A>) => Effect.Effect<A, LspError | FileError>
  /** Puts a question about the project. */
  readonly askAll: <A>(
    onStep: OnStep,
    question: (asking: Asking) => Effect.Effect<A, Failures.Failure>
  ) => Effect.Effect<A, LspError | FileError>
  /** Tells a server that is up what changed on the disk. */
  readonly refresh: Effect.Effect<void>
  readonly condition: Effect.Effect<Condition>
}

/**
 * Starts a language server in the background; it ends with the scope, in order.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*<E, R>(
  root: Root,
  language: Language,
  start: Effect.Effect<Process.Process["Service"], E, R>,
  options?: Options
): Effect.fn.Return<Session, never, Exclude<R, Scope.Scope> | FileSystem.FileSystem | Scope.Scope> {
  const initializeTimeout = options?.initializeTimeout ?? "30 seconds"
  const requestTimeout = options?.requestTimeout ?? "60 seconds"
  const work = Work.make()
  const watched = WatchedFiles.make(root.folder, options?.maxWatched ?? 20_000)
  const reports = Diagnostics.make({
    isBusy: () => work.current().length > 0,
    timeout: options?.diagnosticsTimeout
  })
  const documents = yield* Documents.make(root, {
    maxFileBytes: options?.maxFileBytes ?? 4_194_304,
    maxOpen: options?.maxOpen ?? 50,
    onClosed: reports.forget
  })
  // what is told of documents must not be told by two at the same time
  const telling = yield* Semaphore.make(1)
  const dynamic = new Map<string, string>()
  let info: SessionProtocol.ServerInfo | undefined

  const handshake = Effect.fnUntraced(function*(peer: Peer.Peer["Service"]) {
    info = undefined
    dynamic.clear()
    work.clear()
    reports.clear()
    yield* watched.reset
    const uri = Uris.fromPath(root.folder)
    const answer = yield* peer.call("initialize", {
      processId: process.pid,
      clientInfo: { name: "effect-stdio" },
      rootPath: root.folder,
      rootUri: uri,
      workspaceFolders: [{ uri, name: "project" }],
      capabilities: clientCapabilities,
      ...(language.initializationOptions === undefined
        ? {}
        : { initializationOptions: language.initializationOptions })
    }, { timeout: "Infinity" })
    const initialized = SessionProtocol.initialized(answer)
    if (initialized === undefined) {
      return yield* fail(
        new BadAnswer({ server: language.name, method: "initialize", detail: "it names no capabilities" })
      )
    }
    const encoding = initialized.capabilities["positionEncoding"] ?? "utf-16"
    if (encoding !== "utf-16") {
      const detail = "it counts characters in another way than UTF-16, the only one that was offered"
      return yield* fail(new BadAnswer({ server: language.name, method: "initialize", detail }))
    }
    yield* peer.notify("initialized", {})
    if (language.settings !== undefined) {
      yield* peer.notify("workspace/didChangeConfiguration", { settings: language.settings })
    }
    yield* documents.reopen(peer.notify)
    info = initialized
  }, telling.withPermits(1))

  const supervisor = yield* Supervisor.make(start, {
    peer: {
      cancellation: Cancellation.lsp,
      progress: Progress.lsp,
      callTimeout: requestTimeout,
      router: Answers.router({ language, root, work, reports, watched, dynamic })
    },
    handshake,
    handshakeTimeout: initializeTimeout,
    schedule: restarts,
    maxRestarts: MAX_RESTARTS
  })
  yield* Effect.addFinalizer(() => shutdown(supervisor))

  const refreshWith = Effect.fnUntraced(function*(peer: Peer.Peer["Service"]) {
    const changes = yield* watched.changes
    if (changes.length > 0) yield* peer.notify("workspace/didChangeWatchedFiles", { changes })
    yield* documents.refresh(peer.notify)
  })

  const call = (peer: Peer.Peer["Service"]): Asking["call"] => (method, provider, params) =>
    Effect.suspend((): Effect.Effect<unknown, Failures.Failure> => {
      if (!isOffered(info?.capabilities[provider]) && !Array.from(dynamic.values()).includes(method)) {
        return fail(new NotSupported({ server: language.name, method }))
      }
      const token = Symbol(method)
      let result: unknown
      return peer.follow(method, params, {
        timeout: requestTimeout,
        maxTime: Duration.times(Duration.fromInputUnsafe(requestTimeout), PATIENCE)
      }).pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (event._tag === "Result") result = event.value
            else work.report(token, event.value)
          })
        ),
        Effect.map(() => result),
        Effect.mapError((error) => Failures.ofMethod(language, root.folder, method, error)),
        Effect.ensuring(Effect.sync(() => work.end(token)))
      )
    })

  /** To be made before another question may tell the server of changes: it remembers how things stand. */
  const askingOf = (peer: Peer.Peer["Service"], opened = documents.snapshot()): Asking => ({
    server: language.name,
    call: call(peer),
    capability: (name) => info?.capabilities[name],
    documentAt: (path) => opened.get(path),
    isCurrent: ({ path, since }, version = since) => {
      const now = documents.at(path)
      return now !== undefined && now.since === since && version >= since && version <= now.version
    },
    isSame: watched.isSame(),
    diagnostics: (document) =>
      isOffered(info?.capabilities["diagnosticProvider"])
        ? pull(call(peer), language.name, document)
        : Effect.raceFirst(reports.settled(document.path, document.version, probe(peer, document)), closedOf(peer))
  })

  /** A question that costs little, to see whether the server has time for one. */
  const probe = (peer: Peer.Peer["Service"], { uri }: Documents.Document) =>
    isOffered(info?.capabilities["documentSymbolProvider"])
      ? Effect.ignore(call(peer)("textDocument/documentSymbol", "documentSymbolProvider", { textDocument: { uri } }))
      : Effect.void

  /** Runs a question on a generation, and on the next one when that ended meanwhile. */
  const run = <A>(
    onStep: OnStep,
    question: (peer: Peer.Peer["Service"]) => Effect.Effect<A, Failures.Failure, Scope.Scope>
  ) =>
    Effect.gen(function*() {
      const steps = yield* work.steps
      yield* Effect.forkScoped(Stream.runForEach(steps, onStep))
      return yield* supervisor.use((peer) => Effect.scoped(question(peer)), {
        method: "the question",
        timeout: "Infinity"
      }).pipe(Effect.retry({ times: 1, while: Failures.mayBeRepeated }))
    }).pipe(
      Effect.scoped,
      Effect.mapError((error) => Failures.toLspError(language, root.folder, error))
    )

  return {
    ask: ({ anew = false, languageId, place }, onStep, question) =>
      run(onStep, (peer) =>
        Effect.gen(function*() {
          const [asking, document] = yield* telling.withPermits(1)(Effect.gen(function*() {
            yield* refreshWith(peer)
            // not acquireRelease: what waits for a server that does not read must be interruptible
            const document = yield* Effect.tap(
              documents.open(peer.notify, place, languageId, { anew }),
              ({ path }) => Effect.addFinalizer(() => documents.release(path))
            )
            return [askingOf(peer), document] as const
          }))
          return yield* question(asking, document)
        })),
    askAll: (onStep, question) =>
      run(onStep, (peer) =>
        Effect.flatMap(
          telling.withPermits(1)(Effect.andThen(refreshWith(peer), Effect.sync(() => askingOf(peer)))),
          question
        )),
    refresh: Effect.suspend(() =>
      SubscriptionRef.getUnsafe(supervisor.health)._tag === "Up"
        ? Effect.ignore(supervisor.use((peer) => telling.withPermits(1)(refreshWith(peer))))
        : Effect.void
    ),
    condition: Effect.map(supervisor.generation, (generation) => ({
      health: SubscriptionRef.getUnsafe(supervisor.health),
      info,
      restarts: Math.max(0, generation - 1),
      openDocuments: documents.count(),
      doing: work.current()
    }))
  }
})

/** Fails when the connection ends: for waits that are no calls. */
const closedOf = (peer: Peer.Peer["Service"]): Effect.Effect<never, Peer.PeerError> =>
  Effect.flatMap(peer.closed, (reason) =>
    Effect.fail(
      new Peer.PeerError({
        reason: new Peer.Closed({ method: "textDocument/diagnostic", reason: new TransportError({ reason }) })
      })
    ))

/** Asks for the diagnostics, where a server wants to be asked: they are those of the text it has. */
const pull = Effect.fnUntraced(function*(call: Asking["call"], server: string, { uri }: Documents.Document) {
  const method = "textDocument/diagnostic"
  const report = Protocol.pulled(yield* call(method, "diagnosticProvider", { textDocument: { uri } }))
  return report === undefined
    ? yield* fail(new BadAnswer({ server, method, detail: "it is no full report" }))
    : { ...report, fresh: true }
})

/**
 * A server that cannot be started, or does not get ready, is left alone at once; one that ends is started again, a
 * little later each time.
 */
const restarts: Schedule.Schedule<unknown, Supervisor.Failure> = Schedule.fromStep(Effect.sync(() => {
  let delay = 0
  return (_now: number, failure: Supervisor.Failure) => {
    if (failure._tag === "NotStarted" || failure._tag === "HandshakeFailed") return Cause.done(undefined)
    const next = Duration.millis(delay)
    delay = delay === 0 ? 500 : delay * 2
    return Effect.succeed([undefined, next] as [undefined, Duration.Duration])
  }
}))

/**
 * The end as the protocol wants it; a server that does not take part is ended by its process. Finalizers cannot be
 * interrupted, and a time limit in what cannot be interrupted is waited for in full.
 */
const shutdown = (supervisor: Supervisor.Supervisor["Service"]) =>
  SubscriptionRef.getUnsafe(supervisor.health)._tag === "Up"
    ? Effect.interruptible(
      supervisor.use((peer) =>
        Effect.andThen(
          Effect.ignore(peer.call("shutdown", undefined, { timeout: SHUTDOWN_TIMEOUT })),
          peer.notify("exit")
        )
      ).pipe(Effect.timeoutOption(2 * SHUTDOWN_TIMEOUT), Effect.ignore)
    )
    : Effect.void

/** A capability is `true`, or an object with its options. */
const isOffered = (provider: unknown): boolean => provider !== undefined && provider !== null && provider !== false

/**
 * The client's end of an MCP connection: requests of McpClient and of the program, what the server asks and tells, and
 * which revision both speak.
 *
 * @since 0.1.0
 */
import type * as McpClient from "effect/ai/McpClient"
import * as McpClientError from "effect/ai/McpClientError"
import type * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import type * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Cancellation from "../../Cancellation.ts"
import type { McpConnection, Notification, Options, Source, Supervised, ToolEvent } from "../../McpConnection.ts"
import * as Peer from "../../Peer.ts"
import * as Progress from "../../Progress.ts"
import * as Router from "../../Router.ts"
import * as JsonRpc from "../../Schema.ts"
import * as Supervisor from "../../Supervisor.ts"
import { fail, fromJsonRpcError, fromPeerError } from "./mcpClientErrors.ts"
import * as ClientHooks from "./mcpClientHooks.ts"
import type { Session, Sessions } from "./mcpClientSessions.ts"
import { makeSessions, makeSupervisedSessions } from "./mcpClientSessions.ts"

type Connection = McpConnection["Service"]

const META = "io.modelcontextprotocol/"
const INITIALIZED = "notifications/initialized"
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
// Effect does not export it
const TransportTypeId = "~effect/ai/McpClient/Transport" as const
// how often a server may ask for more before it gives a result
const MAX_ROUNDS = 16
// as long as McpClient itself waits for a session
const OPENING_LIMIT = "60 seconds"
// milliseconds
const RELEASE_LIMIT = 1_000
const forever = { timeout: "Infinity" } as const

/** Who asks a server for a revision that both know. @internal */
export interface Asking {
  readonly clientInfo: Readonly<Record<string, unknown>>
  /** Time for a server to say that it knows 2026-07-28. */
  readonly discoverTimeout: Duration.Input
}

/** A revision, and what follows from it. */
interface Spoken {
  readonly protocol: McpProtocol.ProtocolAdapter
  readonly version: McpProtocol.ProtocolVersion
  readonly isStateless: boolean
  readonly capabilities: Readonly<Record<string, unknown>>
}

/** @internal */
export const makeConnection = Effect.fnUntraced(function*<R, E, R2>(
  source: Source<E, R2>,
  options: Omit<Options<R>, "protocol">,
  /** The revisions that may be spoken, the best first; the first one is, unless the server is asked. */
  protocols: Arr.NonEmptyReadonlyArray<McpProtocol.ProtocolAdapter>
): Effect.fn.Return<
  {
    readonly connection: Connection
    /** Asks the server which of the revisions to speak. */
    readonly negotiate: (asking: Asking) => Effect.Effect<void, McpClientError.McpClientError>
  },
  E,
  R | Exclude<R2, Scope.Scope> | Scope.Scope
> {
  const services = yield* Effect.context<R | Exclude<R2, Scope.Scope>>()
  const { capabilities: given, hooks = {}, logLevel, router: others = Router.empty, ...peerOptions } = options
  const hooksRouter = ClientHooks.hooksRouter(hooks, services)

  const speak = (protocol: McpProtocol.ProtocolAdapter): Spoken => ({
    protocol,
    version: protocol.protocolVersion,
    isStateless: protocol.runtime._tag === "Stateless",
    capabilities: ClientHooks.declaredCapabilities(protocol.protocolVersion, hooks, given)
  })
  const candidates = protocols.map(speak)
  let spoken = speak(protocols[0])

  // ---- opening a session

  /** The params of `initialize`, once McpClient has sent it. */
  let initialize: Params
  /** The revisions that the answer to `initialize` may name. */
  let acceptable: ReadonlyArray<Spoken> = [spoken]
  /** What the server said to `server/discover` before McpClient asked. */
  let discovered: unknown
  /** What each request of a revision without sessions carries, once McpClient has sent one. */
  let metadata: Params

  type OpenSession = Session<McpClientError.McpClientError>

  /** What is asked for again when a server has taken the place of another. */
  const watched = new Set<(session: OpenSession) => Effect.Effect<unknown>>()

  const lost = (session: OpenSession, error: Peer.PeerError) => {
    // seen before the transport's own word comes round
    if (error.reason._tag === "Closed" && error.reason.reason.reason._tag !== "FrameTooLarge") session.isOver = true
    return fromPeerError(error)
  }

  const call = (session: OpenSession, method: string, params: Params, callOptions: Peer.CallOptions) =>
    session.peer.call(method, params, callOptions).pipe(
      Effect.catchTag("PeerError", (error) => Effect.fail(lost(session, error))),
      Effect.catchDefect(unwritable)
    )

  const notify = (session: OpenSession, method: string, params?: Params) =>
    Effect.mapError(session.peer.notify(method, params), (error) => lost(session, error))

  const initialized = (session: OpenSession) =>
    Effect.suspend(() => {
      // exactly once, before the first request
      if (session.isInitialized) return Effect.void
      session.isInitialized = true
      return Effect.andThen(notify(session, INITIALIZED), askForLogs(session))
    })

  const askForLogs = ({ opened, peer }: OpenSession) =>
    logLevel === undefined || !advertises(opened, "logging")
      ? Effect.void
      : peer.call("logging/setLevel", { level: logLevel }).pipe(
        Effect.catch((error) => Effect.logWarning("the server does not take the log level", error))
      )

  /** Asks for a session, unless there is one: then its answer is known. */
  const open = (session: OpenSession, params: NonNullable<Params>) =>
    Effect.suspend(() =>
      session.opened === undefined
        ? Effect.tap(call(session, "initialize", params, forever), (result) => {
          const version = Predicate.isObject(result) ? result.protocolVersion : undefined
          // McpClient says what is wrong with a result that has none
          if (typeof version === "string") {
            const known = initialize === undefined ? acceptable.find((spoken) => spoken.version === version) : undefined
            if (known === undefined && version !== spoken.version) return Effect.fail(otherVersion(version, acceptable))
            spoken = known ?? spoken
          }
          session.opened = result
          initialize = { ...params, protocolVersion: spoken.version }
          return Effect.void
        })
        : Effect.succeed(session.opened)
    )

  /** Opens the session of a server that has taken the place of another, as that of the first was opened. */
  const openAgain = (session: OpenSession) =>
    Effect.suspend(() => {
      const opening = initialize === undefined
        ? Effect.void
        : Effect.andThen(open(session, initialize), initialized(session)).pipe(
          Effect.catchTag("JsonRpcError", (error) => Effect.fail(fromJsonRpcError(error))),
          Effect.timeoutOrElse({
            duration: OPENING_LIMIT,
            orElse: () => Effect.fail(fail(new McpClientError.TimeoutError({ operation: "initialization" })))
          })
        )
      return Effect.andThen(
        opening,
        Effect.suspend(() => Effect.forEach(watched, (begin) => begin(session), { discard: true }))
      )
    })

  const onRequest: Router.RequestHandler = (params, info) => {
    const handler = spoken.isStateless ? undefined : hooksRouter.requests.get(info.method)
    if (handler !== undefined) return handler(params, info)
    if (others.otherRequests !== undefined) return others.otherRequests(params, info)
    // "the client MUST NOT write JSON-RPC responses", says 2026-07-28
    return spoken.isStateless
      ? Effect.succeed(Router.noReply)
      : Effect.fail(JsonRpc.JsonRpcError.methodNotFound(info.method))
  }

  const peerSettings: Peer.Options = {
    onBadInput: "count",
    ownFraming: "line",
    ...peerOptions,
    router: Router.merge(others, Router.raw(onRequest)),
    cancellation: Cancellation.mcp,
    progress: Progress.mcp
  }

  // the services that a source needs, and a Scope: what the types cannot say of a generic R2
  const servicesIn = (scope: Scope.Scope) =>
    Context.add(services, Scope.Scope, scope) as Context.Context<R2 | Scope.Scope>

  const sessions: Sessions<E | Supervisor.SupervisorError, McpClientError.McpClientError> = isSupervised(source)
    ? yield* Effect.provideContext(
      makeSupervisedSessions(source.start, source.options, peerSettings, openAgain),
      servicesIn(yield* Effect.scope)
    )
    : yield* makeSessions(
      (scope) =>
        Effect.provideContext(
          Effect.flatMap(
            Effect.isEffect(source) ? source : Effect.succeed(source),
            (transport) => Peer.make(transport, peerSettings)
          ),
          servicesIn(scope)
        ),
      Effect.isEffect(source),
      openAgain
    )
  const current = Effect.mapError(sessions.current, cannotStart)

  /** The session to send something in, once it is open. */
  const ready = Effect.tap(current, (session) => Deferred.await(session.ready))

  // ---- requests

  /** Adds to the params what a client of this revision says of itself. */
  const withMetadata = (params: Params): Effect.Effect<Params, McpClientError.McpClientError> => {
    if (!spoken.isStateless) return Effect.succeed(params)
    return metadata === undefined
      ? Effect.fail(
        fail(new McpClientError.UnsupportedError({ description: "make the client of this connection first" }))
      )
      : Effect.succeed({ ...params, _meta: { ...metadata, ...metaOf(params) } })
  }

  /** The params of a request of McpClient, with what it does not declare itself. */
  const declared = (method: string, params: Params): Params => {
    if (spoken.isStateless) {
      const meta = metaOf(params)
      metadata = {
        ...meta,
        [`${META}clientCapabilities`]: spoken.capabilities,
        ...(logLevel === undefined ? {} : { [`${META}logLevel`]: logLevel })
      }
      return { ...params, _meta: metadata }
    }
    if (method !== "initialize") return params
    return { ...params, capabilities: { ...objectOf(params?.["capabilities"]), ...spoken.capabilities } }
  }

  /** The params that answer what the server asked for in its result; undefined where it did not, or nobody can. */
  const continued = (
    params: Params,
    result: unknown,
    round: number
  ): Effect.Effect<Params, McpClientError.McpClientError | JsonRpc.JsonRpcError> | undefined => {
    if (!spoken.isStateless || !Predicate.isObject(result) || result.resultType !== "input_required") return undefined
    const answers: Array<Effect.Effect<readonly [string, unknown], JsonRpc.JsonRpcError>> = []
    for (const [key, request] of Object.entries(objectOf(result.inputRequests))) {
      const answer = ClientHooks.answerInput(hooksRouter, key, request)
      if (answer === undefined) return undefined
      answers.push(Effect.map(answer, (value) => [key, value] as const))
    }
    if (round >= MAX_ROUNDS) {
      const description = `the server asked for input ${MAX_ROUNDS} times and gave no result`
      return Effect.fail(fail(new McpClientError.LimitError({ description })))
    }
    const { requestState } = result
    return Effect.map(Effect.all(answers, { concurrency: "unbounded" }), (entries) => ({
      ...params,
      ...(entries.length === 0 ? {} : { inputResponses: Object.fromEntries(entries) }),
      ...(requestState === undefined ? {} : { requestState })
    }))
  }

  const exchange = (
    method: string,
    params: Params,
    callOptions: Peer.CallOptions,
    asked: Params = params,
    round = 0
  ): Effect.Effect<unknown, McpClientError.McpClientError | JsonRpc.JsonRpcError> =>
    ready.pipe(
      Effect.flatMap((session) => call(session, method, asked, callOptions)),
      Effect.flatMap((result) => {
        const more = continued(params, result, round)
        return more === undefined
          ? Effect.succeed(result)
          : Effect.flatMap(more, (asked) => exchange(method, params, callOptions, asked, round + 1))
      })
    )

  const transport: McpClient.Transport = {
    [TransportTypeId]: TransportTypeId,
    get protocol() {
      // its type names the two newest only; the older ones work the same
      return spoken.protocol as McpClient.Transport["protocol"]
    },
    isCallable: () => true,
    request: ({ id, method, params }) =>
      Effect.suspend(() => {
        const asked = declared(method, params)
        if (method === "initialize" && asked !== undefined) {
          return Effect.flatMap(ready, (session) => open(session, asked))
        }
        if (method !== "server/discover" || discovered === undefined) return exchange(method, asked, forever)
        const known = discovered
        discovered = undefined
        return Effect.succeed(known)
      }).pipe(
        Effect.map((result): McpSchema.JsonRpcResponse => ({ jsonrpc: "2.0", id, result })),
        Effect.catchTag("JsonRpcError", ({ code, data, message }) =>
          Effect.succeed<McpSchema.JsonRpcResponse>({
            jsonrpc: "2.0",
            id,
            error: { code, message, ...(data === undefined ? {} : { data }) }
          }))
      ),
    notify: ({ method, params }) =>
      Effect.flatMap(
        ready,
        (session) => method === INITIALIZED ? initialized(session) : notify(session, method, params)
      )
  }

  // ---- which revision

  /** Whether the server knows a revision without sessions; its silence and all errors mean that it does not. */
  const knows = (stateless: Spoken, { clientInfo, discoverTimeout }: Asking) =>
    Effect.gen(function*() {
      const session = yield* ready
      const _meta = {
        [`${META}protocolVersion`]: stateless.version,
        [`${META}clientInfo`]: clientInfo,
        [`${META}clientCapabilities`]: stateless.capabilities
      }
      const answer = yield* Effect.result(
        call(session, "server/discover", { _meta }, { timeout: discoverTimeout })
      )
      if (Result.isFailure(answer)) {
        const error = answer.failure
        // some end when they are asked; what is no MCP server, or was ended by us, is not asked again
        if (error._tag === "McpClientError" && session.isOver && error.reason._tag !== "TransportError") {
          return yield* error
        }
        return false
      }
      if (!names(answer.success, "supportedVersions", stateless.version)) return false
      discovered = answer.success
      return true
    })

  const negotiate = (asking: Asking) =>
    Effect.gen(function*() {
      const stateless = candidates.find(({ isStateless }) => isStateless)
      if (stateless !== undefined && (yield* knows(stateless, asking))) {
        spoken = stateless
        return
      }
      acceptable = candidates.filter(({ isStateless }) => !isStateless)
      const [best] = acceptable
      if (best === undefined) {
        const description = `the server does not speak ${stateless?.version}`
        return yield* fail(new McpClientError.UnsupportedError({ description }))
      }
      spoken = best
      const { capabilities, version } = best
      const opening = Effect.flatMap(
        ready,
        (session) => open(session, { protocolVersion: version, capabilities, clientInfo: asking.clientInfo })
      )
      yield* Effect.catchTag(opening, "JsonRpcError", (error) => {
        // it was too slow to say so before
        if (stateless === undefined || !names(error.data, "supported", stateless.version)) {
          return Effect.fail(fromJsonRpcError(error))
        }
        spoken = stateless
        return Effect.void
      })
    })

  const request: Connection["request"] = (method, payload, callOptions) =>
    Schema.encodeUnknownEffect(Schema.toCodecJson(method.payloadSchema))(payload).pipe(
      Effect.mapError(invalidPayload),
      Effect.flatMap((encoded) => withMetadata(Predicate.isObject(encoded) ? encoded : undefined)),
      Effect.flatMap((params) => exchange(method._tag, params, callOptions ?? {})),
      Effect.catchTag("JsonRpcError", (error) => Effect.fail(fromJsonRpcError(error))),
      Effect.flatMap((result) =>
        Effect.mapError(Schema.decodeUnknownEffect(Schema.toCodecJson(method.successSchema))(result), invalidPayload)
      )
    )

  const callTool: Connection["callTool"] = (tool, followOptions) => {
    const limits = { timeout: followOptions?.timeout ?? 0, maxTime: followOptions?.maxTime ?? 0 }
    const follow = (params: Params, asked: Params, round: number): Stream.Stream<
      ToolEvent,
      McpClientError.McpClientError
    > =>
      ready.pipe(
        Effect.map((session) =>
          Stream.mapError(
            session.peer.follow("tools/call", asked, limits),
            (error) => error._tag === "PeerError" ? lost(session, error) : fromJsonRpcError(error)
          )
        ),
        Stream.unwrap,
        Stream.flatMap((event): Stream.Stream<ToolEvent, McpClientError.McpClientError> => {
          if (event._tag === "Progress") {
            const report = decodeReport(event.value)
            return Option.isSome(report) ? Stream.succeed({ _tag: "Progress", ...report.value }) : Stream.empty
          }
          const more = continued(params, event.value, round)
          if (more !== undefined) {
            return Stream.unwrap(
              more.pipe(
                Effect.map((asked) => follow(params, asked, round + 1)),
                Effect.catchTag("JsonRpcError", (error) => Effect.fail(fromJsonRpcError(error)))
              )
            )
          }
          return Stream.fromEffect(
            Effect.mapBoth(decodeToolResult(event.value), {
              onFailure: invalidPayload,
              onSuccess: (result): ToolEvent => ({ _tag: "Result", result })
            })
          )
        })
      )
    return Stream.unwrap(Effect.map(
      withMetadata({ name: tool.name, ...(tool.arguments === undefined ? {} : { arguments: tool.arguments }) }),
      (params) => follow(params, params, 0)
    ))
  }

  // ---- notifications

  const subscribe: Connection["subscribe"] = (subscribeOptions) =>
    Effect.map(
      sessions.subscribe({
        ...subscribeOptions,
        methods: subscribeOptions?.methods ?? [...notificationDecoders.keys()]
      }),
      (stream) =>
        stream.pipe(
          Stream.mapError(fromPeerError),
          Stream.mapEffect(({ method, params }) =>
            Effect.catch(
              Effect.asSome(decodeNotification(method, params)),
              () => Effect.as(Effect.logWarning(`a ${method} does not fit its schema`), Option.none<Notification>())
            )
          ),
          Stream.filterMap((notification) => Result.fromOption(notification, () => undefined))
        )
    )

  const acknowledging = Semaphore.makeUnsafe(1)

  /** Opens a subscription of 2026-07-28 and returns when the server has acknowledged it; it ends with the scope. */
  const listen = (notifications: object) =>
    acknowledging.withPermits(1)(Effect.gen(function*() {
      const scope = yield* Effect.scope
      const acknowledged = yield* sessions.subscribe({ methods: [ACKNOWLEDGED], policy: "dropOldest", capacity: 1 })
      const params = yield* withMetadata({ notifications })
      const answer = yield* Deferred.make<void, McpClientError.McpClientError>()
      const begin = (session: OpenSession) =>
        call(session, "subscriptions/listen", params, forever).pipe(
          Effect.catchTag("JsonRpcError", (error) => Effect.fail(fromJsonRpcError(error))),
          Effect.onExit((exit) => Deferred.done(answer, Exit.asVoid(exit))),
          Effect.forkIn(scope)
        )
      yield* Effect.flatMap(ready, begin)
      yield* watch(begin)
      const first = Effect.mapError(Stream.runHead(acknowledged), fromPeerError)
      yield* Effect.raceFirst(
        Effect.flatMap(first, (found) => Option.isSome(found) ? Effect.void : Deferred.await(answer)),
        Deferred.await(answer)
      )
    }))

  const watch = (begin: (session: OpenSession) => Effect.Effect<unknown>) =>
    Effect.acquireRelease(
      Effect.sync(() => watched.add(begin)),
      () => Effect.sync(() => watched.delete(begin))
    )

  /** Subscribes to a resource where there is a session. */
  const subscribeTo = (uri: string) =>
    Effect.gen(function*() {
      const scope = yield* Effect.scope
      yield* Effect.acquireRelease(
        request(McpSchema.Subscribe, { uri }),
        () =>
          Effect.suspend(() => {
            const last = sessions.lastUnsafe()
            // a server that is gone has forgotten it; none is started to be told
            return last === undefined || last.isOver
              ? Effect.void
              : Effect.ignore(last.peer.call("resources/unsubscribe", { uri }, { timeout: RELEASE_LIMIT }))
          })
      )
      yield* watch(({ peer }) => Effect.forkIn(Effect.ignore(peer.call("resources/subscribe", { uri })), scope))
    })

  const connection: Connection = {
    transport,
    subscribe,
    callTool,
    request,
    watch: ({ prompts, resources, tools, uris = [] }) =>
      spoken.isStateless
        ? listen({
          ...(tools === true ? { toolsListChanged: true } : {}),
          ...(prompts === true ? { promptsListChanged: true } : {}),
          ...(resources === true ? { resourcesListChanged: true } : {}),
          ...(uris.length === 0 ? {} : { resourceSubscriptions: uris })
        })
        // lists are told of by themselves
        : Effect.forEach(uris, subscribeTo, { discard: true }),
    rootsChanged: Effect.suspend(() =>
      spoken.isStateless
        ? Effect.void
        : Effect.flatMap(ready, (session) => notify(session, "notifications/roots/list_changed"))
    ),
    peer: Effect.map(current, ({ peer }) => peer)
  }
  return { connection, negotiate }
})

type Params = Readonly<Record<string, unknown>> | undefined

const objectOf = (value: unknown): Record<string, unknown> => Predicate.isObject(value) ? value : {}

const metaOf = (params: Params): Record<string, unknown> => objectOf(params?.["_meta"])

const advertises = (result: unknown, capability: string) =>
  Predicate.isObject(result) && Predicate.isObject(result.capabilities) &&
  result.capabilities[capability] !== undefined

const cannotStart = (cause: unknown) => {
  const description = Predicate.isError(cause) ? cause.message : "the MCP server cannot be started"
  const isStopped = cause instanceof Supervisor.SupervisorError && cause.reason._tag === "NotSent" &&
    cause.reason.state === "Stopped"
  return fail(
    isStopped
      ? new McpClientError.ClosedError({ description })
      : new McpClientError.TransportError({ description, cause })
  )
}

const isSupervised = <E, R>(source: Source<E, R>): source is Supervised<R> => "start" in source

/** Whether a list of versions in what the server said has this one. */
const names = (value: unknown, member: string, version: string) => {
  const versions = Predicate.isObject(value) ? value[member] : undefined
  return Array.isArray(versions) && versions.includes(version)
}

const otherVersion = (version: string, acceptable: ReadonlyArray<Spoken>) => {
  const ours = acceptable.map((spoken) => spoken.version).join(", ")
  const description = `the server speaks ${JSON.stringify(version.slice(0, 40))}, this client ${ours}`
  return fail(new McpClientError.UnsupportedError({ description }))
}

const unwritable = (defect: unknown) =>
  defect instanceof JsonRpc.NotSerializable
    ? Effect.fail(
      fail(new McpClientError.ValidationError({ description: "The params cannot be written as JSON", cause: defect }))
    )
    : Effect.die(defect)

const invalidPayload = (cause: unknown) =>
  fail(new McpClientError.ValidationError({ description: "Invalid MCP payload", cause }))

const decodeReport = Schema.decodeUnknownOption(
  Schema.Struct({
    progress: Schema.Finite,
    total: McpSchema.optional(Schema.Finite),
    message: McpSchema.optional(Schema.String)
  })
)

const decodeToolResult = Schema.decodeUnknownEffect(McpSchema.CallToolResult)

const notificationDecoders: ReadonlyMap<string, (params: unknown) => Effect.Effect<unknown, Schema.SchemaError>> =
  new Map(
    Array.from(
      McpSchema.ServerNotificationRpcs.requests,
      ([method, rpc]) => [method, Schema.decodeUnknownEffect(Schema.toCodecJson(rpc.payloadSchema))] as const
    )
  )

const decodeNotification = (method: string, params: unknown) =>
  Effect.map(
    notificationDecoders.get(method)?.(params ?? {}) ?? Effect.succeed({}),
    // the decoder under this method is that of its params
    (params) => ({ method, params }) as Notification
  )

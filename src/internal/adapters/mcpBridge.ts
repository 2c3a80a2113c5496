/**
 * Effect's McpServer as the raw handler of a peer: the RpcServer protocol it runs on, fed request by request.
 *
 * The peer keeps what exists once in this library (ids, duplicates, batches, cancellation, draining, limits); McpServer
 * keeps the meaning of MCP. In front of it stand guards for what a server over one pipe must refuse by itself.
 *
 * @since 0.1.0
 */
import * as McpSchema from "effect/ai/McpSchema"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as RpcMessage from "effect/rpc/RpcMessage"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Tracer from "effect/Tracer"
import * as Peer from "../../Peer.ts"
import * as Router from "../../Router.ts"
import { ErrorCode, JsonRpcError } from "../../Schema.ts"
import type { Id } from "../../Schema.ts"
import { shorten } from "../shorten.ts"
import { makeMcpProgress } from "./mcpProgress.ts"
import type { ToolLimits } from "./toolLimits.ts"
import { makeToolLimits } from "./toolLimits.ts"

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
const SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
const CLIENT_ID = 0
const LISTEN = "subscriptions/listen"
const PROGRESS = "notifications/progress"
const INTERACTIVE = new Set(["elicitation/create", "sampling/createMessage"])
const MAX_TURNS = 100

/** @internal */
export interface McpBridge {
  readonly protocol: RpcServer.Protocol["Service"]
  readonly router: Router.Router<Peer.Caller>
  readonly batch: () => "serve" | "refuse"
  readonly openEnded: (method: string) => boolean
  /** Ends what would never end by itself: open subscriptions get their closing result. */
  readonly onStopping: Effect.Effect<void>
  /** Says that the client is gone; only after the drain, since McpServer forgets the client's requests. */
  readonly end: Effect.Effect<void>
}

// what McpServer hands back for a request: RpcMessage.ExitEncoded, its errors in JSON-RPC form
const WireError = Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(Schema.Unknown)
})
const decodeWireError = Schema.decodeUnknownOption(WireError)
const decodeInitializeResult = Schema.decodeUnknownOption(Schema.Struct({ protocolVersion: Schema.String }))

interface Pending {
  readonly method: string
  readonly exit: Deferred.Deferred<RpcMessage.ExitEncoded<unknown, unknown>>
  /** Made when somebody waits for it. */
  ended: Latch.Latch | undefined
}

/** @internal */
export const makeMcpBridge = Effect.fnUntraced(
  function*(
    /** The revisions without sessions that are served. */
    statelessVersions: ReadonlyArray<string>,
    /** Whether a revision with sessions is served. */
    hasSessions: boolean,
    limitsOf: (tool: string) => ToolLimits | undefined,
    /** Returns when the logs so far are on their way. */
    logsDelivered: Effect.Effect<void>
  ): Effect.fn.Return<McpBridge, never, Scope.Scope> {
    const scope = yield* Effect.scope
    // part of the protocol for many clients; nothing is ever put into it here
    const disconnects = yield* Queue.make<number>()
    const pending = new Map<Id, Pending>()
    // requests of ours to the client, under the ids McpServer gave them
    const reverse = new Map<Id, Fiber.Fiber<void>>()
    const running = Latch.makeUnsafe(false)
    let write: (message: RpcMessage.FromClientEncoded) => Effect.Effect<void> = () => Effect.void
    let caller: Peer.Peer["Service"] | undefined
    let session: "none" | "initializing" | "ready" = "none"
    let negotiated: string | undefined
    let stopping = false
    const initialized = Latch.makeUnsafe(true)
    const turn = Semaphore.makeUnsafe(1)

    // ---- from McpServer

    const send = (message: RpcMessage.FromServerEncoded): Effect.Effect<void> => {
      switch (message._tag) {
        case "Exit": {
          const waiting = pending.get(message.requestId)
          return waiting === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(waiting.exit, message.exit))
        }
        case "Request":
          return message.isNotification === true ? sendNotification(message) : sendRequest(message)
        case "Defect":
          return Effect.logError("McpServer met a defect outside of any request", message.defect)
        default:
          return Effect.void
      }
    }

    const sendNotification = ({ payload, tag }: RpcMessage.RequestEncoded): Effect.Effect<void> => {
      const cancelled = tag === "notifications/cancelled" && Predicate.isObject(payload) ? payload.requestId : undefined
      if (typeof cancelled === "string" || typeof cancelled === "number") {
        const subscription = pending.get(cancelled)
        if (subscription?.method === LISTEN) {
          // McpServer ends it by itself, and sends no exit for it: the client gets the closing result
          return Effect.asVoid(
            Deferred.succeed(subscription.exit, { _tag: "Success", value: subscriptionEnded(cancelled) })
          )
        }
        const call = reverse.get(cancelled)
        // the peer knows the id it called under, and tells the client
        if (call !== undefined) return Effect.sync(() => call.interruptUnsafe())
      }
      const params = paramsOf(payload)
      return tag === PROGRESS && params !== undefined ? progress.report(params) : notify(tag, params)
    }

    const notify = (method: string, params: object | undefined) =>
      caller === undefined
        ? Effect.logDebug(`no client yet: ${method} is not sent`)
        : Effect.ignore(caller.notify(method, params))

    const progress = makeMcpProgress(yield* Clock.Clock, scope, (params) => notify(PROGRESS, params))
    const limited = makeToolLimits(limitsOf)

    const sendRequest = ({ id, payload, tag }: RpcMessage.RequestEncoded): Effect.Effect<void> => {
      const client = caller
      if (client === undefined) return Effect.logWarning(`no client yet: ${tag} is not sent`)
      // a person may take their time; a program may not
      const options: Peer.CallOptions = INTERACTIVE.has(tag) ? { timeout: "Infinity" } : {}
      return client.call(tag, paramsOf(payload), options).pipe(
        Effect.matchEffect({
          onSuccess: (value) => Effect.succeed({ _tag: "Success", value } as const),
          onFailure: (error) =>
            Effect.succeed({ _tag: "Failure", cause: [{ _tag: "Fail", error: wireError(error) }] } as const)
        }),
        // McpServer takes the answers to its own requests through the same door, as messages of a server
        Effect.flatMap((exit) => write({ _tag: "Exit", requestId: id, exit } as never)),
        Effect.forkIn(scope),
        Effect.map((fiber) => {
          reverse.set(id, fiber)
          fiber.addObserver(() => {
            if (reverse.get(id) === fiber) reverse.delete(id)
          })
        })
      )
    }

    const protocol = RpcServer.Protocol.of({
      run: (f) =>
        Effect.suspend(() => {
          write = (message) => f(CLIENT_ID, message)
          running.openUnsafe()
          return Effect.never
        }),
      disconnects,
      send: (_clientId, message) => send(message),
      end: () => Effect.void,
      clientIds: Effect.succeed(new Set([CLIENT_ID])),
      initialMessage: Effect.succeedNone,
      supportsAck: false,
      supportsTransferables: false,
      supportsSpanPropagation: true,
      supportsNotifications: true,
      codecFor: RpcSerialization.json.codecFor
    })

    // ---- to McpServer

    const forward = (method: string, params: unknown, id: Id): Effect.Effect<unknown, JsonRpcError> =>
      Effect.contextWith((context: Context.Context<never>) => {
        const ending = pending.get(id)
        // one that was answered before its time may still be ending under this id
        if (ending !== undefined) return Effect.andThen(untilEnded(ending), forward(method, params, id))
        if (stopping && method === LISTEN) return Effect.succeed(subscriptionEnded(id))
        const span = Context.getOrUndefined(context, Tracer.ParentSpan)
        const exit = Deferred.makeUnsafe<RpcMessage.ExitEncoded<unknown, unknown>>()
        const sent = admitted({
          _tag: "Request",
          id,
          tag: method,
          payload: params ?? null,
          headers: [],
          ...(span === undefined ? {} : { traceId: span.traceId, spanId: span.spanId, sampled: span.sampled })
        }, exit)
        return Effect.suspend(() => {
          pending.set(id, { method, exit, ended: undefined })
          progress.begin(id, params)
          return Effect.andThen(sent, Deferred.await(exit))
        }).pipe(
          // the id is busy until McpServer's fiber has ended; its exit is dropped
          Effect.onInterrupt(() => Effect.andThen(write({ _tag: "Interrupt", requestId: id }), Deferred.await(exit))),
          Effect.flatMap((exit) => Effect.andThen(progress.end(id), Effect.andThen(logsDelivered, settle(exit)))),
          Effect.ensuring(Effect.sync(() => forget(id)))
        )
      })

    const untilEnded = (request: Pending) => (request.ended ??= Latch.makeUnsafe(false)).await

    const forget = (id: Id) => {
      const ended = pending.get(id)?.ended
      pending.delete(id)
      progress.forget(id)
      ended?.openUnsafe()
    }

    /** Hands a request to McpServer, which refuses an id for a few turns after it has answered under it. */
    const admitted = (
      request: RpcMessage.RequestEncoded,
      exit: Deferred.Deferred<RpcMessage.ExitEncoded<unknown, unknown>>,
      turns = MAX_TURNS
    ): Effect.Effect<void> =>
      Effect.catchCause(write(request), (cause) =>
        !Cause.hasInterruptsOnly(cause)
          ? Effect.failCause(cause)
          : turns > 0
          ? Effect.andThen(Effect.yieldNow, Effect.suspend(() => admitted(request, exit, turns - 1)))
          : Effect.asVoid(Deferred.succeed(exit, { _tag: "Failure", cause: [] })))

    /** A request that opens nothing and closes nothing, within the limits of its tool. */
    const serve = (method: string, params: unknown, id: Id, resultType: object) =>
      method === "tools/call"
        ? limited(params, forward(method, params, id), (text) => ({
          ...resultType,
          content: [{ type: "text", text }],
          isError: true
        }))
        : forward(method, params, id)

    // one after the other: several may wait for one that fails
    const initialize = (params: unknown, id: Id) =>
      turn.withPermits(1)(Effect.gen(function*() {
        if (session === "ready") return yield* invalidRequest("this connection is initialized already")
        session = "initializing"
        initialized.closeUnsafe()
        return yield* forward("initialize", params, id).pipe(
          Effect.tap((result) =>
            Effect.sync(() => {
              session = "ready"
              negotiated = Option.getOrUndefined(decodeInitializeResult(result))?.protocolVersion
            })
          ),
          Effect.ensuring(Effect.sync(() => {
            if (session === "initializing") session = "none"
            initialized.openUnsafe()
          }))
        )
      }))

    const unsupportedVersion = (requested: string) =>
      new JsonRpcError({
        code: McpSchema.UNSUPPORTED_PROTOCOL_VERSION_ERROR_CODE,
        message: `Unsupported protocol version: ${shorten(requested)}`,
        data: { supported: statelessVersions, requested }
      })

    const onRequest: Router.RequestHandler<Peer.Caller> = (params, { id, method }) => {
      if (Array.isArray(params)) return Effect.fail(JsonRpcError.invalidParams("MCP params are an object"))
      const claim = versionClaim(params)
      // asks whether we are there, which no McpServer has to be asked for
      if (method === "ping" && hasSessions && !claim.present) return pong
      return Effect.flatMap(Peer.Caller, (client) => {
        caller = client
        return running.isOpen() ? route(params, claim, id, method) : Effect.andThen(
          running.await,
          Effect.suspend(() => route(params, claim, id, method))
        )
      })
    }

    const route = (
      params: unknown,
      claim: VersionClaim,
      id: Id,
      method: string
    ): Effect.Effect<unknown, JsonRpcError> => {
      if (statelessVersions.length === 0 && (method === "server/discover" || method === LISTEN)) {
        // a client that hears of no newer revision goes on with initialize
        return Effect.fail(JsonRpcError.methodNotFound(method))
      }
      if (claim.present) return serveStateless(params, claim.version, id, method)
      if (method === "initialize") {
        const requested = Predicate.isObject(params) ? params.protocolVersion : undefined
        return hasSessions ? initialize(params, id) : Effect.fail(unsupportedVersion(String(requested)))
      }
      if (!hasSessions || method === "server/discover" || method === LISTEN) {
        return Effect.fail(JsonRpcError.invalidParams(`${method} needs ${VERSION_KEY} in _meta`))
      }
      return initialized.isOpen() ? serveInSession(params, id, method) : Effect.andThen(
        initialized.await,
        Effect.suspend(() => serveInSession(params, id, method))
      )
    }

    const serveStateless = (params: unknown, version: unknown, id: Id, method: string) => {
      if (typeof version !== "string") return Effect.fail(JsonRpcError.invalidParams(`${VERSION_KEY} must be a string`))
      if (!statelessVersions.includes(version)) return Effect.fail(unsupportedVersion(version))
      const result = serve(method, params, id, { resultType: "complete" })
      // McpServer names every revision it serves; a claim of one that needs a session is refused above
      return method === "server/discover"
        ? Effect.map(
          result,
          (value) => Predicate.isObject(value) ? { ...value, supportedVersions: statelessVersions } : value
        )
        : result
    }

    const serveInSession = (params: unknown, id: Id, method: string) =>
      session === "none"
        ? Effect.fail(invalidRequest("send initialize first"))
        : serve(method, params, id, {})

    const onNotification: Router.NotificationHandler<Peer.Caller> = (params, method) =>
      Effect.gen(function*() {
        caller = yield* Peer.Caller
        yield* running.await
        yield* initialized.await
        yield* write({
          _tag: "Request",
          id: "",
          tag: method,
          payload: params ?? null,
          headers: [],
          isNotification: true
        })
      })

    return {
      protocol,
      router: Router.raw(onRequest, onNotification),
      openEnded: (method) => method === LISTEN,
      batch: () => negotiated === "2025-03-26" ? "serve" : "refuse",
      onStopping: Effect.suspend(() => {
        stopping = true
        const open = [...pending].filter(([, { method }]) => method === LISTEN)
        return Effect.forEach(open, ([id, { exit }]) =>
          Effect.andThen(
            Deferred.succeed(exit, { _tag: "Success", value: subscriptionEnded(id) }),
            write({ _tag: "Interrupt", requestId: id })
          ), { discard: true })
      }),
      end: Effect.suspend(() => write(RpcMessage.constEof))
    }
  }
)

const subscriptionEnded = (id: Id) => ({ resultType: "complete", _meta: { [SUBSCRIPTION_KEY]: id } })

const settle = (exit: RpcMessage.ExitEncoded<unknown, unknown>): Effect.Effect<unknown, JsonRpcError> => {
  if (exit._tag === "Success") return Effect.succeed(exit.value)
  const failure = exit.cause.find((reason) => reason._tag === "Fail")
  const error = Option.getOrUndefined(decodeWireError(failure?.error))
  return Effect.fail(error === undefined ? JsonRpcError.internal() : new JsonRpcError(error))
}

const wireError = (error: JsonRpcError | Peer.PeerError) =>
  error._tag === "JsonRpcError"
    ? { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) }
    : { code: ErrorCode.InternalError, message: error.message }

const invalidRequest = (detail: string) =>
  new JsonRpcError({ code: ErrorCode.InvalidRequest, message: `Invalid request: ${detail}` })

const pong = Effect.succeed({})

interface VersionClaim {
  readonly present: boolean
  readonly version?: unknown
}

const noClaim: VersionClaim = { present: false }

const versionClaim = (params: unknown): VersionClaim => {
  const meta = Predicate.isObject(params) ? params._meta : undefined
  return Predicate.isObject(meta) && VERSION_KEY in meta ? { present: true, version: meta[VERSION_KEY] } : noClaim
}

const paramsOf = (payload: unknown): object | undefined => Predicate.isObject(payload) ? payload : undefined

/**
 * MCP servers on this runtime: Effect's own McpServer (tools, resources, prompts, all five revisions of the protocol)
 * behind a Peer, on one pipe.
 *
 * Nothing of MCP is written anew. Tools and the rest are registered as with `McpServer.layerStdio`; what changes is
 * everything around them: framing, limits, cancellation, draining, and an end that comes.
 *
 * @module
 * @since 0.1.0
 */
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import type * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Scope from "effect/Scope"
import type * as Stdio from "effect/Stdio"
import * as Cancellation from "./Cancellation.ts"
import { makeClientLogger } from "./internal/adapters/clientLogger.ts"
import { makeMcpBridge } from "./internal/adapters/mcpBridge.ts"
import { own, within } from "./internal/bounded.ts"
import * as Server from "./Server.ts"
import * as StdioTransport from "./StdioTransport.ts"
import type * as Transport from "./Transport.ts"
import * as Watchdog from "./Watchdog.ts"

/**
 * Options of {@link run}: what the server is, what it offers, and how it runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<RA = never, RE = never, RR = never>
  extends Omit<Server.Options, "router" | "cancellation" | "batch" | "profile" | "openEnded" | "onStopping">
{
  readonly name: string
  readonly version: string
  /** What a model should know before it uses the server. @default absent */
  readonly instructions?: string | undefined
  readonly description?: string | undefined
  readonly websiteUrl?: string | undefined
  readonly icons?: Parameters<typeof McpServer.run>[0]["icons"]
  readonly extensions?: Parameters<typeof McpServer.run>[0]["extensions"]
  readonly cacheHints?: McpServer.CacheHints | undefined
  /** Revisions served. A client that asks for another one is offered the first that has sessions. @default all five, the newest first */
  readonly protocols?: Arr.NonEmptyReadonlyArray<McpProtocol.ProtocolAdapter> | undefined
  /** Limits of a tool, by its name. @default none */
  readonly toolLimits?: ((tool: string) => ToolLimits | undefined) | undefined
  /** Whether what a handler logs goes to its client too, as `notifications/message`, from the level the client asked for. Causes are left out. @default false */
  readonly logToClient?: boolean | undefined
  /** Layers that register tools, resources and prompts (`McpServer.toolkit` and its kin). @default nothing */
  readonly registrations?: Layer.Layer<RA, RE, RR> | undefined
}

/**
 * Limits of one tool.
 *
 * **Details**
 *
 * A call beyond `concurrency` waits for its turn, which counts towards its `timeout`. A call whose time is over is
 * interrupted, and answered with a tool error that says so once it has ended.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolLimits {
  /** Time for a call; zero or infinity: no limit. @default no limit */
  readonly timeout?: Duration.Input | undefined
  /** Calls of the tool that run at the same time. @default no limit */
  readonly concurrency?: number | undefined
}

/**
 * Tells the client how far a request has come.
 *
 * @category models
 * @since 0.1.0
 */
export interface Progress {
  /** Says that `progress` of `total` is done; no more than before is not sent, nor anything after the reply. */
  readonly report: (
    progress: number,
    options?: { readonly total?: number | undefined; readonly message?: string | undefined }
  ) => Effect.Effect<void>
}

/**
 * The progress of the request that a handler serves. Does nothing where the client did not ask for it.
 *
 * **Details**
 *
 * Reports beyond twenty at once and twenty a second are held back for a newer one; the last is sent before the reply.
 *
 * **Example** (A tool that counts)
 *
 * ```ts
 * import * as Mcp from "effect-stdio/Mcp"
 * import * as Effect from "effect/Effect"
 *
 * const count = Effect.gen(function*() {
 *   const progress = yield* Mcp.progress
 *   for (let step = 1; step <= 3; step++) yield* progress.report(step, { total: 3 })
 * })
 * ```
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress
 * @category constructors
 * @since 0.1.0
 */
export const progress: Effect.Effect<Progress, never, McpServer.McpServer> = Effect.gen(function*() {
  const server = yield* McpServer.McpServer
  // a session's context holds the metadata of its initialize, and its client that of the request
  const session = Option.getOrUndefined(yield* Effect.serviceOption(McpSchema.McpServerClient))
  const request = Option.getOrUndefined(yield* Effect.serviceOption(McpSchema.McpRequestContext))
  const metadata: unknown = session === undefined ? request?.requestMetadata : session.requestMetadata
  const progressToken = Predicate.isObject(metadata) ? metadata.progressToken : undefined
  if (typeof progressToken !== "string" && typeof progressToken !== "number") return silent
  const reporting: Progress = {
    report: (progress, { message, total } = {}) =>
      Effect.ignoreCause(server.notifications["notifications/progress"]({
        progressToken,
        progress,
        ...(total === undefined ? {} : { total }),
        ...(message === undefined ? {} : { message })
      }))
  }
  return reporting
})

const silent: Progress = { report: () => Effect.void }

// milliseconds
const RELEASE_LIMIT = 100

/**
 * All revisions of the protocol, the newest first.
 *
 * @category models
 * @since 0.1.0
 */
export const protocols: Arr.NonEmptyReadonlyArray<McpProtocol.ProtocolAdapter> = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
]

/**
 * Serves MCP on the current Transport until something ends the server, and returns why.
 *
 * **Details**
 *
 * Each message is served in the revision it belongs to: one with a protocol version in its `_meta` statelessly
 * (2026-07-28), all others in the session that `initialize` opened. Refused before they reach McpServer: a version that
 * is not served (-32022), `server/discover` and `subscriptions/listen` without a version (-32602), a second `initialize`
 * and requests before the first one, `ping` excepted (-32600), and batches, except in a session of 2025-03-26. Requests
 * that arrive while `initialize` runs wait for it.
 *
 * **Example** (A server with one tool)
 *
 * ```ts
 * import * as Mcp from "effect-stdio/Mcp"
 * import * as StdioRuntime from "effect-stdio/StdioRuntime"
 * import * as McpServer from "effect/ai/McpServer"
 * import * as Tool from "effect/ai/Tool"
 * import * as Toolkit from "effect/ai/Toolkit"
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as Schema from "effect/Schema"
 *
 * const Add = Tool.make("add", {
 *   description: "Add two numbers",
 *   parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
 *   success: Schema.Struct({ sum: Schema.Finite })
 * })
 * const Tools = Toolkit.make(Add)
 * const Handlers = Tools.toLayer({ add: ({ a, b }) => Effect.succeed({ sum: a + b }) })
 *
 * StdioRuntime.runMain(
 *   Mcp.run({ name: "adder", version: "1.0.0", registrations: McpServer.toolkit(Tools).pipe(Layer.provide(Handlers)) }),
 *   { layer: Mcp.layerStdio() }
 * )
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <RA = never, RE = never, RR = never>(
  options: Options<RA, RE, RR>
): Effect.Effect<
  Server.StopReason,
  Transport.TransportError | Cause.IllegalArgumentError | RE,
  RegistrationServices<RR> | Transport.Transport | Watchdog.Watchdog
> =>
  Effect.scoped(Effect.gen(function*() {
    const served = options.protocols ?? protocols
    const stateless = served.flatMap((protocol) =>
      protocol.runtime._tag === "Stateless" ? [protocol.protocolVersion] : []
    )
    let server: McpServer.McpServer["Service"] | undefined
    const client = makeClientLogger(options.name, () => server)
    const hasSessions = served.some((protocol) => protocol.runtime._tag === "Stateful")
    const bridge = yield* makeMcpBridge(
      stateless,
      hasSessions,
      options.toolLimits ?? (() => undefined),
      client.delivered
    )
    const layer: Layer.Any = McpServer.layer({ ...options, protocols: served }).pipe(
      Layer.provide(Layer.succeed(RpcServer.Protocol, bridge.protocol))
    )
    const loggers = options.logToClient === true
      ? Logger.layer([client.logger], { mergeWithExisting: true })
      : Layer.empty
    const serve = Effect.gen(function*() {
      // what is left after the protocol and what each request brings along, which the types cannot say for a generic RR
      // a tool that cannot be interrupted must not hold the end
      const scope = yield* Effect.acquireRelease(
        Scope.make(),
        (scope, exit) => own(within(RELEASE_LIMIT, Scope.close(scope, exit)))
      )
      const services = yield* Layer.buildWithScope(
        layer as Layer.Layer<McpServer.McpServer, Cause.IllegalArgumentError | RE, RegistrationServices<RR>>,
        scope
      )
      server = Context.get(services, McpServer.McpServer)
      return yield* Effect.ensuring(
        Server.run({
          ...options,
          router: bridge.router,
          batch: bridge.batch,
          openEnded: bridge.openEnded,
          cancellation: Cancellation.mcp,
          onStopping: bridge.onStopping
        }),
        bridge.end
      )
    })
    // handlers run with the loggers of the fiber that brings their request
    return yield* Effect.provide(serve, loggers)
  }))

/**
 * The services that registrations need from outside: all but the server itself and what each request brings along.
 *
 * @category utility types
 * @since 0.1.0
 */
export type RegistrationServices<RR> =
  | Exclude<McpServer.McpRequest.Without<RR>, McpServer.McpServer>
  | Exclude<
    McpServer.McpRequest.Only<"Requires", RR>,
    | McpServer.McpServer
    | McpSchema.McpServerClient
    | McpSchema.McpRequestContext
    | Server.HandlerServices
  >

/**
 * Layer with the connection and the watchdog an MCP server on standard input and output needs. The idle watch is off
 * unless asked for: hosts do not start a server again that left.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStdio = (
  options?: Transport.Options & Watchdog.Options
): Layer.Layer<Transport.Transport | Watchdog.Watchdog, never, Stdio.Stdio> =>
  Layer.merge(StdioTransport.layer(options), Watchdog.layer({ ...options, idle: options?.idle ?? 0 }))

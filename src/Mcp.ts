/**
 * MCP servers on this runtime: Effect's own McpServer (tools, resources, prompts, all five revisions of the protocol)
 * behind a Peer, on one pipe.
 *
 * Nothing of MCP is written anew. Tools and the rest are registered as with `McpServer.layerStdio`; what changes is
 * everything around them: framing, limits, cancellation, draining, and an end that comes.
 *
 * @since 0.1.0
 */
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpServer from "effect/ai/McpServer"
import type * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RpcServer from "effect/rpc/RpcServer"
import type * as Stdio from "effect/Stdio"
import * as Cancellation from "./Cancellation.ts"
import { makeMcpBridge } from "./internal/adapters/mcpBridge.ts"
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
  /** Layers that register tools, resources and prompts (`McpServer.toolkit` and its kin). @default nothing */
  readonly registrations?: Layer.Layer<RA, RE, RR> | undefined
}

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
    const bridge = yield* makeMcpBridge(stateless)
    const server: Layer.Any = McpServer.layer({ ...options, protocols: served }).pipe(
      Layer.provide(Layer.succeed(RpcServer.Protocol, bridge.protocol))
    )
    // what is left after the protocol and what each request brings along, which the types cannot say for a generic RR
    yield* Layer.build(server as Layer.Layer<never, Cause.IllegalArgumentError | RE, RegistrationServices<RR>>)
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
  }))

/**
 * The services that registrations need from outside: all but the server itself and what each request brings along.
 *
 * @category utility types
 * @since 0.1.0
 */
export type RegistrationServices<RR> = Exclude<McpServer.McpRequest.Without<RR>, McpServer.McpServer>

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

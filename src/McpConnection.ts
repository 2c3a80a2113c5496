/**
 * A connection to an MCP server: what Effect's McpClient speaks through, and what it has no function for.
 *
 * Effect's client keeps the meaning of MCP. Its transport is a Peer here, so that junk on the server's standard output
 * is skipped, an error says how the process ended, and a server that ended can be started again; and what the server
 * asks and tells by itself reaches the program: sampling, elicitation, roots, logs, progress, changes.
 *
 * @module
 * @since 0.1.0
 */
import * as McpClient from "effect/ai/McpClient"
import * as McpClientError from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import type * as Arr from "effect/Array"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Rpc from "effect/rpc/Rpc"
import type * as RpcGroup from "effect/rpc/RpcGroup"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { makeConnection } from "./internal/adapters/mcpClientConnection.ts"
import type * as ClientHooks from "./internal/adapters/mcpClientHooks.ts"
import type * as Peer from "./Peer.ts"
import type * as Process from "./Process.ts"
import type * as Router from "./Router.ts"
import type * as JsonRpc from "./Schema.ts"
import type * as Supervisor from "./Supervisor.ts"
import type * as Transport from "./Transport.ts"

// -----------------------------------------------------------------------------
// models and options
// -----------------------------------------------------------------------------

/**
 * What the program answers when the server asks. A hook that is given is declared as a capability of the client; one that
 * is not given is refused.
 *
 * @category models
 * @since 0.1.0
 */
export interface Hooks<out R = never> {
  /** Lets a model say something: `sampling/createMessage`. */
  readonly createMessage?:
    | ((
      request: typeof McpSchema.CreateMessage.payloadSchema.Type
    ) => Effect.Effect<CreateMessageResult, JsonRpc.JsonRpcError, R>)
    | undefined
  /** Asks the user to fill in a form: `elicitation/create`. */
  readonly elicit?:
    | ((request: McpSchema.ElicitRequestFormParams) => Effect.Effect<ElicitResult, JsonRpc.JsonRpcError, R>)
    | undefined
  /** Asks the user to open an address: `elicitation/create` in its mode `url`. In 2026-07-28 `elicitationId` is the key of the request. */
  readonly elicitUrl?:
    | ((request: McpSchema.ElicitRequestURLParams) => Effect.Effect<ElicitResult, JsonRpc.JsonRpcError, R>)
    | undefined
  /** The folders the server may work in: `roots/list`. See `rootsChanged`. */
  readonly listRoots?: Effect.Effect<ReadonlyArray<Root>, JsonRpc.JsonRpcError, R> | undefined
}

/**
 * What a model said: the fields of `McpSchema.CreateMessageResult`.
 *
 * @category models
 * @since 0.1.0
 */
export type CreateMessageResult = ClientHooks.CreateMessageResult

/**
 * What a user answered: accepted, with `content` where there was a form, declined, or cancelled.
 *
 * @category models
 * @since 0.1.0
 */
export type ElicitResult = ClientHooks.ElicitResult

/**
 * A folder the server may work in: the fields of `McpSchema.Root`.
 *
 * @category models
 * @since 0.1.0
 */
export type Root = ClientHooks.Root

/**
 * Capabilities of a client, as they are written.
 *
 * @category models
 * @since 0.1.0
 */
export type Capabilities = typeof McpSchema.ClientCapabilities.Encoded

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never>
  extends Omit<Peer.Options, "router" | "cancellation" | "progress" | "batch" | "profile" | "openEnded">
{
  /** The revision to speak, one of all five in `effect/ai/McpProtocol`. Effect's client accepts no other answer. */
  readonly protocol: McpProtocol.ProtocolAdapter
  /** What is answered when the server asks. @default nothing but `ping` */
  readonly hooks?: Hooks<R> | undefined
  /** Capabilities to declare beside those that follow from the hooks, such as `{ sampling: { tools: {} } }`. @default none */
  readonly capabilities?: Capabilities | undefined
  /** Which logs the server sends: asked for with `logging/setLevel` where it has that, and in each request of 2026-07-28. @default not asked for */
  readonly logLevel?: McpSchema.LoggingLevel | undefined
  /** Serves what is no part of MCP. @default Router.empty */
  readonly router?: Router.Router | undefined
}

/**
 * Options of {@link connect}: those of {@link make}, and who the client is, as `McpClient.make` takes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ConnectOptions<out R = never> extends Omit<Options<R>, "protocol"> {
  readonly name: string
  readonly version: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly websiteUrl?: string | undefined
  readonly icons?: ReadonlyArray<McpSchema.Icon> | undefined
  /** Revisions to speak, the best first. @default all five, the newest first */
  readonly protocols?: Arr.NonEmptyReadonlyArray<McpProtocol.ProtocolAdapter> | undefined
  /** Time for a server to say that it knows 2026-07-28, its start included. @default "10 seconds" */
  readonly discoverTimeout?: Duration.Input | undefined
  /** Time for a session to open; McpClient's own for lists of tools and the like, too. @default "60 seconds" */
  readonly timeout?: Duration.Input | undefined
}

/**
 * A connection, and Effect's client of it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Connected {
  readonly connection: McpConnection["Service"]
  readonly client: McpClient.McpClient
}

/**
 * Where the server is: behind a transport, behind those that an effect makes, each when the one before has ended and
 * something is to be sent, or in a process that a supervisor keeps alive.
 *
 * @category models
 * @since 0.1.0
 */
export type Source<E = never, R = never> =
  | Transport.Transport["Service"]
  | Effect.Effect<Transport.Transport["Service"], E, R>
  | Supervised<R>

/**
 * A process that a supervisor keeps alive, as {@link supervised} makes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Supervised<out R = never> {
  readonly start: Effect.Effect<Process.Process["Service"], unknown, R>
  readonly options: Omit<Supervisor.Options<never, never, R>, "peer" | "handshake"> | undefined
}

/**
 * A notification of the server, as `McpSchema.ServerNotificationRpcs` has it.
 *
 * @category models
 * @since 0.1.0
 */
export type Notification = NotificationOf<RpcGroup.Rpcs<typeof McpSchema.ServerNotificationRpcs>>

type NotificationOf<R> = R extends { readonly _tag: infer Method }
  ? { readonly method: Method; readonly params: NonNullable<Rpc.Payload<R>> }
  : never

/**
 * What is heard of a tool that was called with `callTool`: how far it is, and last its result.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolEvent =
  | {
    readonly _tag: "Progress"
    readonly progress: number
    readonly total?: number | undefined
    readonly message?: string | undefined
  }
  | { readonly _tag: "Result"; readonly result: McpSchema.CallToolResult }

/**
 * Changes to hear of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Changes {
  /** The list of tools. @default false */
  readonly tools?: boolean | undefined
  /** The list of prompts. @default false */
  readonly prompts?: boolean | undefined
  /** The list of resources. @default false */
  readonly resources?: boolean | undefined
  /** Resources, by their URIs. @default none */
  readonly uris?: ReadonlyArray<string> | undefined
}

/**
 * A method of MCP, as the classes of `effect/ai/McpSchema` describe it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Method<P extends Schema.Constraint, S extends Schema.Constraint> {
  readonly _tag: string
  readonly payloadSchema: P
  readonly successSchema: S
}

// -----------------------------------------------------------------------------
// services
// -----------------------------------------------------------------------------

/**
 * A connection to an MCP server, as a value and as the tag of programs that have exactly one.
 *
 * @category services
 * @since 0.1.0
 */
export class McpConnection extends Context.Service<McpConnection, {
  /** What `McpClient.make` of Effect asks for. */
  readonly transport: McpClient.Transport
  /** Hears of what the server tells from now on, in its order: `Peer.subscribe`, decoded. What does not fit its schema is logged and left out. */
  readonly subscribe: (
    options?: Omit<Peer.SubscribeOptions, "methods"> & {
      /** Methods of the notifications to hear of. @default all of MCP */
      readonly methods?: ReadonlyArray<Notification["method"]> | undefined
    }
  ) => Effect.Effect<Stream.Stream<Notification, McpClientError.McpClientError>, never, Scope.Scope>
  /** Calls a tool and asks for its progress. Ending the stream early cancels the call. Without the options there is no deadline. */
  readonly callTool: (
    call: { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> | undefined },
    options?: {
      /** Time without a report; each report begins it anew. @default no limit */
      readonly timeout?: Duration.Input | undefined
      /** Time for the whole call. @default no limit */
      readonly maxTime?: Duration.Input | undefined
    }
  ) => Stream.Stream<ToolEvent, McpClientError.McpClientError>
  /** Calls a method that Effect's client has no function for, such as `McpSchema.Complete`, `SetLevel` or `ListResourceTemplates`. */
  readonly request: <P extends Schema.Constraint, S extends Schema.Constraint>(
    method: Method<P, S>,
    payload: P["Type"],
    options?: Peer.CallOptions
  ) => Effect.Effect<
    S["Type"],
    McpClientError.McpClientError,
    P["EncodingServices"] | S["DecodingServices"]
  >
  /** Asks to be told of changes, until the scope closes; `subscribe` hears of them. Returns when the server has agreed. */
  readonly watch: (changes: Changes) => Effect.Effect<void, McpClientError.McpClientError, Scope.Scope>
  /** Tells the server that `listRoots` has another answer now. Does nothing in 2026-07-28, which has no word for it. */
  readonly rootsChanged: Effect.Effect<void, McpClientError.McpClientError>
  /** The peer that stands for the server now: for its counts, and for what is no part of MCP. */
  readonly peer: Effect.Effect<Peer.Peer["Service"], McpClientError.McpClientError>
}>()("effect-stdio/McpConnection") {}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

const encodeImplementation = Schema.encodeSync(McpSchema.Implementation)

const allProtocols: Arr.NonEmptyReadonlyArray<McpProtocol.ProtocolAdapter> = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
]

/**
 * Makes a connection to an MCP server over a transport, or over the transports that an effect makes.
 *
 * **Details**
 *
 * `make` makes a peer and says nothing yet: `McpClient.make` opens the session, with the capabilities that follow from
 * `hooks`. What McpClient sends has no deadline but McpClient's own; interrupting it tells the server.
 *
 * Junk among the server's output is skipped and counted. A call that cannot be settled fails with the reason that the
 * transport knows, so over a `Process` with its exit code and the end of its standard error: a `TransportError`, or
 * `ClosedError` where this side ended it. What the server refuses is a `ProtocolError` with its code. An error without an
 * id, as servers send it for what they cannot read, ends nothing.
 *
 * In 2026-07-28 a server asks in its result; it is answered from the hooks, and the request made again, for up to sixteen
 * rounds. What no hook can answer is left to McpClient, which fails.
 *
 * `source` may be an effect, such as one that starts a process. It is run at once, and again when something is to be sent
 * after the last connection ended: then the session is opened again, as McpClient did it, before anything else is sent,
 * and what is watched is asked for again. Calls that were waiting fail; none is repeated. Each of its transports lives in
 * a scope of its own, which is closed before the next is made. With {@link supervised} a process is started again as
 * soon as it ends.
 *
 * **Example** (Effect's client over a process)
 *
 * ```ts
 * import * as McpClient from "effect/ai/McpClient"
 * import * as McpProtocol from "effect/ai/McpProtocol"
 * import * as Effect from "effect/Effect"
 * import * as McpConnection from "effect-stdio/McpConnection"
 * import * as Process from "effect-stdio/Process"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const server = Effect.map(Process.make("node", ["server.js"]), (child) => child.transport)
 *   const connection = yield* McpConnection.make(server, { protocol: McpProtocol.v2025_11_25 })
 *   const client = yield* McpClient.make({ name: "reader", version: "1.0.0" }).pipe(
 *     Effect.provideService(McpClient.Transport, connection.transport)
 *   )
 *   return yield* client.listTools()
 * }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <R = never, E = never, R2 = never>(
  source: Source<E, R2>,
  options: Options<R>
): Effect.Effect<McpConnection["Service"], E, R | Exclude<R2, Scope.Scope> | Scope.Scope> =>
  Effect.map(makeConnection(source, options, [options.protocol]), ({ connection }) => connection)

/**
 * A source whose process is started again as soon as it ends, as `Supervisor.make` does it: with delays, and not for ever.
 *
 * **Details**
 *
 * The session is opened again before the process counts as up. What is to be sent meanwhile waits for it, no longer than
 * the option `callTimeout`.
 *
 * **Example** (A server that is kept alive)
 *
 * ```ts
 * import * as McpConnection from "effect-stdio/McpConnection"
 * import * as Process from "effect-stdio/Process"
 *
 * const server = McpConnection.supervised(Process.make("node", ["server.js"]), { maxRestarts: 3 })
 * const layer = McpConnection.layerClient(server, { name: "reader", version: "1.0.0" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const supervised = <R = never, R2 = never>(
  start: Effect.Effect<Process.Process["Service"], unknown, R>,
  options?: Omit<Supervisor.Options<never, never, R2>, "peer" | "handshake">
): Supervised<R | R2> => ({ start, options })

/**
 * Makes a connection and Effect's client of it, in the best revision that the server speaks.
 *
 * **Details**
 *
 * A server is asked whether it knows 2026-07-28 (`server/discover`). One that does not, or says nothing for
 * `discoverTimeout`, gets an `initialize` with the best of the other revisions, and may answer with another of
 * `protocols`; one that ends instead is started again, where `source` can do that. All of it takes no longer than
 * `timeout`. Everything else is as with {@link make}.
 *
 * **Example** (Whatever the server speaks)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as McpConnection from "effect-stdio/McpConnection"
 * import * as Process from "effect-stdio/Process"
 *
 * const server = Effect.map(Process.make("node", ["server.js"]), (child) => child.transport)
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const { client } = yield* McpConnection.connect(server, { name: "reader", version: "1.0.0" })
 *   return yield* client.listTools()
 * }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const connect = Effect.fnUntraced(function*<R = never, E = never, R2 = never>(
  source: Source<E, R2>,
  options: ConnectOptions<R>
): Effect.fn.Return<Connected, E | McpClientError.McpClientError, R | Exclude<R2, Scope.Scope> | Scope.Scope> {
  const {
    description,
    discoverTimeout = "10 seconds",
    icons,
    name,
    protocols = allProtocols,
    timeout = "60 seconds",
    title,
    version,
    websiteUrl,
    ...rest
  } = options
  const identity = { name, version, title, description, websiteUrl, icons }
  const { connection, negotiate } = yield* makeConnection(source, rest, protocols)
  yield* Effect.timeoutOrElse(negotiate({ clientInfo: encodeImplementation(identity), discoverTimeout }), {
    duration: timeout,
    orElse: () =>
      Effect.fail(
        new McpClientError.McpClientError({ reason: new McpClientError.TimeoutError({ operation: "initialization" }) })
      )
  })
  const client = yield* McpClient.make({ ...identity, timeout }).pipe(
    Effect.provideService(McpClient.Transport, connection.transport)
  )
  return { connection, client }
})

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/**
 * Layer with a connection to an MCP server and the transport that Effect's McpClient asks for.
 *
 * **Example** (A client as a layer)
 *
 * ```ts
 * import * as McpClient from "effect/ai/McpClient"
 * import * as McpProtocol from "effect/ai/McpProtocol"
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as McpConnection from "effect-stdio/McpConnection"
 * import * as Process from "effect-stdio/Process"
 *
 * const server = Effect.map(Process.make("node", ["server.js"]), (child) => child.transport)
 *
 * const ClientLive = Layer.effect(McpClient.McpClient, McpClient.make({ name: "reader", version: "1.0.0" })).pipe(
 *   Layer.provideMerge(McpConnection.layer(server, { protocol: McpProtocol.v2025_11_25 }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never, E = never, R2 = never>(
  source: Source<E, R2>,
  options: Options<R>
): Layer.Layer<McpConnection | McpClient.Transport, E, Exclude<R | R2, Scope.Scope>> =>
  Layer.effectContext(Effect.map(
    make(source, options),
    (connection) => Context.make(McpConnection, connection).pipe(Context.add(McpClient.Transport, connection.transport))
  ))

/**
 * Layer with a connection to an MCP server and Effect's client of it, in the best revision that the server speaks: what
 * {@link connect} makes.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = <R = never, E = never, R2 = never>(
  source: Source<E, R2>,
  options: ConnectOptions<R>
): Layer.Layer<
  McpConnection | McpClient.McpClient,
  E | McpClientError.McpClientError,
  Exclude<R | R2, Scope.Scope>
> =>
  Layer.effectContext(Effect.map(
    connect(source, options),
    ({ client, connection }) => Context.make(McpConnection, connection).pipe(Context.add(McpClient.McpClient, client))
  ))

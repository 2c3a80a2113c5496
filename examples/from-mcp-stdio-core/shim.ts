/**
 * Handlers that should stay as they are for now: the options of `runJsonRpcStdioServer`, each in terms of what is here.
 *
 * Imported by the program that has the handlers:
 *
 *     StdioRuntime.runMain(serve({ handler, idleTimeoutMs: 300_000 }), { layer: StdioTransport.layer() })
 */
import * as NodeSink from "@effect/platform-node/NodeSink"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Readable, Writable } from "node:stream"
import * as Lifecycle from "../../src/Lifecycle.ts"
import * as ParentProbe from "../../src/ParentProbe.ts"
import * as Router from "../../src/Router.ts"
import * as JsonRpc from "../../src/Schema.ts"
import * as Server from "../../src/Server.ts"
import * as Transport from "../../src/Transport.ts"
import * as Watchdog from "../../src/Watchdog.ts"

type Asked = JsonRpc.Request | JsonRpc.Notification

export interface Config {
  readonly handler: (message: Asked) => Promise<JsonRpc.Success | JsonRpc.Failure | undefined>
  readonly idleTimeoutMs?: number
  readonly onIdleTimeout?: () => void
  readonly parentWatchdog?: {
    readonly parentPid?: number
    readonly pollIntervalMs?: number
    readonly probeAlive?: (pid: number) => boolean
    readonly onPoll?: (alive: boolean) => void
  }
  readonly onParentExit?: () => void
  readonly log?: (event: string, fields: object) => void
  readonly parseErrorResponse?: (message: string) => JsonRpc.Failure | undefined
  readonly onHandlerError?: (error: unknown) => void
}

/** Serves the current Transport with the handler, and returns why the server ended. */
export const serve = (config: Config) => {
  const { handler, onHandlerError, parentWatchdog, parseErrorResponse } = config
  const ask = (message: Asked) =>
    Effect.promise(() => handler(message)).pipe(
      Effect.tapDefect((error) => Effect.sync(() => onHandlerError?.(error)))
    )
  const router = Router.raw(
    (params, { id, method }) =>
      Effect.flatMap(ask({ jsonrpc: "2.0", id, method, ...given(params) }), (response) =>
        response === undefined
          ? Effect.succeed(Router.noReply)
          : JsonRpc.isSuccess(response)
          ? Effect.succeed(response.result)
          : Effect.fail(new JsonRpc.JsonRpcError(response.error))),
    (params, method) => Effect.asVoid(ask({ jsonrpc: "2.0", method, ...given(params) }))
  )
  const watchdog = Watchdog.layer({
    idle: config.idleTimeoutMs ?? "10 minutes",
    parentPids: parentWatchdog?.parentPid === undefined ? undefined : [parentWatchdog.parentPid],
    parentPoll: parentWatchdog === undefined ? 0 : parentWatchdog.pollIntervalMs ?? "30 seconds",
    pollEvents: parentWatchdog?.onPoll !== undefined
  })
  return Server.run({
    router,
    concurrency: 1,
    maxQueuedRequests: Infinity,
    onBadInput: parseErrorResponse === undefined ? "reply" : ({ error }) => {
      const response = error.code === JsonRpc.ErrorCode.ParseError ? parseErrorResponse(error.message) : { error }
      return response && new JsonRpc.JsonRpcError(response.error)
    }
  }).pipe(
    Effect.tap(({ _tag }) =>
      Effect.sync(() => {
        if (_tag === "IdleTimeout") config.onIdleTimeout?.()
        if (_tag === "ParentExited") config.onParentExit?.()
      })
    ),
    Effect.provide(watchdog),
    Effect.provideService(Watchdog.Probe, probe(parentWatchdog?.probeAlive)),
    Effect.provideService(Lifecycle.Observer, (event) => {
      if (event._tag === "ParentPoll") return parentWatchdog?.onPoll?.(event.alive)
      const { _tag, ...fields } = event
      config.log?.(_tag, fields)
    })
  )
}

/** The connection over any two streams of Node. */
export const layerStreams = (input: Readable, output: Writable) =>
  Layer.effect(
    Transport.Transport,
    Transport.make({
      input: NodeStream.fromReadable({ evaluate: () => input, onError: (error) => error }),
      output: NodeSink.fromWritable({ evaluate: () => output, onError: (error) => error, endOnDone: false })
    })
  )

const given = (params: unknown) => typeof params === "object" && params !== null ? { params } : {}

const probe = (probeAlive: ((pid: number) => boolean) | undefined): Watchdog.Probe =>
  probeAlive === undefined ? ParentProbe.probe : {
    parentPid: ParentProbe.probe.parentPid,
    defaultPids: ParentProbe.probe.defaultPids,
    inspect: (pid) => Effect.sync(() => probeAlive(pid) ? { _tag: "Alive" } : { _tag: "Gone", why: "no such process" })
  }

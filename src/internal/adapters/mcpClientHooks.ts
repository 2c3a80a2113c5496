/**
 * What an MCP client answers its server: the hooks of a connection as handlers, and the capabilities that follow from
 * them.
 *
 * @since 0.1.0
 */
import type * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Capabilities, Hooks } from "../../McpConnection.ts"
import * as Router from "../../Router.ts"
import { JsonRpcError } from "../../Schema.ts"

const ELICIT = "elicitation/create"

// the fields, not the classes: a hook returns plain objects
const CreateMessage = {
  params: McpSchema.CreateMessage.payloadSchema,
  result: Schema.Struct(McpSchema.CreateMessageResult.fields)
}
const Elicit = {
  params: McpSchema.ElicitRequestParams,
  result: Schema.Union([
    Schema.Struct(McpSchema.ElicitAcceptResult.fields),
    Schema.Struct(McpSchema.ElicitDeclineResult.fields)
  ])
}
const ListRoots = {
  params: Schema.Struct({}),
  result: Schema.Struct({ roots: Schema.Array(Schema.Struct(McpSchema.Root.fields)) })
}

/** @internal */
export type CreateMessageResult = typeof CreateMessage.result.Type
/** @internal */
export type ElicitResult = typeof Elicit.result.Type
/** @internal */
export type Root = typeof ListRoots.result.Type["roots"][number]

/** The handlers of the requests that a server may send. @internal */
export const hooksRouter = <R>(hooks: Hooks<R>, services: Context.Context<R>): Router.Router => {
  const { createMessage, elicit, elicitUrl, listRoots } = hooks
  // a hook runs with what its request brings, and with what there was when the connection was made
  const provided = <A>(effect: Effect.Effect<A, JsonRpcError, R>): Effect.Effect<A, JsonRpcError> =>
    Effect.scoped(
      Effect.contextWith((own: Context.Context<never>) => Effect.provideContext(effect, Context.merge(services, own)))
    )
  let router: Router.Router = Router.rawRequest(Router.empty, "ping", () => pong)
  if (createMessage !== undefined) {
    router = Router.request(
      router,
      "sampling/createMessage",
      CreateMessage,
      (request) => provided(createMessage(request))
    )
  }
  if (elicit !== undefined || elicitUrl !== undefined) {
    router = Router.request(router, ELICIT, Elicit, (request) => {
      if (request.mode === "url") {
        return elicitUrl === undefined ? undeclared("url") : provided(elicitUrl(request))
      }
      return elicit === undefined ? undeclared("form") : provided(elicit(request))
    })
  }
  if (listRoots !== undefined) {
    router = Router.request(
      router,
      "roots/list",
      ListRoots,
      () => Effect.map(provided(listRoots), (roots) => ({ roots }))
    )
  }
  return router
}

const pong = Effect.succeed({})

// "Servers MUST NOT send elicitation requests with modes that are not supported by the client", and are told -32602
const undeclared = (mode: string) =>
  Effect.fail(JsonRpcError.invalidParams(`this client was not declared to support elicitation by ${mode}`))

/** Answers one entry of `inputRequests`; undefined where nobody can. @internal */
export const answerInput = (
  router: Router.Router,
  key: string,
  request: unknown
): Effect.Effect<unknown, JsonRpcError> | undefined => {
  if (!Predicate.isObject(request) || typeof request.method !== "string") return undefined
  const { method, params } = request
  const handler = method === "ping" ? undefined : router.requests.get(method)
  // 2026-07-28 has no id for an elicitation by URL; the key is what tells it from others
  const given = method === ELICIT && Predicate.isObject(params) && params.mode === "url"
    ? { elicitationId: key, ...params }
    : params
  return handler?.(given, { method, id: key })
}

/** The capabilities that follow from the hooks, with those that were given over them. @internal */
export const declaredCapabilities = <R>(
  version: McpProtocol.ProtocolVersion,
  hooks: Hooks<R>,
  given: Capabilities | undefined
): Record<string, unknown> => {
  const hasModes = version === "2025-11-25" || version === "2026-07-28"
  const hasElicitation = hasModes || version === "2025-06-18"
  const derived: Record<string, object> = {}
  if (hooks.createMessage !== undefined) derived["sampling"] = {}
  if (hooks.listRoots !== undefined) derived["roots"] = version === "2026-07-28" ? {} : { listChanged: true }
  if (hasModes && (hooks.elicit ?? hooks.elicitUrl) !== undefined) {
    derived["elicitation"] = {
      ...(hooks.elicit === undefined ? {} : { form: {} }),
      ...(hooks.elicitUrl === undefined ? {} : { url: {} })
    }
  } else if (hasElicitation && hooks.elicit !== undefined) {
    derived["elicitation"] = {}
  }
  const result: Record<string, unknown> = { ...derived }
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value !== undefined) result[name] = { ...derived[name], ...value }
  }
  return result
}

/**
 * Which handler serves which method: a pure value that is built up and merged, and given to a Peer or a Server.
 *
 * A handler is typed by Schema on both sides: it takes decoded params and returns a value that the result schema can
 * write as JSON (dates become ISO text, bytes base64). The only error it may fail with is `JsonRpcError`, which travels
 * to the caller unchanged; everything else is a defect and is masked. A raw handler takes every method instead.
 *
 * @module
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Pipeable from "effect/Pipeable"
import * as Schema from "effect/Schema"
import type { Id } from "./Schema.ts"
import { JsonRpcError } from "./Schema.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/**
 * What a handler may know of the request it serves, beside its params.
 *
 * @category models
 * @since 0.1.0
 */
export interface RequestInfo {
  readonly method: string
  readonly id: Id
}

/**
 * Serves a request: from params as they came to a result that can be written as JSON, or {@link noReply}.
 *
 * @category models
 * @since 0.1.0
 */
export type RequestHandler<R = never> = (params: unknown, info: RequestInfo) => Effect.Effect<unknown, JsonRpcError, R>

/**
 * Takes a notification. Its failure is logged, never answered.
 *
 * @category models
 * @since 0.1.0
 */
export type NotificationHandler<R = never> = (params: unknown, method: string) => Effect.Effect<void, JsonRpcError, R>

/**
 * The handlers of a connection. `R` are the services they need.
 *
 * @category models
 * @since 0.1.0
 */
export interface Router<out R = never> extends Pipeable.Pipeable {
  readonly requests: ReadonlyMap<string, RequestHandler<R>>
  readonly notifications: ReadonlyMap<string, NotificationHandler<R>>
  /** Serves requests of all other methods; without it they are answered with -32601. */
  readonly otherRequests: RequestHandler<R> | undefined
  /** Takes notifications of all other methods; without it they are ignored. */
  readonly otherNotifications: NotificationHandler<R> | undefined
}

/**
 * Result of a handler that answers nothing: the id becomes free, and the caller hears nothing from us. For protocols
 * that settle a request by other means, such as a cancelled one.
 *
 * @category models
 * @since 0.1.0
 */
export const noReply: unique symbol = Symbol.for("effect-stdio/Router/noReply")

const make = <R>(handlers: Omit<Router<R>, "pipe">): Router<R> =>
  Object.assign(Object.create(Pipeable.Prototype), handlers)

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * A router without handlers.
 *
 * **Example** (Two methods)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Router from "effect-stdio/Router"
 *
 * const Sum = { params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }), result: Schema.Finite }
 *
 * const router = Router.empty.pipe(
 *   Router.request("add", Sum, ({ a, b }) => Effect.succeed(a + b)),
 *   Router.notification("log", Schema.Struct({ text: Schema.String }), ({ text }) => Effect.log(text))
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Router = make<never>({
  requests: new Map(),
  notifications: new Map(),
  otherRequests: undefined,
  otherNotifications: undefined
})

/**
 * Returns a router whose one handler serves the requests of every method, and optionally one more the notifications.
 *
 * @category constructors
 * @since 0.1.0
 */
export const raw = <R, R2 = never>(
  onRequest: RequestHandler<R>,
  onNotification?: NotificationHandler<R2>
): Router<R | R2> =>
  make<R | R2>({
    requests: new Map(),
    notifications: new Map(),
    otherRequests: onRequest,
    otherNotifications: onNotification
  })

// -----------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------

/**
 * The schemas of a request method.
 *
 * @category models
 * @since 0.1.0
 */
export interface RequestSchemas<P extends Schema.Constraint, S extends Schema.Constraint> {
  readonly params: P
  readonly result: S
}

/**
 * Adds the handler of a request method; one added before for the same method is replaced.
 *
 * **Details**
 *
 * Params that do not fit their schema are answered with -32602 and the place of the first mismatch. Absent and null
 * params are decoded as an empty object, and an empty array where the schema refuses it too, so that a method without
 * params accepts whatever clients write for "none". A result that its schema cannot write is a defect.
 *
 * @category combinators
 * @since 0.1.0
 */
export const request: {
  <P extends Schema.Constraint, S extends Schema.Constraint, R2>(
    method: string,
    schemas: RequestSchemas<P, S>,
    handler: (params: P["Type"], info: RequestInfo) => Effect.Effect<S["Type"], JsonRpcError, R2>
  ): <R>(self: Router<R>) => Router<R | R2 | P["DecodingServices"] | S["EncodingServices"]>
  <R, P extends Schema.Constraint, S extends Schema.Constraint, R2>(
    self: Router<R>,
    method: string,
    schemas: RequestSchemas<P, S>,
    handler: (params: P["Type"], info: RequestInfo) => Effect.Effect<S["Type"], JsonRpcError, R2>
  ): Router<R | R2 | P["DecodingServices"] | S["EncodingServices"]>
} = dual(4, <R, P extends Schema.Constraint, S extends Schema.Constraint, R2>(
  self: Router<R>,
  method: string,
  schemas: RequestSchemas<P, S>,
  handler: (params: P["Type"], info: RequestInfo) => Effect.Effect<S["Type"], JsonRpcError, R2>
): Router<R | R2 | P["DecodingServices"] | S["EncodingServices"]> => {
  type R3 = R | R2 | P["DecodingServices"] | S["EncodingServices"]
  const decode = paramsDecoder(schemas.params)
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(schemas.result))
  const handle: RequestHandler<R3> = (params, info) =>
    // eager: where nothing has to be waited for, no fiber is needed
    Effect.flatMapEager(
      Effect.flatMapEager(decode(params), (decoded) => handler(decoded, info)),
      (result) => Effect.catchEager(encode(result), (error) => Effect.die(error))
    )
  return make<R3>({ ...self, requests: new Map<string, RequestHandler<R3>>(self.requests).set(method, handle) })
})

/**
 * Adds the handler of a notification method; one added before for the same method is replaced. Params that do not fit
 * their schema are logged, and the handler is not run.
 *
 * @category combinators
 * @since 0.1.0
 */
export const notification: {
  <P extends Schema.Constraint, R2>(
    method: string,
    params: P,
    handler: (params: P["Type"]) => Effect.Effect<void, JsonRpcError, R2>
  ): <R>(self: Router<R>) => Router<R | R2 | P["DecodingServices"]>
  <R, P extends Schema.Constraint, R2>(
    self: Router<R>,
    method: string,
    params: P,
    handler: (params: P["Type"]) => Effect.Effect<void, JsonRpcError, R2>
  ): Router<R | R2 | P["DecodingServices"]>
} = dual(4, <R, P extends Schema.Constraint, R2>(
  self: Router<R>,
  method: string,
  params: P,
  handler: (params: P["Type"]) => Effect.Effect<void, JsonRpcError, R2>
): Router<R | R2 | P["DecodingServices"]> => {
  type R3 = R | R2 | P["DecodingServices"]
  const decode = paramsDecoder(params)
  const handle: NotificationHandler<R3> = (params) => Effect.flatMap(decode(params), handler)
  return make<R3>({
    ...self,
    notifications: new Map<string, NotificationHandler<R3>>(self.notifications).set(method, handle)
  })
})

/**
 * Adds the handlers of another router; where both have one, that of `that` stays.
 *
 * @category combinators
 * @since 0.1.0
 */
export const merge: {
  <R2>(that: Router<R2>): <R>(self: Router<R>) => Router<R | R2>
  <R, R2>(self: Router<R>, that: Router<R2>): Router<R | R2>
} = dual(2, <R, R2>(self: Router<R>, that: Router<R2>): Router<R | R2> =>
  make<R | R2>({
    requests: new Map<string, RequestHandler<R | R2>>([...self.requests, ...that.requests]),
    notifications: new Map<string, NotificationHandler<R | R2>>([...self.notifications, ...that.notifications]),
    otherRequests: that.otherRequests ?? self.otherRequests,
    otherNotifications: that.otherNotifications ?? self.otherNotifications
  }))

/**
 * Adds the handler of a request method with params as they came and a result that is JSON already: decodes nothing.
 *
 * @category combinators
 * @since 0.1.0
 */
export const rawRequest: {
  <R2>(method: string, handler: RequestHandler<R2>): <R>(self: Router<R>) => Router<R | R2>
  <R, R2>(self: Router<R>, method: string, handler: RequestHandler<R2>): Router<R | R2>
} = dual(
  3,
  <R, R2>(self: Router<R>, method: string, handler: RequestHandler<R2>): Router<R | R2> =>
    make<R | R2>({ ...self, requests: new Map<string, RequestHandler<R | R2>>(self.requests).set(method, handler) })
)

/**
 * Adds the handler of a notification method with params as they came, undecoded.
 *
 * @category combinators
 * @since 0.1.0
 */
export const rawNotification: {
  <R2>(method: string, handler: NotificationHandler<R2>): <R>(self: Router<R>) => Router<R | R2>
  <R, R2>(self: Router<R>, method: string, handler: NotificationHandler<R2>): Router<R | R2>
} = dual(3, <R, R2>(self: Router<R>, method: string, handler: NotificationHandler<R2>): Router<R | R2> =>
  make<R | R2>({
    ...self,
    notifications: new Map<string, NotificationHandler<R | R2>>(self.notifications).set(method, handler)
  }))

/**
 * Wraps the handlers of all requests: the place for what they share, such as telling what died, measuring, or asking
 * who is there. A method without a handler is not wrapped.
 *
 * **Example** (Telling which handler died)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Router from "effect-stdio/Router"
 *
 * const router = Router.empty.pipe(
 *   Router.rawRequest("crash", () => Effect.die(new Error("boom"))),
 *   Router.mapRequests((handler) => (params, info) =>
 *     handler(params, info).pipe(Effect.tapDefect((defect) => Effect.logError(info.method, defect)))
 *   )
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const mapRequests: {
  <R, R2>(wrap: (handler: RequestHandler<R>) => RequestHandler<R2>): (self: Router<R>) => Router<R | R2>
  <R, R2>(self: Router<R>, wrap: (handler: RequestHandler<R>) => RequestHandler<R2>): Router<R | R2>
} = dual(
  2,
  <R, R2>(self: Router<R>, wrap: (handler: RequestHandler<R>) => RequestHandler<R2>): Router<R | R2> =>
    make<R | R2>({
      ...self,
      requests: new Map<string, RequestHandler<R | R2>>(Array.from(self.requests, ([method, handler]) => [
        method,
        wrap(handler)
      ])),
      otherRequests: self.otherRequests === undefined ? undefined : wrap(self.otherRequests)
    })
)

// -----------------------------------------------------------------------------
// private helpers
// -----------------------------------------------------------------------------

const paramsDecoder = <P extends Schema.Constraint>(schema: P) => {
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(schema))
  return (params: unknown): Effect.Effect<P["Type"], JsonRpcError, P["DecodingServices"]> => {
    const isNone = params === undefined || params === null
    const decoded = Effect.mapErrorEager(
      decode(isNone ? {} : params),
      (error) => JsonRpcError.invalidParams(error.message.replace(/\s*\n\s*/g, " "))
    )
    return Array.isArray(params) && params.length === 0
      ? Effect.catch(decoded, (error) => Effect.mapError(decode({}), () => error))
      : decoded
  }
}

/**
 * How one side hears how far its request has come.
 *
 * JSON-RPC 2.0 has no word for it; the protocols on top let a request carry a token, and report under it in
 * notifications. A strategy puts the token into the params and reads the reports.
 *
 * @module
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"

/**
 * A way of reporting progress.
 *
 * @category models
 * @since 0.1.0
 */
export interface Progress {
  /** Method of the notification that reports progress, or undefined where there is none. */
  readonly method: string | undefined
  /** The params that ask for reports under this token; those by position have no place for it, and stay as they are. */
  readonly ask: (params: object | undefined, token: string) => object | undefined
  /** The token and the value of a report, if its params are well formed. */
  readonly read: (params: unknown) => Report | undefined
}

/**
 * One report: `value` is what the protocol says of the progress, such as `{ progress: 1, total: 3 }`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Report {
  readonly token: unknown
  readonly value: unknown
}

/**
 * The Model Context Protocol: `_meta.progressToken`, and `notifications/progress`.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress
 * @category constructors
 * @since 0.1.0
 */
export const mcp: Progress = {
  method: "notifications/progress",
  ask: (params, progressToken) => {
    if (Array.isArray(params)) return params
    const meta = Predicate.hasProperty(params, "_meta") && Predicate.isObject(params._meta) ? params._meta : {}
    return { ...params, _meta: { ...meta, progressToken } }
  },
  read: (params) => {
    if (!Predicate.isObject(params)) return undefined
    const { progressToken: token, ...value } = params
    return token === undefined ? undefined : { token, value }
  }
}

/**
 * The Language Server Protocol: `workDoneToken`, and `$/progress`.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#progress
 * @category constructors
 * @since 0.1.0
 */
export const lsp: Progress = {
  method: "$/progress",
  ask: (params, workDoneToken) => Array.isArray(params) ? params : { ...params, workDoneToken },
  read: (params) =>
    Predicate.hasProperty(params, "token") && Predicate.hasProperty(params, "value")
      ? { token: params.token, value: params.value }
      : undefined
}

/**
 * No progress: nothing is asked for, and no notification is special.
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: Progress = {
  method: undefined,
  ask: (params) => params,
  read: () => undefined
}

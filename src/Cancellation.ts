/**
 * How one side tells the other that it no longer wants an answer.
 *
 * JSON-RPC 2.0 has no word for it; the protocols on top each have their own. A strategy names the notification, reads
 * and writes its params, and says whether a cancelled request is still answered.
 *
 * @module
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import type { Id } from "./Schema.ts"
import { isId } from "./Schema.ts"

/**
 * A way of cancelling requests.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cancellation {
  /** Method of the notification that cancels, or undefined where there is none. */
  readonly method: string | undefined
  /** The id of the request that the params of such a notification name, if they are well formed. */
  readonly requestId: (params: unknown) => Id | undefined
  /** The params that cancel the request with this id. */
  readonly params: (id: Id) => object
  /** Whether a request that was cancelled is answered with -32800, or not at all. */
  readonly answered: boolean
  /** Methods whose requests cannot be cancelled. */
  readonly protectedMethods: ReadonlySet<string>
}

const readId = (member: string) => (params: unknown): Id | undefined => {
  const id = Predicate.isObject(params) ? params[member] : undefined
  return isId(id) ? id : undefined
}

/**
 * The Model Context Protocol: `notifications/cancelled` with a `requestId`; nothing is sent for a cancelled request, and
 * `initialize` cannot be cancelled.
 *
 * @see https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation
 * @category constructors
 * @since 0.1.0
 */
export const mcp: Cancellation = {
  method: "notifications/cancelled",
  requestId: readId("requestId"),
  params: (requestId) => ({ requestId }),
  answered: false,
  protectedMethods: new Set(["initialize"])
}

/**
 * The Language Server Protocol: `$/cancelRequest` with an `id`; a cancelled request is answered with -32800, or with its
 * result where that was ready.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#cancelRequest
 * @category constructors
 * @since 0.1.0
 */
export const lsp: Cancellation = {
  method: "$/cancelRequest",
  requestId: readId("id"),
  params: (id) => ({ id }),
  answered: true,
  protectedMethods: new Set()
}

/**
 * No cancellation: nothing is sent when a caller gives up, and no notification is special.
 *
 * @category constructors
 * @since 0.1.0
 */
export const none: Cancellation = {
  method: undefined,
  requestId: () => undefined,
  params: () => ({}),
  answered: false,
  protectedMethods: new Set()
}

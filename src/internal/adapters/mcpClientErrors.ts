/**
 * What became of a call, in the words of Effect's McpClient.
 *
 * @since 0.1.0
 */
import * as McpClientError from "effect/ai/McpClientError"
import type * as Peer from "../../Peer.ts"
import type { JsonRpcError } from "../../Schema.ts"

/** @internal */
export const fail = (reason: McpClientError.McpClientErrorReason) => new McpClientError.McpClientError({ reason })

/** @internal */
export const fromPeerError = (error: Peer.PeerError): McpClientError.McpClientError => {
  const { reason } = error
  switch (reason._tag) {
    case "Timeout":
      return fail(new McpClientError.TimeoutError({ operation: reason.method }))
    case "DecodeFailure":
      return fail(new McpClientError.ProtocolError({ description: error.message, cause: error }))
    case "Lagged":
      return fail(new McpClientError.LimitError({ description: error.message }))
    case "Closed":
      switch (reason.reason.reason._tag) {
        case "Ended":
          return fail(new McpClientError.ClosedError({ description: error.message }))
        case "FrameTooLarge":
          return fail(new McpClientError.LimitError({ description: error.message }))
        case "NotJsonRpc":
          return fail(new McpClientError.ProtocolError({ description: error.message, cause: error }))
        default:
          return fail(new McpClientError.TransportError({ description: error.message, cause: error }))
      }
  }
}

/** @internal */
export const fromJsonRpcError = ({ code, data, message }: JsonRpcError): McpClientError.McpClientError =>
  fail(new McpClientError.ProtocolError({ code, data, description: message }))

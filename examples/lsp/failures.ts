/**
 * What goes wrong between this program and a language server, in the words of `LspError`.
 *
 * @since 0.1.0
 */
import type { PeerError } from "../../src/Peer.ts"
import { ProcessError } from "../../src/Process.ts"
import type { JsonRpcError } from "../../src/Schema.ts"
import * as Supervisor from "../../src/Supervisor.ts"
import type { FileError } from "../shared/FileError.ts"
import type { Language } from "./languages.ts"
import { BadAnswer, LspError, NoAnswer, NotInstalled, NotReady, Refused, ServerEnded } from "./LspError.ts"
import * as Uris from "./uris.ts"

/**
 * What a question may fail with, before it is put into words.
 *
 * @category errors
 * @since 0.1.0
 */
export type Failure = JsonRpcError | PeerError | Supervisor.SupervisorError | LspError | FileError

/** The server has become another one, or the text did, while it worked: ContentModified and ServerCancelled. */
const ASK_AGAIN = new Set([-32801, -32802])

/**
 * Whether a question may be put once more: the server ended, or worked on what is not so any more.
 *
 * @category guards
 * @since 0.1.0
 */
export const mayBeRepeated = (failure: Failure): boolean =>
  failure._tag === "SupervisorError"
    ? failure.reason._tag === "OutcomeUnknown" || failure.reason.state === "Up"
    : failure._tag === "JsonRpcError" && ASK_AGAIN.has(failure.code)

/**
 * A failure of a call: an error that the server answers with for good says which call it was.
 *
 * @category combinators
 * @since 0.1.0
 */
export const ofMethod = (language: Language, folder: string, method: string, failure: Failure): Failure =>
  failure._tag === "JsonRpcError" && !mayBeRepeated(failure)
    ? new LspError({
      reason: new Refused({ server: language.name, method, detail: Uris.relativeTo(folder, failure.message) })
    })
    : failure

/**
 * A failure in words for the client. Paths below `folder` become relative to it.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toLspError = (language: Language, folder: string, failure: Failure): LspError | FileError => {
  const server = language.name
  const hide = (text: string) => Uris.relativeTo(folder, text)
  switch (failure._tag) {
    case "JsonRpcError":
      return new LspError({ reason: new Refused({ server, method: "the question", detail: hide(failure.message) }) })
    case "PeerError": {
      const { reason } = failure
      return reason._tag === "Timeout"
        ? new LspError({ reason: new NoAnswer({ server, method: reason.method }) })
        : new LspError({
          reason: new BadAnswer({
            server,
            method: reason._tag === "Lagged" ? "the question" : reason.method,
            detail: hide(failure.message)
          })
        })
    }
    case "SupervisorError": {
      const { reason } = failure
      return reason._tag === "OutcomeUnknown"
        ? new LspError({ reason: new ServerEnded({ server, detail: hide(reason.reason.message) }) })
        : new LspError({ reason: notReady(language, hide, reason.failure) })
    }
    default:
      return failure
  }
}

/**
 * Whether a generation could not be started because its program is not there.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMissing = (failure: Supervisor.Failure | undefined): boolean =>
  failure?._tag === "NotStarted" && failure.cause instanceof ProcessError && failure.cause.reason._tag === "NotFound"

const notReady = (
  { command, install, name: server }: Language,
  hide: (text: string) => string,
  failure: Supervisor.Failure | undefined
): LspError["reason"] =>
  isMissing(failure)
    ? new NotInstalled({ server, command, install })
    : new NotReady({
      server,
      detail: failure === undefined
        ? "it is still starting. Call again later."
        : `${hide(Supervisor.describe(failure))}. The next call starts it anew.`
    })

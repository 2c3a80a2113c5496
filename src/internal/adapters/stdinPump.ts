/**
 * Standard input as a stream, read from the first moment on: an end is seen even while layers are being built.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as PlatformError from "effect/PlatformError"
import * as Stream from "effect/Stream"
import { gather } from "./gather.ts"

let opened: Stream.Stream<Uint8Array, PlatformError.PlatformError> | undefined

/** The one stream of standard input. @internal */
export const openStdin = (): Stream.Stream<Uint8Array, PlatformError.PlatformError> =>
  opened ??= Stream.fromPull(Effect.succeed(gather(process.stdin, failure).pull))

const failure = (cause: unknown) =>
  PlatformError.systemError({ _tag: "Unknown", module: "Stdio", method: "stdin", cause })

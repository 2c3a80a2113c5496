/**
 * Standard input and output as a Transport, over Effect's `Stdio` service.
 *
 * `StdioRuntime` provides a `Stdio` that owns the process's real output; `Stdio.layerTest` provides one for tests.
 *
 * @module
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stdio from "effect/Stdio"
import * as Transport from "./Transport.ts"

/**
 * Makes the transport of the current `Stdio`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options?: Transport.Options
): Effect.Effect<Transport.Transport["Service"], never, Stdio.Stdio | Scope.Scope> =>
  Effect.flatMap(
    Stdio.Stdio,
    (stdio) => Transport.make({ input: stdio.stdin, output: stdio.stdout({ endOnDone: false }) }, options)
  )

/**
 * Layer that makes standard input and output the program's one connection.
 *
 * **Example** (A language server's framing)
 *
 * ```ts
 * import * as StdioTransport from "effect-stdio/StdioTransport"
 *
 * const layer = StdioTransport.layer({ framing: "content-length" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Transport.Options): Layer.Layer<Transport.Transport, never, Stdio.Stdio> =>
  Layer.effect(Transport.Transport, make(options))

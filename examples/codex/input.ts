/**
 * Standard input as a text.
 *
 * @since 0.1.0
 */
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

/**
 * Reads standard input to its end; undefined when it is longer than so many characters.
 *
 * @category constructors
 * @since 0.1.0
 */
export const readInput = (maxLength: number): Effect.Effect<string | undefined> =>
  Effect.gen(function*() {
    const { stdin } = yield* Stdio.Stdio
    const pieces: Array<string> = []
    let length = 0
    yield* Stream.runForEachWhile(Stream.decodeText(stdin), (piece) => {
      pieces.push(piece)
      length += piece.length
      return Effect.succeed(length <= maxLength)
    })
    return length > maxLength ? undefined : pieces.join("")
  }).pipe(
    // an input that breaks off has ended
    Effect.catch(() => Effect.succeed("")),
    Effect.provide(NodeStdio.layer)
  )

/**
 * Parses code in the threads of Node, without giving all of them away.
 *
 * A thread that parses cannot be stopped, and some small files take it hours: `<!--` a thousand times in HTML, for
 * example. So a file has a limited time, threads are left for reading files, and a process that wants to end while one
 * still parses has to be killed: Node would wait for it.
 *
 * @since 0.1.0
 */
import { parseAsync, type SgRoot } from "@ast-grep/napi"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"

/** Node has four threads, for parsing and for reading files. */
const MAX_PARSING = 2

const TIME_LIMIT = "5 seconds"

// the threads belong to the process, whatever services there are
const threads = Semaphore.makeUnsafe(MAX_PARSING)
let parsing = 0

/**
 * Parses code; `undefined` when that takes too long.
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse = (language: string, code: string): Effect.Effect<SgRoot | undefined> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(threads.take(1)), () => {
      parsing++
      // a promise in any case, also where it would throw
      const tree = Promise.resolve().then(() => parseAsync(language, code)).finally(() => {
        parsing--
        Effect.runFork(threads.release(1))
      })
      // nobody may be there any more to hear of it
      tree.catch(() => {})
      return restore(Effect.promise(() => tree))
    })
  ).pipe(Effect.timeoutOption(TIME_LIMIT), Effect.map(Option.getOrUndefined))

/**
 * Ends this process at once when it wants to end and a thread still parses.
 *
 * @category constructors
 * @since 0.1.0
 */
export const endWithProcess = (): void => {
  process.on("exit", () => {
    if (parsing > 0) process.kill(process.pid, "SIGKILL")
  })
}

/**
 * Takes standard output away from everybody: what user code, dependencies and consoles print goes to standard error, and
 * only the write saved here reaches file descriptor 1. Installed once a process, whoever comes first.
 *
 * @since 0.1.0
 */
import { Console } from "node:console"

/**
 * Writes to the real standard output; the callback comes when the bytes are handed to the system. Returns true where that
 * has happened already.
 *
 * @internal
 */
export type Write = (bytes: Uint8Array | string, done: (error?: Error | null) => void) => boolean

const isNode = process.versions["bun"] === undefined

const KEY = Symbol.for("effect-stdio/stdoutGuard")

/** @internal */
export const install = (): Write => {
  // one guard a process, also when this module is loaded twice (bundled into the program and imported before it)
  const registry = globalThis as { [KEY]?: Write } // a symbol of our own on the global object
  return registry[KEY] ??= guard()
}

const guard = (): Write => {
  const { stderr, stdout } = process
  // what was corked before would never be written again
  while (stdout.writableCorked > 0) stdout.uncork()
  const write = stdout.write.bind(stdout)
  // a host that left is told by the write that failed; a broken stderr is nobody's concern
  stdout.on("error", () => {})
  stderr.on("error", () => {})
  const redirected: typeof stdout.write = (
    chunk: Uint8Array | string,
    encoding?: BufferEncoding | ((error?: Error | null) => void),
    done?: (error?: Error | null) => void
  ) => typeof encoding === "function" ? stderr.write(chunk, encoding) : stderr.write(chunk, encoding, done)
  stdout.write = redirected
  // who waits for room on what is now standard error
  stderr.on("drain", () => stdout.emit("drain"))
  // `pipeline(…, process.stdout)` and the like end what they write to
  const end: typeof stdout.end = (
    chunk?: Uint8Array | string | (() => void),
    encoding?: BufferEncoding | (() => void),
    done?: () => void
  ) => {
    const last = typeof chunk === "function" || chunk === undefined ? "" : chunk
    const callback = typeof chunk === "function" ? chunk : typeof encoding === "function" ? encoding : done
    stderr.write(last, () => callback?.())
    return stdout
  }
  stdout.end = end
  stdout.cork = () => {}
  stdout.uncork = () => {}
  // Node's console writes through what was replaced above; Bun's does not. In place, for those who hold it already:
  // `node:console` is the same object
  Object.assign(globalThis.console, new Console({ stdout: stderr, stderr, ignoreErrors: true }))
  redirectBun()
  return (bytes, done) => {
    write(bytes, done)
    // a pipe with room takes all at once, which a turn of the event loop later the callback says too
    return isNode && stdout.writableLength === 0 && stdout.errored === null
  }
}

interface BunGlobals {
  readonly console: { write?: (...parts: ReadonlyArray<string | Uint8Array>) => void }
  readonly Bun?: { stdout: unknown; readonly stderr: unknown }
}

/** Redirects what Bun has beside Node's ways to standard output. */
const redirectBun = () => {
  // what Bun has beside Node is not in Node's types
  const { Bun, console } = globalThis as unknown as BunGlobals
  if (Bun === undefined) return
  Bun.stdout = Bun.stderr
  console.write = (...parts) => {
    for (const part of parts) process.stderr.write(part)
  }
}

/**
 * The files that a language server wants to hear of: which changed on the disk since the last look.
 *
 * It looks when it is asked, instead of being told by the system: what was written before a question is known to the
 * server when it reads the question, and no watch is left behind.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { join, sep } from "node:path"
import * as Disk from "./disk.ts"
import * as Globs from "./globs.ts"
import type { Watcher } from "./sessionProtocol.ts"
import * as Uris from "./uris.ts"

const CREATED = 1
const CHANGED = 2
const DELETED = 3

/**
 * A change as `workspace/didChangeWatchedFiles` tells it: 1, 2 and 3 are created, changed and deleted.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileEvent {
  readonly uri: string
  readonly type: number
}

/**
 * What a server watches.
 *
 * @category models
 * @since 0.1.0
 */
export interface WatchedFiles {
  readonly register: (id: string, watchers: ReadonlyArray<Watcher>) => void
  readonly unregister: (id: string) => void
  /** Takes the files as they are for what the server knows, and forgets what it asked for: it is a new one. */
  readonly reset: Effect.Effect<void>
  /** What changed since the last look, as far as the server wants to hear of it. */
  readonly changes: Effect.Effect<ReadonlyArray<FileEvent>>
  /** Tells from now on whether a file is still the one that was there at the last look; true where it was not seen. */
  readonly isSame: () => (path: string) => Effect.Effect<boolean>
}

type Test = (path: string) => boolean
interface Compiled {
  readonly test: Test
  readonly kind: number
}

/**
 * The watched files below a folder, of which there are at most `maxFiles`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (folder: string, maxFiles: number): WatchedFiles => {
  const registered = new Map<string, ReadonlyArray<Compiled>>()
  let known: ReadonlyMap<string, Disk.Stamp> = new Map()

  // also before anything is registered: a server registers a moment after it has read its first files
  const look = Disk.filesBelow(folder, maxFiles)

  /** Where there are too many files, one that is not seen any more may still be there: others have taken its place. */
  const withPushedOut = Effect.gen(function*() {
    const files = yield* look
    if (files.size < maxFiles) return files
    const missing = Array.from(known.keys()).filter((path) => !files.has(path))
    const stamps = yield* Effect.forEach(missing, (path) => Disk.stampOf(path, "refuse"), { concurrency: 16 })
    return new Map([
      ...files,
      ...missing.flatMap((path, index) => {
        const stamp = stamps[index]
        return stamp === undefined ? [] : [[path, stamp] as const]
      })
    ])
  })

  return {
    register: (id, watchers) => void registered.set(id, watchers.flatMap((watcher) => compile(folder, watcher))),
    unregister: (id) => void registered.delete(id),
    reset: Effect.map(look, (files) => {
      registered.clear()
      known = files
    }),
    // also where nothing is registered: a rename is held against what was there before
    changes: Effect.map(withPushedOut, (files) => {
      const wanted = Array.from(registered.values()).flat()
      const events = compare(known, files).flatMap(({ path, type }) =>
        wanted.some(({ kind, test }) => (kind & (1 << (type - 1))) !== 0 && test(path))
          ? [{ uri: Uris.fromPath(path), type }]
          : []
      )
      known = files
      return events
    }),
    isSame: () => {
      const seen = known
      return (path) =>
        Effect.suspend(() => {
          const before = seen.get(path)
          return before === undefined
            ? Effect.succeed(true)
            : Effect.map(Disk.stampOf(path), (now) => now !== undefined && Disk.isSame(before, now))
        })
    }
  }
}

const compare = (before: ReadonlyMap<string, Disk.Stamp>, now: ReadonlyMap<string, Disk.Stamp>) => [
  ...Array.from(now).flatMap(([path, stamp]) => {
    const old = before.get(path)
    return old === stamp ? [] : [{ path, type: old === undefined ? CREATED : CHANGED }]
  }),
  ...Array.from(before.keys()).flatMap((path) => now.has(path) ? [] : [{ path, type: DELETED }])
]

/** A pattern without a base is relative to the folder, or absolute. */
const compile = (folder: string, { base, kind, pattern }: Watcher): ReadonlyArray<Compiled> => {
  const parent = base === undefined ? folder : Uris.toPath(base)
  const glob = Globs.toTest(pattern)
  if (parent === undefined || glob === undefined) return []
  const prefix = parent.endsWith(sep) ? parent : join(parent, sep)
  const test: Test = (path) => {
    const isBelow = path.startsWith(prefix) && glob(toSlashes(path.slice(prefix.length)))
    return isBelow || (base === undefined && glob(toSlashes(path)))
  }
  return [{ test, kind }]
}

const toSlashes = (path: string): string => sep === "/" ? path : path.replaceAll(sep, "/")

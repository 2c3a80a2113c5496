/**
 * Replaces files so that each is the old one or the new one at every moment, whole, also when the process is killed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"

/** Written at once; an interruption waits for no more than that. */
const PIECE_BYTES = 1024 * 1024

/** Files that are forced to the disk at the same time: most of the time is spent waiting for it. */
const AT_ONCE = 8

/** Temporary files of processes that were killed are removed by a later write, once they are this old. */
const LEFTOVER_AGE = 3_600_000

/** The new contents of a file. */
interface Replacement {
  /** Absolute. */
  readonly file: string
  /** The contents, one after the other. */
  readonly pieces: ReadonlyArray<Uint8Array>
}

/**
 * Replaces the contents of a file, and returns what the system says about the new one.
 *
 * **Details**
 *
 * The contents go into a temporary file in the same folder, are forced to the disk and take the place of the file by
 * renaming. The temporary file goes away in any case, except when the process is killed: then a later write to the same
 * file removes it after an hour. Owner and permissions are those of the old file, as far as the system allows.
 *
 * An interruption, and a failure of `confirm`, which runs last before renaming, leave the file as it was.
 *
 * **Gotchas**
 *
 * The file is a new one to the system: other hard links to it keep the old contents.
 *
 * @category combinators
 * @since 0.1.0
 */
export const replaceFile = Effect.fnUntraced(function*<E>(
  file: string,
  pieces: ReadonlyArray<Uint8Array>,
  confirm: Effect.Effect<void, E>
): Effect.fn.Return<
  FileSystem.File.Info,
  PlatformError.PlatformError | E,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const { commit, info } = yield* stage({ file, pieces })
  yield* confirm
  yield* Effect.uninterruptible(commit)
  return info
}, Effect.scoped)

/**
 * Replaces the contents of several files, all or none, each as `replaceFile` does.
 *
 * **Details**
 *
 * No file is touched before the contents of all are on the disk and `confirm` has succeeded. When the system refuses one
 * of the exchanges that follow, those before it are taken back.
 *
 * **Gotchas**
 *
 * When the process is killed in the midst of the exchanges, some files are old and some new.
 *
 * @category combinators
 * @since 0.1.0
 */
export const replaceFiles = Effect.fnUntraced(function*<E>(
  replacements: ReadonlyArray<Replacement>,
  confirm: Effect.Effect<void, E>
): Effect.fn.Return<void, PlatformError.PlatformError | E, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const staged = yield* Effect.forEach(replacements, stage, { concurrency: AT_ONCE })
  // The way back is on the disk, too, before anything happens.
  const old = yield* Effect.forEach(
    replacements,
    ({ file }) => Effect.flatMap(fs.readFile(file), (bytes) => stage({ file, pieces: [bytes] })),
    { concurrency: AT_ONCE }
  )
  yield* confirm
  let done = 0
  yield* Effect.forEach(staged, ({ commit }) => Effect.andThen(commit, Effect.sync(() => done++)), { discard: true })
    .pipe(
      Effect.onError(() =>
        Effect.ignore(Effect.forEach(old.slice(0, done).toReversed(), ({ commit }) => Effect.ignore(commit)))
      ),
      Effect.uninterruptible
    )
}, Effect.scoped)

/** Puts new contents beside a file, on the disk, for as long as the scope is open; `commit` exchanges the two. */
const stage = Effect.fnUntraced(function*({ file, pieces }: Replacement) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.dirname(file)
  // Not all of a long name: with what is added it could be too long.
  const prefix = `.~${path.basename(file).slice(0, 60)}.`
  const temporary = path.join(folder, `${prefix}${randomBytes(6).toString("hex")}.tmp`)
  const old = yield* fs.stat(file)

  const write = Effect.gen(function*() {
    const handle = yield* fs.open(temporary, { flag: "wx", mode: old.mode & 0o777 })
    for (const piece of pieces) {
      for (let at = 0; at < piece.byteLength; at += PIECE_BYTES) {
        yield* Effect.uninterruptible(handle.writeAll(piece.subarray(at, at + PIECE_BYTES)))
      }
    }
    yield* Effect.uninterruptible(handle.sync)
    return yield* handle.stat
  }).pipe(Effect.scoped)

  // What the mask of the process took from the permissions, and the owner: only some processes may give files away.
  const adopt = Effect.gen(function*() {
    if (Option.isSome(old.uid) && Option.isSome(old.gid)) {
      yield* Effect.ignore(fs.chown(temporary, old.uid.value, old.gid.value))
    }
    yield* Effect.ignore(fs.chmod(temporary, old.mode & 0o7777))
  })

  const removeLeftovers = Effect.fnUntraced(function*({ mtime: now }: FileSystem.File.Info) {
    for (const name of yield* fs.readDirectory(folder)) {
      const leftover = path.join(folder, name)
      if (!name.startsWith(prefix) || !name.endsWith(".tmp") || leftover === temporary) continue
      const { mtime } = yield* fs.stat(leftover)
      // Both times are those of the file system, whatever the clock here says.
      const age = Option.getOrElse(now, () => new Date(0)).getTime() -
        Option.getOrElse(mtime, () => new Date()).getTime()
      if (age > LEFTOVER_AGE) yield* fs.remove(leftover)
    }
  }, (effect) => Effect.ignore(effect))

  // Without it, a power failure could bring the old name back. Not every system can do that.
  const syncFolder = Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(folder, { flag: "r" }), ({ sync }) => sync)))

  yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(temporary, { force: true })))
  const info = yield* write
  yield* adopt
  yield* removeLeftovers(info)
  return { info, commit: Effect.andThen(fs.rename(temporary, file), syncFolder) }
})

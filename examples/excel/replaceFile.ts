/**
 * Replaces a file so that it is the old one or the new one at every moment, whole, also when the process is killed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import { randomBytes } from "node:crypto"

/** Written at once; an interruption waits for no more than that. */
const PIECE_BYTES = 1024 * 1024

/** Temporary files of processes that were killed are removed by a later write, once they are this old. */
const LEFTOVER_AGE = 3_600_000

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
): Effect.fn.Return<FileSystem.File.Info, PlatformError.PlatformError | E, FileSystem.FileSystem | Path.Path> {
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

  return yield* Effect.gen(function*() {
    const info = yield* write
    yield* adopt
    yield* removeLeftovers(info)
    yield* confirm
    yield* Effect.uninterruptible(Effect.andThen(fs.rename(temporary, file), syncFolder))
    return info
  }).pipe(Effect.ensuring(Effect.ignore(fs.remove(temporary, { force: true }))))
})

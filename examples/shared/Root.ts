/**
 * A folder that a server works in, and the only one: no path leads out of it, whatever a client asks for.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import { fail, type FileError, NoPermission, NotFound, OutsideRoot, Refused, WrongKind } from "./FileError.ts"

/**
 * A file or folder that exists and is really below the root.
 *
 * @category models
 * @since 0.1.0
 */
export interface Place {
  /** As the user wrote it, for messages. */
  readonly given: string
  /** Absolute and without links, for reading and writing. */
  readonly path: string
  /** Without links, relative to the root, with slashes on every system, for results; empty for the root itself. */
  readonly name: string
  readonly info: FileSystem.File.Info
}

/**
 * The folder of a server.
 *
 * @category models
 * @since 0.1.0
 */
export interface Root {
  /** Absolute and without links. */
  readonly folder: string
  /** Finds what is at a path, which is relative to the folder, or absolute and below it. */
  readonly find: (path: string) => Effect.Effect<Place, FileError>
  /** The same, and it must be a file. */
  readonly file: (path: string) => Effect.Effect<Place, FileError>
  /** The same, and it must be a folder. */
  readonly directory: (path: string) => Effect.Effect<Place, FileError>
  /**
   * An absolute path as results show it: relative to the folder, with slashes, and `undefined` when it is not below it.
   * Links are not followed.
   */
  readonly nameOf: (absolute: string) => string | undefined
}

/**
 * Opens a folder; it fails when the folder does not exist.
 *
 * **Details**
 *
 * A path is judged twice: as it is written, before the file system is asked, so that nothing can be learned about
 * files outside; and without its links. On the way between the check and the use somebody who may write to the folder
 * could still exchange a part of the path for a link: the folder keeps a client in, not another user of the machine.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  folder: string
): Effect.fn.Return<Root, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const written = path.resolve(folder)
  const real = yield* fs.realPath(written)

  const below = (folder: string, file: string): string | undefined => {
    const relative = path.relative(folder, file)
    return relative === ".." || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative) ? undefined : relative
  }
  const toSlashes = (name: string | undefined) => path.sep === "/" ? name : name?.replaceAll(path.sep, "/")

  const find = Effect.fnUntraced(function*(given: string): Effect.fn.Return<Place, FileError> {
    const absolute = path.resolve(real, given)
    if (below(real, absolute) === undefined && below(written, absolute) === undefined) {
      return yield* fail(new OutsideRoot({ path: given }))
    }
    // Node refuses such a path with an exception of its own.
    if (given.includes("\0")) return yield* fail(new NotFound({ path: given }))
    const resolved = yield* Effect.catch(fs.realPath(absolute), toFileError(given))
    const name = toSlashes(below(real, resolved))
    if (name === undefined) return yield* fail(new OutsideRoot({ path: given }))
    const info = yield* Effect.catch(fs.stat(resolved), toFileError(given))
    return { given, path: resolved, name, info }
  })

  const findOf = (type: FileSystem.File.Type, needed: "file" | "folder") => (given: string) =>
    Effect.tap(
      find(given),
      ({ info }) => info.type === type ? Effect.void : fail(new WrongKind({ path: given, needed }))
    )

  return {
    folder: real,
    find,
    file: findOf("File", "file"),
    directory: findOf("Directory", "folder"),
    nameOf: (absolute) => toSlashes(below(real, absolute) ?? below(written, absolute))
  }
})

/**
 * What the system said about a path, as a `FileError`.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toFileError = (path: string) => (error: PlatformError.PlatformError): Effect.Effect<never, FileError> => {
  switch (error.reason._tag) {
    case "NotFound":
      return fail(new NotFound({ path }))
    case "PermissionDenied":
      return fail(new NoPermission({ path }))
    // `a.txt/b`, and links in a circle
    case "BadResource":
      return fail(new NotFound({ path }))
    default: {
      const { cause } = error.reason
      const code = Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined
      // a name too long for the system names nothing, too
      return code === "ENAMETOOLONG"
        ? fail(new NotFound({ path }))
        : fail(new Refused({ path, cause: error, ...(code === undefined ? {} : { code }) }))
    }
  }
}

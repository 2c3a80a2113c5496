/**
 * Changes of text files that belong together: shown as a diff, and written all or none.
 *
 * A file is text when it is UTF-8; a byte order mark and the ends of its lines stay as they are.
 *
 * @since 0.1.0
 */
import { createTwoFilesPatch } from "diff"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import { fail, FileChanged, type FileError, NoPermission, NotText, TooLarge } from "./FileError.ts"
import { replaceFiles } from "./replaceFile.ts"
import { type Place, toFileError } from "./Root.ts"

/** Of a file with more lines that go or come, the diff is not sought: it replaces all lines instead. */
const MAX_DIFF_LINES = 1_000

/**
 * A file as it was read, and as it should be.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextChange {
  readonly place: Place
  readonly before: string
  readonly after: string
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/**
 * Reads a text file of at most `maxBytes` bytes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const read = Effect.fnUntraced(function*(
  place: Place,
  maxBytes: number
): Effect.fn.Return<string, FileError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const path = place.given
  const stated = Number(place.info.size)
  if (stated > maxBytes) return yield* fail(new TooLarge({ path, bytes: stated, maxBytes }))
  const bytes = yield* Effect.catch(fs.readFile(place.path), toFileError(path))
  if (bytes.byteLength > maxBytes) return yield* fail(new TooLarge({ path, bytes: bytes.byteLength, maxBytes }))
  return decode(bytes) ?? (yield* fail(new NotText({ path })))
})

/**
 * The changes as one unified diff, as `git diff` shows them.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toDiff = (changes: ReadonlyArray<TextChange>): string =>
  changes.map(({ after, before, place }) => {
    const name = headerName(place.name)
    const lines = createTwoFilesPatch("", "", before, after, undefined, undefined, {
      context: 3,
      maxEditLength: MAX_DIFF_LINES,
      headerOptions: { includeIndex: false, includeUnderline: false, includeFileHeaders: false }
    })
    return `--- a/${name}\n+++ b/${name}\n${lines ?? wholeFile(before, after)}`
  }).join("")

/**
 * Writes the changes, all or none: it fails with `FileChanged` when a file is not what it was when it was read. An
 * interruption leaves all files as they were or changes all of them.
 *
 * **Gotchas**
 *
 * Each file is the old one or the new one at every moment; when the process is killed in the instant in which several
 * files are exchanged, some may be old and some new.
 *
 * @category combinators
 * @since 0.1.0
 */
export const write = Effect.fnUntraced(function*(
  changes: ReadonlyArray<TextChange>
): Effect.fn.Return<void, FileError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  // Renaming needs the permissions of the folder only; what its owner does not want written stays as it is.
  const readOnly = changes.find(isReadOnly)
  if (readOnly !== undefined) return yield* fail(new NoPermission({ path: readOnly.place.given }))
  const unchanged = Effect.forEach(changes, ({ before, place }) =>
    fs.readFile(place.path).pipe(
      Effect.catch(toFileError(place.given)),
      Effect.filterOrElse(
        (bytes) => decode(bytes) === before,
        () => fail(new FileChanged({ path: place.given }))
      )
    ), { discard: true })
  yield* replaceFiles(
    changes.map(({ after, place }) => ({ file: place.path, pieces: [encoder.encode(after)] })),
    unchanged
  ).pipe(
    Effect.catchTag("PlatformError", (error) => {
      const refused = error.reason._tag === "BadArgument" ? undefined : error.reason.pathOrDescriptor
      const change = changes.find(({ place }) => place.path === refused) ?? changes[0]
      return toFileError(change?.place.given ?? "")(error)
    })
  )
})

/** Letters of all languages stay readable; only what would break the line is written as an escape. */
const headerName = (name: string): string => /[\p{Cc}"\\]/u.test(name) ? JSON.stringify(name).slice(1, -1) : name

/** Too many differences to be sought: all lines go, and all lines come. */
const wholeFile = (before: string, after: string): string =>
  `@@ -1,${linesOf(before).length} +1,${linesOf(after).length} @@\n${marked("-", before)}${marked("+", after)}`

const linesOf = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

const marked = (mark: string, text: string): string =>
  linesOf(text).map((line) => mark + (line.endsWith("\n") ? line : `${line}\n\\ No newline at end of file\n`)).join("")

/**
 * Whether nobody may write to the file: then its changes are not written, though the system would allow a superuser to.
 *
 * @category guards
 * @since 0.1.0
 */
export const isReadOnly = ({ place }: TextChange): boolean => (place.info.mode & 0o222) === 0

const decode = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * A `WorkspaceEdit` of a language server as changes of files, all or none.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { FileError } from "../shared/FileError.ts"
import type { Place, Root } from "../shared/Root.ts"
import * as TextChange from "../shared/TextChange.ts"
import { type Document, withoutMark } from "./Documents.ts"
import { fail, type LspError, RenameRefused } from "./LspError.ts"
import * as Positions from "./positions.ts"
import * as Uris from "./uris.ts"
import type { FileEdit, TextEdit } from "./workspaceEdit.ts"

/**
 * What the edits are held against.
 *
 * @category models
 * @since 0.1.0
 */
export interface Context {
  readonly root: Root
  readonly maxFileBytes: number
  /** What the server had been told of a file when it was asked, if it was open. */
  readonly documentAt: (path: string) => Document | undefined
  /** Whether the server has not been told of another text of a document since; a `version` must be one of this text. */
  readonly isCurrent: (document: Document, version?: number) => boolean
  /** Whether a file is the one that the server has read, as far as that is known. */
  readonly isSame: (path: string) => Effect.Effect<boolean>
}

/**
 * The changes that the edits make, file by file, in the order of their names. It fails, for all of them, when one is
 * outside of the folder, is done to a file as a whole, overlaps another, is not in its file, or belongs to another text
 * than the one on the disk.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toChanges = Effect.fnUntraced(function*(
  fileEdits: ReadonlyArray<FileEdit>,
  context: Context
): Effect.fn.Return<ReadonlyArray<TextChange.TextChange>, LspError | FileError, FileSystem.FileSystem> {
  const files = new Map<string, { readonly place: Place; readonly byUri: Map<string, Array<TextEdit>> }>()
  for (const edit of fileEdits) {
    if (edit._tag === "FileOperation") {
      return yield* fail(new RenameRefused({ problem: "FileOperation", subject: edit.kind }))
    }
    if (edit.edits.length === 0) continue
    const place = yield* placeOf(context.root, edit.uri)
    const document = context.documentAt(place.path)
    if (document !== undefined && !context.isCurrent(document, edit.version)) {
      return yield* fail(new RenameRefused({ problem: "Version", subject: place.name }))
    }
    const { byUri } = files.get(place.path) ?? { byUri: new Map<string, Array<TextEdit>>() }
    byUri.set(edit.uri, [...byUri.get(edit.uri) ?? [], ...edit.edits])
    files.set(place.path, { place, byUri })
  }
  const changes: Array<TextChange.TextChange> = []
  for (const { byUri, place } of files.values()) {
    const before = yield* TextChange.read(place, context.maxFileBytes)
    const text = withoutMark(before)
    const document = context.documentAt(place.path)
    const isSame = document === undefined ? yield* context.isSame(place.path) : document.text === text
    if (!isSame) return yield* fail(new RenameRefused({ problem: "Version", subject: place.name }))
    // a place behind one of them is on another line for some servers, TypeScript's among them
    if (/[\u2028\u2029]/.test(text)) {
      return yield* fail(new RenameRefused({ problem: "LineEnds", subject: place.name }))
    }
    const edited = apply(text, merge(Array.from(byUri.values())))
    if (typeof edited !== "string") {
      return yield* fail(new RenameRefused({ problem: edited.problem, subject: place.name }))
    }
    if (edited !== text) {
      changes.push({ place, before, after: before.slice(0, before.length - text.length) + edited })
    }
  }
  return changes.toSorted((a, b) => a.place.name < b.place.name ? -1 : 1)
})

/**
 * A text with edits, which all speak of the text as it is; those at the same place come in their order.
 *
 * @category combinators
 * @since 0.1.0
 */
export const apply = (
  text: string,
  edits: ReadonlyArray<TextEdit>
): string | { readonly problem: "Overlap" | "BadRange" } => {
  const starts = Positions.lineStarts(text)
  const spans = edits.map(({ newText, range }, index) => ({
    from: Positions.offsetOf(text, starts, range.start),
    to: Positions.offsetOf(text, starts, range.end),
    isNumbered: [range.start, range.end].every(({ character, line }) =>
      character >= 0 && line >= 0 && line <= starts.length
    ),
    index,
    newText
  })).toSorted((a, b) => a.from - b.from || a.to - b.to || a.index - b.index)
  if (spans.some(({ from, isNumbered, to }) => !isNumbered || to < from)) return { problem: "BadRange" }
  let result = ""
  let at = 0
  for (const { from, newText, to } of spans) {
    if (from < at) return { problem: "Overlap" }
    result += text.slice(at, from) + newText
    at = to
  }
  return result + text.slice(at)
}

/** A file that a server knows under several names, through links, is edited once. */
const merge = (lists: ReadonlyArray<ReadonlyArray<TextEdit>>): ReadonlyArray<TextEdit> => {
  const different = new Map(lists.map((edits) => [JSON.stringify(edits), edits]))
  return Array.from(different.values()).flat()
}

/** The file that a server names, which must be in the folder. */
const placeOf = (root: Root, uri: string): Effect.Effect<Place, LspError | FileError> => {
  const path = Uris.toPath(uri)
  const name = path === undefined ? undefined : root.nameOf(path)
  const outside = fail(new RenameRefused({ problem: "Outside", subject: Uris.nameOutside(uri) }))
  if (path === undefined || name === undefined) return outside
  return root.file(name).pipe(
    Effect.catchReason("FileError", "OutsideRoot", () => outside)
  )
}

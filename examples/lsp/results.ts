/**
 * What the tools give: places in files with the text of their lines, and lists that end somewhere.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import type { Root } from "../shared/Root.ts"
import * as TextChange from "../shared/TextChange.ts"
import { withoutMark } from "./Documents.ts"
import * as Positions from "./positions.ts"
import type * as Protocol from "./protocol.ts"
import * as Uris from "./uris.ts"

const Line = Schema.Int.annotate({ description: "Counted from 1" })

/**
 * Schema for a place in a file.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Found = Schema.Struct({
  file: Schema.String.annotate({ description: "Relative to the server's folder; where it is outside, only its name" }),
  outside: Schema.optionalKey(Schema.Literal(true)),
  line: Schema.optionalKey(Line),
  column: Schema.optionalKey(Line),
  preview: Schema.optionalKey(Schema.String.annotate({ description: "The text of the line" }))
})

/**
 * Type of `Found`.
 *
 * @category models
 * @since 0.1.0
 */
export type Found = typeof Found.Type

/**
 * Schema for what a list says of itself beside its items.
 *
 * @category schemas
 * @since 0.1.0
 */
export const listFields = {
  total: Schema.Int.annotate({ description: "How many there are, also where not all are shown" }),
  note: Schema.optionalKey(Schema.String)
}

/**
 * Cuts a list, and says so.
 *
 * @category combinators
 * @since 0.1.0
 */
export const cut = <A>(
  { items, unreadable }: Protocol.Items<A>,
  max: number,
  otherNote?: string
): {
  readonly shown: ReadonlyArray<A>
  readonly fields: { readonly total: number; readonly note?: string }
} => {
  const notes = [
    ...(items.length > max ? [`Only the first ${max} are shown.`] : []),
    ...(unreadable > 0 ? [`${unreadable} more from the language server could not be read.`] : []),
    ...(otherNote === undefined ? [] : [otherNote])
  ]
  return {
    shown: items.slice(0, max),
    fields: { total: items.length, ...(notes.length === 0 ? {} : { note: notes.join(" ") }) }
  }
}

/**
 * Shows places of a language server; each file is read once.
 *
 * @category models
 * @since 0.1.0
 */
export type Show = (location: Protocol.Location) => Effect.Effect<Found>

/**
 * Makes the function for one result. A file outside of the folder, or one that cannot be read, has no preview, and
 * neither has a line that is not there.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeShow = Effect.fnUntraced(function*(
  root: Root,
  maxFileBytes: number
): Effect.fn.Return<Show, never, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const files = new Map<
    string,
    { readonly name: string; readonly lines: ReadonlyArray<string> | undefined } | undefined
  >()

  const look = Effect.fnUntraced(function*(uri: string) {
    const path = Uris.toPath(uri)
    const name = path === undefined ? undefined : root.nameOf(path)
    if (name === undefined) return undefined
    const place = yield* Effect.result(root.file(name))
    if (place._tag === "Failure") {
      return place.failure.reason._tag === "OutsideRoot" ? undefined : { name, lines: undefined }
    }
    const lines = yield* TextChange.read(place.success, maxFileBytes).pipe(
      Effect.map((text) => Positions.linesOf(withoutMark(text))),
      Effect.orElseSucceed(() => undefined)
    )
    return { name: place.success.name, lines }
  }, Effect.provideService(FileSystem.FileSystem, fs))

  return Effect.fnUntraced(function*({ range, uri }) {
    if (!files.has(uri)) files.set(uri, yield* look(uri))
    const file = files.get(uri)
    const position = range === undefined
      ? {}
      : { line: range.start.line + 1, column: range.start.character + 1 }
    if (file === undefined) return { file: Uris.nameOutside(uri), outside: true, ...position }
    const line = range === undefined ? undefined : file.lines?.[range.start.line]
    return { file: file.name, ...position, ...(line === undefined ? {} : { preview: Positions.preview(line) }) }
  })
})

/**
 * The edits of a language server: read strictly, since a part of a rename is worse than none.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#workspaceEdit
 * @since 0.1.0
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Range } from "./protocol.ts"

/**
 * A change of a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextEdit {
  readonly range: Range
  readonly newText: string
}

/**
 * The changes of one file, and the version of it that they belong to; or something done to the file as a whole.
 *
 * @category models
 * @since 0.1.0
 */
export type FileEdit =
  | {
    readonly _tag: "Text"
    readonly uri: string
    readonly version?: number | undefined
    readonly edits: ReadonlyArray<TextEdit>
  }
  | { readonly _tag: "FileOperation"; readonly kind: string }

const EditSchema = Schema.Struct({
  range: Schema.Struct({
    start: Schema.Struct({ line: Schema.Int, character: Schema.Int }),
    end: Schema.Struct({ line: Schema.Int, character: Schema.Int })
  }),
  newText: Schema.String
})
const readEdit = Schema.decodeUnknownOption(Schema.Struct({
  changes: Schema.optional(Schema.NullOr(Schema.Record(Schema.String, Schema.Array(EditSchema)))),
  documentChanges: Schema.optional(Schema.NullOr(Schema.Array(Schema.Union([
    Schema.Struct({
      textDocument: Schema.Struct({
        uri: Schema.String,
        version: Schema.optional(Schema.NullOr(Schema.Finite))
      }),
      edits: Schema.Array(EditSchema)
    }),
    Schema.Struct({ kind: Schema.String })
  ]))))
}))

/**
 * Reads a `WorkspaceEdit`; `documentChanges` count where both are there. `undefined` where a part of it cannot be read.
 *
 * @category decoding
 * @since 0.1.0
 */
export const read = (value: unknown): ReadonlyArray<FileEdit> | undefined => {
  if (value === null || value === undefined) return []
  const edit = Option.getOrUndefined(readEdit(value))
  if (edit === undefined) return undefined
  return edit.documentChanges?.map((change): FileEdit =>
    "kind" in change ? { _tag: "FileOperation", kind: change.kind } : {
      _tag: "Text",
      uri: change.textDocument.uri,
      version: change.textDocument.version ?? undefined,
      edits: change.edits
    }
  ) ?? Object.entries(edit.changes ?? {}).map(([uri, edits]): FileEdit => ({ _tag: "Text", uri, edits }))
}

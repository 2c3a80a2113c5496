/**
 * Pages of matches: what a match looks like to a client, and how many of them fit on a page.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { type AstGrepError, BadCursor, fail } from "./AstGrepError.ts"
import { lookedAt } from "./coverage.ts"
import { lines } from "./lines.ts"
import type { Match as Found } from "./patterns.ts"

const MAX_ITEMS = 50
const MAX_LINE_LENGTH = 200

/**
 * Schema for a position in a file.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Position = Schema.Struct({ line: Schema.Int, column: Schema.Int })

/**
 * Schema for a match.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Match = Schema.Struct({
  file: Schema.String,
  line: Schema.Int.annotate({ description: "From 1" }),
  column: Schema.Int.annotate({ description: "From 1, in UTF-16 code units, as editors and language servers count" }),
  end: Position.annotate({ description: "Behind the last character" }),
  text: Schema.String.annotate({ description: "What matches; a long one is cut and ends with …" }),
  lineText: Schema.String.annotate({ description: "The line that the match begins on; a long one is cut" }),
  captures: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)])).annotate({
    description: "What the metavariables stand for, by name: the text of a $NAME, the texts of a $$$NAME in a list"
  })
})

/**
 * Type of `Match`.
 *
 * @category models
 * @since 0.1.0
 */
export type Match = typeof Match.Type

/**
 * Schema for a page of matches.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Page = Schema.Struct({
  language: Schema.String,
  matches: Schema.Array(Match).annotate({
    description: "By path and position; of two that begin together the longer first"
  }),
  ...lookedAt,
  truncated: Schema.Boolean.annotate({ description: "Whether there may be more" }),
  stoppedBy: Schema.optionalKey(Schema.Literals(["matches", "bytes", "files", "time"])).annotate({
    description: "Which limit ended the page"
  }),
  nextCursor: Schema.optionalKey(Schema.String).annotate({ description: "Pass it as cursor to get the next page" })
})

/**
 * Type of `Page`.
 *
 * @category models
 * @since 0.1.0
 */
export type Page = typeof Page.Type

/**
 * Makes the positions of offsets in code, from 1.
 *
 * @category constructors
 * @since 0.1.0
 */
export const positions = (code: string): (offset: number) => typeof Position.Type => {
  const lineAt = lines(code)
  return (offset) => {
    const { number, start } = lineAt(offset)
    return { line: number, column: offset - start + 1 }
  }
}

/**
 * Makes a match as a client sees it. `maxLength` is for its text, and for all that its metavariables stand for together.
 *
 * @category encoding
 * @since 0.1.0
 */
export const toMatch = (
  file: string,
  code: string,
  position: (offset: number) => typeof Position.Type,
  { captures, end, start }: Found,
  maxLength: number
): Match => {
  let left = maxLength
  const take = (text: string) => {
    const cut = shorten(text, Math.max(left, 20))
    left -= cut.length
    return cut
  }
  const lineStart = code.lastIndexOf("\n", start - 1) + 1
  const line = code.slice(lineStart, lineStart + MAX_LINE_LENGTH + 1)
  return {
    file,
    ...position(start),
    end: position(end),
    text: shorten(code.slice(start, Math.min(end, start + maxLength + 1)), maxLength),
    lineText: shorten(/^[^\r\n]*/.exec(line)?.[0] ?? "", MAX_LINE_LENGTH),
    captures: Object.fromEntries(
      captures().map(({ isMultiple, name, nodes }) => {
        const named = nodes.filter((node) => node.isNamed())
        const texts = (isMultiple ? named : nodes).slice(0, MAX_ITEMS).map((node) => take(node.text()))
        if (!isMultiple) return [name, texts[0] ?? ""]
        return [name, named.length > MAX_ITEMS ? [...texts, `… and ${named.length - MAX_ITEMS} more`] : texts]
      })
    )
  }
}

/**
 * The start of a text, with an ellipsis where the rest was cut off; characters stay whole.
 *
 * @category combinators
 * @since 0.1.0
 */
export const shorten = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "")}…`

/**
 * How many bytes of JSON a value has, with the comma behind it.
 *
 * @category combinators
 * @since 0.1.0
 */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) + 1

/**
 * Where a page begins: at a file, with this many of its matches left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface Start {
  readonly file: string
  readonly skip: number
}

const Cursor = Schema.StringFromBase64Url.pipe(Schema.decodeTo(Schema.fromJsonString(Schema.Struct({
  search: Schema.String,
  file: Schema.String,
  skip: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
}))))

const encode = Schema.encodeSync(Cursor)
const decode = Schema.decodeUnknownEffect(Cursor)

/**
 * A short text that says whether two values are the same.
 *
 * @category encoding
 * @since 0.1.0
 */
export const digest = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("base64url").slice(0, 22)

/**
 * Makes a cursor for a search, which `search` stands for.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encodeCursor = (search: string, start: Start): string => encode({ search, ...start })

/**
 * Reads a cursor; one of another search is refused.
 *
 * @category decoding
 * @since 0.1.0
 */
export const decodeCursor = Effect.fnUntraced(function*(
  search: string,
  text: string
): Effect.fn.Return<Start, AstGrepError> {
  const cursor = yield* Effect.catch(decode(text), () => fail(new BadCursor({ problem: "Unreadable" })))
  return cursor.search === search ? cursor : yield* fail(new BadCursor({ problem: "OtherSearch" }))
})

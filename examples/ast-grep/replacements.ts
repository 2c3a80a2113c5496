/**
 * What a replacement looks like to a client.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TextChange from "../shared/TextChange.ts"
import { lookedAt } from "./coverage.ts"
import { jsonBytes } from "./pages.ts"

/**
 * Schema for what a replacement did, or would do.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Replaced = Schema.Struct({
  language: Schema.String,
  written: Schema.Boolean.annotate({ description: "Whether files were changed; false after a dry run" }),
  replacements: Schema.Int.annotate({ description: "How many matches are replaced" }),
  nested: Schema.Int.annotate({
    description: "Matches that stay, since they are inside of others: call again with the same pattern for them"
  }),
  files: Schema.Array(Schema.Struct({ file: Schema.String, replacements: Schema.Int })).annotate({
    description: "The files that change"
  }),
  diff: Schema.optionalKey(Schema.String).annotate({ description: "A unified diff; only after a dry run" }),
  diffCut: Schema.optionalKey(Schema.String).annotate({ description: "What of the diff is left out" }),
  version: Schema.optionalKey(Schema.String).annotate({
    description: "Pass it with dryRun false, to write exactly what this dry run shows or nothing"
  }),
  readOnly: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description: "Files that must not be written: leave them out with globs that begin with !"
  }),
  ...lookedAt
})

/**
 * Type of `Replaced`.
 *
 * @category models
 * @since 0.1.0
 */
export type Replaced = typeof Replaced.Type

/**
 * Makes the diff of as many changes as fit.
 *
 * @category encoding
 * @since 0.1.0
 */
export const toDiff = Effect.fnUntraced(function*(changes: ReadonlyArray<TextChange.TextChange>, maxBytes: number) {
  let diff = ""
  let bytes = 0
  for (const [index, change] of changes.entries()) {
    yield* Effect.yieldNow
    const next = TextChange.toDiff([change])
    bytes += jsonBytes(next)
    if (bytes <= maxBytes) {
      diff += next
      continue
    }
    const left = changes.length - index
    if (index > 0) return { diff, diffCut: `${filesOf(left)} more. Name them with globs to see what changes there.` }
    // Alone too long: as many whole lines as fit, whatever their characters take in JSON.
    const cut = next.slice(0, Math.floor(maxBytes / 6))
    const lines = cut.slice(0, cut.lastIndexOf("\n") + 1)
    const others = left > 1 ? `, and ${filesOf(left - 1)} more` : ""
    return { diff: lines, diffCut: `The rest of ${change.place.name}${others}. Fewer files or matches show all.` }
  }
  return { diff }
})

const filesOf = (count: number): string => count === 1 ? "1 file" : `${count} files`

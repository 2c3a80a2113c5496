/**
 * Which files a call has looked at, and which not.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { FileError } from "../shared/FileError.ts"
import * as Files from "./files.ts"
import type * as Languages from "./languages.ts"
import type * as Patterns from "./patterns.ts"

const MAX_LISTED = 20

/**
 * Schema for a file that was not looked at.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Skipped = Schema.Struct({ file: Schema.String, reason: Schema.String })

/**
 * The members of a result that tell which files were looked at.
 *
 * @category schemas
 * @since 0.1.0
 */
export const lookedAt = {
  filesSearched: Schema.Int.annotate({ description: "How many files were read and parsed in this call" }),
  skipped: Schema.Array(Skipped).annotate({
    description: "Files and folders that were left out, but not by .gitignore"
  }),
  partlyParsed: Schema.Array(Schema.String).annotate({
    description:
      "Files that were searched, but could not be parsed as a whole, for a syntax error or for syntax that the parser " +
      "does not know: matches may be missing in them"
  }),
  more: Schema.optionalKey(Schema.String).annotate({ description: "What is left out of these lists" }),
  note: Schema.optionalKey(Schema.String)
}

/**
 * Hears how many files of a call are done, before it returns. A slow listener makes a call slower.
 *
 * @category models
 * @since 0.1.0
 */
export type OnProgress = (progress: { readonly done: number; readonly total: number }) => Effect.Effect<void>

/**
 * Counts the files that are done, and tells it about a hundred times.
 *
 * @category constructors
 * @since 0.1.0
 */
export const reporter = (total: number, onProgress: OnProgress | undefined): Effect.Effect<void> => {
  let done = 0
  return Effect.suspend(() => {
    done++
    const isNews = done === total || Math.floor(done * 100 / total) > Math.floor((done - 1) * 100 / total)
    return onProgress !== undefined && isNews ? onProgress({ done, total }) : Effect.void
  })
}

/**
 * Collects what is said about the files of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (listed: ReadonlyArray<Files.Skipped>) => {
  const skipped = [...listed]
  const partlyParsed: Array<string> = []
  let searched = 0
  return {
    /** How many files were done. */
    get files() {
      return searched
    },
    add: (
      file: string,
      result:
        | { readonly _tag: "Success"; readonly success: { readonly hasErrors: boolean } }
        | { readonly _tag: "Failure"; readonly failure: FileError }
    ) => {
      if (result._tag === "Failure") skipped.push({ file, reason: Files.reasonOf(result.failure) })
      else {
        searched++
        if (result.success.hasErrors) partlyParsed.push(file)
      }
    },
    result: () => {
      const more = [
        ...(skipped.length > MAX_LISTED ? [`${skipped.length - MAX_LISTED} more were skipped`] : []),
        ...(partlyParsed.length > MAX_LISTED ? [`${partlyParsed.length - MAX_LISTED} more are partly parsed`] : [])
      ]
      return {
        filesSearched: searched,
        skipped: skipped.slice(0, MAX_LISTED),
        partlyParsed: partlyParsed.slice(0, MAX_LISTED),
        ...(more.length > 0 && { more: `${more.join(", ")}.` })
      }
    }
  }
}

/**
 * Says what may explain a result without matches. `listed` is undefined when it is not all that there is.
 *
 * @category constructors
 * @since 0.1.0
 */
export const noteOf = (
  { language, pattern }: { readonly language: Languages.Language; readonly pattern: Patterns.Pattern },
  globs: ReadonlyArray<string> | undefined,
  matches: number,
  listed: Files.Listed | undefined
): { readonly note?: string } => {
  if (matches > 0) return {}
  if (listed?.files.length === 0) {
    const globbed = globs === undefined || globs.length === 0 ? "" : " for these globs"
    return {
      note:
        `There is no ${language.name} file${globbed}: none that ends with ${language.endings.join(" or ")} and is ` +
        "not ignored by a .gitignore. Check language and globs."
    }
  }
  return pattern.suspect === undefined ? {} : {
    note: `${pattern.suspect} was taken as a name, since metavariables are capitals, such as ` +
      `${pattern.suspect.toUpperCase()}.`
  }
}

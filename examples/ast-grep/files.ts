/**
 * Lists the files below the root folder that a search looks at, always in the same order.
 *
 * Links are not followed: what they lead to is outside, or it is found where it is. `.git` is never looked at,
 * `node_modules` only where a `.gitignore` takes it back in, and what the `.gitignore` files below the root say is left
 * out, nested ones and exceptions too.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Path from "effect/Path"
import ignore from "ignore"
import type { FileError } from "../shared/FileError.ts"
import { type Root, toFileError } from "../shared/Root.ts"
import * as TextChange from "../shared/TextChange.ts"

const MAX_DEPTH = 64
const MAX_IGNORE_BYTES = 256 * 1024
/** Each one more multiplies the time that a rule can take by the length of a path. */
const MAX_DOUBLE_STARS = 3

/**
 * A file or folder that was not looked at.
 *
 * @category models
 * @since 0.1.0
 */
export interface Skipped {
  readonly file: string
  readonly reason: string
}

/**
 * Which files to list.
 *
 * @category models
 * @since 0.1.0
 */
export interface Wanted {
  /** Whether a file is listed, by its path from the root, with slashes. */
  readonly matches: (path: string) => boolean
  /** Whether a folder is left out with all that is in it. */
  readonly excludes: (folder: string) => boolean
  /** The first path that may be listed. @default the first one there is */
  readonly from?: string | undefined
  /** Most files of a list. */
  readonly maxFiles: number
  /** When to stop, in milliseconds since 1970; a list has some progress in any case. */
  readonly deadline: number
}

/**
 * Files in the order of their paths.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listed {
  readonly files: ReadonlyArray<string>
  readonly skipped: ReadonlyArray<Skipped>
  /** Where the list ends before its time, and why. */
  readonly rest: { readonly from: string; readonly because: "files" | "time" } | undefined
}

/**
 * Says which of two paths is the first: folder by folder, in the order of UTF-16 code units.
 *
 * @category combinators
 * @since 0.1.0
 */
export const compare = (left: string, right: string): number => {
  const [lefts, rights] = [left.split("/"), right.split("/")]
  for (const [index, name] of lefts.entries()) {
    const other = rights[index]
    if (other === undefined) return 1
    if (name !== other) return name < other ? -1 : 1
  }
  return lefts.length - rights.length
}

/**
 * Lists files.
 *
 * @category constructors
 * @since 0.1.0
 */
export const list = Effect.fnUntraced(function*(
  root: Root,
  wanted: Wanted
): Effect.fn.Return<Listed, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const files: Array<string> = []
  const skipped: Array<Skipped> = []
  let rest: Listed["rest"]

  const entriesOf = Effect.fnUntraced(function*(folder: string) {
    // A folder that has become a link since it was listed is none that was asked for.
    const place = yield* root.directory(folder === "" ? "." : folder)
    if (place.name !== folder) return []
    const entries = yield* Effect.catch(fs.readDirectoryEntries(place.path), toFileError(folder))
    return entries.toSorted((left, right) => left.name < right.name ? -1 : 1)
  })

  const rulesOf = Effect.fnUntraced(
    function*(folder: string): Effect.fn.Return<Rules, FileError, FileSystem.FileSystem> {
      const place = yield* root.file(`${folder}.gitignore`)
      const text = yield* TextChange.read(place, MAX_IGNORE_BYTES)
      const rules = text.replace(/^\uFEFF/, "").split(/\r?\n/)
      const simple = rules.filter((rule) => (rule.match(/\*\*/g)?.length ?? 0) <= MAX_DOUBLE_STARS)
      if (simple.length < rules.length) {
        skipped.push({ file: place.name, reason: `rules with more than ${MAX_DOUBLE_STARS} ** were left out` })
      }
      return { folder, rules: newRules().add(simple) }
    }
  )

  const visit = Effect.fnUntraced(function*(
    folder: string,
    depth: number,
    above: ReadonlyArray<Rules>
  ): Effect.fn.Return<void, never, FileSystem.FileSystem> {
    const skip = (file: string) => (error: FileError) =>
      Effect.sync(() => {
        skipped.push({ file, reason: reasonOf(error) })
      })
    const entries = yield* Effect.catch(
      entriesOf(folder),
      (error) => Effect.as(skip(folder === "" ? "." : folder)(error), [])
    )
    const prefix = folder === "" ? "" : `${folder}/`
    const own = entries.some(({ name, type }) => name === ".gitignore" && type === "File")
      ? yield* Effect.catch(rulesOf(prefix), (error) => Effect.as(skip(`${prefix}.gitignore`)(error), undefined))
      : undefined
    const rules = own === undefined ? above : [...above, own]
    for (const { name, type } of entries) {
      const path = prefix + name
      if (type === "Directory") {
        if (name === ".git" || isBefore(path, wanted.from)) continue
        if (wanted.excludes(path) || isIgnored(rules, `${path}/`)) continue
        if (depth >= MAX_DEPTH) {
          skipped.push({ file: path, reason: "too many folders in each other" })
          continue
        }
        const isNext = wanted.from === path || wanted.from?.startsWith(`${path}/`) === true
        const isLate = !isNext && (yield* Clock.currentTimeMillis) >= wanted.deadline
        if (isLate) rest = { from: path, because: "time" }
        else yield* visit(path, depth + 1, rules)
      } else if (type === "File") {
        if (wanted.from !== undefined && compare(path, wanted.from) < 0) continue
        if (!wanted.matches(path) || isIgnored(rules, path)) continue
        if (files.length >= wanted.maxFiles) rest = { from: path, because: "files" }
        else files.push(path)
      }
      if (rest !== undefined) return
    }
  })

  yield* visit("", 0, [{ folder: "", rules: newRules().add("node_modules/") }])
  return { files, skipped, rest }
})

/**
 * Why a file was not looked at, in a few words.
 *
 * @category combinators
 * @since 0.1.0
 */
export const reasonOf = ({ reason }: FileError): string => {
  switch (reason._tag) {
    case "TooLarge":
      return `larger than ${reason.maxBytes} bytes`
    case "TooSlow":
      return "takes too long to parse"
    case "NotText":
      return "not text in UTF-8"
    case "NoPermission":
      return "may not be read by this server"
    case "OutsideRoot":
    case "NotFound":
    case "WrongKind":
      return "no longer there"
    case "FileChanged":
    case "Refused":
      return "could not be read"
  }
}

/** What the `.gitignore` of a folder says; `folder` ends with a slash, or is empty. */
interface Rules {
  readonly folder: string
  readonly rules: ignore.Ignore
}

/** As Git does it where names that differ in case only are different files. */
const newRules = () => ignore({ ignorecase: false })

/** The innermost file that says something about a path decides. A folder has a slash at its end. */
const isIgnored = (all: ReadonlyArray<Rules>, path: string): boolean => {
  for (const { folder, rules } of all.toReversed()) {
    const { ignored, unignored } = rules.test(path.slice(folder.length))
    if (unignored) return false
    if (ignored && !isTakenBack(folder, rules, path)) return true
  }
  return false
}

/**
 * Whether the rules only ignore the path because they ignore its folder, which rules further in take back: it would
 * not be looked at otherwise. What they say about the bare name still counts.
 */
const isTakenBack = (folder: string, rules: ignore.Ignore, path: string): boolean => {
  const parent = path.replace(/[^/]+\/?$/, "")
  if (parent.length <= folder.length) return false
  return rules.test(parent.slice(folder.length)).ignored && !rules.test(path.slice(parent.length)).ignored
}

/** Whether all that is in a folder comes before a path. */
const isBefore = (folder: string, path: string | undefined): boolean =>
  path !== undefined && compare(folder, path) < 0 && !path.startsWith(`${folder}/`)

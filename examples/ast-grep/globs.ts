/**
 * Says by globs which files are meant.
 *
 * `*` and `?` stay within a name, `**` is any number of folders, `[a-z]` and `[!a-z]` one character, `{a,b}` one of
 * several. A glob without a slash is for a name in any folder, one with a slash for a path from the root; one that
 * means a folder means all that is below it.
 *
 * Node's own `path.matchesGlob` warns on standard error before Node 24.8, and both it and regular expressions can take
 * very long for a glob with many stars. Here the time is at most that of all pairs of a character of the glob and one of
 * the path.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type AstGrepError, BadGlob, fail } from "./AstGrepError.ts"

const MAX_GLOBS = 50
const MAX_LENGTH = 500
const MAX_ALTERNATIVES = 100

/**
 * Whether files are meant, and folders left out with all they have.
 *
 * @category models
 * @since 0.1.0
 */
export interface Globs {
  /** Whether a file is included and not excluded. */
  readonly matches: (path: string) => boolean
  /** Whether a folder is excluded. */
  readonly excludes: (folder: string) => boolean
}

/**
 * Reads globs: those with a leading `!` exclude, the others include, and without one of these all files are included.
 * Their order is of no matter.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(globs: ReadonlyArray<string>): Effect.fn.Return<Globs, AstGrepError> {
  if (globs.length > MAX_GLOBS) {
    return yield* fail(new BadGlob({ glob: globs[MAX_GLOBS] ?? "", problem: "TooMany" }))
  }
  const included: Array<Glob> = []
  const excluded: Array<Glob> = []
  for (const glob of globs) {
    const parsed = parse(glob.replace(/^!/, ""))
    if (typeof parsed === "string") return yield* fail(new BadGlob({ glob, problem: parsed }))
    ;(glob.startsWith("!") ? excluded : included).push(...parsed)
  }
  const excludes = (path: string) => matchesAny(excluded, path.split("/"))
  return {
    matches: (path) => (included.length === 0 || matchesAny(included, path.split("/"))) && !excludes(path),
    excludes
  }
})

/** One character of a name: itself, one of a set, or any number of any. */
type Token = { readonly matches: (character: string) => boolean } | "*"

/** The names of a path, or any number of folders. */
type Glob = ReadonlyArray<ReadonlyArray<Token> | "**">

const parse = (glob: string): ReadonlyArray<Glob> | BadGlob["problem"] => {
  if (glob.trim() === "") return "Empty"
  if (glob.length > MAX_LENGTH) return "TooLong"
  if (/[\0\p{Surrogate}]/u.test(glob)) return "Characters"
  if (glob.includes("\\")) return "Backslash"
  const alternatives = expand(glob)
  if (typeof alternatives === "string") return alternatives
  const parsed: Array<Glob> = []
  for (const alternative of alternatives) {
    if (/^(\/|[A-Za-z]:)/.test(alternative)) return "Absolute"
    const names = alternative.split("/").filter((name) => name !== "" && name !== ".")
    if (names.includes("..")) return "Parent"
    if (names.length === 0) {
      parsed.push(["**"])
      continue
    }
    const segments: Array<ReadonlyArray<Token> | "**"> = alternative.includes("/") ? [] : ["**"]
    for (const name of names) {
      const tokens = name === "**" ? name : tokensOf(name)
      if (tokens === undefined) return "Bracket"
      segments.push(tokens)
    }
    parsed.push(segments)
  }
  return parsed
}

const TOKEN = /\*+|\[!?\]?[^\]/]*\]|[^]/gu

const tokensOf = (name: string): ReadonlyArray<Token> | undefined => {
  const tokens: Array<Token> = []
  for (const [text] of name.matchAll(TOKEN)) {
    if (text.startsWith("*")) tokens.push("*")
    else if (text === "?") tokens.push({ matches: () => true })
    else if (text === "[") return undefined
    else if (text.startsWith("[") && text.length > 1) {
      const negated = text.startsWith("[!")
      const characters = Array.from(text.slice(negated ? 2 : 1, -1))
      const ranges: Array<readonly [from: string, to: string]> = []
      for (let at = 0; at < characters.length; at++) {
        const from = characters[at] ?? ""
        const isRange = characters[at + 1] === "-" && at + 2 < characters.length
        const to = isRange ? characters[at + 2] ?? from : from
        if (codePoint(from) > codePoint(to)) return undefined
        ranges.push([from, to])
        if (isRange) at += 2
      }
      if (ranges.length === 0) return undefined
      tokens.push({
        matches: (character) =>
          negated !==
            ranges.some(([from, to]) =>
              codePoint(from) <= codePoint(character) && codePoint(character) <= codePoint(to)
            )
      })
    } else tokens.push({ matches: (character) => character === text })
  }
  return tokens
}

const codePoint = (character: string): number => character.codePointAt(0) ?? 0

/** A glob for each choice in its braces. */
const expand = (glob: string): ReadonlyArray<string> | "Brace" | "TooManyBraces" => {
  const done: Array<string> = []
  const rest = [glob]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const braces = innermost(next)
    if (braces === undefined) done.push(next)
    else if (braces === "Brace") return "Brace"
    else {
      const [start, end] = braces
      for (const choice of next.slice(start + 1, end).split(",").toReversed()) {
        rest.push(next.slice(0, start) + choice + next.slice(end + 1))
      }
    }
    if (done.length + rest.length > MAX_ALTERNATIVES) return "TooManyBraces"
  }
  return done
}

/** The first braces that have none in them; those in brackets are characters. */
const innermost = (glob: string): readonly [start: number, end: number] | "Brace" | undefined => {
  let start = -1
  for (const { 0: text, index } of glob.matchAll(/\[[^\]/]*\]|[{}]/g)) {
    if (text === "{") start = index
    else if (text === "}") return start < 0 ? "Brace" : [start, index]
  }
  return start < 0 ? undefined : "Brace"
}

const matchesAny = (globs: ReadonlyArray<Glob>, names: ReadonlyArray<string>): boolean =>
  globs.some((glob) => matchesPath(glob, names))

/**
 * Whether the glob matches the path or a folder that it is in. `*` takes as little as it can, and when the rest does not
 * fit, only the last one takes more: those before it would not change what is left.
 */
const matchesPath = (glob: Glob, names: ReadonlyArray<string>): boolean => {
  let [at, name, again, from] = [0, 0, -1, 0]
  while (name < names.length) {
    const segment = glob[at]
    // all of the glob is used up: the path is in what it means
    if (segment === undefined && at > 0) return true
    if (segment === "**") {
      again = ++at
      from = name
      if (at === glob.length) return true
    } else if (segment !== undefined && matchesName(segment, Array.from(names[name] ?? ""))) {
      at++
      name++
    } else if (again >= 0) {
      at = again
      name = ++from
    } else return false
  }
  return glob.slice(at).every((segment) => segment === "**")
}

const matchesName = (tokens: ReadonlyArray<Token>, name: ReadonlyArray<string>): boolean => {
  let [at, index, again, from] = [0, 0, -1, 0]
  while (index < name.length) {
    const token = tokens[at]
    if (token === "*") {
      again = ++at
      from = index
    } else if (token?.matches(name[index] ?? "") === true) {
      at++
      index++
    } else if (again >= 0) {
      at = again
      index = ++from
    } else return false
  }
  return tokens.slice(at).every((token) => token === "*")
}

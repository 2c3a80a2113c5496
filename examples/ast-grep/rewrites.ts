/**
 * Makes new code out of a rewrite and what the metavariables of a match stand for.
 *
 * @since 0.1.0
 */
import type { SgNode } from "@ast-grep/napi"
import * as Effect from "effect/Effect"
import { type AstGrepError, BadRewrite, fail } from "./AstGrepError.ts"
import { lines } from "./lines.ts"
import type { Capture, Match } from "./patterns.ts"

const MAX_LENGTH = 20_000
const CHECKPOINT_MATCHES = 1_000

/**
 * A rewrite that is ready to be used.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rewrite {
  /** Replaces the outermost matches in the code; `undefined` when it gets longer than `maxLength` code units. */
  readonly apply: (
    code: string,
    matches: ReadonlyArray<Match>,
    maxLength: number
  ) => Effect.Effect<Rewritten | undefined>
}

/**
 * New code, and how it came to be.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rewritten {
  readonly code: string
  readonly replaced: number
  /** Matches that stayed as they were, since they are inside of others. */
  readonly nested: number
}

/**
 * Reads a rewrite for a pattern that has metavariables of these names. White space around it has no meaning, as around a
 * pattern.
 *
 * @category constructors
 * @since 0.1.0
 */
export const compile = Effect.fnUntraced(function*(
  text: string,
  names: ReadonlyArray<string>
): Effect.fn.Return<Rewrite, AstGrepError> {
  const known = names.map((name) => `$${name}`)
  if (text.length > MAX_LENGTH) {
    return yield* fail(new BadRewrite({ problem: "TooLong", known, maxLength: MAX_LENGTH }))
  }
  if (/[\0\p{Surrogate}]/u.test(text)) return yield* fail(new BadRewrite({ problem: "Characters", known }))
  const parts: Array<Part> = []
  let from = 0
  const rewrite = text.trim().replaceAll(/\r\n?/g, "\n")
  for (const match of rewrite.matchAll(VARIABLE)) {
    const [variable, name = ""] = match
    const after = rewrite[match.index + variable.length] ?? ""
    const isKnown = names.includes(name)
    // a name of the language, such as $Scope
    if (!isKnown && name !== "" && /[a-z]/.test(after)) continue
    if (!isKnown) {
      const problem = name === "" || name.startsWith("_") ? "Unnamed" : "UnknownVariable"
      return yield* fail(new BadRewrite({ problem, variable, known }))
    }
    parts.push({ text: rewrite.slice(from, match.index), name })
    from = match.index + variable.length
  }
  parts.push({ text: rewrite.slice(from), name: undefined })
  return { apply: (code, matches, maxLength) => apply(code, matches, parts, maxLength) }
})

/** Text, and the metavariable behind it. */
interface Part {
  readonly text: string
  readonly name: string | undefined
}

const VARIABLE = /\${1,3}([A-Z_][A-Z0-9_]*)|(?<!\$)\$\$\$(?![$\w])/g

const apply = Effect.fnUntraced(function*(
  code: string,
  matches: ReadonlyArray<Match>,
  parts: ReadonlyArray<Part>,
  maxLength: number
): Effect.fn.Return<Rewritten | undefined> {
  const indentAt = indents(code)
  const newline = /\r?\n/.exec(code)?.[0] ?? "\n"
  const pieces: Array<string> = []
  let end = 0
  let replaced = 0
  let length = code.length
  for (const match of matches) {
    if (match.start < end) continue
    const made = replacement(code, indentAt, match, parts, newline, maxLength)
    length += made.length
    if (length > maxLength) return undefined
    pieces.push(code.slice(end, match.start), made)
    end = match.end
    // other calls go on
    if (++replaced % CHECKPOINT_MATCHES === 0) yield* Effect.yieldNow
  }
  return { code: pieces.join("") + code.slice(end), replaced, nested: matches.length - replaced }
})

/**
 * Lines of the rewrite stand as far in as the line that the match begins on, and lines of what a metavariable stands for
 * as far as they did before, seen from the line that it begins on.
 */
const replacement = (
  code: string,
  indentAt: IndentAt,
  match: Match,
  parts: ReadonlyArray<Part>,
  newline: string,
  maxLength: number
): string => {
  const captures = new Map(match.captures().map((capture) => [capture.name, capture]))
  const base = indentAt(match.start)
  let made = ""
  let indent = base
  let withoutComma = false
  // ends with a comment that takes the rest of the line
  let isOpen = false
  for (const [index, { name, text: written }] of parts.entries()) {
    let text = withoutComma ? written.replace(/^\s*,\s*/, "") : written
    if (isOpen && (text !== "" || name !== undefined)) {
      if (!/^[ \t]*\n/.test(text)) text = `\n${text.replace(/^[ \t]+/, "")}`
      isOpen = false
    }
    const lines = text.split("\n")
    withoutComma = false
    made += lines.map((line, at) => {
      const isBlank = line === "" && (at < lines.length - 1 || name === undefined)
      return at === 0 || isBlank ? line : base + line
    }).join(newline)
    if (lines.length > 1) indent = base + (/^[ \t]*/.exec(lines.at(-1) ?? "")?.[0] ?? "")
    const capture = name === undefined ? undefined : captures.get(name)
    if (capture === undefined) continue
    if (made.length > maxLength) return made
    const { comments, isOpenEnd, list, separator } = textOf(code, indentAt, capture, indent)
    const next = parts[index + 1]?.text ?? ""
    const isBeforeComma = capture.isMultiple && /^\s*,/.test(next)
    const isAfterStart = /[([{<,]\s*$/.test(made)
    // a comma comes before comments that end with their line
    const isMoved = isBeforeComma && isOpenEnd && comments !== "" && list !== ""
    made += list + (isMoved ? "," : isBeforeComma ? "" : separator) + comments
    isOpen = isOpenEnd
    withoutComma = isMoved
    // what stands for nothing takes a comma with it
    if (list !== "" || !capture.isMultiple) continue
    if (isBeforeComma && isAfterStart) {
      withoutComma = true
      if (comments !== "" && !isOpenEnd) made += " "
    } else if (comments === "" && /^\s*[)\]}>]/.test(next)) made = made.replace(/\s*,\s*$/, "")
  }
  // what follows on the line of the match would belong to the comment
  if (isOpen && /^[ \t]*\S/.test(code.slice(match.end))) made += newline + base
  return made
}

/** What a metavariable stands for: the comments at its end, and a comma before them, apart. */
const textOf = (code: string, indentAt: IndentAt, { isMultiple, nodes }: Capture, indent: string) => {
  const [first, last] = [nodes[0], nodes.at(-1)]
  if (first === undefined || last === undefined) return { list: "", separator: "", comments: "", isOpenEnd: false }
  const start = first.range().start.index
  const old = indentAt(start)
  const isText = isTextIn(nodes)
  const take = (from: number, to: number) => {
    const text = code.slice(from, to)
    if (old === indent || !text.includes("\n")) return text
    return text.replaceAll(
      /\n([ \t]*)(?=[^\r\n \t])/g,
      (line, spaces: string, at: number) =>
        isText(from + at) || !spaces.startsWith(old) ? line : `\n${indent}${spaces.slice(old.length)}`
    )
  }
  const end = last.range().end.index
  const isOpenEnd = isLineComment(last)
  if (!isMultiple) return { list: take(start, end), separator: "", comments: "", isOpenEnd }
  const lastCode = nodes.findLastIndex((node) => !isComment(node))
  const isSeparated = nodes[lastCode]?.text() === ","
  const listEnd = nodes[isSeparated ? lastCode - 1 : lastCode]?.range().end.index ?? start
  const separatorEnd = nodes[lastCode]?.range().end.index ?? start
  return {
    list: take(start, listEnd),
    separator: take(listEnd, separatorEnd),
    comments: take(separatorEnd, end),
    isOpenEnd
  }
}

/** Whether it ends with a comment that takes the rest of its line; that can be in a statement without a semicolon. */
const isLineComment = (node: SgNode): boolean => {
  let last = node
  for (let next = last.children().at(-1); next !== undefined; next = last.children().at(-1)) last = next
  return isComment(last) && last.text().startsWith("//")
}

const isComment = (node: SgNode): boolean => String(node.kind()).endsWith("comment")

const isTextIn = (nodes: ReadonlyArray<SgNode>): (offset: number) => boolean => {
  let found: ReturnType<typeof texts> | undefined
  return (offset) => {
    found ??= nodes.flatMap(texts)
    return found.some(({ end, start }) => start <= offset && offset < end)
  }
}

/** The white space at the start of the line that an offset is on. */
const indents = (code: string): IndentAt => {
  const lineAt = lines(code)
  return (offset) => /^[ \t]*/.exec(code.slice(lineAt(offset).start, offset))?.[0] ?? ""
}

type IndentAt = (offset: number) => string

/** Tokens over several lines whose white space has a meaning, such as the text of a template string. */
const texts = (root: SgNode): ReadonlyArray<{ readonly start: number; readonly end: number }> => {
  const found: Array<{ readonly start: number; readonly end: number }> = []
  const rest = [root]
  for (let node = rest.pop(); node !== undefined; node = rest.pop()) {
    const { end, start } = node.range()
    if (start.line === end.line) continue
    if (!node.isLeaf()) rest.push(...node.children())
    else if (!/^(comment|html_comment|jsx_text)$/.test(String(node.kind()))) {
      found.push({ start: start.index, end: end.index })
    }
  }
  return found
}

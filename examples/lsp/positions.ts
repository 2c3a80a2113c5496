/**
 * Positions in a text: as people count them (line and column from 1, or a name on a line), and as language servers do
 * (line and character from 0). Columns and characters are UTF-16 code units, as in the texts of JavaScript.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { AmbiguousPosition, fail, type LspError, NoSuchColumn, NoSuchLine, NoSuchSymbol } from "./LspError.ts"
import type { Position } from "./protocol.ts"

const MAX_PREVIEW = 200

/**
 * A position as a tool takes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Place {
  /** The file as the user wrote it, for messages. */
  readonly file: string
  readonly line: number
  readonly column?: number | undefined
  readonly symbol?: string | undefined
}

/**
 * The lines of a text without their ends, which are `\n`, `\r\n` or `\r`, as the protocol says.
 *
 * @category constructors
 * @since 0.1.0
 */
export const linesOf = (text: string): ReadonlyArray<string> => text.split(/\r\n|\n|\r/)

/**
 * Where each line of a text begins, in code units.
 *
 * @category constructors
 * @since 0.1.0
 */
export const lineStarts = (text: string): ReadonlyArray<number> => [
  0,
  ...Array.from(text.matchAll(/\r\n|\n|\r/g), ({ 0: end, index }) => index + end.length)
]

/**
 * The position that a user means.
 *
 * @category decoding
 * @since 0.1.0
 */
export const find = (text: string, { column, file, line, symbol }: Place): Effect.Effect<Position, LspError> => {
  if ((column === undefined) === (symbol === undefined)) {
    return fail(new AmbiguousPosition({ given: column === undefined ? "neither" : "both" }))
  }
  const lines = linesOf(text)
  const content = lines[line - 1]
  if (content === undefined) return fail(new NoSuchLine({ file, line, lines: lines.length }))
  if (column !== undefined) {
    // one more than there are: behind the last
    return column > content.length + 1
      ? fail(new NoSuchColumn({ line, column, columns: content.length }))
      : Effect.succeed({ line: line - 1, character: column - 1 })
  }
  const name = symbol ?? ""
  const character = indexOfWord(content, name)
  return character < 0
    ? fail(new NoSuchSymbol({ line, symbol: name, names: namesOf(content) }))
    : Effect.succeed({ line: line - 1, character })
}

/**
 * The offset of a position of the protocol in a text whose lines begin at `starts`: a character behind the end of its
 * line is the end of the line, and a line behind the last is the end of the text, as the protocol says.
 *
 * @category decoding
 * @since 0.1.0
 */
export const offsetOf = (text: string, starts: ReadonlyArray<number>, { character, line }: Position): number => {
  const start = starts[line]
  if (start === undefined) return text.length
  const next = starts[line + 1]
  const end = next === undefined ? text.length : next - (text.slice(next - 2, next) === "\r\n" ? 2 : 1)
  return Math.min(start + character, end)
}

/**
 * A line as a result shows it: not longer than a person reads.
 *
 * @category encoding
 * @since 0.1.0
 */
export const preview = (line: string): string => {
  const text = line.trimEnd()
  // half of a surrogate pair is no character
  return text.length > MAX_PREVIEW ? `${text.slice(0, MAX_PREVIEW).replace(/[\uD800-\uDBFF]$/, "")}…` : text
}

const WORD = /[\p{ID_Continue}$\u200c\u200d]/u

/** The first place of a name on a line where it is not a part of a longer one. */
const indexOfWord = (line: string, name: string): number => {
  if (name === "") return -1
  const isWordAt = (text: string | undefined) => text !== undefined && WORD.test(text)
  for (let at = line.indexOf(name); at >= 0; at = line.indexOf(name, at + 1)) {
    const before = lastCharacter(line.slice(0, at))
    const after = firstCharacter(line.slice(at + name.length))
    const joinsBefore = isWordAt(firstCharacter(name)) && isWordAt(before)
    const joinsAfter = isWordAt(lastCharacter(name)) && isWordAt(after)
    if (!joinsBefore && !joinsAfter) return at
  }
  return -1
}

/**
 * Whether this word stands at a position, which may be in the midst of it.
 *
 * @category guards
 * @since 0.1.0
 */
export const isWordAt = (text: string, { character, line }: Position, word: string): boolean => {
  const content = linesOf(text)[line] ?? ""
  for (let at = content.indexOf(word); at >= 0 && at <= character; at = content.indexOf(word, at + 1)) {
    const before = lastCharacter(content.slice(0, at))
    const after = firstCharacter(content.slice(at + word.length))
    const isWhole = (before === undefined || !WORD.test(before)) && (after === undefined || !WORD.test(after))
    if (isWhole && character <= at + word.length) return true
  }
  return false
}

const firstCharacter = (text: string): string | undefined => text.match(/^./su)?.[0]

const lastCharacter = (text: string): string | undefined => text.match(/.$/su)?.[0]

const namesOf = (line: string): ReadonlyArray<string> => [
  ...new Set(line.match(/[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/gu) ?? [])
]

/**
 * Reads and replaces single values of a JSON text and leaves every other byte as it is.
 *
 * All of it expects text that `JSON.parse` has accepted.
 */

const SPACE = /[ \t\n\r]*/y

const skipSpace = (text: string, at: number): number => {
  SPACE.lastIndex = at
  SPACE.exec(text)
  return SPACE.lastIndex
}

const endOfString = (text: string, at: number): number => {
  let end = at + 1
  while (text[end] !== "\"") end += text[end] === "\\" ? 2 : 1
  return end + 1
}

const endOfValue = (text: string, at: number): number => {
  if (text[at] === "\"") return endOfString(text, at)
  let depth = 0
  let end = at
  for (;;) {
    const char = text[end]
    if (char === "\"") {
      end = endOfString(text, end)
      continue
    }
    if (depth === 0 && (char === undefined || ",]} \t\n\r".includes(char))) return end
    if (char === "{" || char === "[") depth++
    if (char === "}" || char === "]") depth--
    end++
    if (depth === 0 && (char === "}" || char === "]")) return end
  }
}

/** Where a value begins and ends. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Where the value is that these member names lead to; of two members with one name the last, as `JSON.parse` sees it. */
export const locate = (text: string, path: ReadonlyArray<string>): Span | undefined => {
  let span: Span = { start: skipSpace(text, 0), end: text.length }
  for (const name of path) {
    if (text[span.start] !== "{") return undefined
    let found: Span | undefined
    let at = skipSpace(text, span.start + 1)
    while (text[at] === "\"") {
      const keyEnd = endOfString(text, at)
      const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
      const end = endOfValue(text, start)
      if (JSON.parse(text.slice(at, keyEnd)) === name) found = { start, end }
      at = skipSpace(text, end)
      if (text[at] === ",") at = skipSpace(text, at + 1)
    }
    if (found === undefined) return undefined
    span = found
  }
  return span
}

/** The text of a value, as it was written. */
export const read = (text: string, path: ReadonlyArray<string>): string | undefined => {
  const span = locate(text, path)
  return span && text.slice(span.start, span.end)
}

/** The text with another value in that place; unchanged where there is none. */
export const replace = (text: string, path: ReadonlyArray<string>, value: string): string => {
  const span = locate(text, path)
  return span === undefined ? text : text.slice(0, span.start) + value + text.slice(span.end)
}

/** The text on one line. Outside of strings a line break is only space, and inside it is escaped. */
export const oneLine = (text: string): string => text.replaceAll(/[\r\n]/g, " ")

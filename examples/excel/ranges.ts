/**
 * Cell addresses, ranges and formulas as text.
 *
 * Everything here is pure. A range is a `Box` of row and column numbers that start at 1, as in Excel.
 *
 * @since 0.1.0
 */

/** The last row and column that Excel knows: "XFD1048576". */
const LAST_ROW = 1_048_576
const LAST_COLUMN = 16_384

/**
 * A rectangle of cells, both corners included.
 *
 * @category models
 * @since 0.1.0
 */
export interface Box {
  readonly top: number
  readonly left: number
  readonly bottom: number
  readonly right: number
}

/**
 * What a range text says: `undefined` where it leaves a side open, as "B:D" does for its rows.
 *
 * @category models
 * @since 0.1.0
 */
export interface Selection {
  readonly rows: readonly [first: number, last: number] | undefined
  readonly columns: readonly [first: number, last: number] | undefined
}

/**
 * Returns the letters of a column: 1 is "A", 28 is "AB".
 *
 * @category encoding
 * @since 0.1.0
 */
export const columnName = (column: number): string => {
  let name = ""
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    name = String.fromCharCode(65 + ((rest - 1) % 26)) + name
  }
  return name
}

/**
 * Returns the number of a column from its letters, in any case.
 *
 * @category decoding
 * @since 0.1.0
 */
export const columnNumber = (letters: string): number => {
  let column = 0
  for (const letter of letters.toUpperCase()) {
    column = column * 26 + letter.charCodeAt(0) - 64
  }
  return column
}

/**
 * Writes a range as text: "A1:C20", or "B2" for one cell.
 *
 * @category encoding
 * @since 0.1.0
 */
export const format = (box: Box): string => {
  const start = `${columnName(box.left)}${box.top}`
  const end = `${columnName(box.right)}${box.bottom}`
  return start === end ? start : `${start}:${end}`
}

const CELLS = /^([A-Z]{1,3})([1-9][0-9]{0,6})(?::([A-Z]{1,3})([1-9][0-9]{0,6}))?$/
const COLUMNS = /^([A-Z]{1,3}):([A-Z]{1,3})$/
const ROWS = /^([1-9][0-9]{0,6}):([1-9][0-9]{0,6})$/

const span = (a: number, b: number): readonly [number, number] => [Math.min(a, b), Math.max(a, b)]
const rowSpan = (a: string, b: string) => span(Number(a), Number(b))
const columnSpan = (a: string, b: string) => span(columnNumber(a), columnNumber(b))

const onSheet = (selection: Selection): Selection | undefined =>
  (selection.rows?.[1] ?? 1) <= LAST_ROW && (selection.columns?.[1] ?? 1) <= LAST_COLUMN ? selection : undefined

/**
 * Reads "A1:C20", "B2", "B:D" or "2:10"; `undefined` when the text is none of these or leaves the sheet.
 *
 * **Details**
 *
 * Case, `$` signs, surrounding blanks and the order of the corners do not matter.
 *
 * @category decoding
 * @since 0.1.0
 */
export const parse = (text: string): Selection | undefined => {
  const plain = text.trim().toUpperCase().replaceAll("$", "")
  const cells = CELLS.exec(plain)
  if (cells) {
    const [, left = "", top = "", right = left, bottom = top] = cells
    return onSheet({ rows: rowSpan(top, bottom), columns: columnSpan(left, right) })
  }
  const columns = COLUMNS.exec(plain)
  if (columns) {
    const [, left = "", right = ""] = columns
    return onSheet({ rows: undefined, columns: columnSpan(left, right) })
  }
  const rows = ROWS.exec(plain)
  if (rows) {
    const [, top = "", bottom = ""] = rows
    return onSheet({ rows: rowSpan(top, bottom), columns: undefined })
  }
  return undefined
}

/**
 * Reads a range that names both corners, such as the ones a workbook stores for merged cells.
 *
 * @category decoding
 * @since 0.1.0
 */
export const parseBox = (text: string): Box | undefined => {
  const selection = parse(text)
  return selection?.rows === undefined || selection.columns === undefined
    ? undefined
    : { top: selection.rows[0], left: selection.columns[0], bottom: selection.rows[1], right: selection.columns[1] }
}

/**
 * Returns the part of a selection that can hold values, `undefined` when there is none.
 *
 * **Details**
 *
 * Open sides become those of the used range. The bottom and the right end at the used range; the top and the left
 * stay as they were asked for, so that columns keep their places.
 *
 * @category combinators
 * @since 0.1.0
 */
export const clamp = (selection: Selection, used: Box): Box | undefined => {
  const [top, bottom] = selection.rows ?? [used.top, used.bottom]
  const [left, right] = selection.columns ?? [used.left, used.right]
  const box: Box = { top, left, bottom: Math.min(bottom, used.bottom), right: Math.min(right, used.right) }
  return box.top <= box.bottom && box.left <= box.right && box.bottom >= used.top && box.right >= used.left
    ? box
    : undefined
}

/**
 * Tells whether two ranges share a cell.
 *
 * @category guards
 * @since 0.1.0
 */
export const intersects = (a: Box, b: Box): boolean =>
  a.top <= b.bottom && b.top <= a.bottom && a.left <= b.right && b.left <= a.right

// In this order: text, quoted sheet names, table columns, numbers, whole columns, whole rows, names and addresses.
// What follows a name decides what it is: "(" a function, "!" a sheet, "[" a table.
const TOKENS = new RegExp(
  [
    /"(?:[^"]|"")*"/u,
    /'(?:[^']|'')*'!?/u,
    /\[(?:[^[\]]|\[[^\]]*\])*\]/u,
    /\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}(?![\p{L}\p{N}_.$!([])/u,
    /\$?[1-9][0-9]{0,6}:\$?[1-9][0-9]{0,6}(?![\p{L}\p{N}_.$])/u,
    /[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?/u,
    /[\p{L}_\\$][\p{L}\p{N}_.\\$?]*(?:[!(]|\[(?:[^[\]]|\[[^\]]*\])*\])?/u
  ].map((token) => token.source).join("|"),
  "gu"
)
const ADDRESS = /^(\$?)([A-Za-z]{1,3})(\$?)([1-9][0-9]{0,6})$/
const COLUMN_PAIR = /^(\$?)([A-Za-z]{1,3}):(\$?)([A-Za-z]{1,3})$/
const ROW_PAIR = /^(\$?)([0-9]+):(\$?)([0-9]+)$/

const moveColumn = (fixed: string, letters: string, by: number): string | undefined => {
  const column = columnNumber(letters) + (fixed ? 0 : by)
  return column >= 1 && column <= LAST_COLUMN ? fixed + columnName(column) : undefined
}

const moveRow = (fixed: string, digits: string, by: number): string | undefined => {
  const row = Number(digits) + (fixed ? 0 : by)
  return row >= 1 && row <= LAST_ROW ? `${fixed}${row}` : undefined
}

const joined = (separator: string, a: string | undefined, b: string | undefined): string =>
  a === undefined || b === undefined ? "#REF!" : `${a}${separator}${b}`

/**
 * Replaces the tokens of a formula: names and addresses, but also texts, quoted sheets and numbers, which are tokens so
 * that nothing is found inside of them. The token of a function includes its "(".
 *
 * @category combinators
 * @since 0.1.0
 */
export const mapTokens = (formula: string, f: (token: string) => string): string => formula.replace(TOKENS, f)

/**
 * Moves the relative references of a formula, as Excel does when a formula is filled down or to the right.
 *
 * **Details**
 *
 * Text in quotes, sheet names, functions, tables and defined names stay as they are. A reference that would leave
 * the sheet becomes `#REF!`.
 *
 * @category combinators
 * @since 0.1.0
 */
export const moveFormula = (formula: string, rows: number, columns: number): string =>
  mapTokens(formula, (token) => {
    const address = ADDRESS.exec(token)
    if (address) {
      // A defined name such as "ABC1" cannot exist: Excel refuses names that are addresses. "XFE1" can.
      const [, fixedColumn = "", letters = "", fixedRow = "", digits = ""] = address
      if (columnNumber(letters) > LAST_COLUMN || Number(digits) > LAST_ROW) return token
      return joined("", moveColumn(fixedColumn, letters, columns), moveRow(fixedRow, digits, rows))
    }
    const pair = COLUMN_PAIR.exec(token)
    if (pair) {
      const [, fixedA = "", a = "", fixedB = "", b = ""] = pair
      return joined(":", moveColumn(fixedA, a, columns), moveColumn(fixedB, b, columns))
    }
    const lines = ROW_PAIR.exec(token)
    if (lines) {
      const [, fixedA = "", a = "", fixedB = "", b = ""] = lines
      return joined(":", moveRow(fixedA, a, rows), moveRow(fixedB, b, rows))
    }
    return token
  })

/**
 * A range that a formula names: `sheet` when it names that too, and which sides move along with the formula.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reference {
  readonly sheet: string | undefined
  readonly box: Box
  readonly moves: { readonly [Side in keyof Box]: boolean }
}

/** Functions that read cells which the formula does not name. */
const READS_ELSEWHERE = /^(?:_xlfn\.)?(?:INDIRECT|OFFSET|ANCHORARRAY)\($/i

const CONSTANT = /^(?:TRUE|FALSE)$/i

/**
 * Returns the ranges that a formula reads; `undefined` when that cannot be told from its text.
 *
 * **Details**
 *
 * Defined names, tables, other workbooks, ranges over several sheets and functions that compute addresses are what cannot
 * be told.
 *
 * @category decoding
 * @since 0.1.0
 */
export const references = (formula: string): ReadonlyArray<Reference> | undefined => {
  const found: Array<Reference> = []
  let sheet: string | undefined
  let before: Reference | undefined
  let end = 0
  for (const match of formula.matchAll(TOKENS)) {
    const token = match[0]
    const gap = formula.slice(end, match.index)
    end = match.index + token.length
    // "#REF!+A1": what looked like a sheet was an error.
    if (gap !== "") sheet = undefined
    const joins = gap.includes(":")
    const start = joins && gap.trim() === ":" ? before : undefined
    before = undefined
    const reference = token.startsWith("\"") ? undefined : toReference(token, sheet ?? start?.sheet)
    if (joins && (start === undefined || reference === undefined || sheet !== undefined)) return undefined
    if (reference !== undefined) {
      if (start !== undefined) found.pop()
      before = start === undefined ? reference : joinReferences(start, reference)
      found.push(before)
      sheet = undefined
    } else if (token.endsWith("!") && token !== "!") {
      sheet = sheetOf(token)
      if (/[:[]/.test(sheet)) return undefined
    } else if (READS_ELSEWHERE.test(token) || !/^["0-9]|\($/.test(token) && !CONSTANT.test(token)) {
      return undefined
    }
  }
  return formula.slice(end).includes(":") ? undefined : found
}

const sheetOf = (token: string): string =>
  token.startsWith("'") ? token.slice(1, -2).replaceAll("''", "'") : token.slice(0, -1)

const toReference = (token: string, sheet: string | undefined): Reference | undefined => {
  const address = ADDRESS.exec(token)
  if (address) {
    const [, fixedColumn = "", letters = "", fixedRow = "", digits = ""] = address
    const [column, row] = [columnNumber(letters), Number(digits)]
    if (column > LAST_COLUMN || row > LAST_ROW) return undefined
    const [movesColumn, movesRow] = [fixedColumn === "", fixedRow === ""]
    return {
      sheet,
      box: { top: row, left: column, bottom: row, right: column },
      moves: { top: movesRow, left: movesColumn, bottom: movesRow, right: movesColumn }
    }
  }
  const columns = COLUMN_PAIR.exec(token)
  if (columns) {
    const [, fixedA = "", a = "", fixedB = "", b = ""] = columns
    const box = { top: 1, left: columnNumber(a), bottom: LAST_ROW, right: columnNumber(b) }
    return { sheet, box, moves: { top: false, left: fixedA === "", bottom: false, right: fixedB === "" } }
  }
  const rows = ROW_PAIR.exec(token)
  if (rows) {
    const [, fixedA = "", a = "", fixedB = "", b = ""] = rows
    const box = { top: Number(a), left: 1, bottom: Number(b), right: LAST_COLUMN }
    return { sheet, box, moves: { top: fixedA === "", left: false, bottom: fixedB === "", right: false } }
  }
  return undefined
}

const joinReferences = (a: Reference, b: Reference): Reference => ({
  sheet: a.sheet,
  box: { top: a.box.top, left: a.box.left, bottom: b.box.bottom, right: b.box.right },
  moves: { top: a.moves.top, left: a.moves.left, bottom: b.moves.bottom, right: b.moves.right }
})

/**
 * Returns the range that a reference means once its formula is that many cells further.
 *
 * @category combinators
 * @since 0.1.0
 */
export const moveReference = ({ box, moves }: Reference, rows: number, columns: number): Box => {
  const [top, bottom] = span(box.top + (moves.top ? rows : 0), box.bottom + (moves.bottom ? rows : 0))
  const [left, right] = span(box.left + (moves.left ? columns : 0), box.right + (moves.right ? columns : 0))
  return { top, left, bottom, right }
}

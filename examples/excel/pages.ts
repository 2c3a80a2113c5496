/**
 * Pages of a sheet: what a page looks like, and how many rows fit on it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import * as Ranges from "./ranges.ts"
import type * as Xlsx from "./xlsx.ts"

const MAX_CUT_LISTED = 100

const Scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null])

/**
 * Schema for the value of a cell.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Cell = Schema.Union([
  Schema.String,
  Schema.Finite,
  Schema.Boolean,
  Schema.Null,
  Schema.Struct({
    formula: Schema.String,
    result: Scalar,
    hyperlink: Schema.optionalKey(Schema.String)
  }).annotate({
    description: "A formula and the result it had when the file was saved; null when cells that it reads changed since"
  }),
  Schema.Struct({ text: Schema.String, hyperlink: Schema.String })
]).annotate({
  identifier: "Cell",
  description: "Dates are ISO text (2026-03-31, 2026-03-31T09:30:00), errors are text such as #DIV/0!, null is empty"
})

/**
 * Schema for a row: its number and its cells, one for each column of the page.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Row = Schema.Struct({ row: Schema.Int, cells: Schema.Array(Cell) })

/**
 * Schema for a page of a sheet.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Page = Schema.Struct({
  file: Schema.String,
  version: Schema.String.annotate({ description: "Changes whenever the file does; pass it to write_cells" }),
  sheet: Schema.String,
  usedRange: Schema.NullOr(Schema.String).annotate({ description: "The smallest range with all values of the sheet" }),
  range: Schema.NullOr(Schema.String).annotate({
    description: "The range of this page; null when the range asked for has no values"
  }),
  columns: Schema.Array(Schema.String).annotate({
    description: "The letters of the columns, one for each cell of a row"
  }),
  rows: Schema.Array(Row).annotate({ description: "Rows without any value are left out" }),
  merges: Schema.Array(Schema.String).annotate({
    description: "Merged ranges that touch this page; their value is in the first cell"
  }),
  cut: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description: "Cells whose text was too long; it was cut and ends with …"
  }),
  truncated: Schema.Boolean.annotate({ description: "Whether there are more rows" }),
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
 * How much fits on a page; `Options` of the service says more.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  readonly maxCells: number
  readonly maxResultBytes: number
  readonly maxTextBytes: number
}

/**
 * The part of a page that comes from the cells.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rows {
  readonly range: string
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<typeof Row.Type>
  readonly merges: ReadonlyArray<string>
  readonly cut: ReadonlyArray<string>
  /** The first row that did not fit. */
  readonly next: number | undefined
}

/**
 * Reads as many rows of a range as fit on a page, at least one; rows without values are left out.
 *
 * @category constructors
 * @since 0.1.0
 */
export const read = (sheet: Xlsx.Sheet, box: Ranges.Box, limits: Limits): Rows => {
  const width = box.right - box.left + 1
  const columns = Array.from({ length: width }, (_, index) => Ranges.columnName(box.left + index))
  const merges = sheet.merges.filter((merge) => Ranges.intersects(merge, box))
  const rows: Array<typeof Row.Type> = []
  const cut: Array<string> = []
  let bytes = 0
  let next: number | undefined
  for (let row = box.top; row <= box.bottom; row++) {
    if (!sheet.hasValues(row)) continue
    let line = readRow(sheet, row, box, merges, limits.maxTextBytes)
    if (line.cells.every((cell) => cell === null)) continue
    let size = jsonBytes(line)
    const full = (rows.length + 1) * width > limits.maxCells || bytes + size > limits.maxResultBytes
    if (full && rows.length > 0) {
      next = row
      break
    }
    if (size > limits.maxResultBytes) {
      // Alone on its page and still too large: all its texts share the space.
      line = readRow(sheet, row, box, merges, Math.max(8, Math.floor(limits.maxResultBytes / width) - 8))
      size = jsonBytes(line)
    }
    bytes += size
    rows.push({ row, cells: line.cells })
    cut.push(...line.cut)
  }
  const range = { ...box, bottom: next === undefined ? box.bottom : next - 1 }
  return {
    range: Ranges.format(range),
    columns,
    rows,
    merges: merges.filter((merge) => Ranges.intersects(merge, range)).slice(0, limits.maxCells).map(Ranges.format),
    cut: cut.slice(0, MAX_CUT_LISTED),
    next
  }
}

const jsonBytes = (line: { readonly cells: ReadonlyArray<Xlsx.Cell> }): number =>
  Buffer.byteLength(JSON.stringify(line.cells)) + 24

const readRow = (
  sheet: Xlsx.Sheet,
  row: number,
  box: Ranges.Box,
  merges: ReadonlyArray<Ranges.Box>,
  maxTextBytes: number
): { readonly cells: ReadonlyArray<Xlsx.Cell>; readonly cut: ReadonlyArray<string> } => {
  const line = merges.filter((merge) => merge.top <= row && row <= merge.bottom)
  const cut: Array<string> = []
  const cells = Array.from({ length: box.right - box.left + 1 }, (_, index) => {
    const column = box.left + index
    const covered = line.some((merge) =>
      merge.left <= column && column <= merge.right && !(merge.top === row && merge.left === column)
    )
    if (covered) return null
    const cell = sheet.cell(row, column)
    const short = shorten(cell, maxTextBytes)
    if (short !== cell) cut.push(`${Ranges.columnName(column)}${row}`)
    return short
  })
  return { cells, cut }
}

const ELLIPSIS = "…"

/** Returns the same text when it is short enough, else its start, cut between characters, and an ellipsis. */
const shortenText = (text: string, maxBytes: number): string => {
  // A UTF-16 code unit needs at most three bytes of UTF-8.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text.slice(0, maxBytes))
  let end = Math.min(maxBytes, bytes.length)
  // Bytes 10xxxxxx continue a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString("utf8", 0, end) + ELLIPSIS
}

/** Returns the same cell when nothing in it is too long. */
const shorten = (cell: Xlsx.Cell, maxBytes: number): Xlsx.Cell => {
  if (typeof cell === "string") return shortenText(cell, maxBytes)
  if (cell === null || typeof cell !== "object") return cell
  const cut = (text: string) => shortenText(text, maxBytes)
  const short = "text" in cell
    ? { text: cut(cell.text), hyperlink: cut(cell.hyperlink) }
    : {
      formula: cut(cell.formula),
      result: typeof cell.result === "string" ? cut(cell.result) : cell.result,
      ...(cell.hyperlink !== undefined && { hyperlink: cut(cell.hyperlink) })
    }
  return JSON.stringify(short) === JSON.stringify(cell) ? cell : short
}

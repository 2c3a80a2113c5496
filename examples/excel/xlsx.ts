/**
 * Reads the bytes of a workbook with exceljs. No other module touches that package.
 *
 * exceljs is loaded on first use: it costs about 0.2 s, which a server should not spend before it has answered
 * `initialize`. It parses whole workbooks on the main thread. Worksheets are fed to it in pieces with a turn of the
 * event loop between them; shared texts and the final assembly are not, and stop the loop for roughly a millisecond
 * per thousand cells.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as ExcelJS from "exceljs"
import { setImmediate } from "node:timers/promises"
import * as Ranges from "./ranges.ts"

// =============================================================================
// Models
// =============================================================================

/**
 * A value without parts. Dates are ISO text, errors are text such as "#DIV/0!".
 *
 * @category models
 * @since 0.1.0
 */
export type Scalar = string | number | boolean | null

/**
 * What a cell holds.
 *
 * @category models
 * @since 0.1.0
 */
export type Cell =
  | Scalar
  | { readonly formula: string; readonly result: Scalar; readonly hyperlink?: string }
  | { readonly text: string; readonly hyperlink: string }

/**
 * A worksheet of a workbook in memory. Rows and columns count from 1.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sheet {
  readonly name: string
  readonly hidden: boolean
  /** The smallest range with all values, `undefined` for an empty sheet. */
  readonly used: Ranges.Box | undefined
  /** Merged ranges, as the file lists them. Cells below a merge still have the values that the file gives them. */
  readonly merges: ReadonlyArray<Ranges.Box>
  /** Tells whether a row has any value. */
  readonly hasValues: (row: number) => boolean
  /** Returns the value of a cell, `null` when it is empty. */
  readonly cell: (row: number, column: number) => Cell
}

// =============================================================================
// What exceljs does not declare
// =============================================================================

// The parts of exceljs 4.4.0's intermediate model that are corrected below, between parsing and assembly.
interface CellModel {
  type: ExcelJS.ValueType
  address: string | undefined
  value?: unknown
  formula?: string
  sharedFormula?: string
  result?: unknown
  text?: unknown
  hyperlink?: string
}

interface BookModel {
  worksheets: Array<{
    name?: string
    rows: Array<{ number: number; cells: Array<CellModel | undefined> | undefined } | undefined> | undefined
    mergeCells: ReadonlyArray<string> | undefined
  }>
  worksheetRels: Array<ReadonlyArray<{ readonly Type: string }> | undefined>
  definedNames: ReadonlyArray<unknown>
}

type Part = (...args: ReadonlyArray<unknown>) => Promise<void>

interface Reader {
  load: (bytes: Uint8Array, options: { readonly ignoreNodes: ReadonlyArray<string> }) => Promise<unknown>
  reconcile: (model: BookModel, options: unknown) => void
  _processWorksheetEntry: (chunks: AsyncIterable<unknown>, ...rest: ReadonlyArray<unknown>) => Promise<void>
  _processCommentEntry: Part
  _processTableEntry: Part
  _processMediaEntry: Part
  _processDrawingEntry: Part
  _processDrawingRelsEntry: Part
  _processVmlDrawingEntry: Part
  _processThemeEntry: Part
}

// =============================================================================
// Reading
// =============================================================================

/** Parts of a worksheet that hold no values. exceljs would expand a validation of a whole column cell by cell. */
const IGNORED_NODES = [
  "dataValidations",
  "conditionalFormatting",
  "drawing",
  "picture",
  "tableParts",
  "autoFilter",
  "extLst"
]

const skip: Part = () => Promise.resolve()

// A generator function is what exceljs can read from; it owns the loop, so this cannot be an Effect.
async function* paced(chunks: AsyncIterable<unknown>, signal: AbortSignal, onText: (length: number) => void) {
  for await (const chunk of chunks) {
    signal.throwIfAborted()
    yield chunk
    onText(typeof chunk === "string" ? chunk.length : 0)
    await setImmediate()
  }
}

/** Row and cell numbers may be left out in a file; exceljs needs them. */
const numberCells = (model: BookModel): void => {
  for (const { rows } of model.worksheets) {
    let row = 0
    for (const line of rows ?? []) {
      if (line === undefined) continue
      row = line.number > 0 ? line.number : row + 1
      line.number = row
      let column = 0
      for (const cell of line.cells ?? []) {
        if (cell === undefined) continue
        column = cell.address === undefined ? column + 1 : Ranges.parseBox(cell.address)?.left ?? column + 1
        cell.address ??= `${Ranges.columnName(column)}${row}`
      }
    }
  }
}

const decodeText = (text: unknown): unknown =>
  typeof text === "string"
    ? text.replaceAll(/_x([0-9A-Fa-f]{4})_/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : text

/** Characters that XML does not have are `_x0008_` in every text; exceljs knows that of shared texts only. */
const decodeTexts = (model: BookModel, types: typeof ExcelJS.ValueType): void => {
  for (const { rows } of model.worksheets) {
    for (const line of rows ?? []) {
      for (const cell of line?.cells ?? []) {
        if (cell?.type === types.String) cell.value = decodeText(cell.value)
        if (cell?.type !== types.Formula) continue
        cell.result = decodeText(cell.result)
        if (cell.formula !== undefined) cell.formula = String(decodeText(cell.formula))
      }
    }
  }
}

/** Results that are not numbers. exceljs takes all results below a date format for dates and would lose these. */
const plainResults = (model: BookModel): ReadonlyArray<readonly [CellModel, unknown]> =>
  model.worksheets.flatMap(({ rows }) =>
    (rows ?? []).flatMap((line) =>
      (line?.cells ?? []).flatMap((cell) =>
        cell?.result === undefined || typeof cell.result === "number" ? [] : [[cell, cell.result] as const]
      )
    )
  )

/**
 * Makes a reader that takes values, formulas, links and merged ranges, and leaves the rest of the file alone.
 *
 * The rest is where exceljs fails on files that other programs write (comments, tables, drawings) or takes time and
 * memory without bound (defined names and merged ranges that cover whole columns).
 */
const prepare = (
  book: ExcelJS.Workbook,
  types: typeof ExcelJS.ValueType,
  signal: AbortSignal,
  onText: (length: number) => void
): { readonly reader: Reader; readonly merges: ReadonlyMap<string, ReadonlyArray<string>> } => {
  // The methods exist on every instance of 4.4.0; the published types leave them out.
  const reader = book.xlsx as unknown as Reader
  const merges = new Map<string, ReadonlyArray<string>>()
  const worksheet = reader._processWorksheetEntry.bind(reader)
  const reconcile = reader.reconcile.bind(reader)
  Object.assign(
    reader,
    {
      _processCommentEntry: skip,
      _processTableEntry: skip,
      _processMediaEntry: skip,
      _processDrawingEntry: skip,
      _processDrawingRelsEntry: skip,
      _processVmlDrawingEntry: skip,
      _processThemeEntry: skip,
      _processWorksheetEntry: (chunks, ...rest) => worksheet(paced(chunks, signal, onText), ...rest),
      reconcile: (model, options) => {
        model.definedNames = []
        model.worksheetRels = model.worksheetRels.map((rels) => rels?.filter((rel) => rel.Type.endsWith("/hyperlink")))
        numberCells(model)
        decodeTexts(model, types)
        const results = plainResults(model)
        reconcile(model, options)
        for (const [cell, result] of results) {
          if (cell.type === types.Hyperlink) cell.text = result
          else cell.result = result
        }
        for (const sheet of model.worksheets) {
          if (sheet.name !== undefined) merges.set(sheet.name, sheet.mergeCells ?? [])
          sheet.mergeCells = []
        }
      }
    } satisfies Partial<Reader>
  )
  return { reader, merges }
}

/**
 * Reads a workbook; fails with whatever exceljs throws.
 *
 * **Details**
 *
 * Interruption takes effect at the next piece of a worksheet. `onText` is called with the length of each piece, in
 * characters, once it is parsed.
 *
 * @category decoding
 * @since 0.1.0
 */
export const read = Effect.fnUntraced(function*(
  bytes: Uint8Array,
  onText: (length: number) => void
): Effect.fn.Return<ReadonlyArray<Sheet>, unknown> {
  const { default: exceljs } = yield* Effect.promise(() => import("exceljs"))
  const book = new exceljs.Workbook()
  const merges = yield* Effect.tryPromise({
    try: async (signal) => {
      const { reader, merges } = prepare(book, exceljs.ValueType, signal, onText)
      await reader.load(bytes, { ignoreNodes: IGNORED_NODES })
      return merges
    },
    catch: (cause) => cause
  })
  const { date1904 } = book.properties
  return book.worksheets.map((sheet) => toSheet(sheet, merges.get(sheet.name) ?? [], exceljs.ValueType, date1904))
})

const toSheet = (
  sheet: ExcelJS.Worksheet,
  merges: ReadonlyArray<string>,
  types: typeof ExcelJS.ValueType,
  date1904: boolean
): Sheet => ({
  name: sheet.name,
  hidden: sheet.state !== "visible",
  used: usedRange(sheet),
  merges: merges.flatMap((text) => Ranges.parseBox(text) ?? []),
  hasValues: (row) => sheet.findRow(row)?.hasValues ?? false,
  cell: (row, column) => {
    const cell = sheet.findRow(row)?.findCell(column)
    return cell === undefined ? null : toCell(sheet, cell, types, date1904)
  }
})

const usedRange = (sheet: ExcelJS.Worksheet): Ranges.Box | undefined => {
  let used: Ranges.Box | undefined
  sheet.eachRow((row, number) => {
    // Declared as a number, but it is the first and last column of a row with values.
    const { min, max } = row.dimensions as unknown as { readonly min: number; readonly max: number }
    used = {
      top: used?.top ?? number,
      left: Math.min(used?.left ?? min, min),
      bottom: number,
      right: Math.max(used?.right ?? max, max)
    }
  })
  return used
}

// =============================================================================
// Values
// =============================================================================

const toCell = (
  sheet: ExcelJS.Worksheet,
  cell: ExcelJS.Cell,
  types: typeof ExcelJS.ValueType,
  date1904: boolean
): Cell => {
  // The declared model has no shared formulas, and texts that are only strings.
  const model = cell.model as unknown as CellModel
  const scalar = (value: unknown) => toScalar(value, cell.numFmt, date1904)
  const formula = toFormula(sheet, cell, model)
  if (cell.type === types.Hyperlink) {
    const result = scalar(model.text)
    const hyperlink = String(model.hyperlink)
    return formula === undefined
      ? { text: result === null ? "" : String(result), hyperlink }
      : { formula, result, hyperlink }
  }
  if (cell.type === types.Formula) {
    const result = scalar(cell.result)
    return formula === undefined ? result : { formula, result }
  }
  return cell.type === types.Merge ? null : scalar(cell.value)
}

// exceljs can move shared formulas too, but it also changes what only looks like an address: "Q1" in quotes, a sheet
// called 'Q1 2026', a table called Tab1.
const toFormula = (sheet: ExcelJS.Worksheet, cell: ExcelJS.Cell, model: CellModel): string | undefined => {
  if (model.formula !== undefined || model.sharedFormula === undefined) return model.formula
  const home = Ranges.parseBox(model.sharedFormula)
  const shared = home && sheet.findRow(home.top)?.findCell(home.left)?.formula
  return home && shared
    ? Ranges.moveFormula(shared, Number(cell.row) - home.top, Number(cell.col) - home.left)
    : undefined
}

const toScalar = (value: unknown, numberFormat: string | undefined, date1904: boolean): Scalar => {
  if (typeof value === "string" || typeof value === "boolean") return value
  if (typeof value === "number") return Number.isFinite(value) ? value : "#NUM!"
  if (value instanceof Date) return toDateText(value, numberFormat ?? "", date1904)
  if (Predicate.hasProperty(value, "error")) return String(value.error)
  if (Predicate.hasProperty(value, "richText") && Array.isArray(value.richText)) {
    return value.richText.map((part: { readonly text?: string }) => part.text ?? "").join("")
  }
  return null
}

const DAY = 86_400_000
const EPOCH_1900 = -25_569 * DAY
const EPOCH_1904 = -24_107 * DAY

const twoDigits = (value: number): string => String(value).padStart(2, "0")

const clockText = (milliseconds: number): string => {
  const seconds = Math.round(Math.abs(milliseconds) / 1000)
  const sign = milliseconds < 0 ? "-" : ""
  const hours = Math.floor(seconds / 3600)
  return `${sign}${twoDigits(hours)}:${twoDigits(Math.floor(seconds / 60) % 60)}:${twoDigits(seconds % 60)}`
}

// Excel stores days since 1900 or 1904 and no time zone. Which of date, time and duration a number is, only its
// format says: "[h]:mm" counts hours beyond a day, a format without day and year shows a time.
const toDateText = (date: Date, numberFormat: string, date1904: boolean): string => {
  const time = date.getTime()
  if (Number.isNaN(time)) return "#NUM!"
  const sinceEpoch = time - (date1904 ? EPOCH_1904 : EPOCH_1900)
  const elapsed = /\[(?:h+|m+|s+)\]/i.test(numberFormat)
  const dateless = !/[dy]/i.test(numberFormat.replaceAll(/"[^"]*"|\[[^\]]*\]|\\./g, ""))
  if (elapsed || (dateless && sinceEpoch >= 0 && sinceEpoch < DAY)) return clockText(sinceEpoch)
  const [day = "", clock = ""] = date.toISOString().split("T")
  return clock === "00:00:00.000Z" ? day : `${day}T${clock.replace(/(?:\.000)?Z$/, "")}`
}

/**
 * Makes `budget.xlsx`, the workbook that the examples and tests read: `node examples/excel/make-budget.ts`.
 *
 * It has what such workbooks have: formulas across sheets with their saved results, dates, merged titles, gaps, a
 * link, an error, text that is not ASCII and a hidden sheet. The same program makes the same bytes.
 *
 * @since 0.1.0
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as ExcelJS from "exceljs"
import { fileURLToPath } from "node:url"
import * as Archive from "./archive.ts"

/**
 * Where the committed workbook is.
 *
 * @category constants
 * @since 0.1.0
 */
export const path: string = fileURLToPath(new URL("budget.xlsx", import.meta.url))

const EXPENSES = "Ausgaben 支出"
const EURO = "#,##0.00 \"€\""
const DATE = "dd.mm.yyyy"

const utc = (month: number, day: number, hour = 0, minute = 0) => new Date(Date.UTC(2026, month - 1, day, hour, minute))
const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

const areas = ["Personal", "Büro & Miete", "Reisen 旅費", "Reserve"] as const

/** Planned amounts of a month, one for each area. */
const plan = Array.from({ length: 12 }, (_, index) => [5200 + 100 * (index % 3), 1850, index % 2 === 0 ? 640 : 320, 0])

const expenses: ReadonlyArray<
  readonly [Date, ExcelJS.CellValue, area: (typeof areas)[number], amount: number, paid: boolean | null]
> = [
  [utc(1, 7), "Gehälter Januar", "Personal", 5200, true],
  [utc(1, 12, 9, 30), "Zugfahrt Köln–Zürich 🚆", "Reisen 旅費", 148.5, true],
  [
    utc(2, 2),
    { richText: [{ text: "Miete " }, { text: "Februar", font: { bold: true } }] },
    "Büro & Miete",
    1850,
    true
  ],
  [utc(2, 9), "東京出張(ホテル3泊)", "Reisen 旅費", 412.25, true],
  [utc(3, 3), { text: "Stühle für das Büro", hyperlink: "https://example.com/möbel" }, "Büro & Miete", 389.9, null],
  [utc(3, 31, 17, 45), "Übernachtung \"Hôtel d'Été\" <Lyon>", "Reisen 旅費", 96, false]
]

const title = (sheet: ExcelJS.Worksheet, range: string, text: string): void => {
  sheet.mergeCells(range)
  const cell = sheet.getCell("A1")
  cell.value = text
  cell.font = { bold: true, size: 14 }
}

const spent = (area: string) => sum(expenses.filter((expense) => expense[2] === area).map((expense) => expense[3]))
const planned = (index: number) => sum(plan.map((month) => month[index] ?? 0))

const addSummary = (book: ExcelJS.Workbook): void => {
  const sheet = book.addWorksheet("Übersicht")
  title(sheet, "A1:E1", "Budget 2026 – Überblick")
  sheet.getCell("A2").value = "Stand"
  sheet.getCell("B2").value = utc(3, 31)
  sheet.getCell("B2").numFmt = DATE
  sheet.getRow(4).values = ["Bereich", "Plan", "Ist", "Rest", "Anteil"]
  areas.forEach((area, index) => {
    const row = 5 + index
    const column = "BCDE"[index] ?? ""
    const left = planned(index) - spent(area)
    sheet.getRow(row).values = [
      area,
      { formula: `Budget!${column}15`, result: planned(index) },
      { formula: `SUMIF('${EXPENSES}'!C4:C9,A${row},'${EXPENSES}'!D4:D9)`, result: spent(area) },
      { formula: `B${row}-C${row}`, result: left },
      {
        formula: `C${row}/B${row}`,
        result: planned(index) === 0 ? { error: "#DIV/0!" } : spent(area) / planned(index)
      }
    ]
  })
  const totalPlan = sum(areas.map((_, index) => planned(index)))
  const totalSpent = sum(areas.map(spent))
  sheet.getRow(9).values = [
    "Summe",
    { formula: "SUM(B5:B8)", result: totalPlan },
    { formula: "SUM(C5:C8)", result: totalSpent },
    { formula: "B9-C9", result: totalPlan - totalSpent },
    { formula: "C9/B9", result: totalSpent / totalPlan }
  ]
  sheet.getRow(9).font = { bold: true }
  for (const column of ["B", "C", "D"]) sheet.getColumn(column).eachCell({ includeEmpty: false }, asAmount)
  sheet.getColumn("E").numFmt = "0.0%"
  sheet.getColumn("A").width = 24
}

const asAmount = (cell: ExcelJS.Cell, row: number): void => {
  if (row > 4) cell.numFmt = EURO
}

const addPlan = (book: ExcelJS.Workbook): void => {
  const sheet = book.addWorksheet("Budget")
  sheet.getRow(1).values = ["Monat", ...areas, "Summe"]
  sheet.getRow(1).font = { bold: true }
  plan.forEach((month, index) => {
    const row = sheet.getRow(3 + index)
    row.values = [utc(1 + index, 1), ...month]
    row.getCell(1).numFmt = "mmm yyyy"
  })
  // One formula that twelve rows share, as Excel stores a column that was filled down.
  sheet.fillFormula("F3:F14", "SUM(B3:E3)", plan.map(sum))
  sheet.getRow(15).values = [
    "Summe",
    ...areas.map((_, index) => {
      const column = "BCDE"[index] ?? ""
      return { formula: `SUM(${column}3:${column}14)`, result: planned(index) }
    }),
    { formula: "SUM(F3:F14)", result: sum(plan.map(sum)) }
  ]
  for (const column of ["B", "C", "D", "E", "F"]) sheet.getColumn(column).numFmt = EURO
}

const addExpenses = (book: ExcelJS.Workbook): void => {
  const sheet = book.addWorksheet(EXPENSES)
  title(sheet, "A1:E1", "Ausgaben 支出 – 1. Quartal")
  sheet.getRow(3).values = ["Datum", "Beschreibung", "Bereich", "Betrag €", "Bezahlt"]
  expenses.forEach(([date, text, area, amount, paid], index) => {
    const row = sheet.getRow(4 + index)
    row.values = [date, text, area, amount, paid]
    row.getCell(1).numFmt = date.getUTCHours() === 0 ? DATE : `${DATE} hh:mm`
    row.getCell(4).numFmt = EURO
  })
  sheet.getColumn("B").width = 36
}

const addParameters = (book: ExcelJS.Workbook): void => {
  const sheet = book.addWorksheet("Parameter", { state: "hidden" })
  sheet.getRow(1).values = ["MwSt", 0.19]
  sheet.getRow(2).values = ["Jahr", 2026]
}

/**
 * Makes the workbook's bytes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeBudget: Effect.Effect<Uint8Array> = Effect.promise(async () => {
  const { default: exceljs } = await import("exceljs")
  const book = new exceljs.Workbook()
  book.creator = "effect-stdio"
  book.created = utc(1, 1)
  book.modified = utc(1, 1)
  addSummary(book)
  addPlan(book)
  addExpenses(book)
  addParameters(book)
  // Declared as an ArrayBuffer, but it is a Node buffer.
  const bytes = await book.xlsx.writeBuffer() as unknown as Uint8Array
  Archive.clearTimes(bytes)
  return bytes
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    yield* fs.writeFile(path, yield* makeBudget)
  }).pipe(Effect.provide(NodeFileSystem.layer), NodeRuntime.runMain)
}

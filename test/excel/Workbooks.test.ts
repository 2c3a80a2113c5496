import { assert, describe, it, layer } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as PlatformError from "effect/PlatformError"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"
import { dirname, join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { makeBudget, path as budgetPath } from "../../examples/excel/make-budget.ts"
import type { Page } from "../../examples/excel/pages.ts"
import type { WorkbookError } from "../../examples/excel/WorkbookError.ts"
import * as Workbooks from "../../examples/excel/Workbooks.ts"
import { addManyRows, aroundParsing, Folder, open, rawWorkbook, readAll, relationships, zip } from "./support.ts"

const failureOf = <A, R>(effect: Effect.Effect<A, WorkbookError, R>) =>
  Effect.map(Effect.flip(effect), ({ message, reason }) => ({ reason: reason._tag, message }))

/** A page without the version of the file, which is another one in every run. */
const withoutVersion = ({ version, ...page }: Page) => {
  assert.isNotEmpty(version)
  return page
}

const cellsOf = (page: Page) => page.rows.map((row) => row.cells)

layer(Folder.layer)("a workbook", (it) => {
  const openBudget = Workbooks.make({ root: dirname(budgetPath) })

  it.effect("lists its sheets with sizes and states", () =>
    Effect.gen(function*() {
      const workbooks = yield* openBudget
      assert.deepStrictEqual(yield* workbooks.listSheets("budget.xlsx"), {
        file: "budget.xlsx",
        sheets: [
          { name: "Übersicht", state: "visible", rows: 9, columns: 5, usedRange: "A1:E9" },
          { name: "Budget", state: "visible", rows: 15, columns: 6, usedRange: "A1:F15" },
          { name: "Ausgaben 支出", state: "visible", rows: 9, columns: 5, usedRange: "A1:E9" },
          { name: "Parameter", state: "hidden", rows: 2, columns: 2, usedRange: "A1:B2" }
        ]
      })
    }))

  it.effect("gives formulas with their saved results, across sheets", () =>
    Effect.gen(function*() {
      const workbooks = yield* openBudget
      assert.deepStrictEqual(withoutVersion(yield* workbooks.readSheet({ file: "budget.xlsx", range: "A4:E8" })), {
        file: "budget.xlsx",
        sheet: "Übersicht",
        usedRange: "A1:E9",
        range: "A4:E8",
        columns: ["A", "B", "C", "D", "E"],
        rows: [
          { row: 4, cells: ["Bereich", "Plan", "Ist", "Rest", "Anteil"] },
          {
            row: 5,
            cells: [
              "Personal",
              { formula: "Budget!B15", result: 63_600 },
              { formula: "SUMIF('Ausgaben 支出'!C4:C9,A5,'Ausgaben 支出'!D4:D9)", result: 5200 },
              { formula: "B5-C5", result: 58_400 },
              { formula: "C5/B5", result: 5200 / 63_600 }
            ]
          },
          {
            row: 6,
            cells: [
              "Büro & Miete",
              { formula: "Budget!C15", result: 22_200 },
              { formula: "SUMIF('Ausgaben 支出'!C4:C9,A6,'Ausgaben 支出'!D4:D9)", result: 2239.9 },
              { formula: "B6-C6", result: 19_960.1 },
              { formula: "C6/B6", result: 2239.9 / 22_200 }
            ]
          },
          {
            row: 7,
            cells: [
              "Reisen 旅費",
              { formula: "Budget!D15", result: 5760 },
              { formula: "SUMIF('Ausgaben 支出'!C4:C9,A7,'Ausgaben 支出'!D4:D9)", result: 656.75 },
              { formula: "B7-C7", result: 5103.25 },
              { formula: "C7/B7", result: 656.75 / 5760 }
            ]
          },
          {
            row: 8,
            cells: [
              "Reserve",
              { formula: "Budget!E15", result: 0 },
              { formula: "SUMIF('Ausgaben 支出'!C4:C9,A8,'Ausgaben 支出'!D4:D9)", result: 0 },
              { formula: "B8-C8", result: 0 },
              { formula: "C8/B8", result: "#DIV/0!" }
            ]
          }
        ],
        merges: [],
        truncated: false
      })
    }))

  it.effect("gives dates, links, rich text, gaps and text that is not ASCII", () =>
    Effect.gen(function*() {
      const workbooks = yield* openBudget
      assert.deepStrictEqual(
        withoutVersion(yield* workbooks.readSheet({ file: "budget.xlsx", sheet: "Ausgaben 支出" })),
        {
          file: "budget.xlsx",
          sheet: "Ausgaben 支出",
          usedRange: "A1:E9",
          range: "A1:E9",
          columns: ["A", "B", "C", "D", "E"],
          rows: [
            { row: 1, cells: ["Ausgaben 支出 – 1. Quartal", null, null, null, null] },
            { row: 3, cells: ["Datum", "Beschreibung", "Bereich", "Betrag €", "Bezahlt"] },
            { row: 4, cells: ["2026-01-07", "Gehälter Januar", "Personal", 5200, true] },
            { row: 5, cells: ["2026-01-12T09:30:00", "Zugfahrt Köln–Zürich 🚆", "Reisen 旅費", 148.5, true] },
            { row: 6, cells: ["2026-02-02", "Miete Februar", "Büro & Miete", 1850, true] },
            { row: 7, cells: ["2026-02-09", "東京出張(ホテル3泊)", "Reisen 旅費", 412.25, true] },
            {
              row: 8,
              cells: [
                "2026-03-03",
                { text: "Stühle für das Büro", hyperlink: "https://example.com/möbel" },
                "Büro & Miete",
                389.9,
                null
              ]
            },
            {
              row: 9,
              cells: ["2026-03-31T17:45:00", "Übernachtung \"Hôtel d'Été\" <Lyon>", "Reisen 旅費", 96, false]
            }
          ],
          merges: ["A1:E1"],
          truncated: false
        }
      )
    }))

  it.effect("has a formula in each cell of a column that was filled down", () =>
    Effect.gen(function*() {
      const workbooks = yield* openBudget
      const page = yield* workbooks.readSheet({ file: "budget.xlsx", sheet: "Budget", range: "F3:F6" })
      assert.deepStrictEqual(cellsOf(page), [
        [{ formula: "SUM(B3:E3)", result: 7690 }],
        [{ formula: "SUM(B4:E4)", result: 7470 }],
        [{ formula: "SUM(B5:E5)", result: 7890 }],
        [{ formula: "SUM(B6:E6)", result: 7370 }]
      ])
    }))

  it.effect("is made anew with the same bytes", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const committed = yield* fs.readFile(budgetPath)
      const made = yield* makeBudget
      assert.isTrue(Buffer.from(committed).equals(made))
    }))
})

layer(Folder.layer)("values", (it) => {
  const day = (text: string) => new Date(`${text}Z`)

  it.effect("are dates, times and durations as their format says", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("dates.xlsx", (book) => {
        const sheet = book.addWorksheet("Dates")
        const values: ReadonlyArray<readonly [Date | number, string]> = [
          [day("2026-03-31T00:00:00"), "dd.mm.yyyy"],
          [day("2026-03-31T23:59:59"), "yyyy-mm-dd hh:mm"],
          [day("2026-03-31T12:00:00.250"), "yyyy-mm-dd hh:mm:ss.000"],
          [day("1899-12-30T09:05:00"), "hh:mm"],
          [1.5, "[h]:mm:ss"],
          [46_112, "[$-407]d. mmmm yyyy"],
          [0.25, "0.00 \"days\""]
        ]
        values.forEach(([value, format], index) => {
          sheet.getCell(1, index + 1).value = value
          sheet.getCell(1, index + 1).numFmt = format
        })
      })
      const page = yield* workbooks.readSheet({ file: "dates.xlsx" })
      assert.deepStrictEqual(cellsOf(page), [[
        "2026-03-31",
        "2026-03-31T23:59:59",
        "2026-03-31T12:00:00.250",
        "09:05:00",
        "36:00:00",
        "2026-03-31",
        0.25
      ]])
    }))

  it.effect("are dates in workbooks that count from 1904", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("mac.xlsx", (book) => {
        book.properties.date1904 = true
        const sheet = book.addWorksheet("Mac")
        sheet.getRow(1).values = [day("2026-03-31T00:00:00"), day("1904-01-01T18:00:00")]
        sheet.getCell("B1").numFmt = "hh:mm"
      })
      assert.deepStrictEqual(cellsOf(yield* workbooks.readSheet({ file: "mac.xlsx" })), [["2026-03-31", "18:00:00"]])
    }))

  it.effect("are results of every type, below a date format too", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("results.xlsx", (book) => {
        const sheet = book.addWorksheet("Results")
        sheet.getRow(1).values = [
          { formula: "A2", result: day("2026-03-31T00:00:00") },
          { formula: "IF(A2,A2,\"offen\")", result: "offen" },
          { formula: "NA()", result: { error: "#N/A" } as unknown as Error },
          { formula: "1=2", result: false },
          { formula: "1-1", result: 0 },
          { formula: "TODAY()" }
        ] as never
        for (const column of [1, 2, 3]) sheet.getCell(1, column).numFmt = "dd.mm.yyyy"
      })
      assert.deepStrictEqual(cellsOf(yield* workbooks.readSheet({ file: "results.xlsx" })), [[
        { formula: "A2", result: "2026-03-31" },
        { formula: "IF(A2,A2,\"offen\")", result: "offen" },
        { formula: "NA()", result: "#N/A" },
        { formula: "1=2", result: false },
        { formula: "1-1", result: 0 },
        { formula: "TODAY()", result: null }
      ]])
    }))

  it.effect("are links with their text, also when the text is a formula or not a text", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write(
        "links.xlsx",
        rawWorkbook(
          `<sheetData><row r="1"><c r="A1" t="inlineStr"><is><r><t>ein </t></r><r><t>Link</t></r></is></c>` +
            `<c r="B1"><v>42</v></c><c r="C1" t="str"><f>"Seite "&amp;1</f><v>Seite 1</v></c>` +
            `<c r="D1"/></row></sheetData><hyperlinks>${
              ["A1", "B1", "C1", "D1"].map((cell) => `<hyperlink ref="${cell}" r:id="rId9"/>`).join("")
            }</hyperlinks>`,
          {
            files: {
              "xl/worksheets/_rels/sheet1.xml.rels": relationships([["rId9", "hyperlink", "https://example.com/?a=ä"]])
            }
          }
        )
      )
      const hyperlink = "https://example.com/?a=ä"
      assert.deepStrictEqual(cellsOf(yield* workbooks.readSheet({ file: "links.xlsx" })), [[
        { text: "ein Link", hyperlink },
        { text: "42", hyperlink },
        { formula: "\"Seite \"&1", result: "Seite 1", hyperlink },
        { text: "", hyperlink }
      ]])
    }))

  it.effect("are in the first cell of a merged range only", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      // The cell below the merge keeps a value in the file, as some programs leave it.
      yield* folder.write(
        "merged.xlsx",
        rawWorkbook(
          `<sheetData><row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c><c r="C1"><v>3</v></c></row>` +
            `<row r="2"><c r="B2"><v>4</v></c><c r="C2"><v>5</v></c></row><row r="3"><c r="A3"><v>6</v></c></row>` +
            `</sheetData><mergeCells><mergeCell ref="A1:B2"/><mergeCell ref="B2:C2"/><mergeCell ref="A3:C3"/>` +
            `<mergeCell ref="E1:XFD1048576"/></mergeCells>`
        )
      )
      const page = yield* workbooks.readSheet({ file: "merged.xlsx", range: "A1:C2" })
      assert.deepStrictEqual(cellsOf(page), [[1, null, 3]])
      assert.deepStrictEqual(page.merges, ["A1:B2", "B2:C2"])
    }))

  it.effect("are found where the file leaves out row numbers and addresses", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write(
        "unnumbered.xlsx",
        rawWorkbook(
          `<sheetData><row><c><v>1</v></c><c><v>2</v></c></row><row r="4"><c r="C4"><v>3</v></c><c><v>4</v></c></row>` +
            `<row><c><v>5</v></c></row></sheetData>`
        )
      )
      assert.deepStrictEqual((yield* workbooks.readSheet({ file: "unnumbered.xlsx" })).rows, [
        { row: 1, cells: [1, 2, null, null] },
        { row: 4, cells: [null, null, 3, 4] },
        { row: 5, cells: [5, null, null, null] }
      ])
    }))

  it.effect("are read from files with comments, tables, validations and names as other programs write them", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write(
        "foreign.xlsx",
        rawWorkbook(
          `<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>` +
            `<dataValidations count="1"><dataValidation type="whole" sqref="A1:XFD1048576"/></dataValidations>` +
            `<legacyDrawing r:id="rId2"/><tableParts count="1"><tablePart r:id="rId3"/></tableParts>`,
          {
            workbook: `<definedNames><definedName name="all">Raw!$A$1:$XFD$1048576</definedName></definedNames>`,
            files: {
              "xl/worksheets/_rels/sheet1.xml.rels": relationships([
                ["rId1", "comments", "/xl/comments/comment1.xml"],
                ["rId2", "vmlDrawing", "/xl/drawings/commentsDrawing1.vml"],
                ["rId3", "table", "/xl/tables/table1.xml"]
              ]),
              "xl/comments1.xml": "<comments/>",
              "xl/tables/table1.xml": "<table/>",
              "xl/drawings/drawing1.xml": "<unexpected/>"
            }
          }
        )
      )
      assert.deepStrictEqual(cellsOf(yield* workbooks.readSheet({ file: "foreign.xlsx" })), [[1]])
    }))
})

layer(Folder.layer)("a page", (it) => {
  const numbers = (rows: number, columns: number) => (folder: Folder["Service"], name: string) =>
    folder.workbook(name, (book) => {
      const sheet = book.addWorksheet("Numbers")
      for (let row = 1; row <= rows; row++) {
        sheet.addRow(Array.from({ length: columns }, (_, column) => row * 100 + column))
      }
    })

  it.effect("covers the used range, wherever it starts, without rows that have no values", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("gaps.xlsx", (book) => {
        const sheet = book.addWorksheet("Gaps")
        sheet.getCell("C3").value = "first"
        sheet.getCell("D3").value = ""
        sheet.getCell("B1000000").value = "last"
        sheet.getCell("Z99").font = { bold: true }
        book.addWorksheet("Empty")
      })
      assert.deepStrictEqual(yield* workbooks.listSheets("gaps.xlsx"), {
        file: "gaps.xlsx",
        sheets: [
          { name: "Gaps", state: "visible", rows: 999_998, columns: 3, usedRange: "B3:D1000000" },
          { name: "Empty", state: "visible", rows: 0, columns: 0, usedRange: null }
        ]
      })
      assert.deepStrictEqual(withoutVersion(yield* workbooks.readSheet({ file: "gaps.xlsx" })), {
        file: "gaps.xlsx",
        sheet: "Gaps",
        usedRange: "B3:D1000000",
        range: "B3:D1000000",
        columns: ["B", "C", "D"],
        rows: [{ row: 3, cells: [null, "first", ""] }, { row: 1_000_000, cells: ["last", null, null] }],
        merges: [],
        truncated: false
      })
      assert.deepStrictEqual(withoutVersion(yield* workbooks.readSheet({ file: "gaps.xlsx", sheet: "Empty" })), {
        file: "gaps.xlsx",
        sheet: "Empty",
        usedRange: null,
        range: null,
        columns: [],
        rows: [],
        merges: [],
        truncated: false
      })
    }))

  it.effect("covers the cells, columns, rows or cell asked for, as far as the sheet goes", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* numbers(4, 4)(folder, "ranges.xlsx")
      const read = (range: string) =>
        Effect.map(workbooks.readSheet({ file: "ranges.xlsx", range }), (page) => [page.range, cellsOf(page)])
      assert.deepStrictEqual(yield* read("B2:C3"), ["B2:C3", [[201, 202], [301, 302]]])
      assert.deepStrictEqual(yield* read("$c$3:b2"), ["B2:C3", [[201, 202], [301, 302]]])
      assert.deepStrictEqual(yield* read("B:C"), ["B1:C4", [[101, 102], [201, 202], [301, 302], [401, 402]]])
      assert.deepStrictEqual(yield* read("3:4"), ["A3:D4", [[300, 301, 302, 303], [400, 401, 402, 403]]])
      assert.deepStrictEqual(yield* read("D4"), ["D4", [[403]]])
      assert.deepStrictEqual(yield* read("D4:ZZ999"), ["D4", [[403]]])
      assert.deepStrictEqual(yield* read("E5:ZZ999"), [null, []])
    }))

  it.effect("is of the first visible sheet, unless another one is named in any case and form", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("names.xlsx", (book) => {
        book.addWorksheet("Secret", { state: "veryHidden" }).addRow(["hidden"])
        book.addWorksheet("Größe").addRow(["shown"])
      })
      const read = (sheet?: string) =>
        Effect.map(workbooks.readSheet({ file: "names.xlsx", sheet }), (page) => [page.sheet, ...cellsOf(page)])
      assert.deepStrictEqual(yield* read(), ["Größe", ["shown"]])
      assert.deepStrictEqual(yield* read(""), ["Größe", ["shown"]])
      assert.deepStrictEqual(yield* read("secret"), ["Secret", ["hidden"]])
      assert.deepStrictEqual(yield* read("GRÖßE".normalize("NFD")), ["Größe", ["shown"]])
    }))

  it.effect("is followed by others until each row came exactly once", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxCells: 20 })
      yield* numbers(17, 3)(folder, "pages.xlsx")
      const pages = yield* readAll(workbooks, { file: "pages.xlsx" })
      assert.deepStrictEqual(
        pages.map((
          { nextCursor, range, rows, truncated }
        ) => [range, rows.length, truncated, nextCursor !== undefined]),
        [["A1:C6", 6, true, true], ["A7:C12", 6, true, true], ["A13:C17", 5, false, false]]
      )
      assert.deepStrictEqual(
        pages.flatMap((page) => page.rows),
        Array.from({ length: 17 }, (_, index) => ({
          row: index + 1,
          cells: [0, 1, 2].map((column) => (index + 1) * 100 + column)
        }))
      )
    }))

  it.effect("stays in the range it was asked for, from cursor to cursor", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxCells: 4 })
      yield* numbers(9, 3)(folder, "within.xlsx")
      const pages = yield* readAll(workbooks, { file: "within.xlsx", sheet: "Numbers", range: "B3:C7" })
      assert.deepStrictEqual(pages.map((page) => page.range), ["B3:C4", "B5:C6", "B7:C7"])
      assert.deepStrictEqual(pages.flatMap(cellsOf), [[301, 302], [401, 402], [501, 502], [601, 602], [701, 702]])
      const repeated = yield* workbooks.readSheet({
        file: "./within.xlsx",
        sheet: "numbers",
        range: "B3:C7",
        cursor: pages[0]?.nextCursor
      })
      assert.deepStrictEqual(repeated, { ...pages[1], file: "./within.xlsx" })
    }))

  it.effect("has no more bytes than allowed", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxResultBytes: 1000 })
      yield* folder.workbook("bytes.xlsx", (book) => {
        const sheet = book.addWorksheet("Bytes")
        for (let row = 1; row <= 20; row++) sheet.addRow([row, "ü".repeat(row * 10)])
      })
      const pages = yield* readAll(workbooks, { file: "bytes.xlsx" })
      assert.deepStrictEqual(pages.filter((page) => Buffer.byteLength(JSON.stringify(page.rows)) > 1000), [])
      assert.deepStrictEqual(
        pages.flatMap(cellsOf),
        Array.from({ length: 20 }, (_, index) => [index + 1, "ü".repeat((index + 1) * 10)])
      )
    }))

  it.effect("is one row when the row alone has more cells than allowed", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxCells: 2 })
      yield* numbers(3, 4)(folder, "wide.xlsx")
      const pages = yield* readAll(workbooks, { file: "wide.xlsx" })
      assert.deepStrictEqual(pages.map(cellsOf), [
        [[100, 101, 102, 103]],
        [[200, 201, 202, 203]],
        [[300, 301, 302, 303]]
      ])
    }))

  it.effect("cuts the texts of a row that alone has more bytes than allowed", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxResultBytes: 200 })
      yield* folder.workbook("heavy.xlsx", (book) => {
        const sheet = book.addWorksheet("Heavy")
        sheet.addRow(["a".repeat(500), "short", { formula: "REPT(\"b\",500)", result: "b".repeat(500) }])
        sheet.addRow(["next"])
      })
      const pages = yield* readAll(workbooks, { file: "heavy.xlsx" })
      assert.deepStrictEqual(pages.map(({ cut, rows }) => ({ rows, cut })), [
        {
          rows: [{
            row: 1,
            cells: [`${"a".repeat(58)}…`, "short", { formula: "REPT(\"b\",500)", result: `${"b".repeat(58)}…` }]
          }],
          cut: ["A1", "C1"]
        },
        { rows: [{ row: 2, cells: ["next", null, null] }], cut: undefined }
      ])
    }))

  it.effect("cuts a text that is too long between two characters and says so", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("long.xlsx", (book) => {
        book.addWorksheet("Long").addRow([`a${"🚆".repeat(3000)}`, "b".repeat(8192), "c".repeat(8193)])
      })
      const page = yield* workbooks.readSheet({ file: "long.xlsx" })
      assert.deepStrictEqual(cellsOf(page), [[`a${"🚆".repeat(2047)}…`, "b".repeat(8192), `${"c".repeat(8192)}…`]])
      assert.deepStrictEqual(page.cut, ["A1", "C1"])
    }))
})

layer(Folder.layer)("a cursor", (it) => {
  const first = (name: string) =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxCells: 2 })
      yield* folder.workbook(name, (book) => {
        for (const sheet of ["One", "Two"]) book.addWorksheet(sheet).addRows([[1, 2], [3, 4], [5, 6]])
      })
      const page = yield* workbooks.readSheet({ file: name })
      return { workbooks, cursor: page.nextCursor ?? "" }
    })
  const unreadable = {
    reason: "BadCursor",
    message: "The cursor is not valid. Pass nextCursor of the page before unchanged, or start without a cursor."
  }

  it.effect("is refused when it is none", () =>
    Effect.gen(function*() {
      const { workbooks, cursor } = yield* first("none.xlsx")
      const json = Buffer.from(cursor, "base64url").toString()
      const forged = (change: object) =>
        Buffer.from(JSON.stringify({ ...JSON.parse(json) as object, ...change })).toString("base64url")
      const forgeries = [{ row: "2" }, { row: 0 }, { row: 4 }, { row: 1.5 }, { sheet: "Three" }, { range: "all" }]
      const cursors = ["x", "%%%", "5", cursor.slice(1), ...forgeries.map(forged)]
      for (const cursor of cursors) {
        assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "none.xlsx", cursor })), unreadable)
      }
    }))

  it.effect("is refused for another file", () =>
    Effect.gen(function*() {
      const { cursor } = yield* first("mine.xlsx")
      const { workbooks } = yield* first("other.xlsx")
      assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "other.xlsx", cursor })), {
        reason: "BadCursor",
        message: "The cursor belongs to another file. Start without a cursor."
      })
    }))

  it.effect("is refused for another sheet", () =>
    Effect.gen(function*() {
      const { workbooks, cursor } = yield* first("sheets.xlsx")
      assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "sheets.xlsx", sheet: "Two", cursor })), {
        reason: "BadCursor",
        message: "The cursor belongs to another sheet. Leave out sheet and range, or start without a cursor."
      })
    }))

  it.effect("is refused for another range", () =>
    Effect.gen(function*() {
      const { workbooks, cursor } = yield* first("range.xlsx")
      assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "range.xlsx", range: "A1:A3", cursor })), {
        reason: "BadCursor",
        message: "The cursor belongs to another range. Leave out sheet and range, or start without a cursor."
      })
    }))

  it.effect("is refused once the file has changed", () =>
    Effect.gen(function*() {
      const { workbooks, cursor } = yield* first("changed.xlsx")
      const folder = yield* Folder
      yield* folder.workbook("changed.xlsx", (book) => {
        book.addWorksheet("One").addRows(Array.from({ length: 100 }, (_, index) => [index, index * 2]))
      })
      assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "changed.xlsx", cursor })), {
        reason: "BadCursor",
        message: "The file changed since the page before. Start again without a cursor."
      })
    }))
})

layer(Folder.layer)("a file", (it) => {
  const refused = (file: string, options?: Omit<Workbooks.Options, "root">) =>
    Effect.flatMap(open(options), (workbooks) => failureOf(workbooks.listSheets(file)))
  const one = (folder: Folder["Service"], name: string) =>
    folder.workbook(name, (book) => book.addWorksheet("One").addRow([1]))

  it.effect("is named from the root or absolutely, and may be a link that stays inside", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      yield* fs.makeDirectory(join(folder.root, "sub"))
      yield* one(folder, "sub/..two dots.XLSM")
      yield* fs.symlink(join(folder.root, "sub", "..two dots.XLSM"), join(folder.root, "inside.xlsx"))
      yield* fs.symlink(folder.root, join(folder.outside, "linked root"))
      const workbooks = yield* open()
      const throughLink = yield* Workbooks.make({ root: join(folder.outside, "linked root") })
      const sheets = [{ name: "One", state: "visible", rows: 1, columns: 1, usedRange: "A1" } as const]
      const files = [
        "sub/..two dots.XLSM",
        "./sub/../sub/..two dots.XLSM",
        join(folder.root, "sub", "..two dots.XLSM"),
        "inside.xlsx"
      ]
      for (const file of files) assert.deepStrictEqual(yield* workbooks.listSheets(file), { file, sheets })
      const absolute = join(folder.outside, "linked root", "inside.xlsx")
      assert.deepStrictEqual(yield* throughLink.listSheets(absolute), { file: absolute, sheets })
      assert.deepStrictEqual(yield* throughLink.listSheets(join(folder.root, "inside.xlsx")), {
        file: join(folder.root, "inside.xlsx"),
        sheets
      })
    }))

  it.effect("is refused outside the root, through .., an absolute path or a link", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      yield* one(folder, "../secret.xlsx")
      yield* fs.symlink(join(folder.outside, "secret.xlsx"), join(folder.root, "file link.xlsx"))
      yield* fs.symlink(folder.outside, join(folder.root, "folder link"))
      const files = [
        "../secret.xlsx",
        "sub/../../secret.xlsx",
        "../root/../secret.xlsx",
        "../does not exist.xlsx",
        "..",
        join(folder.outside, "secret.xlsx"),
        `${folder.root}-other/secret.xlsx`,
        "file link.xlsx",
        "folder link/secret.xlsx"
      ]
      for (const file of files) {
        assert.deepStrictEqual(yield* refused(file), {
          reason: "OutsideRoot",
          message: `"${file}" is outside the folder that this server may read. ` +
            `Give a path below that folder, such as "budget.xlsx" or "reports/budget.xlsx".`
        })
      }
    }))

  it.effect("is refused when it does not exist, with the names of some that do", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      const root = join(folder.root, "known")
      yield* fs.makeDirectory(root)
      const workbooks = yield* Workbooks.make({ root })
      assert.deepStrictEqual(yield* failureOf(workbooks.listSheets("missing.xlsx")), {
        reason: "NotFound",
        message: "There is no file \"missing.xlsx\". Paths start at the server's folder. " +
          "There are no workbooks directly in it."
      })
      yield* Effect.forEach(["known/b.xlsx", "known/ä.xlsm", "known/~$b.xlsx", "known/c.txt"], (name) =>
        folder.write(name, ""))
      for (const file of ["missing.xlsx", "b.xlsx/missing.xlsx", "no\0.xlsx", `${"n".repeat(300)}.xlsx`]) {
        const shown = file.length > 200 ? `${file.slice(0, 200)}…` : file
        assert.deepStrictEqual(yield* failureOf(workbooks.listSheets(file)), {
          reason: "NotFound",
          message: `There is no file "${shown}". Paths start at the server's folder. ` +
            `Workbooks directly in it: "b.xlsx", "ä.xlsm".`
        })
      }
    }))

  it.effect("is refused when it is no workbook", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      yield* fs.makeDirectory(join(folder.root, "folder.xlsx"))
      yield* folder.write("notes.txt", "text")
      yield* folder.write("text.xlsx", "a,b\n1,2\n")
      yield* folder.write("empty.xlsx", "")
      yield* folder.write("protected.xlsx", Uint8Array.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]))
      yield* folder.write("document.xlsx", zip({ "word/document.xml": "<w/>" }))
      yield* folder.write("chart.xlsx", zip({ "xl/workbook.xml": "<workbook><sheets/></workbook>" }))
      yield* folder.write("broken.xlsx", rawWorkbook("<sheetData><row r=\"1\"><c r=\"A1\"><v>1</x></c>"))
      yield* one(folder, "whole.xlsx")
      const whole = yield* fs.readFile(join(folder.root, "whole.xlsx"))
      yield* folder.write("cut.xlsx", whole.slice(0, whole.length / 2))
      yield* folder.write("flipped.xlsx", whole.map((byte, index) => index > 40 && index < 3000 ? byte ^ 0x55 : byte))
      const expected: Readonly<Record<string, string>> = {
        "": "is a folder. Name an .xlsx file in it.",
        "folder.xlsx": "is a folder. Name an .xlsx file in it.",
        "notes.txt": "is not an Excel workbook. Only .xlsx and .xlsm files can be read.",
        "text.xlsx": "has the name of an Excel workbook, but not the contents. Open it in Excel and save it as .xlsx.",
        "empty.xlsx": "has the name of an Excel workbook, but not the contents. Open it in Excel and save it as .xlsx.",
        "protected.xlsx":
          "is protected by a password or in the old .xls format. Open it in Excel and save it as .xlsx without a password.",
        "document.xlsx": "holds no Excel workbook. Open it in the program that made it and save it as .xlsx.",
        "chart.xlsx": "has no worksheet that can be read. Open it in Excel and save it as .xlsx.",
        "broken.xlsx": "is damaged or incomplete. Copy it again, or open it in Excel and save it as .xlsx.",
        "cut.xlsx": "is damaged or incomplete. Copy it again, or open it in Excel and save it as .xlsx.",
        "flipped.xlsx": "is damaged or incomplete. Copy it again, or open it in Excel and save it as .xlsx."
      }
      for (const [file, message] of Object.entries(expected)) {
        assert.deepStrictEqual(yield* refused(file), { reason: "NotAWorkbook", message: `"${file}" ${message}` })
      }
    }))

  it.effect("is refused when it is too large, as it is or unpacked", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* one(folder, "large.xlsx")
      const advice = "Save the sheets you need as a workbook of their own."
      assert.deepStrictEqual(yield* refused("large.xlsx", { maxFileBytes: 1000 }), {
        reason: "TooLarge",
        message: `"large.xlsx" is too large: it has 0.1 MiB, and at most 0.1 MiB can be read. ${advice}`
      })
      assert.deepStrictEqual(yield* refused("large.xlsx", { maxUnpackedBytes: 1000 }), {
        reason: "TooLarge",
        message: `"large.xlsx" is too large: unpacked it has 0.1 MiB, and at most 0.1 MiB can be read. ${advice}`
      })
      yield* folder.write("bomb.xlsx", zip({ "xl/workbook.xml": "", "xl/media/bomb": "" }, { "xl/media/bomb": 3e9 }))
      assert.deepStrictEqual(yield* refused("bomb.xlsx"), {
        reason: "TooLarge",
        message: `"bomb.xlsx" is too large: unpacked it has 2861.1 MiB, and at most 64 MiB can be read. ${advice}`
      })
    }))

  it.effect("has no sheet or range that is not there", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("asked.xlsx", (book) => {
        for (const name of ["Übersicht", "支出"]) book.addWorksheet(name).addRow([1])
      })
      assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "asked.xlsx", sheet: "Budget" })), {
        reason: "UnknownSheet",
        message: "\"asked.xlsx\" has no sheet \"Budget\". Its sheets are: \"Übersicht\", \"支出\"."
      })
      for (const range of ["A", "A1:B", "支出!A1", "A1;B2", "XFE1", "A0"]) {
        assert.deepStrictEqual(yield* failureOf(workbooks.readSheet({ file: "asked.xlsx", range })), {
          reason: "BadRange",
          message: `"${range}" is not a range. Write "A1:C20" for cells, "B:D" for columns, "2:10" for rows or "B2" ` +
            `for one cell, and name the sheet in its own parameter.`
        })
      }
    }))
})

describe("the service", () => {
  it.effect("fails to start when its root does not exist", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const error = yield* Effect.flip(Workbooks.make({ root: join(folder.root, "nowhere") }))
      assert.strictEqual(error.reason._tag, "NotFound")
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("keeps the last workbook in memory for a while, until the file changes", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const fs = yield* FileSystem.FileSystem
      let reads = 0
      const workbooks = yield* open({ keepFor: "30 seconds" }).pipe(Effect.provideService(FileSystem.FileSystem, {
        ...fs,
        readFile: (path) => Effect.tap(fs.readFile(path), () => Effect.sync(() => reads++))
      }))
      const write = (rows: number) =>
        folder.workbook(
          "kept.xlsx",
          (book) => book.addWorksheet("Kept").addRows(Array.from({ length: rows }, () => [1]))
        )
      const read = Effect.map(workbooks.readSheet({ file: "kept.xlsx" }), ({ range }) => [range, reads])
      yield* write(2)
      assert.deepStrictEqual(yield* Effect.all([read, read], { concurrency: 2 }), [["A1:A2", 1], ["A1:A2", 1]])
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(yield* read, ["A1:A2", 1])
      yield* write(30)
      assert.deepStrictEqual(yield* read, ["A1:A30", 2])
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* read, ["A1:A30", 3])
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("reads a file again after it was refused", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const fs = yield* FileSystem.FileSystem
      const workbooks = yield* open()
      const path = join(folder.root, "fixed.xlsx")
      yield* folder.workbook("fixed.xlsx", (book) => book.addWorksheet("Fixed").addRow([1]))
      const whole = yield* fs.readFile(path)
      const times = Option.getOrThrow((yield* fs.stat(path)).mtime)
      // Same size and time: nothing but the refusal tells the two apart.
      yield* folder.write("fixed.xlsx", whole.map(() => 0x20))
      yield* fs.utimes(path, times, times)
      assert.strictEqual((yield* failureOf(workbooks.listSheets("fixed.xlsx"))).reason, "NotAWorkbook")
      yield* folder.write("fixed.xlsx", whole)
      yield* fs.utimes(path, times, times)
      assert.strictEqual((yield* workbooks.listSheets("fixed.xlsx")).sheets.length, 1)
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("says that it may not open a file", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const fs = yield* FileSystem.FileSystem
      yield* folder.workbook("locked.xlsx", (book) => book.addWorksheet("Locked").addRow([1]))
      const workbooks = yield* open().pipe(Effect.provideService(FileSystem.FileSystem, {
        ...fs,
        readFile: () =>
          Effect.fail(PlatformError.systemError({
            _tag: "PermissionDenied",
            module: "FileSystem",
            method: "readFile",
            pathOrDescriptor: join(folder.root, "locked.xlsx")
          }))
      }))
      assert.deepStrictEqual(yield* failureOf(workbooks.listSheets("locked.xlsx")), {
        reason: "NotAWorkbook",
        message: "\"locked.xlsx\" cannot be opened. Check that the server may read it."
      })
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("lets other work run while it parses a worksheet", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("busy.xlsx", addManyRows)
      let turns = 0
      let turnsWhileParsing = 0
      yield* aroundParsing((parse) => {
        const before = turns
        return parse().then(() => {
          turnsWhileParsing = turns - before
        })
      })
      const others = yield* Effect.forkChild(Effect.forever(Effect.promise(() => setImmediate().then(() => turns++))))
      const page = yield* workbooks.readSheet({ file: "busy.xlsx", range: "A4000:D4000" })
      yield* Fiber.interrupt(others)
      assert.deepStrictEqual(cellsOf(page), [[4000, 4000.5, 4000.25, "text"]])
      assert.isAbove(turnsWhileParsing, 20)
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("stops parsing when a read is interrupted, and reads on afterwards", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("busy.xlsx", addManyRows)
      const started = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<unknown>()
      yield* aroundParsing((parse) => {
        Deferred.doneUnsafe(started, Exit.void)
        return parse().catch((error: unknown) => {
          Deferred.doneUnsafe(ended, Exit.succeed(error))
          throw error
        })
      })
      const reading = yield* Effect.forkChild(workbooks.listSheets("busy.xlsx"))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(reading)
      assert.propertyVal(yield* Deferred.await(ended), "name", "AbortError")
      assert.strictEqual((yield* workbooks.listSheets("busy.xlsx")).sheets[0]?.rows, 4000)
    }).pipe(Effect.provide(Folder.layer)))
})

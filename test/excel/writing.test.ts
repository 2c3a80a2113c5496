// Writes as a whole: what is in the file afterwards, what is refused, and what happens to the file on the way.
import { assert, describe, it, layer } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as PlatformError from "effect/PlatformError"
import { Buffer } from "node:buffer"
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type { Value } from "../../examples/excel/values.ts"
import type { WorkbookError } from "../../examples/excel/WorkbookError.ts"
import type * as Workbooks from "../../examples/excel/Workbooks.ts"
import {
  type Before,
  Folder,
  leftovers,
  open,
  rawWorkbook,
  relationships,
  stored,
  textOf,
  watchChanges,
  zip
} from "./support.ts"

type Service = Workbooks.Workbooks["Service"]

const cellsOf = (cells: Readonly<Record<string, Value>>) =>
  Object.entries(cells).map(([cell, value]) => ({ cell, value }))

const failureOf = <A, R>(effect: Effect.Effect<A, WorkbookError, R>) =>
  Effect.map(Effect.flip(effect), ({ message, reason }) => ({ reason: reason._tag, message }))

const load = (bytes: Uint8Array) =>
  Effect.promise(async () => {
    const { default: exceljs } = await import("exceljs")
    const book = new exceljs.Workbook()
    // Declared as an ArrayBuffer, but a Node buffer does.
    await book.xlsx.load(Buffer.from(bytes) as never)
    return book
  })

const one = (folder: Folder["Service"], name: string) =>
  folder.workbook(name, (book) => {
    book.addWorksheet("One").addRow([1, 2])
  })

layer(Folder.layer)("a write", (it) => {
  it.effect("is read back, by the service and by exceljs", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("values.xlsx", (book) => {
        const sheet = book.addWorksheet("Größen 支出")
        sheet.getRow(1).values = ["old", 1, { formula: "B1*2", result: 2 }, true]
        sheet.getCell("B1").numFmt = "0.00 \"€\""
        sheet.getCell("B1").font = { bold: true }
        sheet.getCell("E1").numFmt = "dd.mm.yyyy"
      })
      const written = yield* workbooks.writeCells({
        file: "values.xlsx",
        sheet: "GRÖSSEN 支出".replace("SS", "ß"),
        cells: cellsOf({
          A1: "Köln & <Zürich> 🚆",
          B1: -0.5,
          C1: "=B1*2",
          D1: false,
          E1: { date: "2026-03-31" },
          F1: { date: "2026-03-31T09:30:00" },
          A2: { formula: "=SUM(B1:B9)" },
          B2: "a\nb\u0007_x0041_",
          C2: null,
          XFD1048576: 1e-7
        })
      })
      assert.deepStrictEqual({ ...written, version: "", note: "" }, {
        file: "values.xlsx",
        sheet: "Größen 支出",
        created: false,
        cells: 10,
        version: "",
        note: ""
      })
      const page = yield* workbooks.readSheet({ file: "values.xlsx", range: "A1:F2" })
      assert.strictEqual(page.version, written.version)
      assert.deepStrictEqual(page.rows, [
        { row: 1, cells: ["Köln & <Zürich> 🚆", -0.5, "=B1*2", false, "2026-03-31", "2026-03-31T09:30:00"] },
        { row: 2, cells: [{ formula: "SUM(B1:B9)", result: null }, "a\nb\u0007_x0041_", null, null, null, null] }
      ])
      assert.strictEqual(page.usedRange, "A1:XFD1048576")
      const sheet = (yield* load(yield* folder.read("values.xlsx"))).worksheets[0]
      assert.deepStrictEqual(
        ["A1", "B1", "C1", "D1", "E1", "A2"].map((address) => sheet?.getCell(address).value),
        ["Köln & <Zürich> 🚆", -0.5, "=B1*2", false, new Date("2026-03-31"), { formula: "SUM(B1:B9)" }]
      )
      assert.deepStrictEqual(
        [sheet?.getCell("B1").numFmt, sheet?.getCell("B1").font.bold, sheet?.getCell("E1").numFmt],
        ["0.00 \"€\"", true, "dd.mm.yyyy"]
      )
    }))

  it.effect("keeps every other part byte for byte, and the sheet around its cells", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      const before = `<sheetPr><tabColor rgb="FFFF0000"/></sheetPr><dimension ref="A1:C9"/>` +
        `<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" state="frozen"/></sheetView></sheetViews>` +
        `<cols><col min="1" max="1" width="30.5" customWidth="1"/></cols><sheetData>` +
        `<row r="1" ht="40" customHeight="1"><c r="A1" s="1" t="s"><v>0</v></c>`
      const cell = `<c r="B1" s="2"><v>1</v></c>`
      const after = `<c r="C1"><f>1+1</f><v>2</v></c></row><row r="2" hidden="1"/></sheetData>` +
        `<autoFilter ref="A1:C9"/><mergeCells count="1"><mergeCell ref="A5:C6"/></mergeCells>` +
        `<conditionalFormatting sqref="B1"><cfRule type="dataBar" priority="1"/></conditionalFormatting>` +
        `<dataValidations count="1"><dataValidation type="list" sqref="A2"><formula1>"a,b"</formula1></dataValidation>` +
        `</dataValidations><hyperlinks><hyperlink ref="A1" r:id="rId5"/></hyperlinks><pageMargins left="0.7"/>` +
        `<drawing r:id="rId1"/><legacyDrawing r:id="rId2"/><extLst><ext uri="{05C60535}"><x14:sparklineGroups/></ext>` +
        `</extLst>`
      const files = {
        "xl/worksheets/_rels/sheet1.xml.rels": relationships([
          ["rId1", "drawing", "../drawings/drawing1.xml"],
          ["rId2", "vmlDrawing", "../drawings/vmlDrawing1.vml"],
          ["rId3", "comments", "../comments1.xml"],
          ["rId5", "hyperlink", "https://example.com/"]
        ]),
        "xl/sharedStrings.xml": "<sst count=\"1\"><si><r><t>rich</t></r></si></sst>",
        "xl/styles.xml": "<styleSheet><cellXfs count=\"3\"><xf/><xf/><xf/></cellXfs></styleSheet>",
        "xl/drawings/drawing1.xml": "<xdr:wsDr><c:chart r:id=\"rId1\"/></xdr:wsDr>",
        "xl/drawings/_rels/drawing1.xml.rels": relationships([["rId1", "chart", "../charts/chart1.xml"]]),
        "xl/drawings/vmlDrawing1.vml": "<xml><v:shape/></xml>",
        "xl/charts/chart1.xml": "<c:chartSpace/>",
        "xl/media/image1.png": `\x89PNG\r\n${randomBytes(64).toString("latin1")}`,
        "xl/comments1.xml": "<comments/>",
        "xl/pivotCache/pivotCacheDefinition1.xml": "<pivotCacheDefinition/>",
        "xl/worksheets/sheet2.xml":
          "<worksheet><sheetData><row r=\"1\"><c r=\"A1\"><v>7</v></c></row></sheetData></worksheet>",
        "xl/vbaProject.bin": "macros",
        "customXml/item1.xml": "<anything/>",
        "docProps/custom.xml": "<Properties/>"
      }
      const bytes = rawWorkbook(before + cell + after, {
        workbook:
          `<definedNames><definedName name="Rate" localSheetId="0" hidden="1">0.19</definedName></definedNames>` +
          `<calcPr calcId="191029"/><extLst/>`,
        files
      })
      yield* folder.write("rich.xlsm", bytes)
      yield* workbooks.writeCells({ file: "rich.xlsm", sheet: "Raw", cells: cellsOf({ B1: "new" }) })
      const now = yield* folder.read("rich.xlsm")
      const [old, changed] = [stored(bytes), stored(now)]
      assert.deepStrictEqual(Array.from(changed.keys()), Array.from(old.keys()))
      assert.deepStrictEqual(
        Array.from(old.keys()).filter((name) => !old.get(name)?.equals(changed.get(name) ?? Buffer.alloc(0))),
        ["xl/workbook.xml", "xl/worksheets/sheet1.xml"]
      )
      assert.strictEqual(
        yield* textOf(now, "xl/worksheets/sheet1.xml"),
        (yield* textOf(bytes, "xl/worksheets/sheet1.xml")).replace(
          cell,
          `<c r="B1" s="2" t="inlineStr"><is><t>new</t></is></c>`
        )
      )
      assert.strictEqual(
        yield* textOf(now, "xl/workbook.xml"),
        (yield* textOf(bytes, "xl/workbook.xml")).replace(`calcId="191029"`, `calcId="191029" fullCalcOnLoad="1"`)
      )
      // Once more, and nothing but the cell is left to change.
      yield* workbooks.writeCells({ file: "rich.xlsm", sheet: "Raw", cells: cellsOf({ B1: "newer" }) })
      const again = stored(yield* folder.read("rich.xlsm"))
      assert.deepStrictEqual(
        Array.from(changed.keys()).filter((name) => !changed.get(name)?.equals(again.get(name) ?? Buffer.alloc(0))),
        ["xl/worksheets/sheet1.xml"]
      )
    }))

  it.effect("is the same when it is done again", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* one(folder, "twice.xlsx")
      const write = workbooks.writeCells({
        file: "twice.xlsx",
        sheet: "New",
        createSheet: true,
        cells: cellsOf({ A1: "x", B1: { formula: "One!A1" }, C1: { date: "2026-03-31" }, D1: null })
      })
      yield* write
      const once = yield* folder.read("twice.xlsx")
      yield* write
      assert.isTrue(Buffer.from(once).equals(yield* folder.read("twice.xlsx")))
    }))

  it.effect("adds a sheet when it shall, and uses one that is there", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("sheets.xlsx", (book) => {
        book.addWorksheet("One").addRow([1])
        book.addWorksheet("Secret", { state: "veryHidden" }).addRow([2])
      })
      const write = (sheet: string) =>
        Effect.map(
          workbooks.writeCells({ file: "sheets.xlsx", sheet, createSheet: true, cells: cellsOf({ B2: sheet }) }),
          ({ created, sheet }) => ({ created, sheet })
        )
      assert.deepStrictEqual(yield* write("Büro & <Miete> 支出"), { created: true, sheet: "Büro & <Miete> 支出" })
      assert.deepStrictEqual(yield* write("SECRET"), { created: false, sheet: "Secret" })
      assert.deepStrictEqual((yield* workbooks.listSheets("sheets.xlsx")).sheets, [
        { name: "One", state: "visible", rows: 1, columns: 1, usedRange: "A1" },
        { name: "Secret", state: "hidden", rows: 2, columns: 2, usedRange: "A1:B2" },
        { name: "Büro & <Miete> 支出", state: "visible", rows: 1, columns: 1, usedRange: "B2" }
      ])
      const book = yield* load(yield* folder.read("sheets.xlsx"))
      assert.deepStrictEqual(book.worksheets.map(({ name, state }) => [name, state]), [
        ["One", "visible"],
        ["Secret", "veryHidden"],
        ["Büro & <Miete> 支出", "visible"]
      ])
    }))

  it.effect("takes a sheet of 50,000 rows in a few seconds, and tells how far it is", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      const rows = Array.from(
        { length: 50_000 },
        (_, row) =>
          `<row r="${row + 1}"><c r="A${row + 1}"><v>${row}</v></c><c r="B${row + 1}"><f>A${row + 1}*2</f></c></row>`
      )
      yield* folder.write("big.xlsx", rawWorkbook(`<sheetData>${rows.join("")}</sheetData>`))
      const steps: Array<number> = []
      yield* workbooks.writeCells(
        {
          file: "big.xlsx",
          sheet: "Raw",
          cells: Array.from({ length: 10_000 }, (_, index) => ({ cell: `A${index * 6 + 1}`, value: "x" }))
        },
        ({ done }) => Effect.sync(() => steps.push(done))
      )
      assert.deepStrictEqual(steps, steps.toSorted((a, b) => a - b))
      assert.strictEqual(new Set(steps).size, steps.length)
      assert.strictEqual(steps.at(-1), 100)
      assert.isAbove(steps.length, 5)
      const seen: Array<number> = []
      const page = yield* workbooks.readSheet(
        { file: "big.xlsx", range: "A59995:B59995" },
        ({ done, total }) => Effect.sync(() => seen.push(done / total))
      )
      assert.deepStrictEqual(page.rows, [{ row: 59_995, cells: ["x", null] }])
      assert.deepStrictEqual(seen, seen.toSorted((a, b) => a - b))
      assert.isAbove(seen.length, 5)
    }), 20_000)
})

layer(Folder.layer)("a write is refused", (it) => {
  const NOTHING = "Nothing was written."

  /** Tries to write into a copy of a workbook and checks that it is left alone. */
  const refused = (
    bytes: Uint8Array,
    cells: Readonly<Record<string, Value>> | Workbooks.WriteOptions["cells"],
    options?: Partial<Workbooks.WriteOptions>
  ) =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write("refused.xlsx", bytes)
      const { message } = yield* failureOf(workbooks.writeCells({
        file: "refused.xlsx",
        sheet: "Raw",
        cells: Array.isArray(cells) ? cells : cellsOf(cells as Readonly<Record<string, Value>>),
        ...options
      }))
      assert.isTrue(Buffer.from(bytes).equals(yield* folder.read("refused.xlsx")))
      assert.deepStrictEqual(yield* leftovers, [])
      return message
    })

  const plain = rawWorkbook("<sheetData/>")

  it.effect("when a cell is none, or named twice", () =>
    Effect.gen(function*() {
      for (const cell of ["", "B", "2", "B0", "B2:C3", "XFE1", "A1048577", "Raw!A1", "R1C1", "Ä1"]) {
        assert.strictEqual(
          yield* refused(plain, { [cell]: 1 }),
          `"${cell}" is not a cell. Write a column and a row, such as B2, and name the sheet in its own parameter. ${NOTHING}`
        )
      }
      assert.strictEqual(
        yield* refused(plain, [{ cell: "B2", value: 1 }, { cell: "$b$2", value: 2 }]),
        `"$b$2" is named twice. Give each cell one value. ${NOTHING}`
      )
    }))

  it.effect("when a value is none that a cell can hold", () =>
    Effect.gen(function*() {
      const messages: ReadonlyArray<readonly [Value, string]> = [
        ["x".repeat(32_768), "The text is too long. A cell holds at most 32,767 characters."],
        [{ formula: " = " }, "The formula is empty. Write null to empty a cell."],
        [{ formula: `"${"x".repeat(8191)}"` }, "The formula is too long. A formula has at most 8,192 characters."],
        [{ formula: "SUM(A1" }, "A bracket or a quotation mark in the formula has no counterpart."],
        [{ formula: "A1&\"x" }, "A bracket or a quotation mark in the formula has no counterpart."],
        [{ formula: "SUM(A1]" }, "A bracket or a quotation mark in the formula has no counterpart."],
        [{ formula: "A1+" }, "The formula starts or ends with an operator that has nothing to work on."],
        [
          { formula: "SUMME(A1;B1)" },
          "Separate the arguments of a function with commas, and write function names in English."
        ],
        [
          { formula: "=cmd|'/C calc'!A0" },
          "A formula must not call other programs. Write it without the character |."
        ],
        [{ formula: "{=SUM(A1:A2)}" }, "Array formulas in braces cannot be written. Write a formula for each cell."],
        [
          { formula: "LET(x,1,x)" },
          "LET and LAMBDA cannot be written. Write the formula without them, or use cells for steps in between."
        ],
        [{ date: "31.03.2026" }, "The date is not valid. Write 2026-03-31 or 2026-03-31T09:30:00."],
        [{ date: "2026-02-29" }, "The date is not valid. Write 2026-03-31 or 2026-03-31T09:30:00."],
        [{ date: "2026-03-31T24:00" }, "The date is not valid. Write 2026-03-31 or 2026-03-31T09:30:00."],
        [
          { date: "2026-03-31T09:30:00Z" },
          "Excel knows no time zones. Write the date as the cell shall show it, such as 2026-03-31T09:30:00."
        ],
        [
          { date: "1900-02-28" },
          "Excel has no such date. Its dates go from 1900-03-01, in some workbooks from 1904-01-01, to 9999-12-31."
        ]
      ]
      for (const [value, message] of messages) {
        assert.strictEqual(
          yield* refused(plain, { A1: 1, C3: value }),
          `${message} The value is that of cell "C3". ${NOTHING}`
        )
      }
      // The longest ones, and brackets and separators where they are none.
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write("longest.xlsx", plain)
      yield* workbooks.writeCells({
        file: "longest.xlsx",
        sheet: "Raw",
        cells: cellsOf({
          A1: "x".repeat(32_767),
          A2: { formula: `"${"x".repeat(8190)}"` },
          A3: { formula: "SUM({1;2},Tab[[a'];(]:[b]])&\"(;\"&'(;'!A1&\"|\"&#REF!" }
        })
      })
    }))

  it.effect("when a cell belongs to something that it would damage", () =>
    Effect.gen(function*() {
      const bytes = rawWorkbook(
        `<sheetData><row r="2"><c r="B2"><f t="array" ref="B2:B4">A1:A3</f></c><c r="C2"><f t="array" ref="C2">1</f></c>` +
          `<c r="D2"><f t="dataTable" ref="D2:E3" dt2D="1"/></c></row></sheetData>` +
          `<mergeCells><mergeCell ref="F1:G2"/></mergeCells>`,
        {
          files: {
            "xl/worksheets/_rels/sheet1.xml.rels": relationships([
              ["rId1", "table", "../tables/table1.xml"],
              ["rId2", "table", "/xl/tables/table2.xml"],
              ["rId3", "pivotTable", "../pivotTables/pivotTable1.xml"]
            ]),
            "xl/tables/table1.xml": `<table ref="H1:I9" totalsRowCount="1"/>`,
            "xl/tables/table2.xml": `<table ref="J1:J9" headerRowCount="0"/>`,
            "xl/pivotTables/pivotTable1.xml": `<pivotTableDefinition><location ref="A20:B30"/></pivotTableDefinition>`
          }
        }
      )
      const messages: Readonly<Record<string, string>> = {
        G1: "is covered by the merged cells F1:G2. Write to F1, their first cell.",
        B3: "belongs to the array formula in B2:B4. Excel changes such a formula only as a whole; change it there.",
        E3: "belongs to the data table in D2:E3. Excel changes such a table only as a whole; change it there.",
        I1: "is a heading of the table in H1:I1. Formulas use the headings of a table; rename them in Excel.",
        H9: "is in the total row of the table in H9:I9. Change that row in Excel.",
        A25: "belongs to the pivot table in A20:B30, which would overwrite it. Change the data that it is made from."
      }
      for (const [cell, message] of Object.entries(messages)) {
        assert.strictEqual(yield* refused(bytes, { A1: 1, [cell]: 2 }), `"${cell}" ${message} ${NOTHING}`)
      }
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write("allowed.xlsx", bytes)
      const cells = cellsOf({ F1: 1, C2: 2, I2: 3, J1: 4, J9: 5, C25: 6 })
      yield* workbooks.writeCells({ file: "allowed.xlsx", sheet: "Raw", cells })
    }))

  it.effect("when the sheet is protected and the cell is locked, or the workbook and the sheet is new", () =>
    Effect.gen(function*() {
      const bytes = rawWorkbook(
        `<sheetData><row r="1"><c r="A1" s="1"/><c r="B1"/></row></sheetData><sheetProtection sheet="1"/>`,
        {
          workbook: `<workbookProtection lockStructure="1"/>`,
          files: {
            "xl/styles.xml":
              `<styleSheet><cellXfs><xf/><xf><protection hidden="1" locked="0"/></xf></cellXfs></styleSheet>`,
            "xl/_rels/workbook.xml.rels": relationships([
              ["rId1", "worksheet", "worksheets/sheet1.xml"],
              ["rId2", "styles", "styles.xml"]
            ])
          }
        }
      )
      for (const cell of ["B1", "C1", "A9"]) {
        assert.strictEqual(
          yield* refused(bytes, { A1: 1, [cell]: 1 }),
          `"${cell}" is locked, because its sheet is protected. Unprotect the sheet in Excel first. ${NOTHING}`
        )
      }
      assert.strictEqual(
        yield* refused(bytes, { A1: 1 }, { sheet: "New", createSheet: true }),
        "\"refused.xlsx\" does not allow new sheets, because its structure is protected. Unprotect it in Excel first."
      )
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write("form.xlsx", bytes)
      yield* workbooks.writeCells({ file: "form.xlsx", sheet: "Raw", cells: cellsOf({ A1: 1 }) })
    }))

  it.effect("when there is no such sheet, or none of that name can be", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* refused(plain, { A1: 1 }, { sheet: "Budget" }),
        "\"refused.xlsx\" has no sheet \"Budget\". Its sheets are: \"Raw\"."
      )
      for (const sheet of ["", "a/b", "a:b", "[a]", "a?", "'a", "a'", "history", "x".repeat(32), "a\nb"]) {
        assert.include(
          yield* refused(plain, { A1: 1 }, { sheet, createSheet: true }),
          "cannot be the name of a new sheet. A name has 1 to 31 characters, none of \\ / ? * [ ] :, no ' at its start or end"
        )
      }
    }))

  it.effect("when there are too many cells", () =>
    Effect.gen(function*() {
      const cells = Array.from({ length: 10_001 }, (_, index) => ({ cell: `A${index + 1}`, value: 1 }))
      assert.strictEqual(
        yield* refused(plain, cells),
        `10001 cells are too many: one call writes at most 10000. ${NOTHING} Write them in several calls.`
      )
    }))

  it.effect("when the file is none that can be changed", () =>
    Effect.gen(function*() {
      const unusual =
        "\"refused.xlsx\" is stored in an unusual way, which the server cannot change. Open it in Excel and save it."
      const damaged =
        "\"refused.xlsx\" is damaged or incomplete. Copy it again, or open it in Excel and save it as .xlsx."
      const raw = (files: Readonly<Record<string, string>>) => rawWorkbook("<sheetData/>", { files })
      const twice = Buffer.from(raw({ "xl/worksheets/sheet2.xml": "" }))
      for (let at = twice.indexOf("sheet2"); at >= 0; at = twice.indexOf("sheet2")) twice.write("sheet1", at)
      const flipped = Buffer.from(plain)
      flipped.write("DATA", flipped.indexOf("sheetData/") + 5)
      const cases: ReadonlyArray<readonly [Uint8Array, string]> = [
        [
          raw({ "_xmlsignatures/sig1.xml": "" }),
          "\"refused.xlsx\" has a digital signature, which any change would make invalid. " +
          "Write to a copy without the signature."
        ],
        [
          raw({ "xl/worksheets/sheet1.xml": "<?xml version=\"1.0\"?><x:worksheet><x:sheetData/></x:worksheet>" }),
          unusual
        ],
        [raw({ "xl/worksheets/sheet1.xml": "<?xml version=\"1.0\" encoding=\"UTF-16\"?><worksheet/>" }), unusual],
        [
          raw({ "xl/worksheets/sheet1.xml": "<!DOCTYPE x [<!ENTITY y \"z\">]><worksheet><sheetData/></worksheet>" }),
          unusual
        ],
        [twice, unusual],
        [raw({ "xl/worksheets/sheet1.xml": "<worksheet/>" }), damaged],
        [raw({ "xl/worksheets/sheet1.xml": "<worksheet><sheetData><row r=\"1\"></worksheet>" }), damaged],
        [
          raw({ "xl/_rels/workbook.xml.rels": relationships([["rId1", "worksheet", "worksheets/sheet9.xml"]]) }),
          damaged
        ],
        [flipped, damaged],
        [
          zip({ "word/document.xml": "<w/>" }),
          "\"refused.xlsx\" holds no Excel workbook. Open it in the program that made it and save it as .xlsx."
        ],
        [
          Buffer.from("a,b\n"),
          "\"refused.xlsx\" has the name of an Excel workbook, but not the contents. Open it in Excel and save it as .xlsx."
        ]
      ]
      for (const [bytes, message] of cases) assert.strictEqual(yield* refused(bytes, { A1: 1 }), message)
    }))

  it.effect("when the file is not below the root, not there, or would become too large", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open({ maxUnpackedBytes: 1000 })
      yield* folder.write("../secret.xlsx", plain)
      yield* folder.write("small.xlsx", plain)
      const write = (file: string, text = "x") =>
        failureOf(workbooks.writeCells({ file, sheet: "Raw", cells: cellsOf({ A1: text }) }))
      assert.strictEqual((yield* write("../secret.xlsx")).reason, "OutsideRoot")
      assert.strictEqual((yield* write("missing.xlsx")).reason, "NotFound")
      assert.strictEqual((yield* write("small.xlsx", "x".repeat(1000))).reason, "TooLarge")
      assert.isTrue(Buffer.from(plain).equals(yield* folder.read("small.xlsx")))
    }))

  it.effect("when the file is read-only, open in a program, or not the one that was read", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* one(folder, "guarded.xlsx")
      const path = join(folder.root, "guarded.xlsx")
      const write = (version?: string) =>
        workbooks.writeCells({ file: "guarded.xlsx", sheet: "One", cells: cellsOf({ A1: 5 }), version })
      yield* fs.chmod(path, 0o444)
      assert.deepStrictEqual(yield* failureOf(write()), {
        reason: "NotWritable",
        message: "\"guarded.xlsx\" is read-only. Allow writing to it, or write to a copy."
      })
      yield* fs.chmod(path, 0o640)
      for (const lock of ["~$guarded.xlsx", ".~lock.guarded.xlsx#"]) {
        yield* folder.write(lock, "")
        assert.include((yield* failureOf(write())).message, "\"guarded.xlsx\" is open in another program")
        yield* fs.remove(join(folder.root, lock))
      }
      const { version } = yield* workbooks.readSheet({ file: "guarded.xlsx" })
      const written = yield* write(version)
      assert.deepStrictEqual(yield* failureOf(write(version)), {
        reason: "FileChanged",
        message: "\"guarded.xlsx\" changed since it was read. Nothing was written. " +
          "Read the cells again before you write to them."
      })
      yield* write(written.version)
      yield* write("")
    }))
})

describe("the file", () => {
  /** The service on a file system that runs `before` ahead of what changes it. */
  const observed = (before: Before) =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      return yield* open().pipe(Effect.provideService(FileSystem.FileSystem, watchChanges(fs, before)))
    })

  const change = (workbooks: Service, value: number) =>
    workbooks.writeCells({ file: "kept.xlsx", sheet: "One", cells: cellsOf({ A1: value }) })

  const firstCell = (workbooks: Service) =>
    Effect.map(workbooks.readSheet({ file: "kept.xlsx", range: "A1" }), ({ rows }) => rows[0]?.cells[0])

  for (const operation of ["open", "write", "sync", "chmod", "rename"]) {
    it.effect(`is the old one when a write fails or is interrupted at: ${operation}`, () =>
      Effect.gen(function*() {
        const folder = yield* Folder
        yield* one(folder, "kept.xlsx")
        const before = yield* folder.read("kept.xlsx")
        const reached = yield* Deferred.make<void>()
        const parked = yield* observed((now) =>
          now === operation
            ? Effect.andThen(Deferred.succeed(reached, undefined), Effect.interruptible(Effect.never))
            : Effect.void
        )
        const writing = yield* Effect.forkChild(change(parked, 2))
        yield* Deferred.await(reached)
        assert.strictEqual(yield* firstCell(parked), 1)
        yield* Fiber.interrupt(writing)
        assert.isTrue(Buffer.from(before).equals(yield* folder.read("kept.xlsx")))
        assert.deepStrictEqual(yield* leftovers, [])

        const full = PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: operation })
        const failing = yield* observed((now) => now === operation && now !== "chmod" ? Effect.fail(full) : Effect.void)
        if (operation !== "chmod") {
          assert.deepStrictEqual(yield* failureOf(change(failing, 3)), {
            reason: "NotWritable",
            message: "\"kept.xlsx\" could not be written and is unchanged. " +
              "Check that the disk has space and that no other program uses the file."
          })
          assert.isTrue(Buffer.from(before).equals(yield* folder.read("kept.xlsx")))
          assert.deepStrictEqual(yield* leftovers, [])
        }
        yield* change(yield* open(), 4)
        assert.strictEqual(yield* firstCell(yield* open()), 4)
      }).pipe(Effect.provide(Folder.layer)))
  }

  it.effect("is not written where the system does not allow it, or another program has it", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* one(folder, "kept.xlsx")
      const failing = (method: string, _tag: "PermissionDenied" | "Busy") =>
        Effect.flatMap(
          observed((now) =>
            now === method
              ? Effect.fail(PlatformError.systemError({ _tag, module: "FileSystem", method }))
              : Effect.void
          ),
          (workbooks) => failureOf(change(workbooks, 2))
        )
      assert.deepStrictEqual(yield* failing("open", "PermissionDenied"), {
        reason: "NotWritable",
        message:
          "\"kept.xlsx\" is in a folder that the server may not write to. Allow that, or copy the file elsewhere."
      })
      assert.include((yield* failing("rename", "Busy")).message, "\"kept.xlsx\" is open in another program")
      assert.deepStrictEqual(yield* leftovers, [])
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("is the one that somebody else wrote during a write", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* one(folder, "kept.xlsx")
      const workbooks = yield* observed((now) =>
        now === "sync"
          ? folder.workbook("kept.xlsx", (book) => {
            book.addWorksheet("One").addRow(["theirs"])
          })
          : Effect.void
      )
      assert.strictEqual((yield* failureOf(change(workbooks, 2))).reason, "FileChanged")
      assert.strictEqual(yield* firstCell(workbooks), "theirs")
      assert.deepStrictEqual(yield* leftovers, [])
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("keeps its permissions, and stays where a link says it is", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* fs.makeDirectory(join(folder.root, "real"))
      yield* one(folder, "real/target.xlsx")
      yield* fs.chmod(join(folder.root, "real", "target.xlsx"), 0o606)
      yield* fs.symlink(join("real", "target.xlsx"), join(folder.root, "kept.xlsx"))
      yield* change(workbooks, 2)
      assert.strictEqual((yield* fs.stat(join(folder.root, "real", "target.xlsx"))).mode & 0o777, 0o606)
      assert.strictEqual(yield* fs.readLink(join(folder.root, "kept.xlsx")), join("real", "target.xlsx"))
      assert.strictEqual(yield* firstCell(workbooks), 2)
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("has all that was written at the same time, and is whole at every moment", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* one(folder, "kept.xlsx")
      const write = (row: number) =>
        workbooks.writeCells({
          file: "kept.xlsx",
          sheet: "One",
          cells: cellsOf({ [`A${row}`]: row, [`B${row}`]: row })
        })
      const done = yield* Deferred.make<void>()
      const reader = yield* Effect.forkChild(Effect.gen(function*() {
        const seen: Array<number> = []
        while (!(yield* Deferred.isDone(done))) {
          const { rows } = yield* workbooks.readSheet({ file: "kept.xlsx" })
          for (const { cells, row } of rows) if (row > 1) assert.deepStrictEqual(cells, [row, row])
          seen.push(rows.length)
        }
        return seen
      }))
      const rows = Array.from({ length: 20 }, (_, index) => index + 2)
      yield* Effect.forEach(rows, write, { concurrency: "unbounded" })
      yield* Deferred.succeed(done, undefined)
      const seen = yield* Fiber.join(reader)
      assert.deepStrictEqual(seen, seen.toSorted((a, b) => a - b))
      const page = yield* workbooks.readSheet({ file: "kept.xlsx" })
      assert.deepStrictEqual(page.rows.slice(1), rows.map((row) => ({ row, cells: [row, row] })))
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("is the old one or the new one, whole, when the process is killed", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      const workbooks = yield* open({ maxCells: 100_000 })
      const kill = (file: string, after: number) =>
        Effect.gen(function*() {
          yield* folder.write(file, rawWorkbook("<sheetData/>"))
          yield* killWhileWriting(folder.root, file, after)
          const page = yield* workbooks.readSheet({ file })
          const values = new Set(page.rows.flatMap(({ cells }) => cells))
          // A file from before the first write has no cells at all.
          assert.isAtMost(values.size, 1)
          assert.include([0, 2000], page.rows.length)
          yield* load(yield* folder.read(file))
          return Array.from(values)
        })
      const rounds = yield* Effect.forEach(
        [1, 4, 9, 16, 23, 30],
        (after) => kill(`killed${after}.xlsx`, after),
        { concurrency: 2 }
      )
      assert.isAbove(new Set(rounds.flat()).size, 1)

      // What a killed process leaves behind goes away with a later write, once it is old enough to be nobody's.
      const stale = ".~killed1.xlsx.0123456789ab.tmp"
      const fresh = ".~killed1.xlsx.ba9876543210.tmp"
      yield* folder.write(stale, "")
      yield* folder.write(fresh, "")
      const now = Option.getOrThrow((yield* fs.stat(join(folder.root, fresh))).mtime)
      const old = new Date(now.getTime() - 2 * 3_600_000)
      yield* fs.utimes(join(folder.root, stale), old, old)
      yield* workbooks.writeCells({ file: "killed1.xlsx", sheet: "Raw", cells: cellsOf({ A1: 1 }) })
      const left = yield* leftovers
      assert.notInclude(left, stale)
      assert.include(left, fresh)
    }).pipe(Effect.provide(Folder.layer)), 60_000)
})

/** Starts a process that writes over and over, and kills it after it has told that many steps. */
const killWhileWriting = (root: string, file: string, after: number) =>
  Effect.promise(async () => {
    const program = fileURLToPath(new URL("writes-until-killed.ts", import.meta.url))
    const child = spawn(process.execPath, [program, root, file], { stdio: ["ignore", "pipe", "inherit"] })
    const closed = once(child, "close")
    let steps = 0
    for await (const _ of createInterface({ input: child.stdout })) {
      if (++steps === after) child.kill("SIGKILL")
    }
    const [, signal] = await closed as [number | null, string | null]
    assert.strictEqual(signal, "SIGKILL")
  })

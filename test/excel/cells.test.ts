// What a write does to the XML of a sheet, to the letter.
import { assert, it, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Ranges from "../../examples/excel/ranges.ts"
import type { Value } from "../../examples/excel/values.ts"
import { Folder, open, rawWorkbook, stored, textOf } from "./support.ts"

const SHEET = "xl/worksheets/sheet1.xml"
const START = `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" ` +
  `xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">`
const END = "</worksheet>"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

type Cells = Readonly<Record<string, Value>>

const toList = (cells: Cells) => Object.entries(cells).map(([cell, value]) => ({ cell, value }))

let files = 0

/** Writes cells into a workbook with one sheet and returns the bytes of the file after it. */
const after = (sheet: string, cells: Cells, more?: Parameters<typeof rawWorkbook>[1]) =>
  Effect.gen(function*() {
    const folder = yield* Folder
    const workbooks = yield* open()
    const file = `cells${++files}.xlsx`
    yield* folder.write(file, rawWorkbook(sheet, more))
    yield* workbooks.writeCells({ file, sheet: "Raw", cells: toList(cells) })
    return yield* folder.read(file)
  })

/** Writes cells and returns the XML of the sheet after it. */
const xmlAfter = (sheet: string, cells: Cells, more?: Parameters<typeof rawWorkbook>[1]) =>
  Effect.gen(function*() {
    const xml = yield* textOf(yield* after(sheet, cells, more), SHEET)
    assert.isTrue(xml.startsWith(START) && xml.endsWith(END))
    return xml.slice(START.length, -END.length)
  })

const data = (rows: string) => `<sheetData>${rows}</sheetData>`
const styles = (more = "") => ({
  "xl/styles.xml": `<styleSheet><numFmts count="1"><numFmt numFmtId="164" formatCode="&quot;Day&quot; 0"/></numFmts>` +
    `<cellXfs count="3"><xf numFmtId="0" fontId="0"/><xf numFmtId="164" fontId="1"><alignment wrapText="1"/></xf>` +
    `<xf numFmtId="15" fontId="2" xfId="0"/></cellXfs>${more}</styleSheet>`,
  "xl/_rels/workbook.xml.rels":
    `<Relationships><Relationship Id="rId1" Type="http://x/worksheet" Target="/xl/worksheets/sheet1.xml"/>` +
    `<Relationship Id="rId2" Type="http://x/styles" Target="styles.xml"/></Relationships>`
})

layer(Folder.layer)("a written cell", (it) => {
  it.effect("takes the place of the old one, with its style and nothing else", () =>
    Effect.gen(function*() {
      const before = `<!-- <c r="A1"/> --><row r="1" ht="30" customHeight="1"><c r="A1" s="7" t="s"><v>0</v></c>` +
        `<c r='B1' s='2' cm="1" vm="1" ph="1"><f>1+1</f><v>2</v></c><c r="C1" t="inlineStr"><is><t><![CDATA[<c r="D1">]]>` +
        `</t></is></c> <c r="D1"><v>4</v><extLst><ext uri="x"/></extLst></c></row>`
      assert.strictEqual(
        yield* xmlAfter(data(before), { B1: 5, D1: "x" }),
        data(
          `<!-- <c r="A1"/> --><row r="1" ht="30" customHeight="1"><c r="A1" s="7" t="s"><v>0</v></c>` +
            `<c r="B1" s="2"><v>5</v></c><c r="C1" t="inlineStr"><is><t><![CDATA[<c r="D1">]]>` +
            `</t></is></c> <c r="D1" t="inlineStr"><is><t>x</t></is></c></row>`
        )
      )
    }))

  it.effect("is put where it belongs, in rows that are there or not", () =>
    Effect.gen(function*() {
      const before = data(`<row r="2"><c r="B2"><v>1</v></c><c r="D2"/></row><row r="5"/>`)
      const cells = { E2: 5, A2: 1, C2: 3, A1: 0, C5: 7, A5: 6, B3: 4, A9: 8, AA9: 9 }
      assert.strictEqual(
        yield* xmlAfter(before, cells),
        data(
          `<row r="1"><c r="A1"><v>0</v></c></row>` +
            `<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>1</v></c><c r="C2"><v>3</v></c><c r="D2"/>` +
            `<c r="E2"><v>5</v></c></row><row r="3"><c r="B3"><v>4</v></c></row>` +
            `<row r="5"><c r="A5"><v>6</v></c><c r="C5"><v>7</v></c></row>` +
            `<row r="9"><c r="A9"><v>8</v></c><c r="AA9"><v>9</v></c></row>`
        )
      )
      assert.strictEqual(
        yield* xmlAfter("<sheetData/><pageMargins/>", { $b$2: 1, a1: 2 }),
        `${data(`<row r="1"><c r="A1"><v>2</v></c></row><row r="2"><c r="B2"><v>1</v></c></row>`)}<pageMargins/>`
      )
    }))

  it.effect("is found where the file leaves out row numbers and addresses", () =>
    Effect.gen(function*() {
      const before = data(`<row><c><v>1</v></c><c><v>2</v></c></row><row r="4"><c r="C4"/><c/></row><row><c/></row>`)
      assert.strictEqual(
        yield* xmlAfter(before, { B1: 20, D4: 40, A5: 50, E4: 60 }),
        data(
          `<row><c><v>1</v></c><c r="B1"><v>20</v></c></row>` +
            `<row r="4"><c r="C4"/><c r="D4"><v>40</v></c><c r="E4"><v>60</v></c></row>` +
            `<row><c r="A5"><v>50</v></c></row>`
        )
      )
    }))

  it.effect("is emptied but not removed, and not made to be empty", () =>
    Effect.gen(function*() {
      const before = data(`<row r="1"><c r="A1" s="3"><v>1</v></c><c r="B1"><v>2</v></c></row>`)
      assert.strictEqual(
        yield* xmlAfter(before, { A1: null, B1: null, C1: null, A2: null }),
        data(`<row r="1"><c r="A1" s="3"/><c r="B1"/></row>`)
      )
      assert.strictEqual(yield* xmlAfter("<sheetData/>", { C7: null }), "<sheetData/>")
    }))

  it.effect("widens what the sheet and the row say about their size", () =>
    Effect.gen(function*() {
      const before = `<dimension ref="B2:C3"/>${
        data(`<row r="2" spans="2:3"><c r="B2"/></row><row r="3" spans="1:9"><c r="B3"/></row>`)
      }`
      assert.strictEqual(
        yield* xmlAfter(before, { E2: 1, C3: 2, A7: null }),
        `<dimension ref="B2:E3"/>${
          data(
            `<row r="2" spans="2:5"><c r="B2"/><c r="E2"><v>1</v></c></row>` +
              `<row r="3" spans="1:9"><c r="B3"/><c r="C3"><v>2</v></c></row>`
          )
        }`
      )
    }))

  it.effect("gets the style of its row, or else of its column, when it is new", () =>
    Effect.gen(function*() {
      const columns = `<cols><col min="2" max="3" width="9" style="1"/><col min="4" max="4" width="9"/></cols>`
      const before = data(`<row r="1" s="2" customFormat="1"/><row r="2" s="2"/>`)
      assert.strictEqual(
        yield* xmlAfter(columns + before, { B1: 1, B2: 2, C3: 3, D3: 4 }, { files: styles() }),
        columns + data(
          `<row r="1" s="2" customFormat="1"><c r="B1" s="2"><v>1</v></c></row>` +
            `<row r="2" s="2"><c r="B2" s="1"><v>2</v></c></row>` +
            `<row r="3"><c r="C3" s="1"><v>3</v></c><c r="D3"><v>4</v></c></row>`
        )
      )
    }))
})

const Position = Schema.Struct({ row: between(1, 6), column: between(1, 5), value: between(0, 99) })
const Positions = Schema.Array(Position).check(Schema.isMaxLength(12))

/** A sheet with these values, whose rows and cells name their place or leave it out where they can. */
const sheetOf = (values: ReadonlyMap<string, number>, explicit: boolean): string => {
  let rows = ""
  let row = 0
  for (let number = 1; number <= 6; number++) {
    const columns = [1, 2, 3, 4, 5].filter((column) => values.has(`${number},${column}`))
    if (columns.length === 0) continue
    let column = 0
    const cells = columns.map((next) => {
      const place = explicit || next !== column + 1 ? ` r="${Ranges.columnName(next)}${number}"` : ""
      column = next
      return `<c${place}><v>${values.get(`${number},${next}`)}</v></c>`
    })
    rows += `<row${explicit || number !== row + 1 ? ` r="${number}"` : ""}>${cells.join("")}</row>`
    row = number
  }
  return data(rows)
}

it.effect.prop(
  "cells written to any sheet are there, and all others as they were",
  { old: Positions, written: Positions, explicit: Schema.Boolean },
  ({ explicit, old, written }) =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      const key = ({ column, row }: typeof Position.Type) => `${row},${column}`
      const values = new Map(old.map((position) => [key(position), position.value]))
      // Zero stands for emptying a cell.
      const changes = new Map(written.map((position) => [key(position), position]))
      yield* folder.write("any.xlsx", rawWorkbook(sheetOf(values, explicit)))
      yield* workbooks.writeCells({
        file: "any.xlsx",
        sheet: "Raw",
        cells: Array.from(changes.values(), ({ column, row, value }) => ({
          cell: `${Ranges.columnName(column)}${row}`,
          value: value === 0 ? null : value
        }))
      })
      const expected = new Map(values)
      for (const [place, { value }] of changes) {
        if (value === 0) expected.delete(place)
        else expected.set(place, value)
      }
      const { rows } = yield* workbooks.readSheet({ file: "any.xlsx", range: "A1:E6" })
      const found = new Map(rows.flatMap(({ cells, row }) =>
        cells.flatMap((cell, index) => typeof cell === "number" ? [[`${row},${index + 1}`, cell] as const] : [])
      ))
      const sorted = (map: ReadonlyMap<string, number>) =>
        Array.from(map).toSorted(([a], [b]) => a < b ? -1 : 1)
      assert.deepStrictEqual(sorted(found), sorted(expected))
    }).pipe(Effect.provide(Folder.layer)),
  { arbitrary: { runs: 40 }, timeout: 20_000 }
)

layer(Folder.layer)("a written text", (it) => {
  const written = (text: string) =>
    Effect.map(
      xmlAfter("<sheetData/>", { A1: text }),
      (xml) =>
        xml.slice(
          data(`<row r="1"><c r="A1" t="inlineStr">`).length - "</sheetData>".length,
          -"</c></row></sheetData>".length
        )
    )

  it.effect("is text whatever it looks like, with nothing in it taken for XML", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* written("=1+1"), "<is><t>=1+1</t></is>")
      assert.strictEqual(yield* written("007"), "<is><t>007</t></is>")
      assert.strictEqual(yield* written("TRUE"), "<is><t>TRUE</t></is>")
      assert.strictEqual(yield* written("<f>1</f>&amp;\"'"), "<is><t>&lt;f&gt;1&lt;/f&gt;&amp;amp;\"'</t></is>")
      assert.strictEqual(yield* written("]]></t>"), "<is><t>]]&gt;&lt;/t&gt;</t></is>")
      assert.strictEqual(yield* written("Köln 支出 🚆"), "<is><t>Köln 支出 🚆</t></is>")
      assert.strictEqual(yield* written(""), "<is><t></t></is>")
    }))

  it.effect("keeps its blanks and lines", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* written(" a "), `<is><t xml:space="preserve"> a </t></is>`)
      assert.strictEqual(yield* written("a\r\nb\rc\td"), `<is><t xml:space="preserve">a\nb\nc\td</t></is>`)
    }))

  it.effect("keeps characters that XML does not have, and what looks like one", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* written("a\0b\x1f\uffff"), "<is><t>a_x0000_b_x001F__xFFFF_</t></is>")
      assert.strictEqual(yield* written("\ud83d!"), "<is><t>_xD83D_!</t></is>")
      assert.strictEqual(yield* written("_x0041_ _x41_"), "<is><t>_x005F_x0041_ _x41_</t></is>")
    }))
})

layer(Folder.layer)("a written formula", (it) => {
  const written = (formula: string) =>
    Effect.map(xmlAfter("<sheetData/>", { A1: { formula } }), (xml) => /<c r="A1"><f>(.*)<\/f><\/c>/s.exec(xml)?.[1])

  it.effect("starts with = or not, and has no result", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* written("SUM(B2:B9)"), "SUM(B2:B9)")
      assert.strictEqual(yield* written(" =SUM(B2:B9) "), "SUM(B2:B9)")
      assert.strictEqual(
        yield* written("=IF(B2<>\"=\",'Büro & Co'!B2,-1)"),
        "IF(B2&lt;&gt;\"=\",'Büro &amp; Co'!B2,-1)"
      )
    }))

  it.effect("has the prefixes of functions that Excel did not know in 2007", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* written("=xlookup(A2,B:B,C:C)+IFS(A3,1)+SUM(Filter(A1:A3,B1:B3))"),
        "_xlfn.XLOOKUP(A2,B:B,C:C)+_xlfn.IFS(A3,1)+SUM(_xlfn._xlws.FILTER(A1:A3,B1:B3))"
      )
      assert.strictEqual(yield* written("_xlfn.XLOOKUP(A2,B:B,C:C)"), "_xlfn.XLOOKUP(A2,B:B,C:C)")
      assert.strictEqual(yield* written("\"XLOOKUP(\"&'SORT('!A1&SORTED"), "\"XLOOKUP(\"&amp;'SORT('!A1&amp;SORTED")
    }))
})

layer(Folder.layer)("a written date", (it) => {
  it.effect("keeps a style that shows dates, and otherwise gets one that is the same but does", () =>
    Effect.gen(function*() {
      const before = data(`<row r="1"><c r="A1" s="2"/><c r="B1" s="1"/><c r="C1" s="1"/></row>`)
      const bytes = yield* after(before, {
        A1: { date: "2026-03-31" },
        B1: { date: "2026-03-31" },
        C1: { date: "2026-03-31T18:00" },
        D1: { date: "2026-03-31 06:00:00.5" },
        E1: { date: "1900-03-01" }
      }, { files: styles("<!-- after -->") })
      assert.include(
        yield* textOf(bytes, SHEET),
        `<c r="A1" s="2"><v>46112</v></c><c r="B1" s="3"><v>46112</v></c><c r="C1" s="4"><v>46112.75</v></c>` +
          `<c r="D1" s="5"><v>46112.250005787035</v></c><c r="E1" s="6"><v>61</v></c>`
      )
      assert.strictEqual(
        yield* textOf(bytes, "xl/styles.xml"),
        styles("<!-- after -->")["xl/styles.xml"].replace(`count="3"`, `count="7"`).replace(
          "</cellXfs>",
          `<xf numFmtId="14" applyNumberFormat="1" fontId="1"><alignment wrapText="1"/></xf>` +
            `<xf numFmtId="22" applyNumberFormat="1" fontId="1"><alignment wrapText="1"/></xf>` +
            `<xf numFmtId="22" applyNumberFormat="1" fontId="0"/><xf numFmtId="14" applyNumberFormat="1" fontId="0"/>` +
            `</cellXfs>`
        )
      )
    }))

  it.effect("adds no style that is there already", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      const write = (cell: string) =>
        workbooks.writeCells({ file: "again.xlsx", sheet: "Raw", cells: [{ cell, value: { date: "2026-03-31" } }] })
      yield* folder.write("again.xlsx", rawWorkbook("<sheetData/>", { files: styles() }))
      yield* write("A1")
      const once = stored(yield* folder.read("again.xlsx")).get("xl/styles.xml")
      yield* write("A1")
      yield* write("B1")
      assert.deepStrictEqual(stored(yield* folder.read("again.xlsx")).get("xl/styles.xml"), once)
    }))

  it.effect("counts from 1904 where the workbook does", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("mac.xlsx", (book) => {
        book.properties.date1904 = true
        book.addWorksheet("Mac").getCell("A1").numFmt = "dd.mm.yyyy"
      })
      const write = (date: string) =>
        workbooks.writeCells({ file: "mac.xlsx", sheet: "Mac", cells: [{ cell: "A1", value: { date } }] })
      yield* write("2026-03-31")
      assert.include(yield* textOf(yield* folder.read("mac.xlsx"), SHEET), "<v>44650</v>")
      assert.deepStrictEqual((yield* workbooks.readSheet({ file: "mac.xlsx" })).rows, [{
        row: 1,
        cells: ["2026-03-31"]
      }])
      assert.include((yield* Effect.flip(write("1903-12-31"))).message, "Excel has no such date.")
    }))

  it.effect("is a date in a workbook without any styles", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.write("plain.xlsx", rawWorkbook("<sheetData/>"))
      const cells = toList({ A1: { date: "2026-03-31" }, B1: { date: "2026-03-31T09:30:00" } })
      yield* workbooks.writeCells({ file: "plain.xlsx", sheet: "Raw", cells })
      assert.deepStrictEqual((yield* workbooks.readSheet({ file: "plain.xlsx" })).rows, [
        { row: 1, cells: ["2026-03-31", "2026-03-31T09:30:00"] }
      ])
    }))
})

layer(Folder.layer)("formulas around a written cell", (it) => {
  it.effect("get their text in full when the one that they share it with goes away", () =>
    Effect.gen(function*() {
      const before = data(
        `<row r="1"><c r="A1"><f t="shared" ref="A1:B2" si="0">B1*$C$1&amp;"A1&lt;"</f><v>1</v></c>` +
          `<c r="B1"><f t="shared" si="0"/><v>2</v></c></row>` +
          `<row r="2"><c r="A2" t="str"><f t="shared" si="0"></f><v>3</v></c><c><f t="shared" si="0"/></c></row>` +
          `<row r="3"><c r="A3"><f t="shared" ref="A3:A4" si="0">X1</f></c></row><row r="4"><c r="A4">` +
          `<f t="shared" si="0"/></c></row>`
      )
      assert.strictEqual(
        yield* xmlAfter(before, { A1: "gone", A2: 5 }),
        data(
          `<row r="1"><c r="A1" t="inlineStr"><is><t>gone</t></is></c>` +
            `<c r="B1"><f>C1*$C$1&amp;"A1&lt;"</f><v>2</v></c></row>` +
            `<row r="2"><c r="A2"><v>5</v></c><c><f>C2*$C$1&amp;"A1&lt;"</f></c></row>` +
            `<row r="3"><c r="A3"><f t="shared" ref="A3:A4" si="0">X1</f></c></row><row r="4"><c r="A4">` +
            `<f t="shared" si="0"/></c></row>`
        )
      )
    }))

  it.effect("lose their results when they read it, by themselves or through others, and keep them otherwise", () =>
    Effect.gen(function*() {
      const cell = (address: string, formula: string) => `<c r="${address}"><f>${formula}</f><v>9</v></c>`
      const without = (address: string, formula: string) => `<c r="${address}"><f>${formula}</f></c>`
      const before = (cell: (address: string, formula: string) => string) =>
        [
          `<row r="1">${cell("B1", "A5*2")}${cell("C1", "B1+1")}${cell("D1", "SUM(A1:A4)")}${
            cell("E1", "SUM(A:A)")
          }</row>`,
          `<row r="2">${cell("B2", "Rate*2")}${cell("C2", "INDIRECT(\"A\"&amp;5)")}${cell("D2", "Other!A5")}</row>`,
          `<row r="3">${cell("B3", "SUM(A1:Raw!A9)")}${cell("C3", "SUM(5:5)")}${cell("D3", "A5A5+\"A5\"")}</row>`
        ].join("")
      const kept = new Set(["D1", "D2"])
      const shared =
        `<row r="5"><c r="A5"><v>1</v></c><c r="B5"><f t="shared" ref="B5:B6" si="0">A5</f><v>1</v></c></row>` +
        `<row r="6"><c r="B6" t="b"><f t="shared" si="0"/><v>1</v></c><c r="C6" t="str"><f>$A$5&amp;""</f><v>x</v></c></row>` +
        `<row r="7"><c r="D7"><f t="array" ref="D7:D8">A4:A5*2</f><v>1</v></c></row><row r="8"><c r="D8"><v>2</v></c></row>`
      assert.strictEqual(
        yield* xmlAfter(data(before(cell) + shared), { A5: 2 }),
        data(
          before((address, formula) => kept.has(address) ? cell(address, formula) : without(address, formula)) +
            `<row r="5"><c r="A5"><v>2</v></c><c r="B5"><f t="shared" ref="B5:B6" si="0">A5</f></c></row>` +
            `<row r="6"><c r="B6" t="b"><f t="shared" si="0"/><v>1</v></c><c r="C6"><f>$A$5&amp;""</f></c></row>` +
            `<row r="7"><c r="D7"><f t="array" ref="D7:D8">A4:A5*2</f></c></row><row r="8"><c r="D8"></c></row>`
        )
      )
    }))

  it.effect("lose their results in other sheets too, in whatever order they depend on each other", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      const workbooks = yield* open()
      yield* folder.workbook("chain.xlsx", (book) => {
        const first = book.addWorksheet("First")
        for (let row = 1; row <= 50; row++) {
          first.getCell(row, 1).value = row === 50 ? 1 : { formula: `A${row + 1}+1`, result: 51 - row }
          first.getCell(row, 2).value = { formula: row === 1 ? "'Zweites Blatt'!A1" : `B${row - 1}+1`, result: row }
        }
        book.addWorksheet("Zweites Blatt").getCell("A1").value = { formula: "first!A1*0", result: 0 }
        book.addWorksheet("Third").getCell("A1").value = { formula: "1+1", result: 2 }
      })
      const before = yield* folder.read("chain.xlsx")
      yield* workbooks.writeCells({ file: "chain.xlsx", sheet: "First", cells: [{ cell: "A50", value: 2 }] })
      const results = (sheet: string) =>
        Effect.map(
          workbooks.readSheet({ file: "chain.xlsx", sheet }),
          ({ rows }) =>
            new Set(rows.flatMap(({ cells }) =>
              cells.flatMap((cell) =>
                typeof cell === "object" && cell !== null && "result" in cell ? [cell.result] : []
              )
            ))
        )
      assert.deepStrictEqual(yield* results("First"), new Set([null]))
      assert.deepStrictEqual(yield* results("Zweites Blatt"), new Set([null]))
      const third = "xl/worksheets/sheet3.xml"
      assert.deepStrictEqual(stored(yield* folder.read("chain.xlsx")).get(third), stored(before).get(third))
    }))

  it.effect("are no longer in the stored order of calculation once one of them is overwritten", () =>
    Effect.gen(function*() {
      const rows = data(`<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1"><v>2</v></c></row>`)
      const chain = {
        workbook: `<definedNames/><calcPr calcId="191029" fullCalcOnLoad='0' iterate="1"/><extLst/>`,
        files: {
          "[Content_Types].xml":
            `<Types><Default Extension="xml" ContentType="a"/><Override PartName="/xl/calcChain.xml" ` +
            `ContentType="b"/><Override PartName="/xl/other.xml" ContentType="c"/></Types>`,
          "xl/_rels/workbook.xml.rels":
            `<Relationships><Relationship Id="rId1" Type="http://x/worksheet" Target="worksheets/sheet1.xml"/>\n` +
            `<Relationship Id="rId7" Type="http://x/calcChain" Target="calcChain.xml"></Relationship></Relationships>`,
          "xl/calcChain.xml": `<calcChain><c r="A1" i="1"/></calcChain>`
        }
      }
      const untouched = yield* after(rows, { B1: { formula: "A1" } }, chain)
      assert.isTrue(stored(untouched).has("xl/calcChain.xml"))
      assert.include(
        yield* textOf(untouched, "xl/workbook.xml"),
        `<calcPr calcId="191029" fullCalcOnLoad='1' iterate="1"/>`
      )
      const touched = yield* after(rows, { A1: 3 }, chain)
      assert.isFalse(stored(touched).has("xl/calcChain.xml"))
      assert.strictEqual(
        yield* textOf(touched, "[Content_Types].xml"),
        `<Types><Default Extension="xml" ContentType="a"/><Override PartName="/xl/other.xml" ContentType="c"/></Types>`
      )
      assert.strictEqual(
        yield* textOf(touched, "xl/_rels/workbook.xml.rels"),
        `<Relationships><Relationship Id="rId1" Type="http://x/worksheet" Target="worksheets/sheet1.xml"/>\n</Relationships>`
      )
    }))
})

import { assert, describe, it } from "@effect/vitest"
import * as Ranges from "../../examples/excel/ranges.ts"

describe("columns", () => {
  it("have the letters that Excel shows", () => {
    assert.deepStrictEqual([1, 26, 27, 52, 53, 702, 703, 16_384].map(Ranges.columnName), [
      "A",
      "Z",
      "AA",
      "AZ",
      "BA",
      "ZZ",
      "AAA",
      "XFD"
    ])
  })

  it("have one number for each name", () => {
    for (let column = 1; column <= 16_384; column++) {
      assert.strictEqual(Ranges.columnNumber(Ranges.columnName(column)), column)
    }
  })
})

describe("ranges", () => {
  it("are read in every form, whatever the case, the blanks, the dollars and the order", () => {
    assert.deepStrictEqual([" b2:d10 ", "$B$2:$D$10", "D10:B2", "d2:b10"].map(Ranges.parse), [
      { rows: [2, 10], columns: [2, 4] },
      { rows: [2, 10], columns: [2, 4] },
      { rows: [2, 10], columns: [2, 4] },
      { rows: [2, 10], columns: [2, 4] }
    ])
    assert.deepStrictEqual(["B2", "B:D", "D:B", "2:10", "10:2", "XFD1048576"].map(Ranges.parse), [
      { rows: [2, 2], columns: [2, 2] },
      { rows: undefined, columns: [2, 4] },
      { rows: undefined, columns: [2, 4] },
      { rows: [2, 10], columns: undefined },
      { rows: [2, 10], columns: undefined },
      { rows: [1_048_576, 1_048_576], columns: [16_384, 16_384] }
    ])
  })

  it("are refused when they are something else or leave the sheet", () => {
    const texts = ["", "A", "1", "A0", "A1:", ":B2", "A1:B", "A1:B2:C3", "Sheet1!A1", "A1,B2", "XFE1", "A1048577", "Ä1"]
    assert.deepStrictEqual(texts.filter((text) => Ranges.parse(text) !== undefined), [])
  })

  it("end with the used range, keep their start and fill open sides", () => {
    const used: Ranges.Box = { top: 3, left: 2, bottom: 20, right: 6 }
    const clamped = ["A1:XFD1048576", "C5:D6", "A:C", "1:4", "B2:B9", "A1:A20", "B1:F2", "G3:G4", "B21:B30"].map(
      (text) => {
        const selection = Ranges.parse(text)
        const box = selection && Ranges.clamp(selection, used)
        return box && Ranges.format(box)
      }
    )
    assert.deepStrictEqual(clamped, [
      "A1:F20",
      "C5:D6",
      "A3:C20",
      "B1:F4",
      "B2:B9",
      undefined,
      undefined,
      undefined,
      undefined
    ])
  })
})

describe("moved formulas", () => {
  const moved = (formula: string) => Ranges.moveFormula(formula, 2, 1)

  it("have their relative references moved", () => {
    assert.strictEqual(moved("SUM(B3:E3)*$A$1+B$2-$C4"), "SUM(C5:F5)*$A$1+C$2-$C6")
    assert.strictEqual(moved("SUM(A:A)+SUM($A:B)+SUM(1:1)+SUM($2:3)"), "SUM(B:B)+SUM($A:C)+SUM(3:3)+SUM($2:5)")
    assert.strictEqual(moved("Budget!B15+Übersicht!A1+Z9+az10"), "Budget!C17+Übersicht!B3+AA11+BA12")
  })

  it("keep what only looks like a reference", () => {
    const formulas = [
      `IF(TRUE,"Q1 ""A1"" B2","")`,
      "LOG10(1E5)+ATAN2(1,2)",
      "SUM(Tab1[Q1])+SUM(Tab1[[#All],[B2]])",
      "Größe2+_xlfn.A1x+XFE1+Net2Gross",
      "'Q1 2026'!$A$1+'It''s B2'!$A$1+[1]Q1!$A$1"
    ]
    assert.deepStrictEqual(formulas.map(moved), formulas)
    assert.strictEqual(moved("'Q1 2026'!A1"), "'Q1 2026'!B3")
  })

  it("say #REF! where a reference would leave the sheet", () => {
    assert.strictEqual(Ranges.moveFormula("A1+B5+SUM(A:B)+SUM(1:2)", -1, -1), "#REF!+A4+SUM(#REF!)+SUM(#REF!)")
    assert.strictEqual(Ranges.moveFormula("XFD1048576", 1, 0), "#REF!")
  })
})

describe("the cells that a formula reads", () => {
  const read = (formula: string) =>
    Ranges.references(formula)?.map(({ box, sheet }) => (sheet === undefined ? "" : `${sheet}!`) + Ranges.format(box))

  it("are found in every form", () => {
    assert.deepStrictEqual(read("SUM(A1,$B$2:C3)*-D4%+2.5E-1"), ["A1", "B2:C3", "D4"])
    assert.deepStrictEqual(read("A:B+$C:$C+1:2+$3:3"), ["A1:B1048576", "C1:C1048576", "A1:XFD2", "A3:XFD3"])
    assert.deepStrictEqual(read("Budget!A1:B2+'It''s 支出'!C3+Größe!D:D"), [
      "Budget!A1:B2",
      "It's 支出!C3",
      "Größe!D1:D1048576"
    ])
    assert.deepStrictEqual(read("IF(TRUE,\"A1:B2\",_xlfn.XLOOKUP(a1,B:B,C1))"), ["A1", "B1:B1048576", "C1"])
    assert.deepStrictEqual(read("#REF!+A1"), ["A1"])
    assert.deepStrictEqual(read("LOG10(1)+PI()"), [])
  })

  it("move with the formula, except where they are fixed", () => {
    const [reference] = Ranges.references("$A1:B$2") ?? []
    assert.isDefined(reference)
    assert.deepStrictEqual(Ranges.moveReference(reference, 3, 2), { top: 2, left: 1, bottom: 4, right: 4 })
  })

  it("cannot be told where the formula does not name them", () => {
    const formulas = [
      "Rate*2",
      "Tab1[Amount]",
      "[1]Sheet!A1",
      "'[Book.xlsx]Sheet'!A1",
      "Sheet1:Sheet3!A1",
      "'Sheet 1:Sheet 3'!A1",
      "INDIRECT(\"A1\")",
      "OFFSET(A1,1,1)",
      "A1:INDEX(A:A,5)",
      "A1:Sheet1!B2",
      "Sheet1!A1:Sheet1!B2",
      "A1:Rate",
      "_xlfn.ANCHORARRAY(A1)",
      "XFE1"
    ]
    assert.deepStrictEqual(formulas.filter((formula) => read(formula) !== undefined), [])
  })
})

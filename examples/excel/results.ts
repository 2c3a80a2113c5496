/**
 * Finds out which formulas of a workbook have saved results that a change made wrong.
 *
 * Nothing is calculated: those results are taken out of the file, so that no program shows them. Excel and LibreOffice
 * calculate what has no result when they open the file, and all other results stay. A formula whose text does not say
 * which cells it reads counts as one that reads them all.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Ranges from "./ranges.ts"
import * as Xml from "./xml.ts"

// =============================================================================
// Models
// =============================================================================

/**
 * A worksheet with its name in lower case.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sheet {
  readonly name: string
  readonly part: Xml.Part
}

/**
 * A formula and what it reads.
 *
 * @category models
 * @since 0.1.0
 */
export interface Formula {
  readonly sheet: Sheet
  /** What the formula fills: its cell, or all cells of an array formula. */
  readonly box: Ranges.Box
  /** Where its cells start in the part, the first one first. */
  readonly cells: Array<number>
  /** `undefined` when it may read anything. */
  readonly reads: ReadonlyArray<{ readonly sheet: string; readonly box: Ranges.Box }> | undefined
}

// =============================================================================
// Formulas of a sheet
// =============================================================================

const TAGS = /<(row|c|f)(?=[\s/>])(?:[^<>"']|"[^"]*"|'[^']*')*>/g
const ROW_NUMBER = /\sr\s*=\s*["'](\d+)["']/
const CHECKPOINT_TAGS = 20_000

/**
 * Lists the formulas of a sheet. `nameOf` makes names of sheets comparable.
 *
 * @category decoding
 * @since 0.1.0
 */
export const formulasOf = Effect.fnUntraced(function*(
  sheet: Sheet,
  nameOf: (name: string) => string,
  checkpoint: Effect.Effect<void>
): Effect.fn.Return<ReadonlyArray<Formula>> {
  const { part } = sheet
  const formulas: Array<Formula> = []
  if (!/<f[\s/>]/.test(part.text)) return formulas
  const sources = new Map<string, Source>()
  let arrays: ReadonlyArray<Formula> = []
  let [row, column, cell, count] = [0, 0, 0, 0]
  const pattern = new RegExp(TAGS)
  for (let match = pattern.exec(part.text); match !== null; match = pattern.exec(part.text)) {
    if (++count % CHECKPOINT_TAGS === 0) yield* checkpoint
    const text = match[0]
    const tag: Xml.Tag = { start: match.index, end: match.index + text.length, text, empty: text.endsWith("/>") }
    if (match[1] === "row") {
      row = Number(ROW_NUMBER.exec(text)?.[1] ?? row + 1)
      column = 0
      arrays = arrays.filter(({ box }) => row <= box.bottom)
    } else if (match[1] === "c") {
      column = Ranges.parseBox(Xml.attribute(tag, "r") ?? "")?.left ?? column + 1
      cell = tag.start
      arrays.find(({ box }) => Ranges.intersects(box, boxOf(row, column)))?.cells.push(cell)
    } else {
      const source = sourceOf(part, tag, row, column, sources)
      const filled = Ranges.parseBox(source.fills) ?? boxOf(row, column)
      const formula: Formula = {
        sheet,
        box: filled,
        cells: [cell],
        reads: source.reads?.map((read) => ({
          sheet: read.sheet === undefined ? sheet.name : nameOf(read.sheet),
          box: Ranges.moveReference(read, row - source.row, column - source.column)
        }))
      }
      formulas.push(formula)
      if (source.fills !== "") arrays = [...arrays, formula]
    }
  }
  return formulas
})

const boxOf = (row: number, column: number): Ranges.Box => ({ top: row, left: column, bottom: row, right: column })

/** The text of a formula, read where it stands. */
interface Source {
  readonly row: number
  readonly column: number
  readonly reads: ReadonlyArray<Ranges.Reference> | undefined
  /** The range of an array formula or a data table. */
  readonly fills: string
}

const sourceOf = (
  part: Xml.Part,
  tag: Xml.Tag,
  row: number,
  column: number,
  sources: Map<string, Source>
): Source => {
  const kind = Xml.attribute(tag, "t") ?? "normal"
  const ref = Xml.attribute(tag, "ref")
  const shared = kind === "shared" ? Xml.attribute(tag, "si") ?? "" : undefined
  if (shared !== undefined && ref === undefined) {
    return sources.get(shared) ?? { row, column, reads: undefined, fills: "" }
  }
  const text = Xml.textBetween(part, tag.end, Xml.contentEnd(part, "f", tag) ?? tag.end)
  const fills = kind === "array" || kind === "dataTable" ? ref ?? "" : ""
  // A data table has its input cells in attributes.
  const source = { row, column, reads: kind === "dataTable" ? undefined : Ranges.references(text), fills }
  if (shared !== undefined) sources.set(shared, source)
  return source
}

// =============================================================================
// What a change reaches
// =============================================================================

/** A set of cells that can tell quickly whether it has one in a range. */
const makeCells = () => {
  const columns = new Map<string, Map<number, { readonly rows: Set<number>; readonly blocks: Uint8Array }>>()
  return {
    add: (sheet: string, box: Ranges.Box): void => {
      const inSheet = columns.get(sheet) ?? new Map<number, { rows: Set<number>; blocks: Uint8Array }>()
      columns.set(sheet, inSheet)
      for (let column = box.left; column <= box.right; column++) {
        const inColumn = inSheet.get(column) ?? { rows: new Set(), blocks: new Uint8Array(BLOCKS) }
        inSheet.set(column, inColumn)
        for (let row = box.top; row <= box.bottom; row++) {
          inColumn.rows.add(row)
          inColumn.blocks[row >> BLOCK_BITS] = 1
        }
      }
    },
    touches: (sheet: string, box: Ranges.Box): boolean => {
      for (const [column, { blocks, rows }] of columns.get(sheet) ?? []) {
        if (column < box.left || column > box.right) continue
        for (let block = box.top >> BLOCK_BITS; block <= box.bottom >> BLOCK_BITS; block++) {
          if (blocks[block] !== 1) continue
          const last = Math.min(box.bottom, ((block + 1) << BLOCK_BITS) - 1)
          for (let row = Math.max(box.top, block << BLOCK_BITS); row <= last; row++) if (rows.has(row)) return true
        }
      }
      return false
    }
  }
}

const BLOCK_BITS = 8
const BLOCKS = (1_048_576 >> BLOCK_BITS) + 1

/** Chains of formulas that change their direction more often than this are rare; all formulas count as reached then. */
const MAX_PASSES = 20

/**
 * Returns the formulas whose results depend on the changed cells, by themselves or through others.
 *
 * @category combinators
 * @since 0.1.0
 */
export const reached = Effect.fnUntraced(function*(
  formulas: ReadonlyArray<Formula>,
  changed: ReadonlyArray<{ readonly sheet: string; readonly box: Ranges.Box }>,
  checkpoint: Effect.Effect<void>
): Effect.fn.Return<ReadonlyArray<Formula>> {
  const cells = makeCells()
  for (const { box, sheet } of changed) cells.add(sheet, box)
  const found: Array<Formula> = []
  let rest = formulas
  let count = 0
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const others: Array<Formula> = []
    for (const formula of rest) {
      if (++count % CHECKPOINT_TAGS === 0) yield* checkpoint
      if (formula.reads?.some(({ box, sheet }) => cells.touches(sheet, box)) === false) {
        others.push(formula)
        continue
      }
      cells.add(formula.sheet.name, formula.box)
      found.push(formula)
    }
    if (others.length === rest.length) return found
    // Formulas that read what is below them are found when the list is read from its end.
    rest = others.toReversed()
  }
  return [...found, ...rest]
})

/**
 * Makes the edits that take the result from a cell.
 *
 * @category encoding
 * @since 0.1.0
 */
export const withoutResult = (part: Xml.Part, cell: number): ReadonlyArray<Xml.Edit> => {
  const tag = Xml.tag(part, "c", cell)
  const end = tag && Xml.elementEnd(part, "c", tag)
  const value = tag && Xml.tag(part, "v", tag.end, end)
  const valueEnd = value && Xml.elementEnd(part, "v", value)
  if (tag === undefined || value === undefined || valueEnd === undefined) return []
  const type = Xml.removeAttribute(tag, "t")
  return [...(type === undefined ? [] : [type]), { start: value.start, end: valueEnd, insert: "" }]
}

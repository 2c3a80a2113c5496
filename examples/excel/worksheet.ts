/**
 * Changes cells in the XML of a worksheet and nothing around them.
 *
 * The part is read once, row by row, to learn where rows are and which cells belong together; what comes out is a list
 * of edits. Cells whose change would damage others are refused: parts of merged ranges and of array formulas, and what
 * the caller names as `reserved`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Ranges from "./ranges.ts"
import type { Styles } from "./styles.ts"
import * as Values from "./values.ts"
import { BadCell, fail, type WorkbookError } from "./WorkbookError.ts"
import * as Xml from "./xml.ts"

// =============================================================================
// Models
// =============================================================================

/**
 * A cell and what it shall hold.
 *
 * @category models
 * @since 0.1.0
 */
export interface Change {
  readonly row: number
  readonly column: number
  readonly content: Values.Content
}

/**
 * A range in which no cell may be changed, and why.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reserved {
  readonly box: Ranges.Box
  readonly problem: BadCell["problem"]
}

/**
 * What a change needs to know beside the worksheet.
 *
 * @category models
 * @since 0.1.0
 */
export interface Surroundings {
  readonly styles: Styles
  readonly date1904: boolean
  readonly reserved: ReadonlyArray<Reserved>
  /** Runs from time to time with the share of the work that is done: the place to report, to let others run and to stop. */
  readonly checkpoint: (share: number) => Effect.Effect<void>
}

/**
 * What to do to the part.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan {
  readonly edits: ReadonlyArray<Xml.Edit>
  /** Where the cells start that are exchanged. */
  readonly overwritten: ReadonlySet<number>
  /** Whether a formula is among them. */
  readonly overwritesFormula: boolean
}

const CHECKPOINT_BYTES = 1024 * 1024

/** The part is searched three times: for rows, for formulas, and for the cells to change. */
const PASSES = 3

const addressOf = ({ column, row }: { readonly row: number; readonly column: number }): string =>
  `${Ranges.columnName(column)}${row}`

// =============================================================================
// Changing
// =============================================================================

/**
 * Finds the edits that bring the changes into the part. The changes name each cell once.
 *
 * **Details**
 *
 * A cell keeps its style. A new one gets the style of its row or column, as in Excel. A cell is emptied without removing
 * it. Where the first cell of a shared formula is changed, the others get the formula in full.
 *
 * @category encoding
 * @since 0.1.0
 */
export const plan = Effect.fnUntraced(function*(
  part: Xml.Part,
  changes: ReadonlyArray<Change>,
  surroundings: Surroundings
): Effect.fn.Return<Plan, WorkbookError | Xml.PartError> {
  const { checkpoint, date1904, reserved, styles } = surroundings
  const damaged = new Xml.PartError({ part: "the worksheet" })
  const pass = (number: number) => {
    let reached = 0
    return (offset: number): Effect.Effect<void> => {
      if (offset - reached < CHECKPOINT_BYTES) return Effect.void
      reached = offset
      return checkpoint((number + offset / part.text.length) / PASSES)
    }
  }
  const sorted = changes.toSorted((a, b) => a.row - b.row || a.column - b.column)
  const data = Xml.tag(part, "sheetData")
  const dataEnd = data && Xml.contentEnd(part, "sheetData", data)
  if (data === undefined || dataEnd === undefined) return yield* damaged

  const rows = yield* indexRows(part, data.end, dataEnd, pass(0))
  const formulas = yield* findFormulas(part, data.end, dataEnd, pass(1))
  const changing = pass(2)
  const merged = Array.from(Xml.tags(part, "mergeCell", dataEnd), (tag): Reserved | undefined => {
    const box = Ranges.parseBox(Xml.attribute(tag, "ref") ?? "")
    return box && { box, problem: "Merged" }
  })
  for (const range of [...merged, ...formulas.arrays, ...reserved]) {
    const change = range && firstInside(sorted, range)
    if (range === undefined || change === undefined) continue
    return yield* fail(
      new BadCell({ cell: addressOf(change), problem: range.problem, range: Ranges.format(range.box) })
    )
  }
  const protection = Xml.tag(part, "sheetProtection", dataEnd)
  const locked = protection !== undefined && Xml.flag(protection, "sheet")

  const edits: Array<Xml.Edit> = []
  const overwritten = new Set<number>()
  const overwrittenFormulas = new Set<Formula>()
  let overwritesFormula = false
  const encode = (change: Change, style: number | undefined): string =>
    Values.encodeCell(
      addressOf(change),
      change.content.kind === "date" && !styles.showsDates(style)
        ? styles.withDate(style, change.content.time)
        : style,
      change.content,
      date1904
    )
  const columnStyles = readColumnStyles(part, data.start)

  for (const group of groupByRow(sorted)) {
    const [{ row }] = group
    const index = rows.indexOf.get(row)
    const tag = index === undefined ? undefined : Xml.tag(part, "row", rows.starts[index])
    const style = (column: number): number | undefined =>
      (tag && Xml.flag(tag, "customFormat") ? numberOf(tag, "s") : undefined) ?? columnStyles(column)
    const added = (change: Change): string =>
      change.content.kind === "empty" ? "" : encode(change, style(change.column))
    const refuseLocked = (change: Change, style: number | undefined) =>
      locked && !styles.unlocked(style)
        ? fail(new BadCell({ cell: addressOf(change), problem: "Locked" }))
        : Effect.void

    if (tag === undefined) {
      for (const change of group) yield* refuseLocked(change, style(change.column))
      const cells = group.map(added).join("")
      const at = rows.starts[rows.firstAfter(row)] ?? dataEnd
      if (cells !== "") edits.push({ start: at, end: at, insert: `<row r="${row}">${cells}</row>` })
      continue
    }
    const end = Xml.contentEnd(part, "row", tag)
    if (end === undefined) return yield* damaged
    const waiting = group.values()
    let next = waiting.next().value
    let inserted = ""
    if (!tag.empty) {
      let column = 0
      for (const cell of Xml.tags(part, "c", tag.end, end)) {
        column = Ranges.parseBox(Xml.attribute(cell, "r") ?? "")?.left ?? column + 1
        for (; next !== undefined && next.column < column; next = waiting.next().value) {
          yield* refuseLocked(next, style(next.column))
          const insert = added(next)
          if (insert !== "") edits.push({ start: cell.start, end: cell.start, insert })
        }
        if (next === undefined) break
        if (next.column > column) continue
        const cellEnd = Xml.elementEnd(part, "c", cell)
        if (cellEnd === undefined) return yield* damaged
        const own = numberOf(cell, "s")
        yield* refuseLocked(next, own)
        edits.push({ start: cell.start, end: cellEnd, insert: encode(next, own) })
        overwritten.add(cell.start)
        if (Xml.tag(part, "f", cell.end, cellEnd) !== undefined) {
          overwritesFormula = true
          const shared = formulas.within(cell.start, cellEnd)
          if (shared !== undefined) overwrittenFormulas.add(shared)
        }
        next = waiting.next().value
      }
    }
    for (; next !== undefined; next = waiting.next().value) {
      yield* refuseLocked(next, style(next.column))
      inserted += added(next)
    }
    if (inserted !== "") {
      edits.push(
        tag.empty
          ? { start: tag.end - 2, end: tag.end, insert: `>${inserted}</row>` }
          : { start: end, end, insert: inserted }
      )
    }
    const spans = widenSpans(tag, group)
    if (spans !== undefined) edits.push(spans)
    yield* changing(end)
  }

  if (data.empty && edits.length > 0) {
    const cells = edits.splice(0).map(({ insert }) => insert).join("")
    edits.push({ start: data.end - 2, end: data.end, insert: `>${cells}</sheetData>` })
  }
  edits.push(...expand(part, rows, formulas.shared, overwrittenFormulas))
  const dimension = Xml.tag(part, "dimension", 0, data.start)
  const filled = sorted.filter(({ content }) => content.kind !== "empty")
  if (dimension !== undefined) edits.push(...widenDimension(dimension, filled))
  return { edits, overwritten, overwritesFormula }
})

const numberOf = (tag: Xml.Tag, name: string): number | undefined => {
  const text = Xml.attribute(tag, name)
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

function* groupByRow(sorted: ReadonlyArray<Change>): Generator<readonly [Change, ...ReadonlyArray<Change>]> {
  let start = 0
  for (let at = 1; at <= sorted.length; at++) {
    const first = sorted[start]
    if (first === undefined || sorted[at]?.row === first.row) continue
    yield [first, ...sorted.slice(start + 1, at)]
    start = at
  }
}

/** Returns the first change that a range refuses. The first cell of merged cells is the one that can be written. */
const firstInside = (sorted: ReadonlyArray<Change>, { box, problem }: Reserved): Change | undefined => {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle]?.row ?? 0) < box.top) low = middle + 1
    else high = middle
  }
  for (let at = low; at < sorted.length; at++) {
    const change = sorted[at]
    if (change === undefined || change.row > box.bottom) return undefined
    const first = problem === "Merged" && change.row === box.top && change.column === box.left
    if (change.column >= box.left && change.column <= box.right && !first) return change
  }
  return undefined
}

// =============================================================================
// Rows
// =============================================================================

interface Rows {
  readonly starts: ReadonlyArray<number>
  readonly numbers: ReadonlyArray<number>
  readonly indexOf: ReadonlyMap<number, number>
  /** Returns the index of the first row below a number. */
  readonly firstAfter: (row: number) => number
}

/** Lists the rows; a row without a number follows the one before it. */
const indexRows = Effect.fnUntraced(function*(
  part: Xml.Part,
  from: number,
  to: number,
  reached: (offset: number) => Effect.Effect<void>
): Effect.fn.Return<Rows> {
  const starts: Array<number> = []
  const numbers: Array<number> = []
  const indexOf = new Map<number, number>()
  let row = 0
  for (const tag of Xml.tags(part, "row", from, to)) {
    row = numberOf(tag, "r") ?? row + 1
    if (!indexOf.has(row)) indexOf.set(row, starts.length)
    starts.push(tag.start)
    numbers.push(row)
    yield* reached(tag.start)
  }
  const firstAfter = (row: number): number => {
    let low = 0
    let high = numbers.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((numbers[middle] ?? 0) <= row) low = middle + 1
      else high = middle
    }
    return low
  }
  return { starts, numbers, indexOf, firstAfter }
})

/** Returns the number of the row that contains an offset. */
const rowAt = ({ numbers, starts }: Rows, offset: number): { readonly row: number; readonly start: number } => {
  let low = 0
  let high = starts.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((starts[middle] ?? 0) <= offset) low = middle + 1
    else high = middle
  }
  return { row: numbers[low - 1] ?? 0, start: starts[low - 1] ?? 0 }
}

/** Widens the hint which columns a row uses; programs may trust it. */
const widenSpans = (tag: Xml.Tag, group: ReadonlyArray<Change>): Xml.Edit | undefined => {
  const match = /^(\d+):(\d+)$/.exec(Xml.attribute(tag, "spans") ?? "")
  const filled = group.filter(({ content }) => content.kind !== "empty").map(({ column }) => column)
  const [first, last] = [Number(match?.[1]), Number(match?.[2])]
  const [left, right] = [Math.min(first, ...filled), Math.max(last, ...filled)]
  return match === null || (left === first && right === last)
    ? undefined
    : Xml.setAttribute(tag, "spans", `${left}:${right}`)
}

const widenDimension = (tag: Xml.Tag, filled: ReadonlyArray<Change>): ReadonlyArray<Xml.Edit> => {
  const box = Ranges.parseBox(Xml.attribute(tag, "ref") ?? "")
  if (box === undefined || filled.length === 0) return []
  let { bottom, left, right, top } = box
  for (const { column, row } of filled) {
    top = Math.min(top, row)
    left = Math.min(left, column)
    bottom = Math.max(bottom, row)
    right = Math.max(right, column)
  }
  const wide = { top, left, bottom, right }
  return Ranges.format(wide) === Ranges.format(box) ? [] : [Xml.setAttribute(tag, "ref", Ranges.format(wide))]
}

/** Reads which style each column gives to its new cells. */
const readColumnStyles = (part: Xml.Part, end: number): (column: number) => number | undefined => {
  const styled = Array.from(Xml.tags(part, "col", 0, end), (tag) => ({
    first: numberOf(tag, "min") ?? 0,
    last: numberOf(tag, "max") ?? 0,
    style: numberOf(tag, "style")
  }))
  return (column) => styled.find(({ first, last }) => first <= column && column <= last)?.style
}

// =============================================================================
// Formulas of several cells
// =============================================================================

/** A formula that shares its text: the one that has the text, and those that refer to it. */
interface Formula {
  readonly tag: Xml.Tag
  /** The one that has the text; itself when it does. */
  readonly source: Formula | undefined
}

interface Formulas {
  readonly arrays: ReadonlyArray<Reserved>
  readonly shared: ReadonlyArray<Formula>
  /** Returns the one that starts between two offsets. */
  readonly within: (start: number, end: number) => Formula | undefined
}

/** Finds the formulas that concern more than their cell: only those have attributes. */
const findFormulas = Effect.fnUntraced(function*(
  part: Xml.Part,
  from: number,
  to: number,
  reached: (offset: number) => Effect.Effect<void>
): Effect.fn.Return<Formulas> {
  const arrays: Array<Reserved> = []
  const shared: Array<Formula> = []
  const current = new Map<string, Formula>()
  const pattern = /<f\s/g
  pattern.lastIndex = from
  for (let match = pattern.exec(part.text); match !== null && match.index < to; match = pattern.exec(part.text)) {
    const tag = Xml.tag(part, "f", match.index)
    if (tag === undefined) break
    const kind = Xml.attribute(tag, "t")
    const ref = Xml.attribute(tag, "ref")
    if (kind === "array" || kind === "dataTable") {
      const box = Ranges.parseBox(ref ?? "")
      const single = box !== undefined && box.top === box.bottom && box.left === box.right
      if (box !== undefined && !(kind === "array" && single)) {
        arrays.push({ box, problem: kind === "array" ? "Array" : "DataTable" })
      }
    } else if (kind === "shared") {
      const id = Xml.attribute(tag, "si") ?? ""
      const formula: Formula = { tag, source: ref === undefined ? current.get(id) : undefined }
      if (ref !== undefined) current.set(id, formula)
      shared.push(formula)
    }
    yield* reached(tag.start)
  }
  const within = (start: number, end: number): Formula | undefined => {
    let low = 0
    let high = shared.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((shared[middle]?.tag.start ?? 0) < start) low = middle + 1
      else high = middle
    }
    const formula = shared[low]
    return formula !== undefined && formula.tag.start < end ? formula : undefined
  }
  return { arrays, shared, within }
})

/** Finds out which cell contains an offset. */
const cellAt = (part: Xml.Part, rows: Rows, offset: number): { readonly row: number; readonly column: number } => {
  const { row, start } = rowAt(rows, offset)
  const at = part.text.lastIndexOf("<c", offset)
  const tag = Xml.tag(part, "c", at)
  const named = tag && Ranges.parseBox(Xml.attribute(tag, "r") ?? "")
  if (named !== undefined) return { row, column: named.left }
  let column = 0
  for (const cell of Xml.tags(part, "c", start, offset)) {
    column = Ranges.parseBox(Xml.attribute(cell, "r") ?? "")?.left ?? column + 1
  }
  return { row, column }
}

/** Gives the text of a shared formula to all that refer to one that goes away, moved as Excel shows it in their cells. */
const expand = (
  part: Xml.Part,
  rows: Rows,
  shared: ReadonlyArray<Formula>,
  overwritten: ReadonlySet<Formula>
): ReadonlyArray<Xml.Edit> => {
  const homes = new Map(Array.from(overwritten, (formula) => [formula, {
    ...cellAt(part, rows, formula.tag.start),
    text: Xml.textBetween(part, formula.tag.end, Xml.contentEnd(part, "f", formula.tag) ?? formula.tag.end)
  }]))
  return shared.flatMap((formula) => {
    const home = formula.source && homes.get(formula.source)
    if (home === undefined || overwritten.has(formula)) return []
    const { column, row } = cellAt(part, rows, formula.tag.start)
    const text = Ranges.moveFormula(home.text, row - home.row, column - home.column)
    const end = Xml.elementEnd(part, "f", formula.tag) ?? formula.tag.end
    return [{ start: formula.tag.start, end, insert: `<f>${Xml.escape(text)}</f>` }]
  })
}

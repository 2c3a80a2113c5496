/**
 * Changes cells of a workbook, from the bytes of one file to the bytes of the next.
 *
 * Only the parts of the package that have to change are touched, and in those only the elements that have to: the cells
 * in the XML of their sheet, the saved results of formulas that depend on them, the note in `workbook.xml` that
 * everything has to be calculated again, and, when needed, a date style, a new sheet or the removal of the stored order
 * of calculation. What this module does not know (charts, pivot tables, extensions, macros) it cannot lose.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { Buffer } from "node:buffer"
import * as Archive from "./archive.ts"
import * as Ranges from "./ranges.ts"
import * as Results from "./results.ts"
import * as Styles from "./styles.ts"
import * as Values from "./values.ts"
import {
  BadCell,
  BadSheetName,
  BadValue,
  fail,
  NotAWorkbook,
  NotWritable,
  UnknownSheet,
  type WorkbookError
} from "./WorkbookError.ts"
import * as Worksheet from "./worksheet.ts"
import * as Xml from "./xml.ts"

// =============================================================================
// Models
// =============================================================================

/**
 * What to change.
 *
 * @category models
 * @since 0.1.0
 */
export interface Request {
  /** How the user calls the file, for messages. */
  readonly file: string
  /** The name of the sheet, in any case. */
  readonly sheet: string
  /** Whether a sheet that is not there is added. */
  readonly createSheet: boolean
  readonly cells: ReadonlyArray<{ readonly cell: string; readonly value: Values.Value }>
}

/**
 * A changed workbook.
 *
 * @category models
 * @since 0.1.0
 */
export interface Changed {
  /** The new file, in pieces. */
  readonly pieces: ReadonlyArray<Uint8Array>
  /** The name of the sheet as the workbook has it. */
  readonly sheet: string
  readonly created: boolean
  /** What all parts unpack to, in bytes. */
  readonly unpackedBytes: number
}

/**
 * Runs from time to time with the share of the work that is done, from 0 to 1.
 *
 * @category models
 * @since 0.1.0
 */
export type Checkpoint = (share: number) => Effect.Effect<void>

const WORKBOOK = "xl/workbook.xml"
const WORKBOOK_RELATIONSHIPS = "xl/_rels/workbook.xml.rels"
const CONTENT_TYPES = "[Content_Types].xml"
const SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
const CHECKPOINT_CELLS = 10_000
const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
const RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

// =============================================================================
// Packages
// =============================================================================

/** The parts of a workbook, as far as they were opened, and what shall become of them. */
interface Package {
  readonly names: ReadonlyArray<string>
  readonly has: (name: string) => boolean
  readonly open: (name: string) => Effect.Effect<Xml.Part, Archive.ArchiveError | Xml.PartError | WorkbookError>
  readonly set: (name: string, contents: Uint8Array | undefined) => void
  readonly pieces: Effect.Effect<ReadonlyArray<Uint8Array>, Archive.ArchiveError>
  readonly unpackedBytes: () => number
}

const openPackage = (bytes: Uint8Array, file: string): Effect.Effect<Package, WorkbookError> => {
  const entries = Archive.entries(bytes) ?? []
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  // Which of two files with one name counts is up to each program.
  if (byName.size !== entries.length) return fail(new NotWritable({ file, problem: "Unsupported" }))
  if (entries.some(({ name }) => name.startsWith("_xmlsignatures/"))) {
    return fail(new NotWritable({ file, problem: "Signed" }))
  }
  const changes = new Map<string, Uint8Array | undefined>()
  return Effect.succeed({
    names: entries.map(({ name }) => name),
    has: (name) => byName.has(name),
    open: Effect.fnUntraced(function*(name) {
      const entry = byName.get(name)
      if (entry === undefined) return yield* new Xml.PartError({ part: name })
      const part = Xml.make(yield* Archive.unpack(bytes, entry))
      // Names of elements may have prefixes, which exceljs does not read either.
      const known = part !== undefined && !/^[^<]*(?:<\?[^>]*>[^<]*)?<[\w.-]+:/.test(part.text)
      return known ? part : yield* fail(new NotWritable({ file, problem: "Unsupported" }))
    }),
    set: (name, contents) => changes.set(name, contents),
    pieces: Effect.suspend(() => Archive.replace(bytes, changes)),
    unpackedBytes: () =>
      entries.reduce((sum, { name, size }) => sum + (changes.has(name) ? 0 : size), 0) +
      Array.from(changes.values()).reduce((sum, contents) => sum + (contents?.byteLength ?? 0), 0)
  })
}

interface Relationship {
  readonly tag: Xml.Tag
  readonly id: string
  /** The last part of the type, which is the same in both editions of the standard. */
  readonly type: string
  readonly fullType: string
  /** The name of the entry. */
  readonly target: string
}

/** Resolves the target of a relationship of a part. */
const resolve = (source: string, target: string): string => {
  if (target.startsWith("/")) return target.slice(1)
  const path = source.split("/").slice(0, -1)
  for (const segment of target.split("/")) {
    if (segment === "..") path.pop()
    else if (segment !== ".") path.push(segment)
  }
  return path.join("/")
}

const relationshipsOf = (part: Xml.Part, source: string): ReadonlyArray<Relationship> =>
  Array.from(Xml.tags(part, "Relationship"), (tag) => {
    const fullType = Xml.attribute(tag, "Type") ?? ""
    return {
      tag,
      id: Xml.attribute(tag, "Id") ?? "",
      type: fullType.slice(fullType.lastIndexOf("/") + 1),
      fullType,
      target: resolve(source, Xml.attribute(tag, "Target") ?? "")
    }
  })

const relationshipsPath = (source: string): string => source.replace(/([^/]*)$/, "_rels/$1.rels")

// =============================================================================
// Workbooks
// =============================================================================

/** A part that is being changed. */
interface Draft {
  readonly path: string
  readonly part: Xml.Part
  readonly edits: Array<Xml.Edit>
}

interface Sheet {
  readonly name: string
  readonly path: string
  readonly part: Xml.Part
}

interface Book {
  readonly file: string
  readonly pack: Package
  readonly workbook: Draft
  readonly relationships: Draft
  readonly contentTypes: Draft
  /** The relationships as they were. */
  readonly related: ReadonlyArray<Relationship>
  /** All sheets with their tags, also those that are charts. */
  readonly entries: ReadonlyArray<{ readonly name: string; readonly tag: Xml.Tag }>
  readonly worksheets: ReadonlyArray<{ readonly name: string; readonly path: string }>
  readonly date1904: boolean
  /** The two editions of the standard have different names for the same things. */
  readonly namespace: string
  readonly relationshipTypes: string
  /** Ids of relationships, in lower case. */
  readonly ids: Set<string>
}

type Failure = WorkbookError | Archive.ArchiveError | Xml.PartError

const openBook = Effect.fnUntraced(function*(bytes: Uint8Array, file: string): Effect.fn.Return<Book, Failure> {
  const pack = yield* openPackage(bytes, file)
  const draft = (path: string) => Effect.map(pack.open(path), (part): Draft => ({ path, part, edits: [] }))
  const workbook = yield* draft(WORKBOOK)
  const relationships = yield* draft(WORKBOOK_RELATIONSHIPS)
  const contentTypes = yield* draft(CONTENT_TYPES)
  const related = relationshipsOf(relationships.part, WORKBOOK)
  const root = Xml.tag(workbook.part, "workbook")
  const list = Xml.tag(workbook.part, "sheets")
  if (root === undefined || list === undefined) return yield* new Xml.PartError({ part: WORKBOOK })
  const tags = Xml.tags(workbook.part, "sheet", list.end, Xml.contentEnd(workbook.part, "sheets", list))
  const entries = Array.from(tags, (tag) => ({ tag, name: Xml.attribute(tag, "name") ?? "" }))
  const worksheets = entries.flatMap(({ name, tag }) => {
    // The prefix of this attribute is "r" nearly everywhere.
    const id = Xml.attribute(tag, "[\\w.-]+:id")
    const found = related.find((relationship) => relationship.id === id && relationship.type === "worksheet")
    return found === undefined ? [] : [{ name, path: found.target, fullType: found.fullType }]
  })
  const properties = Xml.tag(workbook.part, "workbookPr")
  return {
    file,
    pack,
    workbook,
    relationships,
    contentTypes,
    related,
    entries,
    worksheets,
    date1904: properties !== undefined && Xml.flag(properties, "date1904"),
    namespace: Xml.attribute(root, "xmlns") ?? MAIN,
    relationshipTypes: worksheets[0]?.fullType.replace(/\/[^/]*$/, "") ?? RELATIONSHIPS,
    ids: new Set(related.map(({ id }) => id.toLowerCase()))
  }
})

/**
 * Tells whether two names mean the same sheet: Excel compares them without case, and "ü" can be written in two ways.
 *
 * @category guards
 * @since 0.1.0
 */
export const sameName = (a: string, b: string): boolean => comparable(a) === comparable(b)

const comparable = (name: string): string => name.normalize("NFC").toLowerCase()

/** Says in the workbook that everything has to be calculated when it is opened. */
const askForCalculation = ({ edits, part }: Draft): Effect.Effect<void, Xml.PartError> => {
  const calculation = Xml.tag(part, "calcPr")
  if (calculation !== undefined) {
    if (!Xml.flag(calculation, "fullCalcOnLoad")) edits.push(Xml.setAttribute(calculation, "fullCalcOnLoad", "1"))
    return Effect.void
  }
  // The standard fixes the order: these come before.
  for (const name of ["definedNames", "externalReferences", "functionGroups", "sheets"]) {
    const tag = Xml.tag(part, name)
    const at = tag && Xml.elementEnd(part, name, tag)
    if (at === undefined) continue
    edits.push({ start: at, end: at, insert: `<calcPr fullCalcOnLoad="1"/>` })
    return Effect.void
  }
  return Effect.fail(new Xml.PartError({ part: WORKBOOK }))
}

/**
 * Takes the stored order of calculation out of the workbook. Excel calls a file damaged whose order names a cell without
 * a formula, and makes a new one where there is none.
 */
const dropCalculationOrder = ({ contentTypes, pack, related, relationships }: Book): void => {
  const order = related.find(({ type }) => type === "calcChain")
  if (order === undefined) return
  pack.set(order.target, undefined)
  const remove = ({ edits, part }: Draft, name: string, tag: Xml.Tag): void => {
    edits.push({ start: tag.start, end: Xml.elementEnd(part, name, tag) ?? tag.end, insert: "" })
  }
  remove(relationships, "Relationship", order.tag)
  for (const tag of Xml.tags(contentTypes.part, "Override")) {
    const path = Xml.attribute(tag, "PartName") ?? ""
    if (path.toLowerCase() === `/${order.target}`.toLowerCase()) remove(contentTypes, "Override", tag)
  }
}

const isSheetName = (name: string): boolean =>
  name.length > 0 && name.length <= 31 && !/[\\/?*[\]:\p{Cc}]|^'|'$/u.test(name) && !sameName(name, "History")

/** Puts an element at the end of another one. */
const append = ({ edits, part, path }: Draft, name: string, insert: string): Effect.Effect<void, Xml.PartError> => {
  const tag = Xml.tag(part, name)
  const end = tag && Xml.contentEnd(part, name, tag)
  if (tag === undefined || end === undefined) return Effect.fail(new Xml.PartError({ part: path }))
  edits.push(
    tag.empty ? { start: tag.end - 2, end: tag.end, insert: `>${insert}</${name}>` } : { start: end, end, insert }
  )
  return Effect.void
}

/** Returns the first of name1, name2, … that is free. */
const firstFree = (taken: ReadonlySet<string>, name: (number: number) => string): string => {
  let number = taken.size
  while (taken.has(name(number).toLowerCase())) number++
  return name(number)
}

/** Adds a part that the workbook refers to, and returns the id of the relationship. */
const addPart = Effect.fnUntraced(function*(
  { contentTypes, ids, relationshipTypes, relationships }: Book,
  path: string,
  type: string
): Effect.fn.Return<string, Xml.PartError> {
  const id = firstFree(ids, (number) => `rId${number + 1}`)
  ids.add(id.toLowerCase())
  const fullType = Xml.escapeAttribute(`${relationshipTypes}/${type}`)
  yield* append(
    relationships,
    "Relationships",
    `<Relationship Id="${id}" Type="${fullType}" Target="${path.replace(/^xl\//, "")}"/>`
  )
  yield* append(
    contentTypes,
    "Types",
    `<Override PartName="/${path}" ContentType="${SPREADSHEET}.${type}+xml"/>`
  )
  return id
})

/** Adds an empty sheet after all others. */
const addSheet = Effect.fnUntraced(function*(book: Book, name: string): Effect.fn.Return<Sheet, Failure> {
  const { entries, file, namespace, pack, relationshipTypes, workbook } = book
  // A sheet of another kind may have the name.
  if (!isSheetName(name) || entries.some((entry) => sameName(entry.name, name))) {
    return yield* fail(new BadSheetName({ sheet: name }))
  }
  const protection = Xml.tag(workbook.part, "workbookProtection")
  if (protection !== undefined && Xml.flag(protection, "lockStructure")) {
    return yield* fail(new NotWritable({ file, problem: "ProtectedStructure" }))
  }
  const taken = pack.names.map((name) => name.toLowerCase()).filter((name) => name.startsWith("xl/worksheets/sheet"))
  const path = firstFree(new Set(taken), (number) => `xl/worksheets/sheet${number + 1}.xml`)
  const id = yield* addPart(book, path, "worksheet")
  const number = Math.max(0, ...entries.map(({ tag }) => Number(Xml.attribute(tag, "sheetId")) || 0)) + 1
  yield* append(
    workbook,
    "sheets",
    `<sheet name="${Xml.escapeAttribute(name)}" sheetId="${number}" r:id="${id}" ` +
      `xmlns:r="${Xml.escapeAttribute(relationshipTypes)}"/>`
  )
  const part = Xml.make(Buffer.from(
    `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n` +
      `<worksheet xmlns="${Xml.escapeAttribute(namespace)}"><sheetData/></worksheet>`
  ))
  return part === undefined ? yield* new Xml.PartError({ part: path }) : { name, path, part }
})

/** Opens the styles, or makes some for a workbook that has none. */
const openStyles = Effect.fnUntraced(function*({ namespace, pack, related }: Book) {
  const known = related.find(({ type }) => type === "styles")?.target
  const part = known === undefined ? Xml.make(Buffer.from(Styles.emptyPart(namespace))) : yield* pack.open(known)
  const styles = part && Styles.read(part)
  if (part === undefined || styles === undefined) return yield* new Xml.PartError({ part: "the styles" })
  return { path: known ?? "xl/styles.xml", added: known === undefined, part, styles }
})

// =============================================================================
// Changing
// =============================================================================

const checkCells = Effect.fnUntraced(function*(
  cells: Request["cells"],
  date1904: boolean
): Effect.fn.Return<ReadonlyArray<Worksheet.Change>, WorkbookError> {
  const changes = new Map<string, Worksheet.Change>()
  for (const { cell, value } of cells) {
    const box = Ranges.parseBox(cell)
    if (box === undefined || box.top !== box.bottom || box.left !== box.right) {
      return yield* fail(new BadCell({ cell, problem: "Address" }))
    }
    const address = Ranges.format(box)
    if (changes.has(address)) return yield* fail(new BadCell({ cell, problem: "Twice" }))
    const checked = Values.check(value, date1904)
    if ("problem" in checked) return yield* fail(new BadValue({ cell, problem: checked.problem }))
    changes.set(address, { row: box.top, column: box.left, content: checked.content })
  }
  return Array.from(changes.values())
})

/** Finds the ranges of a sheet that tables and pivot tables keep for themselves. */
const reservedRanges = Effect.fnUntraced(function*(pack: Package, sheet: string) {
  const reserved: Array<Worksheet.Reserved> = []
  const path = relationshipsPath(sheet)
  if (!pack.has(path)) return reserved
  for (const { target, type } of relationshipsOf(yield* pack.open(path), sheet)) {
    if ((type !== "table" && type !== "pivotTable") || !pack.has(target)) continue
    const part = yield* pack.open(target)
    const tag = Xml.tag(part, type === "table" ? "table" : "location")
    const box = tag && Ranges.parseBox(Xml.attribute(tag, "ref") ?? "")
    if (tag === undefined || box === undefined) continue
    if (type === "pivotTable") {
      reserved.push({ box, problem: "PivotTable" })
      continue
    }
    const [headers, totals] = [Xml.attribute(tag, "headerRowCount"), Xml.attribute(tag, "totalsRowCount")]
    if (headers !== "0") reserved.push({ box: { ...box, bottom: box.top }, problem: "TableHeader" })
    if (totals !== undefined && totals !== "0") {
      reserved.push({ box: { ...box, top: box.bottom }, problem: "TableTotal" })
    }
  }
  return reserved
})

/**
 * Changes cells of a workbook; all or none.
 *
 * @category encoding
 * @since 0.1.0
 */
export const edit = (
  bytes: Uint8Array,
  request: Request,
  checkpoint: Checkpoint
): Effect.Effect<Changed, WorkbookError> =>
  Effect.catchTags(change(bytes, request, checkpoint), {
    ArchiveError: (cause) => fail(new NotAWorkbook({ file: request.file, problem: "Damaged", cause })),
    PartError: (cause) => fail(new NotAWorkbook({ file: request.file, problem: "Damaged", cause }))
  })

const change = Effect.fnUntraced(function*(
  bytes: Uint8Array,
  request: Request,
  checkpoint: Checkpoint
): Effect.fn.Return<Changed, Failure> {
  const book = yield* openBook(bytes, request.file)
  const { contentTypes, date1904, file, pack, relationships, workbook, worksheets } = book
  const changes = yield* checkCells(request.cells, date1904)
  const existing = worksheets.find(({ name }) => name === request.sheet) ??
    worksheets.find(({ name }) => sameName(name, request.sheet))
  if (existing === undefined && !request.createSheet) {
    const sheets = worksheets.map(({ name }) => name)
    return yield* fail(new UnknownSheet({ file, sheet: request.sheet, sheets }))
  }
  const sheet = existing === undefined
    ? yield* addSheet(book, request.sheet)
    : { ...existing, part: yield* pack.open(existing.path) }
  yield* checkpoint(0.2)

  const { added, part, path, styles } = yield* openStyles(book)
  const plan = yield* Worksheet.plan(sheet.part, changes, {
    styles,
    date1904,
    reserved: existing === undefined ? [] : yield* reservedRanges(pack, sheet.path),
    checkpoint: (share) => checkpoint(0.2 + 0.2 * share)
  })
  const styleEdits = styles.edits()
  if (styleEdits.length > 0) {
    if (added) yield* addPart(book, path, "styles")
    pack.set(path, Xml.apply(part.bytes, styleEdits))
  }
  yield* changeSheets(book, sheet, changes, plan, checkpoint)

  yield* askForCalculation(workbook)
  if (plan.overwritesFormula) dropCalculationOrder(book)
  for (const { edits, part, path } of [workbook, relationships, contentTypes]) {
    if (edits.length > 0) pack.set(path, Xml.apply(part.bytes, edits))
  }
  yield* checkpoint(0.6)
  const pieces = yield* pack.pieces
  yield* checkpoint(0.9)
  return { pieces, sheet: sheet.name, created: existing === undefined, unpackedBytes: pack.unpackedBytes() }
})

/** Brings the plan into its sheet, and takes the results that are no longer true out of all sheets. */
const changeSheets = Effect.fnUntraced(function*(
  { pack, worksheets }: Book,
  sheet: Sheet,
  changes: ReadonlyArray<Worksheet.Change>,
  plan: Worksheet.Plan,
  checkpoint: Checkpoint
): Effect.fn.Return<void, Failure> {
  const sheets = [{ ...sheet, name: comparable(sheet.name) }]
  for (const { name, path } of worksheets) {
    if (path === sheet.path || !pack.has(path)) continue
    sheets.push({ name: comparable(name), path, part: yield* pack.open(path) })
  }
  const formulas: Array<Results.Formula> = []
  for (const sheet of sheets) {
    for (const formula of yield* Results.formulasOf(sheet, comparable, checkpoint(0.4))) formulas.push(formula)
  }
  const changed = changes.map(({ column, row }) => ({
    sheet: comparable(sheet.name),
    box: { top: row, left: column, bottom: row, right: column }
  }))
  const untrue = new Map(sheets.map(({ part }) => [part, new Set<number>()]))
  for (const { cells, sheet } of yield* Results.reached(formulas, changed, checkpoint(0.5))) {
    for (const cell of cells) untrue.get(sheet.part)?.add(cell)
  }
  let count = 0
  for (const { part, path } of sheets) {
    const edits = path === sheet.path ? Array.from(plan.edits) : []
    for (const cell of untrue.get(part) ?? []) {
      if (++count % CHECKPOINT_CELLS === 0) yield* checkpoint(0.55)
      if (path !== sheet.path || !plan.overwritten.has(cell)) edits.push(...Results.withoutResult(part, cell))
    }
    if (edits.length > 0 || path === sheet.path) pack.set(path, Xml.apply(part.bytes, edits))
  }
})

/**
 * Reads Excel workbooks below one folder, page by page.
 *
 * The service decides what may be opened (only .xlsx and .xlsm files that are really below the root folder, up to a
 * size), finds sheets and ranges, and cuts them into pages that fit into a message. Every expected failure is a
 * `WorkbookError` whose message says what to do next.
 *
 * **Limits**
 *
 * A workbook is parsed as a whole, in memory: count on 13 bytes of heap for each byte of unpacked XML, and a second
 * for 200,000 cells. One workbook is parsed at a time, and the last one stays in memory for `keepFor`, so that the
 * next page is cheap. The unpacked size is the one that the archive states. Formulas are not calculated: results are
 * the ones the file was saved with. Dates before 1900-03-01 are a day off, because Excel counts a day that never was.
 * Links into the workbook itself, comments, images and formats are left out.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Archive from "./archive.ts"
import * as Ranges from "./ranges.ts"
import * as Xlsx from "./xlsx.ts"

const DEFAULT_MAX_FILE_BYTES = 32 * 1024 * 1024
const DEFAULT_MAX_UNPACKED_BYTES = 64 * 1024 * 1024
const DEFAULT_MAX_CELLS = 2_000
const DEFAULT_MAX_RESULT_BYTES = 256 * 1024
const DEFAULT_MAX_TEXT_BYTES = 8 * 1024
const MAX_LISTED = 20
const MAX_QUOTED = 200
const MAX_CUT_LISTED = 100

// =============================================================================
// Errors
// =============================================================================

/**
 * The path leads out of the root folder, by itself or through a symbolic link.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutsideRoot extends Schema.TaggedError<OutsideRoot>()("OutsideRoot", { file: Schema.String }) {}

/**
 * There is no such file. `workbooks` names some that are directly in the root folder.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", {
  file: Schema.String,
  workbooks: Schema.Array(Schema.String)
}) {}

/**
 * The file exists, but it is no workbook that can be read.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotAWorkbook extends Schema.TaggedError<NotAWorkbook>()("NotAWorkbook", {
  file: Schema.String,
  problem: Schema.Literals([
    "Folder",
    "Extension",
    "NotAFile",
    "NoPermission",
    "NotZip",
    "ProtectedOrOld",
    "Damaged",
    "NoWorkbookInside",
    "NoSheets"
  ]),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/**
 * The file is larger than the server reads, as it is (`part` is "file") or unpacked ("contents").
 *
 * @category errors
 * @since 0.1.0
 */
export class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", {
  file: Schema.String,
  part: Schema.Literals(["file", "contents"]),
  bytes: Schema.Finite,
  maxBytes: Schema.Finite
}) {}

/**
 * The workbook has no sheet of that name; `sheets` are the ones it has.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnknownSheet extends Schema.TaggedError<UnknownSheet>()("UnknownSheet", {
  file: Schema.String,
  sheet: Schema.String,
  sheets: Schema.Array(Schema.String)
}) {}

/**
 * The range is not one of "A1:C20", "B:D", "2:10" and "B2", or it leaves the sheet.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadRange extends Schema.TaggedError<BadRange>()("BadRange", { range: Schema.String }) {}

/**
 * The cursor is not one this server gave out for this file, sheet and range, or the file changed in between.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadCursor extends Schema.TaggedError<BadCursor>()("BadCursor", {
  problem: Schema.Literals(["Unreadable", "OtherFile", "OtherSheet", "OtherRange", "FileChanged"])
}) {}

/**
 * The one error of this module.
 *
 * @category errors
 * @since 0.1.0
 */
export class WorkbookError extends Schema.TaggedError<WorkbookError>()("WorkbookError", {
  reason: Schema.Union([OutsideRoot, NotFound, NotAWorkbook, TooLarge, UnknownSheet, BadRange, BadCursor])
}) {
  override get message(): string {
    return describe(this.reason)
  }
}

/** What a user wrote or a file says, short enough for a message. */
const quote = (text: string): string => `"${text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text}"`

const quoteAll = (names: ReadonlyArray<string>): string =>
  names.slice(0, MAX_LISTED).map(quote).join(", ") + (names.length > MAX_LISTED ? " and more" : "")

const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 104_857.6) / 10} MiB`

const problems: Record<NotAWorkbook["problem"], string> = {
  Folder: "is a folder. Name an .xlsx file in it.",
  Extension: "is not an Excel workbook. Only .xlsx and .xlsm files can be read.",
  NotAFile: "is not a regular file. Only .xlsx and .xlsm files can be read.",
  NoPermission: "cannot be opened. Check that the server may read it.",
  NotZip: "has the name of an Excel workbook, but not the contents. Open it in Excel and save it as .xlsx.",
  ProtectedOrOld:
    "is protected by a password or in the old .xls format. Open it in Excel and save it as .xlsx without a password.",
  Damaged: "is damaged or incomplete. Copy it again, or open it in Excel and save it as .xlsx.",
  NoWorkbookInside: "holds no Excel workbook. Open it in the program that made it and save it as .xlsx.",
  NoSheets: "has no worksheet that can be read. Open it in Excel and save it as .xlsx."
}

const cursorProblems: Record<BadCursor["problem"], string> = {
  Unreadable: "The cursor is not valid. Pass nextCursor of the page before unchanged, or start without a cursor.",
  OtherFile: "The cursor belongs to another file. Start without a cursor.",
  OtherSheet: "The cursor belongs to another sheet. Leave out sheet and range, or start without a cursor.",
  OtherRange: "The cursor belongs to another range. Leave out sheet and range, or start without a cursor.",
  FileChanged: "The file changed since the page before. Start again without a cursor."
}

const describe = (reason: WorkbookError["reason"]): string => {
  switch (reason._tag) {
    case "OutsideRoot":
      return `${quote(reason.file)} is outside the folder that this server may read. ` +
        `Give a path below that folder, such as "budget.xlsx" or "reports/budget.xlsx".`
    case "NotFound":
      return `There is no file ${quote(reason.file)}. Paths start at the server's folder. ` +
        (reason.workbooks.length === 0
          ? "There are no workbooks directly in it."
          : `Workbooks directly in it: ${quoteAll(reason.workbooks)}.`)
    case "NotAWorkbook":
      return `${quote(reason.file)} ${problems[reason.problem]}`
    case "TooLarge":
      return `${quote(reason.file)} is too large: ${reason.part === "file" ? "it has" : "unpacked it has"} ` +
        `${mebibytes(reason.bytes)}, and at most ${mebibytes(reason.maxBytes)} can be read. ` +
        `Save the sheets you need as a workbook of their own.`
    case "UnknownSheet":
      return `${quote(reason.file)} has no sheet ${quote(reason.sheet)}. Its sheets are: ${quoteAll(reason.sheets)}.`
    case "BadRange":
      return `${
        quote(reason.range)
      } is not a range. Write "A1:C20" for cells, "B:D" for columns, "2:10" for rows or "B2" ` +
        `for one cell, and name the sheet in its own parameter.`
    case "BadCursor":
      return cursorProblems[reason.problem]
  }
}

const fail = (reason: WorkbookError["reason"]) => Effect.fail(new WorkbookError({ reason }))

// =============================================================================
// Models
// =============================================================================

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
  }).annotate({ description: "A formula and the result it had when the file was saved" }),
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
 * Schema for a sheet in a list: how large it is and whether Excel shows it.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SheetInfo = Schema.Struct({
  name: Schema.String,
  state: Schema.Literals(["visible", "hidden"]),
  rows: Schema.Int.annotate({ description: "Rows of the used range" }),
  columns: Schema.Int.annotate({ description: "Columns of the used range" }),
  usedRange: Schema.NullOr(Schema.String).annotate({
    description: "The smallest range with all values, such as A1:F14; null for an empty sheet"
  })
})

/**
 * Schema for the sheets of a workbook, in the order of their tabs.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SheetList = Schema.Struct({ file: Schema.String, sheets: Schema.Array(SheetInfo) })

/**
 * Type of `SheetList`.
 *
 * @category models
 * @since 0.1.0
 */
export type SheetList = typeof SheetList.Type

/**
 * Schema for a page of a sheet.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Page = Schema.Struct({
  file: Schema.String,
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
 * What to read. An empty text means the same as leaving the member out.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReadOptions {
  /** A path below the root folder, relative to it or absolute. */
  readonly file: string
  /** The name of a sheet, in any case. @default the first visible one */
  readonly sheet?: string | undefined
  /** "A1:C20", "B:D", "2:10" or "B2". @default the used range */
  readonly range?: string | undefined
  /** `nextCursor` of the page before; it brings its sheet and range along. */
  readonly cursor?: string | undefined
}

/**
 * Where workbooks are and how much is read at once.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The folder below which workbooks may be read. @default the working directory */
  readonly root?: string | undefined
  /** Largest file, in bytes. @default 33554432 */
  readonly maxFileBytes?: number | undefined
  /** Largest sum of what the file's archive unpacks to, in bytes. @default 67108864 */
  readonly maxUnpackedBytes?: number | undefined
  /** Most cells on a page; a row is never split, so a wider row is a page of its own. @default 2000 */
  readonly maxCells?: number | undefined
  /** Most bytes of JSON for the rows of a page. The texts of a row that alone needs more are cut. @default 262144 */
  readonly maxResultBytes?: number | undefined
  /** Longest text of a cell, in bytes of UTF-8; a longer one is cut and ends with "…". @default 8192 */
  readonly maxTextBytes?: number | undefined
  /** How long the last workbook stays in memory after its last use. @default "30 seconds" */
  readonly keepFor?: Duration.Input | undefined
}

const Cursor = Schema.StringFromBase64Url.pipe(Schema.decodeTo(Schema.fromJsonString(Schema.Struct({
  file: Schema.String,
  version: Schema.String,
  sheet: Schema.String,
  range: Schema.String,
  row: Schema.Int
}))))

const encodeCursor = Schema.encodeSync(Cursor)
const decodeCursor = Schema.decodeUnknownEffect(Cursor)

// =============================================================================
// Service
// =============================================================================

/**
 * Access to the workbooks below a folder.
 *
 * @category services
 * @since 0.1.0
 */
export class Workbooks extends Context.Service<Workbooks, {
  /** Lists the sheets of a workbook with their sizes. */
  readonly listSheets: (file: string) => Effect.Effect<SheetList, WorkbookError>
  /** Reads a page of a sheet. */
  readonly readSheet: (options: ReadOptions) => Effect.Effect<Page, WorkbookError>
}>()("effect-stdio/examples/Workbooks") {
  /**
   * Layer that reads workbooks below `options.root`; it fails when that folder does not exist.
   */
  static readonly layer = (
    options?: Options
  ): Layer.Layer<Workbooks, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(Workbooks, make(options))
}

/** A file as it was found: `version` changes when the file does. */
interface Found {
  /** As the user wrote it, for messages. */
  readonly file: string
  /** Without links, for reading. */
  readonly path: string
  /** Without links and below the root, for cursors. */
  readonly name: string
  readonly size: number
  readonly version: string
}

/**
 * Creates the service; `Workbooks.layer` is the usual way to it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  options?: Options
): Effect.fn.Return<
  Workbooks["Service"],
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const givenRoot = path.resolve(options?.root ?? ".")
  const root = yield* fs.realPath(givenRoot)
  const maxFileBytes = options?.maxFileBytes ?? DEFAULT_MAX_FILE_BYTES
  const maxUnpackedBytes = options?.maxUnpackedBytes ?? DEFAULT_MAX_UNPACKED_BYTES
  const limits: PageLimits = {
    maxCells: options?.maxCells ?? DEFAULT_MAX_CELLS,
    maxResultBytes: options?.maxResultBytes ?? DEFAULT_MAX_RESULT_BYTES,
    maxTextBytes: options?.maxTextBytes ?? DEFAULT_MAX_TEXT_BYTES
  }

  /** The path from the folder to the file, `undefined` when the file is not below it. */
  const below = (folder: string, file: string): string | undefined => {
    const relative = path.relative(folder, file)
    return relative === ".." || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative) ? undefined : relative
  }

  const isWorkbookName = (name: string) => /\.xls[xm]$/i.test(name)

  // Excel puts a file "~$budget.xlsx" beside one that is open.
  const nearby = fs.readDirectory(root).pipe(
    Effect.map((names) => names.filter((name) => isWorkbookName(name) && !/^[.~]/.test(name)).toSorted()),
    Effect.orElseSucceed(() => [])
  )

  const notFound = (file: string): Effect.Effect<never, WorkbookError> =>
    Effect.flatMap(nearby, (workbooks) => fail(new NotFound({ file, workbooks })))

  const notOpened = (file: string) => (error: PlatformError.PlatformError): Effect.Effect<never, WorkbookError> =>
    error.reason._tag === "PermissionDenied"
      ? fail(new NotAWorkbook({ file, problem: "NoPermission" }))
      : notFound(file)

  const find = Effect.fnUntraced(function*(file: string): Effect.fn.Return<Found, WorkbookError> {
    const absolute = path.resolve(root, file)
    // Checked before the file system is asked, so that nothing can be learned about files outside.
    if (below(root, absolute) === undefined && below(givenRoot, absolute) === undefined) {
      return yield* fail(new OutsideRoot({ file }))
    }
    // Node refuses such a path with an exception of its own.
    if (file.includes("\0")) return yield* notFound(file)
    const real = yield* Effect.catch(fs.realPath(absolute), notOpened(file))
    const name = below(root, real)
    if (name === undefined) return yield* fail(new OutsideRoot({ file }))
    const info = yield* Effect.catch(fs.stat(real), notOpened(file))
    if (info.type === "Directory") return yield* fail(new NotAWorkbook({ file, problem: "Folder" }))
    if (info.type !== "File") return yield* fail(new NotAWorkbook({ file, problem: "NotAFile" }))
    if (!isWorkbookName(absolute)) return yield* fail(new NotAWorkbook({ file, problem: "Extension" }))
    const size = Number(info.size)
    if (size > maxFileBytes) {
      return yield* fail(new TooLarge({ file, part: "file", bytes: size, maxBytes: maxFileBytes }))
    }
    const modified = Option.match(info.mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
    return { file, path: real, name, size, version: `${modified.toString(36)}.${size.toString(36)}` }
  })

  // Fails with a reason that still lacks the file: two callers may have written its path in different ways.
  const parse = Effect.fnUntraced(function*(path: string): Effect.fn.Return<ReadonlyArray<Xlsx.Sheet>, Refusal> {
    const bytes = yield* fs.readFile(path).pipe(
      Effect.catch((error): Effect.Effect<never, Refusal> => Effect.fail((file) => notOpened(file)(error)))
    )
    const refusal = refuse(bytes, maxUnpackedBytes)
    if (refusal !== undefined) return yield* Effect.fail(refusal)
    const sheets = yield* Effect.mapError(
      Xlsx.read(bytes),
      (cause): Refusal => (file) => fail(new NotAWorkbook({ file, problem: "Damaged", cause }))
    )
    return sheets.length === 0
      ? yield* Effect.fail<Refusal>((file) => fail(new NotAWorkbook({ file, problem: "NoSheets" })))
      : sheets
  })

  // One workbook at a time: parsing is bound by the processor, and each one may need a gigabyte.
  const parsing = yield* Semaphore.make(1)
  const opened = yield* RcMap.make({
    lookup: (key: string) => parsing.withPermit(parse(key.slice(key.indexOf(KEY_SEPARATOR) + 1))),
    idleTimeToLive: options?.keepFor ?? "30 seconds"
  })
  let kept = ""

  /** Opens a file that was found; the sheets stay in memory at least until the scope closes. */
  const open = Effect.fnUntraced(function*(
    { file, path, version }: Found
  ): Effect.fn.Return<ReadonlyArray<Xlsx.Sheet>, WorkbookError, Scope.Scope> {
    const key = version + KEY_SEPARATOR + path
    if (kept !== key) yield* RcMap.invalidate(opened, kept)
    kept = key
    return yield* RcMap.get(opened, key).pipe(
      Effect.onError(() => RcMap.invalidate(opened, key)),
      Effect.catch((refusal) => refusal(file))
    )
  })

  const listSheets = Effect.fn("Workbooks.listSheets")(function*(
    file: string
  ): Effect.fn.Return<SheetList, WorkbookError, Scope.Scope> {
    const sheets = yield* Effect.flatMap(find(file), open)
    return { file, sheets: sheets.map(toInfo) }
  }, Effect.scoped)

  const readSheet = Effect.fn("Workbooks.readSheet")(function*(
    request: ReadOptions
  ): Effect.fn.Return<Page, WorkbookError, Scope.Scope> {
    const { file } = request
    const found = yield* find(file)
    const cursor = request.cursor ? yield* readCursor(request.cursor, found) : undefined
    const sheets = yield* open(found)
    // Pages of a workbook in memory would otherwise follow each other without a turn of the event loop.
    yield* Effect.yieldNow
    const sheet = yield* findSheet(file, sheets, request.sheet || cursor?.sheet)
    if (cursor && cursor.sheet !== sheet.name) return yield* fail(new BadCursor({ problem: "OtherSheet" }))
    const rangeText = request.range || cursor?.range
    const selection = rangeText ? Ranges.parse(rangeText) : WHOLE
    if (selection === undefined) return yield* fail(new BadRange({ range: rangeText ?? "" }))
    const box = sheet.used && Ranges.clamp(selection, sheet.used)
    if (cursor && (box === undefined || Ranges.format(box) !== cursor.range)) {
      return yield* fail(new BadCursor({ problem: "OtherRange" }))
    }
    const head = { file, sheet: sheet.name, usedRange: sheet.used ? Ranges.format(sheet.used) : null }
    if (box === undefined) return { ...head, range: null, columns: [], rows: [], merges: [], truncated: false }
    const start = cursor?.row ?? box.top
    if (start < box.top || start > box.bottom) return yield* fail(new BadCursor({ problem: "Unreadable" }))
    const { next, cut, ...page } = readPage(sheet, { ...box, top: start }, limits)
    return {
      ...head,
      ...page,
      ...(cut.length > 0 && { cut }),
      truncated: next !== undefined,
      ...(next !== undefined && {
        nextCursor: encodeCursor({
          file: found.name,
          version: found.version,
          sheet: sheet.name,
          range: Ranges.format(box),
          row: next
        })
      })
    }
  }, Effect.scoped)

  return Workbooks.of({ listSheets, readSheet })
})

/** Explains why a file's contents cannot be read, once it is known how the user calls the file. */
type Refusal = (file: string) => Effect.Effect<never, WorkbookError>

/** No path contains it. */
const KEY_SEPARATOR = "\0"

const WHOLE: Ranges.Selection = { rows: undefined, columns: undefined }

// =============================================================================
// Private helpers
// =============================================================================

const PROTECTED_OR_OLD = [0xd0, 0xcf, 0x11, 0xe0]

/** Looks at what the bytes claim to be before any of them are unpacked. */
const refuse = (bytes: Uint8Array, maxBytes: number): Refusal | undefined => {
  const not = (problem: NotAWorkbook["problem"]): Refusal => (file) => fail(new NotAWorkbook({ file, problem }))
  if (PROTECTED_OR_OLD.every((byte, index) => bytes[index] === byte)) return not("ProtectedOrOld")
  if (!Archive.isArchive(bytes)) return not("NotZip")
  const entries = Archive.entries(bytes)
  if (entries === undefined) return not("Damaged")
  if (!entries.some((entry) => entry.name === "xl/workbook.xml")) return not("NoWorkbookInside")
  const size = entries.reduce((sum, entry) => sum + entry.size, 0)
  return size > maxBytes
    ? (file) => fail(new TooLarge({ file, part: "contents", bytes: size, maxBytes }))
    : undefined
}

const readCursor = Effect.fnUntraced(function*(
  text: string,
  found: Found
): Effect.fn.Return<typeof Cursor.Type, WorkbookError> {
  const cursor = yield* Effect.catch(decodeCursor(text), () => fail(new BadCursor({ problem: "Unreadable" })))
  if (cursor.file !== found.name) return yield* fail(new BadCursor({ problem: "OtherFile" }))
  return cursor.version === found.version ? cursor : yield* fail(new BadCursor({ problem: "FileChanged" }))
})

const toInfo = ({ hidden, name, used }: Xlsx.Sheet): typeof SheetInfo.Type => ({
  name,
  state: hidden ? "hidden" : "visible",
  rows: used ? used.bottom - used.top + 1 : 0,
  columns: used ? used.right - used.left + 1 : 0,
  usedRange: used ? Ranges.format(used) : null
})

// Excel compares the names of sheets without case, and "ü" can be written in two ways.
const sameName = (a: string, b: string): boolean =>
  a.normalize("NFC").toLowerCase() === b.normalize("NFC").toLowerCase()

const findSheet = (
  file: string,
  sheets: ReadonlyArray<Xlsx.Sheet>,
  name: string | undefined
): Effect.Effect<Xlsx.Sheet, WorkbookError> => {
  const sheet = name
    ? sheets.find((sheet) => sheet.name === name) ?? sheets.find((sheet) => sameName(sheet.name, name))
    : sheets.find((sheet) => !sheet.hidden) ?? sheets[0]
  return sheet === undefined
    ? fail(new UnknownSheet({ file, sheet: name ?? "", sheets: sheets.map(({ name }) => name) }))
    : Effect.succeed(sheet)
}

interface PageLimits {
  readonly maxCells: number
  readonly maxResultBytes: number
  readonly maxTextBytes: number
}

interface PageRows {
  readonly range: string
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<typeof Row.Type>
  readonly merges: ReadonlyArray<string>
  readonly cut: ReadonlyArray<string>
  /** The first row that did not fit. */
  readonly next: number | undefined
}

const readPage = (sheet: Xlsx.Sheet, box: Ranges.Box, limits: PageLimits): PageRows => {
  const width = box.right - box.left + 1
  const columns = Array.from({ length: width }, (_, index) => Ranges.columnName(box.left + index))
  const merges = sheet.merges.filter((merge) => Ranges.intersects(merge, box))
  const rows: Array<typeof Row.Type> = []
  const cut: Array<string> = []
  let bytes = 0
  let next: number | undefined
  for (let row = box.top; row <= box.bottom; row++) {
    if (!sheet.hasRow(row)) continue
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

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
 * the ones the file was saved with. Dates before 1900-03-01 are a day off, because Excel counts a day that never was,
 * and exceljs reads a date that the file stores as ISO text (some programs can do that, Excel does not) as its year.
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
import * as Pages from "./pages.ts"
import * as Ranges from "./ranges.ts"
import {
  BadCursor,
  BadRange,
  fail,
  NotAWorkbook,
  NotFound,
  OutsideRoot,
  TooLarge,
  UnknownSheet,
  type WorkbookError
} from "./WorkbookError.ts"
import * as Xlsx from "./xlsx.ts"

const DEFAULT_MAX_FILE_BYTES = 32 * 1024 * 1024
const DEFAULT_MAX_UNPACKED_BYTES = 64 * 1024 * 1024
const DEFAULT_MAX_CELLS = 2_000
const DEFAULT_MAX_RESULT_BYTES = 256 * 1024
const DEFAULT_MAX_TEXT_BYTES = 8 * 1024

// =============================================================================
// Models
// =============================================================================

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
  readonly readSheet: (options: ReadOptions) => Effect.Effect<Pages.Page, WorkbookError>
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
  const limits: Pages.Limits = {
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
    const last = kept
    kept = key
    if (last !== key) yield* RcMap.invalidate(opened, last)
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
  ): Effect.fn.Return<Pages.Page, WorkbookError, Scope.Scope> {
    const { file } = request
    const found = yield* find(file)
    const cursor = request.cursor ? yield* readCursor(request.cursor, found) : undefined
    const sheets = yield* open(found)
    // Pages of a workbook in memory would otherwise follow each other without a turn of the event loop.
    yield* Effect.yieldNow
    if (cursor && (!sheets.some(({ name }) => name === cursor.sheet) || Ranges.parse(cursor.range) === undefined)) {
      return yield* fail(new BadCursor({ problem: "Unreadable" }))
    }
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
    const { next, cut, ...page } = Pages.read(sheet, { ...box, top: start }, limits)
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

// =============================================================================
// Private helpers
// =============================================================================

/** Explains why a file's contents cannot be read, once it is known how the user calls the file. */
type Refusal = (file: string) => Effect.Effect<never, WorkbookError>

/** No path contains it. */
const KEY_SEPARATOR = "\0"

const WHOLE: Ranges.Selection = { rows: undefined, columns: undefined }

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

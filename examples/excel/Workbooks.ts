/**
 * Reads Excel workbooks below one folder, page by page, and changes cells in them.
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
 * A write changes the named cells in the file as it is, and leaves everything else in it alone (`edit.ts`); the file is
 * the old one or the new one at every moment (`../shared/replaceFile.ts`). New formulas, and old ones that read what was changed,
 * have no results until Excel opens the file and saves it.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as PubSub from "effect/PubSub"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { FileError } from "../shared/FileError.ts"
import { replaceFile } from "../shared/replaceFile.ts"
import * as Root from "../shared/Root.ts"
import * as Archive from "./archive.ts"
import * as Edit from "./edit.ts"
import * as Pages from "./pages.ts"
import * as Ranges from "./ranges.ts"
import type { Value } from "./values.ts"
import {
  BadCursor,
  BadRange,
  fail,
  FileChanged,
  NotAWorkbook,
  NotFound,
  NotWritable,
  OutsideRoot,
  TooLarge,
  TooManyCells,
  UnknownSheet,
  type WorkbookError
} from "./WorkbookError.ts"
import * as Xlsx from "./xlsx.ts"

const DEFAULT_MAX_FILE_BYTES = 32 * 1024 * 1024
const DEFAULT_MAX_UNPACKED_BYTES = 64 * 1024 * 1024
const DEFAULT_MAX_CELLS = 2_000
const DEFAULT_MAX_RESULT_BYTES = 256 * 1024
const DEFAULT_MAX_TEXT_BYTES = 8 * 1024
const DEFAULT_MAX_WRITTEN_CELLS = 10_000

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
 * What to write. An empty `version` means the same as leaving it out.
 *
 * @category models
 * @since 0.1.0
 */
export interface WriteOptions {
  /** A path below the root folder, relative to it or absolute. */
  readonly file: string
  /** The name of a sheet, in any case. */
  readonly sheet: string
  /** Each cell once, such as "B2", with what it shall hold. */
  readonly cells: ReadonlyArray<{ readonly cell: string; readonly value: Value }>
  /** Whether the sheet is added when there is none of this name. @default false */
  readonly createSheet?: boolean | undefined
  /** `version` of a page: the write fails when the file is another one by now. @default any */
  readonly version?: string | undefined
}

/**
 * Schema for what a write did.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Written = Schema.Struct({
  file: Schema.String,
  sheet: Schema.String,
  created: Schema.Boolean.annotate({ description: "Whether the sheet was added" }),
  cells: Schema.Int.annotate({ description: "How many cells were written" }),
  version: Schema.String.annotate({ description: "The version of the file after the write" }),
  note: Schema.String
})

/**
 * Type of `Written`.
 *
 * @category models
 * @since 0.1.0
 */
export type Written = typeof Written.Type

/**
 * How far a call is, in percent: it never goes back.
 *
 * @category models
 * @since 0.1.0
 */
export interface Progress {
  readonly done: number
  readonly total: 100
  readonly step: string
}

/**
 * Hears how far a call is, before it returns. A slow listener makes a call slower.
 *
 * @category models
 * @since 0.1.0
 */
export type OnProgress = (progress: Progress) => Effect.Effect<void>

/**
 * Where workbooks are and how much is read or written at once.
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
  /** Most cells that one call writes. @default 10000 */
  readonly maxWrittenCells?: number | undefined
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
  readonly listSheets: (file: string, onProgress?: OnProgress) => Effect.Effect<SheetList, WorkbookError>
  /** Reads a page of a sheet. */
  readonly readSheet: (options: ReadOptions, onProgress?: OnProgress) => Effect.Effect<Pages.Page, WorkbookError>
  /**
   * Writes cells of a sheet, all or none. Writes run one after the other. One that is interrupted leaves the file as it
   * was.
   */
  readonly writeCells: (options: WriteOptions, onProgress?: OnProgress) => Effect.Effect<Written, WorkbookError>
}>()("effect-stdio/examples/Workbooks") {
  /**
   * Layer that reads and writes workbooks below `options.root`; it fails when that folder does not exist.
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
  const root = yield* Root.make(options?.root ?? ".")
  const maxFileBytes = options?.maxFileBytes ?? DEFAULT_MAX_FILE_BYTES
  const maxUnpackedBytes = options?.maxUnpackedBytes ?? DEFAULT_MAX_UNPACKED_BYTES
  const maxWrittenCells = options?.maxWrittenCells ?? DEFAULT_MAX_WRITTEN_CELLS
  const limits: Pages.Limits = {
    maxCells: options?.maxCells ?? DEFAULT_MAX_CELLS,
    maxResultBytes: options?.maxResultBytes ?? DEFAULT_MAX_RESULT_BYTES,
    maxTextBytes: options?.maxTextBytes ?? DEFAULT_MAX_TEXT_BYTES
  }

  const isWorkbookName = (name: string) => /\.xls[xm]$/i.test(name)

  // Excel puts a file "~$budget.xlsx" beside one that is open.
  const nearby = fs.readDirectory(root.folder).pipe(
    Effect.map((names) => names.filter((name) => isWorkbookName(name) && !/^[.~]/.test(name)).toSorted()),
    Effect.orElseSucceed(() => [])
  )

  const notFound = (file: string): Effect.Effect<never, WorkbookError> =>
    Effect.flatMap(nearby, (workbooks) => fail(new NotFound({ file, workbooks })))

  const notOpened = (file: string) => (error: PlatformError.PlatformError): Effect.Effect<never, WorkbookError> =>
    error.reason._tag === "PermissionDenied"
      ? fail(new NotAWorkbook({ file, problem: "NoPermission" }))
      : notFound(file)

  const notPlaced = ({ reason }: FileError, file: string): Effect.Effect<never, WorkbookError> => {
    switch (reason._tag) {
      case "OutsideRoot":
        return fail(new OutsideRoot({ file }))
      case "NoPermission":
        return fail(new NotAWorkbook({ file, problem: "NoPermission" }))
      default:
        return notFound(file)
    }
  }

  const find = Effect.fnUntraced(function*(file: string): Effect.fn.Return<Found, WorkbookError> {
    const { info, name, path: real } = yield* Effect.catch(root.find(file), (error) => notPlaced(error, file))
    if (info.type === "Directory") return yield* fail(new NotAWorkbook({ file, problem: "Folder" }))
    if (info.type !== "File") return yield* fail(new NotAWorkbook({ file, problem: "NotAFile" }))
    if (!isWorkbookName(path.basename(file))) return yield* fail(new NotAWorkbook({ file, problem: "Extension" }))
    const size = Number(info.size)
    if (size > maxFileBytes) {
      return yield* fail(new TooLarge({ file, part: "file", bytes: size, maxBytes: maxFileBytes }))
    }
    return { file, path: real, name, size, version: versionOf(info) }
  })

  // Fails with a reason that still lacks the file: two callers may have written its path in different ways.
  const load = Effect.fnUntraced(function*(path: string): Effect.fn.Return<Uint8Array, Refusal> {
    const bytes = yield* fs.readFile(path).pipe(
      Effect.catch((error): Effect.Effect<never, Refusal> => Effect.fail((file) => notOpened(file)(error)))
    )
    const refusal = refuse(bytes, maxUnpackedBytes)
    return refusal === undefined ? bytes : yield* Effect.fail(refusal)
  })

  /** How much of a workbook is parsed, as long as one is: all who wait for it listen. The latest is enough. */
  const parsed = yield* PubSub.sliding<{ readonly key: string; readonly share: number }>(1)

  const parse = Effect.fnUntraced(function*(key: string): Effect.fn.Return<ReadonlyArray<Xlsx.Sheet>, Refusal> {
    const bytes = yield* load(key.slice(key.indexOf(KEY_SEPARATOR) + 1))
    const total = worksheetBytes(bytes)
    let length = 0
    const sheets = yield* Effect.mapError(
      Xlsx.read(bytes, (more) => {
        length += more
        PubSub.publishUnsafe(parsed, { key, share: Math.min(1, length / total) })
      }),
      (cause): Refusal => (file) => fail(new NotAWorkbook({ file, problem: "Damaged", cause }))
    )
    if (sheets.length === 0) {
      return yield* Effect.fail<Refusal>((file) => fail(new NotAWorkbook({ file, problem: "NoSheets" })))
    }
    return sheets
  })

  // One workbook at a time: parsing is bound by the processor, and each one may need a gigabyte.
  const parsing = yield* Semaphore.make(1)
  const opened = yield* RcMap.make({
    lookup: (key: string) => parsing.withPermit(parse(key)),
    idleTimeToLive: options?.keepFor ?? "30 seconds"
  })
  let kept = ""

  /** Opens a file that was found; the sheets stay in memory at least until the scope closes. */
  const open = Effect.fnUntraced(function*(
    { file, path, version }: Found,
    report: Report
  ): Effect.fn.Return<ReadonlyArray<Xlsx.Sheet>, WorkbookError, Scope.Scope> {
    const key = version + KEY_SEPARATOR + path
    const last = kept
    kept = key
    if (last !== key) yield* RcMap.invalidate(opened, last)
    const subscription = yield* PubSub.subscribe(parsed)
    const reporting = yield* PubSub.take(subscription).pipe(
      Effect.flatMap((parsed) => parsed.key === key ? report(parsed.share * 0.9, PARSING) : Effect.void),
      Effect.forever,
      Effect.forkScoped
    )
    const sheets = yield* RcMap.get(opened, key).pipe(
      Effect.onError(() => RcMap.invalidate(opened, key)),
      Effect.catch((refusal) => refusal(file))
    )
    yield* Fiber.interrupt(reporting)
    return sheets
  })

  const listSheets = Effect.fn("Workbooks.listSheets")(function*(
    file: string,
    onProgress?: OnProgress
  ): Effect.fn.Return<SheetList, WorkbookError, Scope.Scope> {
    const report = reporter(onProgress)
    const found = yield* find(file)
    const sheets = yield* open(found, report)
    yield* report(1, "Listed the sheets")
    return { file, sheets: sheets.map(toInfo) }
  }, Effect.scoped)

  const readSheet = Effect.fn("Workbooks.readSheet")(function*(
    request: ReadOptions,
    onProgress?: OnProgress
  ): Effect.fn.Return<Pages.Page, WorkbookError, Scope.Scope> {
    const { file } = request
    const report = reporter(onProgress)
    const found = yield* find(file)
    const cursor = request.cursor ? yield* readCursor(request.cursor, found) : undefined
    const sheets = yield* open(found, report)
    yield* report(0.95, "Cutting the page")
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
    const head = {
      file,
      version: found.version,
      sheet: sheet.name,
      usedRange: sheet.used ? Ranges.format(sheet.used) : null
    }
    if (box === undefined) return { ...head, range: null, columns: [], rows: [], merges: [], truncated: false }
    const start = cursor?.row ?? box.top
    if (start < box.top || start > box.bottom) return yield* fail(new BadCursor({ problem: "Unreadable" }))
    const { next, cut, ...page } = Pages.read(sheet, { ...box, top: start }, limits)
    yield* report(1, "Cut the page")
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

  const refuseReadOnly = Effect.fnUntraced(function*({ file, path: real }: Found) {
    const readOnly = new NotWritable({ file, problem: "ReadOnly" })
    const info = yield* Effect.catch(fs.stat(real), notOpened(file))
    // The superuser may write to anything; what its owner does not want written stays as it is all the same.
    if ((info.mode & 0o222) === 0) return yield* fail(readOnly)
    yield* Effect.catch(fs.access(real, { writable: true }), () => fail(readOnly))
    // Excel and LibreOffice say with such files that they have a workbook open.
    for (const name of [`~$${path.basename(real)}`, `.~lock.${path.basename(real)}#`]) {
      const open = yield* Effect.orElseSucceed(fs.exists(path.join(path.dirname(real), name)), () => false)
      if (open) return yield* fail(new NotWritable({ file, problem: "Open" }))
    }
  })

  // One write at a time: the next one starts from what the one before has made.
  const writing = yield* Semaphore.make(1)

  const writeCells = Effect.fn("Workbooks.writeCells")(function*(
    request: WriteOptions,
    onProgress?: OnProgress
  ): Effect.fn.Return<Written, WorkbookError> {
    const { cells, file } = request
    const report = reporter(onProgress)
    if (cells.length > maxWrittenCells) {
      return yield* fail(new TooManyCells({ cells: cells.length, maxCells: maxWrittenCells }))
    }
    const found = yield* find(file)
    if (request.version && request.version !== found.version) return yield* fail(new FileChanged({ file }))
    yield* refuseReadOnly(found)
    const bytes = yield* Effect.catch(load(found.path), (refusal) => refusal(file))
    yield* report(0.1, CHANGING)
    const { created, pieces, sheet, unpackedBytes } = yield* Edit.edit(
      bytes,
      { ...request, createSheet: request.createSheet ?? false },
      (share) => Effect.andThen(report(0.1 + 0.7 * share, CHANGING), Effect.yieldNow)
    )
    const size = pieces.reduce((sum, piece) => sum + piece.byteLength, 0)
    if (size > maxFileBytes) {
      return yield* fail(new TooLarge({ file, part: "file", bytes: size, maxBytes: maxFileBytes }))
    }
    if (unpackedBytes > maxUnpackedBytes) {
      return yield* fail(new TooLarge({ file, part: "contents", bytes: unpackedBytes, maxBytes: maxUnpackedBytes }))
    }
    yield* report(0.9, "Saving the workbook")
    const unchanged = Effect.flatMap(
      find(file),
      ({ path, version }) =>
        path === found.path && version === found.version ? Effect.void : fail(new FileChanged({ file }))
    )
    const info = yield* replaceFile(found.path, pieces, unchanged).pipe(
      Effect.catchTag("PlatformError", (cause) => fail(new NotWritable({ file, problem: notWritten(cause), cause }))),
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.provideService(Path.Path, path)
    )
    yield* report(1, "Saved the workbook")
    return { file, sheet, created, cells: cells.length, version: versionOf(info), note: WRITTEN }
  }, (effect) => writing.withPermit(effect))

  return Workbooks.of({ listSheets, readSheet, writeCells })
})

// =============================================================================
// Private helpers
// =============================================================================

/** Explains why a file's contents cannot be read, once it is known how the user calls the file. */
type Refusal = (file: string) => Effect.Effect<never, WorkbookError>

const PARSING = "Reading the workbook"
const CHANGING = "Changing the workbook"
const WRITTEN =
  "Excel calculates all formulas when it opens the file. Until it has saved it, formulas that read these " +
  "cells have no result."

/** Tells how much of a call is done, from 0 to 1. */
type Report = (share: number, step: string) => Effect.Effect<void>

/** Makes progress out of shares: whole percents that only grow. */
const reporter = (onProgress: OnProgress | undefined): Report => {
  let last = 0
  return (share, step) =>
    Effect.suspend(() => {
      const done = Math.floor(share * 100)
      if (onProgress === undefined || done <= last) return Effect.void
      last = done
      return onProgress({ done, total: 100, step })
    })
}

const versionOf = ({ ino, mtime, size }: FileSystem.File.Info): string => {
  const modified = Option.match(mtime, { onNone: () => 0, onSome: (time) => time.getTime() })
  // A file that replaced another one within a millisecond has a number of its own.
  const number = Option.getOrElse(ino, () => 0n)
  return [modified.toString(36), Number(size).toString(36), number.toString(36)].join(".")
}

const worksheetBytes = (bytes: Uint8Array): number =>
  (Archive.entries(bytes) ?? []).reduce((sum, { name, size }) => sum + (/worksheets\/sheet/.test(name) ? size : 0), 1)

const notWritten = ({ reason }: PlatformError.PlatformError): NotWritable["problem"] => {
  switch (reason._tag) {
    case "PermissionDenied":
      return "Folder"
    case "Busy":
      return "Open"
    default:
      return "Failed"
  }
}

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

const findSheet = (
  file: string,
  sheets: ReadonlyArray<Xlsx.Sheet>,
  name: string | undefined
): Effect.Effect<Xlsx.Sheet, WorkbookError> => {
  const sheet = name
    ? sheets.find((sheet) => sheet.name === name) ?? sheets.find((sheet) => Edit.sameName(sheet.name, name))
    : sheets.find((sheet) => !sheet.hidden) ?? sheets[0]
  return sheet === undefined
    ? fail(new UnknownSheet({ file, sheet: name ?? "", sheets: sheets.map(({ name }) => name) }))
    : Effect.succeed(sheet)
}

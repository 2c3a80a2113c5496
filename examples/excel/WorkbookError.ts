/**
 * Why a workbook, a sheet or a page cannot be read, in words that tell the reader what to do next.
 *
 * Messages show paths as the user wrote them, never where the server keeps its files.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const MAX_LISTED = 20
const MAX_QUOTED = 200

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

/**
 * Fails with a `WorkbookError`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: WorkbookError["reason"]): Effect.Effect<never, WorkbookError> =>
  Effect.fail(new WorkbookError({ reason }))

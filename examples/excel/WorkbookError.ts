/**
 * Why a workbook, a sheet or a page cannot be read or changed, in words that tell the reader what to do next.
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
 * A cell that cannot be written, for what it is called or for what it belongs to; `range` is what it belongs to.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadCell extends Schema.TaggedError<BadCell>()("BadCell", {
  cell: Schema.String,
  problem: Schema.Literals([
    "Address",
    "Twice",
    "Merged",
    "Array",
    "DataTable",
    "TableHeader",
    "TableTotal",
    "PivotTable",
    "Locked"
  ]),
  range: Schema.optionalKey(Schema.String)
}) {}

/**
 * A value that cannot be written.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadValue extends Schema.TaggedError<BadValue>()("BadValue", {
  cell: Schema.String,
  problem: Schema.Literals([
    "TextTooLong",
    "BadDate",
    "TimeZone",
    "DateOutOfRange",
    "FormulaEmpty",
    "FormulaTooLong",
    "FormulaUnbalanced",
    "FormulaIncomplete",
    "FormulaSemicolon",
    "FormulaProgram",
    "FormulaArray",
    "FormulaLambda"
  ])
}) {}

/**
 * More cells than one call may change.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooManyCells extends Schema.TaggedError<TooManyCells>()("TooManyCells", {
  cells: Schema.Int,
  maxCells: Schema.Int
}) {}

/**
 * Excel does not allow a new sheet to have this name.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadSheetName extends Schema.TaggedError<BadSheetName>()("BadSheetName", { sheet: Schema.String }) {}

/**
 * The workbook can be read, but it must not or cannot be changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotWritable extends Schema.TaggedError<NotWritable>()("NotWritable", {
  file: Schema.String,
  problem: Schema.Literals(["ReadOnly", "Folder", "Open", "Signed", "ProtectedStructure", "Unsupported", "Failed"]),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/**
 * The file is not the one that was read: somebody changed it in between.
 *
 * @category errors
 * @since 0.1.0
 */
export class FileChanged extends Schema.TaggedError<FileChanged>()("FileChanged", { file: Schema.String }) {}

/**
 * The one error of this module.
 *
 * @category errors
 * @since 0.1.0
 */
export class WorkbookError extends Schema.TaggedError<WorkbookError>()("WorkbookError", {
  reason: Schema.Union([
    OutsideRoot,
    NotFound,
    NotAWorkbook,
    TooLarge,
    UnknownSheet,
    BadRange,
    BadCursor,
    BadCell,
    BadValue,
    TooManyCells,
    BadSheetName,
    NotWritable,
    FileChanged
  ])
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

const describeCell = ({ problem, range }: BadCell): string => {
  const of = range === undefined ? "" : ` ${range}`
  switch (problem) {
    case "Address":
      return "is not a cell. Write a column and a row, such as B2, and name the sheet in its own parameter."
    case "Twice":
      return "is named twice. Give each cell one value."
    case "Merged":
      return `is covered by the merged cells${of}. Write to ${of.replace(/:.*/, "").trim()}, their first cell.`
    case "Array":
      return `belongs to the array formula in${of}. Excel changes such a formula only as a whole; change it there.`
    case "DataTable":
      return `belongs to the data table in${of}. Excel changes such a table only as a whole; change it there.`
    case "TableHeader":
      return `is a heading of the table in${of}. Formulas use the headings of a table; rename them in Excel.`
    case "TableTotal":
      return `is in the total row of the table in${of}. Change that row in Excel.`
    case "PivotTable":
      return `belongs to the pivot table in${of}, which would overwrite it. Change the data that it is made from.`
    case "Locked":
      return "is locked, because its sheet is protected. Unprotect the sheet in Excel first."
  }
}

const valueProblems: Record<BadValue["problem"], string> = {
  TextTooLong: "The text is too long. A cell holds at most 32,767 characters.",
  BadDate: "The date is not valid. Write 2026-03-31 or 2026-03-31T09:30:00.",
  TimeZone: "Excel knows no time zones. Write the date as the cell shall show it, such as 2026-03-31T09:30:00.",
  DateOutOfRange:
    "Excel has no such date. Its dates go from 1900-03-01, in some workbooks from 1904-01-01, to 9999-12-31.",
  FormulaEmpty: "The formula is empty. Write null to empty a cell.",
  FormulaTooLong: "The formula is too long. A formula has at most 8,192 characters.",
  FormulaUnbalanced: "A bracket or a quotation mark in the formula has no counterpart.",
  FormulaIncomplete: "The formula starts or ends with an operator that has nothing to work on.",
  FormulaSemicolon: "Separate the arguments of a function with commas, and write function names in English.",
  FormulaProgram: "A formula must not call other programs. Write it without the character |.",
  FormulaArray: "Array formulas in braces cannot be written. Write a formula for each cell.",
  FormulaLambda: "LET and LAMBDA cannot be written. Write the formula without them, or use cells for steps in between."
}

const notWritable: Record<NotWritable["problem"], string> = {
  ReadOnly: "is read-only. Allow writing to it, or write to a copy.",
  Folder: "is in a folder that the server may not write to. Allow that, or copy the file elsewhere.",
  Open: "is open in another program, which would overwrite changes or lose its own. Close it there first. " +
    "If it is open nowhere, a program crashed: open the file and close it again.",
  Signed: "has a digital signature, which any change would make invalid. Write to a copy without the signature.",
  ProtectedStructure: "does not allow new sheets, because its structure is protected. Unprotect it in Excel first.",
  Unsupported: "is stored in an unusual way, which the server cannot change. Open it in Excel and save it.",
  Failed:
    "could not be written and is unchanged. Check that the disk has space and that no other program uses the file."
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
    case "BadCell":
      return `${quote(reason.cell)} ${describeCell(reason)} Nothing was written.`
    case "BadValue":
      return `${valueProblems[reason.problem]} The value is that of cell ${quote(reason.cell)}. Nothing was written.`
    case "TooManyCells":
      return `${reason.cells} cells are too many: one call writes at most ${reason.maxCells}. Nothing was written. ` +
        `Write them in several calls.`
    case "BadSheetName":
      return `${quote(reason.sheet)} cannot be the name of a new sheet. A name has 1 to 31 characters, none of ` +
        `\\ / ? * [ ] :, no ' at its start or end, and is not "History". Nothing was written.`
    case "NotWritable":
      return `${quote(reason.file)} ${notWritable[reason.problem]}`
    case "FileChanged":
      return `${quote(reason.file)} changed since it was read. Nothing was written. ` +
        `Read the cells again before you write to them.`
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

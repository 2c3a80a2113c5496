/**
 * The workbooks below a folder as MCP tools: `list_sheets`, `read_sheet` and `write_cells`.
 *
 * A `WorkbookError` reaches the client as a tool error with its message, because the tools declare it as their
 * failure. Anything else that goes wrong in a handler would be logged and hidden behind a neutral message.
 *
 * @since 0.1.0
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"
import { hints } from "../shared/hints.ts"
import { Page } from "./pages.ts"
import { Value } from "./values.ts"
import { WorkbookError } from "./WorkbookError.ts"
import { type OnProgress, SheetList, Workbooks, Written } from "./Workbooks.ts"

const File = Schema.String.annotate({
  description: "Path of an .xlsx or .xlsm file, relative to the server's folder, such as reports/budget.xlsx"
})

/**
 * Tool that lists the sheets of a workbook.
 *
 * @category tools
 * @since 0.1.0
 */
export const ListSheets = Tool.make("list_sheets", {
  description: "List the sheets of an Excel workbook with their names, sizes and used ranges. " +
    "Call it first, to know what read_sheet can read.",
  parameters: Schema.Struct({ file: File }),
  success: SheetList,
  failure: WorkbookError
}).annotateMerge(hints("List the sheets of a workbook", false))

/**
 * Tool that reads a page of a sheet.
 *
 * @category tools
 * @since 0.1.0
 */
export const ReadSheet = Tool.make("read_sheet", {
  description: "Read cells of an Excel sheet: values, formulas with their saved results, dates as ISO text. " +
    "Each row has its number and one cell for each entry of columns; rows without values are left out. " +
    "A large range comes in pages: while truncated is true, call again with the same file and cursor = nextCursor. " +
    "Prefer a small range to reading everything.",
  parameters: Schema.Struct({
    file: File,
    sheet: Schema.optionalKey(Schema.String.annotate({
      description: "Name of the sheet; the first visible sheet when left out"
    })),
    range: Schema.optionalKey(Schema.String.annotate({
      description: "A1:C20 (cells), B:D (columns), 2:10 (rows) or B2 (one cell); the used range when left out"
    })),
    cursor: Schema.optionalKey(Schema.String.annotate({
      description: "nextCursor of the page before; sheet and range can be left out with it"
    }))
  }),
  success: Page,
  failure: WorkbookError
}).annotateMerge(hints("Read cells of a sheet", false))

/**
 * Tool that writes cells of a sheet.
 *
 * @category tools
 * @since 0.1.0
 */
export const WriteCells = Tool.make("write_cells", {
  description: "Write values and formulas into cells of an Excel sheet, all or none. Everything else in the workbook " +
    "stays as it is: formats, other cells, charts, comments. A cell keeps its format. " +
    "Formulas have no results until Excel opens the file. Read the cells first, to know what is overwritten.",
  parameters: Schema.Struct({
    file: File,
    sheet: Schema.String.annotate({ description: "Name of the sheet" }),
    cells: Schema.Array(Schema.Struct({
      cell: Schema.String.annotate({ description: "Address of one cell, such as B2" }),
      value: Value
    })).check(Schema.isMinLength(1)).annotate({ description: "Each cell once, at most 10,000" }),
    createSheet: Schema.optionalKey(Schema.Boolean.annotate({
      description: "True to add the sheet at the end when the workbook has none of this name"
    })),
    version: Schema.optionalKey(Schema.String.annotate({
      description: "version from read_sheet or the write before: nothing is written when the file changed since"
    }))
  }),
  success: Written,
  failure: WorkbookError
}).annotateMerge(hints("Write cells of a sheet", true, { idempotent: true }))

/**
 * Toolkit with all tools.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const ExcelToolkit = Toolkit.make(ListSheets, ReadSheet, WriteCells)

/**
 * Layer that handles the tools with the `Workbooks` service, and tells clients that want to know how far a call is.
 *
 * @category layers
 * @since 0.1.0
 */
export const ExcelHandlers = ExcelToolkit.toLayer(Effect.gen(function*() {
  const workbooks = yield* Workbooks
  const server = yield* McpServer.McpServer
  const onProgress: Effect.Effect<OnProgress> = Mcp.progress.pipe(
    Effect.map(({ report }): OnProgress => ({ done, step, total }) => report(done, { total, message: step })),
    Effect.provideService(McpServer.McpServer, server)
  )
  return ExcelToolkit.of({
    list_sheets: ({ file }) => Effect.flatMap(onProgress, (report) => workbooks.listSheets(file, report)),
    read_sheet: (options) => Effect.flatMap(onProgress, (report) => workbooks.readSheet(options, report)),
    write_cells: (options) => Effect.flatMap(onProgress, (report) => workbooks.writeCells(options, report))
  })
}))

/**
 * Layer that registers the tools with an MCP server: pass it to `McpServer.layer` as `registrations`.
 *
 * @category layers
 * @since 0.1.0
 */
export const ExcelTools: Layer.Layer<never, never, McpServer.McpServer | Workbooks> = McpServer.toolkit(ExcelToolkit)
  .pipe(Layer.provide(ExcelHandlers))

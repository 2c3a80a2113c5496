/**
 * The workbooks below a folder as MCP tools: `list_sheets` and `read_sheet`.
 *
 * A `WorkbookError` reaches the client as a tool error with its message, because the tools declare it as their
 * failure. Anything else that goes wrong in a handler would be logged and hidden behind a neutral message.
 *
 * @since 0.1.0
 */
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Page } from "./pages.ts"
import { WorkbookError } from "./WorkbookError.ts"
import { SheetList, Workbooks } from "./Workbooks.ts"

const File = Schema.String.annotate({
  description: "Path of an .xlsx or .xlsm file, relative to the server's folder, such as reports/budget.xlsx"
})

/** Both tools only look; strict, so that a misspelled parameter is refused and not silently ignored. */
const readOnly = (title: string) =>
  Context.empty().pipe(
    Context.add(Tool.Title, title),
    Context.add(Tool.Readonly, true),
    Context.add(Tool.Destructive, false),
    Context.add(Tool.Idempotent, true),
    Context.add(Tool.OpenWorld, false),
    Context.add(Tool.Strict, true)
  )

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
}).annotateMerge(readOnly("List the sheets of a workbook"))

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
}).annotateMerge(readOnly("Read cells of a sheet"))

/**
 * Toolkit with both tools.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const ExcelToolkit = Toolkit.make(ListSheets, ReadSheet)

/**
 * Layer that handles the tools with the `Workbooks` service.
 *
 * @category layers
 * @since 0.1.0
 */
export const ExcelHandlers = ExcelToolkit.toLayer(Effect.map(Workbooks, (workbooks) =>
  ExcelToolkit.of({
    list_sheets: ({ file }) => workbooks.listSheets(file),
    read_sheet: (options) => workbooks.readSheet(options)
  })))

/**
 * Layer that registers the tools with an MCP server: pass it to `McpServer.layer` as `registrations`.
 *
 * @category layers
 * @since 0.1.0
 */
export const ExcelTools: Layer.Layer<never, never, McpServer.McpServer | Workbooks> = McpServer.toolkit(ExcelToolkit)
  .pipe(Layer.provide(ExcelHandlers))

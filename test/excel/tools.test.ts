import { assert, describe, it, layer } from "@effect/vitest"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpTest from "effect/ai/McpTest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Page } from "../../examples/excel/pages.ts"
import { ExcelTools } from "../../examples/excel/tools.ts"
import { Workbooks, Written } from "../../examples/excel/Workbooks.ts"
import * as Mcp from "../utils/mcp.ts"
import { Folder } from "./support.ts"

const protocols = [McpProtocol.v2025_11_25, McpProtocol.v2025_06_18, McpProtocol.v2026_07_28] as const

const connect = (protocolVersion: McpProtocol.ProtocolVersion = "2025-11-25") =>
  Effect.gen(function*() {
    const { root } = yield* Folder
    return yield* McpTest.makeClient(ExcelTools.pipe(Layer.provide(Workbooks.layer({ root, maxCells: 6 }))), {
      protocols,
      protocolVersion: protocolVersion as (typeof protocols)[number]["protocolVersion"]
    })
  })

const three = (folder: Folder["Service"], name: string) =>
  folder.workbook(name, (book) => {
    const sheet = book.addWorksheet("支出")
    sheet.addRows([["Köln", 1, 2], ["€", 3, { formula: "B2*2", result: 6 }], ["🚆", 5, null]])
  })

layer(Folder.layer)("the tools", (it) => {
  it.effect("say whether they only read, what they take and that they give objects", () =>
    Effect.gen(function*() {
      const client = yield* connect()
      const { tools } = yield* client.listTools()
      const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      assert.deepStrictEqual(
        Mcp.described(tools),
        [
          {
            name: "list_sheets",
            annotations: { title: "List the sheets of a workbook", ...annotations },
            parameters: ["file"],
            required: ["file"],
            excess: false,
            output: "object"
          },
          {
            name: "read_sheet",
            annotations: { title: "Read cells of a sheet", ...annotations },
            parameters: ["file", "sheet", "range", "cursor"],
            required: ["file"],
            excess: false,
            output: "object"
          },
          {
            name: "write_cells",
            annotations: {
              title: "Write cells of a sheet",
              ...annotations,
              readOnlyHint: false,
              destructiveHint: true
            },
            parameters: ["file", "sheet", "cells", "createSheet", "version"],
            required: ["file", "sheet", "cells"],
            excess: false,
            output: "object"
          }
        ]
      )
      assert.deepStrictEqual(tools.filter((tool) => !tool.description), [])
    }))

  for (const protocolVersion of ["2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`answer with the same value as text and as structured content under ${protocolVersion}`, () =>
      Effect.gen(function*() {
        const folder = yield* Folder
        yield* three(folder, "three.xlsx")
        const client = yield* connect(protocolVersion)
        const result = yield* client.callTool({ name: "list_sheets", arguments: { file: "three.xlsx" } })
        const expected = {
          file: "three.xlsx",
          sheets: [{ name: "支出", state: "visible", rows: 3, columns: 3, usedRange: "A1:C3" }]
        }
        assert.notStrictEqual(result.isError, true)
        assert.deepStrictEqual(result.structuredContent, expected)
        assert.deepStrictEqual(texts(result).map((text) => JSON.parse(text) as unknown), [expected])
      }))
  }

  it.effect("give a sheet page by page", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* three(folder, "paged.xlsx")
      const client = yield* connect()
      const read = (params: Record<string, unknown>) =>
        client.callTool({ name: "read_sheet", arguments: { file: "paged.xlsx", ...params } }).pipe(
          Effect.flatMap((result) => Schema.decodeUnknownEffect(Page)(result.structuredContent))
        )
      const first = yield* read({ sheet: "支出", range: "A:C" })
      const second = yield* read({ cursor: first.nextCursor })
      const { version } = first
      assert.deepStrictEqual([first, second], [
        {
          file: "paged.xlsx",
          version,
          sheet: "支出",
          usedRange: "A1:C3",
          range: "A1:C2",
          columns: ["A", "B", "C"],
          rows: [{ row: 1, cells: ["Köln", 1, 2] }, { row: 2, cells: ["€", 3, { formula: "B2*2", result: 6 }] }],
          merges: [],
          truncated: true,
          nextCursor: first.nextCursor ?? ""
        },
        {
          file: "paged.xlsx",
          version,
          sheet: "支出",
          usedRange: "A1:C3",
          range: "A3:C3",
          columns: ["A", "B", "C"],
          rows: [{ row: 3, cells: ["🚆", 5, null] }],
          merges: [],
          truncated: false
        }
      ])
    }))

  it.effect("write what read_sheet then reads", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* three(folder, "written.xlsx")
      const client = yield* connect()
      const cells = [
        { cell: "A1", value: "=Köln" },
        { cell: "B1", value: 1.5 },
        { cell: "C1", value: true },
        { cell: "A2", value: null },
        { cell: "B2", value: { formula: "=SUM(B1,2)" } },
        { cell: "C2", value: { date: "2026-03-31" } }
      ]
      const written = yield* client.callTool({
        name: "write_cells",
        arguments: { file: "written.xlsx", sheet: "支出", cells }
      }).pipe(Effect.flatMap((result) => Schema.decodeUnknownEffect(Written)(result.structuredContent)))
      const page = yield* client.callTool({ name: "read_sheet", arguments: { file: "written.xlsx", range: "1:2" } })
        .pipe(
          Effect.flatMap((result) => Schema.decodeUnknownEffect(Page)(result.structuredContent))
        )
      assert.deepStrictEqual(written, {
        file: "written.xlsx",
        sheet: "支出",
        created: false,
        cells: 6,
        version: page.version,
        note: "Excel calculates all formulas when it opens the file. Until it has saved it, formulas that read these " +
          "cells have no result."
      })
      assert.deepStrictEqual(page.rows.map((row) => row.cells), [
        ["=Köln", 1.5, true],
        [null, { formula: "SUM(B1,2)", result: null }, "2026-03-31"]
      ])
    }))

  it.effect("answer what cannot be done with an error that says what to do, and go on", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* Folder
      yield* three(folder, "good.xlsx")
      yield* folder.write("notes.xlsx", "no workbook")
      yield* fs.makeDirectory(join(folder.root, "reports"))
      const client = yield* connect()
      const write = { file: "good.xlsx", sheet: "支出", cells: [{ cell: "A1", value: 1 }] }
      const refusals: ReadonlyArray<readonly [tool: string, params: Record<string, unknown>, start: string]> = [
        ["list_sheets", { file: "missing.xlsx" }, "There is no file \"missing.xlsx\". "],
        ["list_sheets", { file: "../good.xlsx" }, "\"../good.xlsx\" is outside the folder"],
        ["list_sheets", { file: "/etc/passwd" }, "\"/etc/passwd\" is outside the folder"],
        ["list_sheets", { file: "reports" }, "\"reports\" is a folder. "],
        ["list_sheets", { file: "notes.xlsx" }, "\"notes.xlsx\" has the name of an Excel workbook, but not"],
        ["list_sheets", {}, "Invalid parameters for tool 'list_sheets'"],
        ["read_sheet", { file: "good.xlsx", sheet: "Budget" }, "\"good.xlsx\" has no sheet \"Budget\". "],
        ["read_sheet", { file: "good.xlsx", range: "first row" }, "\"first row\" is not a range. "],
        ["read_sheet", { file: "good.xlsx", cursor: "next" }, "The cursor is not valid. "],
        ["read_sheet", { file: "good.xlsx", page: 2 }, "Invalid parameters for tool 'read_sheet'"],
        ["read_sheet", { file: 5 }, "Invalid parameters for tool 'read_sheet'"],
        ["write_cells", { ...write, sheet: "Budget" }, "\"good.xlsx\" has no sheet \"Budget\". "],
        ["write_cells", { ...write, cells: [{ cell: "B", value: 1 }] }, "\"B\" is not a cell. "],
        ["write_cells", { ...write, cells: [{ cell: "B1", value: { formula: "" } }] }, "The formula is empty. "],
        ["write_cells", { ...write, version: "1" }, "\"good.xlsx\" changed since it was read. "],
        ["write_cells", { ...write, file: "../good.xlsx" }, "\"../good.xlsx\" is outside the folder"],
        ["write_cells", { ...write, cells: [] }, "Invalid parameters for tool 'write_cells'"],
        ["write_cells", { ...write, cells: [{ cell: "B1" }] }, "Invalid parameters for tool 'write_cells'"],
        ["write_cells", { ...write, cells: [{ cell: "B1", value: [1] }] }, "Invalid parameters for tool 'write_cells'"],
        [
          "write_cells",
          { ...write, cells: [{ cell: "B1", value: { formula: "1", date: "2026-03-31" } }] },
          "Invalid parameters for tool 'write_cells'"
        ],
        ["write_cells", { ...write, cells: [{ cell: "B1", value: 1, style: "bold" }] }, "Invalid parameters for tool"]
      ]
      for (const [name, params, start] of refusals) {
        const result = yield* client.callTool({ name, arguments: params })
        const message = texts(result).join()
        assert.deepStrictEqual(
          { isError: result.isError, structured: result.structuredContent, start: message.slice(0, start.length) },
          { isError: true, structured: undefined, start }
        )
        assert.notInclude(message, folder.root)
      }
      const result = yield* client.callTool({ name: "list_sheets", arguments: { file: "good.xlsx" } })
      assert.notStrictEqual(result.isError, true)
    }))
})

const texts = (result: { readonly content: ReadonlyArray<object> }): ReadonlyArray<string> =>
  result.content.flatMap((part) => "text" in part && typeof part.text === "string" ? [part.text] : [])

describe("loading the tools", () => {
  it.effect("leaves exceljs alone until a workbook is read", () =>
    Effect.gen(function*() {
      const tools = new URL("../../examples/excel/tools.ts", import.meta.url).href
      // CommonJS modules are listed in one cache for the whole process.
      const program = `import { createRequire } from "node:module"
        await import(${JSON.stringify(tools)})
        const loaded = Object.keys(createRequire(import.meta.url).cache)
        process.stdout.write(JSON.stringify(loaded.filter((path) => path.includes("exceljs"))))`
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program])
      )
      assert.strictEqual(stdout, "[]")
    }), 20_000)
})

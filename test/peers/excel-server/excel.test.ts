/**
 * An MCP server in Go, on mcp-go, which its npm package starts through a launcher in JavaScript.
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import * as Child from "../../utils/child.ts"
import { connect, text } from "../../utils/mcpServer.ts"

const LAUNCHER = Child.path("test/peers/excel-server/node_modules/@negokaz/excel-mcp-server/dist/launcher.js")

it.live("is spoken to in the revision that it knows, and ends with its input behind its launcher", () =>
  Effect.gen(function*() {
    const { child, client, end, tools } = yield* connect([LAUNCHER])
    assert.strictEqual(client.serverInfo?.name, "excel-mcp-server")
    assert.isBelow(Number(client.protocolVersion.slice(0, 4)), 2026)
    assert.includeMembers(tools.map(({ name }) => name), ["excel_describe_sheets", "excel_read_sheet"])
    assert.deepStrictEqual(yield* end, { ended: { exitCode: 0 }, badInput: 0 })
    assert.strictEqual(yield* child.stderrTail, "")
  }))

it.live("reads and writes the workbook of the Excel example", () =>
  Effect.gen(function*() {
    const { call } = yield* connect([LAUNCHER])
    const file = join(yield* Child.temporaryFolder, "budget.xlsx")
    copyFileSync(Child.path("examples/excel/budget.xlsx"), file)
    assert.include(text(yield* call("excel_describe_sheets", { fileAbsolutePath: file })), "Ausgaben 支出")
    const read = yield* call("excel_read_sheet", { fileAbsolutePath: file, sheetName: "Ausgaben 支出", range: "B5:D5" })
    assert.include(text(read), "Zugfahrt Köln–Zürich 🚆")
  }))

it.live("says what is wrong with a call", () =>
  Effect.gen(function*() {
    const { call } = yield* connect([LAUNCHER])
    const missing = yield* Effect.exit(call("excel_describe_sheets", { fileAbsolutePath: "/nothing/here.xlsx" }))
    const said = missing._tag === "Success"
      ? [missing.value.isError, text(missing.value)]
      : [true, String(missing.cause)]
    assert.strictEqual(said[0], true)
    assert.match(String(said[1]), /no such file|not exist/i)
  }))

Child.leavesNothingBehind()

import { assert, layer } from "@effect/vitest"
import type { VersionNegotiationMode } from "@modelcontextprotocol/client"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Child from "../utils/child.ts"
import * as Official from "../utils/officialClient.ts"

/** The client of the protocol's authors, connected to the Excel example. */
class Connection extends Context.Service<Connection, Official.OfficialClient>()("effect-stdio/test/peers/Connection") {
  static readonly layer = (mode: VersionNegotiationMode | undefined) =>
    Layer.effect(
      Connection,
      Official.connect(
        [process.execPath, Child.path("examples/excel/server.ts"), Child.path("examples/excel")],
        mode === undefined ? {} : { versionNegotiation: { mode } }
      )
    )
}

const modes: ReadonlyArray<readonly [name: string, mode: VersionNegotiationMode | undefined, version: string]> = [
  ["legacy mode, its default,", undefined, "2025-11-25"],
  ["auto mode", "auto", "2026-07-28"],
  ["a mode pinned to 2026-07-28", { pin: "2026-07-28" }, "2026-07-28"]
]

for (const [name, mode, version] of modes) {
  layer(Connection.layer(mode), { excludeTestServices: true })(`the official client in ${name}`, (it) => {
    it.effect(`speaks ${version}`, () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        assert.strictEqual(client.getNegotiatedProtocolVersion(), version)
        assert.deepInclude(client.getServerVersion(), { name: "excel", version: "0.1.0" })
      }))

    it.effect("lists the tools", () =>
      Effect.gen(function*() {
        const { client } = yield* Connection
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.deepStrictEqual(tools.map((tool) => tool.name), ["list_sheets", "read_sheet", "write_cells"])
      }))

    it.effect("lists the sheets of a workbook", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const { isError, structuredContent } = yield* call("list_sheets", { file: "budget.xlsx" })
        assert.isNotTrue(isError)
        assert.deepStrictEqual(structuredContent, {
          file: "budget.xlsx",
          sheets: [
            { name: "Übersicht", state: "visible", rows: 9, columns: 5, usedRange: "A1:E9" },
            { name: "Budget", state: "visible", rows: 15, columns: 6, usedRange: "A1:F15" },
            { name: "Ausgaben 支出", state: "visible", rows: 9, columns: 5, usedRange: "A1:E9" },
            { name: "Parameter", state: "hidden", rows: 2, columns: 2, usedRange: "A1:B2" }
          ]
        })
      }))

    it.effect("reads text that is not ASCII", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const request = { file: "budget.xlsx", sheet: "Ausgaben 支出", range: "B5:D7" }
        const { content, structuredContent } = yield* call("read_sheet", request)
        const { version } = structuredContent as { readonly version: unknown }
        assert.isString(version)
        const expected = {
          file: "budget.xlsx",
          version,
          sheet: "Ausgaben 支出",
          usedRange: "A1:E9",
          range: "B5:D7",
          columns: ["B", "C", "D"],
          rows: [
            { row: 5, cells: ["Zugfahrt Köln–Zürich 🚆", "Reisen 旅費", 148.5] },
            { row: 6, cells: ["Miete Februar", "Büro & Miete", 1850] },
            { row: 7, cells: ["東京出張(ホテル3泊)", "Reisen 旅費", 412.25] }
          ],
          merges: [],
          truncated: false
        }
        assert.deepStrictEqual(structuredContent, expected)
        assert.deepStrictEqual(
          content.map((block) => block.type === "text" ? JSON.parse(block.text) as unknown : block),
          [structuredContent]
        )
      }))

    it.effect("reads formulas with their results", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const { structuredContent } = yield* call("read_sheet", { file: "budget.xlsx", range: "A5:C5" })
        assert.deepNestedPropertyVal(structuredContent, "rows[0].cells", [
          "Personal",
          { formula: "Budget!B15", result: 63_600 },
          { formula: "SUMIF('Ausgaben 支出'!C4:C9,A5,'Ausgaben 支出'!D4:D9)", result: 5_200 }
        ])
      }))

    it.effect("gets a tool error for a file that is not there", () =>
      Effect.gen(function*() {
        const { call } = yield* Connection
        const { content, isError } = yield* call("list_sheets", { file: "nothing.xlsx" })
        assert.isTrue(isError)
        assert.include(JSON.stringify(content), "There is no file \\\"nothing.xlsx\\\"")
      }))

    it.effect("closes: the server ends with 0 by itself, and nothing was wrong on any stream", () =>
      Effect.gen(function*() {
        const { close } = yield* Connection
        // in the other modes the client has asked a server of its own which revisions there are, and ended that one
        yield* close
      }))
  })
}

Child.leavesNothingBehind()

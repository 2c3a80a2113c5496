import { assert, layer } from "@effect/vitest"
import type { VersionNegotiationMode } from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Child from "../utils/child.ts"

/** The client of the protocol's authors, connected to the Excel example, whose exit is recorded. */
class Connection extends Context.Service<Connection, {
  readonly client: Client
  readonly call: (name: string, args: Record<string, unknown>) => Effect.Effect<Awaited<ReturnType<Client["callTool"]>>>
  /** What the client found wrong with the connection, a stray line on standard output above all. */
  readonly errors: ReadonlyArray<Error>
  readonly stderr: () => string
  /** How the processes ended that the client has started: the exit code, the signal, and whether it had to ask. */
  readonly exits: () => ReadonlyArray<unknown>
}>()("effect-stdio/test/peers/Connection") {
  static readonly layer = (mode: VersionNegotiationMode | undefined) =>
    Layer.effect(
      Connection,
      Effect.gen(function*() {
        const record = join(yield* Child.temporaryFolder, "exits.jsonl")
        const transport = new StdioClientTransport({
          command: process.execPath,
          args: [
            Child.path("test/fixtures/records-exit.ts"),
            record,
            process.execPath,
            Child.path("examples/excel/server.ts"),
            Child.path("examples/excel")
          ],
          env: Child.environment,
          stderr: "pipe"
        })
        let stderr = ""
        transport.stderr?.on("data", (chunk: Buffer) => {
          stderr += chunk.toString()
        })
        const client = new Client(
          { name: "test", version: "1.0.0" },
          mode === undefined ? {} : { versionNegotiation: { mode } }
        )
        const errors: Array<Error> = []
        // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the client has no other way
        client.onerror = (error) => {
          errors.push(error)
        }
        yield* Effect.acquireRelease(
          Effect.promise(() => client.connect(transport)),
          () => Effect.promise(() => client.close())
        )
        return Connection.of({
          client,
          call: (name, args) => Effect.promise(() => client.callTool({ name, arguments: args })),
          errors,
          stderr: () => stderr,
          exits: () => readFileSync(record, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line) as unknown)
        })
      })
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
        const { client, errors, exits, stderr } = yield* Connection
        yield* Effect.promise(() => client.close())
        // in the other modes the client has asked a server of its own which revisions there are, and ended that one
        assert.deepStrictEqual(exits().at(-1), { code: 0, signal: null, terminated: false })
        assert.deepStrictEqual(errors, [])
        assert.strictEqual(stderr(), "")
      }))
  })
}

Child.leavesNothingBehind()

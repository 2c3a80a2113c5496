// The tools behind a connection: progress, and cancellation by the client.
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import { Buffer } from "node:buffer"
import { ExcelTools } from "../../examples/excel/tools.ts"
import * as Workbooks from "../../examples/excel/Workbooks.ts"
import * as Mcp from "../utils/mcp.ts"
import { addManyRows, aroundParsing, type Before, Folder, leftovers, watchChanges } from "./support.ts"

/** A server for the root folder, with a client that has said hello. */
const start = Effect.fnUntraced(function*(before: Before = () => Effect.void) {
  const { root } = yield* Folder
  const fs = yield* FileSystem.FileSystem
  const workbooks = yield* Workbooks.make({ root }).pipe(
    Effect.provideService(FileSystem.FileSystem, watchChanges(fs, before))
  )
  return yield* Mcp.session(ExcelTools.pipe(Layer.provide(Layer.succeed(Workbooks.Workbooks, workbooks))))
})

const write = (value: unknown) => ({ file: "busy.xlsx", sheet: "Busy", cells: [{ cell: "A1", value }] })

describe("the Excel server", () => {
  it.effect("tells how far a call is to clients that ask, from little to all, before the reply", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* folder.workbook("busy.xlsx", addManyRows)
      const server = yield* start()
      const calls = [["read_sheet", { file: "busy.xlsx", range: "A1" }], ["write_cells", write(2)]] as const
      for (const [index, [name, args]] of calls.entries()) {
        yield* server.call(index + 1, name, args, { progressToken: name })
        const messages = yield* server.until(index + 1)
        assert.notStrictEqual(messages.at(-1)?.result?.["isError"], true)
        const progress = Mcp.progressOf(messages, name)
        const done = progress.map(({ done }) => Number(done))
        assert.deepStrictEqual(done, done.toSorted((a, b) => a - b))
        assert.isAbove(done.length, 2)
        assert.strictEqual(done.at(-1), 100)
        assert.deepStrictEqual(new Set(progress.map(({ total }) => total)), new Set([100]))
      }
    }).pipe(Effect.provide(Folder.layer)))

  it.effect("stops parsing when the client cancels, and goes on serving", () =>
    Effect.gen(function*() {
      const folder = yield* Folder
      yield* folder.workbook("busy.xlsx", addManyRows)
      const started = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<unknown>()
      yield* aroundParsing((parse) => {
        Deferred.doneUnsafe(started, Exit.void)
        return parse().catch((error: unknown) => {
          Deferred.doneUnsafe(ended, Exit.succeed(error))
          throw error
        })
      })
      const server = yield* start()
      yield* server.call(1, "read_sheet", { file: "busy.xlsx" })
      yield* Deferred.await(started)
      yield* server.cancel(1)
      assert.propertyVal(yield* Deferred.await(ended), "name", "AbortError")
      yield* server.call(2, "list_sheets", { file: "busy.xlsx" })
      const messages = yield* server.until(2)
      assert.deepStrictEqual(messages.map(({ id }) => id), [0, 2])
      assert.deepStrictEqual(messages.at(-1)?.result?.["structuredContent"], {
        file: "busy.xlsx",
        sheets: [{ name: "Busy", state: "visible", rows: 4000, columns: 4, usedRange: "A1:D4000" }]
      })
    }).pipe(Effect.provide(Folder.layer)))

  for (const operation of ["write", "sync", "rename"]) {
    it.effect(`leaves the file as it was when the client cancels a write at: ${operation}`, () =>
      Effect.gen(function*() {
        const folder = yield* Folder
        yield* folder.workbook("busy.xlsx", addManyRows)
        const before = yield* folder.read("busy.xlsx")
        const reached = yield* Deferred.make<void>()
        const gone = yield* Deferred.make<void>()
        let parked = false
        const server = yield* start((now) => {
          if (parked || now !== operation) return Effect.void
          parked = true
          return Deferred.succeed(reached, undefined).pipe(
            Effect.andThen(Effect.interruptible(Effect.never)),
            Effect.ensuring(Deferred.succeed(gone, undefined))
          )
        })
        yield* server.call(1, "write_cells", write("cancelled"))
        yield* Deferred.await(reached)
        yield* server.cancel(1)
        yield* Deferred.await(gone)
        yield* server.call(2, "read_sheet", { file: "busy.xlsx", range: "A1" })
        yield* server.until(2)
        assert.isTrue(Buffer.from(before).equals(yield* folder.read("busy.xlsx")))
        // The next write waits until the cancelled one has cleaned up.
        yield* server.call(3, "write_cells", write("done"))
        const messages = yield* server.until(3)
        assert.notStrictEqual(messages.at(-1)?.result?.["isError"], true)
        assert.deepStrictEqual(messages.map(({ id }) => id), [0, 2, 3])
        assert.deepStrictEqual(yield* leftovers, [])
      }).pipe(Effect.provide(Folder.layer)))
  }
})

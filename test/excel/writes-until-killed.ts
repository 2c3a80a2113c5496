// Writes one number into 2,000 cells of a workbook, then the next number, and so on; tells each step in a line.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import { writeSync } from "node:fs"
import * as Workbooks from "../../examples/excel/Workbooks.ts"

const [root = ".", file = ""] = process.argv.slice(2)

const program = Effect.gen(function*() {
  const workbooks = yield* Workbooks.make({ root })
  for (let round = 1;; round++) {
    const cells = Array.from({ length: 2000 }, (_, index) => ({ cell: `A${index + 1}`, value: round }))
    yield* workbooks.writeCells(
      { file, sheet: "Raw", cells },
      ({ step }) => Effect.sync(() => writeSync(1, `${step}\n`))
    )
  }
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide([NodeFileSystem.layer, NodePath.layer])))

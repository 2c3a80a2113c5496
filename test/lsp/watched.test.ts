// Which files a session sees, where there are more than it looks at.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import * as WatchedFiles from "../../examples/lsp/WatchedFiles.ts"
import * as Work from "../../examples/lsp/work.ts"
import * as Child from "../utils/child.ts"

describe("watched files", () => {
  it.live("that others push out of the number are not told as deleted", () =>
    Effect.gen(function*() {
      const folder = yield* Child.temporaryFolder
      const write = (name: string) => writeFileSync(join(folder, name), "x")
      for (const name of ["a", "b", "c", "d", "e", "f"]) write(name)
      const watched = WatchedFiles.make(folder, 4)
      yield* watched.reset
      watched.register("1", [{ pattern: "**/*", kind: 4 }])
      for (const name of ["a0", "b0", "c0", "d0", "e0", "f0"]) write(name)
      assert.deepStrictEqual(yield* watched.changes, [])
    }))

  it.live("near the folder are seen before deep ones", () =>
    Effect.gen(function*() {
      const folder = yield* Child.temporaryFolder
      for (const name of ["a/deep/er", "src", "z/deep/er"]) mkdirSync(join(folder, name), { recursive: true })
      for (const name of ["a/deep/er/1", "a/deep/er/2", "z/deep/er/1", "z/deep/er/2"]) {
        writeFileSync(join(folder, name), "x")
      }
      const watched = WatchedFiles.make(folder, 2)
      yield* watched.reset
      watched.register("1", [{ pattern: "**/*", kind: 1 }])
      writeFileSync(join(folder, "src/new.ts"), "x")
      assert.include(
        (yield* watched.changes).map(({ uri }) => basename(uri)),
        "new.ts"
      )
    }))
})

describe("the work of a server", () => {
  it("that was never begun is not open: it is the rest of a call that is over", () => {
    const work = Work.make()
    const token = Symbol("call")
    work.report(token, { kind: "begin", title: "Searching" })
    assert.deepStrictEqual(work.current(), ["Searching"])
    work.end(token)
    work.report("its name on the wire", { kind: "report", message: "late" })
    assert.deepStrictEqual(work.current(), [])
  })
})

/**
 * The strategies of progress by themselves: what they ask for, and what they read.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Progress from "effect-stdio/Progress"

describe("the Model Context Protocol", () => {
  it.each([
    [undefined, { _meta: { progressToken: "t" } }],
    [{}, { _meta: { progressToken: "t" } }],
    [{ a: 1, _meta: { b: 2 } }, { a: 1, _meta: { b: 2, progressToken: "t" } }],
    [{ _meta: { progressToken: "old" } }, { _meta: { progressToken: "t" } }],
    [{ _meta: null }, { _meta: { progressToken: "t" } }],
    [{ _meta: "text" }, { _meta: { progressToken: "t" } }]
  ])("asks with the params %j", (params, asked) => {
    assert.deepStrictEqual(Progress.mcp.ask(params, "t"), asked)
  })

  it("leaves the params that it is given as they are", () => {
    const params = { _meta: { b: 2 } }
    Progress.mcp.ask(params, "t")
    assert.deepStrictEqual(params, { _meta: { b: 2 } })
  })

  it.each([
    [{ progressToken: "t", progress: 1, total: 2, message: "m" }, {
      token: "t",
      value: { progress: 1, total: 2, message: "m" }
    }],
    [{ progressToken: 0 }, { token: 0, value: {} }],
    [{ progress: 1 }, undefined],
    [undefined, undefined],
    [null, undefined],
    ["progressToken", undefined],
    [[{ progressToken: "t" }], undefined]
  ])("reads %j", (params, report) => {
    assert.deepStrictEqual(Progress.mcp.read(params), report)
  })
})

describe("the Language Server Protocol", () => {
  it.each([
    [undefined, { workDoneToken: "t" }],
    [{ a: 1, workDoneToken: "old" }, { a: 1, workDoneToken: "t" }]
  ])("asks with the params %j", (params, asked) => {
    assert.deepStrictEqual(Progress.lsp.ask(params, "t"), asked)
  })

  it.each([
    [{ token: "t", value: { kind: "end" } }, { token: "t", value: { kind: "end" } }],
    [{ token: 1, value: null }, { token: 1, value: null }],
    [{ token: "t" }, undefined],
    [{ value: 1 }, undefined],
    [undefined, undefined],
    [null, undefined],
    [["t", 1], undefined]
  ])("reads %j", (params, report) => {
    assert.deepStrictEqual(Progress.lsp.read(params), report)
  })
})

describe("params by position", () => {
  it.each([["mcp", Progress.mcp], ["lsp", Progress.lsp]])("stay as they are with %s", (_, progress) => {
    assert.deepStrictEqual(progress.ask([1, { a: 2 }], "t"), [1, { a: 2 }])
  })
})

describe("no progress", () => {
  it("asks for nothing and reads nothing", () => {
    const params = { a: 1 }
    assert.strictEqual(Progress.none.ask(params, "t"), params)
    assert.isUndefined(Progress.none.ask(undefined, "t"))
    assert.isUndefined(Progress.none.read({ progressToken: "t" }))
    assert.isUndefined(Progress.none.method)
  })
})

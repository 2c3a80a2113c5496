// Positions, addresses, patterns, edits, tables: what needs no server.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Config from "../../examples/lsp/config.ts"
import * as Edits from "../../examples/lsp/edits.ts"
import * as Globs from "../../examples/lsp/globs.ts"
import * as Languages from "../../examples/lsp/languages.ts"
import * as Positions from "../../examples/lsp/positions.ts"
import * as Protocol from "../../examples/lsp/protocol.ts"
import * as Uris from "../../examples/lsp/uris.ts"
import * as WorkspaceEdit from "../../examples/lsp/workspaceEdit.ts"
import { range } from "./support.ts"

describe("a position", () => {
  const text = "const größe = 1\r\n\r\nlog(\"🚆\", total, totals, total)\n"
  const find = (at: Omit<Positions.Place, "file">) => Positions.find(text, { file: "a.ts", ...at })
  const problem = (at: Omit<Positions.Place, "file">) => Effect.map(Effect.flip(find(at)), ({ message }) => message)

  it.effect("is a column in UTF-16 code units, the one behind the last included", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* find({ line: 3, column: 5 }), { line: 2, character: 4 })
      assert.deepStrictEqual(yield* find({ line: 2, column: 1 }), { line: 1, character: 0 })
      assert.deepStrictEqual(yield* find({ line: 1, column: 16 }), { line: 0, character: 15 })
      assert.include(yield* problem({ line: 1, column: 17 }), "Line 1 has 15 columns, there is no column 17.")
    }))

  it.effect("is the first whole word of that name, also behind wide characters", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* find({ line: 1, symbol: "größe" }), { line: 0, character: 6 })
      assert.deepStrictEqual(yield* find({ line: 3, symbol: "totals" }), { line: 2, character: 17 })
      assert.deepStrictEqual(yield* find({ line: 3, symbol: "total" }), { line: 2, character: 10 })
      assert.include(yield* problem({ line: 1, symbol: "gr" }), "\"gr\" does not stand on line 1 as a whole word.")
      assert.include(yield* problem({ line: 3, symbol: "sum" }), "What stands there: \"log\", \"total\", \"totals\".")
      assert.include(yield* problem({ line: 2, symbol: "sum" }), "No name stands there.")
    }))

  it.effect("finds operators, and does not take a name for another that it begins", () =>
    Effect.gen(function*() {
      const at = (line: string, symbol: string) => Positions.find(line, { file: "a.ts", line: 1, symbol })
      assert.deepStrictEqual(yield* at("a1 = a + 1", "a"), { line: 0, character: 5 })
      assert.deepStrictEqual(yield* at("a1+=$a", "+="), { line: 0, character: 2 })
      assert.deepStrictEqual(yield* at("支出s 支出", "支出"), { line: 0, character: 4 })
    }))

  it.effect("has a line that is there, and a column or a symbol", () =>
    Effect.gen(function*() {
      assert.include(yield* problem({ line: 5, column: 1 }), "\"a.ts\" has 4 lines, there is no line 5.")
      assert.include(yield* problem({ line: 1 }), "Give column, or symbol")
      assert.include(yield* problem({ line: 1, column: 1, symbol: "const" }), "not both")
    }))

  it("is an offset, at the end of its line where the server counts too far", () => {
    const starts = Positions.lineStarts(text)
    assert.deepStrictEqual(starts, [0, 17, 19, 51])
    const offset = (line: number, character: number) => Positions.offsetOf(text, starts, { line, character })
    assert.strictEqual(offset(0, 99), 15)
    assert.strictEqual(offset(1, 1), 17)
    assert.strictEqual(offset(2, 4), 23)
    assert.strictEqual(offset(2, 99), 50)
    assert.strictEqual(offset(9, 0), text.length)
  })

  it("shows a line up to a length, and no half of a character", () => {
    assert.strictEqual(Positions.preview("  a\t "), "  a")
    assert.strictEqual(Positions.preview(`${"x".repeat(199)}🚆🚆`), `${"x".repeat(199)}…`)
  })
})

describe("the address of a file", () => {
  const windows = { windows: true }

  it("is the same path in every spelling", () => {
    assert.strictEqual(Uris.toPath(Uris.fromPath("/p/größe 支出#1%.ts")), "/p/größe 支出#1%.ts")
    assert.strictEqual(Uris.toPath("file:///p/gr%C3%B6%C3%9Fe%20%E6%94%AF%E5%87%BA.ts"), "/p/größe 支出.ts")
    assert.strictEqual(Uris.toPath("file:///p/größe 支出.ts"), "/p/größe 支出.ts")
    for (const uri of ["file:///C:/p/a b.ts", "file:///c%3A/p/a%20b.ts", "file:///c:/p/a%20b.ts"]) {
      assert.strictEqual(Uris.toPath(uri, windows), "C:\\p\\a b.ts")
    }
    assert.strictEqual(Uris.fromPath("C:\\p\\a b.ts", windows), "file:///C:/p/a%20b.ts")
  })

  it("is nothing where it names no file", () => {
    for (const uri of ["", "a.ts", "untitled:1", "file://elsewhere/p/a.ts", "file:///p%2Fa.ts", "%"]) {
      assert.isUndefined(Uris.toPath(uri))
    }
  })

  it("tells nothing of the machine when it is outside", () => {
    assert.strictEqual(Uris.nameOutside("file:///home/me/node_modules/x/node_modules/a/lib.d.ts"), "a/lib.d.ts")
    assert.strictEqual(Uris.nameOutside("file:///home/me/a.ts"), "a.ts")
    assert.strictEqual(Uris.nameOutside("jdt://contents/home/me/A.class"), "jdt:A.class")
    assert.strictEqual(
      Uris.relativeTo("/home/me/p", "see /home/me/p/a.ts, file:///home/me/p/b.ts and /home/me/p"),
      "see a.ts, b.ts and ."
    )
    const near: ReadonlyArray<readonly [text: string, shown: string]> = [
      ["module \"/home/me/p-1/other/x\"", "module \"other/x\""],
      ["'/home/me/node_modules/uuid/index.js' has no types", "'uuid/index.js' has no types"],
      ["at f (/usr/lib/node_modules/typescript/lib/typescript.js:1:2)", "at f (typescript/lib/typescript.js:1:2)"],
      ["file:///home/me/p-1/other/größe.ts", "other/größe.ts"],
      ["/home/me/p-1/a.b/node_modules/x", "node_modules/x"],
      ["/home/me/p-1/a.b2/c and /x/home/me/p-1/a.b/c", "a.b2/c and /x/home/me/p-1/a.b/c"],
      ["GET /home/page, a / b, ./node_modules/x", "GET /home/page, a / b, ./node_modules/x"]
    ]
    for (const [text, shown] of near) assert.strictEqual(Uris.relativeTo("/home/me/p-1/a.b", text), shown)
    assert.strictEqual(Uris.relativeTo("/", "/etc/a / b"), "/etc/a / b")
  })
})

describe("a pattern for files", () => {
  const cases: ReadonlyArray<
    readonly [pattern: string, matches: ReadonlyArray<string>, others: ReadonlyArray<string>]
  > = [
    ["**/*.ts", ["a.ts", "src/a.ts", "a/b/c.ts"], ["a.tsx", "ts", "a.ts/b"]],
    ["**/*", ["a", "a/b"], []],
    ["*", ["a.b"], ["a/b"]],
    ["src/**", ["src/a", "src/a/b"], ["lib/a"]],
    ["**/{package,tsconfig}.json", ["package.json", "a/tsconfig.json"], ["a.json"]],
    ["a?[0-9]", ["ab1"], ["a/1", "ab"]],
    ["[!a]b", ["cb"], ["ab"]],
    ["a.b+(c)", ["a.b+(c)"], ["axb+(c)"]],
    ["größe*,{a,b}", ["größe 1,a"], ["größe a"]]
  ]
  for (const [pattern, matches, others] of cases) {
    it(`is ${pattern}`, () => {
      const test = Globs.toTest(pattern)
      assert.deepStrictEqual([...matches, ...others].filter((path) => test?.(path)), matches)
    })
  }

  it("is none when it is not closed", () => {
    assert.isUndefined(Globs.toTest("a{b"))
  })
})

describe("edits", () => {
  const text = "eins zwei\r\ndrei 🚆 vier\n"

  it("are made from the end, so that none moves another", () => {
    const edits = [
      { range: range(0, 0, 4), newText: "one" },
      { range: range(1, 8, 12), newText: "four" },
      { range: range(0, 5, 9), newText: "two" },
      { range: range(2, 0, 0), newText: "a" },
      { range: range(2, 0, 0), newText: "b" }
    ]
    assert.strictEqual(Edits.apply(text, edits), "one two\r\ndrei 🚆 four\nab")
  })

  it("are refused when they overlap, or are not in the text", () => {
    const overlap = [{ range: range(0, 0, 4), newText: "" }, { range: range(0, 3, 5), newText: "" }]
    assert.deepStrictEqual(Edits.apply(text, overlap), { problem: "Overlap" })
    for (const wrong of [range(1, 4, 2), range(0, -1, 2), range(7, 0, 1)]) {
      assert.deepStrictEqual(Edits.apply(text, [{ range: wrong, newText: "" }]), { problem: "BadRange" })
    }
  })

  it("are read in both forms, with versions, and not at all when one cannot be read", () => {
    const edit = { range: range(0, 0, 1), newText: "x" }
    assert.deepStrictEqual(WorkspaceEdit.read({ changes: { "file:///a": [edit] } }), [
      { _tag: "Text", uri: "file:///a", edits: [edit] }
    ])
    const documentChanges = [
      { textDocument: { uri: "file:///a", version: 3 }, edits: [{ ...edit, annotationId: "1" }] },
      { kind: "rename", oldUri: "file:///a", newUri: "file:///b" }
    ]
    assert.deepStrictEqual(WorkspaceEdit.read({ changes: {}, documentChanges }), [
      { _tag: "Text", uri: "file:///a", version: 3, edits: [edit] },
      { _tag: "FileOperation", kind: "rename" }
    ])
    assert.deepStrictEqual(WorkspaceEdit.read(null), [])
    for (const garbage of ["x", { changes: { "file:///a": [edit, { newText: "y" }] } }, { documentChanges: [7] }]) {
      assert.isUndefined(WorkspaceEdit.read(garbage))
    }
  })
})

describe("an answer", () => {
  it("may hold locations and links, and some that cannot be read", () => {
    const found = Protocol.locations([
      { uri: "file:///a", range: range(1, 2, 3) },
      { targetUri: "file:///b", targetRange: range(0, 0, 9), targetSelectionRange: range(4, 5, 6) },
      { uri: "file:///c", range: { start: { line: -1, character: 0.5 }, end: { line: 0, character: 0 } } },
      { uri: 7 },
      null
    ])
    assert.deepStrictEqual(found, {
      items: [
        { uri: "file:///a", range: range(1, 2, 3) },
        { uri: "file:///b", range: range(4, 5, 6) },
        { uri: "file:///c", range: range(0, 0, 0) }
      ],
      unreadable: 2
    })
    assert.deepStrictEqual(Protocol.locations(null), { items: [], unreadable: 0 })
    assert.strictEqual(Protocol.locations({ uri: "file:///a", range: range(0, 0, 1) }).items.length, 1)
  })

  it("may hold a hover in each of its forms", () => {
    const text = (contents: unknown) => Protocol.hover({ contents })?.text
    assert.strictEqual(text({ kind: "markdown", value: "**a**" }), "**a**")
    assert.strictEqual(text("a"), "a")
    assert.strictEqual(text([{ language: "ts", value: "let a" }, "", "b"]), "```ts\nlet a\n```\n\nb")
    assert.strictEqual(text([]), "")
    assert.strictEqual(Protocol.hover(null)?.text, "")
    for (const garbage of [7, "x", { contents: 7 }, {}]) assert.isUndefined(Protocol.hover(garbage))
  })

  it("may hold symbols, nested or flat, of kinds that nobody knows", () => {
    const child = { name: "b", kind: 99, range: range(1, 0, 1), selectionRange: range(1, 0, 1) }
    const parent = {
      name: "a",
      kind: 5,
      range: range(0, 0, 1, 2),
      selectionRange: range(0, 6, 7),
      children: [child, 1]
    }
    assert.deepStrictEqual(Protocol.documentSymbols([parent]), {
      items: [
        { name: "a", kind: "class", container: undefined, range: range(0, 0, 1, 2), at: { line: 0, character: 6 } },
        { name: "b", kind: "kind 99", container: "a", range: range(1, 0, 1), at: { line: 1, character: 0 } }
      ],
      unreadable: 1
    })
    const flat = { name: "c", kind: 12, containerName: "a", location: { uri: "file:///a", range: range(3, 0, 1) } }
    assert.deepStrictEqual(Protocol.documentSymbols([flat]).items, [
      { name: "c", kind: "function", container: "a", range: range(3, 0, 1), at: { line: 3, character: 0 } }
    ])
    assert.deepStrictEqual(Protocol.workspaceSymbols([{ ...flat, location: { uri: "file:///a" } }]).items, [
      { name: "c", kind: "function", container: "a", location: { uri: "file:///a", range: undefined } }
    ])
  })
})

describe("the table of languages", () => {
  it("knows a file by its ending, in any case", () => {
    const find = (file: string) => {
      const found = Languages.find(Languages.table, file)
      return found && [found.language.name, found.languageId]
    }
    assert.deepStrictEqual(find("src/App.TSX"), ["typescript", "typescriptreact"])
    assert.deepStrictEqual(find("a.d.cts"), ["typescript", "typescript"])
    assert.deepStrictEqual(find("größe 支出.py"), ["python", "python"])
    for (const file of ["Makefile", "a.constructor", "folder.ts/file", ".", ""]) assert.isUndefined(find(file))
  })

  it.effect("is changed server by server by a configuration", () =>
    Effect.gen(function*() {
      const config = yield* Config.parse(
        "c.json",
        JSON.stringify({
          servers: {
            typescript: { command: "tsls", settings: { a: 1 } },
            rust: { disabled: true },
            mine: { command: "mine", languages: { ".mine": "mine", ".py": "python" } }
          },
          requestTimeout: "1.5s"
        })
      )
      const languages = Config.languagesOf(config)
      const typescript = languages.find(({ name }) => name === "typescript")
      assert.deepInclude(typescript, { command: "tsls", args: ["--stdio"], settings: { a: 1 } })
      assert.strictEqual(Languages.find(languages, "a.mine")?.language.command, "mine")
      assert.strictEqual(Languages.find(languages, "a.py")?.language.name, "mine")
      assert.isUndefined(Languages.find(languages, "a.rs"))
      assert.strictEqual(String(Config.times(config).requestTimeout), String(Config.duration("1500ms")))
    }))

  const bad: ReadonlyArray<readonly [text: string, problem: RegExp]> = [
    ["{", /JSON/],
    [JSON.stringify({ servers: { typescript: { comand: "x" } } }), /comand/],
    [JSON.stringify({ servers: { mine: { command: "x" } } }), /new server "mine" needs command and languages/],
    [JSON.stringify({ servers: { mine: { command: "x", languages: { ts: "x" } } } }), /ending such as \.ts/],
    [JSON.stringify({ idleTimeout: "soon" }), /a time such as 500ms/],
    [JSON.stringify({ servers: { typescript: { args: "--stdio" } } }), /array/i]
  ]
  for (const [text, problem] of bad) {
    it.effect(`refuses the configuration ${text}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Config.parse("c.json", text))
        assert.include(error.message, "the configuration \"c.json\" cannot be used")
        assert.match(error.message, problem)
      }))
  }
})

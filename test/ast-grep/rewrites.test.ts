import type { SgNode } from "@ast-grep/napi"
import { parse } from "@ast-grep/napi"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Languages from "../../examples/ast-grep/languages.ts"
import * as Patterns from "../../examples/ast-grep/patterns.ts"
import * as Rewrites from "../../examples/ast-grep/rewrites.ts"

const MAX = 1_000_000

const rewrite = Effect.fnUntraced(function*(
  pattern: string,
  text: string,
  code: string,
  language = "ts",
  max = MAX
) {
  const compiled = yield* Patterns.compile(yield* Languages.find(language), pattern)
  const { apply } = yield* Rewrites.compile(text, compiled.names)
  return yield* apply(code, (yield* compiled.find(code))?.matches ?? [], max)
})

describe("a rewrite", () => {
  const cases: ReadonlyArray<readonly [what: string, pattern: string, text: string, code: string, expected: string]> = [
    ["uses metavariables, more than once too", "f($A, $B)", "g($B, $A, $B)", "f(1, 2)", "g(2, 1, 2)"],
    ["keeps what is between the nodes of $$$A", "f($$$A)", "g($$$A)", "f(1,  /* two */ 2)", "g(1,  /* two */ 2)"],
    ["may be empty", "f($A);", "", "a; f(1); b", "a;  b"],
    ["has no white space around it", "\n  f($A)\n", "\n  g($A)\n", "f(1)\n", "g(1)\n"],
    ["may have no metavariables", "f($A)", "done", "f(1)", "done"],
    ["takes the comma along where $$$A stands for nothing at the end", "f($$$A)", "g(1, $$$A)", "f()", "g(1)"],
    ["takes the comma along where $$$A stands for nothing at the start", "f($$$A)", "g($$$A, 1)", "f()", "g(1)"],
    ["takes one comma along where $$$A stands for nothing between two", "f($$$A)", "g(1, $$$A, 2)", "f()", "g(1, 2)"],
    ["takes the comma along where $$$A is a comment only", "f($$$A)", "g($$$A, 1)", "f(/* x */)", "g(/* x */ 1)"],
    [
      "leaves code behind a comment code",
      "f($$$A)",
      "g($$$A)",
      "f(\n  1, // one\n  2 // two\n)",
      "g(1, // one\n2 // two\n)"
    ],
    ["puts a comma before a comment", "f($$$A)", "g($$$A, 9)", "f(\n  1, // one\n)", "g(1, // one\n9)"],
    ["writes one comma before a comment", "f($$$A)", "g($$$A, 9)", "f(1, /* one */)", "g(1 /* one */, 9)"],
    [
      "leaves code behind a comment in a statement code",
      "if ($C) { $$$B }",
      "while ($C) { $$$B }",
      "if (a) {\n  f() // x\n}",
      "while (a) { f() // x\n}"
    ],
    ["leaves code behind the match code", "if ($C) { $$$B }", "$$$B", "if (a) {\n  f() // x\n} g()", "f() // x\n g()"],
    ["writes one comma where there would be two", "f($$$A)", "g($$$A, 9)", "f(1, 2,)", "g(1, 2, 9)"],
    [
      "leaves $ alone that begins no metavariable",
      "f($A)",
      "`${$A} $1 $x $Scope $$`",
      "f(1)",
      "`${1} $1 $x $Scope $$`"
    ],
    ["replaces the outermost of matches in each other", "f($A)", "g($A)", "f(f(1)); f(2)", "g(f(1)); g(2)"],
    ["counts UTF-16 code units", "f($A)", "'🚆' + $A", "'🚆🚆'; f('支出🚆'); '🚆'", "'🚆🚆'; '🚆' + '支出🚆'; '🚆'"],
    [
      "stands as far in as the match",
      "f($A)",
      "if (ok) {\n  g($A)\n}",
      "{\n    f(1)\n}",
      "{\n    if (ok) {\n      g(1)\n    }\n}"
    ],
    ["leaves blank lines blank", "f($A)", "g(\n\n  $A\n)", "  f(1)", "  g(\n\n    1\n  )"],
    [
      "moves the lines of a metavariable with its first one",
      "f($A)",
      "g(\n  $A\n)",
      "  f({\n    a,\n      b\n  })",
      "  g(\n    {\n      a,\n        b\n    }\n  )"
    ],
    [
      "moves them back, too",
      "if (x) { $$$B }",
      "$$$B",
      "{\n  if (x) {\n    one(\n      1\n    )\n    two()\n  }\n}",
      "{\n  one(\n    1\n  )\n  two()\n}"
    ],
    [
      "keeps the space in template strings",
      "f($A)",
      "g(\n  $A\n)",
      "f([`\na\n  b`,\nc])",
      "g(\n  [`\na\n  b`,\n  c]\n)"
    ],
    ["keeps tabs", "f($A)", "g(\n\t$A\n)", "\tf(1)", "\tg(\n\t\t1\n\t)"],
    [
      "ends lines as the file does",
      "f($A)",
      "g(\n  $A\n)",
      "a\r\n  f([\r\n    1\r\n  ])\r\n",
      "a\r\n  g(\r\n    [\r\n      1\r\n    ]\r\n  )\r\n"
    ],
    ["ends lines as the file does, whatever it has itself", "f($A)", "g(\r\n  $A)", "f(1)\n", "g(\n  1)\n"]
  ]
  for (const [what, pattern, text, code, expected] of cases) {
    it.effect(
      what,
      () => Effect.map(rewrite(pattern, text, code), (rewritten) => assert.strictEqual(rewritten?.code, expected))
    )
  }

  it.effect("counts what it replaces and what it leaves", () =>
    Effect.map(
      rewrite("f($A)", "g($A)", "f(f(f(1))); f(2)"),
      (rewritten) => assert.deepStrictEqual(rewritten, { code: "g(f(f(1))); g(2)", replaced: 2, nested: 2 })
    ))

  it.effect("stops when the code gets too long", () =>
    Effect.gen(function*() {
      const code = `f("${"x".repeat(1_000)}");`
      assert.isUndefined(yield* rewrite("f($A)", "$A".repeat(9_000), code))
      assert.isUndefined(yield* rewrite("f($A)", "$A,$A", code.repeat(100), "ts", 150_000))
      assert.isDefined(yield* rewrite("f($A)", "$A,$A", code.repeat(100), "ts", 400_000))
    }))

  const refused: ReadonlyArray<readonly [text: string, start: string]> = [
    ["g($B)", "The rewrite uses \"$B\", but the pattern has $A, $ARGS. "],
    ["g($AB)", "The rewrite uses \"$AB\", but the pattern has $A, $ARGS. "],
    ["g($$$)", "The rewrite uses \"$$$\", which keeps nothing: the pattern has $A, $ARGS. "],
    ["g($_)", "The rewrite uses \"$_\", which keeps nothing: the pattern has $A, $ARGS. "],
    ["g('\udc00')", "The rewrite has a character that no source file can have"],
    ["x".repeat(20_001), "The rewrite has more than 20000 characters. "]
  ]
  for (const [text, start] of refused) {
    it.effect(`is refused with a reason: ${JSON.stringify(text).slice(0, 20)}`, () =>
      Effect.gen(function*() {
        const { message } = yield* Effect.flip(rewrite("f($A, $_, $$$ARGS)", text, "f(1)"))
        assert.strictEqual(message.slice(0, start.length), start)
      }))
  }
})

describe("a pattern that replaces itself", () => {
  const folder = fileURLToPath(new URL("../fixtures/project/src", import.meta.url))
  const more: Readonly<Record<string, string>> = {
    "tabs.ts": "class A {\n\tm() {\n\t\treturn [\n\t\t\t1,\n\t\t\t2,\n\t\t]\n\t}\n}\n",
    "page.html": "<main>\n  <p class=\"a\">支出 🚆</p>\n  <p>x</p>\n</main>",
    "style.css": "@media print {\r\n  .a { color: red; }\r\n}\r\n",
    "view.tsx": "export const V = () => (\n  <A b={1}>\n    <B />\n  </A>\n)"
  }
  const files = [
    ...readdirSync(folder).map((name) => [name, readFileSync(`${folder}/${name}`, "utf8")] as const),
    ...Object.entries(more)
  ]
  for (const [name, code] of files) {
    const language = Languages.languages.find((language) => Languages.isFileOf(language, name))
    it.effect(`changes nothing, for each piece of code of ${name}`, () =>
      Effect.gen(function*() {
        assert.isDefined(language)
        if (language === undefined) return
        let tried = 0
        for (const node of nodesOf(parse(language.name, code).root())) {
          for (const pattern of patternsOf(node, code)) {
            const result = yield* Effect.result(rewrite(pattern, pattern, code, language.name))
            // not all pieces can be read without what is around them
            if (Result.isFailure(result)) continue
            tried++
            assert.strictEqual(result.success?.code, code, pattern)
          }
        }
        assert.isAbove(tried, 3)
      }))
  }
})

const nodesOf = (root: SgNode): ReadonlyArray<SgNode> => [root, ...root.children().flatMap(nodesOf)]

/** The text of a node as it would stand at the start of a line, with all its parts, and with each one replaced. */
const patternsOf = (node: SgNode, code: string): ReadonlyArray<string> => {
  const { end, start } = node.range()
  const indent = /^[ \t]*/.exec(code.slice(code.lastIndexOf("\n", start.index - 1) + 1, start.index))?.[0] ?? ""
  const outdent = (text: string) => text.replaceAll(`\n${indent}`, "\n")
  return [
    outdent(node.text()),
    ...node.children().filter((child) => child.isNamed()).map((child) => {
      const range = child.range()
      return outdent(`${code.slice(start.index, range.start.index)}$A${code.slice(range.end.index, end.index)}`)
    })
  ]
}

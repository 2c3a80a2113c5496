import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Languages from "../../examples/ast-grep/languages.ts"
import * as Patterns from "../../examples/ast-grep/patterns.ts"

const compile = (language: string, pattern: string, selector?: string) =>
  Effect.flatMap(Languages.find(language), (language) => Patterns.compile(language, pattern, selector))

/** The texts of all matches, with what the metavariables stand for. */
const found = Effect.fnUntraced(function*(language: string, pattern: string, code: string, selector?: string) {
  const { find } = yield* compile(language, pattern, selector)
  const matches = (yield* find(code))?.matches ?? []
  return matches.map(({ captures, end, start }) => [
    code.slice(start, end),
    ...captures().map(({ name, nodes }) => `${name}=${nodes.map((node) => node.text()).join(" ")}`)
  ])
})

describe("languages", () => {
  for (
    const [name, expected] of [
      ["ts", "TypeScript"],
      ["TypeScript", "TypeScript"],
      ["TYPESCRIPT", "TypeScript"],
      ["tsx", "Tsx"],
      ["typescriptreact", "Tsx"],
      ["js", "JavaScript"],
      ["jsx", "JavaScript"],
      [" css ", "Css"],
      ["HTML", "Html"]
    ] as const
  ) {
    it.effect(`${JSON.stringify(name)} is ${expected}`, () =>
      Effect.map(Languages.find(name), (language) => assert.strictEqual(language.name, expected)))
  }

  for (const name of ["", "python", "ts ts"]) {
    it.effect(`${JSON.stringify(name)} is none, and the answer lists them`, () =>
      Effect.map(
        Effect.flip(Languages.find(name)),
        ({ message }) =>
          assert.strictEqual(
            message,
            `There is no language ${JSON.stringify(name)}. Use one of Css, Html, JavaScript, Tsx, TypeScript.`
          )
      ))
  }

  it("know their files by the ending, in any case", () => {
    const names = ["a.ts", "A.TS", "a.d.mts", "a.tsx", "a.js", "ts", "a.ts.txt"]
    const typescript = Languages.languages.find(({ name }) => name === "TypeScript")
    assert.deepStrictEqual(
      names.filter((name) => typescript !== undefined && Languages.isFileOf(typescript, name)),
      ["a.ts", "A.TS", "a.d.mts"]
    )
  })
})

describe("a pattern", () => {
  const cases: ReadonlyArray<
    readonly [
      what: string,
      language: string,
      pattern: string,
      code: string,
      expected: ReadonlyArray<ReadonlyArray<string>>
    ]
  > = [
    ["finds one node for $A", "ts", "f($A)", "f(1); f( 2 ); f(1, 2); f()", [["f(1)", "A=1"], ["f( 2 )", "A=2"]]],
    ["finds any number for $$$A", "ts", "f($$$A)", "f(); f(1, 2)", [["f()", "A="], ["f(1, 2)", "A=1 , 2"]]],
    ["keeps nothing for names that begin with _", "ts", "f($_, $_X, $$$)", "f(1, 2, 3)", [["f(1, 2, 3)"]]],
    ["wants the same code for a name that is there twice", "ts", "$A === $A", "a === a; a === b; g(1,2) === g(1, 2)", [
      ["a === a", "A=a"],
      ["g(1,2) === g(1, 2)", "A=g(1, 2)"]
    ]],
    ["wants the same text in strings", "ts", "f($A, $A)", "f('a b', 'a b'); f('a b', 'ab')", [[
      "f('a b', 'a b')",
      "A='a b'"
    ]]],
    ["wants the same list for a name that is there twice", "ts", "f($$$A)($$$A)", "f(1, 2)(1,2); f(1)(2)", [[
      "f(1, 2)(1,2)",
      "A=1 , 2"
    ]]],
    ["looks behind $$$ for a name that is there twice", "ts", "[$A, $$$, $A]", "[1, 2, 1]; [1, 2]", [[
      "[1, 2, 1]",
      "A=1"
    ]]],
    ["wants all that is there", "ts", "if ($C) { $$$ }", "if (a) { b } else { c }; if (d) { e }", [[
      "if (d) { e }",
      "C=d"
    ]]],
    ["wants all declarations", "ts", "let $A = $B", "let a = 1, b = 2; let c = 3", [["let c = 3", "A=c", "B=3"]]],
    ["leaves a semicolon that it does not have", "ts", "throw $A", "throw a; throw b", [["throw a", "A=a"], [
      "throw b",
      "A=b"
    ]]],
    ["takes a semicolon that is part of $A", "ts", "if ($C) $T", "if (a) b();", [["if (a) b();", "C=a", "T=b();"]]],
    ["counts UTF-16 code units", "ts", "f($A)", "'🚆'; f('支出🚆')", [["f('支出🚆')", "A='支出🚆'"]]],
    ["has names that are not ASCII", "ts", "größe($A)", "größe(支出)", [["größe(支出)", "A=支出"]]],
    ["finds what is in a match, too, the outer one first", "ts", "f($A)", "f(f(1))", [["f(f(1))", "A=f(1)"], [
      "f(1)",
      "A=1"
    ]]],
    ["finds rules of CSS", "css", "$A { $$$B }", ".a { color: red; } b { }", [[
      ".a { color: red; }",
      "A=.a",
      "B=color: red;"
    ], [
      "b { }",
      "A=b",
      "B="
    ]]],
    ["finds elements of HTML", "html", "<$T>$$$C</$T>", "<p>x</p><b>y</b>", [["<p>x</p>", "T=p", "C=x"], [
      "<b>y</b>",
      "T=b",
      "C=y"
    ]]],
    ["finds elements of JSX", "tsx", "<$T $$$P />", "x = <A b={1} c />", [["<A b={1} c />", "T=A", "P=b={1} c"]]],
    ["finds JSX in JavaScript", "jsx", "<$T />", "x = <A />", [["<A />", "T=A"]]],
    ["may have a name with $ beside metavariables", "ts", "$scope.$apply($$$A)", "$scope.$apply(1)", [[
      "$scope.$apply(1)",
      "A=1"
    ]]],
    ["may have $ in a string", "ts", "f('$foo')", "f('$foo'); f('foo')", [["f('$foo')"]]],
    ["may be a comment", "ts", "// TODO", "// TODO\n", [["// TODO"]]],
    ["may have space around it", "ts", "\n  f($A)\n", "f(1)", [["f(1)", "A=1"]]]
  ]
  for (const [what, language, pattern, code, expected] of cases) {
    it.effect(
      what,
      () => Effect.map(found(language, pattern, code), (matches) => assert.deepStrictEqual(matches, expected))
    )
  }

  it.effect("with a selector finds a part of itself", () =>
    Effect.gen(function*() {
      const code = "class A { m() { return 1 } n(a) {} }; x = { k: 1 }"
      assert.deepStrictEqual(yield* found("ts", "class X { $M($$$P) { $$$B } }", code, "method_definition"), [
        ["m() { return 1 }", "M=m", "P=", "B=return 1"],
        ["n(a) {}", "M=n", "P=a", "B="]
      ])
      assert.deepStrictEqual(yield* found("ts", "({ $K: $V })", code, "pair"), [["k: 1", "K=k", "V=1"]])
      assert.deepStrictEqual(yield* found("css", "a { color: $A }", "b { color: red; margin: 0 }", "declaration"), [
        ["color: red", "A=red"]
      ])
    }))

  it.effect("finds the same code nested very deeply without ending the process", () =>
    Effect.gen(function*() {
      const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`
      assert.strictEqual((yield* found("ts", "f($A, $A)", `f(${deep}, ${deep})`)).length, 1)
    }), 30_000)

  it.effect("tells of syntax errors in the code", () =>
    Effect.gen(function*() {
      const { find } = yield* compile("ts", "f($A)")
      assert.isFalse((yield* find("f(1)"))?.hasErrors)
      assert.isFalse((yield* find(""))?.hasErrors)
      const broken = yield* find("f(1)\nclass {")
      assert.deepStrictEqual([broken?.hasErrors, broken?.matches.length], [true, 1])
    }))

  it.effect("tells of a name that may have been meant as a metavariable", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* compile("ts", "f($a, $B)")).suspect, "$a")
      assert.isUndefined((yield* compile("ts", "f($A, $B)")).suspect)
    }))

  const refused: ReadonlyArray<readonly [language: string, pattern: string, start: string, selector?: string]> = [
    ["ts", "", "The pattern is empty. "],
    ["ts", " \n", "The pattern is empty. "],
    ["ts", "f(" + "1,".repeat(2_500) + ")", "The pattern has more than 5000 characters. "],
    ["ts", "f('\ud83d')", "The pattern has a character that no source file can have"],
    ["ts", "f(\0)", "The pattern has a character that no source file can have"],
    ["ts", "$A", "\"$A\" alone matches every piece of code. "],
    ["css", " $$$A ", "\"$$$A\" alone matches every piece of code. "],
    ["ts", "$$$", "\"$$$\" alone matches every piece of code. "],
    ["ts", "$_", "\"$_\" alone matches every piece of code. "],
    ["ts", "$foo", "\"$foo\" is no metavariable: their names are capitals, digits and _, such as $FOO. "],
    ["ts", "f($$$args)", "\"$$$args\" is no metavariable: their names are capitals, digits and _, such as $$$ARGS. "],
    ["ts", "f($fooBar)", "\"$fooBar\" is no metavariable: their names are capitals, digits and _, such as $FOOBAR. "],
    ["css", ".$a { color: red }", "\"$a\" is no metavariable: "],
    ["ts", "f(", "The pattern is not valid TypeScript, at \"f(\". "],
    ["ts", "f($A))", "The pattern is not valid TypeScript, at "],
    ["ts", "f(1) g(2)", "The pattern is not valid TypeScript, at \"g(2)\". "],
    ["ts", "async $F() {}", "The pattern is not valid TypeScript, at "],
    ["ts", "key: $V,", "The pattern is not valid TypeScript, at "],
    ["ts", "<div>x</div>", "The pattern is not valid TypeScript, at "],
    ["css", "color: $A", "The pattern is not valid Css, at \"color: $A\". "],
    ["ts", "if ($A)", "The pattern is not complete: TypeScript expects \";\" "],
    ["html", "<div", "The pattern is not complete: Html expects \"/>\" "],
    ["ts", "f(1); g(2)", "The pattern is several pieces of TypeScript, and it may be one. "],
    ["ts", "$A $B", "The pattern is several pieces of TypeScript, and it may be one. "],
    ["ts", "class X { $M() {} }", "TypeScript has no kind of node that is called \"method\". ", "method"],
    ["ts", "class X { $M() {} }", "No node of the kind \"pair\" is in the pattern. ", "pair"],
    ["ts", "class X { $M( {} }", "The pattern is not valid TypeScript, at ", "method_definition"]
  ]
  for (const [language, pattern, start, selector] of refused) {
    it.effect(`is refused with a reason: ${language} ${JSON.stringify(pattern).slice(0, 40)} ${selector ?? ""}`, () =>
      Effect.gen(function*() {
        const { message, reason } = yield* Effect.flip(compile(language, pattern, selector))
        assert.strictEqual(reason._tag, "BadPattern")
        assert.strictEqual(message.slice(0, start.length), start)
      }))
  }
})

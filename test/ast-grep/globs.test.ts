import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { matchesGlob } from "node:path/posix"
import * as Globs from "../../examples/ast-grep/globs.ts"

const matched = (globs: ReadonlyArray<string>, paths: ReadonlyArray<string>) =>
  Effect.map(Globs.make(globs), ({ matches }) => paths.filter(matches))

const PATHS = ["a.ts", "src/a.ts", "src/a.test.ts", "src/deep/b.ts", "src/deep/größe 支出.ts", "lib/src/c.ts", "🚆.ts"]

describe("globs", () => {
  const cases: ReadonlyArray<readonly [globs: ReadonlyArray<string>, expected: ReadonlyArray<string>]> = [
    [[], PATHS],
    [["**"], PATHS],
    [["**/*.ts"], PATHS],
    [["*.ts"], PATHS],
    [["a.ts"], ["a.ts", "src/a.ts"]],
    [["./a.ts"], ["a.ts"]],
    [["src/*.ts"], ["src/a.ts", "src/a.test.ts"]],
    [["src/**"], ["src/a.ts", "src/a.test.ts", "src/deep/b.ts", "src/deep/größe 支出.ts"]],
    [["src/"], ["src/a.ts", "src/a.test.ts", "src/deep/b.ts", "src/deep/größe 支出.ts"]],
    [["src"], ["src/a.ts", "src/a.test.ts", "src/deep/b.ts", "src/deep/größe 支出.ts", "lib/src/c.ts"]],
    [["**/deep/*"], ["src/deep/b.ts", "src/deep/größe 支出.ts"]],
    [["*/src/*.ts"], ["lib/src/c.ts"]],
    [["{lib,src/deep}/**/*.ts"], ["src/deep/b.ts", "src/deep/größe 支出.ts", "lib/src/c.ts"]],
    [["{src/{a,deep/b},a}.ts"], ["a.ts", "src/a.ts", "src/deep/b.ts"]],
    [["?.ts"], ["a.ts", "src/a.ts", "src/deep/b.ts", "lib/src/c.ts", "🚆.ts"]],
    [["[b-c].ts"], ["src/deep/b.ts", "lib/src/c.ts"]],
    [["[!a].ts"], ["src/deep/b.ts", "lib/src/c.ts", "🚆.ts"]],
    [["src/**", "!*.test.ts", "!deep"], ["src/a.ts"]],
    [["!src/**"], ["a.ts", "lib/src/c.ts", "🚆.ts"]],
    [["A.ts"], []]
  ]
  for (const [globs, expected] of cases) {
    it.effect(`${JSON.stringify(globs)} means ${expected.length} of the paths`, () =>
      Effect.map(matched(globs, PATHS), (paths) => assert.deepStrictEqual(paths, expected)))
  }

  it.effect("mean what Node's globs mean, where both can say it", () =>
    Effect.gen(function*() {
      const names = ["a", "b", "ab", "a.b", "ba"]
      const paths = [
        ...names,
        ...names.flatMap((name) => names.map((other) => `${name}/${other}`)),
        "a/b/ab",
        "b/a/b/a.b"
      ]
      const segments = ["*", "**", "a*", "*b", "a?", "[ab]", "a*b", "*a*", "**"]
      for (const first of segments) {
        for (const second of segments) {
          for (const third of ["*b", "**/a*"]) {
            const glob = `${first}/${second}/${third}`
            // a folder stands for what is in it
            const expected = paths.filter((path) =>
              path.split("/").some((_, index, all) => matchesGlob(all.slice(0, index + 1).join("/"), glob))
            )
            assert.deepStrictEqual(yield* matched([glob], paths), expected, glob)
          }
        }
      }
    }))

  const refused: ReadonlyArray<readonly [glob: string, start: string]> = [
    ["", "is empty. "],
    ["!", "is empty. "],
    ["/etc/**", "is absolute. "],
    ["!/etc/**", "is absolute. "],
    ["C:/x", "is absolute. "],
    ["{/etc,src}/**", "is absolute. "],
    ["../**", "leads out "],
    ["src/../../**", "leads out "],
    ["{a,..}/b", "leads out "],
    ["src\\*.ts", "has a backslash. "],
    ["a\0b", "has a character that no path can have."],
    ["[ab", "has [ without ], "],
    ["[z-a]", "has [ without ], "],
    ["[]", "has [ without ], "],
    ["{a,b", "has { without }, "],
    ["a}", "has { without }, "],
    ["{a,b}".repeat(10), "stands for more than 100 globs. "],
    ["a".repeat(501), "is longer than 500 characters. "]
  ]
  for (const [glob, start] of refused) {
    it.effect(`says what is wrong with ${JSON.stringify(glob).slice(0, 40)}`, () =>
      Effect.gen(function*() {
        const { message, reason } = yield* Effect.flip(Globs.make([glob]))
        assert.strictEqual(reason._tag, "BadGlob")
        assert.include(message, `" ${start}`)
      }))
  }

  it.effect("are at most fifty", () =>
    Effect.gen(function*() {
      yield* Globs.make(Array.from({ length: 50 }, () => "a"))
      const { message } = yield* Effect.flip(Globs.make(Array.from({ length: 51 }, () => "a")))
      assert.include(message, "one too many")
    }))

  it.effect("with many stars are judged at once", () =>
    Effect.gen(function*() {
      const { matches } = yield* Globs.make([`${"*a".repeat(100)}b`, `${"**/a/".repeat(90)}b`])
      assert.isFalse(matches("a".repeat(250)))
      assert.isFalse(matches("a/".repeat(500) + "a"))
      assert.isTrue(matches("a/".repeat(500) + "b"))
    }))
})

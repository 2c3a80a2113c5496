/**
 * How a command is started on Windows, as the plan of it, which is made on every system.
 *
 * What cmd.exe and the program behind it make of a quoted line is written down here as they do it: what they are left
 * with must be the arguments that were given.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import type { Plan, Refusal, System } from "../src/internal/adapters/windowsCommand.ts"
import { planWindows } from "../src/internal/adapters/windowsCommand.ts"

const NODE = "C:\\Program Files\\nodejs"

const FILES = [
  `${NODE}\\node.exe`,
  `${NODE}\\npx`,
  `${NODE}\\npx.cmd`,
  `${NODE}\\npm.cmd`,
  `${NODE}\\node_modules\\npm\\bin\\npx-cli.js`,
  `${NODE}\\node_modules\\npm\\bin\\npm-cli.js`,
  "C:\\tools\\lint.cmd",
  "C:\\tools\\npx.cmd",
  "C:\\tools\\old.bat",
  "C:\\tools\\both.exe",
  "C:\\tools\\both.cmd",
  "C:\\tools\\v1.2.exe",
  "C:\\tools\\script.js",
  "C:\\work\\here.exe",
  "C:\\work\\bin\\server.exe"
]

const system = (env: System["env"] = {}): System => ({
  env: { Path: `"${NODE}";C:\\tools;relative`, ComSpec: "C:\\Windows\\System32\\cmd.exe", ...env },
  cwd: "C:\\work",
  isFile: (path) => FILES.some((file) => file.toLowerCase() === path.toLowerCase())
})

const plan = (command: string, args: ReadonlyArray<string> = [], env?: System["env"]) =>
  planWindows(command, args, system(env))

const direct = (file: string, ...args: ReadonlyArray<string>): Plan => ({ _tag: "Plan", file, args, verbatim: false })

const isPlan = (made: Plan | Refusal): made is Plan => made._tag === "Plan"

/** The line that cmd.exe is given. */
const lineOf = (made: Plan | Refusal): string => {
  if (!isPlan(made)) throw new Error(made._tag)
  assert.strictEqual(made.file, "C:\\Windows\\System32\\cmd.exe")
  assert.isTrue(made.verbatim)
  assert.deepStrictEqual(made.args.slice(0, 5), ["/e:ON", "/v:OFF", "/d", "/s", "/c"])
  return made.args[5] ?? ""
}

/** What cmd.exe makes of a line: /s strips the outermost quotes, variables are expanded, and what is outside of quotes may be a command. */
const cmd = (line: string, env: Readonly<Record<string, string>>) => {
  assert.match(line, /^".*"$/s)
  const expanded = line.slice(1, -1).replaceAll(
    /%([^%:]+)(:~,)?%/g,
    (whole, name: string, slice?: string) => slice === undefined ? env[name.toLowerCase()] ?? whole : ""
  )
  let isQuoted = false
  let outside = ""
  for (const character of expanded) {
    if (character === "\"") isQuoted = !isQuoted
    else if (!isQuoted) outside += character
  }
  return { expanded, outside }
}

/** What a program of the Microsoft runtime, such as Node, makes of its command line. */
const parse = (line: string): ReadonlyArray<string> => {
  const args: Array<string> = []
  let arg: string | undefined
  let isQuoted = false
  for (let at = 0; at < line.length; at++) {
    const slashes = /^\\*/.exec(line.slice(at))?.[0].length ?? 0
    if (slashes > 0 && line[at + slashes] === "\"") {
      arg = (arg ?? "") + "\\".repeat(slashes >> 1) + (slashes % 2 === 1 ? "\"" : "")
      at += slashes % 2 === 1 ? slashes : slashes - 1
      continue
    }
    const character = line[at]
    if (character === "\"") {
      arg ??= ""
      if (isQuoted && line[at + 1] === "\"") {
        arg += "\""
        at++
      } else isQuoted = !isQuoted
    } else if (character === " " && !isQuoted) {
      if (arg !== undefined) args.push(arg)
      arg = undefined
    } else arg = (arg ?? "") + (character ?? "")
  }
  return arg === undefined ? args : [...args, arg]
}

const ENV = { path: "C:\\secret", cd: "C:\\work", username: "ada", "%": "?" }

/** The arguments that arrive, after an assertion that cmd.exe saw nothing of them but blanks between quotes. */
const arrives = (args: ReadonlyArray<string>) => {
  const { expanded, outside } = cmd(lineOf(plan("lint", args)), ENV)
  assert.match(outside, /^ *$/)
  return parse(expanded)
}

describe("a command on Windows", () => {
  it("that is a program is started directly, with arguments for Node to quote (F133)", () => {
    assert.deepStrictEqual(plan("node", ["a b", "\""]), direct(`${NODE}\\node.exe`, "a b", "\""))
    assert.deepStrictEqual(plan("NODE.EXE"), direct(`${NODE}\\NODE.EXE`))
  })

  it("of npx or npm is the script of it, with the Node beside it: no shell sees the arguments (F133)", () => {
    for (const command of ["npx", "npx.cmd", `${NODE}\\npx`]) {
      assert.deepStrictEqual(
        plan(command, ["-y", "server", "%PATH% & calc"]),
        direct(`${NODE}\\node.exe`, `${NODE}\\node_modules\\npm\\bin\\npx-cli.js`, "-y", "server", "%PATH% & calc")
      )
    }
    assert.deepStrictEqual(
      plan("npm", ["start"]),
      direct(`${NODE}\\node.exe`, `${NODE}\\node_modules\\npm\\bin\\npm-cli.js`, "start")
    )
  })

  it("of an npx without its script beside it runs through cmd.exe (F133)", () => {
    assert.strictEqual(
      lineOf(plan("npx", ["-y", "server"], { Path: "C:\\tools" })),
      "\"\"C:\\tools\\npx.cmd\" \"-y\" \"server\"\""
    )
  })

  it("that is a batch file runs through cmd.exe, without AutoRun and without delayed expansion (F133)", () => {
    assert.deepStrictEqual(plan("old", ["x"]), {
      _tag: "Plan",
      file: "C:\\Windows\\System32\\cmd.exe",
      args: ["/e:ON", "/v:OFF", "/d", "/s", "/c", "\"\"C:\\tools\\old.bat\" \"x\"\""],
      verbatim: true
    })
    assert.deepInclude(plan("old", [], { ComSpec: undefined, SystemRoot: "D:\\WINNT" }), {
      file: "D:\\WINNT\\System32\\cmd.exe"
    })
  })

  it("is looked for in the order of PATHEXT, with the name as it is first where that has an extension", () => {
    assert.deepStrictEqual(plan("both"), direct("C:\\tools\\both.exe"))
    assert.include(lineOf(plan("both", [], { PATHEXT: ".CMD;.EXE" })), "both.cmd")
    assert.include(lineOf(plan("both.cmd")), "both.cmd")
    assert.deepStrictEqual(plan("v1.2"), direct("C:\\tools\\v1.2.exe"))
  })

  it("with a path is looked for from the working directory, one without never is", () => {
    assert.deepStrictEqual(plan(".\\here"), direct("C:\\work\\here.exe"))
    assert.deepStrictEqual(plan("bin/server"), direct("C:\\work\\bin\\server.exe"))
    assert.deepStrictEqual(plan("here"), { _tag: "NotFound" })
    assert.deepStrictEqual(plan("server", [], { Path: "bin;.;" }), { _tag: "NotFound" })
  })

  it("that is missing, or no program, is refused", () => {
    assert.deepStrictEqual(plan("no-such-program"), { _tag: "NotFound" })
    assert.deepStrictEqual(plan("node", [], { Path: undefined }), { _tag: "NotFound" })
    assert.deepStrictEqual(plan("C:\\tools\\script.js"), { _tag: "NotExecutable" })
    assert.deepStrictEqual(plan("script.js"), { _tag: "NotExecutable" })
  })
})

describe("an argument of a batch file", () => {
  it.each([
    ["nothing", ""],
    ["blanks", "a b  c"],
    ["a command after &", "x & calc.exe"],
    ["pipes and redirections", "| more > C:\\out < in 2>&1"],
    ["carets", "^ ^^ a^b"],
    ["parentheses", "(a) (b"],
    ["a variable", "%PATH%"],
    ["a variable with a substring", "%PATH:~0,1%"],
    ["percent signs", "100% %% %"],
    ["exclamation marks", "!PATH!"],
    ["a quote", "say \"hi\""],
    ["a quote that would end ours", "\" & calc.exe & \""],
    ["a quote before a variable", "\"%USERNAME%\""],
    ["a backslash before a quote", "a\\\"b & c"],
    ["backslashes at the end", "C:\\folder\\\\"],
    ["backslashes in the midst", "C:\\a\\b"],
    ["letters of the world", "é 漢字 🎉"]
  ])("with %s arrives as it is, and is no command (F133)", (_, arg) => {
    assert.deepStrictEqual(arrives([arg, "after"]), ["C:\\tools\\lint.cmd", arg, "after"])
  })

  const Hostile = Schema.Array(Schema.Literals(["\"", "\\", "%", "PATH", "cd", ":~,", "&", "|", "^", "!", " ", "a"]))

  it.prop("arrives as it is, whatever it is made of (F133)", [Hostile, Hostile], ([first, second]) => {
    const args = [first.join(""), second.join("")]
    assert.deepStrictEqual(arrives(args), ["C:\\tools\\lint.cmd", ...args])
  })

  it("with a line break or a NUL is refused, since no quoting carries it", () => {
    for (const arg of ["a\nb", "a\rb", "a\0b"]) {
      assert.deepStrictEqual(plan("lint", ["fine", arg]), { _tag: "InvalidArgument", index: 1 })
    }
    assert.deepStrictEqual(plan("node", ["a\nb"]), direct(`${NODE}\\node.exe`, "a\nb"))
  })
})

/**
 * Checks what the compiler does not see of the documentation:
 *
 * - every public module starts with a comment that has `@since`, and every export has one `@category` and one `@since`;
 * - the barrel lists every public module, in order;
 * - `ts` examples that start with an import type-check, in doc comments and in Markdown files;
 * - a Markdown file has no other program, unless a comment above it names the file that it is (`test/docs.test.ts`
 *   compares the two);
 * - relative links in the Markdown files lead to files, and to headings that are there.
 *
 * Run it with plain `node`. It exits with code 1 when it found something.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Comment, type Directive, parseSync, type Statement } from "oxc-parser"

const root = path.resolve(import.meta.dirname, "..")

/** Files of src/ that are public, yet no modules of the library. */
const NOT_MODULES = ["index.ts", "stdout-guard.ts", "cli.ts"]

/** Modules that the barrel exports under another name. */
const BARREL_NAMES: Record<string, string> = { Schema: "JsonRpc" }

interface Problem {
  readonly file: string
  readonly line: number
  readonly message: string
}

interface Example {
  readonly file: string
  /** Line of the first line of code, counted from 1. */
  readonly line: number
  readonly code: string
}

const problems: Array<Problem> = []
const examples: Array<Example> = []
const checked = { modules: 0, exports: 0, links: 0 }

const read = (file: string): string => fs.readFileSync(path.join(root, file), "utf8")

const list = (folder: string, extension: string, recursive = false): ReadonlyArray<string> =>
  fs.existsSync(path.join(root, folder))
    ? fs.readdirSync(path.join(root, folder), { recursive, encoding: "utf8" })
      .filter((name) => name.endsWith(extension))
      .map((name) => path.posix.join(folder, name.split(path.sep).join("/")))
      .toSorted()
    : []

const lineAt = (source: string, offset: number): number => source.slice(0, offset).split("\n").length

const parse = (file: string, source: string) => {
  const result = parseSync(file, source)
  for (const error of result.errors) {
    problems.push({ file, line: lineAt(source, error.labels[0]?.start ?? 0), message: error.message })
  }
  return { statements: result.program.body, comments: result.comments, valid: result.errors.length === 0 }
}

const isJsDoc = (comment: Comment): boolean => comment.type === "Block" && comment.value.startsWith("*")

// -----------------------------------------------------------------------------
// Doc comments of modules and exports
// -----------------------------------------------------------------------------

interface Export {
  readonly name: string
  readonly offset: number
  readonly docs: ReadonlyArray<Comment>
}

const tags = (doc: string, tag: string): ReadonlyArray<string> =>
  Array.from(doc.matchAll(new RegExp(`^[ \\t*]*@${tag}\\b(.*)$`, "gm")), (match) => (match[1] ?? "").trim())

const checkModule = (file: string, source: string): void => {
  const { comments, statements, valid } = parse(file, source)
  if (!valid) return
  checked.modules++

  const first = comments[0]
  const moduleComment = first !== undefined && first.start === 0 && isJsDoc(first) ? first : undefined
  if (moduleComment === undefined) {
    problems.push({ file, line: 1, message: "the file must start with a module comment" })
  } else if (tags(moduleComment.value, "since").length !== 1) {
    problems.push({ file, line: 1, message: "the module comment needs one @since" })
  }

  /** The doc comment right above an offset; line comments may stand between. */
  const docAbove = (offset: number): Comment | undefined => {
    for (const comment of comments.toReversed()) {
      if (comment.end > offset) continue
      if (source.slice(comment.end, offset).trim() !== "") return undefined
      if (isJsDoc(comment)) return comment === moduleComment ? undefined : comment
      offset = comment.start
    }
    return undefined
  }

  const exportsOf = (
    body: ReadonlyArray<Statement | Directive>,
    prefix: string
  ): ReadonlyArray<Export> => {
    const found: Array<Export> = []
    const add = (name: string, offset: number, ...docs: ReadonlyArray<Comment | undefined>): void => {
      found.push({ name: prefix + name, offset, docs: docs.filter((doc) => doc !== undefined) })
    }

    /** Where things are declared that an `export { name }` may mention. */
    const declared = new Map<string, number>()
    /** Overloads of a function are one export: the tags may stand on any of them, once. */
    const overloads = new Map<string, Array<number>>()

    for (const statement of body) {
      const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement
      if (declaration === null) continue
      if (declaration.type === "VariableDeclaration") {
        for (const { id } of declaration.declarations) {
          if (id.type !== "Identifier") continue
          declared.set(id.name, statement.start)
          if (declaration !== statement) add(id.name, statement.start, docAbove(statement.start))
        }
      } else if (declaration.type === "FunctionDeclaration" || declaration.type === "TSDeclareFunction") {
        const name = declaration.id?.name ?? "default"
        if (!declared.has(name)) declared.set(name, statement.start)
        if (declaration !== statement) {
          overloads.set(name, [...overloads.get(name) ?? [], statement.start])
        }
      } else if (
        declaration.type === "ClassDeclaration"
        || declaration.type === "TSInterfaceDeclaration"
        || declaration.type === "TSTypeAliasDeclaration"
        || declaration.type === "TSEnumDeclaration"
        || declaration.type === "TSModuleDeclaration"
        || declaration.type === "TSImportEqualsDeclaration"
      ) {
        const name = declaration.id === null ? "default" : source.slice(declaration.id.start, declaration.id.end)
        declared.set(name, statement.start)
        if (declaration !== statement) add(name, statement.start, docAbove(statement.start))
        if (declaration !== statement && declaration.type === "TSModuleDeclaration" && declaration.body !== null) {
          found.push(...exportsOf(declaration.body.body, `${prefix}${name}.`))
        }
      }
    }

    for (const [name, offsets] of overloads) {
      add(name, offsets[0] ?? 0, ...offsets.map(docAbove))
    }

    for (const statement of body) {
      if (statement.type === "ExportAllDeclaration") {
        add(source.slice(statement.start, statement.end), statement.start, docAbove(statement.start))
      } else if (statement.type === "ExportDefaultDeclaration") {
        add("default", statement.start, docAbove(statement.start))
      } else if (statement.type === "ExportNamedDeclaration") {
        for (const { exported, local, start } of statement.specifiers) {
          const name = source.slice(exported.start, exported.end)
          const origin = statement.source === null ? declared.get(source.slice(local.start, local.end)) : undefined
          const above = statement.specifiers.length === 1 ? docAbove(statement.start) : undefined
          add(name, start, docAbove(start) ?? above ?? (origin === undefined ? undefined : docAbove(origin)))
        }
      }
    }
    return found
  }

  for (const { docs, name, offset } of exportsOf(statements, "")) {
    checked.exports++
    const complain = (message: string) => problems.push({ file, line: lineAt(source, offset), message })
    if (docs.length === 0) {
      complain(`${name} has no doc comment`)
      continue
    }
    const text = docs.map((doc) => doc.value).join("\n")
    const categories = tags(text, "category")
    const versions = tags(text, "since")
    if (categories.length !== 1) complain(`${name} has ${categories.length} @category tags instead of one`)
    else if (!/^[a-z][a-z -]*$/.test(categories[0] ?? "")) complain(`${name}: a @category is written in lower case`)
    if (versions.length !== 1) complain(`${name} has ${versions.length} @since tags instead of one`)
    else if (!/^\d+\.\d+\.\d+$/.test(versions[0] ?? "")) complain(`${name}: @since is a version such as 0.1.0`)
  }
}

// -----------------------------------------------------------------------------
// The barrel
// -----------------------------------------------------------------------------

const checkBarrel = (file: string, modules: ReadonlyArray<string>): void => {
  if (!fs.existsSync(path.join(root, file))) {
    problems.push({ file, line: 1, message: "the barrel is missing" })
    return
  }
  const source = read(file)
  const { statements } = parse(file, source)
  // By file name, ignoring case: the order in which `npm run format` puts exports.
  const expected = modules
    .map((module) => path.basename(module, ".ts"))
    .toSorted((a, b) => a.toLowerCase() < b.toLowerCase() ? -1 : 1)
    .map((name) => `export * as ${BARREL_NAMES[name] ?? name} from "./${name}.ts"`)
  const actual = statements.map((statement) => ({
    text: source.slice(statement.start, statement.end).replace(/\s+/g, " ").replace(/;$/, ""),
    line: lineAt(source, statement.start)
  }))
  for (const line of expected) {
    if (!actual.some(({ text }) => text === line)) problems.push({ file, line: 1, message: `missing: ${line}` })
  }
  for (const { line, text } of actual) {
    if (!expected.includes(text)) problems.push({ file, line, message: `does not belong here: ${text}` })
  }
  const known = actual.filter(({ text }) => expected.includes(text))
  const order = expected.filter((line) => known.some(({ text }) => text === line))
  const misplaced = known.find(({ text }, index) => text !== order[index])
  if (misplaced !== undefined) {
    problems.push({ file, line: misplaced.line, message: "exports must be sorted by file name, each once" })
  }
}

// -----------------------------------------------------------------------------
// Examples
// -----------------------------------------------------------------------------

const TYPESCRIPT = ["ts", "typescript"]
const PROGRAMS = [...TYPESCRIPT, "js", "javascript", "mjs"]

/** Finds the `ts` blocks whose first line of code is an import. `firstLine` is the line of `lines[0]` in the file. */
const collectExamples = (file: string, lines: ReadonlyArray<string>, firstLine: number): void => {
  let open:
    | { readonly ticks: string; readonly language: string; readonly indent: number; readonly start: number }
    | undefined
  lines.forEach((line, index) => {
    const fence = /^(\s*)(`{3,}|~{3,})\s*(\S*)/.exec(line)
    const [indent, ticks, language] = [fence?.[1] ?? "", fence?.[2] ?? "", fence?.[3] ?? ""]
    if (open === undefined) {
      if (ticks !== "") open = { ticks, language, indent: indent.length, start: index + 1 }
      return
    }
    if (!ticks.startsWith(open.ticks) || language !== "") return
    const { indent: width, language: opened, start } = open
    open = undefined
    if (!PROGRAMS.includes(opened)) return
    const block = lines.slice(start, index).map((code) => code.slice(0, width).trim() === "" ? code.slice(width) : code)
    const firstCode = block.find((code) => code.trim() !== "" && !code.startsWith("//"))
    const above = lines.slice(0, start - 1).findLast((line) => line.trim() !== "") ?? ""
    const isFile = above.startsWith("<!-- file: ")
    if (firstCode?.startsWith("import") === true && (TYPESCRIPT.includes(opened) || !isFile)) {
      examples.push({ file, line: firstLine + start, code: block.join("\n") })
    } else if (file.endsWith(".md") && !isFile) {
      const message = "the program is neither a file of the project (<!-- file: … -->) nor a module that can be checked"
      problems.push({ file, line: firstLine + start, message })
    }
  })
  if (open !== undefined) {
    problems.push({ file, line: firstLine + open.start - 1, message: "the code block is never closed" })
  }
}

const collectDocExamples = (file: string, source: string): void => {
  for (const comment of parse(file, source).comments.filter(isJsDoc)) {
    const lines = comment.value.split("\n").map((line) => line.replace(/^\s*\* ?/, ""))
    collectExamples(file, lines, lineAt(source, comment.start))
  }
}

/** Type-checks all examples in one run of the compiler, from inside the package, so that they import it by name. */
const checkExamples = (): void => {
  if (examples.length === 0) return
  const folder = fs.mkdtempSync(path.join(root, ".docs-check-"))
  try {
    const byFile = new Map(examples.map((example, index) => [`example${index + 1}.ts`, example]))
    for (const [name, { code, line }] of byFile) {
      // Blank lines above make the line numbers of the compiler those of the documentation.
      fs.writeFileSync(path.join(folder, name), "\n".repeat(line - 1) + code + "\n")
    }
    fs.writeFileSync(
      path.join(folder, "tsconfig.json"),
      JSON.stringify({
        extends: "../tsconfig.json",
        compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
        include: ["*.ts"]
      })
    )
    const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")
    const run = spawnSync(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { cwd: root, encoding: "utf8" })
    let elsewhere = 0
    let mapped = 0
    for (const line of run.stdout.split("\n")) {
      const [, file = "", lineNumber, message = ""] = /^(.+?)\((\d+),\d+\): error (.+)$/.exec(line) ?? []
      if (file === "") continue
      const example = byFile.get(path.basename(file))
      if (example === undefined || !file.includes(path.basename(folder))) {
        elsewhere++
        continue
      }
      mapped++
      problems.push({ file: example.file, line: Number(lineNumber), message: `example: ${message}` })
    }
    if (elsewhere > 0) {
      const message = `${elsewhere} type errors in what the examples import: see npm run check`
      problems.push({ file: "src", line: 1, message })
    } else if (run.status !== 0 && mapped === 0) {
      const message = `the compiler failed: ${run.error?.message ?? (run.stdout + run.stderr).trim()}`
      problems.push({ file: "tsconfig.json", line: 1, message })
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

// -----------------------------------------------------------------------------
// Links
// -----------------------------------------------------------------------------

const blank = (code: string): string => code.replace(/[^\n]/g, " ")

const withoutBlocks = (source: string): string => source.replace(/^\s*(`{3,}|~{3,})[\s\S]*?^\s*\1\s*$/gm, blank)

/** What the headings of a Markdown file are called in links, as GitHub does it; nobody needs the second of two equal ones. */
const anchors = (source: string): ReadonlySet<string> =>
  new Set(
    Array.from(withoutBlocks(source).matchAll(/^#+ +(.+?) *$/gm), ([, heading = ""]) =>
      heading.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-"))
  )

const checkLinks = (file: string, source: string): void => {
  const prose = withoutBlocks(source).replace(/`[^`\n]*`/g, blank)
  for (const match of prose.matchAll(/\]\(\s*<?([^)\s>]+)[^)]*\)|^\s*\[[^\]]+\]:\s*<?([^\s>]+)/gm)) {
    const target = match[1] ?? match[2] ?? ""
    if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)) continue
    checked.links++
    const relative = decodeURI(target.replace(/[#?].*$/, ""))
    const resolved = relative === "" ? path.resolve(root, file) : path.resolve(root, path.dirname(file), relative)
    const inside = resolved === root || resolved.startsWith(root + path.sep)
    const [, anchor] = target.split("#")
    if (
      relative.startsWith("/") || !inside || !fs.existsSync(resolved)
      || (anchor !== undefined && resolved.endsWith(".md") && !anchors(fs.readFileSync(resolved, "utf8")).has(anchor))
    ) {
      problems.push({ file, line: lineAt(source, match.index), message: `broken link: ${target}` })
    }
  }
}

// -----------------------------------------------------------------------------

const modules = list("src", ".ts").filter((file) => !NOT_MODULES.includes(path.basename(file)))
const pages = [...list(".", ".md"), ...list("docs", ".md"), ...list("examples", ".md", true)]

for (const file of modules) checkModule(file, read(file))
checkBarrel("src/index.ts", modules)
for (const file of list("src", ".ts", true)) collectDocExamples(file, read(file))
for (const file of pages) collectExamples(file, read(file).split("\n"), 1)
checkExamples()
for (const file of pages) checkLinks(file, read(file))

// A file that does not parse is seen by two checks.
const lines = new Set(problems.map(({ file, line, message }) => `${file}:${line}: ${message}`))
for (const line of lines) console.log(line)
console.log(
  `docs: ${checked.modules} modules, ${checked.exports} exports, ${examples.length} examples, ${checked.links} links; `
    + (lines.size === 0 ? "all good" : `${lines.size} problem${lines.size === 1 ? "" : "s"}`)
)
process.exitCode = lines.size === 0 ? 0 : 1

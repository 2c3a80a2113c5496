/**
 * Compiles patterns, finds what they match, and explains what is wrong with those that cannot match.
 *
 * ast-grep is silent about most mistakes: it finds nothing. So the pattern is parsed as code once more here, and refused
 * where the parser had to guess.
 *
 * @since 0.1.0
 */
import { parse, type SgNode } from "@ast-grep/napi"
import * as Effect from "effect/Effect"
import { type AstGrepError, BadPattern, fail } from "./AstGrepError.ts"
import type { Language } from "./languages.ts"
import * as Parsing from "./parsing.ts"

const MAX_LENGTH = 5_000
const MAX_COMPARED_TOKENS = 10_000
/** ast-grep calls itself for each level of what it compares, and has room for about 20,000. */
const MAX_DEPTH = 5_000

/**
 * What a metavariable stands for in a match.
 *
 * @category models
 * @since 0.1.0
 */
export interface Capture {
  readonly name: string
  /** Whether it stands for any number of nodes. */
  readonly isMultiple: boolean
  /** One, or any number, with the commas and the like between them. */
  readonly nodes: ReadonlyArray<SgNode>
}

/**
 * A piece of code that a pattern matches. Offsets are UTF-16 code units.
 *
 * @category models
 * @since 0.1.0
 */
export interface Match {
  readonly start: number
  readonly end: number
  /** In the order of their names in the pattern. */
  readonly captures: () => ReadonlyArray<Capture>
}

/**
 * A pattern that can match.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pattern {
  /** The names of the metavariables that keep what they stand for. */
  readonly names: ReadonlyArray<string>
  /** A name such as `$foo` in the pattern, which is none of a metavariable. */
  readonly suspect: string | undefined
  /** Parses code and finds the matches, by their start, the outer one first; `undefined` when parsing takes too long. */
  readonly find: (code: string) => Effect.Effect<Found | undefined>
}

/**
 * What is found in the code of a file.
 *
 * @category models
 * @since 0.1.0
 */
export interface Found {
  readonly matches: ReadonlyArray<Match>
  /** Whether the code has syntax errors: matches may be missing around them. */
  readonly hasErrors: boolean
}

/**
 * Compiles a pattern. With a selector only the node of this kind in it is sought.
 *
 * @category constructors
 * @since 0.1.0
 */
export const compile = Effect.fnUntraced(function*(
  language: Language,
  text: string,
  selector?: string
): Effect.fn.Return<Pattern, AstGrepError> {
  const bad = (problem: BadPattern["problem"], more?: { readonly part?: string; readonly cause?: unknown }) =>
    fail(new BadPattern({ language: language.name, problem, ...more }))
  if (text.trim() === "") return yield* bad("Empty")
  if (text.length > MAX_LENGTH) {
    return yield* fail(new BadPattern({ language: language.name, problem: "TooLong", maxLength: MAX_LENGTH }))
  }
  if (/[\0\p{Surrogate}]/u.test(text)) return yield* bad("Characters")
  const alone = /^\s*(\${1,3}(?:[A-Z_][A-Z0-9_]*)?)\s*$/.exec(text)?.[1]
  if (alone !== undefined) return yield* bad("OnlyVariable", { part: alone === "$" ? "$A" : alone })

  const readable = text.replace(SIGILS, (sigils) => language.sigil.repeat(sigils.length))
  const leaves = leavesOf(parse(language.name, readable).root())
  const variables = leaves.flatMap(({ end, kind, start }) => {
    const variable = VARIABLE.exec(text.slice(start, end))
    return variable === null ? [] : [{ start, end, kind, sigils: variable[1] ?? "", name: variable[2] ?? "" }]
  })
  const broken = brokenPart(leaves, text)
  const suspect = suspectIn(leaves, text) ?? (broken?.problem === "Syntax" ? SUSPECT.exec(text)?.[0] : undefined)
  if (variables.length === 0 && suspect !== undefined) return yield* bad("LowerCase", { part: suspect })

  const named = variables.filter(({ name }) => name !== "" && !name.startsWith("_"))
  const aliases = aliasesOf(named)
  let unique = text
  for (const { alias, end, sigils, start } of aliases.toReversed()) {
    unique = unique.slice(0, start) + sigils + alias + unique.slice(end)
  }
  const matcherOf = (context: string) => ({
    rule: { pattern: selector === undefined ? context : { context, selector } }
  })
  const matcher = matcherOf(unique)
  const refusal = refusalOf(() => parse(language.name, "").root().find(matcher))
  const problem = refusal === undefined ? undefined : problemOf(refusal.message)
  // what the parser stumbled over says more than what ast-grep then makes of it
  const isGuess = problem === undefined || problem === "SeveralNodes" || problem === "AbsentSelector"
  if (broken !== undefined && isGuess) return yield* bad(broken.problem, { part: broken.part })
  if (problem !== undefined) {
    const part = problem === "OnlyVariables" ? text.trim() : selector ?? ""
    return yield* bad(problem, { part, cause: refusal?.cause })
  }

  const captureOf = (match: SgNode, { alias, sigils }: Alias): ReadonlyArray<SgNode> => {
    if (sigils === "$$$") return match.getMultipleMatches(alias)
    const node = match.getMatch(alias)
    return node === null ? [] : [node]
  }
  const repeated = aliases.filter(({ alias, name }) => alias !== name)
  // ast-grep passes over what is left of a node behind the end of the pattern, such as an else, unless it is relaxed
  const isWhole = (match: SgNode, context: string) =>
    match.matches({
      rule: { pattern: { context, strictness: "relaxed", ...(selector === undefined ? {} : { selector }) } }
    })
  const trimmed = trimmerOf(parse(language.name, readable).root(), text)
  const first = aliases.filter(({ name }, index) => aliases.findIndex((other) => other.name === name) === index)
  const isSame = (match: SgNode) =>
    repeated.every((again) =>
      first.some((variable) =>
        variable.name === again.name && sameCode(captureOf(match, variable), captureOf(match, again))
      )
    )
  return {
    names: first.map(({ name }) => name),
    suspect,
    find: (code) =>
      Effect.map(Parsing.parse(language.name, code), (tree) => {
        if (tree === undefined) return undefined
        const root = tree.root()
        const isSimple = repeated.every(({ sigils }) => sigils !== "$$$")
        const isNative = repeated.length > 0 && isSimple && isShallow(root)
        const context = isNative ? text : unique
        const found = root.findAll(isNative ? matcherOf(text) : matcher).filter((match) =>
          isWhole(match, context) && (repeated.length === 0 || isNative || isSame(match))
        )
        return {
          matches: found.map((match) => {
            const { end, start } = match.range()
            return {
              start: start.index,
              end: code[end.index - 1] === ";" ? trimmed(match) : end.index,
              captures: () =>
                first.map((variable) => ({
                  name: variable.name,
                  isMultiple: variable.sigils === "$$$",
                  nodes: captureOf(match, variable)
                }))
            }
          }),
          hasErrors: root.find(ERROR) !== null
        }
      })
  }
})

/** Whether no node is in more than `MAX_DEPTH` others, or nearly so: one of few characters has few levels. */
const isShallow = (root: SgNode): boolean => {
  const rest = [{ node: root, depth: 0 }]
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const { depth, node } = next
    const { end, start } = node.range()
    if (end.index - start.index <= MAX_DEPTH) continue
    if (depth >= MAX_DEPTH) return false
    rest.push(...node.children().map((node) => ({ node, depth: depth + 1 })))
  }
  return true
}

/** The end of a match without a semicolon that the pattern does not have: it belongs to what is around it. */
const trimmerOf = (pattern: SgNode, text: string) => (match: SgNode): number => {
  let [mine, theirs] = [match, nodeOfKind(pattern, match.kind())] as [SgNode | undefined, SgNode | undefined]
  while (mine !== undefined && theirs !== undefined) {
    const { end, start } = theirs.range()
    if (VARIABLE.test(text.slice(start.index, end.index))) break
    const last = mine.children().at(-1)
    const other = theirs.children().at(-1)
    if (last?.kind() === ";" && other?.kind() !== ";") {
      return mine.children().at(-2)?.range().end.index ?? match.range().end.index
    }
    if (last?.kind() !== other?.kind()) break
    mine = last
    theirs = other
  }
  return match.range().end.index
}

const nodeOfKind = (root: SgNode, kind: string | number): SgNode | undefined => {
  const rest = [root]
  for (let node = rest.pop(); node !== undefined; node = rest.pop()) {
    if (node.kind() === kind) return node
    rest.push(...node.children().toReversed())
  }
  return undefined
}

/** What ast-grep says against a pattern; it only says it when the pattern is used. */
const refusalOf = (use: () => unknown): { readonly message: string; readonly cause: unknown } | undefined => {
  try {
    use()
    return undefined
  } catch (cause) {
    return { message: String(cause), cause }
  }
}

const problemOf = (message: string): BadPattern["problem"] => {
  if (message.includes("Multiple AST nodes")) return "SeveralNodes"
  if (message.includes("Standalone multi meta variable")) return "OnlyVariables"
  if (/Kind .* is invalid/.test(message)) return "UnknownSelector"
  return message.includes("matches no node") ? "AbsentSelector" : "Refused"
}

const ERROR = { rule: { kind: "ERROR" } }

/** What a parser must be able to read as a name: sigils before a name, and three of them alone. */
const SIGILS = /\$+(?=[A-Z_])|(?<!\$)\$\$\$(?!\$)/g

const SUSPECT = /\$+[a-z][A-Za-z0-9_]*/

/** A name with a sigil that is none of a metavariable. */
const suspectIn = (leaves: ReadonlyArray<Leaf>, text: string): string | undefined =>
  leaves
    .filter(({ kind }) => !/string|comment|text/.test(kind))
    .map(({ end, start }) => text.slice(start, end))
    .find((leaf) => SUSPECT.exec(leaf)?.[0] === leaf)

const VARIABLE = /^(\${1,3})([A-Z_][A-Z0-9_]*)$|^\$\$\$$/

interface Variable {
  readonly start: number
  readonly end: number
  readonly kind: string
  readonly sigils: string
  readonly name: string
}

interface Alias extends Variable {
  readonly alias: string
}

/**
 * Gives each metavariable that is there twice a name of its own. ast-grep would compare what both stand for by calling
 * itself for each level of it, and end the process where code is nested very deeply. The names of tags have no levels, and
 * those of an HTML element must be the same for its parser.
 */
const aliasesOf = (variables: ReadonlyArray<Variable>): ReadonlyArray<Alias> => {
  const names = new Set<string>()
  const taken = new Set(variables.map(({ name }) => name))
  return variables.map((variable) => {
    let alias = variable.name
    if (names.has(variable.name) && variable.kind !== "tag_name") {
      for (let number = 2; taken.has(alias); number++) alias = `${variable.name}_${number}`
      taken.add(alias)
    }
    names.add(variable.name)
    return { ...variable, alias }
  })
}

/** Whether two pieces of code are the same but for the space between their tokens. */
const sameCode = (left: ReadonlyArray<SgNode>, right: ReadonlyArray<SgNode>): boolean => {
  if (left.length !== right.length) return false
  // most are not; and all of a long text is only looked at where it may be
  if (!left.every((node, index) => node.kind() === right[index]?.kind())) return false
  const [lefts, rights] = [left, right].map((nodes) => nodes.map((node) => node.text()))
  if (lefts?.every((text, index) => text === rights?.[index]) === true) return true
  const [a, b] = [left, right].map((nodes) => nodes.flatMap((node) => leavesOf(node, MAX_COMPARED_TOKENS)))
  return a !== undefined && a.length === b?.length && a.length < MAX_COMPARED_TOKENS &&
    a.every(({ text }, index) => text === b[index]?.text)
}

interface Leaf {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly kind: string
  readonly isNamed: boolean
  /** Whether it is in what the parser could not read. */
  readonly isError: boolean
}

const leavesOf = (root: SgNode, max = Infinity): ReadonlyArray<Leaf> => {
  const leaves: Array<Leaf> = []
  const rest: Array<{ readonly node: SgNode; readonly isError: boolean }> = [{ node: root, isError: false }]
  for (let next = rest.pop(); next !== undefined && leaves.length < max; next = rest.pop()) {
    const { node } = next
    const isError = next.isError || node.kind() === "ERROR"
    if (node.isLeaf()) {
      const { end, start } = node.range()
      const kind = String(node.kind())
      leaves.push({ start: start.index, end: end.index, text: node.text(), kind, isNamed: node.isNamed(), isError })
    } else rest.push(...node.children().toReversed().map((node) => ({ node, isError })))
  }
  return leaves
}

/**
 * Where the parser had to guess: it left something out, or added what was missing. A metavariable may stand where a name
 * may not, as for the declarations of a CSS rule: ast-grep understands that.
 */
const brokenPart = (
  leaves: ReadonlyArray<Leaf>,
  text: string
): { readonly problem: "Syntax" | "Incomplete"; readonly part: string } | undefined => {
  for (const { end, isError, kind, start, text: added } of leaves) {
    const part = text.slice(start, end)
    if (isError && !VARIABLE.test(part)) return { problem: "Syntax", part: text.slice(start).trim() }
    if (start === end && kind !== "raw_text" && leaves.length > 1) {
      return { problem: "Incomplete", part: added === "" ? kind : added }
    }
  }
  return undefined
}

/**
 * Why code cannot be searched or rewritten, in words that tell the reader what to do next.
 *
 * What is wrong with a single file is a `FileError`, of `../shared/FileError.ts`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { quote } from "../shared/FileError.ts"

const MAX_LISTED = 20

/**
 * There is no language of this name; `known` are those there are.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnknownLanguage extends Schema.TaggedError<UnknownLanguage>()("UnknownLanguage", {
  language: Schema.String,
  known: Schema.Array(Schema.String)
}) {}

/**
 * The pattern is none, or it could never match. `part` is the piece that is wrong, where there is one.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadPattern extends Schema.TaggedError<BadPattern>()("BadPattern", {
  language: Schema.String,
  problem: Schema.Literals([
    "Empty",
    "TooLong",
    "Characters",
    "OnlyVariable",
    "OnlyVariables",
    "LowerCase",
    "Syntax",
    "Incomplete",
    "SeveralNodes",
    "UnknownSelector",
    "AbsentSelector",
    "Refused"
  ]),
  part: Schema.optionalKey(Schema.String),
  maxLength: Schema.optionalKey(Schema.Int),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/**
 * The rewrite names a metavariable that the pattern does not have, or is no text that can be written.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadRewrite extends Schema.TaggedError<BadRewrite>()("BadRewrite", {
  problem: Schema.Literals(["UnknownVariable", "Unnamed", "TooLong", "Characters"]),
  variable: Schema.optionalKey(Schema.String),
  known: Schema.Array(Schema.String),
  maxLength: Schema.optionalKey(Schema.Int)
}) {}

/**
 * A glob that is none, or that leads out of the root folder.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadGlob extends Schema.TaggedError<BadGlob>()("BadGlob", {
  glob: Schema.String,
  problem: Schema.Literals([
    "Empty",
    "TooLong",
    "TooMany",
    "Absolute",
    "Parent",
    "Backslash",
    "Characters",
    "Bracket",
    "Brace",
    "TooManyBraces"
  ])
}) {}

/**
 * The cursor is not one that this server gave out for this search.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadCursor extends Schema.TaggedError<BadCursor>()("BadCursor", {
  problem: Schema.Literals(["Unreadable", "OtherSearch"])
}) {}

/**
 * More than one replacement may look at or change: `what` says of what.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooMuch extends Schema.TaggedError<TooMuch>()("TooMuch", {
  what: Schema.Literals(["files looked at", "files changed", "bytes changed", "seconds"]),
  max: Schema.Finite
}) {}

/**
 * What would be written is not what the dry run showed.
 *
 * @category errors
 * @since 0.1.0
 */
export class ResultChanged extends Schema.TaggedError<ResultChanged>()("ResultChanged", {}) {}

/**
 * The one error of this module.
 *
 * @category errors
 * @since 0.1.0
 */
export class AstGrepError extends Schema.TaggedError<AstGrepError>()("AstGrepError", {
  reason: Schema.Union([UnknownLanguage, BadPattern, BadRewrite, BadGlob, BadCursor, TooMuch, ResultChanged])
}) {
  override get message(): string {
    return describe(this.reason)
  }
}

/**
 * Fails with an `AstGrepError`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: AstGrepError["reason"]): Effect.Effect<never, AstGrepError> =>
  Effect.fail(new AstGrepError({ reason }))

const list = (names: ReadonlyArray<string>): string =>
  names.slice(0, MAX_LISTED).join(", ") + (names.length > MAX_LISTED ? " and more" : "")

const forParts = (language: string): string => {
  const example = language === "Css"
    ? "a { $PROPERTY: $VALUE } with declaration"
    : language === "Html"
    ? "<a $NAME=\"$VALUE\"></a> with attribute"
    : "class X { $M($$$) { $$$ } } with method_definition"
  return `For a part of one, write the whole around it and name the kind of the part as selector, such as ${example}.`
}

const describePattern = ({ language, maxLength, part, problem }: BadPattern): string => {
  const piece = quote(part ?? "")
  switch (problem) {
    case "Empty":
      return "The pattern is empty. Write a piece of code, such as console.log($$$ARGS)."
    case "TooLong":
      return `The pattern has more than ${maxLength} characters. Shorten it: $$$ stands for any number of nodes.`
    case "Characters":
      return "The pattern has a character that no source file can have: half of a surrogate pair or a NUL."
    case "OnlyVariable":
      return `${piece} alone matches every piece of code. Put it into some code, such as f(${part}).`
    case "OnlyVariables":
      return `${piece} alone is no piece of code. Put it into some, such as f(${part}).`
    case "LowerCase":
      return `${piece} is no metavariable: their names are capitals, digits and _, such as ` +
        `${(part ?? "").replace(/[a-z].*/s, (name) => name.toUpperCase())}. The code may have ` +
        "such a name: then put a metavariable into the pattern, too."
    case "Syntax":
      return `The pattern is not valid ${language}, at ${piece}. Write one whole piece of code. ${forParts(language)}`
    case "Incomplete":
      return `The pattern is not complete: ${language} expects ${piece} in it or at its end. Write the whole piece of ` +
        "code; $$$ stands for any number of statements or arguments."
    case "SeveralNodes":
      return `The pattern is several pieces of ${language}, and it may be one. Search for one of them. ` +
        forParts(language)
    case "UnknownSelector":
      return `${language} has no kind of node that is called ${piece}. A selector is a kind of its tree-sitter ` +
        "grammar, such as method_definition."
    case "AbsentSelector":
      return `No node of the kind ${piece} is in the pattern. Write a pattern that has one in it, or leave selector out.`
    case "Refused":
      return `The pattern cannot be used in ${language}. Write one whole piece of code.`
  }
}

const describeRewrite = ({ known, maxLength, problem, variable }: BadRewrite): string => {
  const named = known.length === 0 ? "the pattern names none" : `the pattern has ${list(known)}`
  switch (problem) {
    case "UnknownVariable":
      return `The rewrite uses ${quote(variable ?? "")}, but ${named}. Use one of the pattern, or add it there.`
    case "Unnamed":
      return `The rewrite uses ${
        quote(variable ?? "")
      }, which keeps nothing: ${named}. Give it a name in both, such as ` +
        "$$$ARGS; names that begin with _ keep nothing."
    case "TooLong":
      return `The rewrite has more than ${maxLength} characters. Shorten it.`
    case "Characters":
      return "The rewrite has a character that no source file can have: half of a surrogate pair or a NUL."
  }
}

const globProblems: Record<BadGlob["problem"], string> = {
  Empty: "is empty. Write a path, such as src/**/*.ts, or leave it out.",
  TooLong: "is longer than 500 characters. Write a shorter one.",
  TooMany: "is one too many: at most 50 globs can be given. Use ** and * instead of single paths.",
  Absolute: "is absolute. Write it relative to the server's folder, without / at its start.",
  Parent: "leads out of the server's folder. Write it without ..",
  Backslash: "has a backslash. Write / between folders; no character is escaped.",
  Characters: "has a character that no path can have.",
  Bracket: "has [ without ], or a range that is none. Write [abc], [a-z] or [!a-z]; [[] for the character itself.",
  Brace: "has { without }, or } without {. Write {a,b}; [{] for the character itself.",
  TooManyBraces: "stands for more than 100 globs. Use fewer braces."
}

const describe = (reason: AstGrepError["reason"]): string => {
  switch (reason._tag) {
    case "UnknownLanguage":
      return `There is no language ${quote(reason.language)}. Use one of ${list(reason.known)}.`
    case "BadPattern":
      return describePattern(reason)
    case "BadRewrite":
      return describeRewrite(reason)
    case "BadGlob":
      return `The glob ${quote(reason.glob)} ${globProblems[reason.problem]}`
    case "BadCursor":
      return reason.problem === "Unreadable"
        ? "The cursor is not valid. Pass nextCursor of the page before unchanged, or start without a cursor."
        : "The cursor belongs to another search. Pass the same pattern, selector, language and globs, or start without it."
    case "TooMuch":
      return `One replacement may take ${reason.max} ${reason.what}, and this one needs more. Nothing was written. ` +
        "Name fewer files with globs, and replace in several calls."
    case "ResultChanged":
      return "The files, or the call, are not those of the dry run that gave this version. Nothing was written. " +
        "Make a dry run again, and look at what it shows."
  }
}

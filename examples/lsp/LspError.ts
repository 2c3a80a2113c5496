/**
 * Why a language server has no answer, in words that tell the reader what to do next.
 *
 * What is wrong with a file itself is a `FileError`. Where the server keeps its files is in neither.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { quote } from "../shared/FileError.ts"

const MAX_LISTED = 30
const MAX_DETAIL = 2_000

/**
 * No server of the table knows files with this ending; `endings` are those that are known.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnknownLanguage extends Schema.TaggedError<UnknownLanguage>()("UnknownLanguage", {
  file: Schema.String,
  endings: Schema.Array(Schema.String)
}) {}

/**
 * The program of a language server is not there; `install` says how it comes there.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotInstalled extends Schema.TaggedError<NotInstalled>()("NotInstalled", {
  server: Schema.String,
  command: Schema.String,
  install: Schema.String
}) {}

/**
 * A language server did not start, or was not ready in time, or ended again and again; `detail` is why.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotReady extends Schema.TaggedError<NotReady>()("NotReady", {
  server: Schema.String,
  detail: Schema.String
}) {}

/**
 * A language server ended while it was asked; `detail` is how, with the end of its standard error.
 *
 * @category errors
 * @since 0.1.0
 */
export class ServerEnded extends Schema.TaggedError<ServerEnded>()("ServerEnded", {
  server: Schema.String,
  detail: Schema.String
}) {}

/**
 * A language server runs and did not answer in time.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoAnswer extends Schema.TaggedError<NoAnswer>()("NoAnswer", {
  server: Schema.String,
  method: Schema.String
}) {}

/**
 * A language server answered with an error; `detail` is what it said.
 *
 * @category errors
 * @since 0.1.0
 */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  server: Schema.String,
  method: Schema.String,
  detail: Schema.String
}) {}

/**
 * A language server answered with something that the protocol does not know.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadAnswer extends Schema.TaggedError<BadAnswer>()("BadAnswer", {
  server: Schema.String,
  method: Schema.String,
  detail: Schema.String
}) {}

/**
 * This language server cannot do that.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotSupported extends Schema.TaggedError<NotSupported>()("NotSupported", {
  server: Schema.String,
  method: Schema.String
}) {}

/**
 * Nothing says which server should be asked.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoServer extends Schema.TaggedError<NoServer>()("NoServer", {}) {}

/**
 * A line takes a column or a symbol to be a position, and only one of them.
 *
 * @category errors
 * @since 0.1.0
 */
export class AmbiguousPosition extends Schema.TaggedError<AmbiguousPosition>()("AmbiguousPosition", {
  given: Schema.Literals(["both", "neither"])
}) {}

/**
 * The file has fewer lines.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoSuchLine extends Schema.TaggedError<NoSuchLine>()("NoSuchLine", {
  file: Schema.String,
  line: Schema.Int,
  lines: Schema.Int
}) {}

/**
 * The line is shorter.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoSuchColumn extends Schema.TaggedError<NoSuchColumn>()("NoSuchColumn", {
  line: Schema.Int,
  column: Schema.Int,
  columns: Schema.Int
}) {}

/**
 * The symbol is not on the line; `names` are the ones that are.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoSuchSymbol extends Schema.TaggedError<NoSuchSymbol>()("NoSuchSymbol", {
  line: Schema.Int,
  symbol: Schema.String,
  names: Schema.Array(Schema.String)
}) {}

/**
 * A rename that cannot be made, as a whole; `subject` is the file, or what the server said.
 *
 * @category errors
 * @since 0.1.0
 */
export class RenameRefused extends Schema.TaggedError<RenameRefused>()("RenameRefused", {
  problem: Schema.Literals([
    "Nothing",
    "Same",
    "Outside",
    "FileOperation",
    "Overlap",
    "BadRange",
    "LineEnds",
    "Version"
  ]),
  subject: Schema.String
}) {}

/**
 * Why a language server has no answer.
 *
 * @category errors
 * @since 0.1.0
 */
export class LspError extends Schema.TaggedError<LspError>()("LspError", {
  reason: Schema.Union([
    UnknownLanguage,
    NotInstalled,
    NotReady,
    ServerEnded,
    NoAnswer,
    Refused,
    BadAnswer,
    NotSupported,
    NoServer,
    AmbiguousPosition,
    NoSuchLine,
    NoSuchColumn,
    NoSuchSymbol,
    RenameRefused
  ])
}) {
  override get message(): string {
    return describe(this.reason)
  }
}

/**
 * Fails with an `LspError`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: LspError["reason"]): Effect.Effect<never, LspError> =>
  Effect.fail(new LspError({ reason }))

const describe = (reason: LspError["reason"]): string => {
  switch (reason._tag) {
    case "UnknownLanguage":
      return `No language server is known for ${quote(reason.file)}. Known endings: ${reason.endings.join(" ")}. ` +
        "A configuration file can add a server."
    case "NotInstalled":
      return `The language server ${quote(reason.server)} is not installed: there is no program ` +
        `${quote(reason.command)}. ${reason.install}`
    case "NotReady":
      return `The language server ${quote(reason.server)} is not ready: ${detail(reason)}`
    case "ServerEnded":
      return `The language server ${quote(reason.server)} ended while it was asked, and is started again. ` +
        `Call again. How it ended: ${detail(reason)}`
    case "NoAnswer":
      return `The language server ${quote(reason.server)} did not answer ${reason.method} in time. ` +
        "Call again later; the tool status says what it is doing."
    case "Refused":
      return `The language server ${quote(reason.server)} refused ${reason.method}: ${detail(reason)}`
    case "BadAnswer":
      return `The answer of the language server ${quote(reason.server)} to ${reason.method} cannot be read: ` +
        detail(reason)
    case "NotSupported":
      return `The language server ${quote(reason.server)} does not know ${reason.method}. Use another tool.`
    case "NoServer":
      return "No language server is running. Name any file of the language in the parameter file."
    case "AmbiguousPosition":
      return reason.given === "both"
        ? "Give column or symbol, not both."
        : "Give column, or symbol: a name that stands on the line."
    case "NoSuchLine":
      return `${quote(reason.file)} has ${count(reason.lines, "line")}, there is no line ${reason.line}. ` +
        "Lines are counted from 1."
    case "NoSuchColumn":
      return `Line ${reason.line} has ${count(reason.columns, "column")}, there is no column ${reason.column}. ` +
        "Give symbol instead, a name that stands on the line."
    case "NoSuchSymbol":
      return `${quote(reason.symbol)} does not stand on line ${reason.line} as a whole word. ${names(reason.names)}`
    case "RenameRefused":
      return `Nothing was renamed. ${problems[reason.problem](reason.subject)}`
  }
}

const problems: Record<RenameRefused["problem"], (subject: string) => string> = {
  Nothing: () => "There is nothing at this position that can be renamed. Point at a name.",
  Same: () => "Everything has that name already.",
  Outside: (file) => `The rename would change ${quote(file)}, which is outside of the server's folder.`,
  FileOperation: (kind) =>
    `The rename would also ${quote(kind)} a file, which this server does not do. Do it in an editor.`,
  Overlap: (file) => `The language server gave changes of ${quote(file)} that overlap.`,
  BadRange: (file) => `The language server gave a change of ${quote(file)} that is not in the file.`,
  LineEnds: (file) =>
    `In ${
      quote(file)
    } there are U+2028 or U+2029, which some language servers count as ends of lines and others do not. ` +
    "Replace them first.",
  Version: (file) => `${quote(file)} changed while the language server worked. Call again.`
}

const names = (names: ReadonlyArray<string>): string =>
  names.length === 0
    ? "No name stands there."
    : `What stands there: ${names.slice(0, MAX_LISTED).map(quote).join(", ")}${
      names.length > MAX_LISTED ? " and more" : ""
    }.`

/** The end of it: that of a standard error says most. */
const detail = ({ detail }: { readonly detail: string }): string =>
  detail.length > MAX_DETAIL ? `${detail.slice(0, MAX_DETAIL / 4)} … ${detail.slice(-MAX_DETAIL * 3 / 4)}` : detail

const count = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

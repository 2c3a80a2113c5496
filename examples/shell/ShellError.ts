/**
 * Why a command was not run, in words that tell the reader what to do next.
 *
 * A command that ran and failed is no error: its result says how it ended.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { quote } from "../shared/FileError.ts"

/**
 * There is no bash where one was looked for.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoBash extends Schema.TaggedError<NoBash>()("NoBash", { platform: Schema.String }) {}

/**
 * A variable of the server's environment names a bash, and it is none that can be used. Nothing else is taken instead.
 *
 * @category errors
 * @since 0.1.0
 */
export class WrongBash extends Schema.TaggedError<WrongBash>()("WrongBash", {
  variable: Schema.String,
  value: Schema.String,
  why: Schema.String
}) {}

/**
 * The command cannot be given to bash.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadCommand extends Schema.TaggedError<BadCommand>()("BadCommand", {
  problem: Schema.Literals(["Empty", "Nul", "Malformed", "TooLong"]),
  bytes: Schema.Int,
  maxBytes: Schema.Int
}) {}

/**
 * The timeout is not a whole number of milliseconds in the range.
 *
 * @category errors
 * @since 0.1.0
 */
export class BadTimeout extends Schema.TaggedError<BadTimeout>()("BadTimeout", {
  timeout: Schema.Finite,
  max: Schema.Int
}) {}

/**
 * As many commands run already as may run at the same time.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooMany extends Schema.TaggedError<TooMany>()("TooMany", { max: Schema.Int }) {}

/**
 * The system did not start bash; `code` is what it said, such as EAGAIN.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotStarted extends Schema.TaggedError<NotStarted>()("NotStarted", {
  code: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * Why a command was not run.
 *
 * @category errors
 * @since 0.1.0
 */
export class ShellError extends Schema.TaggedError<ShellError>()("ShellError", {
  reason: Schema.Union([NoBash, WrongBash, BadCommand, BadTimeout, TooMany, NotStarted])
}) {
  override get message(): string {
    return describe(this.reason)
  }
}

/**
 * Fails with a `ShellError`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: ShellError["reason"]): Effect.Effect<never, ShellError> =>
  Effect.fail(new ShellError({ reason }))

const install: Record<string, string> = {
  win32: "Install Git for Windows from https://git-scm.com, which brings Git Bash along; WSL's bash is not used. ",
  darwin: "Install it with `brew install bash`. ",
  linux: "Install the package bash of this system (`apt-get install bash`, `apk add bash`, `dnf install bash`). "
}

const describeCommand = ({ bytes, maxBytes, problem }: BadCommand): string => {
  switch (problem) {
    case "Empty":
      return "The command is empty. Give a command line, such as \"git status\"."
    case "Nul":
      return "The command has a NUL character, which no command line can have. Write it as \\0 in a printf."
    case "Malformed":
      return "The command has half of a character (a lone surrogate), which cannot be written. Leave it out."
    case "TooLong":
      return `The command has ${bytes} bytes, and at most ${maxBytes} can be given to bash. ` +
        `Write it to a file and run the file.`
  }
}

const describeStart = (code: string): string => {
  switch (code) {
    case "EAGAIN":
    case "ENOMEM":
    case "EMFILE":
    case "ENFILE":
      return `The system did not start bash (${code}): it has too few resources left. End other programs and call again.`
    case "E2BIG":
      return "The system did not start bash (E2BIG): the command and the environment are too large together. " +
        "Write the command to a file and run the file."
    case "EACCES":
    case "ENOENT":
    case "ENOTDIR":
      return `The system did not start bash (${code}): workdir cannot be entered or is no longer there, or bash is not. ` +
        "Try another workdir; call diagnose to see which bash this is."
    default:
      return `The system did not start bash (${code}). Call diagnose to see which bash this is, and whether it runs.`
  }
}

const describe = (reason: ShellError["reason"]): string => {
  switch (reason._tag) {
    case "NoBash":
      return `There is no bash on this machine. ${install[reason.platform] ?? "Install it. "}` +
        `If it is in an unusual place, set EFFECT_STDIO_BASH to its path in the server's environment. ` +
        `diagnose lists where it was looked for.`
    case "WrongBash":
      return `${reason.variable} in the server's environment is ${quote(reason.value)}, which ${reason.why}. ` +
        `Correct the variable or remove it, and start the server again.`
    case "BadCommand":
      return describeCommand(reason)
    case "BadTimeout":
      return `${reason.timeout} is not a timeout. Give whole milliseconds from 1 to ${reason.max}, ` +
        `or leave timeout out for the default.`
    case "TooMany":
      return `${reason.max} commands are running, and no more may run at the same time. ` +
        `Wait until one of them ends, or cancel one.`
    case "NotStarted":
      return describeStart(reason.code)
  }
}

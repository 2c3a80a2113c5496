/**
 * Why a file of a project cannot be read or changed, in words that tell the reader what to do next.
 *
 * Messages show paths as the user wrote them, never where the server keeps its files.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const MAX_QUOTED = 200

/**
 * The path leads out of the root folder, by itself or through a symbolic link.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutsideRoot extends Schema.TaggedError<OutsideRoot>()("OutsideRoot", { path: Schema.String }) {}

/**
 * There is nothing at this path.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { path: Schema.String }) {}

/**
 * The system does not let the server read or write at this path.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoPermission extends Schema.TaggedError<NoPermission>()("NoPermission", { path: Schema.String }) {}

/**
 * Something else is at this path than what is needed: a folder, a device, or a file where a folder is needed.
 *
 * @category errors
 * @since 0.1.0
 */
export class WrongKind extends Schema.TaggedError<WrongKind>()("WrongKind", {
  path: Schema.String,
  needed: Schema.Literals(["file", "folder"])
}) {}

/**
 * The file is larger than the server reads.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooLarge extends Schema.TaggedError<TooLarge>()("TooLarge", {
  path: Schema.String,
  bytes: Schema.Finite,
  maxBytes: Schema.Finite
}) {}

/**
 * The file is not text in UTF-8: it would be damaged by a change.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotText extends Schema.TaggedError<NotText>()("NotText", { path: Schema.String }) {}

/**
 * It takes too long to read what is in the file.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooSlow extends Schema.TaggedError<TooSlow>()("TooSlow", { path: Schema.String }) {}

/**
 * The file is not what it was when the change was made; nothing was written.
 *
 * @category errors
 * @since 0.1.0
 */
export class FileChanged extends Schema.TaggedError<FileChanged>()("FileChanged", { path: Schema.String }) {}

/**
 * The system refused to read or write for another reason, such as a full disk; nothing was changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  path: Schema.String,
  /** The system's word for it, such as ENOSPC. */
  code: Schema.optionalKey(Schema.String),
  cause: Schema.Defect()
}) {}

/**
 * Why a file of a project cannot be read or changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class FileError extends Schema.TaggedError<FileError>()("FileError", {
  reason: Schema.Union([
    OutsideRoot,
    NotFound,
    NoPermission,
    WrongKind,
    TooLarge,
    NotText,
    TooSlow,
    FileChanged,
    Refused
  ])
}) {
  override get message(): string {
    return describe(this.reason)
  }
}

/**
 * Fails with a `FileError`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fail = (reason: FileError["reason"]): Effect.Effect<never, FileError> =>
  Effect.fail(new FileError({ reason }))

/**
 * What a user wrote, in quotes and short enough for a message.
 *
 * @category combinators
 * @since 0.1.0
 */
export const quote = (text: string): string =>
  JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text)

const describe = (reason: FileError["reason"]): string => {
  const path = quote(reason.path)
  switch (reason._tag) {
    case "OutsideRoot":
      return `${path} leads out of the server's folder. Give a path below it, relative to it.`
    case "NotFound":
      return reason.path === "" || reason.path === "."
        ? "The server's folder is not there any more. Move it back, or start the server with another one."
        : `There is no ${path} below the server's folder. Check the spelling; paths are relative to that folder.`
    case "NoPermission":
      return `${path} may not be read or written by this server: its permissions do not allow it.`
    case "WrongKind":
      return reason.needed === "file"
        ? `${path} is not a file. Give the path of a file in it.`
        : `${path} is not a folder. Give the path of a folder.`
    case "TooLarge":
      return `${path} has ${reason.bytes} bytes, and files of at most ${reason.maxBytes} are read.`
    case "NotText":
      return `${path} is not text in UTF-8. Save it in this encoding first.`
    case "TooSlow":
      return `${path} takes too long to read. Leave it out.`
    case "FileChanged":
      return `${path} changed in the meantime. Nothing was written. Call again, to work with what it is now.`
    case "Refused":
      return reason.code === "ENOSPC" || reason.code === "EDQUOT"
        ? `${path} could not be written: there is no room left on the disk. Nothing was changed.`
        : `${path} could not be read or written: the system refused it` +
          `${reason.code === undefined ? "" : ` (${reason.code})`}. Nothing was changed.`
  }
}

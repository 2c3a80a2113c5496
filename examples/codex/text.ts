/**
 * What a model or a command has written, fit for a terminal: no control character reaches it as it is.
 *
 * @since 0.1.0
 */

/** Sequences that terminals obey: of control, of a string up to its end, and others. */
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-Z\\`-~])|\u009b[0-?]*[ -/]*[@-~]/g

/** One that begins here and goes on in the next piece, or the first half of an end of line. */
const UNFINISHED =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /(?:\u001b(?:\[[0-?]*[ -/]*|[\]PX^_][^\u0007\u001b]*\u001b?|[ -/]*)?|\u009b[0-?]*[ -/]*|\r)$/

/** So long may a sequence be that has not ended. */
const MAX_UNFINISHED = 4_096

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Controls, and what changes the order of letters or has no width: what is read is not what is there. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/**
 * Text without control sequences, and without control characters beside line breaks and tabs.
 *
 * @category encoding
 * @since 0.1.0
 */
export const plain = (text: string): string =>
  text.replace(SEQUENCES, "").replaceAll("\r\n", "\n").replaceAll("\r", "\n").replace(CONTROLS, "")

/**
 * Makes `plain` for a text that comes in pieces, so that a sequence which is cut in two is none the less taken away.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makePlain = (): (piece: string) => string => {
  let held = ""
  return (piece) => {
    const text = held + piece
    const [unfinished = ""] = UNFINISHED.exec(text) ?? []
    held = unfinished.length > MAX_UNFINISHED ? "" : unfinished
    return plain(held === "" ? text : text.slice(0, -held.length))
  }
}

/**
 * Text of which everything can be seen: what is not printable is written as in JSON. For what somebody has to decide on.
 *
 * @category encoding
 * @since 0.1.0
 */
export const visible = (text: string): string => text.replaceAll("\r\n", "\n").replace(UNSEEN, escape)

/**
 * JSON that may be shown on a terminal: `JSON.stringify` leaves the second set of control characters as it is.
 *
 * @category encoding
 * @since 0.1.0
 */
export const safeJson = (json: string): string => json.replace(UNSEEN, escape)

/**
 * Values to write into cells, and how a worksheet stores them.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Formulas from "./formulas.ts"
import * as Xml from "./xml.ts"

// =============================================================================
// Models
// =============================================================================

/**
 * Schema for a value to write. A text stays a text, whatever it looks like; only `formula` makes a formula.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Value = Schema.Union([
  Schema.String,
  Schema.Finite,
  Schema.Boolean,
  Schema.Null,
  Schema.Struct({
    formula: Schema.String.annotate({
      description: "With English function names and commas, with or without a leading =, such as SUM(B2:B9)"
    })
  }),
  Schema.Struct({
    date: Schema.String.annotate({ description: "2026-03-31 or 2026-03-31T09:30:00, without a time zone" })
  })
]).annotate({
  identifier: "Value",
  description: "Text (stays text, also when it starts with =), number, true or false, null to empty the cell, " +
    "{ formula } or { date }"
})

/**
 * Type of `Value`.
 *
 * @category models
 * @since 0.1.0
 */
export type Value = typeof Value.Type

/**
 * A value that was checked. Dates are serial numbers, still in the system that counts from 1900.
 *
 * @category models
 * @since 0.1.0
 */
export type Content =
  | { readonly kind: "empty" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly number: number }
  | { readonly kind: "boolean"; readonly boolean: boolean }
  | { readonly kind: "formula"; readonly formula: string }
  | { readonly kind: "date"; readonly serial: number; readonly time: boolean }

/**
 * Why a value cannot be written.
 *
 * @category models
 * @since 0.1.0
 */
export type Problem = "TextTooLong" | "BadDate" | "TimeZone" | "DateOutOfRange" | `Formula${Formulas.Problem}`

type Checked = { readonly content: Content } | { readonly problem: Problem }

// =============================================================================
// Checking
// =============================================================================

/** What Excel allows, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 32_767
const DAY = 86_400_000
const EPOCH_1900 = Date.UTC(1899, 11, 30)
/** Excel counts 1900-02-29, which never was; from this day on there is no doubt. */
const FIRST_DATE = Date.UTC(1900, 2, 1)
/** Days between the system that counts from 1900 and the one that counts from 1904. */
export const DAYS_TO_1904 = 1462

const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?)?$/
const TIME_ZONE = /[T ]\d{2}:?\d{2}.*(?:Z|[+-]\d{2}(?::?\d{2})?)$/i

const checkDate = (text: string, date1904: boolean): Checked => {
  const match = DATE.exec(text.trim())
  if (match === null) return { problem: TIME_ZONE.test(text.trim()) ? "TimeZone" : "BadDate" }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map((
    digits: string | undefined
  ) => Number(digits ?? 0))
  const time = Date.UTC(year, month - 1, day)
  const there = new Date(time)
  const exists = there.getUTCMonth() === month - 1 && there.getUTCDate() === day && there.getUTCFullYear() === year
  if (!exists || hour > 23 || minute > 59 || second > 59) return { problem: "BadDate" }
  if (time < FIRST_DATE || (date1904 && time < EPOCH_1900 + DAYS_TO_1904 * DAY)) return { problem: "DateOutOfRange" }
  const milliseconds = Math.round(Number(`0.${match[7] ?? "0"}`) * 1000)
  const clock = ((hour * 60 + minute) * 60 + second) * 1000 + milliseconds
  return { content: { kind: "date", serial: (time - EPOCH_1900 + clock) / DAY, time: match[4] !== undefined } }
}

/**
 * Checks a value, for a workbook that counts its days from 1900 or from 1904.
 *
 * @category decoding
 * @since 0.1.0
 */
export const check = (value: Value, date1904: boolean): Checked => {
  if (value === null) return { content: { kind: "empty" } }
  if (typeof value === "number") return { content: { kind: "number", number: value } }
  if (typeof value === "boolean") return { content: { kind: "boolean", boolean: value } }
  if (typeof value === "string") {
    // Excel ends lines in a cell with a line feed alone.
    const text = value.replace(/\r\n?/g, "\n")
    return text.length > MAX_TEXT_LENGTH ? { problem: "TextTooLong" } : { content: { kind: "text", text } }
  }
  if ("date" in value) return checkDate(value.date, date1904)
  const stored = Formulas.toStored(value.formula)
  return "problem" in stored
    ? { problem: `Formula${stored.problem}` }
    : { content: { kind: "formula", formula: stored.formula } }
}

// =============================================================================
// Encoding
// =============================================================================

/** What is not allowed in XML, and what looks like the way to write it all the same. */
const NOT_IN_XML = /_(?=x[0-9A-Fa-f]{4}_)|(?![\n\t])\p{Cc}|\p{Cs}|[\ufffe\uffff]/gu

/**
 * Writes text for a worksheet: characters that XML does not have become `_x0008_`.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encodeText = (text: string): string =>
  Xml.escape(
    text.replace(NOT_IN_XML, (character) => `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`)
  )

/**
 * Writes a cell as XML. Formulas have no result: Excel calculates it when it opens the file.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encodeCell = (
  address: string,
  style: number | undefined,
  content: Content,
  date1904: boolean
): string => {
  const start = `<c r="${address}"${style === undefined ? "" : ` s="${style}"`}`
  switch (content.kind) {
    case "empty":
      return `${start}/>`
    case "number":
      return `${start}><v>${content.number}</v></c>`
    case "boolean":
      return `${start} t="b"><v>${content.boolean ? 1 : 0}</v></c>`
    case "date":
      return `${start}><v>${content.serial - (date1904 ? DAYS_TO_1904 : 0)}</v></c>`
    case "formula":
      return `${start}><f>${encodeText(content.formula)}</f></c>`
    case "text": {
      const space = /^\s|\s$|\n/.test(content.text) ? " xml:space=\"preserve\"" : ""
      return `${start} t="inlineStr"><is><t${space}>${encodeText(content.text)}</t></is></c>`
    }
  }
}

/**
 * Finds and exchanges small pieces of XML, and leaves every other byte as it is.
 *
 * A parser would give a tree, and what is written from a tree is never quite what was read. A `Part` is searched as text
 * with one character for each byte, in which comments and CDATA are blanked out: each `<` starts a tag, and offsets count
 * bytes. Nothing here knows what the elements mean.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"

/**
 * A file is not what its place in the package asks for: elements are missing, or do not end.
 *
 * @category errors
 * @since 0.1.0
 */
export class PartError extends Schema.TaggedError<PartError>()("PartError", { part: Schema.String }) {
  override get message(): string {
    return `${this.part} is damaged`
  }
}

/**
 * One XML file of a package, ready to be searched.
 *
 * @category models
 * @since 0.1.0
 */
export interface Part {
  readonly bytes: Uint8Array
  /** One character for each byte, for searching only. */
  readonly text: string
}

/**
 * A start tag.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tag {
  readonly start: number
  readonly end: number
  readonly text: string
  /** Whether the element ends with its tag. */
  readonly empty: boolean
}

/**
 * Text to put in place of the bytes from `start` to `end`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly insert: string
}

const HIDDEN = /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>/g
const DECLARED_ENCODING = /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)["']/

/**
 * Prepares a file; `undefined` when it is not UTF-8 or declares entities, which no workbook needs to.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (bytes: Uint8Array): Part | undefined => {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
  const encoding = DECLARED_ENCODING.exec(raw.replace(/^\u00ef\u00bb\u00bf/, "").slice(0, 200))?.[1] ?? "utf-8"
  // The first character of UTF-16 is a mark, or half of the "<" is zero.
  if (!/^(?:utf-?8|us-ascii)$/i.test(encoding) || /^[\u00fe\u00ff\0]|^<\0/.test(raw)) return undefined
  const text = raw.includes("<!") || raw.includes("<?", 2)
    ? raw.replace(HIDDEN, (hidden) => " ".repeat(hidden.length))
    : raw
  return text.includes("<!") ? undefined : { bytes, text }
}

/**
 * Returns the UTF-8 text between two offsets, with its references resolved and without comments.
 *
 * @category decoding
 * @since 0.1.0
 */
export const textBetween = (part: Part, start: number, end: number): string => {
  const raw = Buffer.from(part.bytes.subarray(start, end)).toString("utf8")
  if (!raw.includes("<!")) return unescape(raw)
  return raw.split(/(<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>)/).map((piece) => {
    if (piece.startsWith("<![CDATA[")) return piece.slice(9, -3)
    return piece.startsWith("<!--") ? "" : unescape(piece)
  }).join("")
}

const tagPatterns = new Map<string, string>()

const tagPattern = (name: string): RegExp => {
  let source = tagPatterns.get(name)
  if (source === undefined) {
    source = `<${name}(?=[\\s/>])(?:[^<>"']|"[^"]*"|'[^']*')*>`
    tagPatterns.set(name, source)
  }
  return new RegExp(source, "g")
}

/**
 * Lists the start tags of a name between two offsets.
 *
 * @category decoding
 * @since 0.1.0
 */
export function* tags(part: Part, name: string, from = 0, to: number = part.text.length): Generator<Tag> {
  const pattern = tagPattern(name)
  // Without the slice, looking for what is not there would go on to the end of the part.
  const within = part.text.slice(from, to)
  for (let match = pattern.exec(within); match !== null; match = pattern.exec(within)) {
    const text = match[0]
    const start = from + match.index
    yield { start, end: start + text.length, text, empty: text.endsWith("/>") }
  }
}

/**
 * Returns the first start tag of a name between two offsets.
 *
 * @category decoding
 * @since 0.1.0
 */
export const tag = (part: Part, name: string, from?: number, to?: number): Tag | undefined => {
  const { done, value } = tags(part, name, from, to).next()
  return done === true ? undefined : value
}

/**
 * Returns where the end tag of an element starts, the end of its tag when it has none. Elements inside it must have other
 * names; `undefined` when the element does not end.
 *
 * @category decoding
 * @since 0.1.0
 */
export const contentEnd = (part: Part, name: string, { empty, end }: Tag): number | undefined => {
  if (empty) return end
  const close = `</${name}`
  for (let at = part.text.indexOf(close, end); at >= 0; at = part.text.indexOf(close, at + 1)) {
    if (/[\s>]/.test(part.text.charAt(at + close.length))) return at
  }
  return undefined
}

/**
 * Returns where an element ends, its end tag included.
 *
 * @category decoding
 * @since 0.1.0
 */
export const elementEnd = (part: Part, name: string, tag: Tag): number | undefined => {
  const at = contentEnd(part, name, tag)
  if (at === undefined || tag.empty) return at
  const close = part.text.indexOf(">", at)
  return close < 0 ? undefined : close + 1
}

const attributePatterns = new Map<string, RegExp>()

/** Finds an attribute in the text of a tag: where it starts, its value without quotes, and where that starts. */
const findAttribute = (
  tag: string,
  name: string
): { readonly start: number; readonly value: string; readonly at: number } | undefined => {
  let pattern = attributePatterns.get(name)
  if (pattern === undefined) {
    pattern = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`)
    attributePatterns.set(name, pattern)
  }
  const match = pattern.exec(tag)
  if (match === null) return undefined
  const value = match[1] ?? match[2] ?? ""
  return { start: match.index, value, at: match.index + match[0].length - value.length - 1 }
}

/**
 * Returns the value of an attribute.
 *
 * @category decoding
 * @since 0.1.0
 */
export const attribute = (tag: Tag, name: string): string | undefined => {
  const value = findAttribute(tag.text, name)?.value
  return value === undefined ? undefined : unescape(Buffer.from(value, "latin1").toString("utf8"))
}

/**
 * Returns whether an attribute says yes, as XML writes it.
 *
 * @category decoding
 * @since 0.1.0
 */
export const flag = (tag: Tag, name: string): boolean => /^(?:1|true|on)$/.test(attribute(tag, name) ?? "")

/**
 * Makes the edit that gives a tag an attribute, in place of the one it may have.
 *
 * @category encoding
 * @since 0.1.0
 */
export const setAttribute = (tag: Tag, name: string, value: string): Edit => {
  const found = findAttribute(tag.text, name)
  if (found !== undefined) {
    const start = tag.start + found.at
    return { start, end: start + found.value.length, insert: escapeAttribute(value) }
  }
  const at = tag.end - (tag.empty ? 2 : 1)
  return { start: at, end: at, insert: ` ${name}="${escapeAttribute(value)}"` }
}

/**
 * Makes the edit that takes an attribute from a tag; `undefined` when it has none of the name.
 *
 * @category encoding
 * @since 0.1.0
 */
export const removeAttribute = (tag: Tag, name: string): Edit | undefined => {
  const found = findAttribute(tag.text, name)
  return found && { start: tag.start + found.start, end: tag.start + found.at + found.value.length + 1, insert: "" }
}

/**
 * Applies edits. They must not overlap; those at the same place keep their order.
 *
 * @category encoding
 * @since 0.1.0
 */
export const apply = (bytes: Uint8Array, edits: ReadonlyArray<Edit>): Uint8Array => {
  const pieces: Array<Uint8Array> = []
  let at = 0
  for (const { end, insert, start } of edits.toSorted((a, b) => a.start - b.start)) {
    if (start < at) throw new Error("edits overlap")
    pieces.push(bytes.subarray(at, start))
    if (insert !== "") pieces.push(Buffer.from(insert))
    at = end
  }
  pieces.push(bytes.subarray(at))
  return Buffer.concat(pieces)
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'" }

const unescape = (text: string): string =>
  text.includes("&")
    ? text.replace(/&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|([a-z]+));/g, (reference, hex, decimal, name) => {
      if (name !== undefined) return NAMED[String(name)] ?? reference
      const code = hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : reference
    })
    : text

/**
 * Writes text for the content of an element.
 *
 * @category encoding
 * @since 0.1.0
 */
export const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/**
 * Writes text for the value of an attribute in double quotes.
 *
 * @category encoding
 * @since 0.1.0
 */
export const escapeAttribute = (text: string): string =>
  escape(text).replaceAll("\"", "&quot;").replaceAll("\n", "&#10;").replaceAll("\t", "&#9;")

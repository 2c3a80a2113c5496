/**
 * The cell styles of a workbook, as far as writing needs them: which show dates, which are unlocked, and how to get one
 * that shows dates and is otherwise the same.
 *
 * @since 0.1.0
 */
import { Buffer } from "node:buffer"
import * as Xml from "./xml.ts"

/**
 * The cell styles of a workbook. `withDate` may add one, which `edits` then brings into the part.
 *
 * @category models
 * @since 0.1.0
 */
export interface Styles {
  /** Tells whether a number in this style shows as a date or a time. */
  readonly showsDates: (style: number | undefined) => boolean
  /** Tells whether cells of this style may be changed while their sheet is protected. */
  readonly unlocked: (style: number | undefined) => boolean
  /** Returns the style that is the same but shows a date, or a date with its time. */
  readonly withDate: (style: number | undefined, time: boolean) => number
  /** What has to change in the part. */
  readonly edits: () => ReadonlyArray<Xml.Edit>
}

/** Formats that every program knows without a definition: a date and a date with its time, as the user's region has it. */
const DATE_FORMAT = 14
const DATE_TIME_FORMAT = 22

const isBuiltInDate = (format: number): boolean =>
  (format >= 14 && format <= 22) || (format >= 27 && format <= 36) || (format >= 45 && format <= 47) ||
  (format >= 50 && format <= 58)

/** Looks at the part of a format code that is for positive numbers; colours, texts and escaped characters do not count. */
const isDateCode = (code: string): boolean =>
  /[dmyhs]/i.test(
    (code.replaceAll(/"[^"]*"|\\.|_.|\*./g, "").split(";")[0] ?? "")
      .replaceAll(/\[(?!h+\]|m+\]|s+\])[^\]]*\]|General/gi, "")
  )

/**
 * Reads the styles part; `undefined` when it is damaged.
 *
 * @category decoding
 * @since 0.1.0
 */
export const read = (part: Xml.Part): Styles | undefined => {
  const list = Xml.tag(part, "cellXfs")
  const listEnd = list && Xml.contentEnd(part, "cellXfs", list)
  if (list === undefined || listEnd === undefined || list.empty) return undefined
  const dateFormats = new Set<string>()
  const formats = Xml.tag(part, "numFmts")
  // Definitions of the same name below conditional formats have numbers of their own.
  for (const tag of formats ? Xml.tags(part, "numFmt", formats.end, Xml.contentEnd(part, "numFmts", formats)) : []) {
    if (isDateCode(Xml.attribute(tag, "formatCode") ?? "")) dateFormats.add(Xml.attribute(tag, "numFmtId") ?? "")
  }
  const tags = Array.from(Xml.tags(part, "xf", list.end, listEnd))
  const sources: Array<string> = []
  for (const tag of tags) {
    const end = Xml.elementEnd(part, "xf", tag)
    if (end === undefined) return undefined
    sources.push(Buffer.from(part.bytes.subarray(tag.start, end)).toString("utf8"))
  }
  const known = sources.length

  const formatOf = (tag: Xml.Tag | undefined): string => (tag && Xml.attribute(tag, "numFmtId")) ?? "0"
  return {
    showsDates: (style) => {
      const format = formatOf(tags[style ?? 0])
      return dateFormats.has(format) || isBuiltInDate(Number(format))
    },
    unlocked: (style) => /<protection[^>]*\slocked\s*=\s*["'](?:0|false)["']/.test(sources[style ?? 0] ?? ""),
    withDate: (style, time) => {
      const source = withFormat(sources[style ?? 0] ?? sources[0] ?? "<xf/>", time ? DATE_TIME_FORMAT : DATE_FORMAT)
      const same = sources.indexOf(source)
      return same < 0 ? sources.push(source) - 1 : same
    },
    edits: () =>
      sources.length === known ? [] : [
        Xml.setAttribute(list, "count", String(sources.length)),
        { start: listEnd, end: listEnd, insert: sources.slice(known).join("") }
      ]
  }
}

/** Exchanges the number format of a style. */
const withFormat = (source: string, format: number): string => {
  const end = source.indexOf(">")
  const tag = source.slice(0, end).replaceAll(/\s(?:numFmtId|applyNumberFormat)\s*=\s*(?:"[^"]*"|'[^']*')/g, "")
  return tag.replace(/^<xf/, `<xf numFmtId="${format}" applyNumberFormat="1"`) + source.slice(end)
}

/**
 * A styles part for workbooks that have none.
 *
 * @category constants
 * @since 0.1.0
 */
export const emptyPart = (namespace: string): string =>
  `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<styleSheet xmlns="${Xml.escapeAttribute(namespace)}">` +
  `<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>` +
  `<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>` +
  `<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
  `<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>` +
  `<cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs>` +
  `<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`

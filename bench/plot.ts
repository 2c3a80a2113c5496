/**
 * Draws the rows of a report as bars, in an SVG that needs no fonts or styles from elsewhere. Its colours are of middle
 * brightness, so that they can be read on a light page and on a dark one.
 */
import type { Row, Section } from "./report.ts"
import { figure } from "./report.ts"

const INK = "#7d8590"
const STRONG = "#6e7fa3"
const OURS = "#2f81f7"
const OTHERS = "#9aa4b2"

const COLUMN = 510
const GAP = 40
const MARGIN = 16
const NAMES = 206
const BARS = 190
const LINE = 17

/** The figure of a row that its bar shows, whether less of it is better, and how it is written. */
interface Measure {
  readonly value: (row: Row) => number | undefined
  readonly label: (row: Row) => string
  readonly unit: string
}

const megabytes = (bytes: number | undefined) => bytes === undefined ? "" : `${figure(bytes / 1_000_000, 0)} MB`

const RATE: Measure = {
  value: ({ rate }) => rate,
  label: ({ cpu, rate }) => `${figure(rate, 0)}${cpu === undefined ? "" : `, ${figure(cpu, 1)} µs`}`,
  unit: "messages a second (longer is better), CPU of a message"
}

const MEASURES: Readonly<Record<string, Measure>> = {
  sizes: {
    value: ({ cpuPerByte }) => cpuPerByte,
    label: ({ cpuPerByte }) => figure(cpuPerByte, 1),
    unit: "nanoseconds of CPU for a byte (shorter is better)"
  },
  start: {
    value: ({ firstReply }) => firstReply,
    label: ({ firstReply, memory }) => `${figure(firstReply, 0)} ms, ${megabytes(memory)}`,
    unit: "milliseconds (shorter is better), resident memory"
  },
  stalled: {
    value: ({ memory }) => memory,
    label: ({ memory, note }) => memory === undefined ? note ?? "" : megabytes(memory),
    unit: "peak of resident memory (shorter is better)"
  },
  million: {
    value: ({ memory }) => memory,
    label: ({ memory }) => megabytes(memory),
    unit: "resident memory (the same at the end is better)"
  }
}

const escape = (text: string) => text.replace(/[&<>]/g, (sign) => `&#${sign.codePointAt(0)};`)

const text = (x: number, y: number, content: string, attributes: string) =>
  `<text x="${x}" y="${y}" ${attributes}>${escape(content)}</text>`

/** A piece of the drawing: how high it is, and what it looks like at a place. */
interface Block {
  readonly height: number
  readonly draw: (x: number, y: number) => string
}

const heading = ({ title }: Section, { unit }: Measure): Block => ({
  height: 44,
  draw: (x, y) =>
    text(x, y + 18, title, `font-size="14" font-weight="600" fill="${STRONG}"`) +
    text(x, y + 34, unit, `font-size="11" fill="${INK}"`)
})

const group = (rows: ReadonlyArray<Row>, { label, value }: Measure, ours: string): Block => {
  const longest = Math.max(...rows.map((row) => value(row) ?? 0))
  return {
    height: 22 + rows.length * LINE + 6,
    draw: (x, y) =>
      text(x, y + 15, rows[0]?.workload ?? "", `font-size="12" font-weight="600" fill="${INK}"`) +
      rows.map((row, index) => {
        const top = y + 22 + index * LINE
        const isOurs = row.server.startsWith(ours)
        const width = Math.max(1, (value(row) ?? 0) / longest * BARS)
        const weight = isOurs ? ` font-weight="600"` : ""
        return text(x + NAMES - 8, top + 12, row.server, `font-size="11" text-anchor="end" fill="${INK}"${weight}`) +
          `<rect x="${x + NAMES}" y="${top + 2}" width="${width.toFixed(1)}" height="${LINE - 5}" rx="2" fill="${
            isOurs ? OURS : OTHERS
          }"/>` +
          text(x + NAMES + width + 6, top + 12, label(row), `font-size="11" fill="${INK}"`)
      }).join("")
  }
}

const blocks = (section: Section, ours: string): ReadonlyArray<Block> => {
  const measure = MEASURES[section.id] ?? RATE
  const workloads = [...new Set(section.rows.map(({ workload }) => workload))]
  const groups = workloads.map((workload) => section.rows.filter((row) => row.workload === workload))
  return [heading(section, measure), ...groups.map((rows) => group(rows, measure, ours))]
}

const heightOf = (blocks: ReadonlyArray<Block>) => blocks.reduce((sum, { height }) => sum + height, 0)

/** The sections in their order, in two columns of about one height. */
const twoColumns = (sections: ReadonlyArray<ReadonlyArray<Block>>): ReadonlyArray<ReadonlyArray<Block>> => {
  const splits = sections.map((_, index) => [sections.slice(0, index + 1).flat(), sections.slice(index + 1).flat()])
  const highest = (columns: ReadonlyArray<ReadonlyArray<Block>>) => Math.max(...columns.map(heightOf))
  return splits.toSorted((a, b) => highest(a) - highest(b))[0] ?? []
}

/** Draws sections; the bars of servers whose name begins with `ours` stand out. */
export const draw = (sections: ReadonlyArray<Section>, ours: string): string => {
  const columns = twoColumns(sections.map((section) => blocks(section, ours)))
  const width = 2 * MARGIN + 2 * COLUMN + GAP
  const height = 2 * MARGIN + Math.max(...columns.map(heightOf))
  const body = columns.map((column, index) => {
    let y = MARGIN
    return column.map((block) => {
      const drawing = block.draw(MARGIN + index * (COLUMN + GAP), y)
      y += block.height
      return drawing
    }).join("\n")
  }).join("\n")
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif">\n<title>What the benchmark measured</title>\n${body}\n</svg>\n`
}

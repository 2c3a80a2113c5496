/**
 * What sections report, and how it is printed: one table, each row beside those it is compared with.
 */

/** A figure that is wanted, and whether it is reached. */
export interface Target {
  /** What was measured against the target, such as "2.4 x the CPU of a bare loop". */
  readonly text: string
  /** What it should be, such as "at most 3". */
  readonly wanted: string
  readonly met: boolean
}

export interface Row {
  /** What the server was asked for; rows with the same words are compared. */
  readonly workload: string
  readonly server: string
  /** Messages a second. */
  readonly rate?: number | undefined
  /** Processor time of the server for a message, in microseconds. */
  readonly cpu?: number | undefined
  /** Processor time of the server for a byte of a message, in nanoseconds. */
  readonly cpuPerByte?: number | undefined
  /** Milliseconds until the first reply. */
  readonly firstReply?: number | undefined
  /** Resident memory, in bytes. */
  readonly memory?: number | undefined
  readonly targets?: ReadonlyArray<Target> | undefined
  /** What else is to be said. */
  readonly note?: string | undefined
}

export interface Section {
  readonly id: string
  readonly title: string
  readonly rows: ReadonlyArray<Row>
}

// -----------------------------------------------------------------------------
// targets
// -----------------------------------------------------------------------------

/** A ratio as it is printed. */
export const rounded = (value: number) => String(Number(value.toPrecision(value >= 100 ? 3 : 2)))

export const atLeast = (actual: number, limit: number, unit: string): Target => ({
  text: `${rounded(actual)} ${unit}`,
  wanted: `at least ${rounded(limit)}`,
  met: actual >= limit
})

export const atMost = (actual: number, limit: number, unit: string): Target => ({
  text: `${rounded(actual)} ${unit}`,
  wanted: `at most ${rounded(limit)}`,
  met: actual <= limit
})

// -----------------------------------------------------------------------------
// figures
// -----------------------------------------------------------------------------

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length === 0
    ? Number.NaN
    : sorted.length % 2 === 1
    ? sorted[middle] ?? Number.NaN
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
}

const MB = 1_000_000

/** A number as it is printed. */
export const figure = (value: number | undefined, digits: number) =>
  value === undefined
    ? ""
    : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })

// -----------------------------------------------------------------------------
// printing
// -----------------------------------------------------------------------------

const HEADS = [
  "workload",
  "server",
  "messages/s",
  "CPU µs/message",
  "CPU ns/byte",
  "first reply ms",
  "memory MB",
  "targets"
]

const cells = (row: Row): ReadonlyArray<string> => [
  row.workload,
  row.server,
  figure(row.rate, row.rate !== undefined && row.rate < 100 ? 1 : 0),
  figure(row.cpu, row.cpu !== undefined && row.cpu >= 1000 ? 0 : 2),
  figure(row.cpuPerByte, 2),
  figure(row.firstReply, 0),
  figure(row.memory === undefined ? undefined : row.memory / MB, 0),
  [
    ...(row.targets ?? []).map(({ met, text, wanted }) => `${text} (${wanted}: ${met ? "met" : "MISSED"})`),
    ...(row.note === undefined ? [] : [row.note])
  ].join("; ")
]

/** The sections as a table in Markdown, aligned for a terminal. */
export const table = (sections: ReadonlyArray<Section>): string => {
  const body = sections.flatMap(({ rows, title }) => [[`**${title}**`, "", "", "", "", "", "", ""], ...rows.map(cells)])
  const last = HEADS.length - 1
  // the last column ends where its text does
  const widths = HEADS.map((head, column) =>
    column === last ? head.length : Math.max(head.length, ...body.map((line) => line[column]?.length ?? 0))
  )
  const isText = (column: number) => column < 2 || column === last
  const print = (line: ReadonlyArray<string>) =>
    `| ${
      line.map((cell, column) => isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))
        .join(" | ")
    } |`
  const rule = widths.map((width, column) => isText(column) ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)
  return [print(HEADS), print(rule), ...body.map(print)].join("\n")
}

/** How many of the targets were met, in words. */
export const summary = (sections: ReadonlyArray<Section>): string => {
  const targets = sections.flatMap(({ rows }) => rows.flatMap((row) => row.targets ?? []))
  return `${targets.filter(({ met }) => met).length} of ${targets.length} targets met`
}

/**
 * A page of a sheet as text for a terminal.
 */
import type { Page } from "./pages.ts"

type Cell = (typeof Page.Type)["rows"][number]["cells"][number]

/** Formats a page as a table with column letters and row numbers; formulas are shown by their results. */
export const table = (page: Pick<typeof Page.Type, "columns" | "rows">): string => {
  const lines = [["", ...page.columns], ...page.rows.map(({ cells, row }) => [String(row), ...cells.map(text)])]
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? "")))) ?? []
  const numeric = widths.map((_, column) => column === 0 || page.rows.some(({ cells }) => isNumber(cells[column - 1])))
  const formatted = lines.map((line) =>
    line.map((cell, column) => {
      const padding = " ".repeat((widths[column] ?? 0) - width(cell))
      return numeric[column] === true ? padding + cell : cell + padding
    }).join("  ").trimEnd()
  )
  const rule = widths.map((columns) => "─".repeat(columns)).join("  ")
  return [formatted[0], rule, ...formatted.slice(1)].map((line) => `  ${line}`).join("\n")
}

const valueOf = (cell: Cell | undefined) =>
  typeof cell === "object" && cell !== null ? ("result" in cell ? cell.result : cell.text) : cell

const isNumber = (cell: Cell | undefined) => typeof valueOf(cell) === "number"

const text = (cell: Cell): string => {
  const value = valueOf(cell)
  return value === null || value === undefined
    ? ""
    : typeof value === "number"
    ? value.toLocaleString("en", { maximumFractionDigits: 2 })
    : String(value)
}

// East Asian characters and emoji take two columns of a terminal
const width = (value: string): number =>
  Array.from(value).reduce(
    (sum, character) =>
      sum +
      (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u
          .test(character)
        ? 2
        : 1),
    0
  )

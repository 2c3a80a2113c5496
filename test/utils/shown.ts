/**
 * The programs that Markdown pages show, and the files they must be equal to.
 */
import { readFileSync } from "node:fs"

/** The text of a file of the project. */
export const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8")

/** A program without its leading comment, imports by package name and in a fixed order. */
export const normalized = (source: string) => {
  const lines = source.replace(/^\/\*\*[^]*?\*\/\n/, "").replaceAll(
    /"\.\.\/\.\.\/src\/(\w+)\.ts"/g,
    "\"effect-stdio/$1\""
  )
    .trim().split("\n")
  const imports = lines.filter((line) => line.startsWith("import "))
  return [...imports.toSorted(), ...lines.filter((line) => !line.startsWith("import "))].join("\n").trim()
}

/** The programs that a page shows, each with the file that the comment above it names. */
export const programs = (page: string) =>
  Array.from(
    page.matchAll(/<!-- file: (\S+) -->\n+```\w+\n([^]*?)```/g),
    ([, file = "", program = ""]) => ({ file, program })
  )

/**
 * What is on the disk now, and whether it is what was there before.
 *
 * It asks Node itself: Effect's file system follows links, and says neither what kind of thing a name in a folder is nor
 * when a file changed to more than a millisecond.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { lstat, readdir, stat } from "node:fs/promises"
import { join } from "node:path"

/** Of what is installed, only which packages there are: nobody edits them. */
const MODULES = "node_modules"
/** Folders in which nobody edits. */
const SKIPPED = new Set([MODULES, ".git", ".hg", ".svn"])
const CONCURRENCY = 16
/** A file that was written a moment ago may be written again within one tick of the file system's clock, in milliseconds. */
const TICK = 50

/**
 * What tells one state of a file from the next: equal stamps mean that the file is the same one.
 *
 * @category models
 * @since 0.1.0
 */
export type Stamp = string

let young = 0

/**
 * The stamp of a file, or `undefined` when there is none.
 *
 * **Details**
 *
 * A file that was changed within the last moment has a new stamp each time, since its next change might not be seen:
 * whoever compares stamps takes it for changed once more.
 *
 * @category constructors
 * @since 0.1.0
 */
export const stampOf = (path: string, links: "follow" | "refuse" = "follow"): Effect.Effect<Stamp | undefined> =>
  Effect.gen(function*() {
    const info = yield* Effect.promise(() =>
      (links === "follow" ? stat : lstat)(path, { bigint: true }).catch(() => undefined)
    )
    if (info === undefined || !info.isFile()) return undefined
    const age = (yield* Clock.currentTimeMillis) - Number(info.ctimeMs)
    return `${info.ino} ${info.size} ${info.mtimeNs} ${info.ctimeNs}${age < TICK ? ` ${++young}` : ""}`
  })

/**
 * Whether two stamps may be of the same state of a file; the youth of a file is not looked at.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSame = (before: Stamp, now: Stamp): boolean =>
  before.split(" ").slice(0, 4).join(" ") === now.split(" ").slice(0, 4).join(" ")

/**
 * The files below a folder, at most `maxFiles`, with their stamps; links are not followed, and the folders of version
 * control are not entered. Of `node_modules` there are the `package.json` of the packages, so that an installation is seen.
 *
 * @category constructors
 * @since 0.1.0
 */
export const filesBelow = (
  folder: string,
  maxFiles: number
): Effect.Effect<ReadonlyMap<string, Stamp>> =>
  Effect.gen(function*() {
    const files: Array<string> = []
    const modules: Array<string> = []
    // in the order of their depth: where there are too many, a deep heap of made files does not hide the others
    const folders = [folder]
    for (let at = 0; at < folders.length && files.length < maxFiles; at++) {
      const parent = folders[at] ?? folder
      for (const entry of yield* entriesOf(parent)) {
        const path = join(parent, entry.name)
        if (entry.isDirectory()) {
          if (!SKIPPED.has(entry.name)) folders.push(path)
          else if (entry.name === MODULES) modules.push(path)
        } else if (entry.isFile() && files.length < maxFiles) files.push(path)
      }
    }
    const packages = (yield* Effect.forEach(modules, packagesIn)).flat().slice(0, maxFiles - files.length)
    const stamps = yield* Effect.forEach(
      [...files.map((path) => [path, "refuse"] as const), ...packages.map((path) => [path, "follow"] as const)],
      ([path, links]) =>
        Effect.map(stampOf(path, links), (stamp) => stamp === undefined ? [] : [[path, stamp] as const]),
      { concurrency: CONCURRENCY }
    )
    return new Map(stamps.flat())
  })

/** Where the packages of a `node_modules` say what they are; some installers put links there. */
const packagesIn = Effect.fnUntraced(function*(folder: string) {
  const names = (yield* entriesOf(folder)).map(({ name }) => name).filter((name) => !name.startsWith("."))
  const scoped = yield* Effect.forEach(
    names.filter((name) => name.startsWith("@")),
    (scope) => Effect.map(entriesOf(join(folder, scope)), (entries) => entries.map(({ name }) => join(scope, name)))
  )
  return [...names.filter((name) => !name.startsWith("@")), ...scoped.flat()]
    .map((name) => join(folder, name, "package.json"))
})

/** A folder that is gone, or may not be read, has nothing in it. */
const entriesOf = (folder: string) => Effect.promise(() => readdir(folder, { withFileTypes: true }).catch(() => []))

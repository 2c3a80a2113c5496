/**
 * Files as language servers name them: `file://` URIs, in one of several spellings.
 *
 * @since 0.1.0
 */
import { dirname } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

/** Whether paths are those of Windows, where it is not the system that says so. */
interface Options {
  readonly windows?: boolean | undefined
}

/**
 * The URI of an absolute path.
 *
 * @category encoding
 * @since 0.1.0
 */
export const fromPath = (path: string, options?: Options): string => pathToFileURL(path, options).href

/**
 * The path that a URI names, in one spelling whatever the server wrote: percent signs or not, `file:///C:/` or
 * `file:///c%3A/`. `undefined` where it names no file of this machine.
 *
 * @category decoding
 * @since 0.1.0
 */
export const toPath = (uri: string, options?: Options): string | undefined => {
  try {
    return fileURLToPath(uri, options).replace(/^[a-z](?=:[\\/])/, (drive) => drive.toUpperCase())
  } catch {
    return undefined
  }
}

/**
 * A text of a language server without the place of the folder on this machine: what is below it is named relative to it,
 * what is in `node_modules` by what follows them, and what is beside the folder by what follows their common parent.
 *
 * @category encoding
 * @since 0.1.0
 */
export const relativeTo = (folder: string, text: string): string => {
  const parents: Array<string> = []
  // the root of the system and what is right in it are too short to be told from other words
  for (let at = dirname(folder); dirname(dirname(at)) !== dirname(at); at = dirname(at)) parents.push(at)
  if (dirname(folder) === folder) return text
  const named = spellings(folder).reduce(
    (text, place) => text.replaceAll(placeOf(place), (_, slash?: string) => slash === undefined ? "." : ""),
    text
  )
  return parents.flatMap(spellings).reduce(
    (text, place) => text.replaceAll(placeOf(place), (found, slash?: string) => slash === undefined ? found : ""),
    named.replaceAll(IN_MODULES, "")
  )
}

/** An absolute path, or its URI, up to the last `node_modules`. */
const IN_MODULES = /(?<![\p{L}\p{N}_.@/\\-])(?:file:\/\/)?(?:\/|[A-Za-z]:[\\/])[^\s"'`<>()[\]]*[\\/]node_modules[\\/]/gu

const spellings = (path: string): ReadonlyArray<string> => [fromPath(path), path]

/** A path as a whole: neither the end of a longer one, nor the beginning of a longer name. */
const placeOf = (path: string): RegExp =>
  new RegExp(
    `(?<![\\p{L}\\p{N}_.-])${
      path.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
    }(?:([\\\\/])|(?![\\p{L}\\p{N}_-]|\\.[\\p{L}\\p{N}]))`,
    "gu"
  )

/**
 * How a file outside of the folder is called: by what follows the last `node_modules`, or by its name alone, so that
 * nothing is told of this machine.
 *
 * @category encoding
 * @since 0.1.0
 */
export const nameOutside = (uri: string): string => {
  const path = toPath(uri)
  if (path === undefined) return uri.replace(/^(\w+:).*\/(?=[^/]+$)/s, "$1")
  const names = path.split(/[\\/]/)
  const at = names.lastIndexOf("node_modules")
  return at < 0 ? names.at(-1) ?? "" : names.slice(at + 1).join("/")
}

/**
 * The patterns by which language servers say which files they want to hear of.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#documentFilter
 * @since 0.1.0
 */

/**
 * A test for paths with slashes: `*` and `?` stay within a folder, `**` is any number of folders, `{a,b}` one of
 * several, `[a-z]` and `[!a-z]` one character. `undefined` for a pattern that is none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toTest = (pattern: string): ((path: string) => boolean) | undefined => {
  try {
    const expression = new RegExp(`^${translate(pattern)}$`, "su")
    return (path) => expression.test(path)
  } catch {
    return undefined
  }
}

const TOKEN = /\*\*\/|\*\*|\*|\?|\{|\}|,|\[!?[^\]]+\]|[^*?{},[]+|\[/gsu

const translate = (pattern: string): string => {
  let depth = 0
  return (pattern.match(TOKEN) ?? []).map((token) => {
    switch (token) {
      case "**/":
        return "(?:[^/]+/)*"
      case "**":
        return ".*"
      case "*":
        return "[^/]*"
      case "?":
        return "[^/]"
      case "{":
        depth++
        return "(?:"
      case "}":
        if (depth === 0) return "\\}"
        depth--
        return ")"
      case ",":
        return depth === 0 ? "," : "|"
      default:
        return token.startsWith("[") && token.length > 1
          ? `[${token.startsWith("[!") ? "^" : ""}${
            token.slice(token.startsWith("[!") ? 2 : 1, -1).replaceAll(/[\\^[]/g, "\\$&")
          }]`
          : token.replaceAll(/[.+^$()|\\/[\]]/g, "\\$&")
    }
  }).join("")
}

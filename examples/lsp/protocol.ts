/**
 * What language servers say, read with forgiveness: what is not needed may be anything, and one unreadable item of a list
 * does not spoil the others.
 *
 * @see https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification
 * @since 0.1.0
 */
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** Counted from 0; what is no such number is the nearest that is one. */
const Count = Schema.Finite
/** The largest number of the protocol. */
const MAX_COUNT = 2 ** 31 - 1
const count = (value: number): number => Math.min(MAX_COUNT, Math.max(0, Math.trunc(value)))

/**
 * A place in a text, counted from 0; a character is a UTF-16 code unit.
 *
 * @category models
 * @since 0.1.0
 */
export interface Position {
  readonly line: number
  readonly character: number
}

/**
 * A part of a text: `end` is behind it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Range {
  readonly start: Position
  readonly end: Position
}

/**
 * A part of a file.
 *
 * @category models
 * @since 0.1.0
 */
export interface Location {
  readonly uri: string
  /** Absent where a server names the file alone. */
  readonly range?: Range | undefined
}

/**
 * Items of a list, and how many more there were that cannot be read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Items<A> {
  readonly items: ReadonlyArray<A>
  readonly unreadable: number
}

const PositionSchema = Schema.Struct({ line: Count, character: Count })
const RangeSchema = Schema.Struct({ start: PositionSchema, end: PositionSchema })

const toRange = ({ end, start }: typeof RangeSchema.Type): Range => ({
  start: { line: count(start.line), character: count(start.character) },
  end: { line: count(end.line), character: count(end.character) }
})

/**
 * Reads each item of a list by itself; `null` is an empty list, and what is no list is a list of one.
 *
 * @category decoding
 * @since 0.1.0
 */
export const itemsOf = <A>(value: unknown, read: (item: unknown) => Option.Option<A>): Items<A> => {
  const list: ReadonlyArray<unknown> = Array.isArray(value)
    ? value
    : value === null || value === undefined
    ? []
    : [value]
  const items = list.flatMap((item) => Option.toArray(read(item)))
  return { items, unreadable: list.length - items.length }
}

// -----------------------------------------------------------------------------
// locations, hovers
// -----------------------------------------------------------------------------

const readLocation = Schema.decodeUnknownOption(
  Schema.Struct({ uri: Schema.String, range: Schema.optional(RangeSchema) })
)
const readLink = Schema.decodeUnknownOption(
  Schema.Struct({ targetUri: Schema.String, targetSelectionRange: RangeSchema })
)

const location = (item: unknown): Option.Option<Location> =>
  Option.orElse(
    Option.map(readLocation(item), ({ range, uri }) => ({ uri, range: range && toRange(range) })),
    () => Option.map(readLink(item), (link) => ({ uri: link.targetUri, range: toRange(link.targetSelectionRange) }))
  )

/**
 * Reads one or several `Location` or `LocationLink`.
 *
 * @category decoding
 * @since 0.1.0
 */
export const locations = (value: unknown): Items<Location> => itemsOf(value, location)

const readHover = Schema.decodeUnknownOption(
  Schema.Struct({ contents: Schema.Unknown, range: Schema.optional(Schema.Unknown) })
)
const readMarkup = Schema.decodeUnknownOption(
  Schema.Struct({ value: Schema.String, language: Schema.optional(Schema.String) })
)
const readRange = Schema.decodeUnknownOption(RangeSchema)

/**
 * Reads a hover: what it says, as Markdown, and the range that it is about. `undefined` where it is none.
 *
 * @category decoding
 * @since 0.1.0
 */
export const hover = (value: unknown): { readonly text: string; readonly range?: Range | undefined } | undefined => {
  if (value === null || value === undefined) return { text: "" }
  const read = Option.getOrUndefined(readHover(value))
  if (read === undefined) return undefined
  const { items, unreadable } = itemsOf(read.contents, marked)
  return unreadable > 0 && items.length === 0
    ? undefined
    : {
      text: items.filter((text) => text.trim() !== "").join("\n\n").trim(),
      range: Option.getOrUndefined(Option.map(readRange(read.range), toRange))
    }
}

/** A `MarkupContent` or a `MarkedString`. */
const marked = (item: unknown): Option.Option<string> =>
  typeof item === "string"
    ? Option.some(item)
    : Option.map(readMarkup(item), ({ language, value }) =>
      language === undefined ? value : `\`\`\`${language}\n${value}\n\`\`\``)

// -----------------------------------------------------------------------------
// symbols
// -----------------------------------------------------------------------------

const SYMBOL_KINDS = [
  "file",
  "module",
  "namespace",
  "package",
  "class",
  "method",
  "property",
  "field",
  "constructor",
  "enum",
  "interface",
  "function",
  "variable",
  "constant",
  "string",
  "number",
  "boolean",
  "array",
  "object",
  "key",
  "null",
  "enum member",
  "struct",
  "event",
  "operator",
  "type parameter"
]

const kindOf = (kind: number | undefined): string =>
  kind === undefined ? "unknown" : SYMBOL_KINDS[kind - 1] ?? `kind ${kind}`

/**
 * A symbol: `range` is all of it, `at` its name.
 *
 * @category models
 * @since 0.1.0
 */
export interface DocumentSymbol {
  readonly name: string
  readonly kind: string
  readonly container?: string | undefined
  readonly range: Range
  readonly at: Position
}

/** Servers that nest deeper than a person writes are cut off. */
const MAX_DEPTH = 50

const readNested = Schema.decodeUnknownOption(Schema.Struct({
  name: Schema.String,
  kind: Schema.optional(Schema.Finite),
  range: RangeSchema,
  selectionRange: Schema.optional(RangeSchema),
  children: Schema.optional(Schema.Unknown)
}))
const readFlat = Schema.decodeUnknownOption(Schema.Struct({
  name: Schema.String,
  kind: Schema.optional(Schema.Finite),
  containerName: Schema.optional(Schema.NullOr(Schema.String)),
  location: Schema.Struct({ uri: Schema.String, range: Schema.optional(RangeSchema) })
}))

/**
 * Reads the symbols of a document, nested (`DocumentSymbol`) or flat (`SymbolInformation`), in the order of the server.
 *
 * @category decoding
 * @since 0.1.0
 */
export const documentSymbols = (value: unknown): Items<DocumentSymbol> => {
  let unreadable = 0
  const walk = (value: unknown, container: string | undefined, depth: number): ReadonlyArray<DocumentSymbol> => {
    const read = itemsOf(value, (item) => symbol(item, container))
    unreadable += read.unreadable
    return read.items.flatMap(({ children, found }) => [
      found,
      ...(depth < MAX_DEPTH
        ? walk(children, container === undefined ? found.name : `${container}.${found.name}`, depth + 1)
        : [])
    ])
  }
  const items = walk(value, undefined, 0)
  return { items, unreadable }
}

const symbol = (
  item: unknown,
  container: string | undefined
): Option.Option<{ readonly found: DocumentSymbol; readonly children: unknown }> =>
  Option.orElse(
    Option.map(readNested(item), ({ children, kind, name, range, selectionRange }) => ({
      found: { name, kind: kindOf(kind), container, range: toRange(range), at: toRange(selectionRange ?? range).start },
      children
    })),
    () =>
      Option.flatMap(readFlat(item), ({ containerName, kind, location, name }) => {
        if (location.range === undefined) return Option.none()
        const range = toRange(location.range)
        const found = { name, kind: kindOf(kind), container: containerName ?? undefined, range, at: range.start }
        return Option.some({ found, children: undefined })
      })
  )

/**
 * A symbol of a project.
 *
 * @category models
 * @since 0.1.0
 */
export interface WorkspaceSymbol {
  readonly name: string
  readonly kind: string
  readonly container?: string | undefined
  readonly location: Location
}

/**
 * Reads the symbols of a project: `SymbolInformation` or `WorkspaceSymbol`.
 *
 * @category decoding
 * @since 0.1.0
 */
export const workspaceSymbols = (value: unknown): Items<WorkspaceSymbol> =>
  itemsOf(value, (item) =>
    Option.map(readFlat(item), ({ containerName, kind, location, name }) => ({
      name,
      kind: kindOf(kind),
      container: containerName === null || containerName === "" ? undefined : containerName,
      location: { uri: location.uri, range: location.range && toRange(location.range) }
    })))

// -----------------------------------------------------------------------------
// diagnostics
// -----------------------------------------------------------------------------

const SEVERITIES = ["error", "warning", "information", "hint"] as const

/**
 * What a server finds wrong.
 *
 * @category models
 * @since 0.1.0
 */
export interface Diagnostic {
  readonly range: Range
  readonly severity: "error" | "warning" | "information" | "hint" | "unknown"
  readonly message: string
  readonly source?: string | undefined
  readonly code?: string | undefined
  readonly related: ReadonlyArray<{ readonly location: Location; readonly message: string }>
}

const readDiagnostic = Schema.decodeUnknownOption(Schema.Struct({
  range: RangeSchema,
  severity: Schema.optional(Schema.Unknown),
  message: Schema.Unknown,
  source: Schema.optional(Schema.Unknown),
  code: Schema.optional(Schema.Unknown),
  relatedInformation: Schema.optional(Schema.Unknown)
}))
const readRelated = Schema.decodeUnknownOption(
  Schema.Struct({ location: Schema.Unknown, message: Schema.String })
)

/**
 * Reads a list of diagnostics.
 *
 * @category decoding
 * @since 0.1.0
 */
export const diagnostics = (value: unknown): Items<Diagnostic> =>
  itemsOf(
    value,
    (item) =>
      Option.flatMap(readDiagnostic(item), ({ code, message, range, relatedInformation, severity, source }) =>
        Option.map(marked(message), (text): Diagnostic => ({
          range: toRange(range),
          severity: typeof severity === "number" ? SEVERITIES[severity - 1] ?? "unknown" : "unknown",
          message: text,
          source: typeof source === "string" ? source : undefined,
          code: typeof code === "string" || typeof code === "number" ? String(code) : undefined,
          related: itemsOf(relatedInformation, (related) =>
            Option.flatMap(readRelated(related), ({ location: where, message }) =>
              Option.map(location(where), (location) => ({ location, message })))).items
        })))
  )

/**
 * Schema for the params of `textDocument/publishDiagnostics`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Published = Schema.Struct({
  uri: Schema.String,
  version: Schema.optional(Schema.NullOr(Schema.Finite)),
  diagnostics: Schema.Unknown
})

/**
 * Reads the answer to `textDocument/diagnostic`; `undefined` where it is not a full report.
 *
 * @category decoding
 * @since 0.1.0
 */
export const pulled = (value: unknown): Items<Diagnostic> | undefined =>
  Predicate.hasProperty(value, "kind") && value.kind === "full" && Predicate.hasProperty(value, "items") &&
    Array.isArray(value.items)
    ? diagnostics(value.items)
    : undefined

/**
 * Answers questions about code with the language servers of a folder, and renames in it.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type { FileError } from "../shared/FileError.ts"
import * as TextChange from "../shared/TextChange.ts"
import type { Document } from "./Documents.ts"
import * as Edits from "./edits.ts"
import type { Failure } from "./failures.ts"
import { LanguageServers } from "./LanguageServers.ts"
import { BadAnswer, fail, type LspError, NoServer, RenameRefused } from "./LspError.ts"
import * as Positions from "./positions.ts"
import * as Protocol from "./protocol.ts"
import { cut, Found, listFields, makeShow } from "./results.ts"
import type { Asking, OnStep } from "./session.ts"
import * as Uris from "./uris.ts"
import * as WorkspaceEdit from "./workspaceEdit.ts"

const MAX_LOCATIONS = 200
const MAX_SYMBOLS = 500
const MAX_DIAGNOSTICS = 200
const MAX_RELATED = 5
const MAX_TEXT = 16_384
const MAX_DIFF = 100_000

// =============================================================================
// Models
// =============================================================================

/**
 * Schema for places of code.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Locations = Schema.Struct({ locations: Schema.Array(Found), ...listFields })

/**
 * Schema for what is known of a name.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Hover = Schema.Struct({
  file: Schema.String,
  line: Schema.Int,
  column: Schema.Int,
  text: Schema.NullOr(Schema.String).annotate({
    description: "Markdown; null where the language server has nothing to say"
  })
})

/**
 * Schema for the symbols of a file.
 *
 * @category schemas
 * @since 0.1.0
 */
export const DocumentSymbols = Schema.Struct({
  file: Schema.String,
  symbols: Schema.Array(Schema.Struct({
    name: Schema.String,
    kind: Schema.String,
    container: Schema.optionalKey(Schema.String),
    line: Schema.Int,
    column: Schema.Int,
    endLine: Schema.Int
  })),
  ...listFields
})

/**
 * Schema for the symbols of a project.
 *
 * @category schemas
 * @since 0.1.0
 */
export const WorkspaceSymbols = Schema.Struct({
  symbols: Schema.Array(Schema.Struct({
    name: Schema.String,
    kind: Schema.String,
    container: Schema.optionalKey(Schema.String),
    ...Found.fields
  })),
  ...listFields
})

/**
 * Schema for what is wrong with a file.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Diagnostics = Schema.Struct({
  file: Schema.String,
  fresh: Schema.Boolean.annotate({
    description: "False when the language server was not done in time: what is shown may be of an older text"
  }),
  diagnostics: Schema.Array(Schema.Struct({
    severity: Schema.Literals(["error", "warning", "information", "hint", "unknown"]),
    message: Schema.String,
    line: Schema.Int,
    column: Schema.Int,
    endLine: Schema.Int,
    endColumn: Schema.Int,
    code: Schema.optionalKey(Schema.String),
    source: Schema.optionalKey(Schema.String),
    preview: Schema.optionalKey(Schema.String),
    related: Schema.optionalKey(Schema.Array(Schema.Struct({ ...Found.fields, message: Schema.String })))
  })),
  ...listFields
})

/**
 * Schema for what a rename does.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Renamed = Schema.Struct({
  written: Schema.Boolean.annotate({ description: "False for a dry run" }),
  files: Schema.Array(Schema.String),
  diff: Schema.String,
  note: Schema.optionalKey(Schema.String)
})

/**
 * Which name is meant: with a column, or with the name itself.
 *
 * @category models
 * @since 0.1.0
 */
export interface At {
  readonly file: string
  readonly line: number
  readonly column?: number | undefined
  readonly symbol?: string | undefined
}

type Answer<A extends Schema.Constraint> = Effect.Effect<A["Type"], LspError | FileError>

// =============================================================================
// The service
// =============================================================================

/**
 * Questions about code, as a service.
 *
 * @category services
 * @since 0.1.0
 */
export class Code extends Context.Service<Code, {
  readonly definition: (at: At, onStep: OnStep) => Answer<typeof Locations>
  readonly references: (
    at: At & { readonly includeDeclaration?: boolean | undefined },
    onStep: OnStep
  ) => Answer<typeof Locations>
  readonly hover: (at: At, onStep: OnStep) => Answer<typeof Hover>
  readonly documentSymbols: (file: string, onStep: OnStep) => Answer<typeof DocumentSymbols>
  readonly workspaceSymbols: (
    options: { readonly query: string; readonly file?: string | undefined },
    onStep: OnStep
  ) => Answer<typeof WorkspaceSymbols>
  readonly diagnostics: (file: string, onStep: OnStep) => Answer<typeof Diagnostics>
  readonly rename: (
    at: At & { readonly newName: string; readonly dryRun?: boolean | undefined },
    onStep: OnStep
  ) => Answer<typeof Renamed>
}>()("effect-stdio/examples/Code") {
  static readonly layer = (): Layer.Layer<Code, never, LanguageServers | FileSystem.FileSystem | Path.Path> =>
    Layer.effect(Code, make)
}

/**
 * Makes the service.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<
  Code["Service"],
  never,
  LanguageServers | FileSystem.FileSystem | Path.Path
> = Effect.gen(function*() {
  const servers = yield* LanguageServers
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { maxFileBytes, root } = servers
  // asking goes on side by side: whoever writes second finds files that have changed, and writes nothing
  const writing = yield* Semaphore.make(1)
  const hide = (text: string) => Uris.relativeTo(root.folder, text)
  const show = Effect.provideService(makeShow(root, maxFileBytes), FileSystem.FileSystem, fs)

  /** Asks about a name in a file. */
  const askAt = <A>(
    at: At,
    onStep: OnStep,
    question: (
      asking: Asking,
      position: Protocol.Position,
      params: { readonly textDocument: { readonly uri: string }; readonly position: Protocol.Position },
      document: Document
    ) => Effect.Effect<A, Failure>
  ) =>
    servers.ask(
      { path: at.file },
      onStep,
      (asking, document) =>
        Effect.flatMap(
          Positions.find(document.text, at),
          (position) => question(asking, position, { textDocument: { uri: document.uri }, position }, document)
        )
    )

  const locationsOf = Effect.fnUntraced(
    function*({ call, server }: Asking, method: string, provider: string, params: object) {
      const answer = yield* call(method, provider, params)
      const found = Protocol.locations(answer)
      if (found.items.length === 0 && found.unreadable > 0) return yield* unreadable(server, method)
      const { fields, shown } = cut(found, MAX_LOCATIONS)
      return { locations: yield* Effect.forEach(shown, yield* show), ...fields }
    }
  )

  /** The changes of a rename, which nobody has made yet. */
  const changesOf = (at: At & { readonly newName: string }, onStep: OnStep) =>
    askAt(at, onStep, (asking, position, params, document) =>
      Effect.gen(function*() {
        if (Positions.isWordAt(document.text, position, at.newName)) {
          return yield* fail(new RenameRefused({ problem: "Same", subject: "" }))
        }
        const provider = asking.capability("renameProvider")
        if (Predicate.hasProperty(provider, "prepareProvider") && provider.prepareProvider === true) {
          const prepared = yield* asking.call("textDocument/prepareRename", "renameProvider", params)
          if (prepared === null) return yield* fail(new RenameRefused({ problem: "Nothing", subject: "" }))
        }
        const method = "textDocument/rename"
        const answer = yield* asking.call(method, "renameProvider", { ...params, newName: at.newName })
        const edits = WorkspaceEdit.read(answer)
        if (edits === undefined) return yield* unreadable(asking.server, method)
        // the position is one of the text as it was: in another one, another name stands there
        if (!asking.isCurrent(document)) {
          return yield* fail(new RenameRefused({ problem: "Version", subject: at.file }))
        }
        if (edits.length === 0) return yield* fail(new RenameRefused({ problem: "Nothing", subject: "" }))
        const changes = yield* Edits.toChanges(edits, { root, maxFileBytes, ...asking })
        return changes.length === 0 ? yield* fail(new RenameRefused({ problem: "Same", subject: "" })) : changes
      }).pipe(Effect.provideService(FileSystem.FileSystem, fs)))

  return Code.of({
    definition: (at, onStep) =>
      askAt(
        at,
        onStep,
        (asking, _, params) => locationsOf(asking, "textDocument/definition", "definitionProvider", params)
      ),
    references: (at, onStep) =>
      askAt(at, onStep, (asking, _, params) =>
        locationsOf(asking, "textDocument/references", "referencesProvider", {
          ...params,
          context: { includeDeclaration: at.includeDeclaration ?? true }
        })),
    hover: (at, onStep) =>
      askAt(at, onStep, ({ call, server }, position, params, document) =>
        Effect.gen(function*() {
          const method = "textDocument/hover"
          const hover = Protocol.hover(yield* call(method, "hoverProvider", params))
          if (hover === undefined) return yield* unreadable(server, method)
          const start = hover.range?.start ?? position
          const text = hide(hover.text)
          return {
            file: root.nameOf(document.path) ?? at.file,
            line: start.line + 1,
            column: start.character + 1,
            text: text === "" ? null : text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
          }
        })),
    documentSymbols: (file, onStep) =>
      servers.ask({ path: file }, onStep, ({ call, server }, document) =>
        Effect.gen(function*() {
          const method = "textDocument/documentSymbol"
          const answer = yield* call(method, "documentSymbolProvider", { textDocument: { uri: document.uri } })
          const found = Protocol.documentSymbols(answer)
          if (found.items.length === 0 && found.unreadable > 0) return yield* unreadable(server, method)
          // some servers sort by name
          const items = found.items.toSorted(({ at: a }, { at: b }) => a.line - b.line || a.character - b.character)
          const { fields, shown } = cut({ ...found, items }, MAX_SYMBOLS)
          return {
            file: root.nameOf(document.path) ?? file,
            symbols: shown.map(({ at, container, kind, name, range }) => ({
              name,
              kind,
              ...(container === undefined ? {} : { container }),
              line: at.line + 1,
              column: at.character + 1,
              endLine: range.end.line + 1
            })),
            ...fields
          }
        })),
    workspaceSymbols: ({ file, query }, onStep) =>
      Effect.gen(function*() {
        const ask = ({ call }: Asking) =>
          Effect.map(
            call("workspace/symbol", "workspaceSymbolProvider", { query }),
            Protocol.workspaceSymbols
          )
        const started = file === undefined ? yield* servers.started : []
        if (file === undefined && started.length === 0) return yield* fail(new NoServer())
        const lists = file === undefined
          ? yield* Effect.forEach(started, (language) => servers.askAll(language, onStep, ask), {
            concurrency: "unbounded"
          })
          : [yield* servers.ask({ path: file }, onStep, ask)]
        const items = lists.flatMap(({ items }) => items)
        const { fields, shown } = cut(
          { items, unreadable: lists.reduce((sum, { unreadable }) => sum + unreadable, 0) },
          MAX_LOCATIONS
        )
        const showOne = yield* show
        const symbols = yield* Effect.forEach(shown, ({ container, kind, location, name }) =>
          Effect.map(showOne(location), (found) => ({
            name,
            kind,
            ...(container === undefined ? {} : { container: hide(container) }),
            ...found
          })))
        return { symbols, ...fields }
      }),
    diagnostics: (file, onStep) =>
      servers.ask({ path: file, anew: true }, onStep, (asking, document) =>
        Effect.gen(function*() {
          const report = yield* asking.diagnostics(document)
          const note = report.fresh ? undefined : "The language server was not done in time. Call again later."
          const { fields, shown } = cut(report, MAX_DIAGNOSTICS, note)
          const showOne = yield* show
          const diagnostics = yield* Effect.forEach(shown, ({ code, message, range, related, severity, source }) =>
            Effect.gen(function*() {
              const { preview } = yield* showOne({ uri: document.uri, range })
              const others = yield* Effect.forEach(related.slice(0, MAX_RELATED), ({ location, message }) =>
                Effect.map(showOne(location), (found) => ({ ...found, message: hide(message) })))
              return {
                severity,
                message: hide(message),
                line: range.start.line + 1,
                column: range.start.character + 1,
                endLine: range.end.line + 1,
                endColumn: range.end.character + 1,
                ...(code === undefined ? {} : { code }),
                ...(source === undefined ? {} : { source }),
                ...(preview === undefined ? {} : { preview }),
                ...(others.length === 0 ? {} : { related: others })
              }
            }))
          return { file: root.nameOf(document.path) ?? file, fresh: report.fresh, diagnostics, ...fields }
        })),
    rename: (at, onStep) =>
      Effect.gen(function*() {
        const { dryRun = true } = at
        const changes = yield* changesOf(at, onStep)
        const diff = TextChange.toDiff(changes)
        if (!dryRun) yield* writing.withPermits(1)(Effect.andThen(TextChange.write(changes), servers.refresh))
        return {
          written: !dryRun,
          files: changes.map(({ place }) => place.name),
          diff: diff.slice(0, MAX_DIFF),
          ...(diff.length > MAX_DIFF ? { note: `The diff is cut after ${MAX_DIFF} characters.` } : {})
        }
      }).pipe(
        Effect.provideService(FileSystem.FileSystem, fs),
        Effect.provideService(Path.Path, path)
      )
  })
})

const unreadable = (server: string, method: string) =>
  fail(new BadAnswer({ server, method, detail: "it is nothing that the protocol knows" }))

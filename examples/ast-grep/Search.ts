/**
 * Finds code by its structure in the files below one folder, and rewrites it.
 *
 * **Limits**
 *
 * A file is parsed in a thread of its own, and several at a time, in the order of their paths; matches are sought between
 * them, so that other calls go on. A page of matches ends at a limit and can be continued with its cursor; a
 * replacement is made as a whole or not at all, so that it fails at a limit. A file that changes between two pages can
 * have matches twice or not at all.
 *
 * A replacement only touches the outermost of matches that are in each other. Files are written all or none
 * (`../shared/TextChange.ts`), and only when they are what they were when they were read.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { fail as failFile, type FileError, NotFound, TooSlow } from "../shared/FileError.ts"
import * as Root from "../shared/Root.ts"
import * as TextChange from "../shared/TextChange.ts"
import { type AstGrepError, fail, ResultChanged, TooMuch } from "./AstGrepError.ts"
import * as Coverage from "./coverage.ts"
import * as Files from "./files.ts"
import * as Globs from "./globs.ts"
import * as Languages from "./languages.ts"
import * as Pages from "./pages.ts"
import * as Patterns from "./patterns.ts"
import * as Replacements from "./replacements.ts"
import * as Rewrites from "./rewrites.ts"

const DEFAULT_MAX_FILES = 20_000
const DEFAULT_MAX_FILE_BYTES = 1024 * 1024
const DEFAULT_MAX_MATCHES = 100
const DEFAULT_MAX_RESULT_BYTES = 256 * 1024
const DEFAULT_MAX_TEXT_LENGTH = 1_000
const DEFAULT_MAX_CHANGED_FILES = 500
const DEFAULT_MAX_CHANGED_BYTES = 32 * 1024 * 1024

/** Read and parsed at a time: Node has four threads for both. */
const CONCURRENCY = 4

// =============================================================================
// Models
// =============================================================================

/**
 * What to find.
 *
 * @category models
 * @since 0.1.0
 */
export interface Query {
  /** Code with metavariables. */
  readonly pattern: string
  /** The kind of the node in the pattern that is sought. @default the whole pattern */
  readonly selector?: string | undefined
  /** The name of a language or an alias. */
  readonly language: string
  /** Which files, relative to the root. @default all */
  readonly globs?: ReadonlyArray<string> | undefined
}

/**
 * What to find, and from where on.
 *
 * @category models
 * @since 0.1.0
 */
export interface SearchOptions extends Query {
  /** `nextCursor` of the page before. @default the first page */
  readonly cursor?: string | undefined
}

/**
 * What to find, and what to put in its place.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReplaceOptions extends Query {
  /** Code with metavariables of the pattern. */
  readonly rewrite: string
  /** Whether to show what would change and leave it at that. @default true */
  readonly dryRun?: boolean | undefined
  /** `version` of a dry run: nothing is written when the result would be another one. @default any */
  readonly version?: string | undefined
}

/**
 * Where the code is and how much of it is looked at in a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The folder below which code is searched. @default the working directory */
  readonly root?: string | undefined
  /** Most files of a call. @default 20000 */
  readonly maxFiles?: number | undefined
  /** Largest file, in bytes; larger ones are skipped. @default 1048576 */
  readonly maxFileBytes?: number | undefined
  /** Most matches on a page. @default 100 */
  readonly maxMatches?: number | undefined
  /** Most bytes of JSON for the matches of a page, and for a diff. @default 262144 */
  readonly maxResultBytes?: number | undefined
  /** Longest text of a match, in UTF-16 code units; a longer one is cut and ends with "…". @default 1000 */
  readonly maxTextLength?: number | undefined
  /** Most files that a replacement changes. @default 500 */
  readonly maxChangedFiles?: number | undefined
  /** Most bytes of the files that a replacement changes. @default 33554432 */
  readonly maxChangedBytes?: number | undefined
  /** After this time a page ends, and a replacement fails that has not begun to write. @default "60 seconds" */
  readonly maxTime?: Duration.Input | undefined
}

// =============================================================================
// Service
// =============================================================================

/**
 * Structural search in the files below a folder.
 *
 * @category services
 * @since 0.1.0
 */
export class Search extends Context.Service<Search, {
  /** Finds a page of matches. */
  readonly search: (
    options: SearchOptions,
    onProgress?: Coverage.OnProgress
  ) => Effect.Effect<Pages.Page, AstGrepError | FileError>
  /** Rewrites matches, or shows what would change. */
  readonly replace: (
    options: ReplaceOptions,
    onProgress?: Coverage.OnProgress
  ) => Effect.Effect<Replacements.Replaced, AstGrepError | FileError>
}>()("effect-stdio/examples/ast-grep/Search") {
  /**
   * Layer that searches below `options.root`.
   *
   * @since 0.1.0
   */
  static readonly layer = (
    options?: Options
  ): Layer.Layer<Search, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(Search, make(options))
}

/**
 * Makes the service; it fails when the root folder does not exist.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  options?: Options
): Effect.fn.Return<Search["Service"], PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const root = yield* Root.make(options?.root ?? process.cwd())
  const maxFiles = options?.maxFiles ?? DEFAULT_MAX_FILES
  const maxFileBytes = options?.maxFileBytes ?? DEFAULT_MAX_FILE_BYTES
  const maxMatches = options?.maxMatches ?? DEFAULT_MAX_MATCHES
  const maxResultBytes = options?.maxResultBytes ?? DEFAULT_MAX_RESULT_BYTES
  const maxTextLength = options?.maxTextLength ?? DEFAULT_MAX_TEXT_LENGTH
  const maxChangedFiles = options?.maxChangedFiles ?? DEFAULT_MAX_CHANGED_FILES
  const maxChangedBytes = options?.maxChangedBytes ?? DEFAULT_MAX_CHANGED_BYTES
  const maxTime = Duration.toMillis(options?.maxTime ?? "60 seconds")

  const compile = Effect.fnUntraced(function*({ globs, language, pattern, selector }: Query) {
    const found = yield* Languages.find(language)
    return {
      language: found,
      globs: yield* Globs.make(globs ?? []),
      pattern: yield* Patterns.compile(found, pattern, selector === "" ? undefined : selector)
    }
  })
  type Compiled = Effect.Success<ReturnType<typeof compile>>

  const listFiles = ({ globs, language }: Compiled, deadline: number, from?: string) =>
    Files.list(root, {
      matches: (path) => Languages.isFileOf(language, path) && globs.matches(path),
      excludes: globs.excludes,
      from,
      maxFiles,
      deadline
    })

  /** Reads a file that was listed, and looks for matches. */
  const look = Effect.fnUntraced(function*(name: string, pattern: Patterns.Pattern) {
    const place = yield* root.file(name)
    // A file that has become a link since it was listed is searched where it is, if at all.
    if (place.name !== name) return yield* failFile(new NotFound({ path: name }))
    const text = yield* TextChange.read(place, maxFileBytes)
    // Editors do not count the byte order mark.
    const mark = text.startsWith("\uFEFF") ? "\uFEFF" : ""
    const code = text.slice(mark.length)
    const found = yield* pattern.find(code)
    if (found === undefined) return yield* failFile(new TooSlow({ path: name }))
    return { place, text, mark, code, ...found }
  })

  const lookAll = (files: ReadonlyArray<string>, pattern: Patterns.Pattern) =>
    Stream.fromIterable(files).pipe(
      Stream.mapEffect(
        (file) => Effect.map(Effect.result(look(file, pattern)), (result) => ({ file, result })),
        { concurrency: CONCURRENCY }
      )
    )

  const search = Effect.fn("Search.search")(function*(request: SearchOptions, onProgress?: Coverage.OnProgress) {
    const compiled = yield* compile(request)
    const { language, pattern } = compiled
    const key = Pages.digest([request.pattern, request.selector ?? "", language.name, request.globs ?? []])
    const start = request.cursor ? yield* Pages.decodeCursor(key, request.cursor) : undefined
    const began = yield* Clock.currentTimeMillis
    const listed = yield* listFiles(compiled, began + maxTime / 2, start?.file)
    const report = Coverage.reporter(listed.files.length, onProgress)
    const seen = Coverage.make(listed.skipped)
    const matches: Array<Pages.Match> = []
    let bytes = 0
    let end: { readonly start: Pages.Start; readonly stoppedBy: NonNullable<Pages.Page["stoppedBy"]> } | undefined

    yield* lookAll(listed.files, pattern).pipe(
      Stream.runForEachWhile(Effect.fnUntraced(function*({ file, result }) {
        const late = seen.files > 0 && (yield* Clock.currentTimeMillis) - began >= maxTime
        if (late) {
          end = { start: { file, skip: 0 }, stoppedBy: "time" }
          return false
        }
        seen.add(file, result)
        if (result._tag === "Success") {
          const { code, matches: found } = result.success
          const position = Pages.positions(code)
          for (let index = file === start?.file ? start.skip : 0; index < found.length && end === undefined; index++) {
            const next = found[index]
            if (next === undefined) continue
            const match = Pages.toMatch(file, code, position, next, maxTextLength)
            bytes += Pages.jsonBytes(match)
            const stoppedBy = matches.length >= maxMatches
              ? "matches"
              : matches.length > 0 && bytes > maxResultBytes
              ? "bytes"
              : undefined
            if (stoppedBy === undefined) matches.push(match)
            else end = { start: { file, skip: index }, stoppedBy }
          }
        }
        yield* report
        return end === undefined
      }))
    )
    if (end === undefined && listed.rest !== undefined) {
      end = { start: { file: listed.rest.from, skip: 0 }, stoppedBy: listed.rest.because }
    }
    return {
      language: language.name,
      matches,
      ...seen.result(),
      ...Coverage.noteOf(
        compiled,
        request.globs,
        matches.length,
        end === undefined && start === undefined ? listed : undefined
      ),
      truncated: end !== undefined,
      ...(end !== undefined && {
        stoppedBy: end.stoppedBy,
        nextCursor: Pages.encodeCursor(key, end.start)
      })
    }
  })

  /** Reads all files, and makes the new text of those that change. */
  const plan = Effect.fnUntraced(function*(request: ReplaceOptions, onProgress?: Coverage.OnProgress) {
    const compiled = yield* compile(request)
    const rewrite = yield* Rewrites.compile(request.rewrite, compiled.pattern.names)
    const listed = yield* listFiles(compiled, (yield* Clock.currentTimeMillis) + maxTime)
    if (listed.rest !== undefined) {
      return yield* fail(
        listed.rest.because === "time"
          ? new TooMuch({ what: "seconds", max: maxTime / 1_000 })
          : new TooMuch({ what: "files looked at", max: maxFiles })
      )
    }
    const report = Coverage.reporter(listed.files.length, onProgress)
    const seen = Coverage.make(listed.skipped)
    const changes: Array<TextChange.TextChange> = []
    const files: Array<Replacements.Replaced["files"][number]> = []
    let [bytes, nested] = [0, 0]
    yield* lookAll(listed.files, compiled.pattern).pipe(
      Stream.runForEach(Effect.fnUntraced(function*({ file, result }) {
        seen.add(file, result)
        yield* report
        if (result._tag === "Failure" || result.success.matches.length === 0) return
        const { code, mark, matches, place, text } = result.success
        const rewritten = yield* rewrite.apply(code, matches, maxChangedBytes)
        if (rewritten === undefined) return yield* fail(new TooMuch({ what: "bytes changed", max: maxChangedBytes }))
        nested += rewritten.nested
        if (rewritten.code === code) return
        const change = { place, before: text, after: mark + rewritten.code }
        changes.push(change)
        files.push({ file, replacements: rewritten.replaced })
        bytes += Math.max(change.before.length, change.after.length)
        if (changes.length > maxChangedFiles) {
          return yield* fail(new TooMuch({ what: "files changed", max: maxChangedFiles }))
        }
        if (bytes > maxChangedBytes) return yield* fail(new TooMuch({ what: "bytes changed", max: maxChangedBytes }))
      }))
    )
    const replacements = files.reduce((sum, file) => sum + file.replacements, 0)
    return {
      changes,
      result: {
        language: compiled.language.name,
        replacements,
        nested,
        files,
        ...seen.result(),
        ...Coverage.noteOf(compiled, request.globs, replacements, listed)
      },
      version: Pages.digest(
        changes.map(({ after, before, place }) => [place.name, Pages.digest(before), Pages.digest(after)])
      )
    }
  }, (effect) =>
    Effect.timeoutOrElse(effect, {
      duration: maxTime,
      orElse: () => fail(new TooMuch({ what: "seconds", max: maxTime / 1_000 }))
    }))

  // One write at a time: the next one starts from what the one before has made.
  const writing = yield* Semaphore.make(1)

  const write = Effect.fnUntraced(function*(request: ReplaceOptions, onProgress?: Coverage.OnProgress) {
    const { changes, result, version } = yield* plan(request, onProgress)
    if (request.version && request.version !== version) return yield* fail(new ResultChanged())
    if (changes.length > 0) yield* TextChange.write(changes)
    return { ...result, written: changes.length > 0 }
  }, (effect) => writing.withPermit(effect))

  const dryRun = Effect.fnUntraced(function*(request: ReplaceOptions, onProgress?: Coverage.OnProgress) {
    const { changes, result, version } = yield* plan(request, onProgress)
    const readOnly = changes.filter(TextChange.isReadOnly).map(({ place }) => place.name)
    return {
      ...result,
      written: false,
      ...(yield* Replacements.toDiff(changes, maxResultBytes)),
      version,
      ...(readOnly.length > 0 && { readOnly })
    }
  })

  return Search.of({
    search: (request, onProgress) => Effect.provideContext(search(request, onProgress), context),
    replace: Effect.fn("Search.replace")((request, onProgress) =>
      Effect.provideContext((request.dryRun ?? true ? dryRun : write)(request, onProgress), context)
    )
  })
})

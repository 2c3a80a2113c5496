/**
 * The documents that a language server has open: what it was told of them, and that it is what is on the disk.
 *
 * The one idea to know: between `refresh` and a question the server sees the files as they are. A document is opened when
 * it is asked about, follows the disk from then on, and is closed when many others were opened after it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { FileError } from "../shared/FileError.ts"
import type { Place, Root } from "../shared/Root.ts"
import * as TextChange from "../shared/TextChange.ts"
import * as Disk from "./disk.ts"
import * as Uris from "./uris.ts"

/**
 * An open document, as the server was told of it last.
 *
 * @category models
 * @since 0.1.0
 */
export interface Document {
  /** Absolute and without links. */
  readonly path: string
  readonly uri: string
  readonly languageId: string
  readonly version: number
  /** The first version with this text. */
  readonly since: number
  /** Without a byte order mark, which is no part of a text for language servers. */
  readonly text: string
}

interface Open extends Document {
  readonly stamp: Disk.Stamp | undefined
  /** Questions about it that run: it is not closed meanwhile. */
  readonly users: number
}

/**
 * Sends a notification to the server.
 *
 * @category models
 * @since 0.1.0
 */
export type Notify<E> = (method: string, params: object) => Effect.Effect<void, E>

/**
 * The documents that a language server has open.
 *
 * @category models
 * @since 0.1.0
 */
export interface Documents {
  /** Opens a document, and keeps it open until `release`; one that is open already may be sent anew. */
  readonly open: <E>(
    notify: Notify<E>,
    place: Place,
    languageId: string,
    options: { readonly anew: boolean }
  ) => Effect.Effect<Document, E | FileError>
  readonly release: (path: string) => Effect.Effect<void>
  /** Tells the server of open documents that changed on the disk, and closes those that are gone. */
  readonly refresh: <E>(notify: Notify<E>) => Effect.Effect<void, E>
  /** Opens all of them again, for a server that was started anew. */
  readonly reopen: <E>(notify: Notify<E>) => Effect.Effect<void, E>
  /** The documents that are open now; later changes are not seen. */
  readonly snapshot: () => ReadonlyMap<string, Document>
  /** What the server was told of a file, if it is open. */
  readonly at: (path: string) => Document | undefined
  readonly count: () => number
}

/**
 * Options of {@link make}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Largest document, in bytes. */
  readonly maxFileBytes: number
  /** Open documents; beyond, those are closed that were not asked about for the longest time. */
  readonly maxOpen: number
  /** Is told of each document that is closed. */
  readonly onClosed: (path: string) => void
}

/**
 * The documents of a server below a folder. None of its functions may run at the same time as another, except `release`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(
  root: Root,
  { maxFileBytes, maxOpen, onClosed }: Options
): Effect.fn.Return<Documents, never, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  // in the order of their last use
  const open = new Map<string, Open>()
  let lastVersion = 0

  const read = (place: Place) =>
    TextChange.read(place, maxFileBytes).pipe(
      Effect.map(withoutMark),
      Effect.provideService(FileSystem.FileSystem, fs)
    )

  /** What a document is now: its stamp is taken first, so that a change in between is seen the next time. */
  const look = Effect.fnUntraced(function*({ path }: Document) {
    const stamp = yield* Disk.stampOf(path)
    return { stamp, text: yield* Effect.flatMap(root.file(path), read) }
  })

  const didOpen = <E>(notify: Notify<E>, { languageId, text, uri, version }: Document) =>
    notify("textDocument/didOpen", { textDocument: { uri, languageId, version, text } })

  const didClose = <E>(notify: Notify<E>, { path, uri }: Document) =>
    Effect.andThen(
      notify("textDocument/didClose", { textDocument: { uri } }),
      Effect.sync(() => {
        open.delete(path)
        onClosed(path)
      })
    )

  const didChange = Effect.fnUntraced(
    function*<E>(notify: Notify<E>, document: Open, now: Pick<Open, "stamp" | "text">) {
      const version = ++lastVersion
      yield* notify("textDocument/didChange", {
        textDocument: { uri: document.uri, version },
        contentChanges: [{ text: now.text }]
      })
      const since = now.text === document.text ? document.since : version
      open.set(document.path, { ...document, ...now, version, since })
    }
  )

  const refreshOne = Effect.fnUntraced(function*<E>(notify: Notify<E>, document: Open): Effect.fn.Return<void, E> {
    const stamp = yield* Disk.stampOf(document.path)
    if (stamp !== undefined && stamp === document.stamp) return
    const now = yield* Effect.option(look(document))
    // gone, or nothing that could be opened now
    if (now._tag === "None") return yield* didClose(notify, document)
    if (now.value.text === document.text) open.set(document.path, { ...document, ...now.value })
    else yield* didChange(notify, document, now.value)
  })

  const closeOldest = Effect.fnUntraced(function*<E>(notify: Notify<E>): Effect.fn.Return<void, E> {
    for (const document of Array.from(open.values())) {
      if (open.size <= maxOpen) return
      if (document.users === 0) yield* didClose(notify, document)
    }
  })

  return {
    open: Effect.fnUntraced(function*(notify, place, languageId, { anew }) {
      const known = open.get(place.path)
      if (known === undefined) {
        const stamp = yield* Disk.stampOf(place.path)
        const version = ++lastVersion
        const document: Open = {
          path: place.path,
          uri: Uris.fromPath(place.path),
          languageId,
          version,
          since: version,
          text: yield* read(place),
          stamp,
          users: 1
        }
        yield* didOpen(notify, document)
        open.set(document.path, document)
        yield* closeOldest(notify)
        return document
      }
      if (anew) yield* didChange(notify, known, known)
      const document = { ...known, ...open.get(place.path), users: known.users + 1 }
      open.delete(document.path)
      open.set(document.path, document)
      return document
    }),
    release: (path) =>
      Effect.sync(() => {
        const document = open.get(path)
        if (document !== undefined) open.set(path, { ...document, users: Math.max(0, document.users - 1) })
      }),
    refresh: (notify) =>
      Effect.forEach(Array.from(open.values()), (document) => refreshOne(notify, document), { discard: true }),
    reopen: (notify) =>
      Effect.forEach(Array.from(open.values()), (document) =>
        Effect.matchEffect(look(document), {
          onFailure: () =>
            Effect.sync(() => {
              open.delete(document.path)
            }),
          onSuccess: (now) => {
            const version = ++lastVersion
            const opened = { ...document, ...now, version, since: version }
            open.set(document.path, opened)
            return didOpen(notify, opened)
          }
        }), { discard: true }),
    snapshot: () => new Map(open),
    at: (path) => open.get(path),
    count: () => open.size
  }
})

/**
 * A text without its byte order mark.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withoutMark = (text: string): string => text.startsWith("\uFEFF") ? text.slice(1) : text

// What the tests of the Excel example share: a folder that goes away, workbooks made on the spot, and ZIP files.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as PlatformError from "effect/PlatformError"
import type * as ExcelJS from "exceljs"
import { Buffer } from "node:buffer"
import { join } from "node:path"
import * as Zlib from "node:zlib"
import * as Archive from "../../examples/excel/archive.ts"
import * as Workbooks from "../../examples/excel/Workbooks.ts"

/** A root folder and its parent, both in a temporary folder that is removed in the end. */
export class Folder extends Context.Service<Folder, {
  readonly root: string
  readonly outside: string
  /** Reads a file below the root. */
  readonly read: (name: string) => Effect.Effect<Uint8Array>
  /** Writes a file below the root. */
  readonly write: (name: string, contents: Uint8Array | string) => Effect.Effect<void>
  /** Writes a workbook that exceljs makes. */
  readonly workbook: (name: string, build: (book: ExcelJS.Workbook) => void) => Effect.Effect<void>
}>()("effect-stdio/test/excel/Folder") {
  static readonly layer = Layer.effect(
    Folder,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const outside = yield* fs.makeTempDirectoryScoped({ prefix: "effect-stdio-excel-" })
      const root = join(outside, "root")
      yield* fs.makeDirectory(root)
      const write = (name: string, contents: Uint8Array | string) =>
        Effect.orDie(fs.writeFile(join(root, name), Buffer.from(contents)))
      return Folder.of({
        root,
        outside,
        read: (name) => Effect.orDie(fs.readFile(join(root, name))),
        write,
        workbook: (name, build) => Effect.flatMap(Effect.promise(() => bytesOf(build)), (bytes) => write(name, bytes))
      })
    })
  ).pipe(Layer.provideMerge(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)))
}

const bytesOf = async (build: (book: ExcelJS.Workbook) => void): Promise<Uint8Array> => {
  const { default: exceljs } = await import("exceljs")
  const book = new exceljs.Workbook()
  build(book)
  // Declared as an ArrayBuffer, but it is a Node buffer.
  return await book.xlsx.writeBuffer() as unknown as Uint8Array
}

/** Makes the service for the root folder, in the scope of the test. */
export const open = (options?: Omit<Workbooks.Options, "root">) =>
  Effect.flatMap(Folder, ({ root }) => Workbooks.make({ ...options, root }))

/** Reads all pages from the one that `request` names. */
export const readAll = (workbooks: Workbooks.Workbooks["Service"], request: Workbooks.ReadOptions) =>
  Effect.gen(function*() {
    const pages = [yield* workbooks.readSheet(request)]
    for (;;) {
      const cursor = pages.at(-1)?.nextCursor
      if (cursor === undefined) return pages
      pages.push(yield* workbooks.readSheet({ file: request.file, cursor }))
    }
  })

/** Packs texts into a ZIP archive without compression; `sizes` lets it lie about what an entry unpacks to. */
export const zip = (
  files: Readonly<Record<string, string>>,
  sizes: Readonly<Record<string, number>> = {}
): Uint8Array => {
  const locals: Array<Buffer> = []
  const directory: Array<Buffer> = []
  let offset = 0
  for (const [name, text] of Object.entries(files)) {
    const data = Buffer.from(text)
    const path = Buffer.from(name)
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt32LE(Zlib.crc32(data), 10)
    fields.writeUInt32LE(data.length, 14)
    fields.writeUInt32LE(sizes[name] ?? data.length, 18)
    fields.writeUInt16LE(path.length, 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(offset, 10)
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), fields, path, data])
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), fields, tail, path]))
    locals.push(local)
    offset += local.length
  }
  const records = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(directory.length, 4)
  end.writeUInt16LE(directory.length, 6)
  end.writeUInt32LE(records.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, records, Buffer.from("PK\x05\x06"), end])
}

const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
const DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

/** Packs a workbook with one sheet from its XML, as a program other than Excel may write it. */
export const rawWorkbook = (
  sheet: string,
  more: { readonly workbook?: string; readonly files?: Readonly<Record<string, string>> } = {}
): Uint8Array =>
  zip({
    "[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
      `<Default Extension="xml" ContentType="application/xml"/></Types>`,
    "xl/workbook.xml": `<workbook xmlns="${MAIN}" xmlns:r="${DOCUMENT}"><sheets>` +
      `<sheet name="Raw" sheetId="1" r:id="rId1"/></sheets>${more.workbook ?? ""}</workbook>`,
    "xl/_rels/workbook.xml.rels": relationships([["rId1", "worksheet", "worksheets/sheet1.xml"]]),
    "xl/worksheets/sheet1.xml": `<worksheet xmlns="${MAIN}" xmlns:r="${DOCUMENT}">${sheet}</worksheet>`,
    ...more.files
  })

/** The XML of a relationships part. */
export const relationships = (list: ReadonlyArray<readonly [id: string, type: string, target: string]>): string =>
  `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${
    list.map(([id, type, target]) => `<Relationship Id="${id}" Type="${DOCUMENT}/${type}" Target="${target}"/>`).join(
      ""
    )
  }</Relationships>`

/** Each file of a ZIP archive as it is stored, header included, in the order of the archive. */
export const stored = (bytes: Uint8Array): ReadonlyMap<string, Buffer> => {
  const entries = (Archive.entries(bytes) ?? []).toSorted((a, b) => a.localOffset - b.localOffset)
  const last = Math.min(...entries.map(({ directoryOffset }) => directoryOffset))
  return new Map(entries.map(({ localOffset, name }, index) => [
    name,
    Buffer.from(bytes.subarray(localOffset, entries[index + 1]?.localOffset ?? last))
  ]))
}

/** The text of a file in a ZIP archive. */
export const textOf = (bytes: Uint8Array, name: string) =>
  Effect.gen(function*() {
    const entry = Archive.entries(bytes)?.find((entry) => entry.name === name)
    if (entry === undefined) return yield* Effect.die(new Error(`there is no ${name}`))
    return (yield* Effect.orDie(Archive.unpack(bytes, entry))).toString("utf8")
  })

/** The names in the root folder that a write could leave behind. */
export const leftovers = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  return (yield* fs.readDirectory((yield* Folder).root)).filter((name) => name.endsWith(".tmp"))
})

/** Runs ahead of an operation on the file system. */
export type Before = (operation: string) => Effect.Effect<void, PlatformError.PlatformError>

/** A file system that runs `before` ahead of what changes it: open, write, sync, chmod and rename. */
export const watchChanges = (fs: FileSystem.FileSystem, before: Before): FileSystem.FileSystem => {
  const watched = (file: FileSystem.File): FileSystem.File => ({
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    get stat() {
      return file.stat
    },
    get sync() {
      return Effect.andThen(before("sync"), file.sync)
    },
    seek: (...args) => file.seek(...args),
    read: (...args) => file.read(...args),
    readAlloc: (...args) => file.readAlloc(...args),
    truncate: (...args) => file.truncate(...args),
    write: (...args) => file.write(...args),
    writeAll: (bytes) => Effect.andThen(before("write"), file.writeAll(bytes))
  })
  return {
    ...fs,
    open: (...args) => Effect.andThen(before("open"), Effect.map(fs.open(...args), watched)),
    chmod: (...args) => Effect.andThen(before("chmod"), fs.chmod(...args)),
    rename: (...args) => Effect.andThen(before("rename"), fs.rename(...args))
  }
}

/** Adds a sheet that takes many turns to parse. */
export const addManyRows = (book: ExcelJS.Workbook): void => {
  const sheet = book.addWorksheet("Busy")
  for (let row = 1; row <= 4000; row++) sheet.addRow([row, row + 0.5, row + 0.25, "text"])
}

interface Parser {
  _processWorksheetEntry: (...args: ReadonlyArray<unknown>) => Promise<void>
}

/** Calls `observe` in place of exceljs's parser of a worksheet until the scope closes. */
export const aroundParsing = (observe: (parse: () => Promise<void>) => Promise<void>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { default: exceljs } = await import("exceljs")
      // All readers inherit the method, and the published types leave it out.
      const parser = Object.getPrototypeOf(new exceljs.Workbook().xlsx) as Parser
      const original = parser._processWorksheetEntry
      parser._processWorksheetEntry = function(...args) {
        return observe(() => original.apply(this, [...args]))
      }
      return { parser, original }
    }),
    ({ original, parser }) =>
      Effect.sync(() => {
        parser._processWorksheetEntry = original
      })
  )

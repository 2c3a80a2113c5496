/**
 * The ZIP archive that an .xlsx file is: what is inside, and how to exchange some of it without touching the rest.
 *
 * The directory is read before anything is unpacked: it says what is inside and how large that becomes. `replace`
 * copies every entry that it does not exchange byte for byte, packed as it is, with its header, times and extra
 * fields. Libraries that write ZIP files make all headers anew, and most pack everything again.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import * as Zlib from "node:zlib"

// =============================================================================
// Errors and models
// =============================================================================

/**
 * An entry cannot be unpacked: its data is damaged, or it is packed in a way that no workbook uses.
 *
 * @category errors
 * @since 0.1.0
 */
export class ArchiveError extends Schema.TaggedError<ArchiveError>()("ArchiveError", {
  entry: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `${this.entry} cannot be unpacked`
  }
}

/**
 * Where a number of a directory record is.
 *
 * @category models
 * @since 0.1.0
 */
export interface Field {
  /** Offset in the archive, in bytes. */
  readonly at: number
  /** Whether it has eight bytes and not four, as ZIP64 has it. */
  readonly wide: boolean
}

/**
 * One file in the archive.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly name: string
  /** Size after unpacking, in bytes, as the archive claims. */
  readonly size: number
  /** Size in the archive, in bytes. */
  readonly packedSize: number
  readonly crc: number
  readonly flags: number
  /** How it is packed: 0 is not at all, 8 is deflate. */
  readonly method: number
  /** Where the entry's local header starts. */
  readonly localOffset: number
  /** Where the entry's record in the directory starts. */
  readonly directoryOffset: number
  /** Where the entry's record in the directory ends. */
  readonly directoryEnd: number
  readonly fields: { readonly size: Field; readonly packedSize: Field; readonly localOffset: Field }
}

/**
 * What `replace` does to an archive: the new contents of entries, `undefined` for those to leave out. Names that the
 * archive does not have are added at its end.
 *
 * @category models
 * @since 0.1.0
 */
export type Changes = ReadonlyMap<string, Uint8Array | undefined>

const LOCAL_HEADER = 0x04034b50
const LOCAL_HEADER_BYTES = 30
const DIRECTORY_RECORD = 0x02014b50
const DIRECTORY_RECORD_BYTES = 46
const DIRECTORY_END = 0x06054b50
const DIRECTORY_END_BYTES = 22
const LARGE_DIRECTORY_LOCATOR = 0x07064b50
const LARGE_DIRECTORY_LOCATOR_BYTES = 20
const LARGE_DIRECTORY_END = 0x06064b50
const MAX_COMMENT_BYTES = 0xffff
const IN_EXTRA_FIELD = 0xffffffff
const ZIP64_EXTRA = 0x0001
const ENCRYPTED = 0x0001
const SIZES_AFTER_DATA = 0x0008
const STORED = 0
const DEFLATED = 8
/** 1980-01-01, the first day that ZIP knows. */
const NO_TIME = 0x00210000

const decoder = new TextDecoder()

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

// =============================================================================
// Reading
// =============================================================================

interface Directory {
  readonly entries: ReadonlyArray<Entry>
  readonly start: number
  readonly end: number
  /** Where the record that ends the archive starts. */
  readonly last: number
  /** Where the ZIP64 record that says the same starts. */
  readonly large: number | undefined
}

const directoryEnd = (view: DataView): number | undefined => {
  const last = view.byteLength - DIRECTORY_END_BYTES
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_BYTES); at--) {
    if (view.getUint32(at, true) === DIRECTORY_END) return at
  }
  return undefined
}

const largeDirectoryEnd = (view: DataView, last: number): number | undefined => {
  const locator = last - LARGE_DIRECTORY_LOCATOR_BYTES
  if (locator < 0 || view.getUint32(locator, true) !== LARGE_DIRECTORY_LOCATOR) return undefined
  const at = Number(view.getBigUint64(locator + 8, true))
  return view.getUint32(at, true) === LARGE_DIRECTORY_END ? at : undefined
}

/** Finds the numbers that did not fit into four bytes: ZIP64 lists them in this order, and only those. */
const locate = <const Offsets extends ReadonlyArray<number>>(
  view: DataView,
  offsets: Offsets,
  extraAt: number,
  extraBytes: number
): { readonly [Index in keyof Offsets]: Field } => {
  let wide: number | undefined
  for (let at = extraAt; at + 4 <= extraAt + extraBytes; at += 4 + view.getUint16(at + 2, true)) {
    if (wide === undefined && view.getUint16(at, true) === ZIP64_EXTRA) wide = at + 4
  }
  return offsets.map((at): Field => {
    if (wide === undefined || view.getUint32(at, true) !== IN_EXTRA_FIELD) return { at, wide: false }
    wide += 8
    return { at: wide - 8, wide: true }
  }) as { readonly [Index in keyof Offsets]: Field }
}

const valueOf = (view: DataView, field: Field): number =>
  field.wide ? Number(view.getBigUint64(field.at, true)) : view.getUint32(field.at, true)

const setValue = (view: DataView, field: Field, value: number): void => {
  if (field.wide) view.setBigUint64(field.at, BigInt(value), true)
  else view.setUint32(field.at, value, true)
}

const readEntry = (bytes: Uint8Array, view: DataView, at: number): Entry | undefined => {
  if (view.getUint32(at, true) !== DIRECTORY_RECORD) return undefined
  const nameAt = at + DIRECTORY_RECORD_BYTES
  const extraAt = nameAt + view.getUint16(at + 28, true)
  const extraBytes = view.getUint16(at + 30, true)
  const [size, packedSize, localOffset] = locate(view, [at + 24, at + 20, at + 42], extraAt, extraBytes)
  return {
    name: decoder.decode(bytes.subarray(nameAt, extraAt)).replace(/^\//, ""),
    size: valueOf(view, size),
    packedSize: valueOf(view, packedSize),
    crc: view.getUint32(at + 16, true),
    flags: view.getUint16(at + 8, true),
    method: view.getUint16(at + 10, true),
    localOffset: valueOf(view, localOffset),
    directoryOffset: at,
    directoryEnd: extraAt + extraBytes + view.getUint16(at + 32, true),
    fields: { size, packedSize, localOffset }
  }
}

const readDirectory = (bytes: Uint8Array): Directory | undefined => {
  const view = viewOf(bytes)
  const last = directoryEnd(view)
  if (last === undefined) return undefined
  const large = largeDirectoryEnd(view, last)
  const count = large === undefined ? view.getUint16(last + 10, true) : Number(view.getBigUint64(large + 32, true))
  const start = large === undefined ? view.getUint32(last + 16, true) : Number(view.getBigUint64(large + 48, true))
  const entries: Array<Entry> = []
  let at = start
  for (let index = 0; index < count; index++) {
    const entry = readEntry(bytes, view, at)
    if (entry === undefined) return undefined
    entries.push(entry)
    at = entry.directoryEnd
  }
  return at <= (large ?? last) ? { entries, start, end: at, last, large } : undefined
}

/**
 * Tells whether the bytes start like a ZIP archive.
 *
 * @category guards
 * @since 0.1.0
 */
export const isArchive = (bytes: Uint8Array): boolean =>
  bytes.byteLength >= 4 && viewOf(bytes).getUint32(0, true) === LOCAL_HEADER

/**
 * Returns the entries of an archive, `undefined` when its directory is damaged or cut off.
 *
 * @category decoding
 * @since 0.1.0
 */
export const entries = (bytes: Uint8Array): ReadonlyArray<Entry> | undefined => directory(bytes)?.entries

const directory = (bytes: Uint8Array): Directory | undefined => {
  try {
    return readDirectory(bytes)
  } catch {
    // DataView throws when an offset points past the end: the directory lies.
    return undefined
  }
}

/** Runs one of Node's compressors, which work outside of the event loop. */
const pipe = (
  run: (callback: (error: Error | null, result: Buffer) => void) => void
): Effect.Effect<Buffer, Error> =>
  Effect.callback((resume) => {
    run((error, result) => resume(error === null ? Effect.succeed(result) : Effect.fail(error)))
  })

/**
 * Unpacks an entry and checks that it is what the directory promises.
 *
 * **Details**
 *
 * Never unpacks more than the size in the directory, so that the one who has checked that size is safe.
 *
 * @category decoding
 * @since 0.1.0
 */
export const unpack = Effect.fnUntraced(function*(
  bytes: Uint8Array,
  entry: Entry
): Effect.fn.Return<Buffer, ArchiveError> {
  const broken = new ArchiveError({ entry: entry.name })
  if ((entry.flags & ENCRYPTED) !== 0) return yield* broken
  if (entry.localOffset + LOCAL_HEADER_BYTES > bytes.byteLength) return yield* broken
  const view = viewOf(bytes)
  if (view.getUint32(entry.localOffset, true) !== LOCAL_HEADER) return yield* broken
  const start = entry.localOffset + LOCAL_HEADER_BYTES + view.getUint16(entry.localOffset + 26, true) +
    view.getUint16(entry.localOffset + 28, true)
  const packed = bytes.subarray(start, start + entry.packedSize)
  if (packed.byteLength !== entry.packedSize) return yield* broken
  if (entry.method !== STORED && entry.method !== DEFLATED) return yield* broken
  const data = entry.method === STORED ? Buffer.from(packed) : yield* Effect.mapError(
    pipe((done) => Zlib.inflateRaw(packed, { maxOutputLength: Math.max(1, entry.size) }, done)),
    (cause) => new ArchiveError({ entry: entry.name, cause })
  )
  return data.byteLength === entry.size && Zlib.crc32(data) === entry.crc ? data : yield* broken
})

// =============================================================================
// Writing
// =============================================================================

/** Copies bytes; a Buffer's own `slice` does not. */
const copyOf = (bytes: Uint8Array, start: number, end: number): Uint8Array =>
  Uint8Array.from(bytes.subarray(start, end))

interface Packed {
  readonly data: Uint8Array
  readonly size: number
  readonly crc: number
}

const pack = (data: Uint8Array): Effect.Effect<Packed> =>
  Effect.map(
    Effect.orDie(pipe((done) => Zlib.deflateRaw(data, done))),
    (packed) => ({ data: packed, size: data.byteLength, crc: Zlib.crc32(data) })
  )

/** Writes what both headers of an entry have: how it is packed, when it was made, and its sizes. */
const describe = (view: DataView, at: number, flags: number, time: number, packed: Packed): void => {
  // Bit 11 says that the name is UTF-8, and that stays true.
  view.setUint16(at, flags & ~SIZES_AFTER_DATA, true)
  view.setUint16(at + 2, DEFLATED, true)
  view.setUint32(at + 4, time, true)
  view.setUint32(at + 8, packed.crc, true)
  view.setUint32(at + 12, packed.data.byteLength, true)
  view.setUint32(at + 16, packed.size, true)
}

const localHeader = (name: Uint8Array, flags: number, time: number, packed: Packed): Uint8Array => {
  const header = new Uint8Array(LOCAL_HEADER_BYTES + name.byteLength)
  const view = viewOf(header)
  view.setUint32(0, LOCAL_HEADER, true)
  view.setUint16(4, 20, true)
  describe(view, 6, flags, time, packed)
  view.setUint16(26, name.byteLength, true)
  header.set(name, LOCAL_HEADER_BYTES)
  return header
}

const UTF8_NAME = 0x0800

const newRecord = (name: Uint8Array, packed: Packed, localOffset: number): Uint8Array => {
  const record = new Uint8Array(DIRECTORY_RECORD_BYTES + name.byteLength)
  const view = viewOf(record)
  view.setUint32(0, DIRECTORY_RECORD, true)
  view.setUint16(4, 20, true)
  view.setUint16(6, 20, true)
  describe(view, 8, UTF8_NAME, NO_TIME, packed)
  view.setUint16(28, name.byteLength, true)
  view.setUint32(42, localOffset, true)
  record.set(name, DIRECTORY_RECORD_BYTES)
  return record
}

const changedRecord = (
  bytes: Uint8Array,
  entry: Entry,
  packed: Packed | undefined,
  localOffset: number
): Uint8Array => {
  const record = copyOf(bytes, entry.directoryOffset, entry.directoryEnd)
  const view = viewOf(record)
  const within = ({ at, wide }: Field): Field => ({ at: at - entry.directoryOffset, wide })
  if (packed !== undefined) {
    view.setUint16(8, entry.flags & ~SIZES_AFTER_DATA, true)
    view.setUint16(10, DEFLATED, true)
    view.setUint32(16, packed.crc, true)
    setValue(view, within(entry.fields.size), packed.size)
    setValue(view, within(entry.fields.packedSize), packed.data.byteLength)
  }
  setValue(view, within(entry.fields.localOffset), localOffset)
  return record
}

/** Copies what follows the directory, with the directory's new place in it. */
const tail = (
  bytes: Uint8Array,
  { end, large, last }: Directory,
  count: number,
  start: number,
  size: number
): Uint8Array => {
  const copy = copyOf(bytes, end, bytes.byteLength)
  const view = viewOf(copy)
  if (large !== undefined) {
    const at = large - end
    view.setBigUint64(at + 24, BigInt(count), true)
    view.setBigUint64(at + 32, BigInt(count), true)
    view.setBigUint64(at + 40, BigInt(size), true)
    view.setBigUint64(at + 48, BigInt(start), true)
    view.setBigUint64(last - end - LARGE_DIRECTORY_LOCATOR_BYTES + 8, BigInt(start + size + at), true)
  }
  const at = last - end
  // A number that is in the ZIP64 record stays there alone.
  for (const field of [at + 8, at + 10]) {
    if (large === undefined || view.getUint16(field, true) !== 0xffff) view.setUint16(field, count, true)
  }
  for (const [field, value] of [[at + 12, size], [at + 16, start]] as const) {
    if (large === undefined || view.getUint32(field, true) !== IN_EXTRA_FIELD) view.setUint32(field, value, true)
  }
  return copy
}

/**
 * Makes an archive with some entries exchanged, left out or added; returns it in pieces, which share memory with
 * `bytes`.
 *
 * **Details**
 *
 * All other entries are copied byte for byte and in their order, as is the comment of the archive. An exchanged entry
 * keeps its name and its time; it is packed with deflate.
 *
 * @category encoding
 * @since 0.1.0
 */
export const replace = Effect.fnUntraced(function*(
  bytes: Uint8Array,
  changes: Changes
): Effect.fn.Return<ReadonlyArray<Uint8Array>, ArchiveError> {
  const found = directory(bytes)
  if (found === undefined) return yield* new ArchiveError({ entry: "the directory" })
  const names = new Set(found.entries.map(({ name }) => name))
  const ordered = found.entries.toSorted((a, b) => a.localOffset - b.localOffset)
  const overlapping = ordered.find(({ localOffset }, index) => localOffset === ordered[index + 1]?.localOffset)
  if (overlapping !== undefined) return yield* new ArchiveError({ entry: overlapping.name })
  const pieces: Array<Uint8Array> = []
  let length = 0
  const push = (piece: Uint8Array): void => {
    pieces.push(piece)
    length += piece.byteLength
  }
  const records = new Map<Entry, Uint8Array>()
  push(bytes.subarray(0, ordered[0]?.localOffset ?? found.start))
  for (const [index, entry] of ordered.entries()) {
    const end = ordered[index + 1]?.localOffset ?? found.start
    const content = changes.get(entry.name)
    if (content === undefined) {
      if (changes.has(entry.name)) continue
      records.set(entry, changedRecord(bytes, entry, undefined, length))
      push(bytes.subarray(entry.localOffset, end))
      continue
    }
    const packed = yield* pack(content)
    records.set(entry, changedRecord(bytes, entry, packed, length))
    const view = viewOf(bytes)
    const nameAt = entry.localOffset + LOCAL_HEADER_BYTES
    const name = bytes.subarray(nameAt, nameAt + view.getUint16(entry.localOffset + 26, true))
    push(localHeader(name, entry.flags, view.getUint32(entry.localOffset + 10, true), packed))
    push(packed.data)
  }
  const added: Array<Uint8Array> = []
  for (const [name, content] of changes) {
    if (names.has(name) || content === undefined) continue
    const packed = yield* pack(content)
    const encoded = Buffer.from(name)
    added.push(newRecord(encoded, packed, length))
    push(localHeader(encoded, UTF8_NAME, NO_TIME, packed))
    push(packed.data)
  }
  const start = length
  for (const entry of found.entries) {
    const record = records.get(entry)
    if (record !== undefined) push(record)
  }
  for (const record of added) push(record)
  push(tail(bytes, found, records.size + added.length, start, length - start))
  return pieces
})

/**
 * Sets the time of every entry to 1980-01-01, the first one ZIP knows, so that equal contents make equal archives.
 *
 * **Gotchas**
 *
 * Changes the bytes in place.
 *
 * @category combinators
 * @since 0.1.0
 */
export const clearTimes = (bytes: Uint8Array): void => {
  const view = viewOf(bytes)
  for (const entry of entries(bytes) ?? []) {
    view.setUint32(entry.localOffset + 10, NO_TIME, true)
    view.setUint32(entry.directoryOffset + 12, NO_TIME, true)
  }
}

/**
 * The directory of a ZIP archive, which is what an .xlsx file is.
 *
 * It is read before the archive is unpacked: it says what is inside and how large that becomes.
 *
 * @since 0.1.0
 */

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
  /** Where the entry's local header starts. */
  readonly localOffset: number
  /** Where the entry's record in the directory starts. */
  readonly directoryOffset: number
}

const LOCAL_HEADER = 0x04034b50
const DIRECTORY_RECORD = 0x02014b50
const DIRECTORY_END = 0x06054b50
const DIRECTORY_END_BYTES = 22
const MAX_COMMENT_BYTES = 0xffff
const IN_EXTRA_FIELD = 0xffffffff
const ZIP64_EXTRA = 0x0001

const decoder = new TextDecoder()

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const directoryEnd = (view: DataView): number | undefined => {
  const last = view.byteLength - DIRECTORY_END_BYTES
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_BYTES); at--) {
    if (view.getUint32(at, true) === DIRECTORY_END) return at
  }
  return undefined
}

const largeSize = (view: DataView, start: number, length: number): number => {
  for (let at = start; at + 4 <= start + length; at += 4 + view.getUint16(at + 2, true)) {
    if (view.getUint16(at, true) === ZIP64_EXTRA) return Number(view.getBigUint64(at + 4, true))
  }
  return IN_EXTRA_FIELD
}

const read = (bytes: Uint8Array): ReadonlyArray<Entry> | undefined => {
  const view = viewOf(bytes)
  const end = directoryEnd(view)
  if (end === undefined) return undefined
  const count = view.getUint16(end + 10, true)
  const entries: Array<Entry> = []
  let at = view.getUint32(end + 16, true)
  for (let index = 0; index < count; index++) {
    if (view.getUint32(at, true) !== DIRECTORY_RECORD) return undefined
    const size = view.getUint32(at + 24, true)
    const nameBytes = view.getUint16(at + 28, true)
    const extraBytes = view.getUint16(at + 30, true)
    const nameAt = at + 46
    entries.push({
      name: decoder.decode(bytes.subarray(nameAt, nameAt + nameBytes)).replace(/^\//, ""),
      size: size === IN_EXTRA_FIELD ? largeSize(view, nameAt + nameBytes, extraBytes) : size,
      localOffset: view.getUint32(at + 42, true),
      directoryOffset: at
    })
    at = nameAt + nameBytes + extraBytes + view.getUint16(at + 32, true)
  }
  return entries
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
export const entries = (bytes: Uint8Array): ReadonlyArray<Entry> | undefined => {
  try {
    return read(bytes)
  } catch {
    // DataView throws when an offset points past the end: the directory lies.
    return undefined
  }
}

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
    view.setUint32(entry.localOffset + 10, 0x00210000, true)
    view.setUint32(entry.directoryOffset + 12, 0x00210000, true)
  }
}

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Buffer } from "node:buffer"
import * as Zlib from "node:zlib"
import * as Archive from "../../examples/excel/archive.ts"
import { stored, textOf, zip } from "./support.ts"

const replace = (bytes: Uint8Array, changes: Readonly<Record<string, string | undefined>>) =>
  Effect.map(
    Archive.replace(
      bytes,
      new Map(Object.entries(changes).map(([name, text]) => [name, text === undefined ? undefined : Buffer.from(text)]))
    ),
    (pieces) => Buffer.concat(pieces)
  )

const contents = (bytes: Uint8Array) =>
  Effect.forEach(
    Archive.entries(bytes) ?? [],
    ({ name }) => Effect.map(textOf(bytes, name), (text) => [name, text] as const)
  )

/**
 * An archive with one entry as programs write it that do not know its size beforehand, or fear that it does not fit
 * into four bytes: the sizes follow the data, and are in the extra field of ZIP64.
 */
const streamed = (name: string, text: string, comment: string): Buffer => {
  const data = Buffer.from(text)
  const packed = Zlib.deflateRawSync(data)
  const local = Buffer.alloc(30)
  local.writeUInt32LE(0x04034b50, 0)
  local.writeUInt16LE(45, 4)
  local.writeUInt16LE(0x0808, 6)
  local.writeUInt16LE(8, 8)
  local.writeUInt32LE(0x5a21_0000, 10)
  local.writeUInt16LE(name.length, 26)
  const descriptor = Buffer.alloc(24)
  descriptor.writeUInt32LE(0x08074b50, 0)
  descriptor.writeUInt32LE(Zlib.crc32(data), 4)
  descriptor.writeBigUInt64LE(BigInt(packed.length), 8)
  descriptor.writeBigUInt64LE(BigInt(data.length), 16)
  const extra = Buffer.alloc(37)
  // An extra field of someone else comes first.
  extra.writeUInt16LE(0xa220, 0)
  extra.writeUInt16LE(5, 2)
  extra.writeUInt16LE(1, 9)
  extra.writeUInt16LE(24, 11)
  extra.writeBigUInt64LE(BigInt(data.length), 13)
  extra.writeBigUInt64LE(BigInt(packed.length), 21)
  const record = Buffer.alloc(46)
  record.writeUInt32LE(0x02014b50, 0)
  record.writeUInt16LE(45, 4)
  record.writeUInt16LE(45, 6)
  record.writeUInt16LE(0x0808, 8)
  record.writeUInt16LE(8, 10)
  record.writeUInt32LE(0x5a21_0000, 12)
  record.writeUInt32LE(Zlib.crc32(data), 16)
  record.writeUInt32LE(0xffff_ffff, 20)
  record.writeUInt32LE(0xffff_ffff, 24)
  record.writeUInt16LE(name.length, 28)
  record.writeUInt16LE(extra.length, 30)
  record.writeUInt32LE(0xffff_ffff, 42)
  const start = local.length + name.length + packed.length + descriptor.length
  const size = record.length + name.length + extra.length
  const large = Buffer.alloc(56)
  large.writeUInt32LE(0x06064b50, 0)
  large.writeBigUInt64LE(44n, 4)
  large.writeBigUInt64LE(1n, 24)
  large.writeBigUInt64LE(1n, 32)
  large.writeBigUInt64LE(BigInt(size), 40)
  large.writeBigUInt64LE(BigInt(start), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(BigInt(start + size), 8)
  locator.writeUInt32LE(1, 16)
  const end = Buffer.alloc(22, 0xff)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt32LE(0, 4)
  end.writeUInt16LE(comment.length, 20)
  return Buffer.concat([
    local,
    Buffer.from(name),
    packed,
    descriptor,
    record,
    Buffer.from(name),
    extra,
    large,
    locator,
    end,
    Buffer.from(comment)
  ])
}

describe("an archive", () => {
  const files = { "a.txt": "first", "ordner/b – 支出.txt": "second", "c.txt": "third", "d.txt": "" }

  it.effect("has entries exchanged, left out and added, and the others byte for byte", () =>
    Effect.gen(function*() {
      const before = zip(files)
      const after = yield* replace(before, {
        "a.txt": "a longer text, a longer text",
        "c.txt": undefined,
        "new/ü.txt": "new",
        "never.txt": undefined
      })
      assert.deepStrictEqual(yield* contents(after), [
        ["a.txt", "a longer text, a longer text"],
        ["ordner/b – 支出.txt", "second"],
        ["d.txt", ""],
        ["new/ü.txt", "new"]
      ])
      for (const name of ["ordner/b – 支出.txt", "d.txt"]) {
        assert.deepStrictEqual(stored(after).get(name), stored(before).get(name))
      }
    }))

  it.effect("is the same when nothing changes", () =>
    Effect.gen(function*() {
      for (const bytes of [zip(files), streamed("a.txt", "text", "a comment")]) {
        assert.isTrue(Buffer.from(bytes).equals(yield* replace(bytes, {})))
      }
    }))

  it.effect("may have sizes after the data and in extra fields, and a comment", () =>
    Effect.gen(function*() {
      const before = streamed("a.txt", "text ".repeat(100), "a comment")
      assert.deepStrictEqual(yield* contents(before), [["a.txt", "text ".repeat(100)]])
      const added = yield* replace(before, { "b.txt": "b" })
      assert.deepStrictEqual(yield* contents(added), [["a.txt", "text ".repeat(100)], ["b.txt", "b"]])
      assert.deepStrictEqual(stored(added).get("a.txt"), stored(before).get("a.txt"))
      const changed = yield* replace(added, { "a.txt": "new" })
      assert.deepStrictEqual(yield* contents(changed), [["a.txt", "new"], ["b.txt", "b"]])
      assert.isTrue(changed.toString("latin1").endsWith("a comment"))
    }))

  it.effect("gives nothing that its directory does not promise", () =>
    Effect.gen(function*() {
      const packed = (change: (bytes: Buffer, record: number) => void) => {
        const bytes = streamed("a.txt", "text ".repeat(1000), "")
        change(bytes, bytes.indexOf("PK\x01\x02", 0, "latin1"))
        return bytes
      }
      const broken = [
        // unpacks to more, or to less, than it says
        packed((bytes, record) => bytes.writeBigUInt64LE(4999n, record + 46 + 5 + 13)),
        packed((bytes, record) => bytes.writeBigUInt64LE(5001n, record + 46 + 5 + 13)),
        // other contents
        packed((bytes, record) => bytes.writeUInt32LE(1, record + 16)),
        // encrypted, and a method that workbooks do not use
        packed((bytes, record) => bytes.writeUInt16LE(0x0809, record + 8)),
        packed((bytes, record) => bytes.writeUInt16LE(12, record + 10)),
        // not where it says, or longer than the archive
        packed((bytes, record) => bytes.writeBigUInt64LE(1n, record + 46 + 5 + 29)),
        packed((bytes, record) => bytes.writeBigUInt64LE(1n << 40n, record + 46 + 5 + 29)),
        packed((bytes, record) => bytes.writeBigUInt64LE(1n << 40n, record + 46 + 5 + 21))
      ]
      for (const bytes of broken) {
        const [entry] = Archive.entries(bytes) ?? []
        assert.isDefined(entry)
        const error = yield* Effect.flip(Archive.unpack(bytes, entry))
        assert.strictEqual(error.message, "a.txt cannot be unpacked")
      }
    }))

  it.effect("has no entries when its directory is damaged", () =>
    Effect.gen(function*() {
      const bytes = streamed("a.txt", "text", "")
      const record = bytes.indexOf("PK\x01\x02", 0, "latin1")
      const damaged = [bytes.subarray(0, -1), bytes.subarray(0, record), Buffer.from(bytes).fill(0, record, record + 4)]
      for (const bytes of damaged) {
        assert.isUndefined(Archive.entries(bytes))
        assert.strictEqual((yield* Effect.flip(replace(bytes, {})))._tag, "ArchiveError")
      }
    }))
})

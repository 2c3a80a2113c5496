// Output whose middle is left out.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import * as Capped from "../../examples/shell/capped.ts"

const push = (capped: Capped.Capped, bytes: Uint8Array, size: number) => {
  for (let at = 0; at < bytes.length; at += size) capped.push(bytes.subarray(at, at + size))
}

const read = (text: string, options: Capped.Options, size = text.length) => {
  const capped = Capped.make(options)
  push(capped, Buffer.from(text), Math.max(1, size))
  return capped.read()
}

describe("output with a limit", () => {
  it("is all of it, up to the limit", () => {
    const options = { headBytes: 4, tailBytes: 4 }
    for (const text of ["", "a", "abcd", "abcde", "abcdefgh", "größe 支", "\uFEFFa\r\n\0"]) {
      for (const size of [1, 3, 100]) {
        assert.deepStrictEqual(read(text, { ...options, tailBytes: 10 }, size), { text, leftOut: 0 })
      }
    }
    assert.deepStrictEqual(read("abcdefgh", options, 1), { text: "abcdefgh", leftOut: 0 })
  })

  it("is its beginning and its end beyond that, with a note between them", () => {
    const options = { headBytes: 4, tailBytes: 4 }
    for (const size of [1, 2, 3, 5, 9, 100]) {
      assert.deepStrictEqual(read("abcdefghi", options, size), {
        text: "abcd\n[… 1 bytes left out …]\nfghi",
        leftOut: 1
      })
      assert.deepStrictEqual(read(`${"x".repeat(100)}wxyz`, options, size), {
        text: "xxxx\n[… 96 bytes left out …]\nwxyz",
        leftOut: 96
      })
    }
  })

  it("leaves a character out that would be cut, and counts its bytes", () => {
    // 2, 3 and 4 bytes
    for (const character of ["ö", "支", "🚆"]) {
      const width = Buffer.byteLength(character)
      for (let extra = 1; extra < width; extra++) {
        const options = { headBytes: 1 + extra, tailBytes: extra + 1 }
        const text = `a${character.repeat(9)}z`
        assert.deepStrictEqual(read(text, options), {
          text: `a\n[… ${9 * width} bytes left out …]\nz`,
          leftOut: 9 * width
        })
      }
      const whole = { headBytes: 1 + width, tailBytes: width + 1 }
      assert.deepStrictEqual(read(`a${character.repeat(9)}z`, whole), {
        text: `a${character}\n[… ${7 * width} bytes left out …]\n${character}z`,
        leftOut: 7 * width
      })
    }
  })

  it("is no UTF-8 and ends all the same", () => {
    const capped = Capped.make({ headBytes: 4, tailBytes: 4 })
    push(capped, Buffer.alloc(20, 0x80), 3)
    const { leftOut, text } = capped.read()
    assert.match(text, /^\uFFFD+\n\[… \d+ bytes left out …\]\n\uFFFD+$/)
    assert.isAtLeast(leftOut, 12)
  })

  it.effect.prop(
    "accounts for every byte, in chunks of any size",
    {
      text: Schema.String,
      times: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })),
      size: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })),
      headBytes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 32 })),
      tailBytes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 32 }))
    },
    ({ headBytes, size, tailBytes, text, times }) =>
      Effect.sync(() => {
        const all = Buffer.from(text.repeat(times))
        const whole = all.toString()
        const capped = Capped.make({ headBytes, tailBytes })
        push(capped, all, size)
        const result = capped.read()
        if (all.length <= headBytes + tailBytes) return assert.deepStrictEqual(result, { text: whole, leftOut: 0 })
        const note = `\n[… ${result.leftOut} bytes left out …]\n`
        const at = result.text.indexOf(note)
        const [head, tail] = [result.text.slice(0, at), result.text.slice(at + note.length)]
        assert.isTrue(whole.startsWith(head))
        assert.isTrue(whole.endsWith(tail))
        assert.strictEqual(Buffer.byteLength(head) + Buffer.byteLength(tail) + result.leftOut, all.length)
        assert.isAbove(Buffer.byteLength(head), headBytes - 4)
        assert.isAbove(Buffer.byteLength(tail), tailBytes - 4)
      })
  )
})

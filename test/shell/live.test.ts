// What a client is told while a command runs.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"
import * as Live from "../../examples/shell/live.ts"

const start = Effect.fnUntraced(function*(options?: Live.Options) {
  const reports: Array<readonly [bytes: number, text: string]> = []
  const live = yield* Live.make((bytes, text) => Effect.sync(() => void reports.push([bytes, text])), options)
  // it listens before anything comes
  yield* TestClock.adjust(0)
  return {
    live,
    reports,
    /** Pushes text, and lets the reporter see it. */
    push: (text: string | Uint8Array, source: Live.Source = "stdout") =>
      Effect.andThen(Effect.sync(() => live.push(source, Buffer.from(text))), TestClock.adjust(0)),
    texts: () => reports.map(([, text]) => text)
  }
})

describe("live output", () => {
  it.effect("comes at once when nothing came for a while, and once an interval after that", () =>
    Effect.gen(function*() {
      const { push, reports } = yield* start()
      yield* push("a\n")
      assert.deepStrictEqual(reports, [[2, "a\n"]])
      yield* push("b\n")
      yield* push("c\n", "stderr")
      assert.strictEqual(reports.length, 1)
      yield* TestClock.adjust(249)
      assert.strictEqual(reports.length, 1)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(reports, [[2, "a\n"], [6, "b\nc\n"]])
      yield* TestClock.adjust("1 hour")
      yield* push("d\n")
      assert.deepStrictEqual(reports.at(-1), [8, "d\n"])
    }))

  it.effect("comes in whole lines; a line without an end waits for an interval", () =>
    Effect.gen(function*() {
      const { push, texts } = yield* start()
      yield* push("a\nto be")
      assert.deepStrictEqual(texts(), ["a\n"])
      yield* push(" continued\nName? ")
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(texts(), ["a\n", "to be continued\n"])
      yield* TestClock.adjust(250)
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(texts(), ["a\n", "to be continued\n", "Name? "])
    }))

  it.effect("is told to the last byte at the end, with numbers that only grow", () =>
    Effect.gen(function*() {
      const { live, push, reports } = yield* start()
      yield* push("a\nb")
      yield* push(Buffer.from("支").subarray(0, 2))
      yield* live.end
      assert.deepStrictEqual(reports.map(([, text]) => text), ["a\n", "b\uFFFD"])
      assert.deepStrictEqual(reports.map(([bytes]) => bytes), [2, 5])
      yield* push("late\n")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(reports.length, 2)
    }))

  it.effect("keeps characters whole whose bytes come in two chunks, with the other output in between", () =>
    Effect.gen(function*() {
      const { live, push, texts } = yield* start()
      const bytes = Buffer.from("größe 支出 🚆\n")
      for (const byte of bytes) {
        yield* Effect.andThen(push(Uint8Array.of(byte)), push("", "stderr"))
      }
      yield* live.end
      assert.strictEqual(texts().join(""), "größe 支出 🚆\n")
    }))

  it.effect("of a flood is the newest lines of each interval, and says that some were left out", () =>
    Effect.gen(function*() {
      const { live, reports } = yield* start({ maxLength: 10 })
      for (let step = 0; step < 200; step++) {
        for (let line = 0; line < 1_000; line++) live.push("stdout", Buffer.from(`${line % 10}bc\n`))
        yield* TestClock.adjust(50)
      }
      yield* live.end
      // ten seconds: four reports in each, the first and the last
      assert.isAtLeast(reports.length, 40)
      assert.isAtMost(reports.length, 42)
      // the very first line came alone
      assert.deepStrictEqual(reports[0], [4, "0bc\n"])
      assert.isTrue(reports.slice(1).every(([, text]) => text === "[…]\n8bc\n9bc\n"))
      assert.strictEqual(reports.at(-1)?.[0], 800_000)
    }))

  it.effect("of one endless line is cut between characters", () =>
    Effect.gen(function*() {
      const { live, push, texts } = yield* start({ maxLength: 3 })
      yield* push("🚆".repeat(1_000))
      yield* live.end
      assert.deepStrictEqual(texts(), ["[…]\n🚆"])
    }))
})

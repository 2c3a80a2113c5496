/**
 * Real conversations with codex, had again through the adapter: what happened then must be told as on record in
 * `fixtures/recordings/codex-events`, an event a line. To write those lists anew, and then read what has changed:
 *
 *     UPDATE_GOLDEN=1 npx vitest run --project unit test/Codex.replay.test.ts
 */
import { assert, describe, it } from "@effect/vitest"
import * as Recording from "effect-stdio/Recording"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Differences, Ended } from "./utils/replayedCodex.ts"
import { play, print } from "./utils/replayedCodex.ts"

const recordings = new URL("fixtures/recordings/codex/", import.meta.url)
const lists = new URL("fixtures/recordings/codex-events/", import.meta.url)

/** Turns that cannot be had again, and why. */
const leftOut: Readonly<Record<string, string>> = {
  "08-approval-error-reply": "the client refuses a question as a request: the adapter always answers it",
  "12-protocol-probes": "all its turns are refused, by requests that the adapter never makes",
  "49-dynamic-tool-no-handler": "the client refuses a call of its tool as a request: the adapter always answers it",
  "55-slow-consumer": "the recording leaves out nearly all deltas and shortens the text, so that they do not agree",
  "59-no-initialized": "the client leaves out `initialized`: the adapter always sends it"
}

/** What the adapter does in another way than the client on record. */
const differences: Readonly<Record<string, Differences>> = {
  // interrupts a turn that is over: nothing to do
  "09-interrupt": { sendsNothing: [5] },
  // answers a question that was withdrawn
  "10-approval-unanswered-interrupt": { leftOut: [0] },
  // starts a turn while one is under way, which is refused without asking codex; interrupts one that there never was
  "14-two-threads": { sendsNothing: [7], leftOut: [9] },
  // interrupts a turn that codex has not started: the adapter waits until it has
  "62-interrupt-at-once": { sendsNothing: [4], byItself: [5] }
}

const textOf = (name: string) => readFileSync(new URL(`${name}.jsonl`, recordings), "utf8")

const read = (name: string) => Result.getOrThrow(Recording.parse(textOf(name)))

const Exit = Schema.fromJsonString(Schema.Struct({
  dir: Schema.Literal("exit"),
  msg: Schema.Struct({ code: Schema.NullOr(Schema.Int), signal: Schema.NullOr(Schema.String) })
}))

/** How codex ended, which stands in a line of its own that is no message. */
const exitOf = (name: string): Ended => {
  const line = textOf(name).split("\n").find((line) => line.includes("\"dir\":\"exit\"")) ?? assert.fail("no exit")
  return Schema.decodeSync(Exit)(line).msg
}

const namesIn = (folder: URL, ending: string) =>
  readdirSync(folder).filter((name) => name.endsWith(ending)).map((name) => name.slice(0, -ending.length))

const withTurns = namesIn(recordings, ".jsonl").filter((name) => textOf(name).includes("\"method\":\"turn/start\""))

const played = withTurns.filter((name) => leftOut[name] === undefined)

const renews = process.env["UPDATE_GOLDEN"] !== undefined

describe("a recorded turn", () => {
  it.effect.each(played)("is told as it was in %s", (name) =>
    Effect.gen(function*() {
      const { answers, done, left, recorded, turns } = yield* play(read(name), exitOf(name), differences[name])
      assert.deepStrictEqual(left, [])
      yield* done
      assert.deepStrictEqual(answers, recorded)
      const list = print(turns)
      const file = new URL(`${name}.txt`, lists)
      if (renews) {
        mkdirSync(lists, { recursive: true })
        writeFileSync(file, list)
      }
      assert.isTrue(existsSync(file), `${fileURLToPath(file)} is missing: see the top of this file`)
      assert.strictEqual(list, readFileSync(file, "utf8"))
      for (const { events, refused } of turns) {
        if (refused !== undefined) continue
        assert.strictEqual(events[0]?._tag, "TurnStarted")
        assert.strictEqual(events.at(-1)?._tag, "TurnEnd")
        assert.strictEqual(events.filter(({ _tag }) => _tag === "TurnEnd").length, 1)
      }
    }))

  it("is on record in numbers, and each list belongs to one", () => {
    assert.isAtLeast(played.length, 40)
    assert.deepStrictEqual(Object.keys(leftOut).filter((name) => !withTurns.includes(name)), [])
    assert.deepStrictEqual(Object.keys(differences).filter((name) => !played.includes(name)), [])
    assert.deepStrictEqual(namesIn(lists, ".txt").toSorted(), played.toSorted())
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Buffer } from "node:buffer"
import * as Child from "../utils/child.ts"
import type { Message } from "../utils/frames.ts"
import * as Os from "../utils/os.ts"

const MIB = 1_024 * 1_024

const initialize = {
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
}

describe("a server on its pipes", () => {
  it.live("answers while its input stays open (F12)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.send(initialize)
      assert.deepStrictEqual(yield* child.reply(0), {
        jsonrpc: "2.0",
        id: 0,
        result: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "probe", version: "1.0.0" } }
      })
    }))

  it.live("ends each line with exactly 0A, also when the requests end with 0D 0A (F07, F08)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\r\n"
      )
      yield* child.endInput
      yield* child.closed
      assert.strictEqual(
        child.stdout().toString("latin1"),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n"
      )
    }))

  it.live("delivers results around 16 KiB whole, without further input (F15)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      for (const bytes of [16_383, 16_384, 16_385, 16_386, 20_480]) {
        const { result } = yield* child.call("big", { bytes })
        assert.strictEqual(result, "x".repeat(bytes))
      }
    }))

  it.live("answers a request that comes one byte a write (F01)", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe()
      const request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"text\":\"日本 — 🚆\"}}\n"
      for (const byte of Buffer.from(request)) yield* child.write(Uint8Array.of(byte))
      assert.deepStrictEqual((yield* child.reply(1)).result, { text: "日本 — 🚆" })
    }))

  it.live("answers the last request at the end of the input although its line has no end (F26)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}")
      yield* child.endInput
      assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
      assert.deepStrictEqual(child.messages, [{ jsonrpc: "2.0", id: 9, result: {} }])
    }))
})

describe("junk between requests", () => {
  const parseErrors = (messages: ReadonlyArray<Message>) => messages.map(({ error, id }) => ({ id, code: error?.code }))

  it.live("gets a parse error a line, and the request after it its answer (F21)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write(
        "NOT VALID JSON\n{\"jsonrpc\":\"2.0\",\"method\":\"test\",\"params\": \n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n"
      )
      yield* child.reply(2)
      assert.deepStrictEqual(parseErrors(child.messages), [
        { id: null, code: -32700 },
        { id: null, code: -32700 },
        { id: 2, code: undefined }
      ])
    }))

  it.live("does not poison what comes after it (F22)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write("}{\n[1,\n\"x\n\0\xff\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n")
      assert.deepStrictEqual((yield* child.reply(3)).result, {})
      assert.deepStrictEqual(
        parseErrors(child.messages).slice(0, -1),
        Array.from({ length: 4 }, () => ({ id: null, code: -32700 }))
      )
    }))

  it.live("before a header does not hide the header (F35)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write("debug text\nContent-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")
      assert.deepStrictEqual((yield* child.reply(1)).result, {})
      assert.include(
        child.stdout().toString(),
        "Content-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"
      )
    }))
})

describe("a line above the limit", () => {
  const text = "x".repeat(64 * MIB)
  const line = `{"jsonrpc":"2.0","id":7,"method":"echo","params":{"text":"${text}"}}\n`

  it.live("gets one error with its id that names the limit, and the next line its answer (F17)", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe()
      yield* child.write(line)
      yield* child.send({ id: 8, method: "ping" })
      assert.deepStrictEqual((yield* child.reply(8)).result, {})
      const { error } = yield* child.reply(7)
      assert.strictEqual(error?.code, -32600)
      assert.include(error?.message, String(32 * MIB))
      assert.deepStrictEqual(child.messages.map(({ id }) => id), [7, 8])
    }))

  it.live("is echoed where the limit allows it", () =>
    Effect.gen(function*() {
      const child = yield* Child.probe(["--max-frame", String(128 * MIB)])
      yield* child.write(line)
      const { result } = yield* child.reply(7)
      // a difference of this size is better not printed
      assert.isTrue((result as { readonly text: string }).text === text)
    }))

  it.live.runIf(Os.isLinux)("that never ends does not fill the memory (F40)", () =>
    Effect.gen(function*() {
      const child = yield* Child.readyProbe(["--max-frame", String(MIB)])
      const before = Os.memory(child.pid, "VmHWM")
      const piece = new Uint8Array(MIB).fill("x".charCodeAt(0))
      for (let written = 0; written < 256; written++) yield* child.write(piece)
      yield* child.write("\n")
      yield* child.send({ id: 8, method: "ping" })
      yield* child.reply(8)
      // chunks that wait to be collected; the line alone would be 256
      assert.isBelow(Os.memory(child.pid, "VmHWM") - before, 128)
    }))
})

Child.leavesNothingBehind()

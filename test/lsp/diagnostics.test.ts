// When diagnostics are those of the text that the server was sent last.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Diagnostics from "../../examples/lsp/diagnostics.ts"
import * as Support from "./support.ts"

const { open, range, services, settled, silent } = Support

const FILE = "/project/größe.ts"
const wrong = (message: string) => ({ range: range(0, 0, 1), severity: 1, message, source: "test", code: 7 })

const make = (isBusy: () => boolean = () => false) => {
  const reports = Diagnostics.make({ isBusy, quiet: "2 seconds", timeout: "20 seconds" })
  return {
    ...reports,
    publish: (messages: ReadonlyArray<string>, version?: number) =>
      Effect.andThen(
        reports.published({
          uri: "file:///project/gr%C3%B6%C3%9Fe.ts",
          ...(version === undefined ? {} : { version }),
          diagnostics: messages.map(wrong)
        }),
        settled
      )
  }
}

const summary = ({ fresh, items }: Diagnostics.Report) => [fresh, ...items.map(({ message }) => message)]

describe("diagnostics", () => {
  it.effect("of a server that is silent because it is busy are not fresh before it answers", () =>
    Effect.gen(function*() {
      const { publish, settled: wait } = make()
      yield* publish([])
      let probes = 0
      const probe = Effect.suspend(() => ++probes === 1 ? Effect.sleep("5 seconds") : Effect.void)
      const fiber = yield* Effect.forkChild(wait(FILE, 2, probe))
      yield* settled
      yield* TestClock.adjust("7 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* publish(["found late"])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [true, "found late"])
    }))

  it.effect("of a server that does not answer at all are not fresh", () =>
    Effect.gen(function*() {
      const { publish, settled: wait } = make()
      yield* publish(["old"])
      const fiber = yield* Effect.forkChild(wait(FILE, 2, Effect.never))
      yield* settled
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [false, "old"])
    }))

  it.effect("of a server that tells versions are fresh with the version that was sent, at once", () =>
    Effect.gen(function*() {
      const { publish, settled: wait } = make()
      yield* publish(["old"], 3)
      const fiber = yield* Effect.forkChild(wait(FILE, 4))
      yield* settled
      yield* TestClock.adjust("5 seconds")
      yield* publish(["old again"], 3)
      assert.isUndefined(fiber.pollUnsafe())
      yield* publish(["new"], 4)
      assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [true, "new"])
    }))

  it.effect("of one that tells none are fresh after two seconds in which it says nothing more of the file", () =>
    Effect.gen(function*() {
      const { publish, settled: wait } = make()
      const fiber = yield* Effect.forkChild(wait(FILE, 1))
      yield* settled
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* publish(["first"])
      yield* TestClock.adjust("1900 millis")
      yield* publish(["first", "second"])
      yield* TestClock.adjust("1900 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [true, "first", "second"])
    }))

  it.effect("of one that has said nothing new count two seconds after the text was sent", () =>
    Effect.gen(function*() {
      const { publish, settled: wait } = make()
      yield* publish([])
      yield* TestClock.adjust("1 minute")
      const fiber = yield* Effect.forkChild(wait(FILE, 2))
      yield* settled
      yield* TestClock.adjust("1900 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [true])
    }))

  it.effect("are not taken while the server has work open", () =>
    Effect.gen(function*() {
      let isBusy = true
      const { publish, settled: wait } = make(() => isBusy)
      yield* publish(["early"])
      const fiber = yield* Effect.forkChild(wait(FILE, 2))
      yield* settled
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      isBusy = false
      yield* publish(["done"])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [true, "done"])
    }))

  it.effect("that do not come in time are not called fresh", () =>
    Effect.gen(function*() {
      for (const known of [[], [["old"]]] as const) {
        const { publish, settled: wait } = make()
        for (const messages of known) yield* publish(messages, 1)
        const fiber = yield* Effect.forkChild(wait(FILE, 2))
        yield* settled
        yield* TestClock.adjust("19900 millis")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("100 millis")
        assert.deepStrictEqual(summary(yield* Fiber.join(fiber)), [false, ...known.flat()])
      }
    }))

  it.effect("are asked for with the text sent anew, and shown with their places", () =>
    Effect.gen(function*() {
      const { code, heard, received, tell, uri } = yield* open()
      const publish = (version: number) =>
        tell("textDocument/publishDiagnostics", {
          uri: uri("src/broken.ts"),
          version,
          diagnostics: [
            {
              ...wrong("it is wrong"),
              range: range(2, 13, 18),
              relatedInformation: [{
                location: { uri: uri("src/ledger.ts"), range: range(11, 16, 22) },
                message: "see"
              }]
            },
            7
          ]
        })
      const first = yield* Effect.forkChild(code.diagnostics("src/broken.ts", silent))
      yield* heard("didOpen", ({ method }) => method === "textDocument/didOpen")
      yield* publish(1)
      assert.deepStrictEqual(yield* Fiber.join(first), {
        file: "src/broken.ts",
        fresh: true,
        diagnostics: [{
          severity: "error",
          message: "it is wrong",
          line: 3,
          column: 14,
          endLine: 3,
          endColumn: 19,
          code: "7",
          source: "test",
          preview: "export const wrong: number = format(100)",
          related: [{
            file: "src/ledger.ts",
            line: 12,
            column: 17,
            preview: "export function format(amount: number): string {",
            message: "see"
          }]
        }],
        total: 1,
        note: "1 more from the language server could not be read."
      })
      received.length = 0
      const second = yield* Effect.forkChild(code.diagnostics("src/broken.ts", silent))
      yield* heard("didChange", ({ method }) => method === "textDocument/didChange")
      yield* publish(2)
      assert.isTrue((yield* Fiber.join(second)).fresh)
    }).pipe(Effect.provide(services)))

  it.effect("are pulled from a server that wants to be asked", () =>
    Effect.gen(function*() {
      const { code } = yield* open({
        initialize: () => Effect.succeed({ capabilities: { diagnosticProvider: { interFileDependencies: true } } }),
        "textDocument/diagnostic": () => Effect.succeed({ kind: "full", items: [wrong("pulled")] })
      })
      const { diagnostics, fresh } = yield* code.diagnostics("src/broken.ts", silent)
      assert.deepStrictEqual([fresh, diagnostics[0]?.message], [true, "pulled"])
    }).pipe(Effect.provide(services)))

  it.effect("are asked for again when the server ends while they are waited for", () =>
    Effect.gen(function*() {
      const { code, die, heard, received, tell, uri } = yield* open()
      const fiber = yield* Effect.forkChild(code.diagnostics("src/broken.ts", silent))
      yield* heard("didOpen", ({ method }) => method === "textDocument/didOpen")
      received.length = 0
      yield* die
      yield* heard("didChange", ({ method }) => method === "textDocument/didChange")
      yield* tell("textDocument/publishDiagnostics", { uri: uri("src/broken.ts"), version: 99, diagnostics: [] })
      assert.isTrue((yield* Fiber.join(fiber)).fresh)
    }).pipe(Effect.provide(services)))
})

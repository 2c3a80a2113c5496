// A language server that the test writes: what it is told, what it gets when it asks, and what becomes of its faults.
import { assert, describe, it } from "@effect/vitest"
import * as Process from "effect-stdio/Process"
import { JsonRpcError } from "effect-stdio/Schema"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { rmSync } from "node:fs"
import * as Support from "./support.ts"

const { open, range, services, settled, silent } = Support

const AT = { file: "src/report.ts", line: 7, symbol: "format" }
const FORMAT = { start: { line: 6, character: 21 }, end: { line: 6, character: 27 } }
const hover = { "textDocument/hover": () => Effect.succeed({ contents: "a hover" }) }
const messageOf = <A>(call: Effect.Effect<A, { readonly message: string }>) =>
  Effect.map(Effect.flip(call), ({ message }) => message)

describe("a session", () => {
  it.effect("is not begun with a server that counts in bytes, though it was not offered", () =>
    Effect.gen(function*() {
      const { code } = yield* open({
        ...hover,
        initialize: () => Effect.succeed({ capabilities: { ...Support.capabilities, positionEncoding: "utf-8" } })
      })
      assert.include(yield* messageOf(code.hover(AT, silent)), "it counts characters in another way than UTF-16")
    }).pipe(Effect.provide(services)))

  it.effect("shows places with numbers beyond all files as the last one that the protocol knows", () =>
    Effect.gen(function*() {
      const { code } = yield* open((_, uri) => ({
        "textDocument/definition": () => Effect.succeed([{ uri: uri("src/report.ts"), range: range(1e300, -1, 1) }])
      }))
      assert.deepStrictEqual((yield* code.definition(AT, silent)).locations, [
        { file: "src/report.ts", line: 2 ** 31, column: 1 }
      ])
    }).pipe(Effect.provide(services)))

  it.effect("begins with initialize, the settings and the document that is asked about", () =>
    Effect.gen(function*() {
      const { code, project, received, starts, uri } = yield* open(hover)
      assert.strictEqual(starts(), 0)
      assert.strictEqual((yield* code.hover(AT, silent)).text, "a hover")
      const [initialize, initialized, configuration, didOpen, question] = received
      assert.strictEqual(initialize?.method, "initialize")
      assert.deepInclude(initialize?.params, {
        processId: process.pid,
        rootUri: uri(""),
        workspaceFolders: [{ uri: uri(""), name: "project" }]
      })
      assert.deepNestedPropertyVal(initialize, "params.capabilities.general.positionEncodings", ["utf-16"])
      assert.strictEqual(initialized?.method, "initialized")
      assert.deepStrictEqual(configuration?.params, { settings: Support.scripted.settings })
      assert.deepStrictEqual(didOpen, {
        method: "textDocument/didOpen",
        params: {
          textDocument: {
            uri: uri("src/report.ts"),
            languageId: "typescript",
            version: 1,
            text: project.read("src/report.ts")
          }
        }
      })
      assert.deepInclude(question?.params, {
        textDocument: { uri: uri("src/report.ts") },
        position: FORMAT.start
      })
      yield* code.hover(AT, silent)
      assert.strictEqual(starts(), 1)
    }).pipe(Effect.provide(services)))

  it.effect("answers what the server asks, and lets it write nothing", () =>
    Effect.gen(function*() {
      const { ask, code, project } = yield* open(hover)
      yield* code.hover(AT, silent)
      const before = project.files()
      const sections = ["scripted", "scripted.level", "dotted.name", "other", "scripted.level.deeper"]
      assert.deepStrictEqual(
        yield* ask("workspace/configuration", { items: sections.map((section) => ({ scopeUri: "x", section })) }),
        [{ level: 3 }, 3, true, null, null]
      )
      assert.deepStrictEqual(yield* ask("workspace/configuration", { items: [{}] }), [Support.scripted.settings])
      const edit = { changes: { "file:///a": [{ range: range(0, 0, 0), newText: "x" }] } }
      assert.deepNestedInclude(yield* ask("workspace/applyEdit", { edit }), { applied: false })
      assert.deepStrictEqual(yield* ask("window/showDocument", { uri: "file:///a" }), { success: false })
      assert.nestedPropertyVal(yield* ask("workspace/workspaceFolders"), "[0].name", "project")
      for (
        const method of [
          "window/workDoneProgress/create",
          "window/showMessageRequest",
          "workspace/semanticTokens/refresh",
          "workspace/diagnostic/refresh"
        ]
      ) {
        assert.isNull(yield* ask(method, { token: 1 }))
      }
      assert.strictEqual((yield* Effect.flip(ask("no/such")))["_tag"], "JsonRpcError")
      assert.deepStrictEqual(project.files(), before)
    }).pipe(Effect.provide(services)))

  it.effect("tells the server of open documents that changed or are gone, before it asks", () =>
    Effect.gen(function*() {
      const { code, project, received } = yield* open(hover)
      yield* code.hover(AT, silent)
      yield* code.documentSymbols("src/ledger.ts", silent).pipe(Effect.ignore)
      received.length = 0
      project.write("src/report.ts", "\uFEFF// new\r\nformat\r\n")
      rmSync(project.path("src/ledger.ts"))
      yield* code.hover({ ...AT, line: 2 }, silent)
      assert.deepStrictEqual(received.map(({ method }) => method), [
        "textDocument/didChange",
        "textDocument/didClose",
        "textDocument/hover"
      ])
      assert.deepNestedInclude(received[0]?.params, { contentChanges: [{ text: "// new\r\nformat\r\n" }] })
      received.length = 0
      yield* code.hover({ ...AT, line: 2 }, silent)
      assert.deepStrictEqual(received.map(({ method }) => method), ["textDocument/hover"])
    }).pipe(Effect.provide(services)))

  it.effect("tells the server of the files that it registered for, and of no others", () =>
    Effect.gen(function*() {
      const { ask, code, project, received, uri } = yield* open(hover)
      yield* code.hover(AT, silent)
      const registration = (id: string, registerOptions: unknown) => ({
        registrations: [{ id, method: "workspace/didChangeWatchedFiles", registerOptions }]
      })
      yield* ask("client/registerCapability", registration("1", { watchers: [{ globPattern: "**/*.json" }] }))
      yield* ask(
        "client/registerCapability",
        registration("2", { watchers: [{ globPattern: { baseUri: uri("src"), pattern: "*.ts" }, kind: 5 }, 7] })
      )
      const events = Effect.gen(function*() {
        received.length = 0
        yield* code.hover(AT, silent)
        const message = received.find(({ method }) => method === "workspace/didChangeWatchedFiles")
        const changes = (message?.params["changes"] ?? []) as ReadonlyArray<{ uri: string; type: number }>
        return changes.map(({ type, uri }) => `${type} ${uri}`).toSorted()
      })
      // what is as young as these files may be told once more
      yield* events
      project.write("src/new.ts", "export {}")
      project.write("src/windows.ts", "export {}")
      project.write("node_modules/left/package.json", "{}")
      project.write("node_modules/left/other.json", "{}")
      project.write("node_modules/@scope/right/package.json", "{}")
      project.write("data/größe.json", "{}")
      rmSync(project.path("src/broken.ts"))
      const told = yield* events
      assert.deepStrictEqual(
        told.filter((event) => /new|windows|left|right|größe|gr%|broken/.test(event)),
        [
          `1 ${uri("data/größe.json")}`,
          `1 ${uri("node_modules/@scope/right/package.json")}`,
          `1 ${uri("node_modules/left/package.json")}`,
          `1 ${uri("src/new.ts")}`,
          `3 ${uri("src/broken.ts")}`
        ]
      )
      yield* ask("client/unregisterCapability", {
        unregisterations: [
          { id: "1", method: "workspace/didChangeWatchedFiles" },
          { id: "2", method: "workspace/didChangeWatchedFiles" }
        ]
      })
      project.write("data/other.json", "{}")
      assert.deepStrictEqual(yield* events, [])
    }).pipe(Effect.provide(services)))

  it.effect("closes the document that was not asked about for the longest time, beyond a number", () =>
    Effect.gen(function*() {
      const { code, received, servers, uri } = yield* open(hover, { maxOpen: 2 })
      for (const file of ["src/report.ts", "src/ledger.ts", "src/report.ts", "src/broken.ts"]) {
        yield* code.hover({ file, line: 1, column: 1 }, silent)
      }
      assert.deepStrictEqual(
        received.filter(({ method }) => method === "textDocument/didClose").map(({ params }) => params["textDocument"]),
        [{ uri: uri("src/ledger.ts") }]
      )
      assert.strictEqual((yield* servers.status)[0]?.openDocuments, 2)
    }).pipe(Effect.provide(services)))

  it.effect("ends with shutdown and exit, also when it was idle for long", () =>
    Effect.gen(function*() {
      const { code, ends, heard, methods, servers, starts } = yield* open(hover, { idleTimeout: "15 minutes" })
      yield* code.hover(AT, silent)
      yield* settled
      yield* TestClock.adjust("14 minutes")
      assert.deepStrictEqual(ends, [])
      yield* TestClock.adjust("1 minute")
      yield* heard("exit", ({ method }) => method === "exit")
      assert.deepStrictEqual(methods().slice(-2), ["shutdown", "exit"])
      yield* settled
      assert.deepStrictEqual(ends, ["end 1"])
      assert.strictEqual((yield* servers.status)[0]?.server, "scripted")
      yield* code.hover(AT, silent)
      assert.strictEqual(starts(), 2)
    }).pipe(Effect.provide(services)))

  it.effect("refuses a server that says garbage instead of what it can do", () =>
    Effect.gen(function*() {
      const { code } = yield* open({ initialize: () => Effect.succeed("hello") })
      const message = yield* messageOf(code.hover(AT, silent))
      assert.include(message, "The language server \"scripted\" is not ready: the handshake failed")
      assert.include(message, "it names no capabilities")
    }).pipe(Effect.provide(services)))
})

describe("a call", () => {
  it.effect("is cancelled at the server when nobody waits for it any more", () =>
    Effect.gen(function*() {
      const { code, heard } = yield* open({ "textDocument/hover": () => Effect.never })
      const fiber = yield* Effect.forkChild(code.hover(AT, silent))
      yield* heard("the question", ({ method }) => method === "textDocument/hover")
      yield* Fiber.interrupt(fiber)
      yield* heard("the cancellation", ({ method }) => method === "$/cancelRequest")
    }).pipe(Effect.provide(services)))

  it.effect("is over after its time, and says so", () =>
    Effect.gen(function*() {
      const { code, heard } = yield* open({ "textDocument/hover": () => Effect.never }, {
        requestTimeout: "10 seconds"
      })
      const fiber = yield* Effect.forkChild(messageOf(code.hover(AT, silent)))
      yield* heard("the question", ({ method }) => method === "textDocument/hover")
      yield* TestClock.adjust("10 seconds")
      assert.include(yield* Fiber.join(fiber), "\"scripted\" did not answer textDocument/hover in time")
    }).pipe(Effect.provide(services)))

  it.effect("has more time while the server reports progress, which the caller hears of", () =>
    Effect.gen(function*() {
      const answer = yield* Deferred.make<unknown>()
      const { code, heard, servers, tell } = yield* open(
        { "textDocument/hover": () => Deferred.await(answer) },
        { requestTimeout: "10 seconds" }
      )
      const steps: Array<string> = []
      const fiber = yield* Effect.forkChild(code.hover(AT, (step) => Effect.sync(() => steps.push(step))))
      const { params } = yield* heard("the question", ({ method }) => method === "textDocument/hover")
      const report = (token: unknown, value: object) => Effect.andThen(tell("$/progress", { token, value }), settled)
      yield* TestClock.adjust("9 seconds")
      yield* report(params["workDoneToken"], { kind: "begin", title: "Loading", percentage: 10 })
      yield* report("own", { kind: "begin", title: "Indexing" })
      yield* report("own", { kind: "report", message: "src" })
      assert.deepStrictEqual((yield* servers.status)[0]?.doing, ["Loading (10 %)", "Indexing: src"])
      yield* report("own", { kind: "end" })
      yield* report("own", { nonsense: true })
      yield* TestClock.adjust("9 seconds")
      yield* Deferred.succeed(answer, { contents: "late" })
      assert.strictEqual((yield* Fiber.join(fiber)).text, "late")
      assert.deepStrictEqual(steps, ["Loading (10 %)", "Indexing", "Indexing: src", "Indexing"])
      assert.deepStrictEqual((yield* servers.status)[0]?.doing, [])
    }).pipe(Effect.provide(services)))

  it.effect("passes on what the server refuses, without the place of the folder", () =>
    Effect.gen(function*() {
      const { code } = yield* open(({ folder }) => ({
        "textDocument/hover": () =>
          Effect.fail(new JsonRpcError({ code: -32603, message: `no ${folder}/src/report.ts here` }))
      }))
      assert.strictEqual(
        yield* messageOf(code.hover(AT, silent)),
        "The language server \"scripted\" refused textDocument/hover: no src/report.ts here"
      )
    }).pipe(Effect.provide(services)))

  it.effect("is made again when the server says that the text has changed meanwhile", () =>
    Effect.gen(function*() {
      let calls = 0
      const { code } = yield* open({
        "textDocument/hover": () =>
          ++calls === 1
            ? Effect.fail(new JsonRpcError({ code: -32801, message: "content modified" }))
            : Effect.succeed({ contents: "now" })
      })
      assert.strictEqual((yield* code.hover(AT, silent)).text, "now")
    }).pipe(Effect.provide(services)))

  it.effect("is not made when the server cannot do it", () =>
    Effect.gen(function*() {
      const { code } = yield* open({ initialize: () => Effect.succeed({ capabilities: { hoverProvider: false } }) })
      assert.include(yield* messageOf(code.hover(AT, silent)), "does not know textDocument/hover")
    }).pipe(Effect.provide(services)))

  it.effect("gets a clear error for an answer that is garbage", () =>
    Effect.gen(function*() {
      const { code } = yield* open({
        "textDocument/hover": () => Effect.succeed(7),
        "textDocument/definition": () => Effect.succeed([{ uri: 1 }]),
        "textDocument/documentSymbol": () => Effect.succeed("symbols"),
        "textDocument/rename": () => Effect.succeed({ changes: { a: 1 } }),
        "textDocument/prepareRename": () => Effect.succeed({ defaultBehavior: true })
      })
      const calls = [
        code.hover(AT, silent),
        code.definition(AT, silent),
        code.documentSymbols("src/report.ts", silent),
        code.rename({ ...AT, newName: "x" }, silent)
      ]
      for (const call of calls) assert.match(yield* messageOf<unknown>(call), /cannot be read: it is nothing/)
    }).pipe(Effect.provide(services)))

  it.effect("shows places with wrong ranges without a preview, and files outside by their names", () =>
    Effect.gen(function*() {
      const { code } = yield* open((project, uri) => ({
        "textDocument/definition": () =>
          Effect.succeed([
            { uri: uri("src/report.ts"), range: range(400, 0, 1) },
            { uri: uri("outside.ts"), range: range(0, 0, 1) },
            { uri: `file://${project.outside}`, range: range(0, 0, 1) },
            { uri: "nonsense", range: range(0, 0, 1) },
            { uri: uri("gone.ts"), range: range(0, 0, 1) },
            { uri: uri("src/windows.ts"), range: range(2, 13, 18) },
            {}
          ])
      }))
      assert.deepStrictEqual(yield* code.definition(AT, silent), {
        locations: [
          { file: "src/report.ts", line: 401, column: 1 },
          { file: "outside.ts", outside: true, line: 1, column: 1 },
          { file: "outside.ts", outside: true, line: 1, column: 1 },
          { file: "nonsense", outside: true, line: 1, column: 1 },
          { file: "gone.ts", line: 1, column: 1 },
          { file: "src/windows.ts", line: 3, column: 14, preview: "export const first = format(100)" }
        ],
        total: 6,
        note: "1 more from the language server could not be read."
      })
    }).pipe(Effect.provide(services)))

  it.effect("cuts a long list, and says so", () =>
    Effect.gen(function*() {
      const { code } = yield* open((_, uri) => ({
        "textDocument/references": () =>
          Effect.succeed(Array.from({ length: 300 }, () => ({ uri: uri("src/report.ts"), range: range(0, 0, 1) })))
      }))
      const { locations, note, total } = yield* code.references(AT, silent)
      assert.deepStrictEqual([locations.length, total, note], [200, 300, "Only the first 200 are shown."])
    }).pipe(Effect.provide(services)))
})

describe("a language server that ends", () => {
  it.effect("in the midst of a question is started again, has its documents, and is asked once more", () =>
    Effect.gen(function*() {
      let calls = 0
      const { code, die, heard, project, received, servers, starts, uri } = yield* open({
        "textDocument/hover": () => ++calls === 1 ? Effect.never : Effect.succeed({ contents: "again" })
      })
      const fiber = yield* Effect.forkChild(code.hover(AT, silent))
      yield* heard("the question", ({ method }) => method === "textDocument/hover")
      received.length = 0
      project.write("src/report.ts", `${project.read("src/report.ts")}// new\n`)
      yield* die
      assert.strictEqual((yield* Fiber.join(fiber)).text, "again")
      assert.strictEqual(starts(), 2)
      assert.deepInclude(
        received.find(({ method }) => method === "textDocument/didOpen")?.params["textDocument"],
        { uri: uri("src/report.ts"), text: project.read("src/report.ts") }
      )
      assert.deepInclude((yield* servers.status)[0], { state: "running", restarts: 1, pid: 1002 })
    }).pipe(Effect.provide(services)))

  it.effect("twice in the midst of a question is not asked a third time", () =>
    Effect.gen(function*() {
      const { code, die, heard, received } = yield* open({ "textDocument/hover": () => Effect.never })
      const fiber = yield* Effect.forkChild(messageOf(code.hover(AT, silent)))
      yield* heard("the question", ({ method }) => method === "textDocument/hover")
      received.length = 0
      yield* die
      yield* heard("the question again", ({ method }) => method === "textDocument/hover")
      yield* die
      assert.include(
        yield* Fiber.join(fiber),
        "\"scripted\" ended while it was asked, and is started again. Call again."
      )
    }).pipe(Effect.provide(services)))

  it.effect("again and again is left alone, until the next call", () =>
    Effect.gen(function*() {
      let isIll = true
      const { code, servers, starts } = yield* open(hover, { diesAtOnce: () => isIll })
      const fiber = yield* Effect.forkChild(messageOf(code.hover(AT, silent)))
      for (let second = 0; second < 10; second++) {
        yield* settled
        yield* TestClock.adjust("1 second")
      }
      const message = yield* Fiber.join(fiber)
      assert.include(message, "The language server \"scripted\" is not ready: ")
      assert.include(message, "The next call starts it anew.")
      assert.strictEqual(starts(), 4)
      yield* settled
      const [status] = yield* servers.status
      assert.include(["crashed", "not installed"], status?.state)
      isIll = false
      assert.strictEqual((yield* code.hover(AT, silent)).text, "a hover")
    }).pipe(Effect.provide(services)))

  it.effect("and never answers initialize is given up after a time", () =>
    Effect.gen(function*() {
      const { code, heard } = yield* open({ initialize: () => Effect.never }, { initializeTimeout: "30 seconds" })
      const fiber = yield* Effect.forkChild(messageOf(code.hover(AT, silent)))
      yield* heard("initialize", ({ method }) => method === "initialize")
      yield* TestClock.adjust("30 seconds")
      assert.include(yield* Fiber.join(fiber), "the handshake failed: not over in 30s")
    }).pipe(Effect.provide(services)))

  it.effect("or is not there at all: the error says what to install", () =>
    Effect.gen(function*() {
      let isThere = false
      const missing = new Process.ProcessError({ reason: new Process.NotFound({ command: "scripted" }) })
      const { code, starts } = yield* open(hover, { failsToStart: () => isThere ? undefined : missing })
      assert.strictEqual(
        yield* messageOf(code.hover(AT, silent)),
        "The language server \"scripted\" is not installed: there is no program \"scripted-language-server\". Write it."
      )
      assert.strictEqual(starts(), 1)
      isThere = true
      assert.strictEqual((yield* code.hover(AT, silent)).text, "a hover")
    }).pipe(Effect.provide(services)))
})

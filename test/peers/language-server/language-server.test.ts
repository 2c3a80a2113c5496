/**
 * A language server that many editors use, as the child of a peer: `Content-Length` frames, requests and notifications in
 * both directions, cancellation, and an end in order.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import * as Cancellation from "../../../src/Cancellation.ts"
import * as Peer from "../../../src/Peer.ts"
import * as Process from "../../../src/Process.ts"
import * as Progress from "../../../src/Progress.ts"
import * as Router from "../../../src/Router.ts"
import { JsonRpcError } from "../../../src/Schema.ts"

const server = fileURLToPath(new URL("node_modules/typescript-language-server/lib/cli.mjs", import.meta.url))
const tsserver = fileURLToPath(new URL("node_modules/typescript/lib/tsserver.js", import.meta.url))

const TEXT = `const wrong: number = "text"
export const double = (amount: number) => amount * 2
double(wrong).
`

/** A project of one file, which is removed afterwards. */
const project = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "language-server-"))
    const file = join(folder, "größe.ts")
    writeFileSync(file, TEXT)
    writeFileSync(join(folder, "tsconfig.json"), "{}")
    return { folder, root: pathToFileURL(folder).href, uri: pathToFileURL(file).href }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** A started language server with the file open, and what it has asked for so far. */
const open = Effect.gen(function*() {
  const asked: Array<string> = []
  const note = (method: string, answer: unknown) =>
    Router.rawRequest(method, () => {
      asked.push(method)
      return Effect.succeed(answer)
    })
  const { root, uri } = yield* project
  const child = yield* Process.make(process.execPath, [server, "--stdio"], { framing: "content-length" })
  const peer = yield* Peer.make(child.transport, {
    onBadInput: "count",
    cancellation: Cancellation.lsp,
    progress: Progress.lsp,
    router: Router.empty.pipe(
      note("workspace/configuration", [{}]),
      note("window/workDoneProgress/create", null),
      note("client/registerCapability", null)
    )
  })
  const notifications = yield* peer.subscribe({ methods: ["textDocument/publishDiagnostics"] })
  const initialized = yield* peer.call("initialize", {
    processId: process.pid,
    rootUri: root,
    workspaceFolders: [{ uri: root, name: "project" }],
    initializationOptions: { tsserver: { path: tsserver } },
    capabilities: {
      window: { workDoneProgress: true },
      workspace: { configuration: true },
      textDocument: { hover: { contentFormat: ["markdown"] }, publishDiagnostics: {} }
    }
  })
  yield* peer.notify("initialized", {})
  yield* peer.notify("textDocument/didOpen", {
    textDocument: { uri, languageId: "typescript", version: 1, text: TEXT }
  })
  return { asked, child, initialized, notifications, peer, uri }
})

const at = (uri: string, line: number, character: number) => ({ textDocument: { uri }, position: { line, character } })

describe("typescript-language-server", () => {
  it.live("is initialized, reports what is wrong, and says what stands under the cursor", () =>
    Effect.gen(function*() {
      const { initialized, notifications, peer, uri } = yield* open
      assert.nestedPropertyVal(initialized, "capabilities.hoverProvider", true)
      const report = yield* notifications.pipe(
        Stream.filter(({ params }) => JSON.stringify(params).includes("Type 'string' is not assignable")),
        Stream.runHead
      )
      assert.isTrue(report._tag === "Some" && JSON.stringify(report.value.params).includes(uri))
      const hover = yield* peer.call("textDocument/hover", at(uri, 1, 15))
      assert.include(JSON.stringify(hover), "const double: (amount: number) => number")
      assert.deepInclude(yield* peer.stats, { badInput: 0, strayResponses: 0 })
    }))

  it.live("has its own requests answered while ours are open", () =>
    Effect.gen(function*() {
      const { asked, peer, uri } = yield* open
      const symbols = yield* peer.call("textDocument/documentSymbol", { textDocument: { uri } })
      assert.include(JSON.stringify(symbols), "\"double\"")
      assert.include(asked, "workspace/configuration")
    }))

  it.live("may be asked for completions and not be waited for", () =>
    Effect.gen(function*() {
      const { peer, uri } = yield* open
      const completion = yield* Effect.forkChild(peer.call("textDocument/completion", at(uri, 2, 14)), {
        startImmediately: true
      })
      yield* Fiber.interrupt(completion)
      const exit = yield* Fiber.await(completion)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      // its late answer is nobody's, and the next call has its own
      const hover = yield* peer.call("textDocument/hover", at(uri, 1, 15))
      assert.include(JSON.stringify(hover), "const double")
      assert.deepStrictEqual((yield* peer.inFlight).calls, [])
    }))

  it.live("refuses a method it does not know with its own error", () =>
    Effect.gen(function*() {
      const { peer } = yield* open
      const error = yield* Effect.flip(peer.call("no/such", {}))
      assert.instanceOf(error, JsonRpcError)
      assert.strictEqual(error._tag === "JsonRpcError" ? error.code : undefined, -32601)
    }))

  it.live("shuts down and exits when it is told, and leaves no process behind", () =>
    Effect.gen(function*() {
      const { child, peer } = yield* open
      assert.isNull(yield* peer.call("shutdown"))
      yield* peer.notify("exit")
      assert.deepStrictEqual(yield* child.exited, { exitCode: 0 })
      const error = yield* Effect.flip(peer.call("textDocument/hover", {}))
      assert.include(error.message, "ended with code 0")
      assert.isFalse(existsSync(`/proc/${child.pid}`))
    }))
})

// The tools behind a connection: what they say of themselves, refusals, progress, and cancellation by the client.
import { assert, describe, it, layer } from "@effect/vitest"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpTest from "effect/ai/McpTest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Search from "../../examples/ast-grep/Search.ts"
import { AstGrepTools } from "../../examples/ast-grep/tools.ts"
import * as Mcp from "../utils/mcp.ts"
import * as Project from "../utils/project.ts"
import { services } from "./support.ts"

const connect = Effect.gen(function*() {
  const project = yield* Project.make
  const client = yield* McpTest.makeClient(
    AstGrepTools.pipe(Layer.provide(Search.Search.layer({ root: project.folder }))),
    { protocols: [McpProtocol.v2025_11_25], protocolVersion: "2025-11-25" }
  )
  return { client, project }
})

const texts = (result: { readonly content: ReadonlyArray<object> }): string =>
  result.content.flatMap((part) => "text" in part && typeof part.text === "string" ? [part.text] : []).join()

layer(services)("the tools", (it) => {
  it.effect("say whether they only read, what they take and that they give objects", () =>
    Effect.gen(function*() {
      const { client } = yield* connect
      const { tools } = yield* client.listTools()
      const reads = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      const query = ["pattern", "language", "globs", "selector"]
      assert.deepStrictEqual(
        Mcp.described(tools),
        [
          {
            name: "search",
            annotations: { title: "Find code by its structure", ...reads },
            parameters: [...query, "cursor"],
            required: ["pattern", "language"],
            excess: false,
            output: "object"
          },
          {
            name: "replace",
            annotations: {
              title: "Rewrite code by its structure",
              readOnlyHint: false,
              destructiveHint: true,
              idempotentHint: false,
              openWorldHint: false
            },
            parameters: [...query, "rewrite", "dryRun", "version"],
            required: ["pattern", "language", "rewrite"],
            excess: false,
            output: "object"
          },
          {
            name: "languages",
            annotations: { title: "List the languages", ...reads },
            parameters: [],
            required: undefined,
            excess: false,
            output: "object"
          }
        ]
      )
      assert.deepStrictEqual(tools.filter((tool) => !tool.description), [])
    }))

  it.effect("list the languages", () =>
    Effect.gen(function*() {
      const { client } = yield* connect
      const { structuredContent } = yield* client.callTool({ name: "languages", arguments: {} })
      assert.deepStrictEqual(structuredContent, {
        languages: [
          { name: "Css", aliases: [], endings: [".css"] },
          { name: "Html", aliases: ["htm", "xhtml"], endings: [".html", ".htm", ".xhtml"] },
          {
            name: "JavaScript",
            aliases: ["js", "jsx", "mjs", "cjs", "javascriptreact"],
            endings: [".js", ".jsx", ".mjs", ".cjs"]
          },
          { name: "Tsx", aliases: ["typescriptreact"], endings: [".tsx"] },
          { name: "TypeScript", aliases: ["ts", "mts", "cts"], endings: [".ts", ".mts", ".cts"] }
        ]
      })
    }))

  it.effect("answer what cannot be done with an error that says what to do, and go on", () =>
    Effect.gen(function*() {
      const { client, project } = yield* connect
      const before = project.files()
      const search = { pattern: "format($A)", language: "ts" }
      const replace = { ...search, rewrite: "show($A)", dryRun: false }
      const refusals: ReadonlyArray<readonly [tool: string, params: Record<string, unknown>, start: string]> = [
        ["search", { ...search, language: "cobol" }, "There is no language \"cobol\". Use one of Css, Html, "],
        ["search", { ...search, pattern: "format(" }, "The pattern is not valid TypeScript, at \"format(\". "],
        ["search", { ...search, globs: ["../**"] }, "The glob \"../**\" leads out of the server's folder. "],
        ["search", { ...search, globs: ["/etc/**"] }, "The glob \"/etc/**\" is absolute. "],
        ["search", { ...search, cursor: "next" }, "The cursor is not valid. "],
        ["search", { ...search, selector: "nothing" }, "TypeScript has no kind of node that is called \"nothing\". "],
        ["search", { ...search, path: "src" }, "Invalid parameters for tool 'search'"],
        ["search", { ...search, globs: "src" }, "Invalid parameters for tool 'search'"],
        ["search", { pattern: "f($A)" }, "Invalid parameters for tool 'search'"],
        ["search", { language: "ts" }, "Invalid parameters for tool 'search'"],
        ["search", { ...search, pattern: 1 }, "Invalid parameters for tool 'search'"],
        ["replace", { ...replace, rewrite: "show($B)" }, "The rewrite uses \"$B\", but the pattern has $A. "],
        ["replace", { ...replace, version: "1" }, "The files, or the call, are not those of the dry run"],
        ["replace", { ...replace, dryRun: "no" }, "Invalid parameters for tool 'replace'"],
        ["replace", { ...replace, dryrun: false }, "Invalid parameters for tool 'replace'"],
        ["replace", search, "Invalid parameters for tool 'replace'"],
        ["languages", { all: true }, "Invalid parameters for tool 'languages'"]
      ]
      for (const [name, params, start] of refusals) {
        const result = yield* client.callTool({ name, arguments: params })
        const message = texts(result)
        assert.deepStrictEqual(
          { isError: result.isError, structured: result.structuredContent, start: message.slice(0, start.length) },
          { isError: true, structured: undefined, start }
        )
        assert.notInclude(message, project.folder)
      }
      assert.deepStrictEqual(project.files(), before)
      const result = yield* client.callTool({ name: "search", arguments: search })
      assert.notStrictEqual(result.isError, true)
      assert.deepStrictEqual(JSON.parse(texts(result)), result.structuredContent)
    }))
})

/** The matches of the search that was answered last. */
const lastMatches = (messages: ReadonlyArray<Mcp.Message>): ReadonlyArray<unknown> => {
  const { structuredContent } = decodeSearched(messages.at(-1)?.result)
  return structuredContent.matches
}

const decodeSearched = Schema.decodeUnknownSync(
  Schema.Struct({ structuredContent: Schema.Struct({ matches: Schema.Array(Schema.Unknown) }) })
)

/** A server for a project, with a client that has said hello; `before` is called ahead of each file that is read. */
const start = Effect.fnUntraced(function*(before: (path: string) => Effect.Effect<void> = () => Effect.void) {
  const project = yield* Project.make
  const fs = yield* FileSystem.FileSystem
  const search = yield* Search.make({ root: project.folder }).pipe(
    Effect.provideService(FileSystem.FileSystem, {
      ...fs,
      readFile: (path) => Effect.andThen(before(path), fs.readFile(path)),
      rename: (from, to) => Effect.andThen(before(to), fs.rename(from, to))
    })
  )
  const session = yield* Mcp.session(
    AstGrepTools.pipe(Layer.provide(Layer.succeed(Search.Search, search)))
  )
  return { ...session, project }
})

describe("the ast-grep server", () => {
  it.effect("tells how far a call is to clients that ask, from little to all, before the reply", () =>
    Effect.gen(function*() {
      const { call, until } = yield* start()
      const search = { pattern: "format($A)", language: "ts" }
      const calls = [["search", search], ["replace", { ...search, rewrite: "$A" }]] as const
      for (const [index, [name, args]] of calls.entries()) {
        yield* call(index + 1, name, args, { progressToken: name })
        const messages = yield* until(index + 1)
        assert.deepStrictEqual(Mcp.progressOf(messages, name), [1, 2, 3, 4, 5].map((done) => ({ done, total: 5 })))
      }
    }).pipe(Effect.provide(services)))

  for (
    const [when, name, file] of [
      ["while files are searched", "search", "ledger.ts"],
      ["while files are read for a replacement", "replace", "ledger.ts"],
      ["at the first exchange of files", "replace", "written"]
    ] as const
  ) {
    it.effect(`stops when the client cancels ${when}, changes nothing, and goes on serving`, () =>
      Effect.gen(function*() {
        const reached = yield* Deferred.make<void>()
        const gone = yield* Deferred.make<void>()
        let parked = false
        let planned = false
        const server = yield* start((path) => {
          const isIt = file === "written" ? planned && path.endsWith("report.ts") : path.endsWith(file)
          planned ||= path.endsWith("report.ts")
          if (parked || !isIt) return Effect.void
          parked = true
          return Deferred.succeed(reached, undefined).pipe(
            Effect.andThen(Effect.interruptible(Effect.never)),
            Effect.ensuring(Deferred.succeed(gone, undefined))
          )
        })
        const before = server.project.files()
        const search = { pattern: "format($A)", language: "ts" }
        yield* server.call(1, name, name === "search" ? search : { ...search, rewrite: "show($A)", dryRun: false })
        yield* Deferred.await(reached)
        // another call is answered meanwhile
        yield* server.call(2, "search", { ...search, globs: ["windows.ts"] })
        assert.lengthOf(lastMatches(yield* server.until(2)), 2)
        yield* server.cancel(1)
        yield* Deferred.await(gone)
        yield* server.call(3, "search", search)
        const messages = yield* server.until(3)
        assert.deepStrictEqual(messages.map(({ id }) => id), [0, 2, 3])
        assert.lengthOf(lastMatches(messages), 6)
        // the next write waits until the cancelled one has cleaned up
        yield* server.call(4, "replace", { ...search, rewrite: "show($A)", globs: ["nothing"], dryRun: false })
        yield* server.until(4)
        assert.deepStrictEqual(server.project.files(), before)
      }).pipe(Effect.provide(services)))
  }
})

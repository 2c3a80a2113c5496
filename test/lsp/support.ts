// What the tests of the language server example share: a language server that a test writes, in memory.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Peer from "effect-stdio/Peer"
import * as Process from "effect-stdio/Process"
import * as Router from "effect-stdio/Router"
import { JsonRpcError } from "effect-stdio/Schema"
import * as Transport from "effect-stdio/Transport"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { pathToFileURL } from "node:url"
import * as Code from "../../examples/lsp/Code.ts"
import type { Language } from "../../examples/lsp/languages.ts"
import * as LanguageServers from "../../examples/lsp/LanguageServers.ts"
import * as Project from "../utils/project.ts"

export const services = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)

export interface Received {
  readonly method: string
  // what a test knows of the params it looks at
  readonly params: Record<string, unknown>
}

export type Answers = Record<string, Answer>

type Answer = (params: Record<string, unknown>) => Effect.Effect<unknown, JsonRpcError>

export const scripted: Language = {
  name: "scripted",
  command: "scripted-language-server",
  args: [],
  languages: { ".ts": "typescript" },
  install: "Write it.",
  settings: { scripted: { level: 3 }, "dotted.name": true }
}

export const capabilities = {
  definitionProvider: true,
  referencesProvider: true,
  hoverProvider: true,
  documentSymbolProvider: true,
  workspaceSymbolProvider: true,
  renameProvider: { prepareProvider: true }
}

export const silent = () => Effect.void

/**
 * A project with the service, and a language server that gives the `answers` of the test, by method. Each start of it is a
 * process of its own.
 */
export const open = Effect.fnUntraced(function*(
  answers: Answers | ((project: Project.Project, uri: (name: string) => string) => Answers) = {},
  options?: Partial<LanguageServers.Options> & {
    /** Whether a process ends as soon as it was started. */
    readonly diesAtOnce?: (generation: number) => boolean
    readonly failsToStart?: (generation: number) => unknown
  }
) {
  const project = yield* Project.make
  const uri = (name: string) => pathToFileURL(project.path(name)).href
  const answersByMethod = typeof answers === "function" ? answers(project, uri) : answers
  const received: Array<Received> = []
  const waiting = new Set<() => void>()
  const ends: Array<string> = []
  let client: Peer.Peer["Service"] | undefined
  let transport: Transport.Transport["Service"] | undefined
  let generation = 0

  const note = (method: string, params: unknown) => {
    received.push({ method, params: (params ?? {}) as Record<string, unknown> })
    for (const look of waiting) look()
  }
  const start = Effect.gen(function*() {
    const number = ++generation
    const failure = options?.failsToStart?.(number)
    if (failure !== undefined) return yield* Effect.fail(failure)
    const [left, right] = yield* Transport.makePair({
      left: { framing: "content-length" },
      right: { framing: "content-length" },
      capacity: 1_000
    })
    const router = Router.raw((params, { method }) => {
      note(method, params)
      const answer = answersByMethod[method]
      if (answer !== undefined) return answer((params ?? {}) as Record<string, unknown>)
      if (method === "initialize") {
        return Effect.succeed({ capabilities, serverInfo: { name: "scripted", version: "1" } })
      }
      if (method === "shutdown") return Effect.succeed(null)
      return Effect.fail(JsonRpcError.methodNotFound(method))
    }, (params, method) => Effect.sync(() => note(method, params)))
    client = yield* Peer.make(right, { router })
    transport = right
    // what is queued is written before a process ends
    yield* Effect.addFinalizer(() => Effect.andThen(settled, Effect.sync(() => ends.push(`end ${number}`))))
    if (options?.diesAtOnce?.(number) === true) yield* right.end
    return Process.Process.of({
      transport: left,
      pid: 1_000 + number,
      command: "scripted",
      exited: Effect.never,
      stderr: Stream.empty,
      stderrTail: Effect.succeed(""),
      end: Effect.succeed({})
    })
  })

  const servers = yield* LanguageServers.make({
    root: project.folder,
    languages: [scripted],
    start: () => start,
    ...options
  })
  const code = yield* Code.make.pipe(Effect.provideService(LanguageServers.LanguageServers, servers))

  /** Returns when something was received, now or before. */
  const heard = (what: string, found: (message: Received) => boolean): Effect.Effect<Received> =>
    Effect.suspend(() => {
      const done = Deferred.makeUnsafe<Received>()
      const look = () => {
        const message = received.find(found)
        if (message !== undefined) Deferred.doneUnsafe(done, Effect.succeed(message))
      }
      waiting.add(look)
      look()
      return Effect.ensuring(Deferred.await(done), Effect.sync(() => waiting.delete(look)))
    }).pipe(Effect.withSpan(what))

  const use = <A, E>(f: (peer: Peer.Peer["Service"]) => Effect.Effect<A, E>) =>
    Effect.suspend(() => client === undefined ? Effect.die(new Error("not started")) : f(client))

  return {
    project,
    servers,
    code,
    received,
    heard,
    ends,
    uri,
    methods: () => received.map(({ method }) => method),
    starts: () => generation,
    /** What the server asks us. */
    ask: (method: string, params?: object) => use((peer) => peer.call(method, params)),
    tell: (method: string, params?: object) => Effect.orDie(use((peer) => peer.notify(method, params))),
    die: Effect.suspend(() => transport?.end ?? Effect.void)
  }
})

/** Lets the others run until they wait for something. */
export const settled = Effect.repeat(Effect.yieldNow, { times: 200 })

/** The whole range of a name on a line, both counted from 0. */
export const range = (line: number, from: number, to: number, endLine = line) => ({
  start: { line, character: from },
  end: { line: endLine, character: to }
})

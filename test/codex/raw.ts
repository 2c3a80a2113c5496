/**
 * The app server as it is: a peer to it, and each message that came and went, in order.
 */
import { assert } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Peer from "../../src/Peer.ts"
import * as Process from "../../src/Process.ts"
import * as Router from "../../src/Router.ts"
import { JsonRpcError } from "../../src/Schema.ts"
import * as Child from "../utils/child.ts"
import * as CodexHome from "./codexHome.ts"
import * as FakeModel from "./fakeModel.ts"

/** Time for what must come: generous, since other tests may need the processor. */
const LIMIT = "30 seconds"

/** A message as it stands on the wire, with the members that matter here. */
export interface Message {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

export interface StartOptions {
  /** Answers to what codex asks, by method; another method gets -32601. @default none */
  readonly answers?: Readonly<Record<string, (params: unknown) => Effect.Effect<unknown, JsonRpcError>>> | undefined
  /** Whether methods and members are used that codex calls experimental. @default true */
  readonly experimental?: boolean | undefined
  /** More arguments. @default none */
  readonly args?: ReadonlyArray<string> | undefined
}

export interface Codex {
  readonly child: Process.Process["Service"]
  readonly peer: Peer.Peer["Service"]
  /** What codex has sent, in order. */
  readonly heard: ReadonlyArray<Message>
  /** The first message that it is, of those that came and those that will. */
  readonly until: (what: string, is: (message: Message) => boolean) => Effect.Effect<Message>
  /** The params of the first notification or request of a method, from a place in `heard` on. */
  readonly next: (method: string, from?: number) => Effect.Effect<unknown>
  /** The params of all notifications of a method so far. */
  readonly all: (method: string) => ReadonlyArray<unknown>
  /** Starts a thread and returns its id. */
  readonly startThread: (params?: object) => Effect.Effect<string, JsonRpcError | Peer.PeerError>
  /** Starts a turn and returns its id. */
  readonly startTurn: (threadId: string, params?: object) => Effect.Effect<string, JsonRpcError | Peer.PeerError>
  /** Runs a turn to its end and returns the turn as `turn/completed` tells it. */
  readonly runTurn: (threadId: string, params?: object) => Effect.Effect<unknown, JsonRpcError | Peer.PeerError>
  /** Ends its input, and sees it leave by itself with code 0. */
  readonly end: Effect.Effect<void>
}

/** Starts the app server with a home, in a folder, and greets it. */
export const start = Effect.fnUntraced(function*(
  home: string,
  folder: string,
  options?: StartOptions
): Effect.fn.Return<Codex, JsonRpcError | Peer.PeerError | Process.ProcessError, Scope.Scope> {
  const heard: Array<Message> = []
  const waiting = new Set<(message: Message) => void>()
  const child = yield* Process.make(CodexHome.binary(), [...CodexHome.args, ...(options?.args ?? [])], {
    cwd: folder,
    env: { ...Child.environment, CODEX_HOME: home },
    // whoever does not leave at the end of its input fails the test by its time
    endTimeout: LIMIT
  })
  const peer = yield* Peer.make(child.transport, {
    profile: "omit",
    onBadInput: "count",
    router: Router.raw((params, { method }) =>
      options?.answers?.[method]?.(params) ?? Effect.fail(JsonRpcError.methodNotFound(method))
    ),
    tap: {
      payload: (message) => message,
      onMessage: ({ direction, payload }) => {
        if (direction === "out") return
        // `payload` is the message, as it was told above
        const message = payload as Message
        heard.push(message)
        // those that wait now: one that begins to wait while these are told has seen this message in `heard`
        Array.from(waiting).forEach((wake) => wake(message))
      }
    }
  })

  const until = (what: string, is: (message: Message) => boolean, from = 0) =>
    Effect.suspend(() => {
      const known = heard.slice(from).find(is)
      if (known !== undefined) return Effect.succeed(known)
      const found = Deferred.makeUnsafe<Message>()
      const wake = (message: Message) => {
        if (!is(message)) return
        waiting.delete(wake)
        Deferred.doneUnsafe(found, Effect.succeed(message))
      }
      waiting.add(wake)
      return Deferred.await(found).pipe(
        Effect.ensuring(Effect.sync(() => waiting.delete(wake))),
        Effect.timeoutOrElse({
          duration: LIMIT,
          orElse: () =>
            Effect.die(new Error(`${what} has not come, but ${heard.map(({ method }) => method ?? "…").join(", ")}`))
        })
      )
    })
  const next = (method: string, from?: number) =>
    Effect.map(until(method, (message) => message.method === method, from), ({ params }) => params)

  const startThread = (params?: object) =>
    peer.call("thread/start", { cwd: folder, approvalPolicy: "never", sandbox: "danger-full-access", ...params }).pipe(
      Effect.map((result) => text(at(result, "thread", "id")))
    )
  const startTurn = (threadId: string, params?: object) =>
    peer.call("turn/start", { threadId, input: [{ type: "text", text: "please" }], ...params }).pipe(
      Effect.map((result) => text(at(result, "turn", "id")))
    )

  yield* peer.call("initialize", {
    clientInfo: { name: "effect-stdio-tests", version: "0.0.0" },
    capabilities: { experimentalApi: options?.experimental ?? true }
  })
  yield* peer.notify("initialized")
  return {
    child,
    peer,
    heard,
    until,
    next,
    all: (method) => heard.flatMap((message) => message.method === method ? [message.params] : []),
    startThread,
    startTurn,
    runTurn: Effect.fnUntraced(function*(threadId, params) {
      const from = heard.length
      yield* startTurn(threadId, params)
      return at(yield* next("turn/completed", from), "turn")
    }),
    end: Effect.gen(function*() {
      assert.deepStrictEqual(yield* child.end, { exitCode: 0 })
      assert.deepInclude(yield* peer.stats, { badInput: 0, strayResponses: 0 })
    })
  }
})

export interface Options extends StartOptions, Omit<CodexHome.Options, "modelUrl"> {}

/** A model, a home that knows it, an empty folder to work in, and the app server. */
export const open = Effect.fnUntraced(function*(scenario: FakeModel.Scenario, options?: Options) {
  const model = yield* FakeModel.make(scenario)
  const home = yield* CodexHome.make({ ...options, modelUrl: model.url })
  const folder = yield* Child.temporaryFolder
  return { model, home, folder, ...(yield* start(home, folder, options)) }
})

/** What is found on the way through the members of a value; undefined where it ends early. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    // any member of an object may be read, and is unknown
    (inner, name) => typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>)[name] : undefined,
    value
  )

/** A value that must be text. */
export const text = (value: unknown): string => {
  assert.isString(value)
  return String(value)
}

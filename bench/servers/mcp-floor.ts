/**
 * The tools of the MCP probe on Effect's McpServer with nothing around it: requests are handed over as objects, and
 * results are dropped. What is left is what McpServer itself costs, whoever brings the requests.
 *
 * Two methods on standard input and output tell it what to do: `ask` makes one request and answers with its exit,
 * `drive` keeps a number of requests in flight for a while and answers what that took.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import * as McpServer from "effect/ai/McpServer"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as RpcMessage from "effect/rpc/RpcMessage"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { registrations } from "../../examples/probe/mcp-tools.ts"
import { protocols } from "../../src/Mcp.ts"

const CLIENT_ID = 0

const Call = Schema.Struct({ method: Schema.String, params: Schema.optionalKey(Schema.Unknown) })
const Drive = Schema.Struct({
  call: Call,
  inFlight: Schema.Int,
  until: Schema.Union([Schema.Struct({ seconds: Schema.Finite }), Schema.Struct({ messages: Schema.Int })])
})
const Command = Schema.fromJsonString(Schema.Union([
  Schema.Struct({ id: Schema.Int, method: Schema.Literal("ask"), params: Call }),
  Schema.Struct({ id: Schema.Int, method: Schema.Literal("drive"), params: Drive })
]))

const decode = Schema.decodeUnknownEffect(Command)

type Call = typeof Call.Type
type Drive = typeof Drive.Type
type Exit = RpcMessage.ExitEncoded<unknown, unknown>

const program = Effect.gen(function*() {
  const waiting = new Map<string | number, Deferred.Deferred<Exit>>()
  const ready = Deferred.makeUnsafe<(message: RpcMessage.FromClientEncoded) => Effect.Effect<void>>()
  let nextId = 0

  const protocol = RpcServer.Protocol.of({
    run: (f) => Effect.andThen(Deferred.succeed(ready, (message) => f(CLIENT_ID, message)), Effect.never),
    disconnects: yield* Queue.make<number>(),
    send: (_clientId, message) =>
      Effect.sync(() => {
        if (message._tag !== "Exit") return
        const reply = waiting.get(message.requestId)
        waiting.delete(message.requestId)
        if (reply !== undefined) Deferred.doneUnsafe(reply, Effect.succeed(message.exit))
      }),
    end: () => Effect.void,
    clientIds: Effect.succeed(new Set([CLIENT_ID])),
    initialMessage: Effect.succeedNone,
    supportsAck: false,
    supportsTransferables: false,
    supportsSpanPropagation: true,
    supportsNotifications: true,
    codecFor: RpcSerialization.json.codecFor
  })

  yield* Layer.build(
    McpServer.layer({ name: "probe", version: "1.0.0", protocols, registrations }).pipe(
      Layer.provide(Layer.succeed(RpcServer.Protocol, protocol))
    )
  )
  const write = yield* Deferred.await(ready)

  const ask = ({ method, params }: Call) =>
    Effect.suspend(() => {
      const id = nextId++
      const reply = Deferred.makeUnsafe<Exit>()
      waiting.set(id, reply)
      return Effect.andThen(
        write({ _tag: "Request", id, tag: method, payload: params ?? null, headers: [] }),
        Deferred.await(reply)
      )
    })

  const drive = ({ call, inFlight, until }: Drive) =>
    Effect.gen(function*() {
      const cpuBefore = process.cpuUsage()
      const begun = performance.now()
      const deadline = "seconds" in until ? begun + until.seconds * 1000 : Infinity
      const limit = "messages" in until ? until.messages : Infinity
      let messages = 0
      const one = Effect.suspend(() => {
        messages++
        return ask(call)
      })
      const client = Effect.repeat(one, { while: () => messages < limit && performance.now() < deadline })
      yield* Effect.all(Array.from({ length: inFlight }, () => client), { concurrency: "unbounded", discard: true })
      const { system, user } = process.cpuUsage(cpuBefore)
      return { messages, seconds: (performance.now() - begun) / 1000, cpu: user + system }
    })

  const { stdin } = yield* Stdio.Stdio
  yield* stdin.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.runForEach((line) =>
      Effect.gen(function*() {
        const { id, method, params } = yield* decode(line)
        const result = method === "ask" ? yield* ask(params) : yield* drive(params)
        process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`)
      })
    )
  )
})

NodeRuntime.runMain(Effect.provide(Effect.scoped(program), NodeStdio.layer))

/**
 * A client whose server is kept alive by a supervisor: its processes are in memory, and their other end is the test.
 */
import { assert, it } from "@effect/vitest"
import * as McpConnection from "effect-stdio/McpConnection"
import * as Process from "effect-stdio/Process"
import type * as Supervisor from "effect-stdio/Supervisor"
import * as TestKit from "effect-stdio/TestKit"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

const session = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: {} },
  serverInfo: { name: "server", version: "1" }
}
const methods = (sent: ReadonlyArray<unknown>) => sent.map((message) => (message as { readonly method: string }).method)

/** A client of a process that is started again and again. */
const connect = Effect.fnUntraced(function*(options?: Omit<Supervisor.Options, "peer" | "handshake">) {
  const wires: Array<TestKit.Wire> = []
  const start = Effect.gen(function*() {
    const wire = yield* TestKit.make({ framing: "line" })
    wires.push(wire)
    return Process.Process.of({
      transport: wire.transport,
      pid: 1_000 + wires.length,
      command: "server",
      exited: Effect.never,
      stderr: Stream.empty,
      stderrTail: Effect.succeed(""),
      end: Effect.succeed({})
    })
  })
  const opening = yield* Effect.forkChild(
    McpConnection.connect(McpConnection.supervised(start, { ...options }), {
      name: "test",
      version: "1.0.0",
      protocols: [McpProtocol.v2025_11_25]
    }),
    { startImmediately: true }
  )
  const wire = (index: number) => {
    const found = wires[index]
    assert.isDefined(found)
    return found
  }
  // a supervisor starts in the background
  yield* settled
  yield* wire(0).next
  yield* wire(0).receive({ id: 1, result: session })
  const { client, connection } = yield* Fiber.join(opening)
  yield* settled
  return { client, connection, wires, wire }
})

const settled = Effect.andThen(TestClock.adjust(0), Effect.repeat(Effect.yieldNow, { times: 64 }))

const quiet = Effect.provide(Logger.layer([]))

it.effect("opens the session of a new process at once, and holds back until then what is to be sent", () =>
  Effect.gen(function*() {
    const { client, connection, wire, wires } = yield* connect()
    const heard = yield* connection.subscribe()
    const lost = yield* Effect.forkChild(client.listTools(), { startImmediately: true })
    yield* settled
    yield* wire(0).endInput
    const retried = yield* Effect.forkChild(
      Effect.catch(Fiber.join(lost), () => client.listTools()),
      { startImmediately: true }
    )
    yield* settled
    assert.strictEqual((yield* Effect.flip(Fiber.join(lost))).reason._tag, "TransportError")
    assert.strictEqual(wires.length, 2)
    assert.deepStrictEqual(yield* wire(1).next, (yield* wire(0).sent)[0])
    yield* settled
    assert.deepStrictEqual(methods(yield* wire(1).sent), ["initialize"])
    yield* wire(1).receive({ id: 1, result: session })
    yield* settled
    assert.deepStrictEqual(methods(yield* wire(1).sent), ["initialize", "notifications/initialized", "tools/list"])
    yield* wire(1).receive({ id: 2, result: { tools: [] } }, { method: "notifications/tools/list_changed" })
    assert.deepStrictEqual(yield* Fiber.join(retried), [])
    const [change] = yield* Stream.runCollect(Stream.take(heard, 1))
    assert.strictEqual(change?.method, "notifications/tools/list_changed")
  }).pipe(quiet))

it.effect("counts a process that opens no session as one that failed, and says when none is started any more", () =>
  Effect.gen(function*() {
    const { connection, wire, wires } = yield* connect({ maxRestarts: 1 })
    const heard = yield* Effect.flatMap(connection.subscribe(), (heard) =>
      Effect.forkChild(Stream.runCollect(heard), {
        startImmediately: true
      }))
    yield* wire(0).endInput
    yield* settled
    const waiting = yield* Effect.forkChild(Effect.flip(connection.request(McpSchema.Ping, undefined)), {
      startImmediately: true
    })
    yield* wire(1).receive({ id: 1, error: { code: -32600, message: "go away" } })
    yield* settled
    const { message, reason } = yield* Fiber.join(waiting)
    assert.strictEqual(reason._tag, "TransportError")
    assert.include(message, "the process is not started again: the handshake failed: go away")
    assert.strictEqual(wires.length, 2)
    assert.isUndefined(heard.pollUnsafe())
  }).pipe(quiet))

it.effect("ends what is heard with the connection", () =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const { connection } = yield* Scope.provide(connect(), scope)
    const heard = yield* connection.subscribe()
    yield* Scope.close(scope, Exit.void)
    assert.deepStrictEqual(yield* Stream.runCollect(heard), [])
    assert.strictEqual((yield* Effect.flip(connection.peer)).reason._tag, "ClosedError")
  }).pipe(quiet))

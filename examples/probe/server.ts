/**
 * A raw JSON-RPC server to test against, to measure, and to watch: each method shows one behaviour of the runtime.
 *
 *     node examples/probe/server.ts --idle 5s --events
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Peer from "../../src/Peer.ts"
import * as Router from "../../src/Router.ts"
import { JsonRpcError } from "../../src/Schema.ts"
import * as Server from "../../src/Server.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import * as Flags from "./flags.ts"

const Nothing = Schema.Struct({})
const Text = Schema.Struct({ text: Schema.String })

let interrupted = 0

/** Counts a handler that was interrupted. */
const counted = Effect.onInterrupt(() =>
  Effect.sync(() => {
    interrupted++
  })
)

const router = Router.empty.pipe(
  Router.request(
    "initialize",
    {
      params: Schema.Struct({ protocolVersion: Schema.optionalKey(Schema.String) }),
      result: Schema.Unknown
    },
    ({ protocolVersion = "1" }) =>
      Effect.succeed({ protocolVersion, capabilities: {}, serverInfo: { name: "probe", version: "1.0.0" } })
  ),
  Router.request("ping", { params: Nothing, result: Nothing }, () => Effect.succeed({})),
  Router.request("tools/call", {
    params: Schema.Struct({ name: Schema.String, arguments: Schema.optionalKey(Schema.Unknown) }),
    result: Schema.Unknown
  }, ({ arguments: args, name }) =>
    name === "echo"
      ? Effect.map(
        Effect.mapError(Schema.decodeUnknownEffect(Text)(args), (error) => JsonRpcError.invalidParams(error.message)),
        ({ text }) => ({ content: [{ type: "text", text }] })
      )
      : Effect.fail(JsonRpcError.invalidParams(`unknown tool ${JSON.stringify(name)}`))),
  Router.rawRequest("echo", (params) => Effect.succeed(params)),
  Router.request(
    "sleep",
    { params: Schema.Struct({ ms: Schema.Finite }), result: Schema.Struct({ slept: Schema.Finite }) },
    ({ ms }) => counted(Effect.as(Effect.sleep(ms), { slept: ms }))
  ),
  Router.request("hold", { params: Schema.Struct({ ms: Schema.Finite }), result: Nothing }, ({ ms }) =>
    // a handler that cannot be interrupted
    Effect.as(Effect.uninterruptible(Effect.sleep(ms)), {})),
  Router.request("fail", {
    params: Schema.Struct({ code: Schema.Int, message: Schema.String, data: Schema.optionalKey(Schema.Unknown) }),
    result: Schema.Never
  }, (error) => Effect.fail(new JsonRpcError(error))),
  Router.rawRequest("crash", () => Effect.die(new Error("the secret is 42"))),
  Router.request("print", { params: Text, result: Nothing }, ({ text }) =>
    Effect.sync(() => {
      console.log(text)
      process.stdout.write(`${text}\n`)
      return {}
    })),
  Router.request(
    "big",
    { params: Schema.Struct({ bytes: Schema.Int }), result: Schema.String },
    ({ bytes }) => Effect.succeed("x".repeat(bytes))
  ),
  Router.rawRequest("undefined", () => Effect.succeed(undefined)),
  Router.rawRequest("cycle", () =>
    Effect.sync(() => {
      const cycle: Array<unknown> = []
      cycle.push(cycle)
      return cycle
    })),
  Router.request("ask", {
    params: Schema.Struct({
      method: Schema.String,
      params: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
    }),
    result: Schema.Unknown
  }, ({ method, params }) =>
    Effect.gen(function*() {
      const caller = yield* Peer.Caller
      return yield* caller.call(method, params).pipe(
        Effect.catchTag("PeerError", (error) => Effect.fail(JsonRpcError.internal(error.message)))
      )
    })),
  Router.request("interrupted", { params: Nothing, result: Schema.Int }, () => Effect.sync(() => interrupted)),
  Router.request(
    "stop",
    { params: Schema.Struct({ code: Schema.optionalKey(Schema.Int) }), result: Nothing },
    ({ code }) => Effect.as(Effect.flatMap(Server.Control, (control) => control.stop(code)), {})
  )
)

const flags = Flags.read()

StdioRuntime.runMain(Server.run({ router, ...Flags.serverOptions(flags) }), {
  layer: Flags.layer(flags),
  events: flags.events
})

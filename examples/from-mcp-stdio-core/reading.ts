/**
 * Reads messages and writes answers without a server: says of each piece of input what it was, in its own framing.
 *
 *     printf '{"a":1}\nContent-Length: 7\r\n\r\n{"b":2}oops\n' | npx node examples/from-mcp-stdio-core/reading.ts
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Framing from "../../src/Framing.ts"
import * as JsonRpc from "../../src/Schema.ts"
import * as StdioRuntime from "../../src/StdioRuntime.ts"
import * as StdioTransport from "../../src/StdioTransport.ts"
import * as Transport from "../../src/Transport.ts"

/** The value of a frame, or what is wrong with it. */
const valueOf = (item: Framing.Item) =>
  item._tag === "Fault" ? Result.fail(item) : Result.flatMap(Framing.text(item), JsonRpc.parse)

const program = Effect.gen(function*() {
  const transport = yield* Transport.Transport
  yield* Stream.runForEach(transport.incoming, (item) => {
    const answer = Result.match(valueOf(item), {
      onSuccess: (payload) => ({ kind: "request", payload }),
      onFailure: ({ message }) => ({ kind: "parse_error", message })
    })
    return transport.send(Framing.frameOfText(JSON.stringify(answer), item.framing))
  })
  yield* transport.end
})

StdioRuntime.runMain(program, { layer: StdioTransport.layer() })

/**
 * A model server for tests of programs that call one: the part of the Responses API that the Codex app server uses, with
 * answers that the test chooses request by request.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { text } from "node:stream/consumers"
import type { Reply } from "./reply.ts"
import { steps } from "./sse.ts"

// -----------------------------------------------------------------------------
// what is asked
// -----------------------------------------------------------------------------

const Content = Schema.Struct({ text: Schema.optionalKey(Schema.String) })

const Item = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  role: Schema.optionalKey(Schema.String),
  content: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Content)]))),
  call_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  output: Schema.optionalKey(Schema.Unknown)
})

const Tool = Schema.Struct({
  type: Schema.String,
  name: Schema.optionalKey(Schema.String),
  tools: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String })))
})

const Body = Schema.fromJsonString(Schema.Struct({
  model: Schema.String,
  stream: Schema.Literal(true),
  input: Schema.Array(Item),
  tools: Schema.optionalKey(Schema.Array(Tool))
}))

/** What a tool has answered, as text. */
export interface ToolOutput {
  readonly callId: string
  readonly text: string
}

/** A tool that the model may call. */
export interface OfferedTool {
  readonly name: string
  readonly namespace?: string
}

/** What a scenario knows of a request. */
export interface ModelRequest {
  /** Of the requests so far, this one included. */
  readonly number: number
  readonly model: string
  /** What the user said last. */
  readonly text: string
  /** All messages, of the user, the model and who instructs it, in their order. */
  readonly messages: ReadonlyArray<{ readonly role: string; readonly text: string }>
  /** What tools have answered since then. */
  readonly outputs: ReadonlyArray<ToolOutput>
  readonly tools: ReadonlyArray<OfferedTool>
}

/** Chooses the answer to a request. */
export type Scenario = (request: ModelRequest) => Reply

export interface FakeModel {
  /** The base address of the API, without a slash at its end. */
  readonly url: string
  /** The requests so far, in their order. */
  readonly requests: ReadonlyArray<ModelRequest>
  /** Waits for a request by its number; the first is 1. */
  readonly request: (number: number) => Effect.Effect<ModelRequest>
}

// -----------------------------------------------------------------------------
// the server
// -----------------------------------------------------------------------------

/** Starts a server on a free port of the loopback. With the scope, open answers break off and the port becomes free. */
export const make = Effect.fnUntraced(function*(
  scenario: Scenario
): Effect.fn.Return<FakeModel, never, Scope.Scope> {
  const requests: Array<ModelRequest> = []
  const arrivals = new Map<number, Deferred.Deferred<ModelRequest>>()
  const arrival = (number: number) => {
    const known = arrivals.get(number)
    if (known !== undefined) return known
    const made = Deferred.makeUnsafe<ModelRequest>()
    arrivals.set(number, made)
    return made
  }

  const respond = Effect.fnUntraced(function*(request: IncomingMessage, response: ServerResponse) {
    const body = decodeBody(yield* Effect.promise(() => text(request)))
    if (Result.isFailure(body)) return refuse(response, 400, `the fake model cannot read this: ${body.failure.message}`)
    const asked = toRequest(requests.length + 1, body.success)
    const reply = scenario(asked)
    requests.push(asked)
    yield* Deferred.succeed(arrival(asked.number), asked)
    if (reply._tag === "HttpError") return refuse(response, reply.status, reply.message)
    yield* stream(response, reply, asked.number)
  })

  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const path = new URL(request.url ?? "/", "http://model").pathname
    if (request.method === "POST" && path === "/v1/responses") return respond(request, response)
    return Effect.sync(() => {
      if (request.method === "GET" && path === "/v1/models") return json(response, 200, { models: [] })
      refuse(response, 404, `the fake model has no ${request.method} ${path}`)
    })
  }

  const server = yield* Effect.acquireRelease(listen, close)
  const run = yield* FiberSet.makeRuntime()
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    // the one who asks may leave at any time, and the answer ends with that
    run(Effect.raceFirst(left(response), handle(request, response)))
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => server.on("request", onRequest)),
    () => Effect.sync(() => server.off("request", onRequest))
  )

  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}/v1`, requests, request: (number) => Deferred.await(arrival(number)) }
})

const listen = Effect.callback<Server>((resume) => {
  const server = createServer()
  const onError = (error: Error) => resume(Effect.die(error))
  server.once("error", onError)
  server.listen(0, "127.0.0.1", () => {
    server.off("error", onError)
    resume(Effect.succeed(server))
  })
})

const close = (server: Server) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

/** Returns when the connection of a response is closed, or all of it has been sent. */
const left = (response: ServerResponse) =>
  Effect.callback<void>((resume) => {
    if (response.destroyed) return resume(Effect.void)
    const onClose = () => resume(Effect.void)
    response.once("close", onClose)
    return Effect.sync(() => response.off("close", onClose))
  })

const stream = Effect.fnUntraced(function*(
  response: ServerResponse,
  reply: Exclude<Reply, { readonly _tag: "HttpError" }>,
  number: number
) {
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const { gate, text } of steps(reply, number)) {
    if (gate !== undefined) yield* gate
    yield* send(response, text)
  }
  switch (reply._tag) {
    case "Cut":
      response.destroy()
      return
    case "Silent":
      return yield* Effect.onInterrupt(Effect.never, () => Deferred.succeed(reply.aborted, undefined))
    default:
      response.end()
  }
})

/** Returns when the text has been given to the system; never where nobody is there to take it, see `left`. */
const send = (response: ServerResponse, text: string) =>
  Effect.callback<void>((resume) => {
    if (!response.destroyed) response.write(text, () => resume(Effect.void))
  })

const refuse = (response: ServerResponse, status: number, message: string) =>
  json(response, status, { error: { message } })

const json = (response: ServerResponse, status: number, body: object) => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
}

// -----------------------------------------------------------------------------
// reading requests
// -----------------------------------------------------------------------------

const decodeBody = Schema.decodeUnknownResult(Body)

const toRequest = (number: number, body: typeof Body.Type): ModelRequest => {
  const { input, model, tools = [] } = body
  const isUser = ({ role, type }: typeof Item.Type) => type === "message" && role === "user"
  const last = input.findLastIndex(isUser)
  return {
    number,
    model,
    text: textOf(input[last]?.content),
    messages: input.flatMap(({ content, role, type }) =>
      type === "message" && role !== undefined ? [{ role, text: textOf(content) }] : []
    ),
    outputs: input.slice(last + 1).flatMap(({ call_id, output }) =>
      output === undefined ? [] : [{ callId: call_id ?? "", text: outputText(output) }]
    ),
    tools: tools.flatMap(({ name, tools, type }) =>
      tools === undefined
        ? [{ name: name ?? type }]
        : tools.map((tool) => ({ name: tool.name, ...(name === undefined ? {} : { namespace: name }) }))
    )
  }
}

const textOf = (content: (typeof Item.Type)["content"]): string => {
  if (content === undefined || content === null) return ""
  return typeof content === "string" ? content : content.map(({ text = "" }) => text).join("")
}

const decodeContent = Schema.decodeUnknownResult(Schema.Array(Content))

const outputText = (output: unknown): string => {
  if (typeof output === "string") return output
  const content = decodeContent(output)
  return Result.isSuccess(content) ? textOf(content.success) : JSON.stringify(output)
}

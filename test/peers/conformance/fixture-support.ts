/**
 * What the tools of the fixture have in common: registering one, answering, asking the client in a session (a request to
 * it) and without one (a round trip through `inputRequests`), and state that a client cannot forge.
 */
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** What a tool does: arguments as the client sent them, and the server it is part of. */
export type Handler = (
  args: Record<string, unknown>,
  server: McpServer.McpServer["Service"]
) => Effect.Effect<
  McpSchema.CallToolResult | McpSchema.InputRequired,
  McpSchema.InternalError | McpSchema.InvalidParams,
  McpSchema.McpRequestContext
>

const noArguments: McpSchema.ToolJson = { type: "object", properties: {} }

/** Adds a tool to a server, or replaces the one with its name; either way the server says that its list changed. */
export const addTool = (
  server: McpServer.McpServer["Service"],
  name: string,
  description: string,
  handle: Handler,
  inputSchema: McpSchema.ToolJson = noArguments
): Effect.Effect<void> =>
  server.addTool({
    tool: new McpSchema.Tool({ name, description, inputSchema }),
    annotations: Context.empty(),
    handle: (args: Record<string, unknown>) => handle(args, server)
  })

/** Layer that registers a tool which says itself what its result looks like. */
export const tool = (
  name: string,
  description: string,
  handle: Handler,
  inputSchema?: McpSchema.ToolJson
): Layer.Layer<never, never, McpServer.McpServer> =>
  Layer.effectDiscard(
    Effect.flatMap(McpServer.McpServer, (server) => addTool(server, name, description, handle, inputSchema))
  )

/** A result with this content. */
export const content = (...blocks: ReadonlyArray<McpSchema.ContentBlock>): McpSchema.CallToolResult =>
  new McpSchema.CallToolResult({ content: blocks })

/** A result that is a text. */
export const text = (value: string): McpSchema.CallToolResult => content({ type: "text", text: value })

// -----------------------------------------------------------------------------
// asking the client
// -----------------------------------------------------------------------------

/** Sends the client a request and waits for its answer; only a session has a client that takes requests. */
export const askClient = <A>(
  ask: (
    client: McpSchema.McpReverseClient
  ) => Effect.Effect<A, McpSchema.McpReverseOperationError | McpSchema.McpReverseOperationUnsupported>,
  show: (answer: A) => string
): Effect.Effect<McpSchema.CallToolResult, McpSchema.InternalError> =>
  Effect.serviceOption(McpSchema.McpServerClient).pipe(
    Effect.flatMap(Option.match({
      onNone: () => Effect.fail(new McpSchema.InternalError({ message: "This tool needs a session" })),
      onSome: (session) =>
        Effect.scoped(Effect.flatMap(session.getClient, ask)).pipe(
          Effect.map((answer) => text(show(answer))),
          Effect.mapError((error) =>
            new McpSchema.InternalError({
              message: error.message === "" ? `refused: ${JSON.stringify(error)}` : error.message
            })
          )
        )
    }))
  )

const decodeForm = Schema.decodeUnknownEffect(McpSchema.ElicitRequestFormParams)

/** Asks the user for the values of a form, and shows what came back. */
export const elicit = (
  message: string,
  requestedSchema: object
): Effect.Effect<McpSchema.CallToolResult, McpSchema.InternalError> =>
  askClient(
    (client) =>
      Effect.flatMap(
        Effect.orDie(decodeForm({ mode: "form", message, requestedSchema })),
        (form) => client.elicit(form)
      ),
    (answer) =>
      `Elicitation completed: action=${answer.action}, content=${
        JSON.stringify(answer.action === "accept" ? answer.content : {})
      }`
  )

/** The form of one field that has to be filled in. */
export const form = (message: string, field: string, type: "string" | "boolean"): McpSchema.McpInputRequest => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { [field]: { type } }, required: [field] }
  }
})

/** A prompt for the client's model. */
export const sampling = (prompt: string, maxTokens: number): McpSchema.McpInputRequest => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: prompt } }], maxTokens }
})

export const roots: McpSchema.McpInputRequest = { method: "roots/list", params: {} }

const ANSWERS = {
  "elicitation/create": Schema.Struct({
    action: Schema.Literal("accept"),
    content: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Boolean, Schema.Finite]))
  }),
  "sampling/createMessage": Schema.Struct({
    role: McpSchema.Role,
    content: Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
  }),
  "roots/list": Schema.Struct({ roots: Schema.Array(Schema.Struct({ uri: Schema.String })) })
}

/** The answers to some requests, or nothing while one of them is missing or is not what was asked for. */
export const answersTo = (
  requests: Readonly<Record<string, McpSchema.McpInputRequest>>,
  { inputResponses }: McpSchema.McpRequestContext["Service"]
): Readonly<Record<string, McpSchema.McpInputResponse>> | undefined => {
  const answers: Record<string, McpSchema.McpInputResponse> = {}
  for (const [key, { method }] of Object.entries(requests)) {
    const answer = Schema.decodeUnknownResult(ANSWERS[method])(inputResponses?.[key])
    if (Result.isFailure(answer)) return undefined
    answers[key] = answer.success
  }
  return answers
}

/** What a tool of two rounds does: ask until every answer is there, then show them. */
export const roundTrip = (
  requests: Readonly<Record<string, McpSchema.McpInputRequest>>,
  show: (answers: Readonly<Record<string, McpSchema.McpInputResponse>>) => string
): Handler =>
() =>
  Effect.map(McpSchema.McpRequestContext, (context) => {
    const answers = answersTo(requests, context)
    return answers === undefined ? new McpSchema.InputRequired({ inputRequests: requests }) : text(show(answers))
  })

// -----------------------------------------------------------------------------
// state that travels through the client
// -----------------------------------------------------------------------------

const KEY = randomBytes(32)

const signature = (tool: string, body: string) => createHmac("sha256", KEY).update(`${tool}\n${body}`).digest()

/** State of a tool, signed, so that neither it nor the tool it belongs to can be changed on the way. */
export const seal = (tool: string, state: unknown): string => {
  const body = Buffer.from(JSON.stringify(state)).toString("base64url")
  return `${body}.${signature(tool, body).toString("base64url")}`
}

/** What {@link seal} was given; fails for everything that this process has not sealed for the same tool. */
export const unseal = (tool: string, sealed: string): Effect.Effect<unknown, McpSchema.InvalidParams> => {
  const [body = "", signed = "", ...rest] = sealed.split(".")
  const given = Buffer.from(signed, "base64url")
  const expected = signature(tool, body)
  // base64url has several spellings of the same bytes
  const isOurs = rest.length === 0 && given.toString("base64url") === signed && given.length === expected.length &&
    timingSafeEqual(given, expected)
  return isOurs
    ? Effect.sync(() => JSON.parse(Buffer.from(body, "base64url").toString()))
    : Effect.fail(new McpSchema.InvalidParams({ message: "requestState does not come from this tool" }))
}

/** As {@link roundTrip}, with state that has to come back unchanged together with the answers. */
export const sealedRoundTrip = (
  name: string,
  requests: Readonly<Record<string, McpSchema.McpInputRequest>>,
  show: (answers: Readonly<Record<string, McpSchema.McpInputResponse>>) => string
): Handler =>
() =>
  Effect.gen(function*() {
    const context = yield* McpSchema.McpRequestContext
    const state = context.requestState === undefined ? undefined : yield* unseal(name, context.requestState)
    const answers = state === undefined ? undefined : answersTo(requests, context)
    return answers === undefined
      ? new McpSchema.InputRequired({ inputRequests: requests, requestState: seal(name, { asked: true }) })
      : text(show(answers))
  })

// -----------------------------------------------------------------------------
// while a request runs
// -----------------------------------------------------------------------------

/** The token under which the client wants to hear of progress. */
export const progressToken: Effect.Effect<string | number | undefined, never, McpSchema.McpRequestContext> = Effect.map(
  McpSchema.McpRequestContext,
  ({ requestMetadata }) => {
    const token = Predicate.isObject(requestMetadata) ? requestMetadata.progressToken : undefined
    return typeof token === "string" || typeof token === "number" ? token : undefined
  }
)

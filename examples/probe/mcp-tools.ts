/**
 * What the MCP probe offers: a tool for each behaviour that a client may want to see, two resources and a prompt.
 *
 * Tools that return data come from a Toolkit. The others say themselves what their result looks like: a plain text, or a
 * question to the client, which is a result where there is no session.
 */
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Mcp from "../../src/Mcp.ts"

const ABOUT = "probe://about"
const COUNTER = "probe://counter"

const counter = { touched: 0, interrupted: 0 }

// -----------------------------------------------------------------------------
// tools of the toolkit
// -----------------------------------------------------------------------------

type Hints = "reads" | "changes"

const hints = (title: string, does: Hints) => ({
  title,
  readOnlyHint: does === "reads",
  destructiveHint: false,
  idempotentHint: does === "reads",
  openWorldHint: false
})

const annotated = (title: string, does: Hints) => {
  const { destructiveHint, idempotentHint, openWorldHint, readOnlyHint } = hints(title, does)
  return Context.empty().pipe(
    Context.add(Tool.Title, title),
    Context.add(Tool.Readonly, readOnlyHint),
    Context.add(Tool.Destructive, destructiveHint),
    Context.add(Tool.Idempotent, idempotentHint),
    Context.add(Tool.OpenWorld, openWorldHint),
    Context.add(Tool.Strict, true)
  )
}

const Text = Schema.Struct({ text: Schema.String })
const WholeNumber = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Tools = Toolkit.make(
  Tool.make("add", {
    description: "Add two numbers",
    parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    success: Schema.Struct({ sum: Schema.Finite })
  }).annotateMerge(annotated("Add", "reads")),
  Tool.make("sleep", {
    description: `Wait, and report progress once before; ${COUNTER} counts the calls that were interrupted`,
    parameters: Schema.Struct({ ms: WholeNumber.annotate({ description: "Milliseconds" }) }),
    success: Schema.Struct({ slept: Schema.Finite })
  }).annotateMerge(annotated("Sleep", "changes")),
  Tool.make("count", {
    description: "Count from 1, and report each number as progress",
    parameters: Schema.Struct({ to: WholeNumber }),
    success: Schema.Struct({ counted: Schema.Finite })
  }).annotateMerge(annotated("Count", "reads")),
  Tool.make("print", {
    description: "Print a text with console.log and on standard output, where it must not arrive",
    parameters: Text,
    success: Schema.Struct({ printed: Schema.Finite })
  }).annotateMerge(annotated("Print", "reads")),
  Tool.make("crash", { description: "Die with a secret in the cause", success: Schema.Struct({}) })
    .annotateMerge(annotated("Crash", "reads")),
  Tool.make("log", {
    description: "Send the client a log message",
    parameters: Schema.Struct({ text: Schema.String, level: McpSchema.LoggingLevel }),
    success: Schema.Struct({ level: McpSchema.LoggingLevel })
  }).annotateMerge(annotated("Log", "reads")),
  Tool.make("touch", {
    description: `Change ${COUNTER} and notify of it, or only notify that a list has changed`,
    parameters: Schema.Struct({
      list: Schema.optionalKey(Schema.Literals(["tools", "resources", "prompts"]))
    }),
    success: Schema.Struct({ touched: Schema.Finite })
  }).annotateMerge(annotated("Touch", "changes"))
)

const handlers = Tools.toLayer(Effect.map(McpServer.McpServer, (server) => {
  const progress = Effect.provideService(Mcp.progress, McpServer.McpServer, server)
  return Tools.of({
    add: ({ a, b }) => Effect.succeed({ sum: a + b }),
    sleep: ({ ms }) =>
      Effect.gen(function*() {
        const { report } = yield* progress
        yield* report(0, { total: ms, message: "asleep" })
        yield* Effect.sleep(ms)
        return { slept: ms }
      }).pipe(Effect.onInterrupt(() =>
        Effect.sync(() => {
          counter.interrupted++
        })
      )),
    count: ({ to }) =>
      Effect.gen(function*() {
        const { report } = yield* progress
        for (let step = 1; step <= to; step++) yield* report(step, { total: to, message: `${step} of ${to}` })
        return { counted: to }
      }),
    print: ({ text }) =>
      Effect.sync(() => {
        console.log(text)
        process.stdout.write(`${text}\n`)
        return { printed: 2 }
      }),
    crash: () => Effect.die(new Error("the secret is 42")),
    log: ({ level, text }) =>
      Effect.as(server.notifications["notifications/message"]({ level, logger: "probe", data: text }), { level }),
    touch: ({ list }) =>
      Effect.gen(function*() {
        if (list !== undefined) {
          yield* server.notifications[`notifications/${list}/list_changed`]({})
        } else {
          counter.touched++
          yield* server.notifications["notifications/resources/updated"]({ uri: COUNTER })
        }
        return { touched: counter.touched }
      })
  })
}))

// -----------------------------------------------------------------------------
// questions to the client
// -----------------------------------------------------------------------------

const textResult = (text: string) => new McpSchema.CallToolResult({ content: [{ type: "text", text }] })

/** A question to the client: how it is asked on the wire, how in a session, and what an answer looks like. */
interface Question<A> {
  readonly request: McpSchema.McpInputRequest
  readonly ask: (
    client: McpSchema.McpReverseClient
  ) => Effect.Effect<unknown, McpSchema.McpReverseOperationError | McpSchema.McpReverseOperationUnsupported>
  readonly answer: Schema.Decoder<A>
  readonly show: (answer: A) => string
}

/**
 * Asks the client of a session by a request, which it answers. Without a session the question is the result: the client
 * calls again with the answer.
 */
const question = <A>({ answer, ask, request, show }: Question<A>) =>
  Effect.gen(function*() {
    const session = yield* Effect.serviceOption(McpSchema.McpServerClient)
    const context = yield* McpSchema.McpRequestContext
    const reply = Option.isNone(session)
      ? context.inputResponses?.["answer"]
      : yield* Effect.scoped(Effect.flatMap(session.value.getClient, ask)).pipe(
        Effect.mapError((error) =>
          new McpSchema.InternalError({
            message: error._tag === "McpReverseOperationUnsupported" ? error.reason : "The client did not answer"
          })
        )
      )
    const decoded = Schema.decodeUnknownOption(answer)(reply)
    if (Option.isSome(decoded)) {
      return textResult(show(decoded.value))
    }
    return Option.isNone(session)
      // what is missing, or is not what was asked for, is asked for again
      ? new McpSchema.InputRequired({ inputRequests: { answer: request } })
      : yield* new McpSchema.InternalError({ message: "The client's answer is not what was asked for" })
  })

const Answered = Schema.Union([
  Schema.Struct({ action: Schema.Literal("accept"), content: Schema.Struct({ answer: Schema.String }) }),
  Schema.Struct({ action: Schema.Literals(["decline", "cancel"]) })
])

const decodeForm = Schema.decodeUnknownEffect(McpSchema.ElicitRequestFormParams)

const elicitation = (message: string) => {
  const params = {
    mode: "form",
    message,
    requestedSchema: {
      type: "object",
      properties: { answer: { type: "string", title: "Answer" } },
      required: ["answer"]
    }
  }
  return question({
    request: { method: "elicitation/create", params },
    ask: (client) => Effect.flatMap(Effect.orDie(decodeForm(params)), (form) => client.elicit(form)),
    answer: Answered,
    show: (answer) => answer.action === "accept" ? `The user said: ${answer.content.answer}` : "The user said nothing"
  })
}

const Sampled = Schema.Struct({ content: Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }) })

const sampling = (text: string) => {
  const params = { messages: [{ role: "user" as const, content: { type: "text" as const, text } }], maxTokens: 100 }
  return question({
    request: { method: "sampling/createMessage", params },
    ask: (client) => client.createMessage(params),
    answer: Sampled,
    show: ({ content }) => `The model said: ${content.text}`
  })
}

// -----------------------------------------------------------------------------
// tools that say themselves what their result looks like
// -----------------------------------------------------------------------------

/** Registers a tool with one text as its only parameter. */
const textTool = (
  name: string,
  options: {
    readonly title: string
    readonly description: string
    readonly parameter: string
    readonly openWorld: boolean
  },
  handle: (text: string) => Effect.Effect<
    McpSchema.CallToolResult | McpSchema.InputRequired,
    McpSchema.InternalError,
    McpSchema.McpRequestContext
  >
) => {
  const { description, openWorld, parameter, title } = options
  const decode = Schema.decodeUnknownEffect(Schema.Struct({ [parameter]: Schema.String }))
  return Layer.effectDiscard(Effect.flatMap(McpServer.McpServer, (server) =>
    server.addTool({
      tool: new McpSchema.Tool({
        name,
        title,
        description,
        inputSchema: { type: "object", properties: { [parameter]: { type: "string" } }, required: [parameter] },
        annotations: { ...hints(title, "reads"), openWorldHint: openWorld }
      }),
      annotations: Context.empty(),
      handle: (args: unknown) =>
        decode(args).pipe(
          Effect.mapError((error) => new McpSchema.InvalidParams({ message: error.message })),
          Effect.flatMap(({ [parameter]: text = "" }) => handle(text))
        )
    })))
}

const texts = Layer.mergeAll(
  textTool(
    "echo",
    { title: "Echo", description: "Return a text as it is", parameter: "text", openWorld: false },
    (text) => Effect.succeed(textResult(text))
  ),
  textTool(
    "ask",
    { title: "Ask", description: "Ask the user a question", parameter: "question", openWorld: true },
    elicitation
  ),
  textTool(
    "sample",
    { title: "Sample", description: "Ask the client's model", parameter: "text", openWorld: true },
    sampling
  )
)

// -----------------------------------------------------------------------------
// resources and a prompt
// -----------------------------------------------------------------------------

const about = McpServer.resource({
  uri: ABOUT,
  name: "about",
  description: "What this server is",
  mimeType: "text/plain",
  content: Effect.succeed({
    contents: [{ uri: ABOUT, mimeType: "text/plain", text: "A server to test MCP clients against." }]
  })
})

const counts = McpServer.resource({
  uri: COUNTER,
  name: "counter",
  description: "How often touch was called, and how many calls of sleep were interrupted",
  mimeType: "application/json",
  content: Effect.sync(() => ({
    contents: [{ uri: COUNTER, mimeType: "application/json", text: JSON.stringify(counter) }]
  }))
})

const TOPICS = ["frames", "framing", "pipes"]

const explain = McpServer.prompt({
  name: "explain",
  title: "Explain",
  description: "Ask for an explanation",
  parameters: { topic: Schema.String.annotate({ description: "What to explain" }) },
  completion: { topic: (input) => Effect.succeed(TOPICS.filter((topic) => topic.startsWith(input))) },
  content: ({ topic }) => Effect.succeed(`Explain ${topic} in one sentence.`)
})

/** Registers everything. */
export const registrations = Layer.mergeAll(
  McpServer.toolkit(Tools).pipe(Layer.provide(handlers)),
  texts,
  about,
  counts,
  explain
)

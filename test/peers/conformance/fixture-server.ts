/**
 * An MCP server with everything the official conformance suite asks for: its tools, resources and prompts, by name.
 *
 *     node test/peers/conformance/fixture-server.ts
 *
 * Tools that return data come from a Toolkit; those that say themselves what their result looks like are registered one
 * by one. The first tool takes no arguments, because the suite calls the first one it finds without any.
 */
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import * as Mcp from "../../../src/Mcp.ts"
import * as StdioRuntime from "../../../src/StdioRuntime.ts"
import {
  addTool,
  answersTo,
  askClient,
  content,
  elicit,
  form,
  progressToken,
  roots,
  roundTrip,
  sampling,
  seal,
  sealedRoundTrip,
  text,
  tool,
  unseal
} from "./fixture-support.ts"

/** One red pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64"
)

/** A WAV file of eight silent samples. */
const WAV = Buffer.from("UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==", "base64")

const PAUSE = "50 millis"

const string: { readonly type: "string" } = { type: "string" }

// -----------------------------------------------------------------------------
// tools with plain content
// -----------------------------------------------------------------------------

const contents = Layer.mergeAll(
  tool("test_simple_text", "Return a text", () => Effect.succeed(text("This is a simple text response for testing."))),
  tool(
    "test_image_content",
    "Return an image",
    () => Effect.succeed(content({ type: "image", data: PNG, mimeType: "image/png" }))
  ),
  tool(
    "test_audio_content",
    "Return a sound",
    () => Effect.succeed(content({ type: "audio", data: WAV, mimeType: "audio/wav" }))
  ),
  tool("test_embedded_resource", "Return a resource", () =>
    Effect.succeed(content({
      type: "resource",
      resource: {
        uri: "test://embedded-resource",
        mimeType: "text/plain",
        text: "This is an embedded resource content."
      }
    }))),
  tool("test_multiple_content_types", "Return a text, an image and a resource", () =>
    Effect.succeed(content(
      { type: "text", text: "Multiple content types test:" },
      { type: "image", data: PNG, mimeType: "image/png" },
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: JSON.stringify({ test: "data", value: 123 })
        }
      }
    )))
)

// -----------------------------------------------------------------------------
// tools of a toolkit: data in, data out
// -----------------------------------------------------------------------------

class AlwaysFails extends Schema.TaggedError<AlwaysFails>()("AlwaysFails", {}) {
  override get message(): string {
    return "This tool intentionally returns an error for testing"
  }
}

const Data = Toolkit.make(
  Tool.make("test_error_handling", { description: "Fail, always", success: Schema.String, failure: AlwaysFails }),
  // raw JSON Schema reaches the client as it is
  Tool.dynamic("json_schema_2020_12_tool", {
    description: "Tool with JSON Schema 2020-12 features",
    parameters: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: { $anchor: "addressDef", type: "object", properties: { street: string, city: string } }
      },
      properties: {
        name: string,
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: string,
        email: string
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false
    },
    success: Schema.String
  }),
  Tool.dynamic("test_header_parameter", {
    description: "Return a parameter that HTTP clients repeat in the header Mcp-Param-Region",
    parameters: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    success: Schema.String
  })
)

const data = McpServer.toolkit(Data).pipe(
  Layer.provide(Data.toLayer({
    test_error_handling: () => Effect.fail(new AlwaysFails()),
    json_schema_2020_12_tool: (args) => Effect.succeed(JSON.stringify(args)),
    test_header_parameter: (args) => Effect.succeed(JSON.stringify(args))
  }))
)

// -----------------------------------------------------------------------------
// tools that say something while they run
// -----------------------------------------------------------------------------

const log = (server: McpServer.McpServer["Service"], message: string) =>
  server.notifications["notifications/message"]({ level: "info", logger: "fixture", data: message })

const running = Layer.mergeAll(
  tool("test_tool_with_logging", "Log three messages", (_args, server) =>
    Effect.gen(function*() {
      yield* log(server, "Tool execution started")
      yield* Effect.sleep(PAUSE)
      yield* log(server, "Tool processing data")
      yield* Effect.sleep(PAUSE)
      yield* log(server, "Tool execution completed")
      return text("Three messages were logged.")
    })),
  tool(
    "test_logging_tool",
    "Log one message",
    (_args, server) => Effect.as(log(server, "One message"), text("One message was logged."))
  ),
  tool("test_tool_with_progress", "Report progress: 0, 50 and 100 of 100", (_args, server) =>
    Effect.gen(function*() {
      const token = yield* progressToken
      for (const progress of [0, 50, 100]) {
        if (progress > 0) yield* Effect.sleep(PAUSE)
        if (token === undefined) continue
        yield* server.notifications["notifications/progress"]({ progressToken: token, progress, total: 100 })
      }
      return text(token === undefined ? "Nobody asked for progress." : "Progress was reported.")
    })),
  tool(
    "test_trigger_tool_change",
    "Change the list of tools",
    (_args, server) => Effect.as(changeTool(server), text("The list of tools has changed."))
  ),
  tool(
    "test_trigger_prompt_change",
    "Change the list of prompts",
    (_args, server) => Effect.as(changePrompt(server), text("The list of prompts has changed."))
  )
)

let changes = 0

const changeTool = (server: McpServer.McpServer["Service"]) =>
  Effect.suspend(() =>
    addTool(
      server,
      "test_changing_tool",
      `Tool that changed ${++changes} times`,
      () => Effect.succeed(text("Still here."))
    )
  )

const changePrompt = (server: McpServer.McpServer["Service"]) =>
  Effect.suspend(() =>
    server.addPrompt({
      prompt: new McpSchema.Prompt({
        name: "test_changing_prompt",
        description: `Prompt that changed ${++changes} times`,
        arguments: []
      }),
      annotations: Context.empty(),
      completions: {},
      handle: () =>
        Effect.succeed(
          new McpSchema.GetPromptResult({
            messages: [{ role: "user", content: { type: "text", text: "Still here." } }]
          })
        )
    })
  )

const changing = Layer.effectDiscard(
  Effect.flatMap(McpServer.McpServer, (server) => Effect.andThen(changeTool(server), changePrompt(server)))
)

// -----------------------------------------------------------------------------
// tools that ask the client of a session
// -----------------------------------------------------------------------------

const sessions = Layer.mergeAll(
  tool(
    "test_sampling",
    "Ask the client's model",
    ({ prompt }) =>
      askClient(
        (client) =>
          client.createMessage({
            messages: [{ role: "user", content: { type: "text", text: String(prompt) } }],
            maxTokens: 100
          }),
        (answer) => `LLM response: ${JSON.stringify(answer.content)}`
      ),
    { type: "object", properties: { prompt: string }, required: ["prompt"] }
  ),
  tool(
    "test_elicitation",
    "Ask the user for a name and an address",
    ({ message }) =>
      elicit(String(message), {
        type: "object",
        properties: {
          username: { type: "string", description: "User's response" },
          email: { type: "string", description: "User's email address" }
        },
        required: ["username", "email"]
      }),
    { type: "object", properties: { message: string }, required: ["message"] }
  ),
  tool(
    "test_elicitation_sep1034_defaults",
    "Ask with a default for each type",
    () =>
      elicit("Please check these values", {
        type: "object",
        properties: {
          name: { type: "string", default: "John Doe" },
          age: { type: "integer", default: 30 },
          score: { type: "number", default: 95.5 },
          status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
          verified: { type: "boolean", default: true }
        },
        required: []
      })
  ),
  tool("test_elicitation_sep1330_enums", "Ask with each kind of choice", () =>
    elicit("Please choose", {
      type: "object",
      properties: {
        untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
        titledSingle: { type: "string", oneOf: titled("Option") },
        legacyEnum: {
          type: "string",
          enum: ["opt1", "opt2", "opt3"],
          enumNames: ["Option One", "Option Two", "Option Three"]
        },
        untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
        titledMulti: { type: "array", items: { anyOf: titled("Choice") } }
      },
      required: []
    }))
)

const titled = (noun: string) => [
  { const: "value1", title: `First ${noun}` },
  { const: "value2", title: `Second ${noun}` },
  { const: "value3", title: `Third ${noun}` }
]

// -----------------------------------------------------------------------------
// tools and a prompt that ask through the result
// -----------------------------------------------------------------------------

const USER_NAME = { user_name: form("What is your name?", "name", "string") }
const CONFIRM = { confirm: form("Please confirm", "ok", "boolean") }
const GREETING = {
  ...USER_NAME,
  greeting: sampling("Generate a greeting", 50),
  client_roots: roots
}
const STEPS = [
  { step1: form("Step 1: What is your name?", "name", "string") },
  { step2: form("Step 2: What is your favorite color?", "color", "string") }
]

const MULTI_ROUND = "test_input_required_result_multi_round"
const decodeRound = Schema.decodeUnknownOption(Schema.Struct({ round: Schema.Literals([1, 2]) }))

const roundTrips = Layer.mergeAll(
  tool(
    "test_input_required_result_elicitation",
    "Ask the user for a name, in two rounds",
    roundTrip(USER_NAME, (answers) => `Hello: ${JSON.stringify(answers.user_name)}`)
  ),
  tool(
    "test_input_required_result_sampling",
    "Ask the client's model, in two rounds",
    roundTrip(
      { capital_question: sampling("What is the capital of France?", 100) },
      (answers) => `Answer: ${JSON.stringify(answers.capital_question)}`
    )
  ),
  tool(
    "test_input_required_result_list_roots",
    "Ask for the client's roots, in two rounds",
    roundTrip({ client_roots: roots }, (answers) => `Roots: ${JSON.stringify(answers.client_roots)}`)
  ),
  tool(
    "test_input_required_result_request_state",
    "Ask with state that has to come back",
    sealedRoundTrip("test_input_required_result_request_state", CONFIRM, () => "state-ok")
  ),
  tool(
    "test_input_required_result_tampered_state",
    "Ask with state that must not be changed",
    sealedRoundTrip("test_input_required_result_tampered_state", CONFIRM, () => "state-ok")
  ),
  tool(
    "test_input_required_result_multiple_inputs",
    "Ask the user, the model and for roots at once",
    sealedRoundTrip("test_input_required_result_multiple_inputs", GREETING, (answers) => JSON.stringify(answers))
  ),
  tool(MULTI_ROUND, "Ask twice, in three rounds", () =>
    Effect.gen(function*() {
      const context = yield* McpSchema.McpRequestContext
      const state = context.requestState === undefined ? undefined : yield* unseal(MULTI_ROUND, context.requestState)
      const asked = decodeRound(state)
      // the round whose answers are there; state of an earlier round asks for that round again
      const done = asked._tag === "Some" && answersTo(STEPS[asked.value.round - 1]!, context) !== undefined
        ? asked.value.round
        : asked._tag === "Some"
        ? asked.value.round - 1
        : 0
      const next = STEPS[done]
      return next === undefined
        ? text("Both steps are done.")
        : new McpSchema.InputRequired({ inputRequests: next, requestState: seal(MULTI_ROUND, { round: done + 1 }) })
    })),
  tool("test_input_required_result_capabilities", "Ask whoever the client can ask", () =>
    Effect.gen(function*() {
      const context = yield* McpSchema.McpRequestContext
      const { elicitation, sampling: model } = context.clientCapabilities
      const requests: Record<string, McpSchema.McpInputRequest> = {
        ...(elicitation === undefined ? {} : USER_NAME),
        ...(model === undefined ? {} : { greeting: sampling("Generate a greeting", 50) })
      }
      const answers = answersTo(requests, context)
      return answers === undefined
        ? new McpSchema.InputRequired({ inputRequests: requests })
        : text(JSON.stringify(answers))
    })),
  tool(
    "test_missing_capability",
    "Ask the client's model, whatever the client can",
    roundTrip({ question: sampling("Anybody there?", 10) }, (answers) => JSON.stringify(answers))
  ),
  tool(
    "test_streaming_elicitation",
    "Ask the user for a name, which must not become a request on the stream",
    roundTrip(USER_NAME, (answers) => JSON.stringify(answers))
  ),
  Layer.effectDiscard(
    Effect.flatMap(McpServer.McpServer, (server) =>
      server.addPrompt({
        prompt: new McpSchema.Prompt({
          name: "test_input_required_result_prompt",
          description: "Prompt that asks the user for its context, in two rounds",
          arguments: []
        }),
        annotations: Context.empty(),
        completions: {},
        handle: () =>
          Effect.map(McpSchema.McpRequestContext, (context) => {
            const requests = { user_context: form("What context should the prompt use?", "context", "string") }
            const answers = answersTo(requests, context)
            return answers === undefined
              ? new McpSchema.InputRequired({ inputRequests: requests })
              : new McpSchema.GetPromptResult({
                messages: [{ role: "user", content: { type: "text", text: JSON.stringify(answers.user_context) } }]
              })
          })
      }))
  )
)

// -----------------------------------------------------------------------------
// resources and prompts
// -----------------------------------------------------------------------------

const textResource = (uri: string, mimeType: string, value: string) =>
  Effect.succeed({ contents: [{ uri, mimeType, text: value }] })

const resources = Layer.mergeAll(
  McpServer.resource({
    uri: "test://static-text",
    name: "static-text",
    description: "A text",
    mimeType: "text/plain",
    content: textResource("test://static-text", "text/plain", "This is the content of the static text resource.")
  }),
  McpServer.resource({
    uri: "test://static-binary",
    name: "static-binary",
    description: "An image",
    mimeType: "image/png",
    content: Effect.succeed({ contents: [{ uri: "test://static-binary", mimeType: "image/png", blob: PNG }] })
  }),
  McpServer.resource({
    uri: "test://watched-resource",
    name: "watched-resource",
    description: "A text that can be watched",
    mimeType: "text/plain",
    content: textResource("test://watched-resource", "text/plain", "Nothing has changed yet.")
  }),
  McpServer.resource`test://template/${McpSchema.param("id", Schema.String)}/data`({
    name: "template",
    description: "Data of an id",
    mimeType: "application/json",
    content: (uri, id) =>
      textResource(
        uri,
        "application/json",
        JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
      )
  })
)

const user = (block: McpSchema.ContentBlock) => ({ role: "user" as const, content: block })

const prompts = Layer.mergeAll(
  McpServer.prompt({
    name: "test_simple_prompt",
    description: "A prompt without arguments",
    content: () => Effect.succeed("This is a simple prompt for testing.")
  }),
  McpServer.prompt({
    name: "test_prompt_with_arguments",
    description: "A prompt with two arguments",
    parameters: { arg1: Schema.String, arg2: Schema.String },
    completion: {
      arg1: (input) => Effect.succeed(["paris", "park", "party", "test"].filter((value) => value.startsWith(input)))
    },
    content: ({ arg1, arg2 }) => Effect.succeed(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)
  }),
  McpServer.prompt({
    name: "test_prompt_with_embedded_resource",
    description: "A prompt with a resource in it",
    parameters: { resourceUri: Schema.String },
    content: ({ resourceUri }) =>
      Effect.succeed([
        user({
          type: "resource",
          resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." }
        }),
        user({ type: "text", text: "Please process the embedded resource above." })
      ])
  }),
  McpServer.prompt({
    name: "test_prompt_with_image",
    description: "A prompt with an image in it",
    content: () =>
      Effect.succeed([
        user({ type: "image", data: PNG, mimeType: "image/png" }),
        user({ type: "text", text: "Please analyze the image above." })
      ])
  })
)

// -----------------------------------------------------------------------------

StdioRuntime.runMain(
  Mcp.run({
    name: "effect-stdio-conformance",
    version: "1.0.0",
    instructions: "Made for the conformance suite.",
    registrations: Layer.mergeAll(contents, data, running, changing, sessions, roundTrips, resources, prompts)
  }),
  { layer: Mcp.layerStdio() }
)

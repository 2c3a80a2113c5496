// A server of tmcp, an implementation of its own, which serves each request in the era it belongs to.
import { ZodJsonSchemaAdapter } from "@tmcp/adapter-zod"
import { StdioTransport } from "@tmcp/transport-stdio"
import { setTimeout } from "node:timers/promises"
import { McpServer } from "tmcp"
import { z } from "zod"

const text = (text) => ({ content: [{ type: "text", text }] })

const server = new McpServer({ name: "tmcp", version: "1.20.0", description: "" }, {
  adapter: new ZodJsonSchemaAdapter(),
  capabilities: { tools: { listChanged: true }, logging: {} }
})
server.tool(
  {
    name: "add",
    description: "",
    schema: z.object({ a: z.number(), b: z.number() }),
    outputSchema: z.object({ sum: z.number() })
  },
  ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } })
)
server.tool({ name: "slow", description: "" }, async () => {
  for (let step = 1; step <= 20; step++) {
    server.progress(step, 20)
    await setTimeout(50)
  }
  return text("slow is done")
})
server.tool(
  { name: "ask", description: "", schema: z.object({ question: z.string() }), replayable: true },
  async ({ question }) => {
    const { action, content } = await server.elicitation(question, z.object({ answer: z.string() }))
    return text(action === "accept" ? `The user said: ${content.answer}` : "The user said nothing")
  }
)
server.tool(
  { name: "sample", description: "", schema: z.object({ text: z.string() }), replayable: true },
  async (args) => {
    const messages = [{ role: "user", content: { type: "text", text: args.text } }]
    const { content } = await server.message({ messages, maxTokens: 10 })
    return text(`The model said: ${content.text}`)
  }
)
server.tool({ name: "change", description: "" }, () => {
  server.tool({ name: "new", description: "" }, () => text("new"))
  return text("changed")
})

new StdioTransport(server).listen()

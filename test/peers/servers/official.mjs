// A server of the official SDK, version 2: the same tools in both eras. `slow` reports twenty steps of 50 ms, and says on
// standard error when it is aborted.
import { acceptedContent, inputRequired, inputResponse, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { setTimeout } from "node:timers/promises"
import { z } from "zod"

const text = (text) => ({ content: [{ type: "text", text }] })
const Answer = z.object({ answer: z.string() })

serveStdio(() => {
  const server = new McpServer({ name: "official", version: "2.4.0" }, {
    capabilities: { tools: { listChanged: true }, logging: {} }
  })
  server.registerTool(
    "add",
    { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } })
  )
  server.registerTool("slow", { inputSchema: z.object({}) }, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken
    for (let progress = 1; progress <= 20 && !ctx.mcpReq.signal.aborted; progress++) {
      if (progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 20 } })
      }
      await setTimeout(50)
    }
    if (ctx.mcpReq.signal.aborted) process.stderr.write("aborted\n")
    return text("slow is done")
  })
  server.registerTool("ask", { inputSchema: z.object({ question: z.string() }) }, ({ question }, ctx) => {
    const { inputResponses } = ctx.mcpReq
    const accepted = acceptedContent(inputResponses, "answer", Answer)
    if (accepted !== undefined) return text(`The user said: ${accepted.answer}`)
    if (inputResponses?.answer !== undefined) return text("The user said nothing")
    return inputRequired({
      inputRequests: { answer: inputRequired.elicit({ message: question, requestedSchema: Answer }) }
    })
  })
  server.registerTool("sample", { inputSchema: z.object({ text: z.string() }) }, (args, ctx) => {
    const response = inputResponse(ctx.mcpReq.inputResponses, "sample")
    if (response.kind === "sampling") return text(`The model said: ${response.result.content.text}`)
    const messages = [{ role: "user", content: { type: "text", text: args.text } }]
    return inputRequired({ inputRequests: { sample: inputRequired.createMessage({ messages, maxTokens: 10 }) } })
  })
  server.registerTool("change", { inputSchema: z.object({}) }, async (_, ctx) => {
    await ctx.mcpReq.log("warning", "the tools change")
    server.registerTool("new", { inputSchema: z.object({}) }, () => text("new"))
    return text("changed")
  })
  return server
})

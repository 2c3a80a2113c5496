/**
 * Replies as the events of the Responses API, written as server-sent events.
 */
import type * as Effect from "effect/Effect"
import type { Part, Reply } from "./reply.ts"
import { words } from "./reply.ts"

/** Text to send, once its gate is open. */
export interface Step {
  readonly text: string
  readonly gate?: Effect.Effect<void> | undefined
}

/** What every complete answer costs. */
export const USAGE = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 5 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 28
}

/** The events of a reply that is a stream. `number` is that of the request and keeps the ids apart. */
export function* steps(
  reply: Exclude<Reply, { readonly _tag: "HttpError" }>,
  number: number
): Generator<Step> {
  const response = { id: `response_${number}` }
  yield event("response.created", { response })
  switch (reply._tag) {
    case "Complete":
      for (const [index, part] of reply.parts.entries()) yield* partSteps(part, `${number}_${index}`, index)
      return yield event("response.completed", { response: { ...response, usage: USAGE } })
    case "Failed":
      return yield event("response.failed", {
        response: { ...response, error: { code: reply.code, message: reply.message } }
      })
    case "Cut":
      return yield* beginning(reply.deltas, `${number}_0`, 0, undefined)
    case "Silent":
      return
  }
}

const partSteps = (part: Part, id: string, index: number): Iterable<Step> => {
  switch (part._tag) {
    case "Message":
      return message(part, id, index)
    case "Reasoning":
      return reasoning(part, id, index)
    case "FunctionCall": {
      const { arguments: args, name, namespace } = part
      const of = { type: "function_call", name, ...(namespace === undefined ? {} : { namespace }) }
      return item({ ...of, id: `function_${id}`, call_id: `call_${id}`, arguments: JSON.stringify(args) }, index)
    }
    case "CustomToolCall": {
      const { input, name } = part
      return item({ type: "custom_tool_call", id: `custom_${id}`, call_id: `call_${id}`, name, input }, index)
    }
  }
}

const beginning = function*(
  deltas: ReadonlyArray<string>,
  id: string,
  index: number,
  gate: Effect.Effect<void> | undefined
): Generator<Step> {
  yield added({ type: "message", role: "assistant", id: `message_${id}`, content: [] }, index)
  const place = { item_id: `message_${id}`, output_index: index, content_index: 0 }
  for (const delta of deltas) yield { ...event("response.output_text.delta", { ...place, delta }), gate }
}

const message = function*(
  { deltas, gate }: Extract<Part, { readonly _tag: "Message" }>,
  id: string,
  index: number
): Generator<Step> {
  yield* beginning(deltas, id, index, gate)
  const content = [{ type: "output_text", text: deltas.join("") }]
  yield done({ type: "message", role: "assistant", id: `message_${id}`, content }, index)
}

const reasoning = function*(
  { raw, summary }: Extract<Part, { readonly _tag: "Reasoning" }>,
  id: string,
  index: number
): Generator<Step> {
  const of = { type: "reasoning", id: `reasoning_${id}` }
  const place = { item_id: of.id, output_index: index }
  yield added({ ...of, summary: [] }, index)
  for (const [at, text] of summary.entries()) {
    yield event("response.reasoning_summary_part.added", { ...place, summary_index: at })
    for (const delta of words(text)) {
      yield event("response.reasoning_summary_text.delta", { ...place, summary_index: at, delta })
    }
  }
  for (const delta of words(raw ?? "")) {
    yield event("response.reasoning_text.delta", { ...place, content_index: 0, delta })
  }
  yield done({
    ...of,
    summary: summary.map((text) => ({ type: "summary_text", text })),
    ...(raw === undefined ? {} : { content: [{ type: "reasoning_text", text: raw }] })
  }, index)
}

/** An item that comes in one piece. */
const item = (value: object, index: number): ReadonlyArray<Step> => [added(value, index), done(value, index)]

const added = (item: object, index: number): Step => event("response.output_item.added", { output_index: index, item })

const done = (item: object, index: number): Step => event("response.output_item.done", { output_index: index, item })

const event = (type: string, members: object): Step => ({
  text: `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
})

/**
 * What a model may answer, as data: a scenario chooses one of these for each request.
 */
import * as Data from "effect/Data"
import type * as Deferred from "effect/Deferred"
import type * as Effect from "effect/Effect"

/** A piece of an answer that is given to its end. */
export type Part = Data.TaggedEnum<{
  /** Text, delta by delta. Each delta waits for `gate`: a latch lets all of them go, a queue one after the other. */
  readonly Message: { readonly deltas: ReadonlyArray<string>; readonly gate?: Effect.Effect<void> }
  /** Thoughts: the parts of their summary and, where the model shows it, their text. */
  readonly Reasoning: { readonly summary: ReadonlyArray<string>; readonly raw?: string }
  /** A call of a tool; those of an MCP server are in the namespace `mcp__` and its name. */
  readonly FunctionCall: { readonly name: string; readonly arguments: object; readonly namespace?: string }
  /** A call of a tool that takes text and not JSON, such as `apply_patch`. */
  readonly CustomToolCall: { readonly name: string; readonly input: string }
}>
export const Part = Data.taggedEnum<Part>()

/** The answer to one request. */
export type Reply = Data.TaggedEnum<{
  /** All parts, and then the usage. */
  readonly Complete: { readonly parts: ReadonlyArray<Part> }
  /** No stream: a status of HTTP and what the body says of the error. */
  readonly HttpError: { readonly status: number; readonly message: string }
  /** A stream that says of itself that it has failed. */
  readonly Failed: { readonly code: string; readonly message: string }
  /** A stream that begins a message and breaks off after these deltas. */
  readonly Cut: { readonly deltas: ReadonlyArray<string> }
  /** A stream that begins and says nothing until the request is given up; then `aborted` is done. */
  readonly Silent: { readonly aborted: Deferred.Deferred<void> }
}>
export const Reply = Data.taggedEnum<Reply>()

/** An answer of one message. */
export const say = (...deltas: ReadonlyArray<string>): Reply => Reply.Complete({ parts: [Part.Message({ deltas })] })

/** An answer of one call of a tool. */
export const call = (name: string, args: object, namespace?: string): Reply =>
  Reply.Complete({
    parts: [Part.FunctionCall({ name, arguments: args, ...(namespace === undefined ? {} : { namespace }) })]
  })

/** The words of a text, each with the space after it. */
export const words = (text: string): ReadonlyArray<string> => text.match(/\S+\s*/gu) ?? []

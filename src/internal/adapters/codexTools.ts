/**
 * Tools of ours for codex, over the connection that is there already.
 *
 * @since 0.1.0
 */
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { stringify } from "../../Schema.ts"

/** What the model reads of a call. @internal */
export interface Outcome {
  readonly contentItems: ReadonlyArray<{ readonly type: "inputText"; readonly text: string }>
  readonly success: boolean
}

/** @internal */
export interface DynamicTools {
  /** As `thread/start` takes them. */
  readonly specs: ReadonlyArray<object>
  readonly call: (name: string, input: unknown, callId: string) => Effect.Effect<Outcome>
}

const outcome = (success: boolean, text: string): Outcome => ({
  contentItems: [{ type: "inputText", text }],
  success
})

/** What the model reads where a tool is not ours. @internal */
export const noTool = (name: string): Outcome => outcome(false, `there is no tool ${name}`)

const textOf = (result: unknown): string =>
  typeof result === "string" ? result : result === undefined ? "" : Result.getOrElse(stringify(result), () => "")

/** @internal */
export const makeDynamicTools = Effect.fnUntraced(function*<Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
): Effect.fn.Return<DynamicTools, never, Tool.HandlersFor<Tools> | Tool.HandlerServices<Tools[keyof Tools]>> {
  const { handle, tools } = yield* toolkit
  const context = yield* Effect.context<Tool.HandlerServices<Tools[keyof Tools]>>()
  const specs = Object.values(tools).map((tool) => ({
    type: "function",
    name: tool.name,
    description: Tool.getDescription(tool) ?? "",
    inputSchema: Tool.getJsonSchema(tool)
  }))
  const call = (name: string, input: unknown, callId: string): Effect.Effect<Outcome> => {
    if (!Object.hasOwn(tools, name)) return Effect.succeed(noTool(name))
    // the name was looked up, and the toolkit decodes the input
    return handle(name, input as Tool.ParametersEncoded<Tools[string]>, callId).pipe(
      Effect.flatMap((results) => Stream.runLast(results)),
      Effect.map(Option.match({
        onNone: () => outcome(true, ""),
        onSome: ({ encodedResult, isFailure }) => outcome(!isFailure, textOf(encodedResult))
      })),
      Effect.catchCause((cause) => {
        const error: Option.Option<unknown> = Cause.findErrorOption(cause)
        // what a tool declares to fail with is for the model; what it dies of is not
        return Option.isSome(error)
          ? Effect.succeed(outcome(false, error.value instanceof Error ? error.value.message : textOf(error.value)))
          : Effect.as(Effect.logError(`the tool ${name} died`, cause), outcome(false, "the tool failed"))
      }),
      Effect.provideContext(context)
      // `Exclude` does not see through the type parameter: the context has all of it
    ) as Effect.Effect<Outcome>
  }
  return { specs, call }
})

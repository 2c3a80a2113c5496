/**
 * What a tool says of itself to hosts, beside its description.
 *
 * @since 0.1.0
 */
import * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"

/**
 * Where a tool differs from the others of its kind.
 *
 * @category models
 * @since 0.1.0
 */
export interface HintOptions {
  /** Whether a second call with the same input changes nothing more. @default that of a tool that changes nothing */
  readonly idempotent?: boolean
  /** Whether it reaches beyond the files of the server. @default false */
  readonly openWorld?: boolean
}

/**
 * Annotations of a tool with this title, which changes something or only looks. It is strict: a misspelled parameter is
 * refused and not silently ignored.
 *
 * @category constructors
 * @since 0.1.0
 */
export const hints = (title: string, changes: boolean, options?: HintOptions): Context.Context<never> =>
  Context.empty().pipe(
    Context.add(Tool.Title, title),
    Context.add(Tool.Readonly, !changes),
    Context.add(Tool.Destructive, changes),
    Context.add(Tool.Idempotent, options?.idempotent ?? !changes),
    Context.add(Tool.OpenWorld, options?.openWorld ?? false),
    Context.add(Tool.Strict, true)
  )

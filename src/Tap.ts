/**
 * A look at what a peer sends and receives: who, how much, when; what is said only where the user gives a function that
 * chooses it, since messages carry secrets.
 *
 * @module
 * @since 0.1.0
 */
import type { Id, Message } from "./Schema.ts"

/**
 * What a tap is told of a message.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  /** `in`: from the other side, `out`: from ours. */
  readonly direction: "in" | "out"
  /** In milliseconds of the Clock. */
  readonly time: number
  /** `invalid` is input that is no message. */
  readonly kind: "request" | "notification" | "success" | "failure" | "invalid"
  /** Of the message, without what delimits it. Members of a batch share its bytes. */
  readonly bytes: number
  /** Of requests and notifications. */
  readonly method?: string
  /** Of requests and responses. */
  readonly id?: Id | null
  /** What `payload` made of the message. */
  readonly payload?: unknown
}

/**
 * Takes what goes by.
 *
 * **Example** (Counting bytes)
 *
 * ```ts
 * import * as Peer from "effect-stdio/Peer"
 * import type * as Transport from "effect-stdio/Transport"
 *
 * const bytes = { in: 0, out: 0 }
 * const connect = (transport: Transport.Transport["Service"]) =>
 *   Peer.make(transport, {
 *     tap: {
 *       onMessage: (entry) => {
 *         bytes[entry.direction] += entry.bytes
 *       }
 *     }
 *   })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Tap {
  /** Called for each message, synchronously: it should be quick. What it throws is logged. */
  readonly onMessage: (entry: Entry) => void
  /** What is told of a message beside its envelope: leave secrets out here. @default nothing */
  readonly payload?: ((message: Message) => unknown) | undefined
}

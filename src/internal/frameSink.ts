/**
 * What the decoders of the single framings report to: they know bytes, not the public values.
 *
 * @since 0.1.0
 */
import type { Envelope } from "./idScanner.ts"

/** @internal */
export type TextKind = "line" | "content-length"

/** @internal */
export interface FaultDetails {
  readonly size: number
  readonly envelope?: Envelope | undefined
  readonly limit?: number | undefined
  readonly sample?: Uint8Array | undefined
}

/** @internal */
export interface FrameSink<Kind, Reason> {
  readonly frame: (bytes: Uint8Array, framing: Kind) => void
  readonly fault: (reason: Reason, framing: Kind, details: FaultDetails) => void
  /** Whether the consumer should see what it has before more is decoded. */
  readonly isFull: () => boolean
}

/** @internal */
export interface ByteDecoder {
  /** Reads the chunk from `offset` on, to its end or until the sink is full; returns the offset reached. */
  readonly push: (chunk: Uint8Array, offset: number) => number
  readonly end: () => void
}

/**
 * Decodes frames that follow their length as a little-endian 32-bit integer (browser native messaging).
 *
 * @since 0.1.0
 */
import { makeBodyReader } from "./bodyReader.ts"
import type { ByteDecoder, FrameSink } from "./frameSink.ts"

const PREFIX_BYTES = 4

/** @internal */
export const makeLengthPrefixDecoder = (
  maxFrameBytes: number,
  sink: FrameSink<"native", "TooLarge" | "Incomplete">
): ByteDecoder => {
  const body = makeBodyReader(maxFrameBytes)
  let length = 0
  let prefixBytes = 0

  const finish = () => {
    const done = body.finish()
    prefixBytes = 0
    length = 0
    if ("bytes" in done) sink.frame(done.bytes, "native")
    else sink.fault("TooLarge", "native", { ...done, limit: maxFrameBytes })
  }

  return {
    push: (chunk) => {
      let offset = 0
      while (offset < chunk.length) {
        if (prefixBytes < PREFIX_BYTES) {
          length += (chunk[offset++] ?? 0) * 2 ** (8 * prefixBytes++)
          if (prefixBytes < PREFIX_BYTES) continue
          body.start(length)
        } else {
          offset = body.read(chunk, offset)
        }
        if (body.missing() === 0) finish()
      }
    },
    end: () => {
      if (prefixBytes === 0) return
      sink.fault("Incomplete", "native", prefixBytes < PREFIX_BYTES ? { size: prefixBytes } : body.abandon())
      prefixBytes = 0
    }
  }
}

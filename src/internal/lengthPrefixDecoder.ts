/**
 * Decodes frames that follow their length as a little-endian 32-bit integer (browser native messaging).
 *
 * @since 0.1.0
 */
import { makeBodyReader } from "./bodyReader.ts"
import type { ByteDecoder, FrameSink } from "./frameSink.ts"

const PREFIX_BYTES = 4
// what a browser sends at most, many times over
const MAX_CREDIBLE_BYTES = 1_073_741_824

/** @internal */
export const makeLengthPrefixDecoder = (
  maxFrameBytes: number,
  sink: FrameSink<"native", "TooLarge" | "Incomplete">
): ByteDecoder => {
  const body = makeBodyReader(maxFrameBytes)
  let length = 0
  let prefixBytes = 0
  // whether the frame being passed over has been reported already
  let reported = false

  const finish = () => {
    const done = body.finish()
    prefixBytes = 0
    length = 0
    if ("bytes" in done) sink.frame(done.bytes, "native")
    else if (!reported) sink.fault("TooLarge", "native", { ...done, limit: maxFrameBytes })
    reported = false
  }

  const startBody = () => {
    body.start(length)
    // text on the pipe reads as such a length: whoever waits hears of it now, not after gigabytes
    if (length <= Math.max(maxFrameBytes, MAX_CREDIBLE_BYTES)) return
    reported = true
    sink.fault("TooLarge", "native", { size: length, limit: maxFrameBytes })
  }

  return {
    push: (chunk, start) => {
      let offset = start
      while (offset < chunk.length && !sink.isFull()) {
        if (prefixBytes < PREFIX_BYTES) {
          length += (chunk[offset++] ?? 0) * 2 ** (8 * prefixBytes++)
          if (prefixBytes < PREFIX_BYTES) continue
          startBody()
        } else {
          offset = body.read(chunk, offset)
        }
        if (body.missing() === 0) finish()
      }
      return offset
    },
    end: () => {
      if (prefixBytes === 0 || reported) return
      sink.fault("Incomplete", "native", prefixBytes < PREFIX_BYTES ? { size: prefixBytes } : body.abandon())
      prefixBytes = 0
    }
  }
}

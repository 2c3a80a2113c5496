/**
 * Lines of code: which one an offset is on. Code is looked through once, and not once for each match.
 *
 * @since 0.1.0
 */

/**
 * The line of an offset.
 *
 * @category models
 * @since 0.1.0
 */
export interface Line {
  /** From 1. */
  readonly number: number
  /** The offset at which it starts. */
  readonly start: number
}

/**
 * Makes the lines of offsets in code.
 *
 * @category constructors
 * @since 0.1.0
 */
export const lines = (code: string): (offset: number) => Line => {
  const starts = [0, ...Array.from(code.matchAll(/\n/g), ({ index }) => index + 1)]
  return (offset) => {
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return { number: low + 1, start: starts[low] ?? 0 }
  }
}

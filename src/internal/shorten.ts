/**
 * A name that the other side chose, fit for messages, logs and spans.
 *
 * @since 0.1.0
 */

const MAX_LENGTH = 128

/** Cuts a long name, and escapes what is not printable. @internal */
export const shorten = (name: string): string => {
  const short = name.length > MAX_LENGTH ? `${name.slice(0, MAX_LENGTH)}…` : name
  return /^[\x20-\x7e]*$/.test(short) ? short : JSON.stringify(short).slice(1, -1)
}

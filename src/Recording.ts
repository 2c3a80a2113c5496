/**
 * Conversations on record: written as they happen, a line of JSON a message, and played back to a program under test.
 *
 * A line is `{"t": 12, "dir": ">", "msg": {…}}`: milliseconds since the first one, `>` for what was sent and `<` for what
 * was received, and the message. Lines of other kinds, such as notes, are passed over.
 *
 * @module
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Framing from "./Framing.ts"
import * as JsonRpc from "./Schema.ts"
import type * as Tap from "./Tap.ts"
import * as Transport from "./Transport.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/**
 * A line that is no JSON object; the first line is 1.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidLine extends Schema.TaggedClass<InvalidLine>()("InvalidLine", { line: Schema.Int }) {}

/**
 * The program sent something that is not on record, or not any more: the method of a request or notification, or the id
 * of a response.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotOnRecord extends Schema.TaggedClass<NotOnRecord>()("NotOnRecord", { what: Schema.String }) {}

/**
 * The program ended its output, and has not sent all that is on record.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotSent extends Schema.TaggedClass<NotSent>()("NotSent", { left: Schema.Int }) {}

/**
 * Says what is wrong with a recording, or with the program that it was played to.
 *
 * @category errors
 * @since 0.1.0
 */
export class RecordingError extends Schema.TaggedError<RecordingError>()("RecordingError", {
  reason: Schema.Union([InvalidLine, NotOnRecord, NotSent])
}) {
  override get message(): string {
    switch (this.reason._tag) {
      case "InvalidLine":
        return `line ${this.reason.line} of the recording is no JSON object`
      case "NotOnRecord":
        return `${this.reason.what} was sent, which is not on record`
      case "NotSent":
        return `the output was ended with ${this.reason.left} messages on record that were not sent`
    }
  }
}

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/**
 * One message of a recording.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  /** Milliseconds since the first message. */
  readonly time: number
  /** `out`: sent by the side that recorded, `in`: received by it. */
  readonly direction: "in" | "out"
  readonly message: unknown
}

/**
 * A recording that is being played back.
 *
 * @category models
 * @since 0.1.0
 */
export interface Replay {
  /** What the program under test speaks through. */
  readonly transport: Transport.Transport["Service"]
  /** Returns when all that was sent on record has been sent again; fails when something else was, or nothing more can be. */
  readonly done: Effect.Effect<void, RecordingError>
  /** What has not been sent again yet. */
  readonly left: Effect.Effect<ReadonlyArray<Entry>>
}

// -----------------------------------------------------------------------------
// recording
// -----------------------------------------------------------------------------

/**
 * Makes a tap that writes each message as a line, with its newline.
 *
 * **Gotchas**
 *
 * It records what is said, secrets included: `redact` returns what may be written of a message, or undefined where that
 * is nothing but its size.
 *
 * **Example** (Into an array)
 *
 * ```ts
 * import * as Peer from "effect-stdio/Peer"
 * import * as Recording from "effect-stdio/Recording"
 * import type * as Transport from "effect-stdio/Transport"
 *
 * const lines: Array<string> = []
 * const connect = (transport: Transport.Transport["Service"]) =>
 *   Peer.make(transport, { tap: Recording.recorder((line) => lines.push(line)) })
 * ```
 *
 * @category recording
 * @since 0.1.0
 */
export const recorder = (
  write: (line: string) => void,
  redact: (message: JsonRpc.Message) => unknown = (message) => message
): Tap.Tap => {
  let begun: number | undefined
  return {
    payload: redact,
    onMessage: ({ bytes, direction, kind, payload, time }) => {
      begun ??= time
      const said = kind === "invalid"
        ? { note: "invalid", bytes }
        : payload === undefined
        ? { note: "redacted", bytes }
        : { msg: payload }
      const line = JSON.stringify({ t: time - begun, dir: direction === "out" ? ">" : "<", ...said })
      write(`${line}\n`)
    }
  }
}

/**
 * Reads a recording.
 *
 * @category decoding
 * @since 0.1.0
 */
export const parse = (text: string): Result.Result<ReadonlyArray<Entry>, RecordingError> => {
  const entries: Array<Entry> = []
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue
    const parsed = JsonRpc.parse(line)
    if (Result.isFailure(parsed) || !Predicate.isObject(parsed.success)) {
      return Result.fail(new RecordingError({ reason: new InvalidLine({ line: index + 1 }) }))
    }
    const { dir, msg: message, t } = parsed.success
    if ((dir !== ">" && dir !== "<") || message === undefined) continue
    entries.push({ time: typeof t === "number" ? t : 0, direction: dir === ">" ? "out" : "in", message })
  }
  return Result.succeed(entries)
}

// -----------------------------------------------------------------------------
// playing back
// -----------------------------------------------------------------------------

/**
 * Plays the other side of a recording to a program: what was received on record is received again, each message as soon
 * as all that was sent before it has been sent again. No time passes.
 *
 * **Details**
 *
 * A request or notification counts as sent again when its method is the same, a response when its id is; the program may
 * use ids of its own, and send what it sends together in another order. Params are not compared: look at what the
 * program made of the answers.
 *
 * **Example** (A call against a recording)
 *
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Peer from "effect-stdio/Peer"
 * import * as Recording from "effect-stdio/Recording"
 *
 * const program = Effect.gen(function*() {
 *   const { transport } = yield* Recording.replay([
 *     { time: 0, direction: "out", message: { id: 7, method: "ping" } },
 *     { time: 1, direction: "in", message: { jsonrpc: "2.0", id: 7, result: "pong" } }
 *   ])
 *   const peer = yield* Peer.make(transport, { onBadInput: "count" })
 *   return yield* peer.call("ping") // "pong"
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const replay = Effect.fnUntraced(
  function*(
    recording: ReadonlyArray<Entry>,
    options?: {
      /** How the messages are delimited. @default "line" */
      readonly framing?: Framing.Kind | undefined
    }
  ): Effect.fn.Return<Replay, never, Scope.Scope> {
    const framing = options?.framing ?? "line"
    const [transport, other] = yield* Transport.makePair({ left: { framing }, right: { framing } })
    const done = Deferred.makeUnsafe<void, RecordingError>()
    const entries = recording.flatMap(apart)
    // what the program has sent again, under the id that it uses
    const sent = new Map<Entry, unknown>()
    // those ids by the ones on record, where an id may be used again
    const ids = new Map<unknown, unknown>()
    let next = 0

    const left = () => entries.slice(next).filter((entry) => entry.direction === "out" && !sent.has(entry))

    /** Receives again what has had its turn. */
    const proceed: Effect.Effect<void, Transport.TransportError> = Effect.suspend(() => {
      const entry = entries[next]
      if (entry === undefined) {
        Deferred.doneUnsafe(done, Exit.void)
        return Effect.void
      }
      if (entry.direction === "out" && !sent.has(entry)) return Effect.void
      next++
      if (entry.direction === "out") {
        if (isRequest(entry.message)) ids.set(entry.message.id, sent.get(entry))
        return proceed
      }
      const text = JSON.stringify(withId(entry.message, ids))
      return Effect.andThen(other.send(Framing.frameOfText(text, framing)), proceed)
    })

    const onMessage = (message: unknown) =>
      Effect.suspend(() => {
        const entry = entries.find((entry, index) =>
          index >= next && entry.direction === "out" && !sent.has(entry) && isAlike(entry.message, message)
        )
        if (entry === undefined) {
          return Deferred.fail(done, new RecordingError({ reason: new NotOnRecord({ what: nameOf(message) }) }))
        }
        sent.set(entry, isRequest(message) ? message.id : undefined)
        return proceed
      })

    yield* proceed.pipe(
      Effect.andThen(Stream.runForEach(other.incoming, (item) => {
        const text = item._tag === "Frame" ? Result.getOrUndefined(Framing.text(item)) : undefined
        const parsed = text === undefined ? undefined : Result.getOrUndefined(JsonRpc.parse(text))
        return Effect.forEach(Array.isArray(parsed) ? parsed : [parsed], onMessage, { discard: true })
      })),
      Effect.ignore,
      // the program has ended its output: what it has not sent by now it never will
      Effect.andThen(
        Effect.suspend(() => Deferred.fail(done, new RecordingError({ reason: new NotSent({ left: left().length }) })))
      ),
      Effect.forkScoped({ startImmediately: true })
    )

    return { transport, done: Deferred.await(done), left: Effect.sync(left) }
  }
)

// -----------------------------------------------------------------------------
// private helpers
// -----------------------------------------------------------------------------

const isRequest = (message: unknown): message is { readonly id: unknown; readonly method: unknown } =>
  Predicate.hasProperty(message, "id") && Predicate.hasProperty(message, "method")

const isResponse = (message: unknown): message is { readonly id: unknown } =>
  Predicate.hasProperty(message, "id") && !Predicate.hasProperty(message, "method")

const methodOf = (message: unknown): unknown => Predicate.hasProperty(message, "method") ? message.method : undefined

/** The members of a batch that was sent count one by one. */
const apart = (entry: Entry): ReadonlyArray<Entry> =>
  entry.direction === "out" && Array.isArray(entry.message)
    ? entry.message.map((message: unknown) => ({ ...entry, message }))
    : [entry]

/** Whether a message stands for one on record. */
const isAlike = (recorded: unknown, message: unknown): boolean =>
  isResponse(recorded)
    ? isResponse(message) && recorded.id === message.id
    : isRequest(recorded) === isRequest(message) && !isResponse(message) && methodOf(recorded) === methodOf(message)

/** A response under the id that the program has used for its request. */
const withId = (message: unknown, ids: ReadonlyMap<unknown, unknown>): unknown =>
  Array.isArray(message)
    ? message.map((member) => withId(member, ids))
    : isResponse(message) && ids.has(message.id)
    ? { ...message, id: ids.get(message.id) }
    : message

const nameOf = (message: unknown): string => {
  if (isResponse(message)) return `a response to ${JSON.stringify(message.id)}`
  const method = methodOf(message)
  return typeof method === "string" ? method : "what is no message"
}

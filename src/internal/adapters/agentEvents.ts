/**
 * The events of a turn between whoever makes them and whoever takes them. While many wait, the pieces of one text are
 * joined: nothing else is, and nothing is lost.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../Agent.ts"

/** So many events may wait one by one, as they came. */
const PLENTY = 1_024

type Delta = Extract<AgentEvent, { readonly text: string; readonly itemId: string }>

/** Pieces of one text that wait. Joined from time to time, so that memory grows with the text and not with the pieces. */
class Joined {
  readonly first: Delta
  private text: string
  private pieces: Array<string> = []
  private length = 0

  constructor(first: Delta) {
    this.first = first
    this.text = first.text
  }

  add(text: string) {
    this.pieces.push(text)
    this.length += text.length
    if (this.length > Math.max(this.text.length, 4_096)) this.join()
  }

  event(): Delta {
    this.join()
    return { ...this.first, text: this.text }
  }

  private join() {
    this.text += this.pieces.join("")
    this.pieces = []
    this.length = 0
  }
}

/** @internal */
export interface AgentEvents {
  /** Never waits. What comes after the end is dropped. */
  readonly push: (event: AgentEvent) => void
  readonly end: () => void
  /** How many wait. */
  readonly size: () => number
  /** Returns when no more than this many wait, or it has ended. */
  readonly below: (count: number) => Effect.Effect<void>
  /** Whether somebody waits in `below`. */
  readonly holdsBack: () => boolean
  /** Whoever waits in `below` goes on, now and from now on. */
  readonly letGo: () => void
  /** The events, for one consumer. */
  readonly stream: Stream.Stream<AgentEvent>
}

/** @internal */
export const makeAgentEvents = (): AgentEvents => {
  let waiting: Array<AgentEvent | Joined> = []
  /** Where the last piece of each text waits, as far as nothing else has happened since; sought where many wait. */
  let pieces: Map<string, number> | undefined
  let ended = false
  let free = false
  let holds = false
  const more = Latch.makeUnsafe(false)
  const taken = Latch.makeUnsafe(false)

  const push = (event: AgentEvent) => {
    if (ended) return
    if (waiting.length < PLENTY) waiting.push(event)
    else if (isDelta(event)) join(event)
    else {
      waiting.push(event)
      pieces?.clear()
    }
    more.openUnsafe()
  }

  /** Adds a piece to the one before of the same text, unless anything else has happened in between. */
  const join = (event: Delta) => {
    pieces ??= lastPieces(waiting)
    const key = textOf(event)
    const at = pieces.get(key)
    const before = at === undefined ? undefined : waiting[at]
    if (at === undefined || before === undefined || (!(before instanceof Joined) && !isDelta(before))) {
      pieces.set(key, waiting.length)
      waiting.push(event)
      return
    }
    const joined = before instanceof Joined ? before : new Joined(before)
    joined.add(event.text)
    waiting[at] = joined
  }

  const take: Effect.Effect<readonly [AgentEvent, ...Array<AgentEvent>], Cause.Done> = Effect.suspend(() => {
    const [first, ...rest] = waiting
    if (first !== undefined) {
      waiting = []
      pieces = undefined
      holds = false
      taken.openUnsafe()
      return Effect.succeed([finish(first), ...rest.map(finish)] as const)
    }
    if (ended) return Cause.done()
    more.closeUnsafe()
    // a turn later: what comes at once is taken at once, and not in the midst of what brings it
    return more.await.pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(take))
  })

  const below = (count: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (waiting.length <= count || ended || free) return Effect.void
      holds = true
      taken.closeUnsafe()
      return Effect.andThen(taken.await, below(count))
    })

  return {
    push,
    end: () => {
      ended = true
      more.openUnsafe()
      taken.openUnsafe()
    },
    size: () => waiting.length,
    below,
    holdsBack: () => holds && !ended && !free,
    letGo: () => {
      free = true
      taken.openUnsafe()
    },
    stream: Stream.fromPull(Effect.succeed(take))
  }
}

const finish = (event: AgentEvent | Joined): AgentEvent => event instanceof Joined ? event.event() : event

const isDelta = (event: AgentEvent): event is Delta =>
  event._tag === "TextDelta" || event._tag === "ToolOutput" || event._tag === "ReasoningDelta" ||
  event._tag === "PlanDelta"

/** Where the last piece of each text is among events, behind all that is no piece of a text. */
const lastPieces = (events: ReadonlyArray<AgentEvent | Joined>): Map<string, number> => {
  const pieces = new Map<string, number>()
  for (let at = events.length - 1; at >= 0; at--) {
    const event = events[at]
    if (event === undefined || event instanceof Joined || !isDelta(event)) break
    const key = textOf(event)
    if (!pieces.has(key)) pieces.set(key, at)
  }
  return pieces
}

/** Which text a piece belongs to. */
const textOf = (event: Delta): string =>
  event._tag === "ReasoningDelta"
    ? `${event._tag} ${event.kind} ${event.part} ${event.itemId}`
    : `${event._tag} ${event.itemId}`

/**
 * A turn of 20,000 deltas in the shape of recorded ones: followed with `Codex`, with a subscription of a `Peer`, and by
 * parsing lines, which nobody can do with less. And what such turns need while nobody takes their events.
 */
import type { Row, Section } from "../report.ts"
import { atLeast, atMost } from "../report.ts"
import type { Contender } from "../rounds.ts"
import { cpuRatio, measure, rateRatio, warmUp } from "../rounds.ts"
import type { Client } from "./measuringClient.ts"
import { path, startClient } from "./measuringClient.ts"

/** Turns of so many deltas, one after the other until the time is over; one at least. */
export interface Load {
  readonly deltas: number
  readonly seconds: number
  readonly slow?: "merge" | "suspend"
}

/** What it took; `peak` is the growth of the heap while the consumer slept, in bytes. */
export interface Measured {
  readonly messages: number
  readonly seconds: number
  readonly cpu: number
  readonly pieces: number
  readonly peak: number
}

type AgentClient = Client<Load, Measured>

const DELTAS = 20_000
/** The text of a delta, such as `word12345 `. */
const TEXT_BYTES = 11
const MB = 1_000_000

const start = (name: string, kind: string): AgentClient =>
  startClient(name, ["--expose-gc", path("../clients/agent.ts"), kind, path("../servers/codex-turn.mjs")])

const contenderOf = (client: AgentClient): Contender => (_, until) =>
  client.ask({ deltas: DELTAS, seconds: "seconds" in until ? until.seconds : 1 })

/** Two turns of which the second has ten times as much: what waits must not grow ten times where it is bounded. */
const slowly = async (client: AgentClient): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const slow of ["merge", "suspend"] as const) {
    const small = await client.ask({ deltas: DELTAS, seconds: 0, slow })
    const large = await client.ask({ deltas: 10 * DELTAS, seconds: 0, slow })
    const row = (deltas: string, { peak, pieces }: Measured): Row => ({
      workload: `nobody takes the events of ${deltas} deltas`,
      server: `${client.name}, ${slow}`,
      note: `${(peak / MB).toFixed(1)} MB more, ${pieces} pieces of text taken`
    })
    // joined pieces are text, which a string may hold in pieces of its own
    const limit = slow === "suspend"
      ? atMost(large.peak / MB, small.peak / MB + 4, "MB, as with a tenth of the deltas")
      : atMost(large.peak / MB, small.peak / MB + 4 * 9 * DELTAS * TEXT_BYTES / MB, "MB, four times the text that came")
    rows.push(row("20,000", small), { ...row("200,000", large), targets: [limit] })
  }
  return rows
}

export const run = async (): Promise<Section> => {
  const agent = start("effect-stdio, Codex", "codex")
  const clients = [agent, start("effect-stdio, Peer.subscribe", "peer"), start("readline and JSON.parse", "lines")]
  try {
    const contenders = clients.map(contenderOf)
    await warmUp(contenders, 1, 1)
    const figures = await measure(contenders, { inFlight: 1, rounds: 7, seconds: 0.5 })
    const floor = figures.at(-1)
    const rows = clients.flatMap(({ name }, index): ReadonlyArray<Row> => {
      const own = figures[index]
      if (own === undefined || floor === undefined) return []
      const ratio = cpuRatio(own, floor)
      return [{
        workload: "deltas of a turn",
        server: name,
        rate: own.rate,
        cpu: own.cpu,
        targets: name === agent.name ? [atLeast(own.rate / 1_000, 100, "thousand deltas a second")] : [],
        note: `${rateRatio(own, floor).toFixed(2)} x the rate of lines` +
          (ratio === undefined ? "" : `, ${ratio.toFixed(1)} x the CPU`)
      }]
    })
    return { id: "agent", title: "A turn of 20,000 deltas", rows: [...rows, ...await slowly(agent)] }
  } finally {
    await Promise.all(clients.map((client) => client.stop()))
  }
}

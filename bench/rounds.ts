/**
 * Measures servers by turns, in many short rounds: whatever else the machine does, it does to all of them.
 */
import type { Child, Run, Until } from "./driver.ts"
import { median } from "./report.ts"
import type { Requests } from "./requests.ts"

/** Somebody who can be asked to answer requests. */
export type Contender = (inFlight: number, until: Until) => Promise<Run>

/** A server that is sent requests. */
export const contender = (child: Child, requests: Requests): Contender => (inFlight, until) =>
  child.drive({ requests, inFlight, until })

export interface Figures {
  /** Messages a second: the median of the rounds. */
  readonly rate: number
  /** Processor time for a message, in microseconds, over all rounds: the system counts in hundredths of a second. */
  readonly cpu: number | undefined
  readonly rounds: ReadonlyArray<Run>
}

export interface Plan {
  readonly inFlight: number
  readonly rounds: number
  readonly seconds: number
}

/** Brings servers to their usual speed: V8 needs some ten thousand messages. */
export const warmUp = async (contenders: ReadonlyArray<Contender>, messages: number, inFlight: number) => {
  for (const run of contenders) await run(inFlight, { messages })
}

/** The figures of each contender, in their order. */
export const measure = async (
  contenders: ReadonlyArray<Contender>,
  { inFlight, rounds, seconds }: Plan
): Promise<ReadonlyArray<Figures>> => {
  const runs: Array<Array<Run>> = contenders.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, run] of contenders.entries()) runs[index]?.push(await run(inFlight, { seconds }))
  }
  return runs.map((rounds) => ({ rate: median(rounds.map(rateOf)), cpu: cpuOf(rounds), rounds }))
}

const rateOf = ({ messages, seconds }: Run) => messages / seconds

const cpuOf = (rounds: ReadonlyArray<Run>) => {
  let time = 0
  let count = 0
  for (const { cpu, messages } of rounds) {
    if (cpu === undefined) return undefined
    time += cpu
    count += messages
  }
  return time / count
}

/** How many times the rate of `b` the rate of `a` is: the median of what each round says. */
export const rateRatio = (a: Figures, b: Figures): number =>
  median(a.rounds.flatMap((run, index) => {
    const other = b.rounds[index]
    return other === undefined ? [] : [rateOf(run) / rateOf(other)]
  }))

/** How many times the processor time of `b` the processor time of `a` is; unknown where the system does not tell. */
export const cpuRatio = (a: Figures, b: Figures): number | undefined =>
  a.cpu === undefined || b.cpu === undefined ? undefined : a.cpu / b.cpu

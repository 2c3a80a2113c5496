/**
 * Messages from 1 KB to 64 MB, which a server reads in chunks of 64 KB: the cost of a byte must not depend on the size
 * of its message.
 */
import { ok } from "node:assert"
import { using } from "../driver.ts"
import type { Row, Section, Target } from "../report.ts"
import { atMost } from "../report.ts"
import { encodeRequests } from "../requests.ts"
import type { Figures } from "../rounds.ts"
import { contender, cpuRatio, measure, warmUp } from "../rounds.ts"
import { bare, probe } from "../servers.ts"

const KB = 1_024
const MB = 1_024 * KB

const SIZES = [
  { name: "1 KB", bytes: KB, rounds: 5, seconds: 0.4 },
  { name: "64 KB", bytes: 64 * KB, rounds: 5, seconds: 0.4 },
  { name: "1 MB", bytes: MB, rounds: 5, seconds: 0.6 },
  { name: "16 MB", bytes: 16 * MB, rounds: 5, seconds: 0.6 },
  { name: "64 MB", bytes: 64 * MB, rounds: 3, seconds: 1 }
]

// what is in flight, where a single message is smaller
const WINDOW_BYTES = 256 * KB
const REQUEST_BYTES = 4 * MB
const WARM_UP_BYTES = 64 * MB
const MAX_FRAME = 128 * MB
// how many times what it costs in a message of 64 KB a byte may cost in a larger one, or more where a bare loop needs
// more: it does, since large strings are memory that is new each time
const FLAT = 1.5

const echo = (bytes: number) => ({ method: "echo", params: { text: "all work and no play ".repeat(bytes / 21) } })

export const run = (): Promise<Section> =>
  using([probe("--max-frame", String(MAX_FRAME)), bare], async (children) => {
    const rows: Array<Row> = []
    let reference: ReadonlyArray<number | undefined> = []
    for (const { bytes, name, rounds, seconds } of SIZES) {
      const request = echo(bytes)
      for (const child of children) {
        const { result } = await child.ask(request.method, request.params)
        ok(JSON.stringify(result) === JSON.stringify(request.params), `${child.name} does not echo ${name}`)
      }
      const contenders = children.map((child) =>
        contender(child, encodeRequests(child.framing, request, Math.ceil(REQUEST_BYTES / bytes)))
      )
      const inFlight = Math.max(1, WINDOW_BYTES / bytes)
      await warmUp(contenders, Math.ceil(WARM_UP_BYTES / bytes), inFlight)
      const figures = await measure(contenders, { inFlight, rounds, seconds })
      const costs = figures.map(({ cpu }) => cpu === undefined ? undefined : cpu * 1000 / bytes)
      if (bytes === 64 * KB) reference = costs
      for (const [index, child] of children.entries()) {
        const targets = index === 0 ? wanted(figures, costs, reference) : []
        const { cpu, rate } = figures[index] ?? {}
        rows.push({ workload: `echo of ${name}`, server: child.name, rate, cpu, cpuPerByte: costs[index], targets })
      }
    }
    return { id: "sizes", title: "Messages from 1 KB to 64 MB, in chunks of 64 KB", rows }
  })

type Costs = ReadonlyArray<number | undefined>

const wanted = ([own, loop]: ReadonlyArray<Figures>, costs: Costs, reference: Costs): ReadonlyArray<Target> => {
  const ratio = own === undefined || loop === undefined ? undefined : cpuRatio(own, loop)
  if (ratio === undefined) return []
  const targets = [atMost(ratio, 2, "x the CPU of a bare loop")]
  const [growth, growthOfLoop] = costs.map((cost, index) => (cost ?? Number.NaN) / (reference[index] ?? Number.NaN))
  if (growth !== undefined && growthOfLoop !== undefined && costs !== reference && reference.length > 0) {
    targets.push(atMost(growth, Math.max(FLAT, growthOfLoop), "x the CPU per byte of 64 KB"))
  }
  return targets
}

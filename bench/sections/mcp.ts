/**
 * MCP: pings, and calls of a tool that returns its text. Every server has the same tool; those on Effect have the other
 * tools of the probe too.
 */
import type { Child, Run } from "../driver.ts"
import { using } from "../driver.ts"
import { ECHO, openSession, openSessionWith, PING } from "../mcp.ts"
import type { Row, Section, Target } from "../report.ts"
import { atLeast } from "../report.ts"
import { encodeRequests } from "../requests.ts"
import type { Contender } from "../rounds.ts"
import { contender, measure, rateRatio, warmUp } from "../rounds.ts"
import { effectMcp, mcpFloor, mcpProbe, officialMcp, tmcp } from "../servers.ts"

const WINDOWS = [1, 64]
const WARM_UP = 10_000
const REQUESTS = 32_768

interface Workload {
  readonly name: string
  readonly request: { readonly method: string; readonly params?: object | undefined }
  /** How many times the rate of Effect's own layer is wanted. */
  readonly wanted: number
}

const WORKLOADS: ReadonlyArray<Workload> = [
  { name: "ping", request: PING, wanted: 3 },
  { name: "tools/call", request: ECHO, wanted: 1 }
]

export const run = (): Promise<Section> => {
  const servers = [mcpProbe(), effectMcp, officialMcp, tmcp]
  return using([...servers, mcpFloor], async (children) => {
    const floor = children.at(-1)
    for (const child of children) await (child === floor ? openFloor(child) : openSessionWith(child))

    const rows: Array<Row> = []
    for (const { name, request, wanted } of WORKLOADS) {
      const contenders = children.map((child) =>
        child === floor
          ? floorContender(child, request)
          : contender(child, encodeRequests(child.framing, request, REQUESTS))
      )
      await warmUp(contenders, WARM_UP, 64)
      for (const inFlight of WINDOWS) {
        await warmUp(contenders, 1_000, inFlight)
        const figures = await measure(contenders, { inFlight, rounds: 10, seconds: 0.2 })
        const [own, effects] = figures
        for (const [index, child] of children.entries()) {
          const targets: ReadonlyArray<Target> = index === 0 && own !== undefined && effects !== undefined
            ? [atLeast(rateRatio(own, effects), wanted, "x Effect's layerStdio")]
            : []
          const { cpu, rate } = figures[index] ?? {}
          rows.push({ workload: `${name}, ${inFlight} in flight`, server: child.name, rate, cpu, targets })
        }
      }
    }
    return { id: "mcp", title: "MCP", rows }
  })
}

// -----------------------------------------------------------------------------
// the floor
// -----------------------------------------------------------------------------

const openFloor = (child: Child) =>
  openSession(child.name, async (method, params) => {
    const { result } = await child.ask("ask", { method, params })
    return (result as { readonly value?: unknown }).value
  })

const floorContender = (child: Child, call: object): Contender => async (inFlight, until) =>
  (await child.ask("drive", { call, inFlight, until })).result as Run

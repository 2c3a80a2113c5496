/**
 * A million messages: memory at the end is what it was after the first hundred thousand.
 */
import type { Child } from "../driver.ts"
import { using } from "../driver.ts"
import { ECHO as CALL, openSessionWith } from "../mcp.ts"
import type { Row, Section } from "../report.ts"
import { atMost, median } from "../report.ts"
import type { Requests } from "../requests.ts"
import { encodeRequests } from "../requests.ts"
import { bare, mcpProbe, probe } from "../servers.ts"

const MESSAGES = 1_000_000
const EARLY = 100_000
// memory goes up and down with garbage collection: the median of what was seen over so many messages is compared
const SPAN = 50_000
const EVERY = 2_000
const REQUESTS = 65_536

const ECHO = { method: "echo", params: { text: "a text of some length" } }

const watch = async (child: Child, requests: Requests) => {
  const early: Array<number> = []
  const late: Array<number> = []
  let next = 0
  const run = await child.drive({
    requests,
    inFlight: 64,
    until: { messages: MESSAGES },
    onReplies: (replies) => {
      if (replies < next) return
      next = replies + EVERY
      const series = Math.abs(replies - EARLY) <= SPAN / 2 ? early : replies > MESSAGES - SPAN ? late : undefined
      const now = series === undefined ? undefined : child.memory()?.now
      if (now !== undefined) series?.push(now)
    }
  })
  return { run, early: known(early), late: known(late) }
}

const known = (series: ReadonlyArray<number>) => series.length === 0 ? undefined : median(series)

export const run = (): Promise<Section> =>
  using([probe(), bare, mcpProbe()], async ([own, loop, mcp]) => {
    await openSessionWith(mcp)
    const rows: Array<Row> = []
    for (const [child, request] of [[own, ECHO], [loop, ECHO], [mcp, CALL]] as const) {
      const { early, late, run } = await watch(child, encodeRequests(child.framing, request, REQUESTS))
      const workload = `1,000,000 x ${request.method}, 64 in flight`
      rows.push({ workload, server: `${child.name}, after 100,000`, memory: early }, {
        workload,
        server: `${child.name}, at the end`,
        rate: run.messages / run.seconds,
        cpu: run.cpu === undefined ? undefined : run.cpu / run.messages,
        memory: late,
        targets: child === loop || early === undefined || late === undefined
          ? []
          : [atMost(late / early, 1.1, "x the memory after 100,000")]
      })
    }
    return { id: "million", title: "Memory over a million messages", rows }
  })

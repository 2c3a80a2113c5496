/**
 * A host that stops reading while 20,000 calls with results of 50 KB arrive: what waits for it is bounded. Afterwards it
 * reads again, and every call must be answered. That is asked of this library only; some others do not get so far.
 *
 * A call of `big` is small, and its result large; a call of the MCP tool carries its text both ways.
 */
import { ok } from "node:assert"
import type { Child, Server } from "../driver.ts"
import { using } from "../driver.ts"
import { echoCall, openSessionWith } from "../mcp.ts"
import type { Row, Section } from "../report.ts"
import { atMost, figure } from "../report.ts"
import { encodeRequests } from "../requests.ts"
import { bare, effectMcp, mcpProbe, mcpStdioCore, officialMcp, probe, tmcp, vscodeJsonrpc } from "../servers.ts"

const CALLS = 20_000
const RESULT = 50_000

const BIG = { method: "big", params: { bytes: RESULT } }
const CALL = echoCall("x".repeat(RESULT))

const MB = 1_000_000
// maxQueuedBytes and maxBufferedInput by default; and what V8 has not collected yet, see docs/performance.md
const BOUND = 2.5 * (64 + 64) * 1_024 * 1_024

const flood = (server: Server, isMcp: boolean): Promise<Row> =>
  using([server], async ([child]) => {
    await (isMcp ? openSessionWith(child) : check(child))
    const request = isMcp ? CALL : BIG
    const requests = encodeRequests(child.framing, request, isMcp ? 1_000 : CALLS)
    const row = { workload: `20,000 x ${request.method}`, server: child.name }
    const idle = child.memory()?.now
    if (server.name !== probe().name) {
      try {
        await child.flood(requests, CALLS)
        return { ...row, memory: child.memory()?.peak }
      } catch (error) {
        // what others do under this load is a result, not a failure of the benchmark
        return { ...row, note: reasonOf(error).replace(`${server.name} `, "") }
      }
    }
    await child.flood(requests, CALLS)
    const peak = child.memory()?.peak
    await child.readAgain(CALLS)
    const later = child.memory()?.peak
    if (peak === undefined || idle === undefined || later === undefined) return row
    return {
      ...row,
      memory: peak,
      targets: [atMost((peak - idle) / MB, BOUND / MB, "MB more than idle")],
      note: `all answered, ${figure(later / MB, 0)} MB at most`
    }
  })

const reasonOf = (error: unknown) => {
  const [what = "", ...lines] = String(error instanceof Error ? error.message : error).split("\n")
  return [what.replace(/:$/, ""), ...lines.filter((line) => line.startsWith("Error: "))].join(", ")
}

const check = async (child: Child) => {
  const { result } = await child.ask(BIG.method, BIG.params)
  ok(typeof result === "string" && result.length === RESULT, `${child.name} does not answer ${BIG.method}`)
}

export const run = async (): Promise<Section> => {
  const rows: Array<Row> = []
  for (const server of [probe(), ...(mcpStdioCore === undefined ? [] : [mcpStdioCore]), bare, vscodeJsonrpc]) {
    rows.push(await flood(server, false))
  }
  for (const server of [mcpProbe(), effectMcp, officialMcp, tmcp]) rows.push(await flood(server, true))
  return { id: "stalled", title: "A host that does not read: peak memory", rows }
}

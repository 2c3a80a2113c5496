/**
 * Small messages: a request of about 80 bytes whose params come back as its result.
 */
import { deepStrictEqual } from "node:assert"
import { using } from "../driver.ts"
import type { Row, Section, Target } from "../report.ts"
import { atLeast, atMost, rounded } from "../report.ts"
import { encodeRequests } from "../requests.ts"
import type { Figures } from "../rounds.ts"
import { contender, cpuRatio, measure, rateRatio, warmUp } from "../rounds.ts"
import { bare, mcpStdioCore, probe, vscodeJsonrpc, withContentLength } from "../servers.ts"

const REQUEST = { method: "echo", params: { text: "a text of some length" } }
const WINDOWS = [1, 64, 1_024]
const WARM_UP = 60_000
const REQUESTS = 65_536

export const run = (): Promise<Section> => {
  const servers = [
    probe(),
    ...(mcpStdioCore === undefined ? [] : [mcpStdioCore]),
    bare,
    withContentLength(probe()),
    vscodeJsonrpc
  ]
  return using(servers, async (children) => {
    const contenders = children.map((child) => contender(child, encodeRequests(child.framing, REQUEST, REQUESTS)))
    for (const child of children) {
      const { result } = await child.ask(REQUEST.method, REQUEST.params)
      deepStrictEqual(result, REQUEST.params, `${child.name} does not echo`)
    }
    await warmUp(contenders, WARM_UP, 64)

    const rows: Array<Row> = []
    for (const inFlight of WINDOWS) {
      await warmUp(contenders, 5_000, inFlight)
      const figures = await measure(contenders, { inFlight, rounds: 10, seconds: 0.2 })
      const of = (server: { readonly name: string } | undefined) =>
        server === undefined ? undefined : figures[servers.findIndex(({ name }) => name === server.name)]
      for (const [index, server] of servers.entries()) {
        const own = figures[index]
        if (own === undefined) continue
        const targets = server.name === probe().name ? wanted(own, of(mcpStdioCore), of(vscodeJsonrpc), of(bare)) : []
        rows.push({
          workload: `echo, ${inFlight} in flight`,
          server: server.name,
          rate: own.rate,
          cpu: own.cpu,
          targets
        })
      }
    }
    return { id: "echo", title: "JSON-RPC, messages of 80 bytes", rows }
  })
}

const wanted = (own: Figures, core: Figures | undefined, vscode: Figures | undefined, bare: Figures | undefined) => {
  const targets: Array<Target> = []
  if (core !== undefined) targets.push(atLeast(rateRatio(own, core), 1, "x mcp-stdio-core"))
  if (vscode !== undefined && bare !== undefined) {
    const best = rateRatio(bare, vscode)
    targets.push(atLeast(rateRatio(own, vscode), 3, `x vscode-jsonrpc, a bare loop ${rounded(best)} x`))
  }
  const cpu = bare === undefined ? undefined : cpuRatio(own, bare)
  if (cpu !== undefined) targets.push(atMost(cpu, 3, "x the CPU of a bare loop"))
  return targets
}

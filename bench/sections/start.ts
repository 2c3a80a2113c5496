/**
 * How long a server takes from the start of its process to its first reply, and how much memory it has then: from its
 * sources as they are, and bundled into one file with all it imports.
 */
import { ok } from "node:assert"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { bundle } from "../../scripts/bundle.ts"
import type { Server } from "../driver.ts"
import { using } from "../driver.ts"
import { INITIALIZE } from "../mcp.ts"
import type { Row, Section, Target } from "../report.ts"
import { atMost, median } from "../report.ts"
import { bare, effectMcp, mcpProbe, mcpStdioCore, officialMcp, probe, tmcp, vscodeJsonrpc } from "../servers.ts"

const ROUNDS = 7
const MB = 1_000_000

interface Case {
  readonly server: Server
  readonly workload: string
  readonly request: { readonly method: string; readonly params: object }
  readonly limits?: { readonly milliseconds: number; readonly megabytes: number } | undefined
}

const ECHO = { method: "echo", params: { text: "first" } }

/** A server as one file that imports nothing but what Node brings. */
const bundled = async (server: Server, folder: string): Promise<Server> => {
  const [entry = "", ...flags] = server.args
  const file = path.join(folder, `${path.basename(path.dirname(entry))}-${path.parse(entry).name}.mjs`)
  await bundle(entry, file)
  return { ...server, args: [file, ...flags] }
}

const cases = async (folder: string): Promise<ReadonlyArray<Case>> => {
  const echo = { workload: "first echo", request: ECHO }
  const open = { workload: "initialize", request: INITIALIZE }
  const inOneFile = async (given: Case): Promise<Case> => ({
    ...given,
    workload: `${given.workload}, bundled`,
    server: await bundled(given.server, folder)
  })
  return [
    { ...echo, server: probe() },
    { ...echo, server: vscodeJsonrpc },
    ...(mcpStdioCore === undefined ? [] : [{ ...echo, server: mcpStdioCore }]),
    { ...echo, server: bare },
    { ...await inOneFile({ ...echo, server: probe() }), limits: { milliseconds: 200, megabytes: 75 } },
    await inOneFile({ ...echo, server: vscodeJsonrpc }),
    { ...open, server: mcpProbe() },
    { ...open, server: effectMcp },
    { ...open, server: officialMcp },
    { ...open, server: tmcp },
    { ...await inOneFile({ ...open, server: mcpProbe() }), limits: { milliseconds: 300, megabytes: 90 } },
    await inOneFile({ ...open, server: effectMcp }),
    await inOneFile({ ...open, server: officialMcp }),
    await inOneFile({ ...open, server: tmcp })
  ]
}

const startOnce = async ({ request, server }: Case) => {
  const begun = performance.now()
  return using([server], async ([child]) => {
    const { error, result } = await child.ask(request.method, request.params)
    const milliseconds = performance.now() - begun
    ok(result !== undefined, `${server.name} does not answer: ${JSON.stringify(error)}`)
    return { milliseconds, memory: child.memory()?.now }
  })
}

export const run = async (): Promise<Section> => {
  const folder = await mkdtemp(path.join(tmpdir(), "effect-stdio-bench-"))
  try {
    const measured = (await cases(folder)).map((given) => ({
      given,
      times: [] as Array<number>,
      memory: [] as Array<number>
    }))
    for (let round = 0; round < ROUNDS; round++) {
      for (const { given, memory, times } of measured) {
        const start = await startOnce(given)
        times.push(start.milliseconds)
        if (start.memory !== undefined) memory.push(start.memory)
      }
    }
    const rows = measured.map(({ given: { limits, server, workload }, memory, times }): Row => {
      const firstReply = median(times)
      const resident = memory.length === 0 ? undefined : median(memory)
      const targets: Array<Target> = []
      if (limits !== undefined) {
        targets.push(atMost(firstReply, limits.milliseconds, "ms"))
        if (resident !== undefined) targets.push(atMost(resident / MB, limits.megabytes, "MB"))
      }
      return { workload, server: server.name, firstReply, memory: resident, targets }
    })
    return { id: "start", title: "First reply of a new process, and its memory then", rows }
  } finally {
    await rm(folder, { recursive: true })
  }
}

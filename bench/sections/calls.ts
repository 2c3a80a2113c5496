/**
 * The calling side: clients that call the same child, the probe, each in a process of its own that measures itself.
 *
 * A callback, a promise or a fiber a call: each client waits for its answers in the way that its users do.
 */
import type { Row, Section } from "../report.ts"
import { atLeast, median } from "../report.ts"
import type { Contender } from "../rounds.ts"
import { measure, rateRatio, warmUp } from "../rounds.ts"
import { probe } from "../servers.ts"
import type { Client } from "./measuringClient.ts"
import { path, startClient } from "./measuringClient.ts"

/** What a client is asked to do; it ends with the time or with the calls, whichever is over first. */
export interface Load {
  readonly inFlight: number
  readonly seconds: number
  readonly calls: number
}

/** What it took, processor time of the client in microseconds included. */
export interface Measured {
  readonly messages: number
  readonly seconds: number
  readonly cpu: number
}

const OURS = "effect-stdio"
const OURS_WITH_HEADERS = "effect-stdio, Content-Length"
const VSCODE = "vscode-jsonrpc 10"

const CLIENTS: Readonly<Record<string, ReadonlyArray<string>>> = {
  [OURS]: [path("../clients/effect-stdio.ts")],
  [OURS_WITH_HEADERS]: [path("../clients/effect-stdio.ts")],
  [VSCODE]: [path("../peers/vscode-jsonrpc-client.mjs")]
}

const WINDOWS = [1, 64]
const WARM_UP = 40_000
const STARTS = 7

type CallClient = Client<Load | "start", Measured>

const start = (name: string, args: ReadonlyArray<string>): CallClient => {
  const [script = ""] = probe().args
  return startClient(name, [...args, script, name === OURS ? "line" : "content-length"])
}

const contenderOf = (client: CallClient): Contender => (inFlight, until) =>
  client.ask({
    inFlight,
    seconds: "seconds" in until ? until.seconds : 60,
    calls: "messages" in until ? until.messages : 1e9
  })

export const run = async (): Promise<Section> => {
  const clients = Object.entries(CLIENTS).map(([name, args]) => start(name, args))
  try {
    const contenders = clients.map(contenderOf)
    const rows: Array<Row> = []
    await warmUp(contenders, WARM_UP, 64)
    for (const inFlight of WINDOWS) {
      const figures = await measure(contenders, { inFlight, rounds: 10, seconds: 0.3 })
      const vscode = figures[clients.findIndex(({ name }) => name === VSCODE)]
      for (const [index, { name }] of clients.entries()) {
        const own = figures[index]
        if (own === undefined || vscode === undefined) continue
        const ratio = rateRatio(own, vscode)
        rows.push({
          workload: `call, ${inFlight} in flight`,
          server: name,
          rate: own.rate,
          cpu: own.cpu,
          targets: name === OURS && inFlight === 64 ? [atLeast(ratio, 2, "x vscode-jsonrpc")] : []
        })
      }
    }
    rows.push(...await starts(clients))
    return { id: "calls", title: "Calling a child: the client's rate and CPU", rows }
  } finally {
    await Promise.all(clients.map((client) => client.stop()))
  }
}

/** A child that is started, by our supervisor or by hand, and asked something: by turns. */
const starts = async (clients: ReadonlyArray<CallClient>): Promise<ReadonlyArray<Row>> => {
  const measured = clients.filter(({ name }) => name !== OURS_WITH_HEADERS).map((client) => ({
    client,
    times: [] as Array<number>
  }))
  for (let round = 0; round < STARTS; round++) {
    for (const { client, times } of measured) times.push((await client.ask("start")).seconds * 1_000)
  }
  return measured.map(({ client: { name }, times }): Row => ({
    workload: "first call of a new child",
    server: name === OURS ? `${name}, supervised` : name,
    firstReply: median(times)
  }))
}

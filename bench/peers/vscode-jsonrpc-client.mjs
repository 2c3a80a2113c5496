/** Calls a child with vscode-jsonrpc, which frames with Content-Length, and measures itself as clients/effect-stdio.ts does. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node"

const [, , script] = process.argv
const PARAMS = { text: "a text of some length" }

const start = () => {
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "inherit"] })
  const connection = createMessageConnection(
    new StreamMessageReader(child.stdout),
    new StreamMessageWriter(child.stdin)
  )
  connection.listen()
  return { child, connection }
}

const drive = async (connection, { calls, inFlight, seconds }) => {
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const deadline = begun + seconds * 1_000
  let begunCalls = 0
  let messages = 0
  const caller = async () => {
    while (begunCalls < calls && performance.now() < deadline) {
      begunCalls++
      await connection.sendRequest("echo", PARAMS)
      messages++
    }
  }
  await Promise.all(Array.from({ length: inFlight }, caller))
  const { system, user } = process.cpuUsage(cpu)
  return { messages, seconds: (performance.now() - begun) / 1_000, cpu: system + user }
}

const startOnce = async () => {
  const begun = performance.now()
  const { child, connection } = start()
  await connection.sendRequest("echo", PARAMS)
  const seconds = (performance.now() - begun) / 1_000
  const exited = new Promise((resolve) => child.once("exit", resolve))
  child.stdin.end()
  await exited
  return { messages: 1, seconds, cpu: 0 }
}

const { child, connection } = start()
const answer = JSON.stringify(await connection.sendRequest("echo", PARAMS))
if (answer !== JSON.stringify(PARAMS)) throw new Error(`not an echo: ${answer}`)
for await (const line of createInterface({ input: process.stdin })) {
  const load = JSON.parse(line)
  process.stdout.write(`${JSON.stringify(await (load === "start" ? startOnce() : drive(connection, load)))}\n`)
}
child.stdin.end()

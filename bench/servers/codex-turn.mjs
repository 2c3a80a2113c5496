/**
 * Answers like `codex app-server` as far as a turn needs it, with messages in the shape of recorded ones. The text of the
 * input is the number of deltas. Its standard error tells when all of a turn is in the pipe.
 */
import { once } from "node:events"
import { createInterface } from "node:readline"

const threadId = "01a22db0-8b42-71d1-bb13-e7f09107c2ff"
let turns = 0

const line = (message) => `${JSON.stringify(message)}\n`
const write = async (text) => {
  if (!process.stdout.write(text)) await once(process.stdout, "drain")
}

const runTurn = async (id, deltas) => {
  const turnId = `01a22db0-8bc0-7a03-9b24-${String(++turns).padStart(12, "0")}`
  const itemId = `msg_${turns}_0`
  const notification = (method, params) =>
    line({ method, params: { threadId, turnId, ...params }, emittedAtMs: 1_796_062_874_694 })
  const turn = (status) => ({ id: turnId, items: [], itemsView: "notLoaded", status, error: null })
  await write(line({ id, result: { turn: turn("inProgress") } }))
  await write(notification("turn/started", { turn: turn("inProgress") }))
  await write(notification("item/started", { item: { type: "agentMessage", id: itemId, text: "" } }))
  let text = ""
  for (let from = 0; from < deltas; from += 500) {
    let lines = ""
    for (let index = from; index < Math.min(from + 500, deltas); index++) {
      const delta = `word${index} `
      text += delta
      lines += notification("item/agentMessage/delta", { itemId, delta })
    }
    await write(lines)
  }
  await write(notification("item/completed", { item: { type: "agentMessage", id: itemId, text } }))
  await write(notification("turn/completed", { turn: turn("completed") }))
  process.stderr.write("written\n")
}

for await (const text of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(text)
  if (method === "initialize") await write(line({ id, result: { userAgent: "bench/0.171.0 (none)" } }))
  if (method === "thread/start") await write(line({ id, result: { thread: { id: threadId } } }))
  if (method === "turn/start") void runTurn(id, Number(params.input[0].text))
}

/**
 * What every MCP server here is asked, and how a session with it is opened.
 */
import { deepStrictEqual } from "node:assert"
import type { Child } from "./driver.ts"

/** The newest revision that all of the servers have. */
export const PROTOCOL_VERSION = "2025-06-18"

export const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: "bench", version: "1.0.0" } }
}

export const PING = { method: "ping" }

export const echoCall = (text: string) => ({ method: "tools/call", params: { name: "echo", arguments: { text } } })

const TEXT = "a text of some length"

export const ECHO = echoCall(TEXT)

/** How a client asks; `Child.ask`, or something that has a server ask itself. */
export type Ask = (method: string, params?: object) => Promise<unknown>

/** Opens a session, and makes sure that the server answers as it should. */
export const openSession = async (name: string, ask: Ask) => {
  const opened = await ask(INITIALIZE.method, INITIALIZE.params)
  const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null
  deepStrictEqual(
    isRecord(opened) ? opened.protocolVersion : opened,
    PROTOCOL_VERSION,
    `${name} does not open a session`
  )
  deepStrictEqual(await ask(PING.method), {}, `${name} does not answer ping`)
  deepStrictEqual(
    await ask(ECHO.method, ECHO.params),
    { content: [{ type: "text", text: TEXT }] },
    `${name} does not call its tool`
  )
}

/** The same for a server on a pipe. */
export const openSessionWith = async (child: Child) => {
  await openSession(child.name, async (method, params) => {
    const { error, result } = await child.ask(method, params)
    if (method === INITIALIZE.method) child.notify("notifications/initialized")
    return result ?? error
  })
}

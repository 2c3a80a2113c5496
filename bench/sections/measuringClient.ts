/**
 * Clients that measure themselves, each in a process of its own: a line of JSON says what to do, and one what it took.
 */
import type { ChildProcessByStdio } from "node:child_process"
import { spawn } from "node:child_process"
import type { Interface } from "node:readline"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"

export interface Client<Load, Measured> {
  readonly name: string
  readonly ask: (load: Load) => Promise<Measured>
  readonly stop: () => Promise<void>
}

/** The path of a file, as this folder sees it. */
export const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** Starts a client with Node. */
export const startClient = <Load, Measured>(name: string, args: ReadonlyArray<string>): Client<Load, Measured> => {
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(process.execPath, args, {
    stdio: ["pipe", "pipe", "inherit"]
  })
  const lines: Interface = createInterface({ input: child.stdout })
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
  return {
    name,
    ask: async (load) => {
      const answer = new Promise<string>((resolve) => lines.once("line", resolve))
      child.stdin.write(`${JSON.stringify(load)}\n`)
      const line = await Promise.race([answer, ended])
      if (typeof line !== "string") throw new Error(`the client ${name} ended with ${line}`)
      // written by the client as the section wants it
      return JSON.parse(line) as Measured
    },
    stop: async () => {
      child.stdin.end()
      await ended
    }
  }
}

// Runs a server on pipes of its own and writes into a folder, once it has ended, all that went through them and how it
// ended. To the client it looks like the server itself: the end of the input, signals and the exit code are passed on.
//
//     node recorder.ts folder command [args…]
import { Buffer } from "node:buffer"
import { spawn } from "node:child_process"
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const [folder = "", command = "", ...args] = process.argv.slice(2)
const started = Date.now()
const seen: Record<"stdin" | "stdout" | "stderr", Array<Buffer>> = { stdin: [], stdout: [], stderr: [] }
let terminated = false

const server = spawn(command, args, { stdio: "pipe" })

process.stdin.on("data", (chunk: Buffer) => {
  seen.stdin.push(chunk)
  server.stdin.write(chunk)
})
process.stdin.on("end", () => server.stdin.end())
for (const name of ["stdout", "stderr"] as const) {
  server[name].on("data", (chunk: Buffer) => {
    seen[name].push(chunk)
    process[name].write(chunk)
  })
}
// a pipe whose other end is gone: how the processes end tells the rest
for (const stream of [process.stdin, process.stdout, process.stderr, server.stdin]) stream.on("error", () => {})
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
  process.on(signal, () => {
    terminated = true
    server.kill(signal)
  })
}
server.on("close", (code, signal) => {
  const text = (name: keyof typeof seen) => Buffer.concat(seen[name]).toString("utf8")
  const recording = {
    started,
    stdin: text("stdin"),
    stdout: text("stdout"),
    stderr: text("stderr"),
    ended: { code, signal, terminated }
  }
  const file = join(folder, `${process.pid}.json`)
  writeFileSync(`${file}.part`, JSON.stringify(recording))
  renameSync(`${file}.part`, file)
  process.exit(code ?? 1)
})

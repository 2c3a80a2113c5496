/**
 * What a process has used: processor time and memory, as Linux tells them. On other systems there is nothing to tell,
 * and the figures that need it are left out.
 */
import { readFileSync } from "node:fs"

// USER_HZ, the same on every architecture that Node runs on
const TICK_MICROS = 10_000

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Processor time of a process and its threads so far, in microseconds. */
export const cpuMicros = (pid: number): number | undefined => {
  // the name of the program, in parentheses, may hold spaces
  const fields = read(`/proc/${pid}/stat`)?.split(") ")[1]?.split(" ")
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) * TICK_MICROS
}

/** Resident memory of a process in bytes: now, and at its highest. */
export interface Memory {
  readonly now: number
  readonly peak: number
}

export const memory = (pid: number): Memory | undefined => {
  const status = read(`/proc/${pid}/status`)
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status ?? "")?.[1]) * 1024
  const found = { now: bytes("VmRSS"), peak: bytes("VmHWM") }
  return Number.isNaN(found.now) ? undefined : found
}

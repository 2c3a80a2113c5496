import { existsSync } from "node:fs"

/** Says what to do when the clients are not there, before each of the tests says that it cannot load one. */
export const setup = () => {
  if (existsSync(new URL("node_modules/@modelcontextprotocol/inspector", import.meta.url))) return
  throw new Error("The clients are not installed: run npm ci --prefix test/peers/clients")
}

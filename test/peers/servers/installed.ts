import { existsSync } from "node:fs"

/** Says what to do when the servers are not there, before each of the tests says that its server has ended. */
export const setup = () => {
  if (existsSync(new URL("node_modules/@modelcontextprotocol/server", import.meta.url))) return
  throw new Error("The servers are not installed: run npm ci --prefix test/peers/servers")
}

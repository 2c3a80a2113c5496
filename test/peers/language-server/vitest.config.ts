import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

if (!existsSync(new URL("node_modules/typescript-language-server", import.meta.url))) {
  throw new Error("The language server is not installed: run npm ci --prefix test/peers/language-server")
}

// From the root of the project, with its vitest:
//
//     npm ci --prefix test/peers/language-server   (once)
//     npx vitest run --config test/peers/language-server/vitest.config.ts
export default defineConfig({
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  test: {
    include: ["test/peers/language-server/*.test.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})

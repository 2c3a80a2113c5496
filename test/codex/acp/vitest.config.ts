import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

if (!existsSync(new URL("node_modules/@agentclientprotocol/codex-acp", import.meta.url))) {
  throw new Error("codex-acp is not installed: run npm ci --prefix test/codex/acp")
}

// From the root of the project, with its vitest:
//
//     npm ci --prefix test/codex/acp   (once, 460 MB: it brings a codex of its own)
//     npx vitest run --config test/codex/acp/vitest.config.ts
export default defineConfig({
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  ssr: { resolve: { conditions: ["effect-stdio-source", ...defaultServerConditions] } },
  test: {
    include: ["test/codex/acp/*.test.ts"],
    pool: "forks",
    // Fails the run when a test has left a process behind.
    globalSetup: ["test/utils/processesLeft.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})

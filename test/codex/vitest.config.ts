import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

if (!existsSync(new URL("node_modules/@openai/codex", import.meta.url))) {
  throw new Error("Codex is not installed: run npm ci --prefix test/codex")
}

// From the root of the project, with its vitest:
//
//     npm ci --prefix test/codex   (once, 450 MB)
//     npx vitest run --config test/codex/vitest.config.ts
export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  ssr: { resolve: { conditions: ["effect-stdio-source", ...defaultServerConditions] } },
  test: {
    include: ["test/codex/*.test.ts"],
    pool: "forks",
    // Fails the run when a test has left a process behind.
    globalSetup: ["test/utils/processesLeft.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Each test starts processes of its own; more workers would only compete with them.
    maxWorkers: 2
  }
})

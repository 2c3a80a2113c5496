import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// From the root of the project, with its vitest:
//
//     npm ci --prefix test/peers/clients   (once)
//     npx vitest run --config test/peers/clients/vitest.config.ts
export default defineConfig({
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  test: {
    include: ["test/peers/clients/*.test.ts"],
    globalSetup: "test/peers/clients/installed.ts",
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Each test starts processes of its own; more workers would only compete with them.
    maxWorkers: 2
  }
})

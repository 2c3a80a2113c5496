import { fileURLToPath } from "node:url"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

// From the root of the project, with its vitest:
//
//     npm ci --prefix test/peers/servers   (once)
//     npx vitest run --config test/peers/servers/vitest.config.ts
export default defineConfig({
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  // `effect-stdio/Server` means src/Server.ts here, so that no build is needed.
  ssr: { resolve: { conditions: ["effect-stdio-source", ...defaultServerConditions] } },
  test: {
    include: ["test/peers/servers/*.test.ts"],
    globalSetup: "test/peers/servers/installed.ts",
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Each test starts processes of its own; more workers would only compete with them.
    maxWorkers: 2
  }
})

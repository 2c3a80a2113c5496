import { fileURLToPath } from "node:url"
import { defaultServerConditions } from "vite"
import { defineConfig } from "vitest/config"

// A package of its own, since it brings a binary for every system: 100 MB. From the root of the project:
//
//     npm ci --prefix test/peers/excel-server   (once)
//     npx vitest run --config test/peers/excel-server/vitest.config.ts
export default defineConfig({
  root: fileURLToPath(new URL("../../..", import.meta.url)),
  // `effect-stdio/Server` means src/Server.ts here, so that no build is needed.
  ssr: { resolve: { conditions: ["effect-stdio-source", ...defaultServerConditions] } },
  test: {
    include: ["test/peers/excel-server/*.test.ts"],
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 30_000
  }
})

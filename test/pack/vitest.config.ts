import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// Packs the project and installs what was packed, which needs the registry or npm's cache of it: `npm run pack:check`.
export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    include: ["test/pack/*.test.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 180_000
  }
})

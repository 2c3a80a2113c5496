import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// What `npm run test:matrix` runs for each runtime, which TEST_RUNTIME names. By hand, after `npm run build`:
//
//     npx vitest run --config test/matrix/vitest.config.ts
const report = process.env["TEST_REPORT"]

export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    include: ["test/matrix/*.test.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})

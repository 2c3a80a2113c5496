import { defaultServerConditions } from "vite"
import { defaultExclude, defineConfig } from "vitest/config"

// Set by `.ci/run`: a file that receives the results as JSON, beside the usual output.
const report = process.env["TEST_REPORT"]

export default defineConfig({
  // `effect-stdio/Server` means src/Server.ts here, so that no build is needed.
  ssr: { resolve: { conditions: ["effect-stdio-source", ...defaultServerConditions] } },
  test: {
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...defaultExclude, "test/{process,peers,pack,matrix,codex}/**"],
          // Loading Effect takes longer than most of these files run: load it once per worker, not once per file.
          pool: "threads",
          isolate: false
        }
      },
      {
        extends: true,
        test: {
          name: "process",
          // Folders below test/peers are packages of their own, with their own installation.
          include: ["test/process/**/*.test.ts", "test/peers/*.test.ts"],
          pool: "forks",
          // Fails the run when a test has left a process behind.
          globalSetup: ["test/utils/processesLeft.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Each test starts processes of its own; more workers would only compete with them.
          maxWorkers: 2,
          // After the unit tests, so that neither takes the processors from the other.
          sequence: { groupOrder: 1 }
        }
      }
    ]
  }
})

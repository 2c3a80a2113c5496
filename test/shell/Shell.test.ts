// What is said on machines without a bash that can be used.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { System } from "../../examples/shell/findBash.ts"
import * as Shell from "../../examples/shell/Shell.ts"
import * as Project from "../utils/project.ts"

const services = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)

const open = Effect.fnUntraced(function*(system: Partial<System>) {
  const { folder } = yield* Project.make
  return yield* Shell.make({
    root: folder,
    system: { platform: "linux", environment: {}, exists: () => "nothing", where: () => [], ...system }
  })
})

const run = (shell: Shell.Shell["Service"]) => shell.run({ command: "true" }, () => Effect.void)

describe("the shell without a bash", () => {
  it.effect("says what to install, on each system", () =>
    Effect.gen(function*() {
      const hints = [
        ["win32", /Install Git for Windows/],
        ["darwin", /brew install bash/],
        ["linux", /apt-get install bash/],
        ["freebsd", /Install it\. If it is in an unusual place, set EFFECT_STDIO_BASH/]
      ] as const
      for (const [platform, hint] of hints) {
        const shell = yield* open({ platform })
        const { message } = yield* Effect.flip(run(shell))
        assert.match(message, /^There is no bash on this machine\./)
        assert.match(message, hint)
        assert.strictEqual((yield* Effect.flip(shell.whichBash)).message, message)
        const { bash, problem, running, tried, version } = yield* shell.diagnose
        assert.deepStrictEqual({ bash, problem, running, version }, {
          bash: null,
          problem: message,
          running: 0,
          version: null
        })
        assert.strictEqual(tried.length, platform === "win32" ? 0 : 5)
      }
    }).pipe(Effect.provide(services)))

  it.effect("names the variable that is wrong, its value and the reason", () =>
    Effect.gen(function*() {
      const shell = yield* open({
        platform: "win32",
        environment: { GIT_BASH_PATH: "C:\\Windows\\System32\\bash.exe", ProgramFiles: "C:\\Program Files" },
        exists: () => "program"
      })
      assert.strictEqual(
        (yield* Effect.flip(run(shell))).message,
        "GIT_BASH_PATH in the server's environment is \"C:\\\\Windows\\\\System32\\\\bash.exe\", which is the launcher of " +
          "WSL, not Git Bash. Correct the variable or remove it, and start the server again."
      )
    }).pipe(Effect.provide(services)))

  it.effect("says how long a command may be", () =>
    Effect.gen(function*() {
      for (const [platform, maxBytes] of [["win32", 30_000], ["linux", 100_000]] as const) {
        const shell = yield* open({ platform })
        const of = (length: number) =>
          Effect.map(Effect.flip(shell.run({ command: "x".repeat(length) }, () => Effect.void)), String)
        assert.include(yield* of(maxBytes + 1), `at most ${maxBytes} can be given to bash`)
        assert.include(yield* of(maxBytes), "There is no bash")
      }
    }).pipe(Effect.provide(services)))
})

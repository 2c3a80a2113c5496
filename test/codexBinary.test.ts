/**
 * Where codex is looked for, on systems that exist only in the test.
 */
import { assert, describe, it } from "@effect/vitest"
import { delimiter, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { findCodex, type System, system } from "../src/internal/adapters/codexBinary.ts"

const APP = pathToFileURL("/app/package.json").href
const LIBRARY = pathToFileURL("/library/src/codexBinary.ts").href

/** A system with these files and packages, each package in a `node_modules` of its own dependents. */
const make = (options: {
  readonly platform?: string
  readonly arch?: string
  readonly env?: System["env"]
  /** The folder of each package, by who asks for it. */
  readonly packages?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly files?: ReadonlyArray<string>
}): System & { readonly asked: ReadonlyArray<string> } => {
  const files = new Set(options.files)
  const asked: Array<string> = []
  return {
    asked,
    platform: options.platform ?? "linux",
    arch: options.arch ?? "x64",
    env: options.env ?? {},
    from: [APP, LIBRARY],
    packageFolder: (name, from) => {
      asked.push(`${name} from ${fileURLToPath(from)}`)
      return options.packages?.[fileURLToPath(from)]?.[name]
    },
    files: (folder) => [
      ...new Set(
        [...files].filter((file) => file.startsWith(join(folder, "/")))
          .map((file) => file.slice(folder.length + 1).split("/")[0] ?? "")
      )
    ],
    isFile: (path) => files.has(path)
  }
}

const LAUNCHER = "/app/node_modules/@openai/codex"
const NATIVE = "/app/node_modules/@openai/codex-linux-x64"
const BINARY = `${NATIVE}/vendor/x86_64-unknown-linux-musl/bin/codex`

const installed = {
  packages: {
    "/app/package.json": { "@openai/codex": LAUNCHER },
    [`${LAUNCHER}/package.json`]: { "@openai/codex-linux-x64": NATIVE }
  },
  files: [`${LAUNCHER}/bin/codex.js`, BINARY, `${NATIVE}/vendor/x86_64-unknown-linux-musl/bin/rg`]
}

const env = { CODEX_PATH: "/opt/codex", PATH: ["/bin", "/usr/bin"].join(delimiter) }

describe("codex", () => {
  it("is the native program of the application's package, which its launcher depends on", () => {
    const system = make({ ...installed, env, files: [...installed.files, "/opt/codex", "/usr/bin/codex"] })
    assert.strictEqual(findCodex(system), BINARY)
    assert.deepStrictEqual(system.asked, [
      "@openai/codex from /app/package.json",
      `@openai/codex-linux-x64 from ${LAUNCHER}/package.json`
    ])
  })

  it("is that of this library's package, where the application has none", () => {
    const launcher = "/library/node_modules/@openai/codex"
    const native = `${launcher}/node_modules/@openai/codex-linux-x64`
    const binary = `${native}/vendor/x86_64-unknown-linux-musl/bin/codex`
    assert.strictEqual(
      findCodex(make({
        env,
        packages: {
          "/library/src/codexBinary.ts": { "@openai/codex": launcher },
          [`${launcher}/package.json`]: { "@openai/codex-linux-x64": native }
        },
        files: [binary]
      })),
      binary
    )
  })

  it("is the application's before the library's", () => {
    assert.strictEqual(
      findCodex(make({
        packages: {
          ...installed.packages,
          "/library/src/codexBinary.ts": { "@openai/codex": "/library/node_modules/@openai/codex" },
          "/library/node_modules/@openai/codex/package.json": { "@openai/codex-linux-x64": "/other" }
        },
        files: [...installed.files, "/other/vendor/x/bin/codex"]
      })),
      BINARY
    )
  })

  for (
    const [platform, arch, name, target] of [
      ["linux", "arm64", "codex", "aarch64-unknown-linux-musl"],
      ["darwin", "x64", "codex", "x86_64-apple-darwin"],
      ["darwin", "arm64", "codex", "aarch64-apple-darwin"],
      ["win32", "x64", "codex.exe", "x86_64-pc-windows-msvc"],
      ["win32", "arm64", "codex.exe", "aarch64-pc-windows-msvc"]
    ] as const
  ) {
    it(`is the program of its platform: ${platform}, ${arch}`, () => {
      const native = `/app/node_modules/@openai/codex-${platform}-${arch}`
      const binary = `${native}/vendor/${target}/bin/${name}`
      assert.strictEqual(
        findCodex(make({
          platform,
          arch,
          packages: {
            "/app/package.json": { "@openai/codex": LAUNCHER },
            [`${LAUNCHER}/package.json`]: { [`@openai/codex-${platform}-${arch}`]: native }
          },
          files: [binary]
        })),
        binary
      )
    })
  }

  for (
    const [why, packages, files] of [
      ["there is no package", {}, []],
      ["the package of the platform was left out", { "/app/package.json": { "@openai/codex": LAUNCHER } }, [
        `${LAUNCHER}/bin/codex.js`
      ]],
      ["the package has no program in it", installed.packages, [
        `${NATIVE}/vendor/x86_64-unknown-linux-musl/bin/rg`
      ]],
      ["the package has no such folder", installed.packages, []]
    ] as const
  ) {
    it(`is what CODEX_PATH says, then what PATH finds, when ${why}`, () => {
      const at = (env: System["env"], more: ReadonlyArray<string> = []) =>
        findCodex(make({ env, packages, files: [...files, ...more] }))
      assert.strictEqual(at(env, ["/opt/codex", "/usr/bin/codex"]), "/opt/codex")
      // a wrong one is no reason to take another: starting it says that there is none
      assert.strictEqual(at(env, ["/usr/bin/codex"]), "/opt/codex")
      assert.strictEqual(at({ ...env, CODEX_PATH: "" }, ["/usr/bin/codex"]), "/usr/bin/codex")
      assert.strictEqual(at({ PATH: env.PATH }, ["/usr/bin/codex", "/bin/codex"]), "/bin/codex")
      assert.isUndefined(at({ PATH: env.PATH }))
      assert.isUndefined(at({}))
    })
  }

  it("is not what lies in the current folder because PATH has an empty part", () => {
    assert.isUndefined(findCodex(make({ env: { PATH: `${delimiter}${delimiter}` }, files: ["codex", "/codex"] })))
  })

  it("is not what lies in a folder that PATH names relative to the current one", () => {
    assert.isUndefined(
      findCodex(make({ env: { PATH: `.${delimiter}node_modules` }, files: ["codex", "node_modules/codex"] }))
    )
  })

  it("is found on Windows under whatever name PATH has there, as a program", () => {
    for (const name of ["PATH", "Path", "path"]) {
      assert.strictEqual(
        findCodex(make({
          platform: "win32",
          env: { [name]: "/tools" },
          files: ["/tools/codex", "/tools/codex.cmd", "/tools/codex.exe"]
        })),
        "/tools/codex.exe"
      )
    }
    assert.isUndefined(findCodex(make({ platform: "win32", env: { Path: "/tools" }, files: ["/tools/codex"] })))
  })

  it("is looked for in the system as it is", () => {
    const real = system()
    assert.strictEqual(real.platform, process.platform)
    assert.strictEqual(real.arch, process.arch)
    assert.isTrue(real.isFile(fileURLToPath(import.meta.url)))
    assert.isFalse(real.isFile(import.meta.dirname))
    assert.isFalse(real.isFile("/no/such/file"))
    assert.deepStrictEqual(real.files("/no/such/folder"), [])
    assert.include(real.files(import.meta.dirname), "codexBinary.test.ts")
    const [from = ""] = real.from
    assert.isUndefined(real.packageFolder("no-such-package", from))
    assert.isTrue(real.packageFolder("effect", from)?.endsWith(join("node_modules", "effect")))
  })
})

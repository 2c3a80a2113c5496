/**
 * The package as others get it: packed, checked by the tools that know what goes wrong in packages, and installed into
 * empty projects.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import * as Child from "../utils/child.ts"
import { programs, read } from "../utils/shown.ts"

const root = Child.path("")
const readme = read("README.md")

/** The files of a folder and those below it, by their paths from there, in order. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join("/"))
    .toSorted()

const sources = filesIn(path.join(root, "src"))

/** What may be imported besides the barrel: each file of src but those below. */
const subpaths = sources
  .filter((file) => !file.includes("/") && file !== "index.ts")
  .map((file) => file.replace(/\.ts$/, ""))

interface Manifest {
  readonly version: string
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}
const manifest = JSON.parse(read("package.json")) as Manifest

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end in a folder. */
const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly input?: string }
): Promise<Run> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, stdio: "pipe" })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    child.stdin.on("error", () => {})
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, stdout, stderr }))
    child.stdin.end(options.input ?? "")
  })

const node = (cwd: string, args: ReadonlyArray<string>, input?: string) =>
  run(process.execPath, args, input === undefined ? { cwd } : { cwd, input })

const succeed = async (running: Promise<Run>): Promise<Run> => {
  const done = await running
  assert.strictEqual(done.code, 0, `${done.stdout}\n${done.stderr}`)
  return done
}

/** A development tool of this project. */
const tool = (file: string) => path.join(root, "node_modules", file)

let folder = ""
let tarball = ""
/** A project with the package and its peers. */
let project = ""
/** A project with the package and `effect` alone. */
let core = ""

/** Makes an empty project of ES modules and installs the package and these of its peers, as its README has it. */
const install = async (name: string, peers: ReadonlyArray<string>): Promise<string> => {
  const cwd = path.join(folder, name)
  fs.mkdirSync(cwd)
  fs.writeFileSync(path.join(cwd, "package.json"), JSON.stringify({ name, private: true, type: "module" }))
  // the versions that the project is developed with: what the registry has next must not fail this test
  const versions = peers.map((peer) => `${peer}@${manifest.devDependencies[peer] ?? ""}`)
  await succeed(run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball, ...versions], { cwd }))
  return cwd
}

/** A program that the README shows. */
const shown = (file: string): string => {
  const found = programs(readme).find((program) => program.file === file)
  assert(found !== undefined, `the README does not show ${file}`)
  return found.program
}

const put = (cwd: string, file: string, text: string) => fs.writeFileSync(path.join(cwd, file), text)

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(tmpdir(), "effect-stdio-pack-"))
  // builds first
  await succeed(run("npm", ["pack", "--pack-destination", folder], { cwd: root }))
  tarball = path.join(folder, `effect-stdio-${manifest.version}.tgz`)
  ;[project, core] = await Promise.all([
    install("project", ["effect", "@effect/platform-node"]),
    install("core", ["effect"])
  ])
})

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

describe("the package", () => {
  it("holds the sources, what was built of them, and the documents, and nothing else", () => {
    const expected = [
      "AGENTS.md",
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "package.json",
      ...filesIn(path.join(root, "docs")).map((file) => `docs/${file}`),
      ...sources.map((file) => `src/${file}`),
      ...sources.flatMap((file) =>
        [".js", ".js.map", ".d.ts", ".d.ts.map"].map((extension) => `dist/${file.replace(/\.ts$/, extension)}`)
      )
    ]
    assert.deepStrictEqual(filesIn(path.join(project, "node_modules/effect-stdio")), expected.toSorted())
  })

  it("has maps that lead to its sources", () => {
    const installed = path.join(project, "node_modules/effect-stdio")
    const maps = filesIn(installed).filter((file) => file.endsWith(".map"))
    const led = maps.map((file) => {
      const map = JSON.parse(fs.readFileSync(path.join(installed, file), "utf8")) as {
        readonly sources: ReadonlyArray<string>
      }
      return map.sources.map((source) => path.relative(installed, path.resolve(installed, path.dirname(file), source)))
    })
    assert.deepStrictEqual(
      led,
      maps.map((file) => [file.replace(/^dist/, "src").replace(/(\.d\.ts|\.js)\.map$/, ".ts")])
    )
  })

  it("has documents whose links lead to files of it", () => {
    const installed = path.join(project, "node_modules/effect-stdio")
    const pages = filesIn(installed).filter((file) => file.endsWith(".md"))
    const broken = pages.flatMap((page) =>
      Array.from(
        fs.readFileSync(path.join(installed, page), "utf8").matchAll(/\]\(([^)\s:#]+)(#[^)]*)?\)/g),
        ([, target = ""]) => target
      )
        .filter((target) => !fs.existsSync(path.resolve(installed, path.dirname(page), target)))
        .map((target) => `${page}: ${target}`)
    )
    assert.deepStrictEqual(broken, [])
  })

  it("leaves publint nothing to say", async () => {
    const { stdout } = await succeed(node(root, [tool("publint/src/cli.js"), "--strict", tarball]))
    assert.include(stdout, "All good!")
  })

  it("has types that resolve for every subpath, as attw sees it", async () => {
    const entrypoints = [".", ...subpaths.map((name) => `./${name}`)]
    await succeed(node(root, [
      tool("@arethetypeswrong/cli/dist/index.js"),
      tarball,
      "--profile",
      "esm-only",
      "--entrypoints",
      ...entrypoints
    ]))
  })
})

describe("in a project with its peers", () => {
  const request = { jsonrpc: "2.0", id: 1, method: "greet", params: { name: "Ada" } }

  for (const file of ["server.js", "server.ts"]) {
    it.live(`the server of the README answers, as ${file}, and ends with its input`, () =>
      Effect.gen(function*() {
        put(project, file, shown("examples/hello/server.ts"))
        const child = yield* Child.start(process.execPath, [path.join(project, file)])
        assert.deepStrictEqual(yield* child.call(request.method, request.params), {
          jsonrpc: "2.0",
          id: "call-1",
          result: "Hello, Ada!"
        })
        yield* child.endInput
        assert.deepStrictEqual(yield* child.closed, { code: 0, signal: null })
        assert.strictEqual(child.stderr(), "")
      }))
  }

  it.live("the MCP server of the README answers", () =>
    Effect.gen(function*() {
      put(project, "mcp.js", shown("examples/hello/mcp.ts"))
      const child = yield* Child.start(process.execPath, [path.join(project, "mcp.js")])
      yield* child.call("initialize", {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "test", version: "1" }
      })
      const { result } = yield* child.call("tools/call", { name: "add", arguments: { a: 2, b: 3 } })
      assert.deepInclude(result, { structuredContent: { sum: 5 } })
    }))

  it("the client of the README starts the server and calls it", async () => {
    put(project, "server.ts", shown("examples/hello/server.ts"))
    put(project, "client.ts", shown("examples/hello/client.ts"))
    const { stdout } = await succeed(node(project, ["client.ts"]))
    assert.strictEqual(stdout, "Hello, Ada!\nexit code 0\n")
  })

  it("the guard can be loaded before a program", async () => {
    put(project, "prints.js", "console.log('a banner')")
    const { stderr, stdout } = await succeed(node(project, ["--import", "effect-stdio/stdout-guard", "prints.js"]))
    assert.deepStrictEqual({ stderr, stdout }, { stderr: "a banner\n", stdout: "" })
  })

  it("every subpath can be imported", async () => {
    put(project, "imports.js", importAll(["effect-stdio", ...subpaths.map((name) => `effect-stdio/${name}`)]))
    await succeed(node(project, ["imports.js"]))
  })

  for (const hidden of ["internal/serving", "internal/adapters/stdoutGuard", "index"]) {
    it(`effect-stdio/${hidden} is refused`, async () => {
      put(project, "hidden.js", `import "effect-stdio/${hidden}"`)
      const { code, stderr } = await node(project, ["hidden.js"])
      assert.strictEqual(code, 1)
      assert.include(stderr, "ERR_PACKAGE_PATH_NOT_EXPORTED")
    })
  }

  for (const [module, moduleResolution] of [["NodeNext", "NodeNext"], ["ESNext", "Bundler"]] as const) {
    it(`a strict program that uses all of it type-checks, the declarations too (${moduleResolution})`, async () => {
      for (const name of ["server", "mcp", "client"]) put(project, `${name}.ts`, shown(`examples/hello/${name}.ts`))
      put(project, "all.ts", consumer)
      put(
        project,
        "tsconfig.json",
        JSON.stringify({
          compilerOptions: {
            target: "ES2023",
            module,
            moduleResolution,
            types: ["node"],
            strict: true,
            exactOptionalPropertyTypes: true,
            noUncheckedIndexedAccess: true,
            skipLibCheck: false,
            noEmit: true
          },
          files: ["server.ts", "mcp.ts", "client.ts", "all.ts"]
        })
      )
      await succeed(node(project, [tool("typescript/bin/tsc"), "-p", project, "--pretty", "false"]))
    })
  }
})

describe("in a project with effect alone", () => {
  const needPlatform = ["effect-stdio", "effect-stdio/StdioRuntime"]

  it("every module but the one that owns a process can be imported", async () => {
    assert.isFalse(fs.existsSync(path.join(core, "node_modules/@effect")))
    const names = subpaths.map((name) => `effect-stdio/${name}`).filter((name) => !needPlatform.includes(name))
    put(core, "imports.js", importAll(names))
    await succeed(node(core, ["imports.js"]))
  })

  it.each(needPlatform)("%s says what is missing", async (name) => {
    put(core, "missing.js", `import "${name}"`)
    const { stderr } = await node(core, ["missing.js"])
    assert.match(stderr, /Cannot find package '@effect\/platform-node'/)
  })

  it("two peers call each other", async () => {
    put(core, "peers.js", peers)
    const { stdout } = await succeed(node(core, ["peers.js"]))
    assert.strictEqual(stdout, "Hello, Ada!\n")
  })
})

/** A program that imports all of these. */
const importAll = (names: ReadonlyArray<string>): string => names.map((name) => `import "${name}"\n`).join("")

const consumer = `import * as All from "effect-stdio"
${
  subpaths.map((name) =>
    name === "stdout-guard" ? "import \"effect-stdio/stdout-guard\"" : `import * as ${name} from "effect-stdio/${name}"`
  ).join("\n")
}

export { All }
export const modules = { ${subpaths.filter((name) => name !== "stdout-guard").join(", ")} }

const drain: All.Server.Options = { drainTimeout: "5 seconds" }
// @ts-expect-error a wrong option is seen: the declarations are not any
const wrong: Server.Options = { drainTimeout: true }
export const options = [drain, wrong]
`

const peers = `import * as Peer from "effect-stdio/Peer"
import * as Router from "effect-stdio/Router"
import * as Transport from "effect-stdio/Transport"
import * as Effect from "effect/Effect"

const router = Router.rawRequest(Router.empty, "greet", (name) => Effect.succeed("Hello, " + name[0] + "!"))

const program = Effect.gen(function*() {
  const [ours, theirs] = yield* Transport.makePair()
  yield* Peer.make(theirs, { router })
  const peer = yield* Peer.make(ours, { ownFraming: "line" })
  console.log(yield* peer.call("greet", ["Ada"]))
})

Effect.runPromise(Effect.scoped(program))
`

Child.leavesNothingBehind()

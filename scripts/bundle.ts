/**
 * Bundles a server and everything it imports into one file that Node runs as it is.
 *
 *     npm run bundle:example                      examples/hello/server.ts and examples/hello/mcp.ts
 *     npm run bundle:example -- path/to/entry.ts  any other
 *
 * The files go to `dist-examples/`, under the name of the folder and the file they were made of.
 */
import * as fs from "node:fs"
import { isBuiltin } from "node:module"
import * as path from "node:path"
import { rolldown } from "rolldown"

/** Options of {@link bundle}. */
export interface BundleOptions {
  /** Writes a source map beside the file. @default false */
  readonly sourcemap?: boolean | undefined
  /** Shortens names and leaves out comments and spaces. @default true */
  readonly minify?: boolean | undefined
}

/** Bundles a program into one ES module for Node that imports nothing but Node's own modules. */
export const bundle = async (entry: string, outFile: string, options: BundleOptions = {}): Promise<void> => {
  const build = await rolldown({
    input: entry,
    platform: "node",
    // inside this project `effect-stdio/Server` means src/Server.ts, so that no build is needed
    resolve: { conditionNames: ["effect-stdio-source", "node", "import", "default"] },
    onLog: (level, log, report) => {
      // what was not found is told below
      if (log.code !== "UNRESOLVED_IMPORT") report(level, log)
    }
  })
  try {
    const { output } = await build.generate({
      file: outFile,
      format: "esm",
      minify: options.minify ?? true,
      sourcemap: options.sourcemap ?? false,
      // a dynamic import would become a second file
      codeSplitting: false
    })
    const [{ dynamicImports, fileName, imports }] = output
    const missing = [...imports, ...dynamicImports].filter((name) => name !== fileName && !isBuiltin(name))
    // whoever gets the file alone does not have them
    if (missing.length > 0) throw new Error(`${entry} cannot be one file: it needs ${missing.join(", ")}`)
    fs.mkdirSync(path.dirname(outFile), { recursive: true })
    for (const part of output) {
      fs.writeFileSync(path.join(path.dirname(outFile), part.fileName), part.type === "chunk" ? part.code : part.source)
    }
  } finally {
    await build.close()
  }
}

const root = path.resolve(import.meta.dirname, "..")

const EXAMPLES = ["examples/hello/server.ts", "examples/hello/mcp.ts"]

/** Where the bundle of an entry of this project goes: `dist-examples/hello-server.mjs` for `examples/hello/server.ts`. */
export const outFileOf = (entry: string): string => {
  const absolute = path.resolve(root, entry)
  const name = `${path.basename(path.dirname(absolute))}-${path.basename(absolute).replace(/\.[^.]+$/, "")}.mjs`
  return path.join(root, "dist-examples", name)
}

if (process.argv[1] === import.meta.filename) {
  const entries = process.argv.slice(2)
  for (const entry of entries.length === 0 ? EXAMPLES.map((name) => path.join(root, name)) : entries) {
    const outFile = outFileOf(path.resolve(entry))
    await bundle(path.resolve(entry), outFile)
    const size = (fs.statSync(outFile).size / 1_024).toFixed(0)
    console.log(`${path.relative(process.cwd(), outFile)}  ${size} KiB`)
  }
}

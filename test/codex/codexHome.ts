/**
 * Where the Codex app server is, how it is started, and the folder in which it keeps its settings and threads.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** An MCP server that codex starts for each thread. It gets no more of our environment than HOME and PATH. */
export interface McpServer {
  readonly command: string
  readonly args?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
}

export interface Options {
  /** The address of the model server, with its `/v1`. */
  readonly modelUrl: string
  /** A model that codex knows gets more tools. @default "fake-model", which it does not know */
  readonly model?: string | undefined
  /** @default none */
  readonly mcpServers?: Readonly<Record<string, McpServer>> | undefined
  /** Whether the thoughts of the model are told beside their summary. @default false */
  readonly showRawReasoning?: boolean | undefined
  /** More of config.toml, put before its tables. @default nothing */
  readonly config?: string | undefined
}

/** Its arguments: without what looks for the network at the start. */
export const args: ReadonlyArray<string> = ["app-server", "--disable", "plugins", "--disable", "apps"]

/** The path of the native program: its launcher would be one process more on some systems. */
export const binary = (): string => {
  const name = `codex-${process.platform}-${process.arch}`
  const vendor = fileURLToPath(new URL(`node_modules/@openai/${name}/vendor`, import.meta.url))
  const program = process.platform === "win32" ? "codex.exe" : "codex"
  const found = existsSync(vendor)
    ? readdirSync(vendor).map((target) => join(vendor, target, "bin", program)).find((path) => existsSync(path))
    : undefined
  if (found === undefined) throw new Error(`Codex (@openai/${name}) is not installed: run npm ci --prefix test/codex`)
  return found
}

/**
 * Makes the folder for `CODEX_HOME`. It is removed with the scope: start the process in the same scope or in one inside of
 * it, since codex writes there until it ends.
 */
export const make = (options: Options): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), "codex-home-")))
      writeFileSync(join(folder, "config.toml"), toToml(options))
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, maxRetries: 5 }))
  )

const toToml = (options: Options): string =>
  [
    `model = ${quote(options.model ?? "fake-model")}`,
    `model_provider = "fake"`,
    `show_raw_agent_reasoning = ${options.showRawReasoning ?? false}`,
    options.config ?? "",
    "[model_providers.fake]",
    `name = "fake"`,
    `base_url = ${quote(options.modelUrl)}`,
    `wire_api = "responses"`,
    "requires_openai_auth = false",
    "request_max_retries = 1",
    "stream_max_retries = 1",
    ...Object.entries(options.mcpServers ?? {}).flatMap(([name, server]) => mcpServer(name, server)),
    ""
  ].join("\n")

const mcpServer = (name: string, { args = [], command, env = {} }: McpServer): ReadonlyArray<string> => [
  `[mcp_servers.${quote(name)}]`,
  `command = ${quote(command)}`,
  `args = [${args.map(quote).join(", ")}]`,
  `env = { ${Object.entries(env).map(([key, value]) => `${quote(key)} = ${quote(value)}`).join(", ")} }`
]

/** A string of JSON is one of TOML as well, but for DEL. */
const quote = (text: string): string => JSON.stringify(text).replaceAll("\u007f", "\\u007f")

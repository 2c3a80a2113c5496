/**
 * Which language server knows which files: a small table, which a configuration file extends.
 *
 * @since 0.1.0
 */

/**
 * A language server: how it is started, and what it knows.
 *
 * @category models
 * @since 0.1.0
 */
export interface Language {
  /** By which results and the configuration name it. */
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Endings of files, in lower case, with the name of the language that the server expects. */
  readonly languages: Readonly<Record<string, string>>
  /** A sentence that says what to install. */
  readonly install: string
  /** What `initialize` gives the server. @default nothing */
  readonly initializationOptions?: unknown
  /** What `workspace/configuration` gives it, by section. @default nothing */
  readonly settings?: Readonly<Record<string, unknown>> | undefined
  /** Variables of its environment, over ours. @default none */
  readonly env?: Readonly<Record<string, string>> | undefined
}

const npm = (packages: string): string => `Install it with: npm install --global ${packages}`

/**
 * The language servers that are known without a configuration.
 *
 * @category constants
 * @since 0.1.0
 */
export const table: ReadonlyArray<Language> = [
  {
    name: "typescript",
    command: "typescript-language-server",
    args: ["--stdio"],
    languages: {
      ".ts": "typescript",
      ".mts": "typescript",
      ".cts": "typescript",
      ".tsx": "typescriptreact",
      ".js": "javascript",
      ".mjs": "javascript",
      ".cjs": "javascript",
      ".jsx": "javascriptreact"
    },
    install: npm("typescript-language-server typescript"),
    initializationOptions: {
      // downloads nothing on its own
      disableAutomaticTypingAcquisition: true,
      // it would change the paths of imports and not rename the file
      preferences: { allowRenameOfImportPath: false },
      tsserver: {
        // hears of changed files from us, before it is asked, and not at some later time from the system
        useClientFileWatcher: true,
        // waits until the project is loaded: a second, hasty tsserver would answer until then, from one file alone
        useSyntaxServer: "never"
      }
    }
  },
  {
    name: "python",
    command: "pyright-langserver",
    args: ["--stdio"],
    languages: { ".py": "python", ".pyi": "python" },
    install: npm("pyright")
  },
  {
    name: "rust",
    command: "rust-analyzer",
    args: [],
    languages: { ".rs": "rust" },
    install: "Install it with: rustup component add rust-analyzer"
  },
  {
    name: "go",
    command: "gopls",
    args: [],
    languages: { ".go": "go" },
    install: "Install it with: go install golang.org/x/tools/gopls@latest"
  },
  {
    name: "c",
    command: "clangd",
    args: [],
    languages: {
      ".c": "c",
      ".h": "c",
      ".cc": "cpp",
      ".cpp": "cpp",
      ".cxx": "cpp",
      ".hh": "cpp",
      ".hpp": "cpp",
      ".hxx": "cpp"
    },
    install: "Install clangd with the package manager of the system, as a part of LLVM."
  },
  {
    name: "bash",
    command: "bash-language-server",
    args: ["start"],
    languages: { ".sh": "shellscript", ".bash": "shellscript" },
    install: npm("bash-language-server")
  },
  {
    name: "json",
    command: "vscode-json-language-server",
    args: ["--stdio"],
    languages: { ".json": "json", ".jsonc": "jsonc" },
    install: npm("vscode-langservers-extracted"),
    initializationOptions: { provideFormatter: false }
  },
  {
    name: "css",
    command: "vscode-css-language-server",
    args: ["--stdio"],
    languages: { ".css": "css", ".scss": "scss", ".less": "less" },
    install: npm("vscode-langservers-extracted"),
    settings: { css: { validate: true }, scss: { validate: true }, less: { validate: true } }
  },
  {
    name: "html",
    command: "vscode-html-language-server",
    args: ["--stdio"],
    languages: { ".html": "html", ".htm": "html" },
    install: npm("vscode-langservers-extracted")
  },
  {
    name: "yaml",
    command: "yaml-language-server",
    args: ["--stdio"],
    languages: { ".yaml": "yaml", ".yml": "yaml" },
    install: npm("yaml-language-server")
  },
  {
    name: "lua",
    command: "lua-language-server",
    args: [],
    languages: { ".lua": "lua" },
    install: "Install lua-language-server with the package manager of the system."
  }
]

/**
 * The server for a file, and the name of the file's language. Where several servers know an ending, the last one counts:
 * those of a configuration come last.
 *
 * @category combinators
 * @since 0.1.0
 */
export const find = (
  languages: ReadonlyArray<Language>,
  file: string
): { readonly language: Language; readonly languageId: string } | undefined => {
  const ending = /\.[^./\\]+$/.exec(file)?.[0].toLowerCase()
  if (ending === undefined) return undefined
  for (const language of languages.toReversed()) {
    const languageId = Object.hasOwn(language.languages, ending) ? language.languages[ending] : undefined
    if (languageId !== undefined) return { language, languageId }
  }
  return undefined
}

/**
 * All endings that a server is known for.
 *
 * @category combinators
 * @since 0.1.0
 */
export const endings = (languages: ReadonlyArray<Language>): ReadonlyArray<string> => [
  ...new Set(languages.flatMap(({ languages }) => Object.keys(languages)))
]

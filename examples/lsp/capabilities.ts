/**
 * What this program tells a language server that it can do: no more than it does.
 *
 * @since 0.1.0
 */

/**
 * The `capabilities` of `initialize`.
 *
 * @category constants
 * @since 0.1.0
 */
export const clientCapabilities = {
  general: { positionEncodings: ["utf-16"] },
  window: { workDoneProgress: true, showDocument: { support: false } },
  workspace: {
    applyEdit: false,
    configuration: true,
    workspaceFolders: true,
    didChangeConfiguration: { dynamicRegistration: false },
    didChangeWatchedFiles: { dynamicRegistration: true, relativePatternSupport: true },
    symbol: { dynamicRegistration: false },
    workspaceEdit: { documentChanges: true }
  },
  textDocument: {
    synchronization: { dynamicRegistration: false },
    definition: { linkSupport: true },
    references: {},
    hover: { contentFormat: ["markdown", "plaintext"] },
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
    publishDiagnostics: { relatedInformation: true, versionSupport: true },
    diagnostic: { dynamicRegistration: false, relatedDocumentSupport: false },
    rename: { prepareSupport: true }
  }
} as const

// What the tests use of @ai-sdk/mcp, whose own types are there only once this folder is installed.
declare module "@ai-sdk/mcp" {
  export interface ToolResult {
    readonly content?: ReadonlyArray<{ readonly type: string; readonly text?: string }>
    readonly structuredContent?: unknown
    readonly isError?: boolean
  }

  export interface MCPClient {
    readonly serverInfo: { readonly name: string; readonly version: string }
    readonly instructions?: string
    readonly initializeResult: { readonly protocolVersion: string }
    readonly listTools: () => Promise<{
      readonly tools: ReadonlyArray<{ readonly name: string; readonly title?: string }>
    }>
    readonly tools: () => Promise<
      Record<string, {
        readonly description?: string
        readonly execute: (
          input: unknown,
          options: { readonly toolCallId: string; readonly messages: ReadonlyArray<never> }
        ) => Promise<ToolResult>
      }>
    >
    readonly callTool: (call: {
      readonly name: string
      readonly arguments?: Record<string, unknown>
      readonly options?: { readonly signal?: AbortSignal; readonly timeout?: number }
    }) => Promise<ToolResult>
    readonly listResources: () => Promise<{ readonly resources: ReadonlyArray<{ readonly uri: string }> }>
    readonly readResource: (resource: { readonly uri: string }) => Promise<{
      readonly contents: ReadonlyArray<{ readonly uri: string; readonly text?: string }>
    }>
    readonly listPrompts: () => Promise<{ readonly prompts: ReadonlyArray<{ readonly name: string }> }>
    readonly getPrompt: (prompt: { readonly name: string; readonly arguments?: Record<string, string> }) => Promise<{
      readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
    }>
    readonly complete: (request: {
      readonly ref: { readonly type: "ref/prompt"; readonly name: string }
      readonly argument: { readonly name: string; readonly value: string }
    }) => Promise<{ readonly completion: { readonly values: ReadonlyArray<string> } }>
    readonly onElicitationRequest: (
      schema: unknown,
      handler: (request: { readonly params: { readonly message: string } }) => {
        readonly action: "accept" | "decline" | "cancel"
        readonly content?: Record<string, unknown>
      }
    ) => void
    readonly close: () => Promise<void>
  }

  export const ElicitationRequestSchema: unknown

  export const createMCPClient: (options: {
    readonly transport: unknown
    readonly protocolVersionDiscovery?: boolean
    readonly capabilities?: { readonly elicitation?: object }
    readonly onUncaughtError?: (error: unknown) => void
  }) => Promise<MCPClient>
}

declare module "@ai-sdk/mcp/mcp-stdio" {
  export const StdioMCPTransport: new(options: {
    readonly command: string
    readonly args: ReadonlyArray<string>
    readonly env: Record<string, string>
    readonly stderr: "ignore"
  }) => object
}

/**
 * Lets HTTP clients talk to an MCP server that knows only standard input and output.
 *
 *     node test/peers/conformance/bridge.ts [--port 3111] -- node server.ts
 *
 * Streamable HTTP on 127.0.0.1, for tests. A session (revisions up to 2025-11-25) is a process of its own, which ends
 * with the session; requests of 2026-07-28, which know no sessions, share one process. Bodies go through unchanged except
 * for ids and progress tokens, which are made unique and restored. What HTTP adds to the protocol is answered here:
 * headers that contradict the body, foreign hosts and origins, unknown sessions, status codes.
 *
 * Standard input and output say less than HTTP about what belongs together. Messages of the server that name no request
 * go to the request that came last, or to the stream that GET opened. Only one stateless request with a log level runs at
 * a time, so that log messages are known to be its own.
 */
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import type { Child, Complaints, Exchange, Message } from "./child.ts"
import { parse, start } from "./child.ts"

const STATELESS = "2026-07-28"
const SESSION_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
const LISTEN = "subscriptions/listen"
const MAX_BODY = 32 * 1024 * 1024
const MAX_BACKLOG = 1_000
const LOCAL = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i

const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602
const HEADER_MISMATCH = -32020
const BAD_REQUESTS: ReadonlyArray<unknown> = [PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH, -32021, -32022]

export interface Bridge extends Complaints {
  readonly url: string
  /** Closes all connections and ends all servers. */
  readonly close: () => Promise<void>
}

interface Session {
  readonly child: Child
  /** What came for no request while nobody listened. */
  readonly backlog: Array<string>
  /** The stream that GET opened. */
  listener: ServerResponse | undefined
}

/** Starts a bridge to a server that is started with this command. */
export const startBridge = async (command: ReadonlyArray<string>, port = 0): Promise<Bridge> => {
  const complaints: Complaints = { strayOutput: [], badExits: [] }
  const sessions = new Map<string, Session>()
  const children = new Set<Child>()

  const startChild = (onMessage: (message: Message) => void) => {
    const child = start(command, complaints, onMessage)
    children.add(child)
    return child
  }

  const endChild = async (child: Child) => {
    await child.end()
    children.delete(child)
  }

  // ---- sessions

  const startSession = (): Session => {
    const session: Session = {
      child: startChild(({ text }) => {
        const exchange = session.child.latest()
        if (exchange !== undefined) return exchange.onMessage(text)
        if (session.listener !== undefined) return writeEvent(session.listener, text)
        session.backlog.push(text)
        if (session.backlog.length > MAX_BACKLOG) session.backlog.shift()
      }),
      backlog: [],
      listener: undefined
    }
    return session
  }

  // the next session's server starts while this one's is busy
  let spare: Session | undefined

  const initialize = (message: Message, request: IncomingMessage, response: ServerResponse) => {
    const session = spare?.child.isRunning() === true ? spare : startSession()
    spare = startSession()
    const answer = makeAnswer(request, response)
    session.child.request({
      request: message,
      onMessage: answer.event,
      onCancelled: answer.end,
      isOpen: answer.isOpen,
      onResponse: ({ text, value }) => {
        if (value.error !== undefined) {
          void endChild(session.child)
          return answer.finish(text, 200)
        }
        const id = randomUUID()
        sessions.set(id, session)
        response.setHeader("Mcp-Session-Id", id)
        answer.finish(text, 200)
      }
    })
  }

  const onSessionPost = (message: Message, request: IncomingMessage, response: ServerResponse) => {
    const { value } = message
    if (value.method === "initialize" && isRequest(message)) return initialize(message, request, response)
    const session = findSession(request, response)
    if (session === undefined) return
    if (!isRequest(message)) {
      session.child.send(message)
      return response.writeHead(202).end()
    }
    const answer = makeAnswer(request, response)
    session.child.request({
      request: message,
      onMessage: answer.event,
      onCancelled: answer.end,
      isOpen: answer.isOpen,
      onResponse: ({ text }) => answer.finish(text, 200)
    })
  }

  const findSession = ({ headers }: IncomingMessage, response: ServerResponse): Session | undefined => {
    const version = headers["mcp-protocol-version"]
    const session = sessions.get(String(headers["mcp-session-id"]))
    if (version !== undefined && !SESSION_VERSIONS.includes(String(version))) {
      refuse(response, 400, INVALID_REQUEST, `MCP-Protocol-Version is not supported: ${String(version)}`)
    } else if (headers["mcp-session-id"] === undefined) {
      refuse(response, 400, INVALID_REQUEST, "Mcp-Session-Id header is required")
    } else if (session?.child.isRunning() === true) {
      return session
    } else {
      refuse(response, 404, INVALID_REQUEST, "There is no such session")
    }
    return undefined
  }

  const onGet = (request: IncomingMessage, response: ServerResponse) => {
    if (!accepts(request, "text/event-stream")) return response.writeHead(406).end()
    const session = findSession(request, response)
    if (session === undefined) return
    session.listener?.end()
    session.listener = response
    openEvents(response)
    for (const text of session.backlog.splice(0)) writeEvent(response, text)
    response.on("close", () => {
      if (session.listener === response) session.listener = undefined
    })
  }

  const onDelete = (request: IncomingMessage, response: ServerResponse) => {
    const session = findSession(request, response)
    if (session === undefined) return
    sessions.delete(String(request.headers["mcp-session-id"]))
    session.listener?.end()
    void endChild(session.child)
    response.writeHead(204).end()
  }

  // ---- without sessions

  let shared: Child | undefined
  let parameters: ParameterHeaders | undefined
  let logging: Exchange | undefined
  let loggingTurn: Promise<void> = Promise.resolve()

  const sharedChild = (): Child => {
    if (shared?.isRunning() !== true) {
      parameters = undefined
      shared = startChild((message) => {
        if (message.value.method === "notifications/message") logging?.onMessage(message.text)
      })
    }
    return shared
  }

  /** Which headers repeat which arguments, as the list of tools says; asked for when no client has asked yet. */
  const parameterHeaders = (meta: unknown): Promise<ParameterHeaders> =>
    new Promise((resolve) => {
      if (parameters !== undefined) return resolve(parameters)
      const value = { jsonrpc: "2.0", id: 0, method: "tools/list", params: { _meta: meta } }
      sharedChild().request({
        request: { text: JSON.stringify(value), value },
        onMessage: () => {},
        onCancelled: () => {},
        isOpen: () => true,
        onResponse: ({ value }) => resolve(parameterHeadersOf(value.result))
      })
    })

  const onStatelessPost = async (message: Message, request: IncomingMessage, response: ServerResponse) => {
    const { method, params } = message.value
    if (!isRequest(message)) {
      // a client answers no requests here, and cancels by closing the connection
      if (typeof method === "string") return response.writeHead(202).end()
      return refuse(response, 400, INVALID_REQUEST, "A response is not expected here")
    }
    const meta = member(params, "_meta")
    const isComplete = member(meta, VERSION_KEY) !== undefined && member(meta, CAPABILITIES_KEY) !== undefined
    const fault = headerFault(request.headers, message) ??
      (method === "tools/call" && isComplete
        ? parameterFault(request.headers, params, await parameterHeaders(meta))
        : undefined)
    if (fault !== undefined) return refuse(response, 400, HEADER_MISMATCH, fault, message)

    const logs = member(meta, LOG_LEVEL_KEY) !== undefined && method !== LISTEN
    let endTurn = () => {}
    if (logs) {
      const turn = loggingTurn
      loggingTurn = new Promise((resolve) => {
        endTurn = resolve
      })
      await turn
    }
    const answer = makeAnswer(request, response)
    const exchange: Exchange = {
      request: message,
      onMessage: answer.event,
      onCancelled: answer.end,
      isOpen: answer.isOpen,
      onResponse: ({ text, value }) => {
        endTurn()
        if (method === "tools/list" && value.result !== undefined) parameters = parameterHeadersOf(value.result)
        answer.finish(text, statusOf(value.error?.code, isComplete))
      }
    }
    if (logs) logging = exchange
    const cancel = sharedChild().request(exchange)
    response.on("close", () => {
      cancel()
      endTurn()
    })
  }

  // ---- HTTP

  const onPost = async (request: IncomingMessage, response: ServerResponse) => {
    if (!accepts(request, "application/json") || !accepts(request, "text/event-stream")) {
      return response.writeHead(406).end()
    }
    if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) return response.writeHead(415).end()
    const body = await readBody(request)
    if (body === undefined) return response.writeHead(413, { connection: "close" }).end()
    const message = parse(body)
    if (message === undefined) {
      const isBatch = body.trimStart().startsWith("[")
      return isBatch
        ? refuse(response, 400, INVALID_REQUEST, "Batches are not served over HTTP here")
        : refuse(response, 400, PARSE_ERROR, "Parse error")
    }
    if (!isJsonRpc(message)) return refuse(response, 400, INVALID_REQUEST, "Invalid request")
    const claim = member(member(message.value.params, "_meta"), VERSION_KEY)
    return claim !== undefined || request.headers["mcp-protocol-version"] === STATELESS
      ? onStatelessPost(message, request, response)
      : onSessionPost(message, request, response)
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse): unknown => {
    // a page of a foreign site must not reach a server that trusts whoever is on this machine
    const { host, origin } = request.headers
    if (!LOCAL.test(host ?? "") || (origin !== undefined && !LOCAL.test(origin.replace(/^https?:\/\//i, "")))) {
      return refuse(response, 403, INVALID_REQUEST, "Only local hosts and origins are served")
    }
    if (request.url?.split("?")[0] !== "/mcp") return response.writeHead(404).end()
    switch (request.method) {
      case "POST":
        return onPost(request, response)
      case "GET":
        return onGet(request, response)
      case "DELETE":
        return onDelete(request, response)
      default:
        return response.writeHead(405, { allow: "POST, GET, DELETE" }).end()
    }
  }

  const server = createServer((request, response) => {
    Promise.resolve(onRequest(request, response)).catch((error: unknown) => {
      process.stderr.write(`bridge: ${error instanceof Error ? error.stack : String(error)}\n`)
      response.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", resolve)
  })
  spare = startSession()
  sharedChild()
  const address = server.address()

  return {
    ...complaints,
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : port}/mcp`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await Promise.all([...children].map(endChild))
    }
  }
}

// -----------------------------------------------------------------------------
// messages
// -----------------------------------------------------------------------------

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

const isId = (id: unknown) => typeof id === "string" || typeof id === "number"

const isRequest = ({ value }: Message) => typeof value.method === "string" && isId(value.id)

/** Whether a server can be expected to answer it where an answer is due, which is all that matters here. */
const isJsonRpc = ({ value }: Message) =>
  typeof value.method === "string"
    ? isId(value.id) || !("id" in value)
    : isId(value.id) && ("result" in value) !== ("error" in value)

// -----------------------------------------------------------------------------
// answers
// -----------------------------------------------------------------------------

const accepts = ({ headers }: IncomingMessage, type: string) =>
  (headers.accept ?? "").toLowerCase().split(",").some((part) => part.split(";")[0]?.trim() === type)

const openEvents = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  response.flushHeaders()
}

const writeEvent = (response: ServerResponse, text: string) => {
  response.write(`data: ${text}\n\n`)
}

/** Answers with a single message as JSON, and with a stream once there is another message before it. */
const makeAnswer = (request: IncomingMessage, response: ServerResponse) => {
  const prefersEvents = (request.headers.accept ?? "").trimStart().toLowerCase().startsWith("text/event-stream")
  const event = (text: string) => {
    if (!response.headersSent) openEvents(response)
    writeEvent(response, text)
  }
  return {
    event,
    /** Ends without a response. */
    end: () => {
      if (!response.headersSent) openEvents(response)
      response.end()
    },
    isOpen: () => !response.writableEnded && !response.destroyed,
    finish: (text: string, status: number) => {
      if (response.headersSent || (prefersEvents && status === 200)) {
        event(text)
        response.end()
      } else {
        response.writeHead(status, { "content-type": "application/json" }).end(text)
      }
    }
  }
}

const statusOf = (code: unknown, isComplete: boolean) => {
  if (code === METHOD_NOT_FOUND) return 404
  return BAD_REQUESTS.includes(code) || (code === INVALID_PARAMS && !isComplete) ? 400 : 200
}

const refuse = (response: ServerResponse, status: number, code: number, message: string, request?: Message) => {
  const id = request === undefined || !isId(request.value.id) ? null : request.value.id
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } }))
}

const readBody = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_BODY) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

// -----------------------------------------------------------------------------
// headers that repeat the body
// -----------------------------------------------------------------------------

const NAMES: Readonly<Record<string, string>> = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" }

/** What contradicts the body in the headers of a stateless request. */
const headerFault = (headers: IncomingHttpHeaders, { value }: Message): string | undefined => {
  const version = headers["mcp-protocol-version"]
  if (version === undefined) return "MCP-Protocol-Version header is required"
  const claim = member(member(value.params, "_meta"), VERSION_KEY)
  if (claim !== undefined && claim !== version) return "MCP-Protocol-Version header does not match the body"
  if (headers["mcp-method"] !== value.method) return "Mcp-Method header does not match the body"
  const key = NAMES[String(value.method)]
  const name = key === undefined ? undefined : member(value.params, key)
  return typeof name === "string" && decodeHeader(headers["mcp-name"]) !== name
    ? "Mcp-Name header does not match the body"
    : undefined
}

/** Of each tool: the headers that repeat its arguments, and the way to these arguments. */
type ParameterHeaders = ReadonlyMap<string, ReadonlyArray<{ readonly header: string; readonly path: Array<string> }>>

const parameterHeadersOf = (result: unknown): ParameterHeaders => {
  const tools = member(result, "tools")
  return new Map(
    (Array.isArray(tools) ? tools : []).map((tool: unknown) => [
      String(member(tool, "name")),
      annotations(member(tool, "inputSchema"), [])
    ])
  )
}

const annotations = (schema: unknown, path: Array<string>): Array<{ header: string; path: Array<string> }> => {
  const header = member(schema, "x-mcp-header")
  const properties = Object.entries(member(schema, "properties") ?? {})
  return [
    ...(typeof header === "string" ? [{ header: `mcp-param-${header.toLowerCase()}`, path }] : []),
    ...properties.flatMap(([name, property]) => annotations(property, [...path, name]))
  ]
}

const parameterFault = (headers: IncomingHttpHeaders, params: unknown, tools: ParameterHeaders): string | undefined => {
  const annotated = tools.get(String(member(params, "name"))) ?? []
  const wrong = annotated.find(({ header, path }) => {
    const argument = path.reduce(member, member(params, "arguments"))
    return !repeats(headers[header], argument)
  })
  return wrong && `${wrong.header} header does not match the body`
}

/** Whether a header says what an argument says; an argument that is not there has no header. */
const repeats = (header: string | Array<string> | undefined, argument: unknown): boolean => {
  if (argument === undefined || argument === null) return header === undefined
  const value = decodeHeader(header)
  switch (typeof argument) {
    case "number":
      return value !== undefined && value.trim() !== "" && Number(value) === argument
    case "string":
    case "boolean":
      return value === String(argument)
    default:
      return false
  }
}

const BASE64 = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/

const decodeHeader = (header: string | Array<string> | undefined): string | undefined => {
  if (typeof header !== "string") return undefined
  const encoded = BASE64.exec(header)?.[1]
  if (encoded !== undefined) return Buffer.from(encoded, "base64").toString()
  const isBroken = header.startsWith("=?base64?") && header.endsWith("?=")
  return isBroken || !/^[\t\x20-\x7e]*$/.test(header) ? undefined : header
}

// -----------------------------------------------------------------------------

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { port: { type: "string", default: "0" } }
  })
  const bridge = await startBridge(positionals, Number(values.port))
  const stop = async () => {
    await bridge.close()
    process.exit(0)
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void stop())
  process.stdout.write(`${bridge.url}\n`)
}

/** An echo server on vscode-jsonrpc, which frames with Content-Length. */
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node"

const connection = createMessageConnection(
  new StreamMessageReader(process.stdin),
  new StreamMessageWriter(process.stdout)
)
connection.onRequest("echo", (params) => params)
connection.onRequest("big", ({ bytes }) => "x".repeat(bytes))
connection.onClose(() => process.exit(0))
connection.listen()

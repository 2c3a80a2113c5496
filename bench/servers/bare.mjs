/**
 * The least a JSON-RPC server can do: split lines, parse, stringify, one write for each chunk. Checks nothing, limits
 * nothing, and is linear in the size of a line.
 */
let parts = []

const answer = (line) => {
  const { id, method, params } = JSON.parse(line)
  return JSON.stringify({ jsonrpc: "2.0", id, result: method === "big" ? "x".repeat(params.bytes) : params }) + "\n"
}

process.stdin.setEncoding("utf8")
process.stdin.on("data", (chunk) => {
  const lines = chunk.split("\n")
  const rest = lines.pop()
  if (lines.length > 0) {
    lines[0] = parts.join("") + lines[0]
    parts = []
    let out = ""
    for (const line of lines) out += answer(line)
    process.stdout.write(out)
  }
  if (rest !== "") parts.push(rest)
})

// Stops `npm test` and `npm run demo` early when they would run on a Node that is too old.
// Plain syntax on purpose: this file must parse on the very versions it rejects.
var required = [22, 19]
var running = process.versions.node.split(".").map(Number)

if (running[0] < required[0] || (running[0] === required[0] && running[1] < required[1])) {
  console.error(
    "effect-stdio needs Node " + required.join(".") + " or newer, but this is Node " + process.versions.node + ".\n\n"
      + "A suitable Node comes with the dev dependencies. Install them once:\n\n"
      + "    npm ci\n\n"
      + "Then start everything through npm (`npm test`, `npm run demo`) or npx: both prefer the bundled Node to yours."
  )
  process.exit(1)
}

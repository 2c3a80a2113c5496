/**
 * Keeps standard output for frames from the first moment: import it before anything that may print while it loads, or
 * start the program with `node --import effect-stdio/stdout-guard`. `StdioRuntime` installs the same guard, but only when
 * the program runs.
 *
 * @module
 * @since 0.1.0
 */
import { install } from "./internal/adapters/stdoutGuard.ts"

install()

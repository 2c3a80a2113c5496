/**
 * The environment of commands.
 *
 * @since 0.1.0
 */

/**
 * What a command gets beside the server's environment: nobody is there to turn pages, to edit, or to type a password.
 */
const UNATTENDED: Readonly<Record<string, string>> = {
  PAGER: "cat",
  MANPAGER: "cat",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
  // set, but to nothing: no window asks either, whatever the host or the configuration names
  GIT_ASKPASS: "",
  SSH_ASKPASS_REQUIRE: "never",
  GCM_INTERACTIVE: "never"
}

/**
 * The server's environment with pagers, editors and questions turned off.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unattended = (
  environment: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform
): Readonly<Record<string, string | undefined>> => {
  // names have no case on Windows, and one of two would be lost
  const isReplaced = (name: string) => (platform === "win32" ? name.toUpperCase() : name) in UNATTENDED
  const kept = Object.entries(environment).filter(([name]) => !isReplaced(name))
  return { ...Object.fromEntries(kept), ...UNATTENDED }
}

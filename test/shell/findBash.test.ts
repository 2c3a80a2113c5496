// Which bash runs the commands, on machines that are not here.
import { assert, describe, it } from "@effect/vitest"
import { findBash, type Kind, type System } from "../../examples/shell/findBash.ts"

interface Machine {
  readonly platform: NodeJS.Platform
  readonly environment?: Readonly<Record<string, string>>
  /** Paths with what is there; a program where nothing else is said. */
  readonly files?: ReadonlyArray<string | readonly [path: string, kind: Kind]>
  readonly where?: Readonly<Record<string, ReadonlyArray<string>>>
}

const find = ({ environment = {}, files = [], platform, where = {} }: Machine) => {
  const kinds = new Map<string, Kind>(files.map((file) => typeof file === "string" ? [file, "program"] : file))
  const system: System = {
    platform,
    environment,
    exists: (path) => kinds.get(path) ?? "nothing",
    where: (name) => where[name] ?? []
  }
  return findBash(system)
}

const windows = (machine: Omit<Machine, "platform">) => find({ ...machine, platform: "win32" })
const linux = (machine: Omit<Machine, "platform">) => find({ ...machine, platform: "linux" })

const GIT = "C:\\Program Files\\Git"
const GIT_BASH = `${GIT}\\bin\\bash.exe`
const SYSTEM32 = "C:\\Windows\\System32\\bash.exe"
const FOLDERS = {
  ProgramFiles: "C:\\Program Files",
  ProgramW6432: "C:\\Program Files",
  "ProgramFiles(x86)": "C:\\Program Files (x86)",
  LocalAppData: "C:\\Users\\Ada\\AppData\\Local",
  UserProfile: "C:\\Users\\Ada"
}

describe("bash on Windows", () => {
  const variables = ["EFFECT_STDIO_BASH", "OMO_CODEX_GIT_BASH_PATH", "GIT_BASH_PATH"]

  it("is what the first variable says that is set", () => {
    for (const [index, variable] of variables.entries()) {
      const environment = Object.fromEntries(variables.slice(index).map((name) => [name, `D:\\${name}\\bash.exe`]))
      const files = [...Object.values(environment), GIT_BASH]
      const { bash } = windows({ environment: { ...FOLDERS, ...environment }, files })
      assert.deepStrictEqual(bash, { path: `D:\\${variable}\\bash.exe`, source: variable })
    }
  })

  it("takes quotes, spaces, another case of the name, and the folder of Git in a variable", () => {
    for (
      const environment of [
        { EFFECT_STDIO_BASH: `"${GIT_BASH}"` },
        { EFFECT_STDIO_BASH: ` '${GIT_BASH}' ` },
        { effect_stdio_bash: GIT_BASH },
        { EFFECT_STDIO_BASH: GIT },
        { EFFECT_STDIO_BASH: "  ", GIT_BASH_PATH: GIT_BASH }
      ]
    ) {
      const { bash } = windows({ environment, files: [GIT_BASH, [GIT, "folder"]] })
      assert.strictEqual(bash?.path, GIT_BASH, JSON.stringify(environment))
    }
  })

  it("is never another one than the variable says, also when that is wrong", () => {
    const cases = [
      ["D:\\nothing\\bash.exe", "does not exist"],
      ["bash", "is not an absolute path"],
      [SYSTEM32, "is the launcher of WSL, not Git Bash"],
      ["D:\\empty", "is a folder without bin\\bash.exe"]
    ] as const
    for (const [value, why] of cases) {
      const { bash, wrong } = windows({
        environment: { ...FOLDERS, EFFECT_STDIO_BASH: value, GIT_BASH_PATH: GIT_BASH },
        files: [GIT_BASH, SYSTEM32, ["D:\\empty", "folder"]]
      })
      assert.isUndefined(bash)
      assert.deepStrictEqual(wrong, { variable: "EFFECT_STDIO_BASH", value, why })
    }
  })

  it("is in one of Git's usual folders, in their order, before PATH is asked", () => {
    const places = [
      "C:\\Program Files\\Git\\bin\\bash.exe",
      "C:\\Program Files\\Git\\usr\\bin\\bash.exe",
      "C:\\Program Files (x86)\\Git\\bin\\bash.exe",
      "C:\\Program Files (x86)\\Git\\usr\\bin\\bash.exe",
      "C:\\Users\\Ada\\AppData\\Local\\Programs\\Git\\bin\\bash.exe",
      "C:\\Users\\Ada\\AppData\\Local\\Programs\\Git\\usr\\bin\\bash.exe",
      "C:\\Users\\Ada\\scoop\\apps\\git\\current\\bin\\bash.exe",
      "C:\\Users\\Ada\\scoop\\apps\\git\\current\\usr\\bin\\bash.exe"
    ]
    const onPath = "E:\\tools\\bash.exe"
    for (const [index, place] of places.entries()) {
      const { bash, tried } = windows({
        environment: FOLDERS,
        files: [...places.slice(index), onPath],
        where: { "bash.exe": [onPath] }
      })
      assert.strictEqual(bash?.path, place)
      assert.deepStrictEqual(tried.map(({ path }) => path), places.slice(0, index + 1))
      assert.deepStrictEqual(tried.map(({ refused }) => refused), [
        ...places.slice(0, index).map(() => "does not exist"),
        undefined
      ])
    }
  })

  it("is in the 64-bit Program Files, where the server itself is a 32-bit program", () => {
    const environment = { ProgramFiles: "C:\\Program Files (x86)", ProgramW6432: "C:\\Program Files" }
    assert.deepStrictEqual(windows({ environment, files: [GIT_BASH] }).bash, {
      path: GIT_BASH,
      source: "%ProgramW6432%\\Git"
    })
  })

  it("is beside a git.exe in PATH", () => {
    const gits = [
      ["D:\\Git\\cmd\\git.exe", "D:\\Git\\bin\\bash.exe"],
      ["D:\\Git\\bin\\git.exe", "D:\\Git\\bin\\bash.exe"],
      ["D:\\Git\\mingw64\\bin\\git.exe", "D:\\Git\\bin\\bash.exe"],
      ["D:\\Git\\CMD\\git.exe", "D:\\Git\\usr\\bin\\bash.exe"],
      ["D:\\scoop\\shims\\git.exe", "D:\\scoop\\apps\\git\\current\\bin\\bash.exe"]
    ] as const
    for (const [git, bash] of gits) {
      const other = "E:\\tools\\bash.exe"
      const found = windows({
        files: [git, bash, other],
        where: { "git.exe": ["C:\\shims-of-others\\git.exe", git], "bash.exe": [other] }
      })
      assert.deepStrictEqual(found.bash, { path: bash, source: "git.exe in PATH" })
    }
  })

  it("is a bash.exe in PATH at last, but never a launcher of WSL", () => {
    const launchers = [
      SYSTEM32,
      "c:\\windows\\syswow64\\bash.exe",
      "C:\\Windows\\Sysnative\\bash.exe",
      "C:\\Users\\Ada\\AppData\\Local\\Microsoft\\WindowsApps\\bash.exe"
    ]
    const other = "E:\\cygwin\\bin\\bash.exe"
    const found = windows({ files: [...launchers, other], where: { "bash.exe": [...launchers, other] } })
    assert.deepStrictEqual(found.bash, { path: other, source: "PATH" })
    const onlyWsl = windows({ files: launchers, where: { "bash.exe": launchers } })
    assert.isUndefined(onlyWsl.bash)
    assert.isUndefined(onlyWsl.wrong)
    assert.deepStrictEqual(
      onlyWsl.tried,
      launchers.map((path) => ({ path, source: "PATH", refused: "is the launcher of WSL, not Git Bash" }))
    )
  })
})

describe("bash elsewhere", () => {
  it("is what the variable says, and none when that is wrong", () => {
    const files = ["/bin/bash", "/opt/bash/bin/bash", ["/opt/bash", "folder"], ["/opt/data", "not executable"]] as const
    const of = (EFFECT_STDIO_BASH: string) => linux({ environment: { EFFECT_STDIO_BASH }, files })
    assert.deepStrictEqual(of("'/opt/bash/bin/bash'").bash, { path: "/opt/bash/bin/bash", source: "EFFECT_STDIO_BASH" })
    assert.strictEqual(of("/opt/bash").wrong?.why, "is a folder, not a program")
    assert.strictEqual(of("/opt/data").wrong?.why, "is not executable by this server")
    assert.strictEqual(of("/opt/nothing").wrong?.why, "does not exist")
    assert.strictEqual(of("bash").wrong?.why, "is not an absolute path")
    for (const value of ["/opt/bash", "/opt/data", "/opt/nothing", "bash"]) assert.isUndefined(of(value).bash)
  })

  it("does not heed the variables for Git Bash", () => {
    const environment = { GIT_BASH_PATH: GIT_BASH, OMO_CODEX_GIT_BASH_PATH: GIT_BASH }
    assert.deepStrictEqual(linux({ environment, files: ["/bin/bash"] }).bash, {
      path: "/bin/bash",
      source: "usual place"
    })
  })

  it("is the first in PATH that can be run, then in a usual place", () => {
    const places = [
      "/bin/bash",
      "/usr/bin/bash",
      "/usr/local/bin/bash",
      "/opt/homebrew/bin/bash",
      "/run/current-system/sw/bin/bash"
    ]
    const inPath = { bash: ["/home/ada/bin/bash", "/nix/bash"] }
    const found = linux({ files: [["/home/ada/bin/bash", "not executable"], "/nix/bash", ...places], where: inPath })
    assert.deepStrictEqual(found.bash, { path: "/nix/bash", source: "PATH" })
    assert.strictEqual(found.tried[0]?.refused, "is not executable by this server")
    for (const [index, place] of places.entries()) {
      const { bash, tried } = linux({ files: places.slice(index) })
      assert.deepStrictEqual(bash, { path: place, source: "usual place" })
      assert.deepStrictEqual(tried.map(({ path }) => path), places.slice(0, index + 1))
    }
  })

  it("looks at each place once, and says of all that they are not there", () => {
    const { bash, tried } = find({ platform: "darwin", where: { bash: ["/bin/bash"] } })
    assert.isUndefined(bash)
    assert.strictEqual(tried.length, 5)
    assert.isTrue(tried.every(({ refused }) => refused === "does not exist"))
  })
})

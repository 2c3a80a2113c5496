// What the tests of the ast-grep example share: a project of somebody, and the service on it.
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Pages from "../../examples/ast-grep/pages.ts"
import * as Search from "../../examples/ast-grep/Search.ts"
import * as Project from "../utils/project.ts"

export const services = Layer.merge(NodeFileSystem.layer, NodePath.layer)

/** A project of its own for each test, with more files when they are named, and the service on it. */
export const open = Effect.fnUntraced(function*(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options?: Omit<Search.Options, "root">
) {
  const project = yield* Project.make
  for (const [name, text] of Object.entries(files)) project.write(name, text)
  const search = yield* Search.make({ ...options, root: project.folder })
  return { project, ...search }
})

/** All pages of a search, beginning with the one that the request names. */
export const searchAll = Effect.fnUntraced(function*(
  search: Search.Search["Service"]["search"],
  request: Search.SearchOptions
) {
  const pages: Array<Pages.Page> = [yield* search(request)]
  for (let cursor = pages[0]?.nextCursor; cursor !== undefined; cursor = pages.at(-1)?.nextCursor) {
    pages.push(yield* search({ ...request, cursor }))
  }
  return pages
})

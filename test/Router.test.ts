import { assert, it } from "@effect/vitest"
import * as Router from "effect-stdio/Router"
import * as TestKit from "effect-stdio/TestKit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
it.effect("probe", () =>
  Effect.gen(function*() {
    const P = Schema.Struct({
      a: Schema.Finite,
      user: Schema.Struct({ name: Schema.String, kind: Schema.Literals(["x", "y"]) })
    })
    const server = yield* TestKit.serve({
      router: Router.request(Router.empty, "add", { params: P, result: Schema.Finite }, () => Effect.succeed(1)).pipe(
        Router.rawRequest("fn", () => Effect.succeed(() => 1)),
        Router.request("none", { params: Schema.Struct({}), result: Schema.Date }, () => Effect.succeed(new Date(0)))
      )
    })
    yield* server.receive(
      { id: 1, method: "add", params: { a: "s3cret", user: { name: 1, kind: "x" } } },
      { id: 2, method: "add", params: { a: 1, user: { name: "n", kind: "s3cret" } } },
      { id: 3, method: "fn" },
      { id: 4, method: "none", params: [] }
    )
    yield* server.settled
    console.log(yield* server.sentText, yield* server.events)
    assert.isTrue(true)
  }))

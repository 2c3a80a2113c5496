/**
 * As much of JSON Schema as it takes to compare what we read and send with what codex says of itself.
 */
import * as Predicate from "effect/Predicate"

/** A schema, and where the names are defined that it refers to. */
export interface Place {
  readonly schema: unknown
  readonly root: unknown
}

const member = (value: unknown, name: string): unknown => Predicate.isObject(value) ? value[name] : undefined

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const members = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  Predicate.isObject(value) ? Object.entries(value) : []

/** A schema behind a reference such as `#/definitions/Turn`. */
const follow = ({ root, schema }: Place): Place => {
  const reference = member(schema, "$ref")
  if (typeof reference !== "string") return { root, schema }
  const found = reference.split("/").slice(1).reduce<unknown>(member, root)
  if (found === undefined) throw new Error(`${reference} is not defined`)
  return follow({ root, schema: found })
}

/** All schemas that a value may have to fit, each with the members of those around it. */
const branches = (place: Place): ReadonlyArray<Place> => {
  const { root, schema } = follow(place)
  const inner = ["anyOf", "oneOf", "allOf"].flatMap((name) => list(member(schema, name)))
  if (inner.length === 0) return [{ root, schema }]
  const outer = {
    properties: Object.fromEntries(members(member(schema, "properties"))),
    required: list(member(schema, "required"))
  }
  return inner.flatMap((schema) => branches({ root, schema })).map(({ root, schema }) =>
    Predicate.isObject(schema) && (schema["type"] === "object" || members(outer.properties).length > 0)
      ? {
        root,
        schema: {
          ...schema,
          properties: { ...outer.properties, ...Object.fromEntries(members(schema["properties"])) },
          required: [...outer.required, ...list(schema["required"])]
        }
      }
      : { root, schema }
  )
}

/** None where it may be anything. */
const typesOf = ({ schema }: Place): ReadonlyArray<string> => {
  const type = member(schema, "type")
  if (type !== undefined) return list(Array.isArray(type) ? type : [type]).map(String)
  const values = member(schema, "const") === undefined ? list(member(schema, "enum")) : [member(schema, "const")]
  if (values.length > 0) return [...new Set(values.map((value) => typeOf(value)))]
  return members(member(schema, "properties")).length > 0 ? ["object"] : []
}

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value

/**
 * What is wrong with reading values of one schema (theirs) by another one (ours): members that are not there, that we need
 * and that may be missing, and of types that we do not read. What we do not name is left alone.
 */
export const drift = (ours: Place, theirs: Place, path = ""): ReadonlyArray<string> => {
  const read = branches(ours)
  const said = branches(theirs)
  const anything = read.some((place) => typesOf(place).length === 0)
  const types = new Set(read.flatMap(typesOf))
  const reads = (type: string) => types.has(type) || (type === "integer" && types.has("number"))
  const problems: Array<string> = []
  if (!anything) {
    for (const type of new Set(said.flatMap(typesOf))) {
      if (!reads(type)) problems.push(`${path} may be of type ${type}, which is not read`)
    }
  }
  // codex does not say what it is
  if (said.some((place) => typesOf(place).length === 0)) return problems
  const objects = said.filter((place) => typesOf(place).includes("object"))
  const arrays = said.filter((place) => typesOf(place).includes("array"))
  for (const { root, schema } of read) {
    for (const [name, inner] of members(member(schema, "properties"))) {
      const at = path === "" ? name : `${path}.${name}`
      const having = objects.filter((place) => member(member(place.schema, "properties"), name) !== undefined)
      if (having.length === 0) problems.push(`${at} is gone`)
      const isNeeded = list(member(schema, "required")).includes(name)
      if (isNeeded && objects.some((place) => !list(member(place.schema, "required")).includes(name))) {
        problems.push(`${at} may be missing`)
      }
      for (const place of having) {
        problems.push(
          ...drift({ root, schema: inner }, {
            root: place.root,
            schema: member(member(place.schema, "properties"), name)
          }, at)
        )
      }
    }
    const items = member(schema, "items")
    if (items === undefined) continue
    for (const place of arrays) {
      problems.push(
        ...drift({ root, schema: items }, { root: place.root, schema: member(place.schema, "items") }, `${path}[]`)
      )
    }
  }
  return [...new Set(problems)]
}

/** What is wrong with a value by a schema, in which no member counts as right that the schema does not name. */
export const problems = (value: unknown, place: Place, path = ""): ReadonlyArray<string> => {
  const [only, ...others] = branches(place)
  if (only === undefined) return []
  if (others.length > 0) {
    const found = [only, ...others].map((branch) => problems(value, branch, path))
    return found.reduce((best, next) => next.length < best.length ? next : best)
  }
  const { root, schema } = only
  const allowed = list(member(schema, "enum"))
  if (allowed.length > 0 && !allowed.includes(value)) return [`${path}: ${JSON.stringify(value)} is not among them`]
  const types = typesOf(only)
  const type = typeOf(value)
  if (types.length > 0 && !types.includes(type) && !(type === "integer" && types.includes("number"))) {
    return [`${path}: ${type} instead of ${types.join(" or ")}`]
  }
  if (Array.isArray(value)) {
    const items = member(schema, "items")
    return value.flatMap((inner, at) => problems(inner, { root, schema: items }, `${path}[${at}]`))
  }
  if (!Predicate.isObject(value)) return []
  const named = member(schema, "properties")
  const more = member(schema, "additionalProperties")
  const isOpen = !Predicate.isObject(named) && more === undefined
  return [
    ...list(member(schema, "required")).flatMap((name) =>
      String(name) in value ? [] : [`${path}.${String(name)} is missing`]
    ),
    ...Object.entries(value).flatMap(([name, inner]) => {
      const at = path === "" ? name : `${path}.${name}`
      if (member(named, name) !== undefined) return problems(inner, { root, schema: member(named, name) }, at)
      if (more !== undefined && more !== false) return problems(inner, { root, schema: more }, at)
      return isOpen ? [] : [`${at} is not known`]
    })
  ]
}

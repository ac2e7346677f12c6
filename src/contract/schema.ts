/** Reads JSON Schemas: which of them hold for a value, its members and its items. */
import { stepsOfReference } from '../json/pointer.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])
const valuesOf = (value: unknown): unknown[] => (isSchema(value) ? Object.values(value) : [])

/** What a reference within a schema leads to; undefined for nothing. */
export function resolveReference(reference: string, root: unknown): unknown {
  return stepsOfReference(reference).reduce<unknown>((current, name) => {
    const holder = (current ?? {}) as JsonSchema
    return Object.hasOwn(holder, name) ? holder[name] : undefined
  }, root)
}

/** How the members and items of a value are described. */
interface Description {
  /** The schemas of a member; none where no schema names it. */
  readonly member: (name: string) => unknown[]
  readonly items: readonly unknown[]
  /** Whether members are named, and nothing is said of others: then those are new. */
  readonly isClosed: boolean
}

/** @param schemas that hold for one value */
export function describe(schemas: readonly unknown[], root: JsonSchema): Description {
  const holding = inPlace(schemas, root)
  const properties = holding.map(({ properties: each }) => (isSchema(each) ? each : {}))
  const patterns = holding.flatMap(({ patternProperties: each }) =>
    Object.entries(each ?? {}).map(
      ([pattern, schema]) => [new RegExp(pattern, 'u'), schema] as const
    )
  )
  const others = holding.flatMap(schema =>
    ['additionalProperties', 'unevaluatedProperties'].flatMap(key =>
      key in schema ? [schema[key]] : []
    )
  )
  return {
    member: name => [
      ...properties.flatMap(each => (Object.hasOwn(each, name) ? [each[name]] : [])),
      ...patterns.flatMap(([pattern, schema]) => (pattern.test(name) ? [schema] : [])),
      ...others.filter(isSchema)
    ],
    items: holding.flatMap(schema => [schema['items'], ...listOf(schema['prefixItems'])]),
    isClosed:
      others.length === 0 &&
      (patterns.length > 0 || properties.some(each => Object.keys(each).length > 0))
  }
}

/** The schemas that may hold for one value, with those that they refer to; each once. */
function inPlace(schemas: readonly unknown[], root: JsonSchema): JsonSchema[] {
  const all = new Set<JsonSchema>()
  const add = (schema: unknown): void => {
    if (!isSchema(schema) || all.has(schema)) return
    all.add(schema)
    if (typeof schema['$ref'] === 'string') add(resolveReference(schema['$ref'], root))
    for (const keyword of ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else']) {
      for (const each of listOf(schema[keyword])) add(each)
    }
    for (const each of valuesOf(schema['dependentSchemas'])) add(each)
  }
  for (const schema of schemas) add(schema)
  return [...all]
}

/** The names of all members that a schema names, at any depth. */
export function namesIn(schema: unknown, names: Set<string> = new Set()): Set<string> {
  if (isSchema(schema)) {
    for (const name of Object.keys(schema['properties'] ?? {})) names.add(name)
    for (const name of listOf(schema['required'])) if (typeof name === 'string') names.add(name)
  }
  const inner = Array.isArray(schema) ? schema : valuesOf(schema)
  for (const each of inner) namesIn(each, names)
  return names
}

/**
 * The schema with a condition for each branch of a union whose branches have types of their own: of
 * those the errors are exact.
 */
export function withTypedUnions(root: JsonSchema): JsonSchema {
  const rewrite = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewrite)
    if (!isSchema(value)) return value
    const entries = Object.entries(value).map(([key, inner]) => [key, rewrite(inner)])
    const result = Object.fromEntries(entries) as Record<string, unknown>
    for (const keyword of ['anyOf', 'oneOf']) {
      const branches = value[keyword]
      if (!Array.isArray(branches) || 'type' in value) continue
      const types = branches.map(branch => listOf(typeOf(branch, root)))
      const all = types.flat()
      if (all.includes(undefined) || new Set(all).size < all.length) continue
      delete result[keyword]
      result['type'] = all
      const conditions = branches.map((branch, index) => ({
        if: { type: types[index] },
        // oxlint-disable-next-line unicorn/no-thenable
        then: rewrite(branch)
      }))
      result['allOf'] = [...listOf(result['allOf'] ?? []), ...conditions]
    }
    return result
  }
  return rewrite(root) as JsonSchema
}

/** @param passed references on the way, which may be a circle */
function typeOf(branch: unknown, root: JsonSchema, passed: readonly unknown[] = []): unknown {
  if (!isSchema(branch) || passed.includes(branch)) return undefined
  const { type, $ref: reference } = branch
  if (type !== undefined || typeof reference !== 'string') return type
  return typeOf(resolveReference(reference, root), root, [...passed, branch])
}

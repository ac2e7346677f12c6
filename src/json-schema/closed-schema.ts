/** A JSON Schema made so that members which it does not name are told: what an observer wants to hear of, though nothing refuses it. */

export type JsonSchema = Readonly<Record<string, unknown>>

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keywords whose schemas are about the same value as the schema that holds them: one, a list, or a map. */
const inPlace = ['if', 'then', 'else', 'allOf', 'anyOf', 'oneOf', 'dependentSchemas'] as const
/** About a member or an item. */
const below = [
  'properties',
  'patternProperties',
  'additionalProperties',
  'items',
  'prefixItems',
  'unevaluatedProperties',
  'unevaluatedItems'
] as const
/** About nothing until something refers to them. */
const kept = ['$defs', 'definitions'] as const

const maps = new Set<string>([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions'
])

function schemasIn(keyword: string, held: unknown): unknown[] {
  if (Array.isArray(held)) return held
  return maps.has(keyword) && isRecord(held) ? Object.values(held) : [held]
}

/** Every object that names its members refuses others, unless it says itself what others may be. */
export function closedSchema(root: JsonSchema): JsonSchema {
  return close(root, true, root)
}

function close(schema: JsonSchema, isOutermost: boolean, root: JsonSchema): JsonSchema {
  const change = (keyword: string, held: unknown, outermost: boolean): unknown => {
    const one = (value: unknown) => (isRecord(value) ? close(value, outermost, root) : value)
    if (Array.isArray(held)) return held.map(one)
    return maps.has(keyword) && isRecord(held)
      ? Object.fromEntries(Object.entries(held).map(([name, value]) => [name, one(value)]))
      : one(held)
  }
  const result: Record<string, unknown> = { ...schema }
  for (const keyword of [...inPlace, ...kept]) {
    if (Object.hasOwn(schema, keyword)) result[keyword] = change(keyword, schema[keyword], false)
  }
  for (const keyword of below) {
    if (Object.hasOwn(schema, keyword)) result[keyword] = change(keyword, schema[keyword], true)
  }
  if (isOutermost && says(schema, root, namesMembers) && !says(schema, root, speaksOfOthers)) {
    result['unevaluatedProperties'] = false
  }
  return result
}

function namesMembers({ properties }: JsonSchema) {
  return isRecord(properties) && Object.keys(properties).length > 0
}
function speaksOfOthers(schema: JsonSchema) {
  return (
    Object.hasOwn(schema, 'additionalProperties') || Object.hasOwn(schema, 'unevaluatedProperties')
  )
}

/** Whether a schema, or one that it holds or refers to for the same value, has a property. */
function says(
  schema: unknown,
  root: JsonSchema,
  what: (schema: JsonSchema) => boolean,
  above: readonly unknown[] = []
): boolean {
  if (!isRecord(schema) || above.includes(schema)) return false
  if (what(schema)) return true
  const here = [...above, schema]
  const { $ref } = schema
  if (typeof $ref === 'string' && says(resolve($ref, root), root, what, here)) return true
  return inPlace.some(keyword =>
    schemasIn(keyword, schema[keyword]).some(inner => says(inner, root, what, here))
  )
}

/** What a reference within the schema stands for. */
function resolve(reference: string, root: unknown): unknown {
  if (!reference.startsWith('#')) return undefined
  let current = root
  for (const step of reference.split('/').slice(1)) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    current =
      typeof current === 'object' && current !== null && Object.hasOwn(current, name)
        ? (current as Record<string, unknown>)[name]
        : undefined
  }
  return current
}

/** Every member that the schema names anywhere. */
export function memberNames(schema: unknown): Set<string> {
  const names = new Set<string>()
  const collect = (value: unknown) => {
    if (!isRecord(value)) return
    for (const name of isRecord(value['properties']) ? Object.keys(value['properties']) : []) {
      names.add(name)
    }
    for (const name of Array.isArray(value['required']) ? value['required'] : []) {
      names.add(String(name))
    }
    for (const keyword of [...inPlace, ...below, ...kept]) {
      if (Object.hasOwn(value, keyword)) schemasIn(keyword, value[keyword]).forEach(collect)
    }
  }
  collect(schema)
  return names
}

/** Derives a closed JSON Schema, which reports members that the schema does not name. */

export type JsonSchema = Readonly<Record<string, unknown>>

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keywords whose schemas apply to the same value: one schema, a list, or a map. */
const inPlace = ['if', 'then', 'else', 'allOf', 'anyOf', 'oneOf', 'dependentSchemas'] as const
/** Keywords whose schemas apply to members or items. */
const below = [
  'properties',
  'patternProperties',
  'additionalProperties',
  'items',
  'prefixItems',
  'unevaluatedProperties',
  'unevaluatedItems'
] as const
/** Keywords whose schemas apply only where a reference names them. */
const definitions = ['$defs', 'definitions'] as const

const maps = new Set<string>([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions'
])

function schemasIn(keyword: string, content: unknown): unknown[] {
  if (Array.isArray(content)) return content
  return maps.has(keyword) && isRecord(content) ? Object.values(content) : [content]
}

/**
 * Objects that name their members refuse others, unless the schema itself allows or refuses them.
 */
export function closedSchema(root: JsonSchema): JsonSchema {
  return close(root, true, root)
}

function close(schema: JsonSchema, isOutermost: boolean, root: JsonSchema): JsonSchema {
  const change = (keyword: string, content: unknown, outermost: boolean): unknown => {
    const closeRecord = (value: unknown) =>
      isRecord(value) ? close(value, outermost, root) : value
    if (Array.isArray(content)) return content.map(closeRecord)
    return maps.has(keyword) && isRecord(content)
      ? Object.fromEntries(
          Object.entries(content).map(([name, value]) => [name, closeRecord(value)])
        )
      : closeRecord(content)
  }
  const result: Record<string, unknown> = { ...schema }
  for (const keyword of [...inPlace, ...definitions]) {
    if (Object.hasOwn(schema, keyword)) result[keyword] = change(keyword, schema[keyword], false)
  }
  for (const keyword of below) {
    if (Object.hasOwn(schema, keyword)) result[keyword] = change(keyword, schema[keyword], true)
  }
  if (
    isOutermost &&
    someSchema(schema, root, namesMembers) &&
    !someSchema(schema, root, rulesOtherMembers)
  ) {
    result['unevaluatedProperties'] = false
  }
  return result
}

function namesMembers({ properties }: JsonSchema) {
  return isRecord(properties) && Object.keys(properties).length > 0
}
function rulesOtherMembers(schema: JsonSchema) {
  return (
    Object.hasOwn(schema, 'additionalProperties') || Object.hasOwn(schema, 'unevaluatedProperties')
  )
}

function someSchema(
  schema: JsonSchema,
  root: JsonSchema,
  test: (schema: JsonSchema) => boolean
): boolean {
  return inPlaceOf(schema, root).some(test)
}

/** A schema, and those that it contains or refers to for the same value; each once. */
function inPlaceOf(
  schema: unknown,
  root: JsonSchema,
  seen = new Set<unknown>()
): readonly JsonSchema[] {
  if (!isRecord(schema) || seen.has(schema)) return []
  seen.add(schema)
  const { $ref } = schema
  const inner = inPlace.flatMap(keyword => schemasIn(keyword, schema[keyword]))
  const referred = typeof $ref === 'string' ? [resolveReference($ref, root)] : []
  return [schema, ...[...referred, ...inner].flatMap(each => inPlaceOf(each, root, seen))]
}

/** Whether a schema names a member, under whatever condition. A pattern counts as any name. */
export function namesMember(schema: JsonSchema, root: JsonSchema, name: string): boolean {
  return someSchema(
    schema,
    root,
    ({ properties, patternProperties }) =>
      (isRecord(properties) && Object.hasOwn(properties, name)) || patternProperties !== undefined
  )
}

/** The schema that a local reference names. */
export function resolveReference(reference: string, root: unknown): unknown {
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

/** The names of all members, at any depth. */
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
    for (const keyword of [...inPlace, ...below, ...definitions]) {
      if (Object.hasOwn(value, keyword)) schemasIn(keyword, value[keyword]).forEach(collect)
    }
  }
  collect(schema)
  return names
}

/** The JSON Schema of values that the gateway itself writes. */
import type { JsonSchema } from '../contract/schema.ts'
import { isRecord } from '../json/values.ts'

/**
 * Of values of several types one schema, too: each of its keywords is about one type.
 * @returns {} where nothing was seen: any value
 */
export function learnSchema(values: readonly unknown[]): JsonSchema {
  const types = [...new Set(values.map(typeOf))]
  const records = values.filter(isRecord)
  const items = values.filter(value => Array.isArray(value)).flat() as unknown[]
  return {
    ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }),
    ...(items.length > 0 && { items: learnSchema(items) }),
    ...(records.length > 0 && learnMembers(records))
  }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Members that are named by numbers are data: all of them share one schema. */
function learnMembers(records: ReadonlyArray<Record<string, unknown>>): JsonSchema {
  const names = [...new Set(records.flatMap(Object.keys))]
  if (names.length > 0 && names.every(name => /^\d+$/.test(name))) {
    return { additionalProperties: learnSchema(records.flatMap(Object.values)) }
  }
  const valuesOf = (name: string) =>
    records.filter(record => Object.hasOwn(record, name)).map(record => record[name])
  const required = names.filter(name => valuesOf(name).length === records.length)
  const members = names.map(name => [name, learnSchema(valuesOf(name))])
  return {
    ...(required.length > 0 && { required }),
    ...(names.length > 0 && { properties: Object.fromEntries(members) as JsonSchema })
  }
}

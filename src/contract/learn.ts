/** A first JSON Schema of the given values, for people to read and prune. */
import { isRawNumber, isRecord } from '../json/values.ts'
import type { JsonSchema } from './schema.ts'

const formats: ReadonlyArray<readonly [name: string, test: RegExp]> = [
  ['date-time', /^\d{4}-\d\d-\d\d[tT ]\d\d:\d\d:\d\d(\.\d+)?([zZ]|[+-]\d\d:?\d\d)$/],
  ['date', /^\d{4}-\d\d-\d\d$/],
  ['uuid', /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i]
]
/** Members named like this are data: all of them share one schema. */
const isKey = (name: string): boolean =>
  /^(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{24,})$/i.test(name)

/** The description of numbers that JavaScript would round. */
export const longNumbers =
  'Numbers of more digits than JavaScript holds: a console reads other numbers. ' +
  'Make texts of them in the shape (convert: to string).'

/**
 * Of values of several types one schema, too: each of its keywords is about one type.
 * @returns {} where nothing was seen: any value
 */
export function learnSchema(values: readonly unknown[]): JsonSchema {
  const types = [...new Set(values.map(typeOf))]
  const records = values.filter(isRecord)
  const items = values.filter(value => Array.isArray(value)).flat() as unknown[]
  const texts = values.filter(value => typeof value === 'string')
  const format = formats.find(
    ([, test]) => texts.length > 0 && texts.every(text => test.test(text))
  )
  return {
    ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }),
    ...(values.some(isRawNumber) && { description: longNumbers }),
    ...(format && { format: format[0] }),
    ...(items.length > 0 && { items: learnSchema(items) }),
    ...(records.length > 0 && learnMembers(records))
  }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return isRawNumber(value) ? 'number' : typeof value
}

function learnMembers(records: ReadonlyArray<Record<string, unknown>>): JsonSchema {
  const names = [...new Set(records.flatMap(Object.keys))]
  if (names.length > 0 && names.every(isKey)) {
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

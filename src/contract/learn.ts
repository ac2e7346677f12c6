/** A first JSON Schema of the given values, for people to read and prune. */
import { isRawNumber } from '../json/values.ts'
import { isSchema, type JsonSchema } from './schema.ts'

const formats: ReadonlyArray<readonly [name: string, test: RegExp]> = [
  ['date-time', /^\d{4}-\d\d-\d\d[tT ]\d\d:\d\d:\d\d(\.\d+)?([zZ]|[+-]\d\d:?\d\d)$/],
  ['date', /^\d{4}-\d\d-\d\d$/],
  ['uuid', /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i],
  ['email', /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/]
]
/** Members named like this are data: all of them share one schema. */
const isKey = (name: string): boolean =>
  /^(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{24,})$/i.test(name)

/** The description of numbers that JavaScript would round. */
export const longNumbers =
  'Numbers of more digits than JavaScript holds: a console reads other numbers. ' +
  'Make texts of them in the shape (convert: to string).'

/** @returns {} where nothing was seen: any value */
export function learnSchema(values: readonly unknown[]): JsonSchema {
  const lists = values.filter(value => Array.isArray(value))
  const records = values.filter(isRecord)
  const scalars = values.filter(
    value => !Array.isArray(value) && !isRecord(value) && value !== null
  )
  const branches = [
    ...(records.length > 0 ? [recordSchema(records)] : []),
    ...(lists.length > 0 ? [listSchema(lists.flat())] : []),
    ...(scalars.length > 0 ? [scalarSchema(scalars)] : [])
  ]
  const [only = {}, ...more] = branches
  if (!values.includes(null)) return more.length === 0 ? only : { anyOf: branches }
  if (branches.length === 0) return { type: 'null' }
  return more.length === 0
    ? { ...only, type: [only['type'], 'null'].flat() }
    : { anyOf: [...branches, { type: 'null' }] }
}

function recordSchema(records: ReadonlyArray<Record<string, unknown>>): JsonSchema {
  const names = [...new Set(records.flatMap(Object.keys))]
  if (names.length > 0 && names.every(isKey)) {
    return { type: 'object', additionalProperties: learnSchema(records.flatMap(Object.values)) }
  }
  const having = (name: string) => records.filter(record => Object.hasOwn(record, name))
  const required = names.filter(name => having(name).length === records.length)
  const learned = (some: readonly string[]) =>
    some.map(name => [name, learnSchema(having(name).map(record => record[name]))] as const)
  const [proto, named] = [names.filter(isProto), names.filter(name => !isProto(name))]
  return {
    type: 'object',
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(learned(named)),
    // Under `properties` the validator passes over this name.
    ...(proto.length > 0 && { patternProperties: { '^__proto__$': learned(proto)[0]?.[1] } })
  }
}

function listSchema(items: readonly unknown[]): JsonSchema {
  return { type: 'array', ...(items.length > 0 && { items: learnSchema(items) }) }
}

function scalarSchema(values: readonly unknown[]): JsonSchema {
  const types = [...new Set(values.map(value => (isLongNumber(value) ? 'number' : typeof value)))]
  const texts = values.filter(value => typeof value === 'string')
  const format = formats.find(
    ([, test]) => texts.length > 0 && texts.every(text => test.test(text))
  )
  return {
    type: types.length === 1 ? types[0] : types,
    ...(format && { format: format[0] }),
    ...(values.some(isLongNumber) && { description: longNumbers })
  }
}

function isLongNumber(value: unknown): boolean {
  return typeof value === 'object' && value !== null && isRawNumber(value)
}

function isProto(name: string): boolean {
  return name === '__proto__'
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return isSchema(value) && !isLongNumber(value)
}

/**
 * Derives a first JSON Schema from responses: members that are always there are required, varying
 * types are a union, and a format that all strings have is kept.
 */
import { createRequire } from 'node:module'
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import { isRawNumber } from '../json/values.ts'

const library = () =>
  (createRequire(import.meta.url)('ajv-formats') as typeof import('ajv-formats'))
    .default as unknown as { readonly get: (name: string) => unknown }

/** Values seen at one path, in all responses and all items of a list. */
interface Seen {
  readonly kinds: Set<'null' | 'boolean' | 'number' | 'string'>
  /** Whether a number had more digits than a double holds. */
  isLong?: boolean
  /** Formats that all strings so far have; undefined before the first. */
  formats?: readonly Format[]
  list?: Seen
  record?: { count: number; readonly members: Map<string, { count: number; readonly seen: Seen }> }
}

const formats = ['date-time', 'date', 'uuid', 'email'] as const
type Format = (typeof formats)[number]

let tests: ReadonlyMap<Format, (text: string) => boolean> | undefined

/** Made when responses are learnt from: a gateway that serves does not load the library. */
function fits(name: Format, text: string): boolean {
  tests ??= loadTests()
  return tests.get(name)?.(text) === true
}

function loadTests() {
  const { get } = library()
  return new Map(
    formats.map(name => {
      const format = get(name) as
        | { readonly validate?: (text: string) => boolean }
        | RegExp
        | ((text: string) => boolean)
      if (format instanceof RegExp) return [name, (text: string) => format.test(text)] as const
      if (typeof format === 'function') return [name, format] as const
      return [name, (text: string) => format.validate?.(text) === true] as const
    })
  )
}

/** The description of numbers that JavaScript would round. */
export const longNumbers =
  'Numbers of more digits than JavaScript holds: a console reads other numbers. ' +
  'Make texts of them in the shape (convert: to string).'

/** @param answers at least one */
export function learnSchema(answers: readonly unknown[]): JsonSchema {
  const seen: Seen = { kinds: new Set() }
  for (const answer of answers) add(seen, answer)
  return write(seen)
}

function add(seen: Seen, value: unknown): void {
  if (Array.isArray(value)) {
    seen.list ??= { kinds: new Set() }
    for (const item of value) add(seen.list, item)
  } else if (isRawNumber(value)) {
    seen.kinds.add('number')
    seen.isLong = true
  } else if (typeof value === 'object' && value !== null) {
    const record = (seen.record ??= { count: 0, members: new Map() })
    record.count++
    for (const [name, member] of Object.entries(value)) {
      const entry = record.members.get(name) ?? {
        count: 0,
        seen: { kinds: new Set() } satisfies Seen
      }
      record.members.set(name, entry)
      entry.count++
      add(entry.seen, member)
    }
  } else {
    if (typeof value === 'string') {
      seen.formats = (seen.formats ?? formats).filter(name => fits(name, value))
    }
    seen.kinds.add(value === null ? 'null' : (typeof value as 'boolean'))
  }
}

/** An empty schema where nothing was seen: it allows any value. */
function write({ kinds, isLong = false, formats: common = [], list, record }: Seen): JsonSchema {
  const [format] = common
  const plain = [...kinds].filter(kind => kind !== 'null')
  const branches: JsonSchema[] = [
    ...(record === undefined ? [] : [writeRecord(record)]),
    ...(list === undefined ? [] : [writeList(list)]),
    ...(plain.length === 0
      ? []
      : [
          {
            type: plain.length === 1 ? plain[0] : plain,
            ...(format !== undefined && { format }),
            ...(isLong && { description: longNumbers })
          }
        ])
  ]
  const [only, ...more] = branches
  if (!kinds.has('null')) return more.length === 0 ? (only ?? {}) : { anyOf: branches }
  if (only === undefined) return { type: 'null' }
  if (more.length > 0) return { anyOf: [...branches, { type: 'null' }] }
  return { ...only, type: [only['type'], 'null'].flat() }
}

function writeList(items: Seen): JsonSchema {
  const written = write(items)
  return { type: 'array', ...(Object.keys(written).length > 0 && { items: written }) }
}

/** Member names such as numbers and UUIDs are data: the values under them share a schema. */
const isKey = (name: string) => /^(?:\d+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{24,})$/i.test(name)

function writeRecord({ count, members }: NonNullable<Seen['record']>): JsonSchema {
  const names = [...members.keys()]
  if (names.length > 0 && names.every(isKey)) {
    const all: Seen = { kinds: new Set() }
    for (const { seen } of members.values()) merge(all, seen)
    return { type: 'object', additionalProperties: write(all) }
  }
  const required = names.filter(name => members.get(name)?.count === count)
  const written = (isProto: boolean) =>
    [...members]
      .filter(([name]) => (name === '__proto__') === isProto)
      .map(([name, { seen }]) => [isProto ? '^__proto__$' : name, write(seen)] as const)
  const patterns = written(true)
  return {
    type: 'object',
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(written(false)),
    // Under `properties` the validator passes over this name, so that drift would call it new.
    ...(patterns.length > 0 && { patternProperties: Object.fromEntries(patterns) })
  }
}

function merge(into: Seen, { kinds, isLong = false, formats: common, list, record }: Seen): void {
  for (const kind of kinds) into.kinds.add(kind)
  if (isLong) into.isLong = true
  if (common !== undefined) {
    into.formats = (into.formats ?? common).filter(name => common.includes(name))
  }
  if (list !== undefined) merge((into.list ??= { kinds: new Set() }), list)
  if (record === undefined) return
  const target = (into.record ??= { count: 0, members: new Map() })
  target.count += record.count
  for (const [name, { count, seen }] of record.members) {
    const entry = target.members.get(name) ?? {
      count: 0,
      seen: { kinds: new Set() } satisfies Seen
    }
    target.members.set(name, entry)
    entry.count += count
    merge(entry.seen, seen)
  }
}

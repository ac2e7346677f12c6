/** Reads a value by its schema in one walk: references, defaults, faults and units. */
import { isRecord, type JsonRecord } from '../../json/values.ts'
import type { Named } from '../schema/config.ts'
import { insteadOf, nearest } from '../schema/faults.ts'
import {
  branchOf,
  holdsSecret,
  isAnything,
  memberSchema,
  type Node,
  type Path,
  placeOfKey
} from '../schema/node.ts'
import { amountOf, brokenBound, isMeasure, isOneOrMany } from '../schema/primitives.ts'
import { filledIn, type References, unusable } from './references.ts'

export interface Reading extends References {
  readonly report: (path: Path, message: string) => void
  readonly named?: Named[]
  /** The schema of the whole, whose keys are named where they are written at another place. */
  readonly root?: Node
}

/** @returns a value that fits the schema, unless a fault was reported */
export function read(schema: Node, written: unknown, reading: Reading): unknown {
  const value = readAt([], schema, written, { ...reading, root: schema })
  return value === unusable ? undefined : value
}

function readAt(path: Path, schema: Node, written: unknown, reading: Reading): unknown {
  const report = (message: string) => reading.report(path, message)
  const filled = typeof written === 'string' ? filledIn(schema, written, reading, report) : written
  if (filled === unusable) return unusable
  if (filled === undefined) {
    return schema.default === undefined ? undefined : readAt(path, schema, schema.default, reading)
  }
  const branch = branchOf(schema, filled)
  const expected = expectationAt(branch, filled)
  if (expected !== undefined) {
    report(faultOf(schema, branch, expected, filled))
    return unusable
  }
  if (isRecord(filled)) return readMapping(path, branch, filled, reading)
  if (Array.isArray(filled)) return readList(path, branch, filled, reading)
  const { format } = branch
  const value = isMeasure(format) ? amountOf(format, filled as string) : filled
  if (branch.names !== undefined) {
    reading.named?.push({ what: branch.names, name: filled as string, path })
  }
  return schema.anyOf?.some(isOneOrMany) === true ? [value] : value
}

function readMapping(path: Path, schema: Node, written: JsonRecord, reading: Reading): JsonRecord {
  const { properties = {} } = schema
  const members: Array<readonly [string, unknown]> = []
  let count = 0
  for (const key of new Set([...Object.keys(written), ...Object.keys(properties)])) {
    const place = [...path, key]
    const member = memberSchema(schema, key)
    if (member === undefined) {
      reading.report(place, faultOfKey(schema, place, reading.root))
      count += 1
      continue
    }
    // `server:` with nothing below it means "nothing set".
    const inside = Object.hasOwn(written, key) ? (written[key] ?? null) : undefined
    const isEmpty = inside === null && Object.hasOwn(properties, key)
    if (schema.keysName !== undefined) {
      reading.named?.push({ what: schema.keysName, name: key, path: place })
    }
    const isWritten = inside !== undefined && !isEmpty
    const value = readAt(place, member, isWritten ? inside : undefined, reading)
    if (isWritten) count += 1
    if (value === undefined) reportMissing(place, schema, isWritten, reading)
    else if (value !== unusable) members.push([key, value])
  }
  const fault = faultOfCount(schema, count, Object.keys(written))
  if (fault !== undefined) reading.report(path, fault)
  return Object.fromEntries(members)
}

/** @param isWritten with a reference that counts as not set */
function reportMissing(path: Path, schema: Node, isWritten: boolean, { report }: Reading): void {
  const key = String(path.at(-1))
  const member = memberSchema(schema, key) ?? {}
  const isRequired = schema.required?.includes(key) === true
  const isSecret = holdsSecret(branchOf(member, ''))
  // A secret whose key the operator chose, such as a header, is needed too.
  if (isWritten && isSecret && (isRequired || schema.properties === undefined)) {
    report(path, 'the secret is empty: set the environment variable that the reference names')
  } else if (isRequired) {
    const what = member.description ?? member.expected
    report(path.slice(0, -1), `the key "${key}" is missing (${what})`)
  }
}

function readList(path: Path, schema: Node, written: readonly unknown[], reading: Reading) {
  const { items = schema, minItems = 0, uniqueItems = false } = schema
  const values = written
    .map((item, index) => readAt([...path, index], items, item, reading))
    .filter(item => item !== undefined)
  const { report } = reading
  if (values.length < minItems) report(path, 'expected at least one item, found none')
  if (uniqueItems && new Set(values).size < values.length) {
    report(path, 'must not list an item twice')
  }
  return values
}

function expectationAt(branch: Node, value: unknown): string | undefined {
  if (branch.anyOf !== undefined) return branch.expected
  if (isAnything(branch)) return undefined
  if (branch.type === 'object') return isRecord(value) ? undefined : 'a mapping'
  if (branch.type === 'array') return Array.isArray(value) ? undefined : 'a list'
  const bound = brokenBound(branch, value)
  if (bound !== undefined) return bound
  if (!fits(branch, value)) return branch.expected ?? show(branch.const)
  return typeof value === 'string' ? branch.alsoExpected?.(value) : undefined
}

function fits(schema: Node, value: unknown): boolean {
  const { type, minimum = -Infinity, maximum = Infinity } = schema
  if (schema.const !== undefined) return value === schema.const
  if (schema.enum !== undefined) return schema.enum.includes(value)
  if (typeof value === 'string') {
    const { minLength = 0, maxLength = Infinity, pattern = '' } = schema
    const isBetween = value.length >= minLength && value.length <= maxLength
    return type === 'string' && isBetween && new RegExp(pattern).test(value)
  }
  if (typeof value !== 'number') return type === (value === null ? 'null' : typeof value)
  const isNumber = type === 'integer' ? Number.isInteger(value) : Number.isFinite(value)
  return (
    isNumber && (type === 'integer' || type === 'number') && value >= minimum && value <= maximum
  )
}

/** Hides user and password of a URL. */
function show(value: unknown): string {
  const written = (JSON.stringify(value) ?? String(value)).replace(/:\/\/.*@/, '://…@')
  return written.length > 60 ? `${written.slice(0, 57)}…` : written
}

function faultOf(schema: Node, branch: Node, ofBranch: string, value: unknown): string {
  // For a union, all allowed values, not only those of the matching branch.
  const expected = schema.anyOf === undefined ? ofBranch : (schema.expected ?? ofBranch)
  // Never shown: even a wrong value may be a secret. A number in place of a mapping is none.
  const isNumber = branch.type === 'object' && typeof value === 'number'
  if (!isNumber && holdsSecret(branch)) return `expected ${expected}`
  return `expected ${expected}, found ${show(value)}${suggestion(schema, value)}`
}

function suggestion(schema: Node, value: unknown): string {
  if (isRecord(value)) {
    const words = schema.anyOf?.flatMap(({ chosenBy = [] }) => chosenBy) ?? []
    const unknown = Object.keys(value).filter(key => memberSchema(schema, key) === undefined)
    const found = unknown.map(key => nearest(key, words)).find(Boolean)
    return found === undefined ? '' : `.${found}`
  }
  if (typeof value !== 'string') return ''
  const values = [schema, ...(schema.anyOf ?? [])].flatMap(branch => branch.enum ?? [])
  const near = nearest(value, values.map(String))
  return near === '' ? '' : `.${near}`
}

function faultOfKey(schema: Node, path: Path, root: Node = schema): string {
  const { properties, chosenBy, keysExpected } = schema
  const key = String(path.at(-1))
  if (properties !== undefined) {
    const beside = chosenBy === undefined ? '' : ` beside \`${chosenBy}\``
    const inside = placeOfKey(schema, key)
    const elsewhere = chosenBy === undefined ? placeOfKey(root, key) : undefined
    const place = inside === undefined ? elsewhere : [...path.slice(0, -1), inside].join('.')
    return `unknown key "${key}"${beside}.${insteadOf(key, Object.keys(properties), place)}`
  }
  const rule = keysExpected ?? 'lower-case letters, digits and dashes'
  return `the name "${key}" is not allowed: ${rule}`
}

function faultOfCount(schema: Node, count: number, keys: readonly string[]): string | undefined {
  const { minProperties = 0, maxProperties = Infinity, properties } = schema
  if (count >= minProperties && count <= maxProperties) return undefined
  const bound = count < minProperties ? `at least ${minProperties}` : `at most ${maxProperties}`
  const of = properties === undefined ? 'member(s)' : `of ${Object.keys(properties).join(', ')}`
  return `expected ${bound} ${of}; found ${keys.join(', ') || 'none'}`
}

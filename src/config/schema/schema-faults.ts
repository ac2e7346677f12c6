/** Where a value of config does not fit its schema, in words. */
import { nearest } from './faults.ts'
import { brokenBound, isSecret } from './primitives.ts'
import { isObject, memberSchema, type Node, type Path, visit, type Visited } from './visit.ts'
import { Check } from 'typebox/schema'

function withoutUser(written: string): string {
  const start = written.indexOf('://')
  const end = written.lastIndexOf('@')
  if (start === -1 || end < start) return written
  return `${written.slice(0, start)}://…${written.slice(end)}`
}

/** Hides user and password of a URL. */
const show = (value: unknown) => {
  const written = withoutUser(JSON.stringify(value) ?? String(value))
  return written.length > 60 ? `${written.slice(0, 57)}…` : written
}

type ReportFault = (path: Path, message: string) => void

/** Reports every place where `value` does not match its schema. */
export function schemaFaults(schema: Node, value: unknown, report: ReportFault): void {
  visit(schema, value, at => {
    // A reference to an unset variable was reported; its mapping reports an empty secret.
    if (at.value !== undefined) valueFaults(at, report)
  })
}

function valueFaults({ schema, declared, value, path }: Visited, report: ReportFault): void {
  const expected = (branch: string) => {
    // For a union, all allowed values, not only those of the matching branch.
    const what = declared.anyOf === undefined ? branch : (declared.expected ?? branch)
    // Never shown: even a wrong value may be a secret. A number in place of a mapping is none.
    const isNumber = schema.type === 'object' && typeof value === 'number'
    if (!isNumber && holdsSecret(schema)) return report(path, `expected ${what}`)
    report(path, `expected ${what}, found ${show(value)}${suggestion(declared, value)}`)
  }
  if (schema.anyOf !== undefined) return expected(unionText(schema))
  const bound = brokenBound(schema, value)
  if (bound !== undefined) return expected(bound)
  if (schema.type === 'object') {
    if (!isObject(value)) return expected('a mapping')
    keyFaults(schema, value, path, report)
    countFaults(schema, value, path, report)
  } else if (schema.type === 'array') {
    if (!Array.isArray(value)) return expected('a list')
    if (schema.minItems !== undefined && value.length < schema.minItems) {
      report(path, 'expected at least one item, found none')
    }
    if (schema.maxItems !== undefined && value.length > schema.maxItems) {
      report(path, `expected at most ${schema.maxItems} items, found ${value.length}`)
    }
    if (schema.uniqueItems === true && new Set(value).size < value.length) {
      report(path, 'must not list an item twice')
    }
  } else if (!Check(schema, value)) {
    expected(expectation(schema))
  }
}

/** A suggestion for an invalid text: the most similar value, or another way to write it. */
function suggestion(at: Node, value: unknown): string {
  if (typeof value !== 'string') return ''
  const values = [at, ...(at.anyOf ?? [])].flatMap(branch => branch.enum ?? [])
  const near = nearest(
    value,
    values.filter(each => typeof each === 'string')
  )
  if (near !== '' || at.instead === undefined) return near && `.${near}`
  return `. Write ${at.instead.replace('VALUE', value)} for that.`
}

export function holdsSecret(at: Node, above: readonly Node[] = []): boolean {
  if (isSecret(at) || at.format === 'x-hash') return true
  // Schemas can be recursive.
  if (above.includes(at)) return false
  return [
    ...Object.values(at.properties ?? {}),
    ...Object.values(at.patternProperties ?? {}),
    ...(at.items === undefined ? [] : [at.items])
  ].some(inner => holdsSecret(inner, [...above, at]))
}

type Mapping = Readonly<Record<string, unknown>>

/** Reports unknown keys and missing required keys. */
function keyFaults(schema: Node, mapping: Mapping, path: Path, report: ReportFault): void {
  for (const key of Object.keys(mapping)) {
    const message = faultOfKey(schema, key)
    if (message !== undefined) report([...path, key], message)
    else if (mapping[key] === undefined && isNeededSecret(schema, key)) {
      const advice = 'set the environment variable that the reference names'
      report([...path, key], `the secret is empty: ${advice}`)
    }
  }
  for (const key of schema.required ?? []) {
    if (Object.hasOwn(mapping, key)) continue
    const member = schema.properties?.[key]
    const meaning = member?.description ?? expectation(member ?? schema)
    report(path, `the key "${key}" is missing (${meaning})`)
  }
}

/** A secret that is required, or whose key is a name of the operator's choice, such as a header. */
function isNeededSecret(schema: Node, key: string): boolean {
  const member = memberSchema(schema, key)
  const isOptional = schema.properties !== undefined && schema.required?.includes(key) !== true
  return member !== undefined && isSecret(member) && !isOptional
}

function faultOfKey(schema: Node, key: string): string | undefined {
  const { properties, patternProperties, additionalProperties } = schema
  if (properties !== undefined) {
    if (additionalProperties !== false || Object.hasOwn(properties, key)) return undefined
    return `unknown key "${key}".${nearest(key, Object.keys(properties))}`
  }
  if (patternProperties === undefined) return undefined
  if (Object.keys(patternProperties).some(pattern => new RegExp(pattern).test(key))) {
    return undefined
  }
  const rule = 'lower-case letters, digits and dashes; a path begins with /'
  return `the name "${key}" is not allowed: ${rule}`
}

function countFaults(schema: Node, mapping: Mapping, path: Path, report: ReportFault): void {
  const { minProperties = 0, maxProperties = Infinity, properties } = schema
  const keys = Object.keys(mapping)
  if (properties === undefined) {
    if (keys.length < minProperties) report(path, 'expected at least one member, found none')
    if (keys.length <= maxProperties) return
    return report(path, `expected at most ${maxProperties} members, found ${keys.length}`)
  }
  const names = Object.keys(properties).join(', ')
  if (keys.length > maxProperties) {
    report(path, `expected exactly one of ${names}; found ${keys.join(', ')}`)
  }
  if (keys.length < minProperties) report(path, `expected one of ${names}`)
}

function unionText(at: Node): string {
  if (at.expected !== undefined) return at.expected
  const branches = at.anyOf ?? []
  const kinds = branches
    .map(branch => branch.properties?.['kind']?.const)
    .filter(kind => typeof kind === 'string')
  if (kinds.length > 0) return `"kind" to be one of ${kinds.join(', ')}`
  return branches.map(expectation).join(' or ')
}

function expectation(at: Node): string {
  if (at.expected !== undefined) return at.expected
  if (at.const !== undefined) return show(at.const)
  if (at.enum !== undefined) return `one of ${at.enum.join(', ')}`
  const range = [
    at.minimum !== undefined ? `at least ${at.minimum}` : '',
    at.maximum !== undefined ? `at most ${at.maximum}` : ''
  ]
    .filter(Boolean)
    .join(' and ')
  if (at.type === 'integer') return `a whole number${range === '' ? '' : ` of ${range}`}`
  if (at.type === 'boolean') return 'true or false'
  if (at.type === 'string') return 'a text that is not empty'
  return at.type ?? 'another value'
}

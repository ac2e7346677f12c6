/** What is wrong in config: one fault a mistake, with file, line, what was expected and the nearest known name. */
import { isOverMaximum, maximumInWords } from './primitives.ts'
import { isObject, type Node, type Path, visit } from './visit.ts'
import { Check } from 'typebox/schema'

export interface Fault {
  readonly file: string
  /** 1-based; 0 where the file as a whole is meant. */
  readonly line: number
  /** Dotted, such as `routes.notices.upstream`. */
  readonly path: string
  readonly message: string
  /** A warning does not keep the gateway from starting. */
  readonly severity: 'fault' | 'warning'
}

/** Thrown when config cannot be used; holds every fault that was found. */
export class ConfigError extends Error {
  readonly faults: readonly Fault[]
  constructor(faults: readonly Fault[]) {
    super(faults.map(describeFault).join('\n'))
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/** One line for people: `config/routes.yaml:12 routes.notices.upstream: there is no upstream "notice"; did you mean "notices"?` */
export function describeFault({ file, line, path, message, severity }: Fault): string {
  return `${file}${line > 0 ? `:${line}` : ''} ${path === '' ? '' : `${path}: `}${severity === 'warning' ? 'warning: ' : ''}${message}`
}

/** ` Did you mean "x"?` for the nearest of the known names, or the empty string where none is near. */
export function nearest(given: string, known: Iterable<string>): string {
  let best = ''
  let least = Math.max(2, Math.floor(given.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(given.toLowerCase(), candidate.toLowerCase())
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best === '' ? '' : ` Did you mean "${best}"?`
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      )
    }
    row = next
  }
  return row[b.length] ?? 0
}

function withoutUser(written: string): string {
  const start = written.indexOf('://')
  const end = written.lastIndexOf('@')
  if (start === -1 || end < start) return written
  return `${written.slice(0, start)}://…${written.slice(end)}`
}

/** Of an address with a user and a password, only the rest. */
const show = (value: unknown) => {
  const written = withoutUser(JSON.stringify(value) ?? String(value))
  return written.length > 60 ? `${written.slice(0, 57)}…` : written
}

/** Every place where `value` does not fit its schema. */
export function schemaFaults(
  schema: Node,
  value: unknown,
  report: (path: Path, message: string) => void
): void {
  visit(schema, value, (at, found, path, _put, declared) => {
    // A secret's value must not be shown, not even a wrong one, nor one that stands where its mapping or list should.
    const expected = (branch: string) => {
      // Of a union, all that may stand there, and not only the branch of the same type.
      const what = declared.anyOf === undefined ? branch : (declared.expected ?? branch)
      if (holdsSecret(at)) return report(path, `expected ${what}`)
      report(path, `expected ${what}, found ${show(found)}${suggestion(declared, found)}`)
    }
    // A reference to nothing: either that has been said, or it may be nothing.
    if (found === undefined) return
    if (at.anyOf !== undefined) return expected(unionText(at))
    if (at.type === 'object') {
      if (!isObject(found)) return expected('a mapping')
      objectFaults(at, found, path, report)
    } else if (at.type === 'array') {
      if (!Array.isArray(found)) return expected('a list')
      if (at.minItems !== undefined && found.length < at.minItems)
        report(path, 'expected at least one item, found none')
      if (at.uniqueItems === true && new Set(found).size < found.length)
        report(path, 'must not list an item twice')
    } else if (!Check(at, found)) {
      expected(expectation(at))
    } else if (isOverMaximum(at, found)) {
      expected(maximumInWords(at) ?? '')
    }
  })
}

/** What may have been meant by a text that does not fit: the nearest value, or another way to write it. */
function suggestion(at: Node, found: unknown): string {
  if (typeof found !== 'string') return ''
  const values = [at, ...(at.anyOf ?? [])].flatMap(branch => branch.enum ?? [])
  const near = nearest(
    found,
    values.filter(value => typeof value === 'string')
  )
  if (near !== '' || at.instead === undefined) return near && `.${near}`
  return `. Write ${at.instead.replace('VALUE', found)} for that.`
}

function holdsSecret(at: Node, above: readonly Node[] = []): boolean {
  if (at.format === 'x-secret' || at.format === 'x-hash') return true
  // A schema may hold itself.
  if (above.includes(at)) return false
  return [
    ...Object.values(at.properties ?? {}),
    ...Object.values(at.patternProperties ?? {}),
    ...(at.items === undefined ? [] : [at.items])
  ].some(inner => holdsSecret(inner, [...above, at]))
}

function objectFaults(
  at: Node,
  found: Record<string, unknown>,
  path: Path,
  report: (path: Path, message: string) => void
) {
  const known = Object.keys(at.properties ?? {})
  for (const key of Object.keys(found)) {
    if (
      at.properties !== undefined &&
      at.additionalProperties === false &&
      !Object.hasOwn(at.properties, key)
    )
      report([...path, key], `unknown key "${key}".${nearest(key, known)}`)
    else if (
      at.properties === undefined &&
      at.patternProperties !== undefined &&
      !Object.keys(at.patternProperties).some(pattern => new RegExp(pattern).test(key))
    )
      report(
        [...path, key],
        `the name "${key}" is not allowed: lower-case letters, digits and dashes; a path begins with /`
      )
  }
  for (const key of at.required ?? []) {
    if (!Object.hasOwn(found, key))
      report(
        path,
        `the key "${key}" is missing (${at.properties?.[key]?.description ?? expectation(at.properties?.[key] ?? at)})`
      )
  }
  const count = Object.keys(found).length
  if (at.maxProperties !== undefined && count > at.maxProperties)
    report(
      path,
      `expected exactly one of ${known.join(', ')}; found ${Object.keys(found).join(', ')}`
    )
  if (at.minProperties !== undefined && count < at.minProperties)
    report(path, `expected one of ${known.join(', ')}`)
}

function unionText(at: Node): string {
  const kinds =
    at.anyOf?.flatMap(branch =>
      typeof branch.properties?.['kind']?.const === 'string'
        ? [branch.properties['kind'].const]
        : []
    ) ?? []
  return (
    at.expected ??
    (kinds.length > 0
      ? `"kind" to be one of ${kinds.join(', ')}`
      : (at.anyOf ?? []).map(expectation).join(' or '))
  )
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

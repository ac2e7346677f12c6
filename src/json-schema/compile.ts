/** Compiles a contract's JSON Schema; reports faults of the schema and deviations of responses. */
import { createRequire } from 'node:module'
import type { Ajv2020, ErrorObject } from 'ajv/dist/2020.js'
import { closedSchema, isRecord, memberNames, type JsonSchema } from './closed-schema.ts'
import { holdsRawNumber, plain } from './plain-value.ts'
import { cutsMayMislead, forbidsCuts, sampledValue } from './sampled-value.ts'
import { withoutNamedMembers } from './unevaluated-errors.ts'
import { relevantErrors } from './union-errors.ts'

/**
 * A member is absent, has another type, has the type but breaks a rule, or is not in the schema.
 */
export type DeviationKind = 'missing' | 'retyped' | 'invalid' | 'new'

export interface Deviation {
  readonly kind: DeviationKind
  /**
   * Such as `items[].id`, or `(all)` for the whole. Names that the schema does not have are `*`,
   * since they may be data.
   */
  readonly path: string
}

export interface CompiledSchema {
  /** The first deviation that the schema itself refuses: none for members that it does not name. */
  readonly refusal: (value: unknown) => Deviation | undefined
  /** All distinct deviations, members that the schema does not name included. */
  readonly deviations: (value: unknown) => Deviation[]
  /**
   * Those of a sample of the value's long lists and maps; of the whole value only where the sample
   * has none. None where only the sample deviates.
   * perf: 2 to 4 ms instead of 20 for 140 KB of JSON, each of whose 1000 rows deviates, and 2 ms
   * instead of 1.5 s for 200,000 rows (alone); without it: `deviations`.
   */
  readonly sampledDeviations: (value: unknown) => Deviation[]
}

const require = createRequire(import.meta.url)

/** Loaded with the first contract: a gateway without contracts starts sooner. */
function library() {
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats')
  return { Ajv2020, addFormats: addFormats as unknown as (ajv: Ajv2020) => void }
}

/**
 * One instance for each schema, since an instance keeps its schemas for good. Only one has the meta
 * schema, which costs more than most schemas.
 */
function createAjv({
  allErrors,
  meta
}: {
  readonly allErrors: boolean
  readonly meta: boolean
}): Ajv2020 {
  const { Ajv2020: Ajv, addFormats } = library()
  const ajv = new Ajv({
    allErrors,
    ownProperties: true,
    meta,
    validateSchema: meta,
    verbose: true,
    strict: true,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    logger: false
  })
  addFormats(ajv)
  // Keywords of OpenAPI, without effect on validation.
  ajv.addVocabulary(['example', 'externalDocs', 'xml', 'discriminator'])
  return ajv
}

let schemas: Ajv2020 | undefined
const compiled = new WeakMap<object, CompiledSchema>()

/** Cached by schema object. @throws where `schemaProblems` reports something */
export function compileSchema(schema: JsonSchema): CompiledSchema {
  const cached = compiled.get(schema)
  if (cached !== undefined) return cached
  const { $schema: _, $id: __, ...rules } = schema
  const validate = createAjv({ allErrors: false, meta: false }).compile(rules)
  const closed = closedSchema(rules)
  const validateAll = createAjv({ allErrors: true, meta: false }).compile(closed)
  const names = memberNames(rules)
  const mayCut = !forbidsCuts(rules)
  const checkClosed =
    mayCut && cutsMayMislead(rules)
      ? createAjv({ allErrors: false, meta: false }).compile(closed)
      : undefined
  const differences = (value: unknown, all: boolean): Deviation[] => {
    const check = all ? validateAll : validate
    try {
      // A raw number is an object to Ajv: it would pass where an object is due.
      if (check(value) && !holdsRawNumber(value)) return []
      const plainValue = plain(value)
      return check(plainValue)
        ? []
        : distinct(
            relevantErrors(withoutNamedMembers(check.errors ?? [], all ? closed : rules)).map(
              error => deviationOf(error, plainValue, names)
            )
          )
    } catch {
      // The value is nested deeper than the stack allows.
      return [{ kind: 'invalid', path: '(all)' }]
    }
  }
  const result: CompiledSchema = {
    refusal: value => differences(value, false)[0],
    deviations: value => differences(value, true),
    sampledDeviations: value => {
      const sample = mayCut ? sampleOf(value, names) : value
      const inSample = sample === value ? [] : differences(sample, true)
      if (inSample.length === 0) return differences(value, true)
      return checkClosed !== undefined && keeps(checkClosed, value) ? [] : inSample
    }
  }
  compiled.set(schema, result)
  return result
}

/** False for a value that is nested deeper than the stack allows. */
function keeps(check: (value: unknown) => boolean, value: unknown): boolean {
  try {
    return check(holdsRawNumber(value) ? plain(value) : value)
  } catch {
    return false
  }
}

const fieldName = /^[A-Za-z_$][\w$-]{0,63}$/

function deviationOf(
  { keyword, instancePath, params }: ErrorObject,
  value: unknown,
  names: ReadonlySet<string>
): Deviation {
  const place = placeOf(instancePath, value, names)
  const member = (name: unknown, isShown: (name: string) => boolean) =>
    typeof name === 'string' ? joined(place, isShown(name) ? name : '*') : place
  const deviation = (kind: DeviationKind, path = place): Deviation => ({
    kind,
    path: path === '' ? '(all)' : path
  })
  const isNamed = (name: string) => names.has(name)
  const isName = (name: string) => names.has(name) || fieldName.test(name)
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return deviation('missing', member(params['missingProperty'], isNamed))
    case 'additionalProperties':
      return deviation('new', member(params['additionalProperty'], isName))
    case 'unevaluatedProperties':
      return deviation('new', member(params['unevaluatedProperty'], isName))
    case 'type':
    case 'anyOf':
    case 'oneOf':
      return deviation('retyped')
    default:
      return deviation('invalid')
  }
}

/** A JSON pointer as `items[].id`; empty for the root. */
function placeOf(pointer: string, value: unknown, names: ReadonlySet<string>): string {
  let place = ''
  let current = value
  for (const name of stepsOf(pointer)) {
    place = Array.isArray(current) ? `${place}[]` : joined(place, names.has(name) ? name : '*')
    const isHolder = isRecord(current) || Array.isArray(current)
    current = isHolder ? (current as Record<string, unknown>)[name] : undefined
  }
  return place
}

function joined(place: string, name: string): string {
  return place === '' ? name : `${place}.${name}`
}

function distinct(deviations: readonly Deviation[]): Deviation[] {
  return [
    ...new Map(
      deviations.map(deviation => [`${deviation.kind} ${deviation.path}`, deviation])
    ).values()
  ]
}

interface Problem {
  readonly path: ReadonlyArray<string>
  readonly message: string
}

/** The value itself where it is nested deeper than the stack allows. */
function sampleOf(value: unknown, names: ReadonlySet<string>): unknown {
  try {
    return sampledValue(value, names)
  } catch {
    return value
  }
}

/** Faults of the schema itself. */
export function schemaProblems(schema: JsonSchema): Problem[] {
  const { $schema: dialect, $id: _, ...rules } = schema
  if (typeof dialect === 'string' && !/(2020-12|2019-09|draft-0[67])\/schema/.test(dialect)) {
    return [
      {
        path: ['$schema'],
        message: 'expected JSON Schema 2020-12 (2019-09, draft-07 and draft-06 are read as such)'
      }
    ]
  }
  schemas ??= createAjv({ allErrors: true, meta: true })
  if (schemas.validateSchema(rules) !== true) {
    return innermost(schemas.errors ?? []).map(error =>
      problem(error.instancePath, reasonOf(error))
    )
  }
  try {
    compileSchema(schema)
    return []
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const [, pointer] = /at path "#([^"]*)"/.exec(message) ?? []
    const [, word] = /unknown keyword: "([^"]+)"/.exec(message) ?? []
    const [, reference] = /resolve reference (\S+)/.exec(message) ?? []
    const [, pattern] = /Invalid regular expression: \/(.*)\/u/.exec(message) ?? []
    const place = find(
      rules,
      (key, value) =>
        key === word ||
        (key === '$ref' && value === reference) ||
        (key === 'pattern' && value === pattern)
    )
    const text =
      reference === undefined
        ? message.replace(/^strict mode: /, '').replace(/ ignored in schema.*/, '')
        : `there is nothing at "${reference}": a contract must hold all that it refers to`
    return [{ path: place ?? stepsOf(pointer ?? ''), message: text }]
  }
}

function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
function problem(pointer: string, message: string): Problem {
  return { path: stepsOf(pointer), message }
}

function reasonOf({
  keyword,
  instancePath,
  message = 'is not a valid JSON Schema'
}: ErrorObject): string {
  if (keyword === 'enum' || keyword === 'anyOf') return 'is not a type of JSON Schema'
  return instancePath.endsWith('/items')
    ? `${message}; the items of a tuple are \`prefixItems\``
    : message
}

/** The first error of each place; none for places that contain another faulty place. */
function innermost(errors: readonly ErrorObject[]): ErrorObject[] {
  const first = [...new Map(errors.toReversed().map(error => [error.instancePath, error])).values()]
  return first.filter(
    ({ instancePath }) => !first.some(other => other.instancePath.startsWith(`${instancePath}/`))
  )
}

function find(
  value: unknown,
  fits: (key: string, value: unknown) => boolean,
  path: readonly string[] = []
): string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, member] of Object.entries(value)) {
    if (fits(key, member)) return [...path, key]
    const nested = find(member, fits, [...path, key])
    if (nested !== undefined) return nested
  }
  return undefined
}

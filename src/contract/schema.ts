/** JSON Schemas of responses: their faults, and what a value has otherwise than they say. */
import { createRequire } from 'node:module'
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { isRawNumber, isRecord, stepsOf } from '../json/values.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

function createAjv(options: { allErrors?: true; passContext?: true } = {}): Ajv2020 {
  // Loaded with the first contract: a gateway without contracts starts sooner.
  const require = createRequire(import.meta.url)
  const { Ajv2020: Ajv } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats')
  const ajv = new Ajv({
    ...options,
    validateSchema: false,
    verbose: true,
    ownProperties: true,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    allowUnionTypes: true,
    logger: false
  })
  const add = addFormats as unknown as (ajv: Ajv2020) => void
  add(ajv)
  // Keywords of OpenAPI, without effect on validation.
  return ajv.addVocabulary(['example', 'externalDocs', 'xml', 'discriminator'])
}

/** Kept: it compiles the schema of schemas. */
let schemas: Ajv2020 | undefined

export function schemaProblem(schema: JsonSchema) {
  const { $schema: dialect, $id: _, ...rules } = schema
  if (typeof dialect === 'string' && !/(2020-12|2019-09|draft-0[67])\/schema/.test(dialect)) {
    const message = 'expected JSON Schema 2020-12 (2019-09, draft-07 and draft-06 are read as such)'
    return { path: ['$schema'], message }
  }
  schemas ??= createAjv()
  void schemas.validateSchema(rules)
  const [error] = schemas.errors ?? []
  if (error !== undefined) return { path: stepsOf(error.instancePath), message: reasonOf(error) }
  try {
    createAjv().compile(rules)
    return undefined
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    return {
      path: placeIn(rules, message, []),
      message: message.replace(/^strict mode: /, '').replace(/ (ignored in schema|from id) .*/, '')
    }
  }
}

function reasonOf({ keyword, instancePath, message = '' }: ErrorObject): string {
  if (keyword === 'enum') return 'is not a type of JSON Schema'
  const isTuple = instancePath.endsWith('/items')
  return isTuple ? `${message}; the items of a tuple are \`prefixItems\`` : message
}

/** Where Ajv stumbled, which says over what, and not where that is. */
function placeIn(value: unknown, message: string, path: readonly string[]): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  for (const [key, member] of Object.entries(value)) {
    const text = typeof member === 'string' ? member : ''
    const phrases = [
      `unknown keyword: "${key}"`,
      `unknown format "${text}"`,
      `reference ${text} from`,
      `regular expression: /${text}/`
    ]
    if (phrases.some(phrase => message.includes(phrase))) return [...path, key]
    const nested = placeIn(member, message, [...path, key])
    if (nested.length > 0) return nested
  }
  return []
}

export interface Deviation {
  /** It is absent, has another type, has the type but breaks a rule, or is not in the schema. */
  readonly kind: 'missing' | 'retyped' | 'invalid' | 'new'
  /** Such as `items[].id`, or `(all)`. Names that the schema does not have are `*`: maybe data. */
  readonly path: string
}

const fieldName = /^[A-Za-z_$][\w$-]{0,63}$/
/** Rows of a list are alike: a change of a back-end shows in the first ones. */
const maxItems = 100
/** Bounds the work on a hostile response: pointers to all levels are long together. */
const maxLevels = 200

/** Compiles when it is asked first. Both throw for a value that is nested too deeply. */
export function compileContract(schema: JsonSchema) {
  const names = new Set(namesIn(schema))
  // A list that was cut may break these.
  const isCounted = names.has('minItems') || names.has('contains')
  let first: ValidateFunction | undefined
  let all: ValidateFunction | undefined
  return {
    /** The first that the schema itself refuses: none for members that it does not name. */
    refusal: (value: unknown): Deviation | undefined => {
      first ??= createAjv().compile(schema)
      first(plainCopy(value, Infinity))
      return deviationsOf(first, names)[0]
    },
    /** All, each once; members that the schema does not name included. Long lists are cut. */
    deviations: (value: unknown): Deviation[] => {
      all ??= compileNoting(schema)
      const unnamed: Unnamed = new Map()
      all.call(unnamed, plainCopy(value, isCounted ? Infinity : maxItems))
      const found = deviationsOf(all, names)
      for (const [pointer, members] of unnamed) {
        const place = placeOf(pointer, names)
        for (const name of members) found.push({ kind: 'new', path: joined(place, name) })
      }
      return [...new Map(found.map(each => [`${each.kind} ${each.path}`, each])).values()]
    }
  }
}

/** Numbers that keep their digits are rounded: they are objects to Ajv. */
function plainCopy(value: unknown, maxLength: number, level = 0): unknown {
  if (level > maxLevels) throw new Error('nested too deeply')
  const copyOf = (inner: unknown) => plainCopy(inner, maxLength, level + 1)
  if (isRawNumber(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.slice(0, maxLength).map(copyOf)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, copyOf(inner)]))
}

function namesIn(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return [...Object.keys(schema), ...Object.values(schema).flatMap(namesIn)]
}

/** The members of objects, by their pointers, that no schema names. */
type Unnamed = Map<string, readonly string[]>

/** Stands beside the names of members, since Ajv knows which schemas hold for an object. */
const mark = 'x-names-members'

/** @returns a validator whose `this` is to be `Unnamed` */
function compileNoting(contract: JsonSchema): ValidateFunction {
  const ajv = createAjv({ allErrors: true, passContext: true })
  ajv.addKeyword({
    keyword: mark,
    type: 'object',
    // Where an `if` fails, Ajv looks at nothing behind that.
    before: 'required',
    compile: (_, schema) =>
      function note(this: Unnamed, value: object, at?: { instancePath: string }) {
        const pointer = at?.instancePath ?? ''
        const names = this.get(pointer) ?? Object.keys(value)
        const others = names.filter(name => !isNamed(name, schema))
        this.set(pointer, others)
        return true
      }
  })
  return ajv.compile(marked(contract) as JsonSchema)
}

/** These say which members an object may have. */
const naming = ['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties']
/** Keywords whose schemas or values do not name members of the value. */
const unread = new Set(['not', 'contains', 'const', 'enum'])

function marked(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(marked)
  if (!isRecord(schema)) return schema
  const copy = Object.fromEntries(
    Object.entries(schema).map(([key, inner]) => [key, unread.has(key) ? inner : marked(inner)])
  )
  return naming.some(key => key in schema) ? { ...copy, [mark]: true } : copy
}

/** @returns true where the schema says what other members may be */
function isNamed(name: string, schema: JsonSchema): boolean {
  if ('additionalProperties' in schema || 'unevaluatedProperties' in schema) return true
  const { properties = {}, patternProperties = {} } = schema as Record<string, object>
  const patterns = Object.keys(patternProperties)
  return Object.hasOwn(properties, name) || patterns.some(each => new RegExp(each, 'u').test(name))
}

const kinds: Readonly<Record<string, Deviation['kind']>> = {
  required: 'missing',
  dependentRequired: 'missing',
  additionalProperties: 'new',
  unevaluatedProperties: 'new',
  type: 'retyped',
  anyOf: 'retyped',
  oneOf: 'retyped'
}

function deviationsOf({ errors }: ValidateFunction, names: ReadonlySet<string>): Deviation[] {
  return relevant(errors ?? []).map(({ keyword, instancePath, params }) => {
    const place = placeOf(instancePath, names)
    const name: unknown =
      params['missingProperty'] ?? params['additionalProperty'] ?? params['unevaluatedProperty']
    const path = typeof name === 'string' ? joined(place, name) : place
    return { kind: kinds[keyword] ?? 'invalid', path: path === '' ? '(all)' : path }
  })
}

/**
 * Of a failed union its own error, or those of the one branch of the value's type. Ajv lists the
 * errors of branches before that of the union.
 */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const ofType = errors.filter(({ keyword }) => keyword === 'type')
  const retyped = Map.groupBy(ofType, ({ instancePath }) => instancePath)
  const kept: ErrorObject[] = []
  const clear = new Set<string>()
  let failed: string | undefined
  for (const error of errors.toReversed()) {
    const { keyword, instancePath, schema } = error
    const isOfBranch = failed !== undefined && `${instancePath}/`.startsWith(`${failed}/`)
    const isOfOtherType = keyword === 'type' && clear.has(instancePath)
    if (isOfBranch || isOfOtherType || keyword === 'if') continue
    if (keyword === 'anyOf' || keyword === 'oneOf') {
      const otherTypes = retyped.get(instancePath)?.length ?? 0
      if ((schema as readonly unknown[]).length - otherTypes === 1) {
        clear.add(instancePath)
        continue
      }
      failed = instancePath
    }
    kept.push(error)
  }
  return kept.toReversed()
}

/** A JSON pointer as `items[].id`; empty for the root. */
function placeOf(pointer: string, names: ReadonlySet<string>): string {
  let place = ''
  for (const step of stepsOf(pointer)) {
    if (/^\d+$/.test(step)) place += '[]'
    else place = joined(place, names.has(step) ? step : '*')
  }
  return place
}

function joined(place: string, name: string): string {
  const shown = fieldName.test(name) ? name : '*'
  return place === '' ? shown : `${place}.${shown}`
}

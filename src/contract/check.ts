/** What a value has otherwise than its contract says. */
import { createRequire } from 'node:module'
import type { Ajv2020, ErrorObject, ValidateFunction } from 'ajv/dist/2020.js'
import { stepsOf } from '../json/pointer.ts'
import { isRawNumber } from '../json/values.ts'
import { describe, type JsonSchema, namesIn, withTypedUnions } from './schema.ts'

export interface Deviation {
  /** It is absent, has another type, has the type but breaks a rule, or is not in the schema. */
  readonly kind: 'missing' | 'retyped' | 'invalid' | 'new'
  /**
   * Such as `items[].id`, or `(all)` for the whole. Names that the schema does not have are `*`,
   * since they may be data.
   */
  readonly path: string
}

export interface CompiledContract {
  /** The first deviation that the schema itself refuses: none for members that it does not name. */
  readonly refusal: (value: unknown) => Deviation | undefined
  /** All, each once; members that the schema does not name included. Long lists are cut. */
  readonly deviations: (value: unknown) => Deviation[]
}

/** @throws Error for a schema that `schemaProblems` refuses */
export function compileContract(contract: JsonSchema): CompiledContract {
  const { $schema: _, $id: __, ...schema } = contract
  const names = namesIn(schema)
  const rules = withTypedUnions(schema)
  const validatorOf = (allErrors: boolean) => {
    let validate: ValidateFunction | undefined
    return (value: unknown): Deviation[] => {
      validate ??= createAjv({ allErrors, validateSchema: false, meta: false }).compile(rules)
      if (validate(value)) return []
      return relevant(validate.errors ?? []).map(error => deviationOf(error, value, names))
    }
  }
  const [first, all] = [validatorOf(false), validatorOf(true)]
  const mayCut = !countsItems(schema)
  return {
    refusal: value => guarded(value, first)[0],
    deviations: value =>
      guarded(value, plain => {
        const looked = mayCut ? withoutLongLists(plain) : plain
        const found = [...all(looked), ...unnamed(looked, schema)]
        return [...new Map(found.map(each => [`${each.kind} ${each.path}`, each])).values()]
      })
  }
}

/** @param options beside those of all contracts */
export function createAjv(options: {
  readonly allErrors: boolean
  readonly validateSchema: boolean
  readonly meta: boolean
}): Ajv2020 {
  // Loaded with the first contract: a gateway without contracts starts sooner.
  const require = createRequire(import.meta.url)
  const { Ajv2020: Ajv } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats')
  const ajv = new Ajv({
    ...options,
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

/** @param check may throw for a value that is nested deeper than the stack allows */
function guarded(value: unknown, check: (plain: unknown) => Deviation[]): Deviation[] {
  try {
    // Numbers that keep their digits are objects to Ajv.
    return check(holdsRawNumber(value) ? JSON.parse(JSON.stringify(value)) : value)
  } catch {
    return [{ kind: 'invalid', path: '(all)' }]
  }
}

function holdsRawNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return isRawNumber(value) || Object.values(value).some(holdsRawNumber)
}

/** Rows of a list are alike: a change of a back-end shows in the first ones. */
const maxItems = 100

function withoutLongLists(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, maxItems).map(withoutLongLists)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([name, each]) => [name, withoutLongLists(each)])
  return Object.fromEntries(entries)
}

/** Whether a list may break the schema only because it was cut. */
function countsItems(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  return Object.entries(schema).some(
    ([key, inner]) => key === 'minItems' || key === 'contains' || countsItems(inner)
  )
}

/** Of a failed union its own error, and not those of each branch. */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const unions = new Set(errors.filter(isUnion).map(({ instancePath }) => instancePath))
  const within = new Map<string, boolean>([['', unions.has('')]])
  const isWithinUnion = (path: string): boolean => {
    const known = within.get(path)
    if (known !== undefined) return known
    const result = unions.has(path) || isWithinUnion(path.slice(0, path.lastIndexOf('/')))
    within.set(path, result)
    return result
  }
  return errors.filter(
    error => error.keyword !== 'if' && (isUnion(error) || !isWithinUnion(error.instancePath))
  )
}

function isUnion({ keyword }: ErrorObject): boolean {
  return keyword === 'anyOf' || keyword === 'oneOf'
}

function deviationOf(
  { keyword, instancePath, params }: ErrorObject,
  value: unknown,
  names: ReadonlySet<string>
): Deviation {
  const place = placeOf(instancePath, value, names)
  const kind = kindOf(keyword)
  const name: unknown =
    params['missingProperty'] ?? params['additionalProperty'] ?? params['unevaluatedProperty']
  const path = typeof name === 'string' ? joined(place, name) : place
  return { kind, path: path === '' ? '(all)' : path }
}

function kindOf(keyword: string): Deviation['kind'] {
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return 'missing'
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'new'
    case 'type':
    case 'anyOf':
    case 'oneOf':
      return 'retyped'
    default:
      return 'invalid'
  }
}

/** A JSON pointer as `items[].id`; empty for the root. */
function placeOf(pointer: string, value: unknown, names: ReadonlySet<string>): string {
  let place = ''
  let current = value
  for (const step of stepsOf(pointer)) {
    if (Array.isArray(current)) place += '[]'
    else place = joined(place, names.has(step) ? step : '*')
    current = (current as Record<string, unknown> | undefined)?.[step]
  }
  return place
}

const fieldName = /^[A-Za-z_$][\w$-]{0,63}$/

function joined(place: string, name: string): string {
  const shown = fieldName.test(name) ? name : '*'
  return place === '' ? shown : `${place}.${shown}`
}

/** Members that no schema of their object names, unless one says what others may be. */
function unnamed(value: unknown, root: JsonSchema): Deviation[] {
  const found: Deviation[] = []
  const look = (current: unknown, schemas: readonly unknown[], place: string): void => {
    if (typeof current !== 'object' || current === null) return
    const { member, items, isClosed } = describe(schemas, root)
    if (Array.isArray(current)) {
      for (const item of current) look(item, items, `${place}[]`)
      return
    }
    for (const [name, each] of Object.entries(current)) {
      const inner = member(name)
      if (inner.length > 0) look(each, inner, joined(place, name))
      else if (isClosed) found.push({ kind: 'new', path: joined(place, name) })
    }
  }
  look(value, [root], '')
  return found
}

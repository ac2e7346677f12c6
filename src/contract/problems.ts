/** Faults of a contract's schema itself, with their places. */
import type { ErrorObject } from 'ajv/dist/2020.js'
import { stepsOf } from '../json/pointer.ts'
import { createAjv } from './check.ts'
import type { JsonSchema } from './schema.ts'

interface Problem {
  readonly path: readonly string[]
  readonly message: string
}

let schemas: ReturnType<typeof createAjv> | undefined

export function schemaProblems(schema: JsonSchema): Problem[] {
  const { $schema: dialect, $id: _, ...rules } = schema
  if (typeof dialect === 'string' && !/(2020-12|2019-09|draft-0[67])\/schema/.test(dialect)) {
    const message = 'expected JSON Schema 2020-12 (2019-09, draft-07 and draft-06 are read as such)'
    return [{ path: ['$schema'], message }]
  }
  const anchor = find(rules, (key, value) => key === '$anchor' && typeof value === 'string')
  if (anchor !== undefined) {
    return [{ path: anchor, message: 'is not read here: refer by place, as "#/$defs/NAME"' }]
  }
  schemas ??= createAjv({ allErrors: true, validateSchema: true, meta: true })
  if (schemas.validateSchema(rules) !== true) {
    return innermost(schemas.errors ?? []).map(error => ({
      path: stepsOf(error.instancePath),
      message: reasonOf(error)
    }))
  }
  try {
    createAjv({ allErrors: false, validateSchema: false, meta: false }).compile(rules)
    return []
  } catch (error) {
    return [problemOf(error instanceof Error ? error.message : String(error), rules)]
  }
}

/** @param message of Ajv, which names what it stumbles over and not where that is */
function problemOf(message: string, rules: JsonSchema): Problem {
  const [, pointer = ''] = /at path "#([^"]*)"/.exec(message) ?? []
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
  return {
    path: place ?? stepsOf(pointer),
    message:
      reference === undefined
        ? message.replace(/^strict mode: /, '').replace(/ ignored in schema.*/, '')
        : `there is nothing at "${reference}": a contract must hold all that it refers to`
  }
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

import { createRequire } from 'node:module'
import type { Ajv2020, ErrorObject } from 'ajv/dist/2020.js'
import { stepsOf } from '../json/values.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

interface Problem {
  readonly path: readonly string[]
  readonly message: string
}

export function createAjv(options: { allErrors?: true; passContext?: true } = {}): Ajv2020 {
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

export function schemaProblem(schema: JsonSchema): Problem | undefined {
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

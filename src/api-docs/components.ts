/** Contracts as components of a document. */
import { isSchema, type JsonSchema } from '../contract/schema.ts'
import { escapeStep, stepsOfReference } from '../json/pointer.ts'

/** Keywords whose members are names, and not keywords. */
const maps = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions'
])
const definitions = new Set(['$defs', 'definitions'])

/**
 * Adds a contract, and each of its definitions by itself: types that are generated from a document
 * may refer to components only.
 * @returns the reference to it
 */
export function addContract(
  schemas: Record<string, JsonSchema>,
  route: string,
  contract: JsonSchema
): JsonSchema {
  const { $schema: _, $id: __, ...root } = contract
  const taken = new Set(Object.keys(schemas))
  const name = freeName(`${pascal(route)}Data`, taken)
  /** The components, by their places in the contract. */
  const places = new Map([['', name]])

  function collect(value: unknown, place: string, isMap: boolean): void {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      const at = `${place}/${key}`
      const isHolder = !isMap && definitions.has(key) && isSchema(inner)
      if (isHolder) {
        for (const each of Object.keys(inner)) {
          places.set(`${at}/${each}`, freeName(name + pascal(each), taken))
        }
      }
      collect(inner, at, !isMap && maps.has(key))
    }
  }

  /** @param reference such as `#/$defs/Item` */
  function component(reference: string): string {
    const steps = stepsOfReference(reference)
    for (let length = steps.length; length > 0; length--) {
      const found = places.get(['', ...steps.slice(0, length)].join('/'))
      if (found !== undefined) return placeOf(found, steps.slice(length))
    }
    return placeOf(name, steps)
  }

  function rewrite(value: unknown, place: string, isMap: boolean): unknown {
    if (Array.isArray(value)) return value.map((each, at) => rewrite(each, `${place}/${at}`, false))
    if (!isSchema(value)) return value
    const members = Object.entries(value).flatMap(([key, inner]) => {
      const at = `${place}/${key}`
      if (!isMap && key === '$ref' && typeof inner === 'string') return [[key, component(inner)]]
      if (isMap || !definitions.has(key) || !isSchema(inner)) {
        return [[key, rewrite(inner, at, !isMap && maps.has(key))]]
      }
      for (const [each, schema] of Object.entries(inner)) {
        const of = `${at}/${each}`
        schemas[places.get(of) ?? ''] = rewrite(schema, of, false) as JsonSchema
      }
      return []
    })
    return Object.fromEntries(members) as unknown
  }

  collect(root, '', false)
  schemas[name] = rewrite(root, '', false) as JsonSchema
  return { $ref: placeOf(name, []) }
}

function placeOf(component: string, steps: readonly string[]): string {
  const written = steps.map(step => encodeURIComponent(escapeStep(step)))
  return ['#/components/schemas', component, ...written].join('/')
}

/** A name as one word; those of components have only letters and digits. */
export function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map(word => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** The name, with a number where it is taken; it is taken from now on. */
export function freeName(name: string, taken: Set<string>): string {
  let free = name
  for (let n = 2; taken.has(free); n++) free = `${name}${n}`
  taken.add(free)
  return free
}

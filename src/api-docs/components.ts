/** Contracts as components of a document. */
import type { JsonSchema } from '../contract/schema.ts'
import { stepsOfReference, isRecord, valueAt } from '../json/values.ts'

/** Keywords whose members are names, and not keywords. */
const maps = new Set(['properties', 'patternProperties', 'dependentSchemas'])
/** Keywords that a component has not: the schemas that they hold become components themselves. */
const dropped = new Set(['$schema', '$id', '$defs', 'definitions'])

/**
 * Adds a contract, and each schema that it refers to by itself: types that are generated from a
 * document may refer to components only.
 * @returns the reference to it
 */
export function addContract(
  schemas: Record<string, JsonSchema>,
  route: string,
  contract: JsonSchema
): JsonSchema {
  const taken = new Set(Object.keys(schemas))
  const names = new Map<unknown, string>()

  function referenceTo(schema: unknown, name: string): string {
    let component = names.get(schema)
    if (component === undefined) {
      component = freeName(`${pascal(route)}Data${pascal(name)}`, taken)
      names.set(schema, component)
      schemas[component] = rewrite(schema, false) as JsonSchema
    }
    return `#/components/schemas/${component}`
  }

  function rewrite(value: unknown, isMap: boolean): unknown {
    if (Array.isArray(value)) return value.map(each => rewrite(each, false))
    if (!isRecord(value)) return value
    const members = Object.entries(value).flatMap(([key, inner]) => {
      if (isMap) return [[key, rewrite(inner, false)]]
      if (dropped.has(key)) return []
      if (key !== '$ref') return [[key, rewrite(inner, maps.has(key))]]
      const name = stepsOfReference(String(inner)).at(-1) ?? ''
      return [[key, referenceTo(valueAt(contract, stepsOfReference(String(inner))), name)]]
    })
    return Object.fromEntries(members) as unknown
  }

  return { $ref: referenceTo(contract, '') }
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

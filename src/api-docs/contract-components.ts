/**
 * A contract's JSON Schema as components of an OpenAPI document. Each definition, and each other
 * schema that a reference names, becomes its own component, because generators of client types
 * find named types only there.
 */
import { isSchema as isRecord, type JsonSchema, resolveReference } from '../contract/schema.ts'

const definitionKeywords = ['$defs', 'definitions'] as const
/** Steps of a pointer that say nothing in a name. */
const keywordsOfPlaces = new Set<string>([...definitionKeywords, 'properties'])

/** One schema that becomes a component. */
interface Lifted {
  readonly component: string
  /** Its place in the contract as a JSON Pointer fragment (RFC 6901 §6), such as `#/$defs/Item`. */
  readonly pointer: string
  readonly schema: JsonSchema
}

/**
 * @param name the component name of the contract itself
 * @param nameOf returns the wanted component name, or a free one like it
 * @returns the components by name; the contract itself is the first
 */
export function contractComponents(
  contract: JsonSchema,
  name: string,
  nameOf: (wanted: string) => string
): Record<string, JsonSchema> {
  const definitions = lift(contract, '#', name, nameOf)
  const lifted = [...definitions, ...referredTo(contract, definitions, nameOf)]
  // The nearest enclosing component wins: `#/$defs/Item/properties/id` lies within `#/$defs/Item`.
  const nearestFirst = lifted.toSorted((a, b) => b.pointer.length - a.pointer.length)
  const target = (reference: string): string => {
    const pointer = decodeURIComponent(reference)
    const home = nearestFirst.find(
      each => pointer === each.pointer || pointer.startsWith(`${each.pointer}/`)
    )
    return home === undefined
      ? reference
      : `#/components/schemas/${home.component}${pointer.slice(home.pointer.length)}`
  }
  return Object.fromEntries(
    lifted.map(({ component, schema }) => {
      const {
        $schema: _schema,
        $id: _id,
        $defs: _defs,
        definitions: _definitions,
        ...plain
      } = schema
      return [component, withReferences(plain, target)]
    })
  )
}

function lift(
  schema: JsonSchema,
  pointer: string,
  component: string,
  nameOf: (wanted: string) => string
): Lifted[] {
  const below = definitionKeywords.flatMap(keyword => {
    const definitions = schema[keyword]
    if (!isRecord(definitions)) return []
    return Object.entries(definitions).flatMap(([name, definition]) => {
      if (!isRecord(definition)) return []
      const place = `${pointer}/${keyword}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
      return lift(definition, place, nameOf(component + pascal(name)), nameOf)
    })
  })
  return [{ component, pointer, schema }, ...below]
}

/** The schemas that references name, beside those that are lifted already. */
function referredTo(
  contract: JsonSchema,
  lifted: readonly Lifted[],
  nameOf: (wanted: string) => string
): Lifted[] {
  const component = lifted[0]?.component ?? ''
  const others = new Map<string, Lifted>()
  withReferences(contract, reference => {
    const pointer = decodeURIComponent(reference)
    const isLifted = others.has(pointer) || lifted.some(each => each.pointer === pointer)
    const schema = isLifted ? undefined : schemaOf(resolveReference(reference, contract))
    if (schema === undefined) return reference
    const steps = pointer
      .split('/')
      .slice(1)
      .filter(step => !keywordsOfPlaces.has(step))
    const wanted = component + steps.map(pascal).join('')
    others.set(pointer, { component: nameOf(wanted), pointer, schema })
    return reference
  })
  return [...others.values()]
}

/** A schema may be true or false. */
function schemaOf(value: unknown): JsonSchema | undefined {
  if (typeof value === 'boolean') return value ? {} : { not: {} }
  return isRecord(value) ? value : undefined
}

function withReferences(schema: JsonSchema, target: (reference: string) => string): JsonSchema {
  const rewrite = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rewrite)
    if (!isRecord(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => {
        const isReference = key === '$ref' && typeof member === 'string' && member.startsWith('#')
        return [key, isReference ? target(member) : rewrite(member)]
      })
    )
  }
  return rewrite(schema) as JsonSchema
}

/** `notice-item` → `NoticeItem`. */
export function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map(word => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

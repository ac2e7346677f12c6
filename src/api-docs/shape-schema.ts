/** The JSON Schema of a shape's result: named members and made types; the rest stays open. */
import type { JsonSchema } from '../json-schema/closed-schema.ts'
import type { ShapeStep } from '../config/schema/shapes.ts'
import { flatten } from '../config/schema/shape-steps.ts'
import { isWrapped } from '../shaping/shape.ts'

interface Described {
  /** The schema of `data`, or of the whole body without an envelope. */
  readonly data: JsonSchema
  readonly isWrapped: boolean
  /** Whether its members stand beside those of the envelope. */
  readonly isFlat: boolean
  /** Members beside `data`. */
  readonly beside: Readonly<Record<string, JsonSchema>>
  readonly requiredBeside: readonly string[]
}

const count = { type: 'integer', minimum: 0 }

export function describeShape(
  steps: readonly ShapeStep[],
  shapes: Readonly<Record<string, readonly ShapeStep[]>>
): Described {
  const flat = flatten(steps, shapes)
  const last = flat.at(-1)
  const beside = {
    ...((last?.wrap === 'list' || last?.paging !== undefined) && { total: count }),
    ...(last?.paging?.current !== undefined && { current: count }),
    ...(last?.paging?.pageSize !== undefined && { pageSize: count })
  }
  return {
    data: flat.reduce(after, {}),
    isWrapped: isWrapped(steps, shapes),
    isFlat: last?.wrap === 'flat',
    beside,
    requiredBeside: 'total' in beside ? ['total'] : []
  }
}

interface Members {
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
}

const membersOf = ({ properties = {}, required = [] }: JsonSchema) =>
  ({ properties, required }) as Members
const withMembers = ({ properties, required }: Members): JsonSchema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required })
})
const itemsOf = (schema: JsonSchema) =>
  schema['type'] === 'array' ? ((schema['items'] ?? {}) as JsonSchema) : {}

/** The schema after an operation on a value with this schema. */
function after(schema: JsonSchema, step: ShapeStep): JsonSchema {
  if (step.pick !== undefined) return pick(schema, step.pick)
  if (step.drop !== undefined) return without(schema, step.drop)
  if (step.rename !== undefined) return rename(schema, Object.entries(step.rename))
  if (step.move !== undefined) {
    return Object.entries(step.move).reduce(
      (current, [from, to]) => move(current, from, to),
      schema
    )
  }
  if (step.default !== undefined) {
    return change(
      schema,
      step.default,
      (member, value) =>
        member === undefined || Object.keys(member).length === 0 ? schemaOf(value) : member,
      true
    )
  }
  if (step.constant !== undefined) {
    return change(
      schema,
      step.constant,
      (_, value) => (isScalar(value) ? { const: value } : schemaOf(value)),
      true
    )
  }
  if (step.map !== undefined) {
    return change(
      schema,
      step.map,
      (_, values) =>
        '*' in values && Object.values(values).every(isScalar)
          ? { enum: [...new Set(Object.values(values))] }
          : {},
      false
    )
  }
  if (step.convert !== undefined) {
    return change(
      schema,
      step.convert,
      (_, kind) =>
        kind.startsWith('date') ? { type: 'string', format: 'date-time' } : { type: kind },
      false
    )
  }
  if (step.each !== undefined) {
    return { type: 'array', items: step.each.reduce(after, itemsOf(schema)) }
  }
  if (step.paging !== undefined) {
    return { type: 'array', items: (step.paging.each ?? []).reduce(after, {}) }
  }
  if (step.wrap === 'list') return { type: 'array', items: itemsOf(schema) }
  if (step.wrap !== undefined) return schema
  if (step.at !== undefined) return at(schema, step.at.path.split('.'), step.at.operations)
  return {}
}

function isScalar(value: unknown) {
  return value === null || typeof value !== 'object'
}

function schemaOf(value: unknown): JsonSchema {
  if (value === null) return {}
  return { type: Array.isArray(value) ? 'array' : typeof value }
}

function pick(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const { properties, required } = membersOf(schema)
  return withMembers({
    properties: Object.fromEntries(names.map(name => [name, properties[name] ?? {}])),
    required: required.filter(name => names.includes(name))
  })
}

function without(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const { properties, required } = membersOf(schema)
  return withMembers({
    properties: Object.fromEntries(
      Object.entries(properties).filter(([name]) => !names.includes(name))
    ),
    required: required.filter(name => !names.includes(name))
  })
}

function rename(
  schema: JsonSchema,
  pairs: ReadonlyArray<readonly [from: string, to: string]>
): JsonSchema {
  const { properties, required } = membersOf(schema)
  const rest = membersOf(
    without(
      schema,
      pairs.map(([from]) => from)
    )
  )
  return withMembers({
    properties: {
      ...rest.properties,
      ...Object.fromEntries(pairs.map(([from, to]) => [to, properties[from] ?? {}]))
    },
    required: [
      ...new Set([
        ...rest.required,
        ...pairs.flatMap(([from, to]) => (required.includes(from) ? [to] : []))
      ])
    ]
  })
}

function move(schema: JsonSchema, from: string, to: string): JsonSchema {
  const member = membersOf(schema).properties[from] ?? {}
  return put(from.includes('.') ? schema : without(schema, [from]), to.split('.'), member)
}

function put(
  schema: JsonSchema,
  [name, ...rest]: readonly string[],
  value: JsonSchema
): JsonSchema {
  if (name === undefined) return value
  const { properties, required } = membersOf(schema)
  return withMembers({
    properties: { ...properties, [name]: put(properties[name] ?? {}, rest, value) },
    required
  })
}

function at(
  schema: JsonSchema,
  [name, ...rest]: readonly string[],
  steps: readonly ShapeStep[]
): JsonSchema {
  if (name === undefined) return steps.reduce(after, schema)
  const { properties, required } = membersOf(schema)
  return withMembers({
    properties: { ...properties, [name]: at(properties[name] ?? {}, rest, steps) },
    required
  })
}

function change<T>(
  schema: JsonSchema,
  details: Readonly<Record<string, T>>,
  to: (member: JsonSchema | undefined, detail: T) => JsonSchema,
  isRequired: boolean
): JsonSchema {
  const { properties, required } = membersOf(schema)
  return withMembers({
    properties: {
      ...properties,
      ...Object.fromEntries(
        Object.entries(details).map(([name, detail]) => [name, to(properties[name], detail)])
      )
    },
    required: isRequired ? [...new Set([...required, ...Object.keys(details)])] : required
  })
}

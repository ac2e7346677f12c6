/** The JSON Schema of a shape's result: named members and made types; the rest stays open. */
import type { JsonSchema } from '../contract/schema.ts'
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

/** Without a prototype: a member may be called `toString`. */
const membersOf = ({ properties, required = [] }: JsonSchema) =>
  ({ properties: { __proto__: null, ...(properties as object) }, required }) as unknown as Members
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
  if (step.move !== undefined) return move(schema, Object.entries(step.move))
  if (step.lift !== undefined) return withoutAt(schema, step.lift.split('.'))
  if (step.nest !== undefined) return nest(schema, step.nest)
  if (step.default !== undefined) {
    return change(schema, step.default, withDefault, true)
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
      (member, kind) => {
        const isDate = kind.startsWith('date')
        const type = isDate ? 'string' : kind
        // A conversion leaves null as it is.
        return {
          type: mayBeNull(member) ? [type, 'null'] : type,
          ...(isDate && { format: 'date-time' })
        }
      },
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

function nest(
  schema: JsonSchema,
  { as, count: total }: NonNullable<ShapeStep['nest']>
): JsonSchema {
  if (total === undefined) return withMembers({ properties: { [as]: schema }, required: [as] })
  const list = { type: 'array', items: itemsOf(schema) }
  return withMembers({ properties: { [as]: list, [total]: count }, required: [as, total] })
}

/** A default stands in the place of null and of an absent member. */
function withDefault(member: JsonSchema | undefined, value: unknown): JsonSchema {
  if (isOpen(member)) return schemaOf(value)
  const substitute = isScalar(value) ? { const: value } : schemaOf(value)
  const present = value === null ? member : withoutNull(member)
  if (present === undefined) return substitute
  if (fits(present, value)) return present
  const { enum: listed } = present
  if (Array.isArray(listed) && isScalar(value)) return { enum: [...listed, value] }
  return { anyOf: [present, substitute] }
}

function isOpen(member: JsonSchema | undefined): member is undefined | Record<string, never> {
  return member === undefined || Object.keys(member).length === 0
}

function typesOf({ type }: JsonSchema): unknown[] {
  return Array.isArray(type) ? type : [type]
}

function mayBeNull(member: JsonSchema | undefined): boolean {
  return isOpen(member) || fits(member, null)
}

/** Whether a schema that this file makes takes a value. */
function fits(schema: JsonSchema, value: unknown): boolean {
  const { const: constant, enum: listed, anyOf, type, format } = schema
  if (Object.hasOwn(schema, 'const')) return constant === value
  if (Array.isArray(listed)) return listed.includes(value)
  if (Array.isArray(anyOf)) return anyOf.some(each => fits(each as JsonSchema, value))
  if (type === undefined) return true
  if (value === null) return typesOf(schema).includes('null')
  const kindOfValue = Array.isArray(value) ? 'array' : typeof value
  return format === undefined && typesOf(schema).includes(kindOfValue)
}

/** Undefined where a schema takes nothing but null. */
function withoutNull(schema: JsonSchema): JsonSchema | undefined {
  const { const: constant, enum: listed, anyOf } = schema
  if (constant === null) return undefined
  if (Array.isArray(listed)) {
    const others = listed.filter(value => value !== null)
    return others.length === 0 ? undefined : { ...schema, enum: others }
  }
  if (Array.isArray(anyOf)) {
    const others = (anyOf as JsonSchema[]).map(withoutNull).filter(each => each !== undefined)
    return others.length > 1 ? { anyOf: others } : others[0]
  }
  const [only, ...others] = typesOf(schema).filter(type => type !== 'null')
  return only === undefined
    ? schema
    : { ...schema, type: others.length > 0 ? [only, ...others] : only }
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

/** All at once, as the shape itself does. */
function move(
  schema: JsonSchema,
  pairs: ReadonlyArray<readonly [from: string, to: string]>
): JsonSchema {
  const moves = pairs.map(([from, to]) => ({ from: from.split('.'), to: to.split('.') }))
  const rest = moves.reduce((current, { from }) => withoutAt(current, from), schema)
  return moves
    .map(({ from, to }) => ({ to, member: memberAt(schema, from) }))
    .toSorted((a, b) => a.to.length - b.to.length)
    .reduce((current, { to, member }) => put(current, to, member), rest)
}

function memberAt(schema: JsonSchema, path: readonly string[]): JsonSchema {
  return path.reduce((current, name) => membersOf(current).properties[name] ?? {}, schema)
}

/** A schema that does not name the place stays as it is. */
function withoutAt(schema: JsonSchema, [name = '', ...rest]: readonly string[]): JsonSchema {
  if (rest.length === 0) return without(schema, [name])
  const { properties, required } = membersOf(schema)
  const member = properties[name]
  if (member === undefined) return schema
  return withMembers({ properties: { ...properties, [name]: withoutAt(member, rest) }, required })
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

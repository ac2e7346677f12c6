/** Walks a value together with its schema. Only this file knows how the schemas nest. */
import type { TSchema } from 'typebox'

/** A schema: keywords of JSON Schema and our own. */
export interface Node {
  readonly type?: string
  readonly title?: string
  readonly examples?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly expected?: string
  /** The text to write instead of an invalid one; `VALUE` stands for the invalid one. */
  readonly instead?: string
  readonly description?: string
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Node>>
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: boolean
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Node
  readonly anyOf?: readonly Node[]
  /** The name of a recursive schema. */
  readonly recursive?: string
}

/** The run-time view of a TypeBox schema. */
export const asNode = (schema: TSchema): Node => schema

export type Path = ReadonlyArray<string | number>

/** A value and its schema. */
export interface Visited {
  /** The matching branch, if the declared schema is a union. */
  readonly schema: Node
  /** The declared schema, with all branches if it is a union. */
  readonly declared: Node
  readonly value: unknown
  readonly path: Path
  /** Replaces the value. */
  readonly put: (value: unknown) => void
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The member of a mapping by a name from config, which may be `constructor`. */
export function ownMember<T>(mapping: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(mapping, name) ? mapping[name] : undefined
}

/** The matching branch of a union: the one with the same `kind`, else with the same type. */
function branchOf(schema: Node, value: unknown): Node {
  if (schema.anyOf === undefined) return schema
  const kind = isObject(value) ? value['kind'] : undefined
  return (
    schema.anyOf.find(
      branch =>
        branch.properties?.['kind'] !== undefined && branch.properties['kind'].const === kind
    ) ??
    schema.anyOf.find(
      branch =>
        branch.properties?.['kind'] === undefined &&
        (branch.type === 'integer' ? 'number' : branch.type) === typeOf(value)
    ) ??
    schema
  )
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** The schema of a member or of a mapping's value; undefined for an unknown key. */
export function memberSchema(schema: Node, key: string): Node | undefined {
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) {
    return schema.properties[key]
  }
  for (const [pattern, member] of Object.entries(schema.patternProperties ?? {})) {
    if (new RegExp(pattern).test(key)) return member
  }
  return isAnything(schema) ? schema : undefined
}

/** A schema without constraints, which also covers everything inside the value. */
export function isAnything(schema: Node) {
  return schema.type === undefined && schema.anyOf === undefined && schema.const === undefined
}

/** Calls `visitor` for every value that has a schema, outermost first. */
export function visit(root: Node, value: unknown, visitor: (at: Visited) => void): unknown {
  const holder: Record<string, unknown> = { root: value }
  visitMember(holder, 'root', { declared: root, path: [], visitor })
  return holder['root']
}

interface Step {
  readonly declared: Node
  readonly path: Path
  readonly visitor: (at: Visited) => void
}

function visitMember(
  holder: Record<string | number, unknown>,
  key: string | number,
  { declared, path, visitor }: Step
): void {
  const schema = branchOf(declared, holder[key])
  const put = (replaced: unknown) => {
    holder[key] = replaced
  }
  visitor({ schema, declared, value: holder[key], path, put })
  const current = holder[key]
  const visitInner = (inner: string | number, member: Node | undefined) => {
    if (member === undefined) return
    const below = current as Record<string | number, unknown>
    visitMember(below, inner, { declared: member, path: [...path, inner], visitor })
  }
  if (Array.isArray(current)) {
    const items = schema.items ?? (isAnything(schema) ? schema : undefined)
    for (const index of current.keys()) visitInner(index, items)
  } else if (isObject(current)) {
    for (const name of Object.keys(current)) visitInner(name, memberSchema(schema, name))
  }
}

/** The schema of the value at a path. */
export function schemaAt(root: Node, path: Path, value: unknown): Node | undefined {
  let at: Node | undefined = root
  for (const step of path) {
    if (at === undefined) return undefined
    // All steps before the last are mappings or lists; only the value selects its own branch.
    at = typeof step === 'number' ? branchOf(at, []).items : memberSchema(branchOf(at, {}), step)
  }
  return at === undefined ? undefined : branchOf(at, value)
}

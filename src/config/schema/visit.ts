/** Walks a value beside its schema: the one place that knows how our schemas nest. */
import type { TSchema } from 'typebox'

/** What our schemas carry beside JSON Schema's own keywords. */
export interface Node {
  readonly type?: string
  readonly title?: string
  readonly examples?: readonly unknown[]
  readonly format?: string
  readonly expected?: string
  /** What to write instead of a text that does not fit; `VALUE` stands for that text. */
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
  readonly uniqueItems?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Node
  readonly anyOf?: readonly Node[]
  /** The name of a schema that holds itself. */
  readonly recursive?: string
}

/** A TypeBox schema, seen as what it is at run time. */
export const asNode = (schema: TSchema): Node => schema

export type Path = ReadonlyArray<string | number>

/** A value and the schema that covers it. */
export interface Visited {
  /** The branch of a union that the value means. */
  readonly schema: Node
  /** The schema as it is declared, with all branches of its union. */
  readonly declared: Node
  readonly value: unknown
  readonly path: Path
  /** Replaces the value where it stands. */
  readonly put: (value: unknown) => void
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The branch of a union that the value means: the one whose `kind` fits, else the one of the same type. */
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

/** The schema of a member, of a map's value, or of nothing known. */
function memberSchema(schema: Node, key: string): Node | undefined {
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) {
    return schema.properties[key]
  }
  for (const [pattern, member] of Object.entries(schema.patternProperties ?? {})) {
    if (new RegExp(pattern).test(key)) return member
  }
  return isAnything(schema) ? schema : undefined
}

/** Where anything may stand, it is covered all the way down. */
function isAnything(schema: Node) {
  return schema.type === undefined && schema.anyOf === undefined && schema.const === undefined
}

/** Calls `visitor` for every value that a schema covers, outermost first. */
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

/** The schema of what is at a path, found along the values there. */
export function schemaAt(root: Node, path: Path, value: unknown): Node | undefined {
  let at: Node | undefined = root
  for (const step of path) {
    if (at === undefined) return undefined
    // Along the way all are mappings; only the value itself tells its branch.
    at = typeof step === 'number' ? branchOf(at, []).items : memberSchema(branchOf(at, {}), step)
  }
  return at === undefined ? undefined : branchOf(at, value)
}

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
/**
 * Sees a value and the schema that covers it.
 * @param schema the branch of a union that the value means
 * @param declared the schema as it is declared, with all branches of its union
 */
export type Visitor = (
  schema: Node,
  value: unknown,
  path: Path,
  put: (value: unknown) => void,
  declared: Node
) => void

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
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

/** The schema of a member, of a map's value, or of nothing known. */
function memberSchema(schema: Node, key: string): Node | undefined {
  if (schema.properties !== undefined && Object.hasOwn(schema.properties, key))
    return schema.properties[key]
  for (const [pattern, member] of Object.entries(schema.patternProperties ?? {}))
    if (new RegExp(pattern).test(key)) return member
  return isAnything(schema) ? schema : undefined
}

/** Where anything may stand, it is covered all the way down. */
function isAnything(schema: Node) {
  return schema.type === undefined && schema.anyOf === undefined && schema.const === undefined
}

/** Calls `visitor` for every value that a schema covers, outermost first; `put` replaces the value where it stands. */
export function visit(root: Node, value: unknown, visitor: Visitor): unknown {
  let result = value
  const step = (schema: Node, at: unknown, path: Path, put: (value: unknown) => void) => {
    let current = at
    const branch = branchOf(schema, at)
    visitor(
      branch,
      at,
      path,
      replaced => {
        current = replaced
        put(replaced)
      },
      schema
    )
    const items = branch.items ?? (isAnything(branch) ? branch : undefined)
    if (Array.isArray(current) && items !== undefined) {
      const array: unknown[] = current
      array.forEach((item, index) =>
        step(items, item, [...path, index], replaced => {
          array[index] = replaced
        })
      )
    } else if (isObject(current)) {
      const object = current
      for (const key of Object.keys(object)) {
        const member = memberSchema(branch, key)
        if (member !== undefined)
          step(member, object[key], [...path, key], replaced => {
            object[key] = replaced
          })
      }
    }
  }
  step(root, value, [], replaced => {
    result = replaced
  })
  return result
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

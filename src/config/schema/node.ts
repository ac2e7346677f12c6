/** The schemas of config at run time. Only this file knows how they nest. */
import type { TSchema } from 'typebox'
import { isRecord } from '../../json/values.ts'

export type NamedThing =
  | 'upstream'
  | 'shape'
  | 'source'
  | 'route in the ledger'
  | 'route or endpoint'
  | 'error code'
  | 'users file'
  | 'module'
  | 'contract file'

type Text = 'type' | 'title' | 'format' | 'pattern' | 'expected' | 'description'
type Count = 'minItems' | 'minProperties' | 'maxProperties'
type Bound = 'minLength' | 'maxLength' | 'minimum' | 'maximum'
type Members = Readonly<Record<string, Node>>
type Plain = Readonly<Partial<Record<Text, string> & Record<Count | Bound, number>>>

/** A schema: keywords of JSON Schema and our own. */
export interface Node extends Plain {
  /** A pattern cannot say all: in words, why a text that fits it is refused still. */
  readonly alsoExpected?: (written: string) => string | undefined
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Members
  readonly patternProperties?: Members
  readonly uniqueItems?: boolean
  readonly items?: Node
  readonly anyOf?: readonly Node[]
  /** Whether a change needs a restart: of a file, and of keys where it is otherwise. */
  readonly restart?: boolean
  readonly names?: NamedThing
  readonly keysName?: NamedThing
  /** Of a mapping whose keys are no names in lower case: what they are. */
  readonly keysExpected?: string
  /** The key by which a branch of a union is chosen. */
  readonly chosenBy?: string
  readonly recursive?: string
}

export const asNode = (schema: TSchema): Node => schema

export type Path = ReadonlyArray<string | number>

/** The member of a mapping by a name from config, which may be `constructor`. */
export function ownMember<T>(mapping: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(mapping, name) ? mapping[name] : undefined
}

/** Of a union: by the key that is there, by `kind`, or by the type. */
export function branchOf(schema: Node, value: unknown): Node {
  if (schema.anyOf === undefined) return schema
  const members = isRecord(value) ? value : {}
  const kind = members['kind']
  const kindOf = (branch: Node) => branch.properties?.['kind']
  return (
    schema.anyOf.find(({ chosenBy = '' }) => (members[chosenBy] ?? null) !== null) ??
    schema.anyOf.find(branch => kind !== undefined && kindOf(branch)?.const === kind) ??
    schema.anyOf.find(
      branch =>
        branch.chosenBy === undefined &&
        kindOf(branch) === undefined &&
        (branch.type === 'integer' ? 'number' : branch.type) === typeOf(value)
    ) ??
    schema
  )
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Undefined for an unknown key. */
export function memberSchema(schema: Node, key: string): Node | undefined {
  const { properties, patternProperties = {}, anyOf } = schema
  if (anyOf !== undefined) return anyOf.map(each => memberSchema(each, key)).find(Boolean)
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key]
  const pattern = Object.keys(patternProperties).find(each => new RegExp(each).test(key))
  if (pattern !== undefined) return patternProperties[pattern]
  return isAnything(schema) ? schema : undefined
}

/** The path of a key below a schema, the shortest; `NAME` and `0` stand for names and indexes. */
export function placeOfKey(schema: Node, key: string): string | undefined {
  const holders = [{ node: schema, path: [] as readonly string[] }]
  const seen = new Set<Node>()
  for (const { node, path } of holders) {
    if (seen.has(node)) continue
    seen.add(node)
    const { properties = {}, patternProperties = {}, items, anyOf = [] } = node
    if (Object.hasOwn(properties, key)) return [...path, key].join('.')
    const inner = [
      ...Object.entries(properties),
      ...Object.values(patternProperties).map(each => ['NAME', each] as const),
      ...(items === undefined ? [] : [['0', items] as const])
    ]
    holders.push(...anyOf.map(each => ({ node: each, path })))
    holders.push(...inner.map(([name, each]) => ({ node: each, path: [...path, name] })))
  }
  return undefined
}

export function isAnything(schema: Node) {
  return schema.type === undefined && schema.anyOf === undefined && schema.const === undefined
}

export const pemFormat = 'x-pem-file'

const secretFormats = new Set<string | undefined>(['x-secret', 'x-maybe-secret', 'x-hash'])

/** Whether a secret or the hash of a password may stand in a value of the schema. */
export function holdsSecret(schema: Node, above: readonly Node[] = []): boolean {
  if (secretFormats.has(schema.format)) return true
  // Schemas can be recursive.
  if (above.includes(schema)) return false
  return [
    ...Object.values(schema.properties ?? {}),
    ...Object.values(schema.patternProperties ?? {}),
    ...(schema.items === undefined ? [] : [schema.items]),
    ...(schema.anyOf ?? [])
  ].some(inner => holdsSecret(inner, [...above, schema]))
}

/** Compares two configs, for the plan and the log line of a reload: `limits.login.max 5 → 10`. */
import { createHmac, randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isRecord } from '../json/values.ts'
import { type Config, type ConfigFile, schemaOf } from './schema/config.ts'
import type { GatewayConfig } from './schema/gateway.ts'
import {
  asNode,
  branchOf,
  holdsSecret,
  memberSchema,
  type Node,
  ownMember,
  pemFormat,
  type Path
} from './schema/node.ts'
import { inUnits, isMeasure, isOneOrMany } from './schema/primitives.ts'
import { usersSchema } from './schema/users.ts'

export interface Change {
  readonly file: ConfigFile | 'users'
  readonly path: string
  /** Never contains a secret's value. */
  readonly text: string
  /** Whether it needs a restart; others take effect at once. */
  readonly restart: boolean
}

const usersFile = asNode(usersSchema)

/** An added or removed member is one change, whatever it contains. */
export function configChanges(before: Config, after: Config): Change[] {
  const usersFiles = new Set([...Object.keys(before.users), ...Object.keys(after.users)])
  return [
    ...gatewayChanges(before.gateway, after.gateway),
    ...compare(whole('routes', schemaOf.routes), before.routes, after.routes),
    ...compare(whole('limits', schemaOf.limits), before.limits, after.limits),
    ...[...usersFiles].flatMap(name =>
      compare(whole('users', usersFile, [name]), before.users[name], after.users[name])
    ),
    ...contentChanges('(own code)', before.modules, after.modules),
    ...contentChanges('(a contract)', before.contracts, after.contracts)
  ]
}

export function gatewayChanges(before: GatewayConfig, after: GatewayConfig): Change[] {
  const changes = compare(whole('gateway', schemaOf.gateway), before, after)
  return [...changes, ...orderChanges(before, after)]
}

/** Credential sources are the one mapping whose order counts. */
function orderChanges({ login: before }: GatewayConfig, { login: after }: GatewayConfig): Change[] {
  const names = Object.keys(after.sources)
  const former = Object.keys(before.sources)
  if (names.length !== former.length || names.some(name => !former.includes(name))) return []
  if (isDeepStrictEqual(names, former)) return []
  const text = `login.sources are asked in another order: ${names.join(', ')}`
  return [{ file: 'gateway', path: 'login.sources', text, restart: true }]
}

type Contents = Readonly<Record<string, unknown>>

/** Of files that both name: others are reported as the key that names them. */
function contentChanges(kind: string, before: Contents, after: Contents): Change[] {
  return Object.keys(after)
    .filter(name => Object.hasOwn(before, name) && !isDeepStrictEqual(before[name], after[name]))
    .map(name => {
      const text = `${name} ${kind} has other content`
      return { file: 'routes', path: name, text, restart: false }
    })
}

interface Compared {
  readonly file: Change['file']
  readonly path: Path
  readonly schema: Node
  readonly restart: boolean
}

function whole(file: Change['file'], schema: Node, path: Path = []): Compared {
  return { file, path, schema, restart: schema.restart === true }
}

function compare(of: Compared, before: unknown, after: unknown): Change[] {
  if (isDeepStrictEqual(before, after)) return []
  const { file, path, schema, restart } = of
  if (isRecord(before) && isRecord(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name => {
      const member = memberSchema(schema, name) ?? {}
      const inner = { schema: member, restart: member.restart ?? restart }
      const values = [ownMember(before, name), ownMember(after, name)] as const
      return compare({ file, path: [...path, name], ...inner }, ...values)
    })
  }
  const where = path.join('.')
  const text = describe(schema, where, before, after)
  return [{ file, path: where, text, restart }]
}

function describe(schema: Node, where: string, before: unknown, after: unknown): string {
  const values = [before, after]
  const at = branchOf(schema, after ?? before)
  const hasMapping = values.some(isRecord)
  // In place of a mapping with a secret a text may stand.
  const isHidden = holdsSecret(hasMapping ? schema : at) || at.format === pemFormat
  const isWhole = (hasMapping && values.includes(undefined)) || values.some(isListOfMappings)
  if (!isHidden && !isWhole) return `${where} ${show(at, before)} → ${show(at, after)}`
  if (before === undefined) return `${where} added`
  return `${where} ${after === undefined ? 'removed' : 'changed'}`
}

function isListOfMappings(value: unknown) {
  return Array.isArray(value) && value.some(isRecord)
}

function show(at: Node, value: unknown): string {
  if (typeof value === 'number' && isMeasure(at.format)) return inUnits(at.format, value)
  if (isOneOrMany(at) && Array.isArray(value) && value.length === 1) return show(at, value[0])
  const json = JSON.stringify(value) as string | undefined
  const written = typeof value === 'string' ? value : (json ?? 'not set')
  const shown = written.replace(/:\/\/[^/]*@/, '://…@')
  return shown.length > 80 ? `${shown.slice(0, 77)}…` : shown
}

/** Where config has no secret. */
const ownKey = randomBytes(32)

type Hashed = 'gateway' | 'routes' | 'limits' | 'users' | 'contracts' | 'modules'

/** It reveals nothing of secrets: its key is the first of `session.secrets`. */
export function configHash(config: Pick<Config, Hashed>): string {
  const { gateway, routes, limits, users, contracts, modules } = config
  const [key = ownKey] = gateway.session.secrets
  const text = canonical([routes, limits, users, contracts, modules])
  return createHmac('sha256', key).update(text).digest('hex').slice(0, 16)
}

/** The order of keys means nothing. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member
  )
}

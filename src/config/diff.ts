/**
 * Compares two configs, for the plan and the log line of a reload: `limits.login.max 5 → 10`. The
 * schema gives values their units and hides secrets.
 */
import { isDeepStrictEqual } from 'node:util'
import { isRecord } from '../json/values.ts'
import { type Config, type ConfigFile, schemaOf } from './schema/config.ts'
import type { GatewayConfig } from './schema/gateway.ts'
import { type MaintenanceConfig, maintenanceInWords } from './schema/maintenance.ts'
import { asNode, holdsSecret, type Node, ownMember, type Path, schemaAt } from './schema/node.ts'
import { inUnits, isOneOrMany } from './schema/primitives.ts'
import { usersSchema } from './schema/users.ts'

export interface Change {
  readonly file: ConfigFile | 'users'
  /** Dotted. */
  readonly path: string
  /** For operators; never contains a secret's value. */
  readonly text: string
  /** Whether it needs a restart; others take effect at once. */
  readonly restart: boolean
}

type Compared = Pick<
  Config,
  | 'gateway'
  | 'routes'
  | 'limits'
  | 'users'
  | 'authorities'
  | 'contracts'
  | 'modules'
  | 'serverTls'
  | 'opsTls'
  | 'redisCa'
>

const users = asNode(usersSchema)

/** In the order of the files; an added or removed member is one change, whatever it contains. */
export function configChanges(before: Compared, after: Compared): Change[] {
  const usersFiles = new Set([...Object.keys(before.users), ...Object.keys(after.users)])
  const ofContent = (
    key: 'modules' | 'authorities' | 'contracts',
    textOf: (name: string) => string
  ) =>
    otherContent(before[key], after[key]).map(name => contentChange('routes', name, textOf(name)))
  return [
    ...installChanges(before.gateway, after.gateway),
    ...compare({ file: 'routes', schema: schemaOf.routes }, [], before.routes, after.routes),
    ...compare({ file: 'limits', schema: schemaOf.limits }, [], before.limits, after.limits),
    ...[...usersFiles].flatMap(name =>
      compare({ file: 'users', schema: users }, [name], before.users[name], after.users[name])
    ),
    ...ofContent('modules', file => `${file} (own code) has other content`),
    ...ofContent('authorities', file => `${file} (a certificate) has other content`),
    ...pairChanges('server', before, after),
    ...pairChanges('ops', before, after),
    ...redisChanges(before, after),
    // An added or removed contract is reported as the key that names it.
    ...ofContent('contracts', route => `the contract of ${route} has other content`)
  ]
}

/** Compared by their content: a running `gateway` names those of the start. */
const pairKeys: ReadonlySet<string> = new Set([
  'server.tls.certificate',
  'server.tls.key',
  'ops.tls.certificate',
  'ops.tls.key'
])

/** The keys of `gateway.yaml` that differ. All need a restart. */
export function installChanges(before: GatewayConfig, after: GatewayConfig): Change[] {
  const of: ComparedFile = { file: 'gateway', schema: schemaOf.gateway }
  const changes = compare(of, [], before, after).filter(({ path }) => !pairKeys.has(path))
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

/** Of a listener that has `tls`: another one begins with it only after a restart. */
function pairChanges(listener: 'server' | 'ops', before: Compared, after: Compared): Change[] {
  const key = `${listener}Tls` as const
  const hasPair = before.gateway[listener].tls !== undefined && after[key] !== undefined
  if (!hasPair || isDeepStrictEqual(before[key], after[key])) return []
  const text = `${listener}.tls has another certificate or key`
  return [contentChange('gateway', `${listener}.tls.certificate`, text)]
}

/** Another file is reported as the key that names it. */
function redisChanges(before: Compared, after: Compared): Change[] {
  const isSameFile = before.gateway.redis?.ca === after.gateway.redis?.ca
  const hasBoth = before.redisCa !== undefined && after.redisCa !== undefined
  if (!isSameFile || !hasBoth || before.redisCa === after.redisCa) return []
  return [{ ...contentChange('gateway', 'redis.ca', 'redis.ca has other content'), restart: true }]
}

/** Of the files that config names, those that existed before and have other content now. */
function otherContent(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>
) {
  return Object.keys(after).filter(
    name => Object.hasOwn(before, name) && !isDeepStrictEqual(before[name], after[name])
  )
}

function contentChange(file: ConfigFile, path: string, text: string): Change {
  return { file, path, text, restart: false }
}

interface ComparedFile {
  readonly file: Change['file']
  readonly schema: Node
}

function compare(of: ComparedFile, path: Path, before: unknown, after: unknown): Change[] {
  if (isDeepStrictEqual(before, after)) return []
  if (isRecord(before) && isRecord(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name =>
      compare(of, [...path, name], ownMember(before, name), ownMember(after, name))
    )
  }
  const { file, schema } = of
  const at = schemaAt(schema, file === 'users' ? path.slice(1) : path, after ?? before)
  const where = path.join('.')
  const text = describe(at, where, before, after)
  return [{ file, path: where, text, restart: file === 'gateway' }]
}

function describe(at: Node = {}, where: string, before: unknown, after: unknown): string {
  const isWhole = [before, after].some(value => isRecord(value) || isListOfMappings(value))
  if (!isWhole && holdsSecret(at)) return `${where} ${changeOfSecret(before, after)}`
  if (where === 'maintenance' && before === undefined) {
    return `maintenance added: ${maintenanceInWords(after as MaintenanceConfig)}`
  }
  if (before === undefined) {
    return isWhole ? `${where} added` : `${where} ${show(at, after)} (was not set)`
  }
  if (after === undefined) {
    return isWhole ? `${where} removed` : `${where} no longer set (was ${show(at, before)})`
  }
  if (isListOfMappings(before) || isListOfMappings(after)) return `${where} changed`
  return `${where} ${show(at, before)} → ${show(at, after)}`
}

function changeOfSecret(before: unknown, after: unknown): string {
  if (before === undefined) return 'set'
  return after === undefined ? 'unset' : 'changed'
}

function isListOfMappings(value: unknown) {
  return Array.isArray(value) && value.some(isRecord)
}

function show(at: Node, value: unknown): string {
  if (typeof value === 'number' && (at.format === 'x-duration' || at.format === 'x-size')) {
    return inUnits(at.format, value)
  }
  if (isOneOrMany(at) && Array.isArray(value) && value.length === 1) return show(at, value[0])
  const json = JSON.stringify(value) as string | undefined
  const written = typeof value === 'string' ? value : (json ?? 'nothing')
  const shown = written.replace(/:\/\/[^/]*@/, '://…@')
  return shown.length > 80 ? `${shown.slice(0, 77)}…` : shown
}

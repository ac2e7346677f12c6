/**
 * Compares two configs, for the plan and the log line of a reload: `limits.login.max 5 → 10`. The
 * schema gives values their units and hides secrets.
 */
import { isDeepStrictEqual } from 'node:util'
import { gatewaySchema } from '../schema/gateway.ts'
import { limitsSchema } from '../schema/limits.ts'
import type { Config } from '../schema/config.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { type MaintenanceConfig, maintenanceInWords } from '../schema/maintenance.ts'
import { inUnits, isOneOrMany } from '../schema/primitives.ts'
import { routesSchema } from '../schema/routes.ts'
import { usersSchema } from '../schema/users.ts'
import { asNode, isObject, type Node, ownMember, type Path, schemaAt } from '../schema/visit.ts'

export interface Difference {
  readonly file: 'gateway' | 'routes' | 'limits' | 'users'
  readonly path: Path
  /** Undefined where the member is new. */
  readonly before: unknown
  /** Undefined where the member is gone. */
  readonly after: unknown
  /** For operators; never contains a secret's value. */
  readonly text: string
}

/** Of `gateway.yaml`; a reload takes them over. */
const pairKeys: ReadonlySet<string> = new Set([
  'server.tls.certificate',
  'server.tls.key',
  'ops.tls.certificate',
  'ops.tls.key'
])

const files = [
  ['gateway', gatewaySchema],
  ['routes', routesSchema],
  ['limits', limitsSchema]
] as const

interface ComparedFile {
  readonly file: Difference['file']
  readonly schema: Node
}

const users: ComparedFile = { file: 'users', schema: asNode(usersSchema) }

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

const isOfPair = ({ file, path }: Difference): boolean =>
  file === 'gateway' && pairKeys.has(path.join('.'))

/** Whether a reload does not take it over. */
export const needsRestart = (difference: Difference): boolean =>
  difference.file === 'gateway' && !isOfPair(difference)

/** In the order of the files; an added or removed member is one difference, whatever it contains. */
export function configDifferences(before: Compared, after: Compared): Difference[] {
  const usersFiles = new Set([...Object.keys(before.users), ...Object.keys(after.users)])
  return [
    ...files
      .flatMap(([file, schema]) =>
        compare({ file, schema: asNode(schema) }, [], before[file], after[file])
      )
      // The pairs are compared by their content: a running `gateway` names those of the start.
      .filter(difference => !isOfPair(difference)),
    ...[...usersFiles].flatMap(name =>
      compare(users, [name], before.users[name], after.users[name])
    ),
    ...otherContent(before.modules, after.modules).map(file =>
      ofContent('routes', [file], `${file} (own code) has other content`)
    ),
    ...otherContent(before.authorities, after.authorities).map(file =>
      ofContent('routes', [file], `${file} (a certificate) has other content`)
    ),
    ...(before.gateway.server.tls === undefined
      ? []
      : pairDifferences('server', before.serverTls, after.serverTls)),
    ...(before.gateway.ops.tls === undefined
      ? []
      : pairDifferences('ops', before.opsTls, after.opsTls)),
    ...redisDifferences(before, after),
    // An added or removed contract is reported as the key that names it.
    ...otherContent(before.contracts, after.contracts).map(route =>
      ofContent('routes', [route], `the contract of ${route} has other content`)
    )
  ]
}

/** Of a listener that has `tls`: another one begins with it only after a restart. */
function pairDifferences(
  listener: 'server' | 'ops',
  before: Compared['serverTls'],
  after: Compared['serverTls']
): Difference[] {
  if (after === undefined || isDeepStrictEqual(before, after)) return []
  const text = `${listener}.tls has another certificate or key`
  return [ofContent('gateway', [listener, 'tls', 'certificate'], text)]
}

/** Another file is reported as the key that names it. */
function redisDifferences(before: Compared, after: Compared): Difference[] {
  const isSameFile = before.gateway.redis?.ca === after.gateway.redis?.ca
  const hasBoth = before.redisCa !== undefined && after.redisCa !== undefined
  if (!isSameFile || !hasBoth || before.redisCa === after.redisCa) return []
  return [ofContent('gateway', ['redis', 'ca'], 'redis.ca has other content')]
}

/** Of the files that config names, those that existed before and have other content now. */
function otherContent(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>
) {
  return Object.keys(after).filter(
    name =>
      Object.hasOwn(before, name) && JSON.stringify(before[name]) !== JSON.stringify(after[name])
  )
}

function ofContent(file: 'gateway' | 'routes', path: Path, text: string): Difference {
  return {
    file,
    path,
    before: '',
    after: '',
    text
  }
}

/** The differing keys of `gateway.yaml` that need a restart, as dotted paths. */
export const installDifferences = (before: GatewayConfig, after: GatewayConfig): string[] =>
  compare({ file: 'gateway', schema: asNode(gatewaySchema) }, [], before, after)
    .map(({ path }) => path.join('.'))
    .filter(path => !pairKeys.has(path))

function compare(of: ComparedFile, path: Path, before: unknown, after: unknown): Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (isObject(before) && isObject(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name =>
      compare(of, [...path, name], ownMember(before, name), ownMember(after, name))
    )
  }
  const { file, schema } = of
  const at = schemaAt(schema, file === 'users' ? path.slice(1) : path, after ?? before)
  return [{ file, path, before, after, text: describe(at, path.join('.'), before, after) }]
}

function describe(at: Node | undefined, where: string, before: unknown, after: unknown): string {
  if (at !== undefined && holdsSecret(at)) return `${where} ${changeOfSecret(before, after)}`
  if (where === 'maintenance' && before === undefined) {
    return `maintenance added: ${maintenanceInWords(after as MaintenanceConfig)}`
  }
  const isWhole = [before, after].some(value => isObject(value) || isList(value))
  if (before === undefined) {
    return isWhole ? `${where} added` : `${where} ${show(at, after)} (was not set)`
  }
  if (after === undefined) {
    return isWhole ? `${where} removed` : `${where} no longer set (was ${show(at, before)})`
  }
  if (isList(before) || isList(after)) return `${where} changed`
  return `${where} ${show(at, before)} → ${show(at, after)}`
}

function changeOfSecret(before: unknown, after: unknown): string {
  if (before === undefined) return 'set'
  return after === undefined ? 'unset' : 'changed'
}

function isList(value: unknown) {
  return Array.isArray(value) && value.some(isObject)
}

function holdsSecret(at: Node): boolean {
  return (
    at.format === 'x-secret' ||
    at.format === 'x-hash' ||
    (at.items !== undefined && holdsSecret(at.items))
  )
}

function show(at: Node | undefined, value: unknown): string {
  if (typeof value === 'number' && (at?.format === 'x-duration' || at?.format === 'x-size')) {
    return inUnits(at.format, value)
  }
  if (at !== undefined && isOneOrMany(at) && Array.isArray(value) && value.length === 1) {
    return show(at, value[0])
  }
  const json = JSON.stringify(value) as string | undefined
  const written = typeof value === 'string' ? value : (json ?? 'nothing')
  const shown = written.replace(/:\/\/[^/]*@/, '://…@')
  return shown.length > 80 ? `${shown.slice(0, 77)}…` : shown
}

/** What differs between two configs, in words: `limits.login.max 5 → 10`. */
import type { TSchema } from 'typebox'
import { gatewaySchema } from '../schema/gateway.ts'
import { limitsSchema } from '../schema/limits.ts'
import type { Config } from '../schema/config.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { type MaintenanceConfig, maintenanceInWords } from '../schema/maintenance.ts'
import { inUnits } from '../schema/primitives.ts'
import { routesSchema } from '../schema/routes.ts'
import { usersSchema } from '../schema/users.ts'
import { asNode, isObject, type Node, type Path, schemaAt } from '../schema/visit.ts'

export interface Difference {
  readonly file: 'gateway' | 'routes' | 'limits' | 'users'
  readonly path: Path
  /** Undefined where the member is new. */
  readonly before: unknown
  /** Undefined where the member is gone. */
  readonly after: unknown
  /** For people; never a secret's value. */
  readonly text: string
}

const files: ReadonlyArray<readonly [file: 'gateway' | 'routes' | 'limits', schema: TSchema]> = [
  ['gateway', gatewaySchema],
  ['routes', routesSchema],
  ['limits', limitsSchema]
]

type Compared = Pick<
  Config,
  'gateway' | 'routes' | 'limits' | 'users' | 'authorities' | 'contracts'
>

/** In the order of the files; a member that came or went is one difference, with all that is in it. */
export function differences(before: Compared, after: Compared): Difference[] {
  const users = { users: before.users }
  return [
    ...files.flatMap(([file, schema]) =>
      compare(asNode(schema), file, [], before[file], after[file])
    ),
    ...[...new Set([...Object.keys(users.users), ...Object.keys(after.users)])].flatMap(name =>
      compare(asNode(usersSchema), 'users', [name], before.users[name], after.users[name])
    ),
    ...otherContent(before.authorities, after.authorities).map(file =>
      told(file, `${file} (a certificate authority) holds something else`)
    ),
    // A promise that came or went is told as the key that names it.
    ...otherContent(before.contracts, after.contracts).map(route =>
      told(route, `the contract of ${route} holds something else`)
    )
  ]
}

/** Of what is read from files that config names: which of those that were there before say something else now. */
function otherContent(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>
) {
  return Object.keys(after).filter(
    name =>
      Object.hasOwn(before, name) && JSON.stringify(before[name]) !== JSON.stringify(after[name])
  )
}
function told(name: string, text: string): Difference {
  return {
    file: 'routes',
    path: [name],
    before: '',
    after: '',
    text
  }
}

/** The keys of `gateway.yaml` that differ, dotted. */
export const installDifferences = (before: GatewayConfig, after: GatewayConfig): string[] =>
  compare(asNode(gatewaySchema), 'gateway', [], before, after).map(({ path }) => path.join('.'))

function compare(
  root: Node,
  file: Difference['file'],
  path: Path,
  before: unknown,
  after: unknown
): Difference[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (isObject(before) && isObject(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name =>
      compare(root, file, [...path, name], own(before, name), own(after, name))
    )
  }
  const at = schemaAt(root, file === 'users' ? path.slice(1) : path, after ?? before)
  return [{ file, path, before, after, text: describe(at, path, before, after) }]
}

function own(holder: Record<string, unknown>, name: string) {
  return Object.hasOwn(holder, name) ? holder[name] : undefined
}

function describe(at: Node | undefined, path: Path, before: unknown, after: unknown): string {
  const where = path.join('.')
  if (at !== undefined && holdsSecret(at))
    return `${where} ${before === undefined ? 'set' : after === undefined ? 'unset' : 'changed'}`
  if (where === 'maintenance' && before === undefined) {
    return `maintenance added: ${maintenanceInWords(after as MaintenanceConfig)}`
  }
  if (before === undefined)
    return isObject(after) || isList(after)
      ? `${where} added`
      : `${where} ${show(at, after)} (was not set)`
  if (after === undefined)
    return isObject(before) || isList(before)
      ? `${where} removed`
      : `${where} no longer set (was ${show(at, before)})`
  return isList(before) || isList(after)
    ? `${where} changed`
    : `${where} ${show(at, before)} → ${show(at, after)}`
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
  if (typeof value === 'number' && (at?.format === 'x-duration' || at?.format === 'x-size'))
    return inUnits(at.format, value)
  const written =
    typeof value === 'string' ? value : ((JSON.stringify(value) as string | undefined) ?? 'nothing')
  const shown = written.replace(/:\/\/[^/]*@/, '://…@')
  return shown.length > 80 ? `${shown.slice(0, 77)}…` : shown
}

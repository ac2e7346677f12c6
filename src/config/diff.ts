/** Compares two configs, for the plan and the log line of a reload: `limits.login.max 5 → 10`. */
import { isDeepStrictEqual } from 'node:util'
import { isRecord } from '../json/values.ts'
import { type Config, type ConfigFile, schemaOf } from './schema/config.ts'
import type { GatewayConfig } from './schema/gateway.ts'
import { asNode, holdsSecret, type Node, ownMember, type Path, schemaAt } from './schema/node.ts'
import { inUnits, isMeasure, isOneOrMany } from './schema/primitives.ts'
import { usersSchema } from './schema/users.ts'

export interface Change {
  readonly file: ConfigFile | 'users'
  readonly path: string
  /** For operators; never contains a secret's value. */
  readonly text: string
  /** Whether it needs a restart; others take effect at once. */
  readonly restart: boolean
}

type Compared = Pick<
  Config,
  'gateway' | 'routes' | 'limits' | 'users' | keyof Contents | 'serverTls' | 'opsTls' | 'redisCa'
>
type Contents = Pick<Config, 'modules' | 'authorities' | 'contracts'>

const users = asNode(usersSchema)

/** In the order of the files; an added or removed member is one change, whatever it contains. */
export function configChanges(before: Compared, after: Compared): Change[] {
  const usersFiles = new Set([...Object.keys(before.users), ...Object.keys(after.users)])
  return [
    ...installChanges(before.gateway, after.gateway),
    ...compare({ file: 'routes', schema: schemaOf.routes }, [], before.routes, after.routes),
    ...compare({ file: 'limits', schema: schemaOf.limits }, [], before.limits, after.limits),
    ...[...usersFiles].flatMap(name =>
      compare({ file: 'users', schema: users }, [name], before.users[name], after.users[name])
    ),
    ...contentChanges(before, after)
  ]
}

/** The keys of `gateway.yaml` that need a restart. Others name files: their content is compared. */
export function installChanges(before: GatewayConfig, after: GatewayConfig): Change[] {
  const of: ComparedFile = { file: 'gateway', schema: schemaOf.gateway }
  const changes = compare(of, [], before, after).filter(({ restart }) => restart)
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

/** Of files that both name. One that is added or removed is reported as the key that names it. */
function contentChanges(before: Compared, after: Compared): Change[] {
  const ofBefore = new Map(contentsOf(before).map(({ text, content }) => [text, content]))
  return contentsOf(after).flatMap(({ content, ...change }) => {
    const old = ofBefore.get(change.text)
    return old === undefined || isDeepStrictEqual(old, content) ? [] : [change]
  })
}

type Content = Change & { readonly content: unknown }

function contentsOf(config: Compared): Content[] {
  const { modules, authorities, contracts, serverTls, opsTls, redisCa } = config
  const of = (file: ConfigFile, contents: object, textOf: (path: string) => string): Content[] =>
    Object.entries(contents)
      .filter(([, content]) => content !== undefined)
      .map(([path, content]) => ({ file, path, text: textOf(path), restart: false, content }))
  const ofListeners = { 'server.tls': serverTls, 'ops.tls': opsTls }
  const ofRedis = of('gateway', { 'redis.ca': redisCa }, path => `${path} has other content`)
  return [
    ...of('routes', modules, file => `${file} (own code) has other content`),
    ...of('routes', authorities, file => `${file} (a certificate) has other content`),
    ...of('routes', contracts, route => `the contract of ${route} has other content`),
    ...of('gateway', ofListeners, path => `${path} has another certificate or key`),
    ...ofRedis.map(change => ({ ...change, restart: true }))
  ]
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
  return [{ file, path: where, text, restart: at?.restart ?? schema.restart === true }]
}

function describe(at: Node = {}, where: string, before: unknown, after: unknown): string {
  const isWhole = [before, after].some(value => isRecord(value) || isListOfMappings(value))
  if (!isWhole && holdsSecret(at)) return `${where} ${changeOfSecret(before, after)}`
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
  if (typeof value === 'number' && isMeasure(at.format)) return inUnits(at.format, value)
  if (isOneOrMany(at) && Array.isArray(value) && value.length === 1) return show(at, value[0])
  const json = JSON.stringify(value) as string | undefined
  const written = typeof value === 'string' ? value : (json ?? 'nothing')
  const shown = written.replace(/:\/\/[^/]*@/, '://…@')
  return shown.length > 80 ? `${shown.slice(0, 77)}…` : shown
}

/** Rules between keys and between files: every fault is reported, nothing is changed. */
import { errorKinds } from '../../errors/errors.ts'
import { isRecord } from '../../json/values.ts'
import type { CheckedConfig, Named, Report, Rule } from '../schema/config.ts'
import { nearest } from '../schema/faults.ts'
import type { NamedThing } from '../schema/node.ts'
import { endpointNames } from '../schema/own-endpoints.ts'
import type { UsersConfig } from '../schema/users.ts'
import { checkEnvelope } from './envelope.ts'
import { gatewayRules } from './gateway.ts'
import { checkNames } from './names.ts'
import { checkPaths } from './paths.ts'
import { checkRoutes } from './routes.ts'
import { checkShapes } from './shapes.ts'
import { checkSources } from './sources.ts'
import { checkTls } from './tls.ts'
import { checkUpstreams } from './upstreams.ts'

const rules: readonly Rule[] = [
  checkReferences,
  ...gatewayRules,
  checkTls,
  checkEnvelope,
  checkSources,
  checkUpstreams,
  checkNames,
  checkPaths,
  checkRoutes,
  checkShapes,
  checkLimits
]

export function checkConfig(config: CheckedConfig, report: Report): void {
  for (const rule of rules) rule(config, report)
}

/** Upstreams, lists and limits know a user by the id: two users with one id would be one. */
export function checkUsers({ users }: UsersConfig, report: Report): void {
  const usernames = new Map<string, string>()
  for (const [username, { id = username }] of Object.entries(users)) {
    const other = usernames.get(id)
    usernames.set(id, username)
    if (other === undefined) continue
    report(['users', username], `users.${other} has the id "${id}" too: each user needs its own`)
  }
}

function checkLimits({ limits: { limits } }: CheckedConfig, report: Report): void {
  for (const [name, { by, routes, roles }] of Object.entries(limits)) {
    const fault = report.at('limits', name)
    if (by !== 'address' && routes.join() === 'login') {
      fault(['by'], 'counts nobody, since sign-in has no user yet; set by: address')
    }
    if (roles.length > 0 && by === 'address') {
      fault(['roles'], 'only signed-in callers have roles: set by: user or by: session')
    }
  }
}

type Existing = Partial<Record<NamedThing, readonly string[]>>

/** Of a tree that may have faults. What names of files name is known when they are read. */
export function namesIn(tree: Readonly<Record<string, unknown>>): Existing {
  const keysOf = (section: string) => Object.keys(isRecord(tree[section]) ? tree[section] : {})
  const routes = keysOf('routes')
  return {
    'upstream': keysOf('upstreams'),
    'shape': keysOf('shapes'),
    'route in the ledger': routes,
    'route or endpoint': [...endpointNames, ...routes],
    'error code': Object.keys(errorKinds)
  }
}

export function checkNamed(named: readonly Named[], existing: Existing, report: Report): void {
  for (const { what, name, path } of named) {
    const names = existing[what] ?? [name]
    if (names.includes(name)) continue
    const [noun = ''] = what.split(/ (?:or|in) /)
    // The ledger's routes stand in gateway.yaml, which needs a restart; routes do not.
    const say = what === 'route in the ledger' ? report.warn : report
    say(path, `there is no ${noun} "${name}".${nearest(name, names)}`)
  }
}

function checkReferences(config: CheckedConfig, report: Report): void {
  const { named, gateway, routes } = config
  const existing = { ...namesIn(routes), source: Object.keys(gateway.login.sources) }
  checkNamed(named, existing, report)
  for (const what of ['upstream', 'shape'] as const) {
    const used = new Set(named.flatMap(each => (each.what === what ? [each.name] : [])))
    for (const name of existing[what]?.filter(each => !used.has(each)) ?? []) {
      report.warn([`${what}s`, name], `no route uses this ${what}`)
    }
  }
}

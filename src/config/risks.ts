/** The risks of a change, by what callers can reach: another name hides none. */
import { type Change, configChanges } from './diff.ts'
import type { Config } from './schema/config.ts'
import { isLoopback, splitHostPort } from './schema/host-port.ts'
import type { LimitConfig } from './schema/limits.ts'
import { ownMember } from './schema/node.ts'
import { contains, nearerFirst } from './schema/public-path.ts'
import { credentialOf, type RouteConfig, type RoutesConfig } from './schema/routes.ts'
import { nameOfCookie } from './schema/route.ts'

const muchLooser = 10

type RiskRule = (before: Config, after: Config) => Array<string | false>

const added = <T>(before: readonly T[], after: readonly T[]) =>
  after.filter(item => !before.includes(item))

type Answering = readonly [name: string, route: RouteConfig]

/** The routes of the nearest path that takes all of a path. */
function answering({ routes }: RoutesConfig, path: string): Answering[] {
  const outer = Object.entries(routes).filter(([, route]) => contains(route.path, path))
  const paths = outer.map(([, route]) => route.path)
  const decides = paths.includes(path) ? path : paths.toSorted(nearerFirst)[0]
  return outer.filter(([, route]) => route.path === decides)
}

const routes: RiskRule = ({ routes: before }, { routes: after }) => {
  const all = [...Object.values(after.routes), ...Object.values(before.routes)]
  return [...new Set(all.map(({ path }) => path))].flatMap(path => {
    const olds = answering(before, path).map(([, route]) => route)
    return answering(after, path).flatMap(now =>
      olds.length === 0 ? newlyReached(now, before) : wider(now, path, olds)
    )
  })
}

function newlyReached([name, route]: Answering, before: RoutesConfig): string[] {
  if (route.access === 'public') {
    return [`routes.${name} (${route.path}) is new and public: anyone may call it`]
  }
  const inner = Object.values(before.routes).find(
    ({ path }) => contains(route.path, path) || route.path === `${path}/*`
  )
  if (inner === undefined) return []
  return [`routes.${name} takes more paths: ${route.path} instead of ${inner.path}`]
}

function wider([name, now]: Answering, path: string, olds: RouteConfig[]): string[] {
  const gained = added(
    olds.flatMap(({ methods }) => methods),
    now.methods
  )
  const risks = olds
    .filter(({ methods }) => methods.some(method => now.methods.includes(method)))
    .flatMap(old => [widerAccess(old.access, now.access), ...openings(old, now)])
  return [gained.length > 0 && `takes more methods: ${gained.join(', ')}`, ...new Set(risks)]
    .filter(risk => risk !== false)
    .map(risk => `routes.${name} (${path}) ${risk}`)
}

const placeOf = ({ path, upstream = '', rewrite = path }: RouteConfig) => `${upstream}${rewrite}`

/** A path of a back-end that roles held, to which another public path now leads. */
const rewrites: RiskRule = ({ routes: before }, { routes: after }) =>
  Object.entries(after.routes).map(([name, now]) => {
    const olds = Object.values(before.routes).filter(old => contains(placeOf(old), placeOf(now)))
    const risks = olds.map(old => old.path !== now.path && widerAccess(old.access, now.access))
    const [risk] = risks
    const isHeld = now.rewrite !== undefined && risks.every(each => each !== false)
    return isHeld && risk !== undefined && `routes.${name} (${placeOf(now)}) ${risk}`
  })

type Access = RouteConfig['access']

function widerAccess(old: Access, now: Access): string | false {
  if (now === 'public') return old !== 'public' && 'becomes public: anyone may call it'
  if (typeof old !== 'object') return false
  const before = old.roles.join(', ')
  if (now === 'session') return `is open to every signed-in user; it was for ${before}`
  const roles = added(old.roles, now.roles)
  return roles.length > 0 && `is open to more roles: ${roles.join(', ')}`
}

function openings(old: RouteConfig, now: RouteConfig): Array<string | false> {
  const namesOf = ({ setCookies = [] }: RouteConfig) => setCookies.map(nameOfCookie)
  const cookies = added(namesOf(old), namesOf(now))
  return [
    ...added(old.passHeaders ?? [], now.passHeaders ?? []).map(
      header => `passes the client's own ${header} to the upstream`
    ),
    !old.keys && now.keys && 'takes keys for scripts',
    old.redirects !== 'pass' &&
      now.redirects === 'pass' &&
      "passes the upstream's redirects to any address",
    cookies.length > 0 && `lets the upstream set cookies: ${cookies.join(', ')}`
  ]
}

/** Hosts that get identities or tokens, or get them without https, and did not before. */
const upstreams: RiskRule = ({ routes: before }, { routes: after }) => {
  const known = new Set(receivers(before).map(({ url }) => url.host))
  const hadTls = receivers(before).filter(({ url }) => url.protocol === 'https:')
  return receivers(after).flatMap(({ name, url }) => [
    !known.has(url.host) &&
      `upstreams.${name} has another host: identities and tokens go to ${url.host}`,
    url.protocol === 'http:' &&
      hadTls.some(each => each.name === name || each.url.host === url.host) &&
      `upstreams.${name} is called without https (${url.host})`
  ])
}

function receivers({ upstreams: all }: RoutesConfig) {
  return Object.entries(all).flatMap(([name, upstream]) => {
    const isTold = upstream.identity || credentialOf(upstream.credential).as !== 'none'
    return isTold ? (upstream.url ?? []).map(url => ({ name, url: new URL(url) })) : []
  })
}

const limits: RiskRule = ({ limits: before }, { limits: after }) =>
  Object.entries(before.limits).flatMap(([name, old]) => {
    const now = ownMember(after.limits, name)
    const risks = now === undefined ? ['is removed'] : loosened(old, now)
    return risks.map(risk => risk !== false && `limits.${name} ${risk}`)
  })

function loosened(old: LimitConfig, now: LimitConfig): Array<string | false> {
  if (old.mode !== 'enforce') return []
  if (now.mode !== 'enforce') return ['no longer refuses anyone']
  const rate = now.max / now.window / (old.max / old.window)
  const atOnce = (now.burst ?? now.max) / (old.burst ?? old.max)
  return [
    rate >= muchLooser && `is ${Math.round(rate)} times looser`,
    rate < muchLooser &&
      atOnce >= muchLooser &&
      `lets ${Math.round(atOnce)} times more requests pass at once`,
    (['routes', 'methods', 'roles'] as const).some(key => isNarrower(old[key], now[key])) &&
      'no longer applies to all requests that it applied to',
    old.by !== now.by && `counts by ${now.by}, it was by ${old.by}`
  ]
}

/** Of lists of which an empty one names all. */
function isNarrower(before: readonly string[], now: readonly string[]): boolean {
  if (now.length === 0) return false
  return before.length === 0 || before.some(each => !now.includes(each))
}

const lockouts: RiskRule = ({ limits: { lockout: before } }, { limits: { lockout: after } }) =>
  (['accountAndAddress', 'address', 'account'] as const).map(whom => {
    const [old, now] = [before[whom], after[whom]]
    if (old === 'off') return false
    if (now === 'off') return `lockout.${whom} counts nothing any more: passwords may be guessed`
    const looser = Math.max(now.failures / old.failures, old.every / now.every)
    return looser >= muchLooser && `lockout.${whom} is at least ten times looser`
  })

const sessions: RiskRule = ({ gateway: { session: before } }, { gateway: { session: after } }) => {
  const [old, now] = [before.cookie, after.cookie]
  const order = ['strict', 'lax', 'none']
  const [first = ''] = after.secrets
  const isKept = before.secrets.some(secret => after.secrets.includes(secret))
  const isFirstNew = isKept && !before.secrets.includes(first)
  return [
    old.secure && !now.secure && 'the session cookie travels without https',
    order.indexOf(now.sameSite) > order.indexOf(old.sameSite) &&
      `the session cookie is sent from more sites (sameSite: ${now.sameSite})`,
    old.name !== now.name && 'the session cookie has another name: everyone is signed out',
    before.secrets.length > 0 &&
      !isKept &&
      'none of the old secrets is kept: everyone is signed out',
    isFirstNew &&
      'the first of session.secrets is new: replicas that do not have it yet answer 401 to the ' +
        'sessions it signs; deploy it as the second everywhere before it comes first'
  ]
}

const listeners: RiskRule = ({ gateway: before }, { gateway: after }) => {
  const isLocal = ({ ops }: Config['gateway']) => isLoopback(splitHostPort(ops.listen).host)
  return [
    ...added(before.server.origins, after.server.origins).map(
      origin => `pages of ${origin} may use the sessions of signed-in users`
    ),
    ...added(before.server.trustedProxies, after.server.trustedProxies).map(
      block => `${block} may set the client's address`
    ),
    before.server.hosts.length > 0 &&
      after.server.hosts.length === 0 &&
      'every well-formed Host is accepted',
    isLocal(before) &&
      !isLocal(after) &&
      `the operators' port listens beyond this machine (${after.ops.listen})`
  ]
}

const rules = [routes, rewrites, limits, lockouts, upstreams, sessions, listeners]

export interface Plan {
  readonly changes: readonly Change[]
  readonly risks: readonly string[]
}

export const comparePlan = (before: Config, after: Config): Plan => ({
  changes: configChanges(before, after),
  risks: rules.flatMap(rule => rule(before, after)).filter(risk => risk !== false)
})

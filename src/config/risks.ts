/**
 * The risks of a config change: what becomes open, loose or weak. They are of what callers can
 * reach, so that another name hides none.
 */
import { limitRisks } from './limit-risks.ts'
import type { Config } from './schema/config.ts'
import { contains, nearerFirst } from './schema/public-path.ts'
import { type Change, configChanges } from './diff.ts'
import { credentialOf, type RouteConfig, type RoutesConfig } from './schema/routes.ts'
import { nameOfCookie } from './schema/set-cookies.ts'
import { urlsOf } from './schema/upstream-addresses.ts'

type RiskRule = (before: Config, after: Config) => string[]

const added = <T>(before: readonly T[], after: readonly T[]) =>
  after.filter(item => !before.includes(item))

interface Answering {
  readonly name: string
  readonly route: RouteConfig
}

/** The routes of the nearest path that takes all of a path. */
function answering({ routes }: RoutesConfig, path: string): Answering[] {
  const all = Object.entries(routes).map(([name, route]) => ({ name, route }))
  const exact = all.filter(({ route }) => route.path === path)
  if (exact.length > 0) return exact
  const outer = all.filter(({ route }) => contains(route.path, path))
  const [nearest] = outer.map(({ route }) => route.path).toSorted(nearerFirst)
  return outer.filter(({ route }) => route.path === nearest)
}

const access: RiskRule = ({ routes: before }, { routes: after }) => {
  const pathsOf = ({ routes }: RoutesConfig) => Object.values(routes).map(({ path }) => path)
  const paths = new Set([...pathsOf(after), ...pathsOf(before)])
  return [...paths].flatMap(path => {
    const olds = answering(before, path)
    return answering(after, path).flatMap(now =>
      olds.length === 0 ? newlyReached(now, before) : wider(now, path, olds)
    )
  })
}

function newlyReached({ name, route }: Answering, before: RoutesConfig): string[] {
  if (route.access === 'public') {
    return [`routes.${name} (${route.path}) is new and public: anyone may call it`]
  }
  const inner = Object.values(before.routes).find(
    ({ path }) => contains(route.path, path) || route.path === `${path}/*`
  )
  return inner === undefined
    ? []
    : [`routes.${name} takes more paths: ${route.path} instead of ${inner.path}`]
}

function wider({ name, route: now }: Answering, path: string, olds: Answering[]): string[] {
  const methodsBefore = olds.flatMap(({ route }) => route.methods)
  const gained = added(methodsBefore, now.methods)
  const replaced = olds.filter(({ route }) =>
    route.methods.some(method => now.methods.includes(method))
  )
  const risks = replaced.flatMap(({ route }) => [
    ...widerAccess(route.access, now.access),
    ...openings(route, now)
  ])
  return [
    ...(gained.length > 0 ? [`takes more methods: ${gained.join(', ')}`] : []),
    ...new Set(risks)
  ].map(risk => `routes.${name} (${path}) ${risk}`)
}

type Access = RouteConfig['access']

function widerAccess(old: Access, now: Access): string[] {
  if (now === 'public') return old === 'public' ? [] : ['becomes public: anyone may call it']
  if (typeof old !== 'object') return []
  if (now === 'session') {
    return [`is open to every signed-in user; it was for ${old.roles.join(', ')}`]
  }
  const roles = added(old.roles, now.roles)
  return roles.length === 0 ? [] : [`is open to more roles: ${roles.join(', ')}`]
}

/** What passes between clients and back-ends and did not before. */
function openings(old: RouteConfig, now: RouteConfig): string[] {
  const namesOf = ({ setCookies = [] }: RouteConfig) => setCookies.map(nameOfCookie)
  const cookies = added(namesOf(old), namesOf(now))
  return [
    ...(old.passAuthorization !== true && now.passAuthorization === true
      ? ["passes the client's Authorization to the upstream"]
      : []),
    ...added(old.passRefusedHeaders ?? [], now.passRefusedHeaders ?? []).map(
      header => `lets clients forge ${header}`
    ),
    ...(old.redirects !== 'pass' && now.redirects === 'pass'
      ? ["passes the upstream's redirects to any address"]
      : []),
    ...(cookies.length > 0 ? [`lets the upstream set cookies: ${cookies.join(', ')}`] : [])
  ]
}

/** Hosts that get identities or tokens, or get them without https, and did not before. */
const upstreams: RiskRule = ({ routes: before }, { routes: after }) => {
  const known = new Set(receivers(before).map(({ url }) => url.host))
  const hadTls = receivers(before).filter(({ url }) => url.protocol === 'https:')
  return receivers(after).flatMap(({ name, url }) => {
    const isPlain = url.protocol === 'http:'
    const loses = hadTls.some(each => each.name === name || each.url.host === url.host)
    return [
      ...(known.has(url.host)
        ? []
        : [`upstreams.${name} has another host: identities and tokens go to ${url.host}`]),
      ...(isPlain && loses ? [`upstreams.${name} is called without https (${url.host})`] : [])
    ]
  })
}

function receivers({ upstreams: all }: RoutesConfig) {
  return Object.entries(all).flatMap(([name, upstream]) => {
    const isTold = upstream.identity || credentialOf(upstream.credential).as !== 'none'
    return isTold ? urlsOf(upstream).map(url => ({ name, url: new URL(url) })) : []
  })
}

const install: RiskRule = ({ gateway: before }, { gateway: after }) => {
  const [old, now] = [before.session.cookie, after.session.cookie]
  const order = ['strict', 'lax', 'none']
  const times = (['idle', 'absolute'] as const).filter(
    name => after.session[name] / before.session[name] >= 4
  )
  return [
    ...(old.secure && !now.secure ? ['the session cookie travels without https'] : []),
    ...(order.indexOf(now.sameSite) > order.indexOf(old.sameSite)
      ? [`the session cookie is sent from more sites (sameSite: ${now.sameSite})`]
      : []),
    ...(old.name !== now.name
      ? ['the session cookie has another name: everyone is signed out']
      : []),
    ...ofSecrets(before.session.secrets, after.session.secrets),
    ...times.map(
      name =>
        `session.${name} is ${Math.round(after.session[name] / before.session[name])} times longer`
    ),
    ...added(before.server.origins, after.server.origins).map(
      origin => `pages of ${origin} may use the sessions of signed-in users`
    ),
    ...added(before.server.trustedProxies, after.server.trustedProxies).map(
      block => `${block} may set the client's address`
    ),
    ...(before.server.hosts.length > 0 && after.server.hosts.length === 0
      ? ['every well-formed Host is accepted']
      : []),
    ...(!isLocal(after.ops.listen) && isLocal(before.ops.listen)
      ? [`the operators' port listens beyond this machine (${after.ops.listen})`]
      : [])
  ]
}

function ofSecrets(before: readonly string[], after: readonly string[]): string[] {
  const isKept = before.length === 0 || before.some(secret => after.includes(secret))
  if (!isKept) return ['none of the old secrets is kept: everyone is signed out']
  const [first] = after
  if (first === undefined || before.length === 0 || before.includes(first)) return []
  return [
    'the first of session.secrets is new: replicas that do not have it yet answer 401 to the ' +
      'sessions it signs; deploy it as the second everywhere before it comes first'
  ]
}

function isLocal(listen: string) {
  return /^(?:127\.|localhost:|\[::1\])/.test(listen)
}

const users: RiskRule = ({ users: before }, { users: after }) =>
  Object.entries(after).flatMap(([file, { users: all }]) =>
    Object.entries(all).flatMap(([name, { roles }]) => {
      const old = Object.hasOwn(before, file) ? before[file]?.users : undefined
      if (old === undefined || !Object.hasOwn(old, name)) return []
      const gained = added(old[name]?.roles ?? [], roles)
      return gained.length > 0 ? [`the user ${name} gets the roles ${gained.join(', ')}`] : []
    })
  )

const limits: RiskRule = ({ limits: before }, { limits: after }) => limitRisks(before, after)

const rules: readonly RiskRule[] = [access, users, limits, upstreams, install]

export const risksOf = (before: Config, after: Config): string[] =>
  rules.flatMap(rule => rule(before, after))

export interface Plan {
  readonly changes: readonly Change[]
  readonly risks: readonly string[]
}

/** What another config would change, for operators. */
export const comparePlan = (before: Config, after: Config): Plan => ({
  changes: configChanges(before, after),
  risks: risksOf(before, after)
})

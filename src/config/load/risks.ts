/** The risks of a config change: what becomes open, loose, weak or slow. */
import { contains } from '../schema/public-path.ts'
import type { Config } from '../schema/config.ts'
import { inUnits } from '../schema/primitives.ts'
import type { RouteConfig, RoutesConfig } from '../schema/routes.ts'
import { nameOfCookie } from '../schema/set-cookies.ts'
import { urlsOf } from '../schema/upstream-addresses.ts'
import { limitRisks } from './limit-risks.ts'
import { upstreamRisks } from './upstream-risks.ts'

type RiskRule = (before: Config, after: Config, balancerMs: number) => string[]

const both = <T>(before: Readonly<Record<string, T>>, after: Readonly<Record<string, T>>) =>
  Object.entries(after).flatMap(([name, now]) => {
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    return old === undefined ? [] : [{ name, old, now }]
  })
const added = <T>(before: readonly T[], after: readonly T[]) =>
  after.filter(item => !before.includes(item))

const access: RiskRule = ({ routes: before }, { routes: after }) => [
  ...both(before.routes, after.routes).flatMap(({ name, old, now }) => wider(name, old, now)),
  ...Object.entries(after.routes).flatMap(([name, { access: who, path }]) =>
    !Object.hasOwn(before.routes, name) && who === 'public'
      ? [`routes.${name} (${path}) is new and public: anyone may call it`]
      : []
  ),
  ...exposed(before, after)
]

const isOpen = (path: string) => path.endsWith('*')

const takesMore = (before: string, after: string) =>
  before !== after && (contains(after, before) || (isOpen(after) && !isOpen(before)))

const namesOf = ({ setCookies }: RouteConfig) => setCookies.map(nameOfCookie)

function wider(name: string, old: RouteConfig, now: RouteConfig): string[] {
  const gained = added(old.methods, now.methods)
  const newCookies = added(namesOf(old), namesOf(now))
  return [
    ...(old.access !== 'public' && now.access === 'public'
      ? [`routes.${name} (${now.path}) becomes public: anyone may call it`]
      : []),
    ...(typeof old.access === 'object' && now.access === 'session'
      ? [
          `routes.${name} (${now.path}) is open to every signed-in user; it was for ${old.access.roles.join(', ')}`
        ]
      : []),
    ...(typeof old.access === 'object' &&
    typeof now.access === 'object' &&
    added(old.access.roles, now.access.roles).length > 0
      ? [
          `routes.${name} (${now.path}) is open to more roles: ${added(old.access.roles, now.access.roles).join(', ')}`
        ]
      : []),
    ...(gained.length > 0
      ? [`routes.${name} (${now.path}) takes more methods: ${gained.join(', ')}`]
      : []),
    ...(takesMore(old.path, now.path)
      ? [`routes.${name} takes more paths: ${now.path} instead of ${old.path}`]
      : []),
    ...(!old.passAuthorization && now.passAuthorization
      ? [`routes.${name} passes the client's Authorization to the upstream`]
      : []),
    ...added(old.passRefusedHeaders, now.passRefusedHeaders).map(
      header => `routes.${name} lets clients forge ${header}`
    ),
    ...(old.redirects === 'refuse' && now.redirects === 'pass'
      ? [`routes.${name} passes the upstream's redirects to any address`]
      : []),
    ...(newCookies.length > 0
      ? [`routes.${name} lets the upstream set cookies: ${newCookies.join(', ')}`]
      : [])
  ]
}

function exposed(before: RoutesConfig, after: RoutesConfig): string[] {
  return both(before.upstreams, after.upstreams).flatMap(({ name, old, now }) => {
    const [urlsBefore, urlsNow] = [addressesOf(old), addressesOf(now)]
    const hosts = new Set(urlsBefore.map(({ host }) => host))
    const newHosts = urlsNow.filter(({ host }) => !hosts.has(host)).map(({ host }) => host)
    const losesTls = urlsBefore.some(isHttps) && !urlsNow.every(isHttps)
    return [
      ...(losesTls ? [`upstreams.${name} is called without https`] : []),
      ...(newHosts.length > 0
        ? [
            `upstreams.${name} has another host: ` +
              `identities and tokens go to ${newHosts.join(', ')}`
          ]
        : [])
    ]
  })
}

function addressesOf(upstream: RoutesConfig['upstreams'][string]): URL[] {
  return urlsOf(upstream).map(url => new URL(url))
}

function isHttps({ protocol }: URL): boolean {
  return protocol === 'https:'
}

const limits: RiskRule = ({ limits: before }, { limits: after }) => limitRisks(before, after)

const slow: RiskRule = ({ routes: before }, { routes: after }, balancerMs) => {
  const late = (ms: number | undefined, old: number | undefined) =>
    ms !== undefined && ms >= balancerMs && ms !== old
  const words = (what: string, ms: number) =>
    `${what} is ${inUnits('x-duration', ms)}: the load balancer gives up after ` +
    `${inUnits('x-duration', balancerMs)}, and the user gets no error message`
  const [old, now] = [before.endpoints.profile, after.endpoints.profile]
  return [
    ...(late(now.timeout, old.timeout)
      ? [words('endpoints.profile.timeout', now.timeout ?? 0)]
      : []),
    ...Object.entries(after.routes).flatMap(([name, { timeout }]) =>
      late(timeout, before.routes[name]?.timeout)
        ? [words(`routes.${name}.timeout`, timeout ?? 0)]
        : []
    ),
    ...Object.entries(after.upstreams).flatMap(([name, { responseTimeout }]) =>
      late(responseTimeout, before.upstreams[name]?.responseTimeout)
        ? [words(`upstreams.${name}.responseTimeout`, responseTimeout)]
        : []
    )
  ]
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
    ...(before.session.secrets.length > 0 &&
    !before.session.secrets.some(secret => after.session.secrets.includes(secret))
      ? ['none of the old secrets is kept: everyone is signed out']
      : []),
    ...newlySigning(before.session.secrets, after.session.secrets),
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

const users: RiskRule = ({ users: before }, { users: after }) =>
  both(before, after).flatMap(({ old, now }) =>
    both(old.users, now.users).flatMap(({ name, old: was, now: is }) => {
      const gained = added(was.roles, is.roles)
      return gained.length > 0 ? [`the user ${name} gets the roles ${gained.join(', ')}`] : []
    })
  )

/** A new secret that signs before every replica has it: the others reject its sessions. */
function newlySigning(before: readonly string[], after: readonly string[]): string[] {
  const [first] = after
  if (first === undefined || before.includes(first)) return []
  // When no secret is kept, the caller reports that instead.
  if (!before.some(secret => after.includes(secret))) return []
  return [
    'the first of session.secrets is new: replicas that do not have it yet answer 401 to the ' +
      'sessions it signs; deploy it as the second everywhere before it comes first'
  ]
}

function isLocal(listen: string) {
  return /^(?:127\.|localhost:|\[::1\])/.test(listen)
}

const upstreams: RiskRule = ({ routes: before }, { routes: after }) => upstreamRisks(before, after)

const rules: readonly RiskRule[] = [access, users, limits, slow, upstreams, install]

/** @param balancerMs the response time-out of the load balancer in front of the gateway */
export const risksOf = (before: Config, after: Config, balancerMs: number): string[] =>
  rules.flatMap(rule => rule(before, after, balancerMs))

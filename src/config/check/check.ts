/** Rules between keys and between files. Pure: every fault is reported, nothing is read or changed. */
import { isIP } from 'node:net'
import { errorKinds } from '../../errors.ts'
import { checkLimits } from './limits.ts'
import { checkContracts } from './contracts.ts'
import { checkDeployment } from './deployment.ts'
import { checkFields } from './fields.ts'
import { checkOperation } from './operation.ts'
import { checkOps, hostPattern } from './admin.ts'
import { checkReach } from './reach.ts'
import { checkParts } from './parts.ts'
import { checkExpectations } from './expectations.ts'
import { checkSources } from './sources.ts'
import { checkMaintenance } from './maintenance.ts'
import { checkShapes } from './shapes.ts'
import { nearest } from '../schema/faults.ts'
import { type GatewayConfig, usesRedis } from '../schema/gateway.ts'
import { partsOf } from '../schema/parts.ts'
import { pathPattern } from '../schema/primitives.ts'
import { endpointNames } from '../schema/endpoints.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { Path } from '../schema/visit.ts'
import type { Report, Checked } from './report.ts'

const rules = [
  checkInstall,
  checkOps,
  checkDeployment,
  checkLogin,
  checkSources,
  checkUpstreams,
  checkFields,
  checkPaths,
  checkParts,
  checkShapes,
  checkContracts,
  checkLimits,
  checkReach,
  checkMaintenance,
  checkExpectations,
  checkOperation
]

/** @param unfit whether a value is known not to fit its schema: then a rule that trips over it is passed over. */
export function checkConfig(config: Checked, report: Report, unfit: boolean): void {
  for (const rule of rules) {
    try {
      rule(config, report)
    } catch (error) {
      if (!unfit) throw error
    }
  }
}

function checkLogin({ gateway: { redis, login } }: Checked, report: Report): void {
  if (
    redis !== undefined &&
    [redis.url !== '', redis.sentinels.length > 0, redis.cluster.length > 0].filter(Boolean)
      .length > 1
  )
    report(
      'gateway',
      ['redis'],
      'url, sentinels and cluster exclude each other: name the one kind of Redis that there is'
    )
  login.sources.forEach((source, index) => {
    if (source.kind !== 'upstream-login' || source.refresh === undefined) return
    if (source.expires === undefined)
      report(
        'gateway',
        ['login', 'sources', index, 'refresh'],
        'needs `expires`, which tells when to renew the token'
      )
    if (source.token === undefined)
      report('gateway', ['login', 'sources', index, 'refresh'], 'needs `token`, the token to renew')
  })
}

const reservedHeaders = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'transfer-encoding',
  'cookie',
  'authorization',
  'expect',
  'te',
  'trailer',
  'upgrade',
  'accept',
  'accept-encoding',
  'x-request-id',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host'
])

function checkInstall({ gateway }: Checked, report: Report): void {
  const { server, ops, session, redis, envelope, identity } = gateway
  const shared = usesRedis(gateway)
  session.secrets.forEach((secret, index) => {
    if (secret.length < 32)
      report(
        'gateway',
        ['session', 'secrets', index],
        'the secret has fewer than 32 characters; make one with `console-gateway generate-secret`'
      )
  })
  session.secrets.forEach((secret, index) => {
    const first = session.secrets.indexOf(secret)
    if (first === index) return
    const message = 'is listed twice: remove it, or write the one that was meant'
    const how = { severity: 'warning', also: ['session', 'secrets', first] } as const
    report('gateway', ['session', 'secrets', index], message, how)
  })
  if (shared && session.secrets.length === 0)
    report(
      'gateway',
      ['session', 'secrets'],
      'with Redis, sessions outlive this process, so the secret has to as well: set ${SESSION_SECRET} or file:PATH; make one with `console-gateway generate-secret`'
    )
  if (!shared && server.workers !== 1)
    report(
      'gateway',
      ['server', 'workers'],
      'without Redis there is one worker: sessions and limits live in its process',
      'warning'
    )
  if (session.idle > session.absolute) {
    const how = { severity: 'warning', also: ['session', 'absolute'] } as const
    report(
      'gateway',
      ['session', 'idle'],
      'is longer than session.absolute, so it never applies',
      how
    )
  }
  if (session.cookie.sameSite === 'none' && !session.cookie.secure)
    report(
      'gateway',
      ['session', 'cookie', 'sameSite'],
      'browsers refuse SameSite=None without Secure: set session.cookie.secure: true'
    )
  if (!session.cookie.secure)
    report(
      'gateway',
      ['session', 'cookie', 'secure'],
      'the session cookie travels without https; fine on loopback, nowhere else',
      'warning'
    )
  if (server.hosts.length === 0 && session.cookie.secure)
    report(
      'gateway',
      ['server', 'hosts'],
      'is empty, so every well-formed Host is answered: name your own',
      'warning'
    )
  for (const [section, { listen }] of Object.entries({ server, ops })) {
    const message = `expected a port of at most 65535, found ${portOf(listen)}`
    if (portOf(listen) > 65_535) report('gateway', [section, 'listen'], message)
  }
  if (server.listen === ops.listen && portOf(ops.listen) !== 0)
    report(
      'gateway',
      ['ops', 'listen'],
      'is server.listen too: operators need a port of their own',
      { also: ['server', 'listen'] }
    )
  server.hosts.forEach((host, index) => {
    const message = `expected a host name alone, without scheme, port or path, found "${host}"`
    if (!hostPattern.test(host)) report('gateway', ['server', 'hosts', index], message)
  })
  server.origins.forEach((origin, index) => {
    const written = URL.canParse(origin) ? new URL(origin).origin : undefined
    if (written !== origin)
      report(
        'gateway',
        ['server', 'origins', index],
        written === undefined
          ? 'is not a valid URL: expected an origin such as https://console.example.com'
          : `expected the origin as browsers write it: ${written}`
      )
  })
  if (redis !== undefined && redis.url !== '' && !URL.canParse(redis.url))
    report(
      'gateway',
      ['redis', 'url'],
      'is not a valid URL: expected one such as redis://redis.internal:6379'
    )
  checkIdentity(identity, report)
  server.trustedProxies.forEach((block, index) => {
    if (!isBlock(block))
      report(
        'gateway',
        ['server', 'trustedProxies', index],
        `expected an address or a CIDR block such as 10.0.0.0/8, found "${block}"`
      )
  })
  for (const code of Object.keys(envelope.messages))
    if (!Object.hasOwn(errorKinds, code))
      report(
        'gateway',
        ['envelope', 'messages', code],
        `there is no error code "${code}".${nearest(code, Object.keys(errorKinds))}`
      )
}

function checkIdentity(identity: GatewayConfig['identity'], report: Report): void {
  const { prefix: _, ...headers } = identity
  const names = Object.values(headers).filter(name => name !== undefined)
  for (const [key, name] of Object.entries(headers)) {
    if (name === undefined || !reservedHeaders.has(name)) continue
    const message = `"${name}" is not for this: the gateway or HTTP itself uses it`
    report('gateway', ['identity', key], message)
  }
  if (new Set(names).size === names.length) return
  const parts = headers.source === undefined ? 'username and roles' : 'username, roles and source'
  report('gateway', ['identity'], `id, ${parts} need a header field each`)
}

function portOf(listen: string) {
  return Number(listen.slice(listen.lastIndexOf(':') + 1))
}

function isBlock(block: string): boolean {
  const [address = '', bits, ...rest] = block.split('/')
  const version = isIP(address)
  return (
    version !== 0 &&
    rest.length === 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)))
  )
}

function checkUpstreams({ gateway, routes }: Checked, report: Report): void {
  const known = Object.keys(routes.upstreams)
  const used = new Set<string>()
  const must = (file: 'gateway' | 'routes', path: Path, given: string) => {
    used.add(given)
    if (!known.includes(given))
      report(file, path, `there is no upstream "${given}".${nearest(given, known)}`)
  }
  gateway.login.sources.forEach((source, index) => {
    if (source.kind === 'upstream-login')
      must('gateway', ['login', 'sources', index, 'upstream'], source.upstream)
  })
  for (const [name, { upstream }] of Object.entries(routes.routes))
    if (upstream !== undefined) must('routes', ['routes', name, 'upstream'], upstream)
  for (const { place, part } of partsOf(routes))
    must('routes', [...place, 'upstream'], part.upstream)
  for (const [name, { url }] of Object.entries(routes.upstreams))
    if (!URL.canParse(url))
      report(
        'routes',
        ['upstreams', name, 'url'],
        `is not a valid URL: expected one such as http://orders.internal:8080, found ${JSON.stringify(url)}`
      )
  const { profile } = routes.endpoints
  if (profile.upstream !== undefined)
    must('routes', ['endpoints', 'profile', 'upstream'], profile.upstream)
  else if (profile.from === 'upstream')
    report(
      'routes',
      ['endpoints', 'profile', 'from'],
      'the key "upstream" is missing: name the upstream that knows the current user'
    )
  if (
    profile.from === 'session' &&
    (profile.upstream ?? profile.rewrite ?? profile.shape ?? profile.timeout) !== undefined
  )
    report(
      'routes',
      ['endpoints', 'profile', 'from'],
      'the session answers, so upstream, rewrite, shape and timeout have no effect; set `from: upstream`'
    )
  for (const name of known)
    if (!used.has(name))
      report('routes', ['upstreams', name], 'no route uses this upstream', 'warning')
}

// As the schema has it for paths; an alias is a key, of which the schema only asks that it begins with a slash.
const publicPath = new RegExp(pathPattern)

function checkPaths(
  { gateway: { session }, routes: { endpoints, aliases, routes }, limits: { lockout } }: Checked,
  report: Report
): void {
  const own = new Set([session.cookie.name, lockout.knownBrowser.cookie])
  const taken = new Map<string, { owner: string; where: Path }>()
  const take = (method: string, path: string, owner: string, where: Path) => {
    const key = `${method} ${path}`
    const other = taken.get(key)
    if (other === undefined) return void taken.set(key, { owner, where })
    report('routes', where, `${method} ${path} is taken by ${other.owner}`, { also: other.where })
  }
  take('POST', endpoints.login.path, 'endpoints.login', ['endpoints', 'login', 'path'])
  for (const method of ['GET', 'POST'])
    take(method, endpoints.logout.path, 'endpoints.logout', ['endpoints', 'logout', 'path'])
  take('GET', endpoints.profile.path, 'endpoints.profile', ['endpoints', 'profile', 'path'])
  for (const [method, below] of [
    ['GET', ''],
    ['POST', '/extend'],
    ['GET', '/list'],
    ['POST', '/close']
  ] as const)
    take(method, endpoints.session.path + below, 'endpoints.session', [
      'endpoints',
      'session',
      'path'
    ])
  for (const [name, { path }] of Object.entries(endpoints)) {
    if (path.endsWith('*'))
      report('routes', ['endpoints', name, 'path'], 'must not end in *: an endpoint has one path')
    if (hasDots(path))
      report('routes', ['endpoints', name, 'path'], 'must not contain empty or dot segments')
  }
  for (const [name, route] of Object.entries(routes)) {
    if (endpointNames.includes(name))
      report(
        'routes',
        ['routes', name],
        `"${name}" is the name of an endpoint: choose another name`
      )
    if (hasDots(route.path))
      report('routes', ['routes', name, 'path'], 'must not contain empty or dot segments')
    for (const method of route.methods)
      take(method, route.path, `routes.${name}`, ['routes', name, 'path'])
    if (route.rewrite?.endsWith('/*') === true && !route.path.endsWith('/*'))
      report(
        'routes',
        ['routes', name, 'rewrite'],
        'must not end in /*, since the public path does not'
      )
    if (route.rewrite !== undefined && route.path.endsWith('/*') && !route.rewrite.endsWith('/*'))
      report('routes', ['routes', name, 'rewrite'], 'must end in /*, as the public path does')
    if (route.rewrite !== undefined && hasDots(route.rewrite))
      report('routes', ['routes', name, 'rewrite'], 'must not contain empty or dot segments')
    for (const key of ['passCookies', 'setCookies'] as const)
      if (route[key].some(cookie => own.has(cookie.replace(/^__Host-/, ''))))
        report(
          'routes',
          ['routes', name, key],
          'the session cookie is the gateway’s alone, and so is that of known browsers'
        )
    if (route.access === 'public' && /\/admin(\/|$)/.test(route.path))
      report(
        'routes',
        ['routes', name, 'access'],
        'is public, although the path contains /admin: set access: session unless that is meant',
        'warning'
      )
  }
  const methodsOf = aliasTargets({ endpoints, routes })
  for (const [alias, target] of Object.entries(aliases)) {
    const methods = methodsOf.get(target)
    if (!publicPath.test(alias) || hasDots(alias))
      report(
        'routes',
        ['aliases', alias],
        'expected a path as routes have it, with /* at its end at most, without empty and dot segments'
      )
    if (methods === undefined)
      report(
        'routes',
        ['aliases', alias],
        `nothing has the path "${target}".${nearest(target, methodsOf.keys())}`
      )
    else if (alias.endsWith('*') !== target.endsWith('*'))
      report(
        'routes',
        ['aliases', alias],
        'either both alias and target must end in /*, or neither'
      )
    for (const method of methods ?? [])
      take(method, alias, `the alias ${alias}`, ['aliases', alias])
  }
}

function hasDots(path: string) {
  return (
    path
      .split('/')
      .slice(1)
      .some(part => part === '' || part === '.' || part === '..') && path !== '/'
  )
}

/** What an alias may stand for: the path of each route and endpoint, with the methods there. */
function aliasTargets({
  endpoints,
  routes
}: Pick<RoutesConfig, 'endpoints' | 'routes'>): Map<string, string[]> {
  const targets = new Map([
    [endpoints.login.path, ['POST']],
    [endpoints.logout.path, ['GET', 'POST']],
    [endpoints.profile.path, ['GET']],
    [endpoints.session.path, ['GET']]
  ])
  for (const { path, methods } of Object.values(routes)) {
    // Two routes that clash have one method twice; the alias is no clash of its own.
    targets.set(path, [...new Set([...(targets.get(path) ?? []), ...methods])])
  }
  return targets
}

/** What the gateway decides about a request, in its order, each with the place in config that says so; decided by the real app, without sockets. */
import type { LoadedConfig, ConfigFile } from './config/load.ts'
import { nearest } from './config/faults.ts'
import { inUnits } from './config/primitives.ts'
import type { Path } from './config/visit.ts'
import { unknownRoute } from './hooks/context.ts'
import { compilePlan, isOfSignIn } from './limits/plan.ts'
import { checkTarget } from './proxy/path.ts'
import { flatten } from './proxy/shape.ts'
import { type Asked, createRehearsal, type Rehearsed, type Wish } from './rehearsal.ts'

export interface Step {
  /** What is decided, such as `route`. */
  readonly about: string
  readonly says: string
  /** `FILE:LINE`, where config says it. */
  readonly at?: string
  readonly refuses?: true
  /** The limit that this is about. */
  readonly limit?: string
}

export interface Explanation {
  /** By its name in config. */
  readonly route: string | undefined
  readonly steps: readonly Step[]
  readonly passes: boolean
  readonly verdict: string
}

export type Question = Pick<Wish, 'method' | 'url' | 'identity' | 'address' | 'headers'>

const endpointNames = ['login', 'logout', 'profile', 'session'] as const
type EndpointName = typeof endpointNames[number]

/** A back-end's token, for the looks of it. */
const token = '…'

export async function explain (config: LoadedConfig, question: Question): Promise<Explanation> {
  const rehearsal = await createRehearsal(config)
  try {
    const rehearsed = await rehearsal.ask({ ...question, credential: { token } })
    const { about, at, steps } = stepsFor(config, rehearsed)
    const route = rehearsed.route === unknownRoute ? undefined : rehearsed.route
    about.path(question.url)
    if (rehearsed.code !== 'request.path') {
      about.route(question, route)
      if (route !== undefined) {
        about.origin(question.method, route)
        about.limits(question, route)
        about.access(question, route)
        about.maintenance(route)
        about.upstream(route)
        about.answer(route)
      }
    }
    // What no step has said: a Host that is not served, a body that is too large.
    if (rehearsed.status >= 400 && rehearsed.asked.length === 0 && !steps.some(({ refuses }) => refuses) && !isEndpoint(route)) steps.push({ about: 'request', says: `${rehearsed.code ?? rehearsed.status}: ${rehearsed.message ?? ''}`, refuses: true, ...(rehearsed.code === 'request.malformed' && { at: at('gateway', ['server', 'hosts']) }) })
    const refused = steps.some(({ refuses }) => refuses)
    return { route, steps, passes: !refused, verdict: verdictOf(config, rehearsed, refused) }
  } finally {
    await rehearsal.close()
  }
}

const isEndpoint = (route: string | undefined): route is EndpointName => (endpointNames as readonly unknown[]).includes(route)

function verdictOf ({ routes }: LoadedConfig, { status, code, message, asked }: Rehearsed, refused: boolean): string {
  if (refused) return `refused: ${status} ${code ?? ''}${message === undefined ? '' : `, "${message}"`}`
  const own = asked.find(({ isPart }) => !isPart)
  if (own !== undefined) return `goes to ${own.upstream}: ${own.method} ${(routes.upstreams[own.upstream]?.url ?? '').replace(/\/$/, '')}${own.path}`
  if (asked.length > 0) return `made of ${asked.map(({ upstream, path }) => `${upstream} ${path}`).join(', ')}`
  return 'the gateway answers it itself'
}

const time = (ms: number) => inUnits('x-duration', ms)

function stepsFor (config: LoadedConfig, rehearsed: Rehearsed) {
  const { gateway, routes, limits } = config
  const mount = gateway.server.mount ?? ''
  const steps: Step[] = []
  const at = (file: ConfigFile, path: Path) => {
    const { file: shown, line } = config.fault(file, path, '')
    return `${shown}:${line}`
  }
  // Behind a refusal nothing is decided any more.
  const say = (about: string, says: string, more: Omit<Step, 'about' | 'says'> = {}) => { if (!steps.some(({ refuses }) => refuses)) steps.push({ about, says, ...more }) }
  const placeOf = (route: string): Path => isEndpoint(route) ? ['endpoints', route] : ['routes', route]
  const refusedBy = (...codes: readonly string[]) => codes.includes(rehearsed.code ?? '') && { refuses: true as const }

  const about = {
    path: (url: string) => {
      try {
        checkTarget(url)
        say('path', 'can be read in one way only')
      } catch {
        say('path', 'could be read in two ways, or holds what no path may hold: request.path', { refuses: true })
      }
    },

    route: ({ method, url }: Question, route: string | undefined) => {
      const [path = ''] = url.split('?', 1)
      if (route === undefined) {
        const { allow } = rehearsed.headers
        if (rehearsed.code === 'route.method') return say('route', `there is one for this path, but not for ${method}: it takes ${String(allow)}`, { refuses: true })
        if (rehearsed.code !== 'route.unknown') return undefined
        const known = [...endpointNames.map(name => routes.endpoints[name].path), ...Object.keys(routes.aliases), ...Object.values(routes.routes).map(each => each.path)].map(each => mount + each)
        return say('route', `none for this path.${nearest(path, known)}`, { refuses: true })
      }
      if (route === 'console') return say('route', 'a file of the console', { at: at('gateway', ['console', 'root']) })
      say('route', route, { at: at('routes', placeOf(route)) })
      const ends = (given: string) => given.endsWith('/*') ? path.startsWith(mount + given.slice(0, -1)) : path === mount + given
      const own = isEndpoint(route) ? routes.endpoints[route].path : routes.routes[route]?.path ?? ''
      const alias = Object.entries(routes.aliases).find(([given, target]) => ends(given) && !ends(own) && (target === own || target.startsWith(`${own}/`)))
      if (alias !== undefined) say('alias', `${alias[0]} stands for ${alias[1]}: same access, limits and name`, { at: at('routes', ['aliases', alias[0]]) })
    },

    origin: (method: string, route: string) => {
      const always = route === 'logout'
      if (!always && ['GET', 'HEAD', 'OPTIONS'].includes(method)) return
      const refused = refusedBy('origin.refused')
      say('origin', refused ? 'the request says that it comes from another site: origin.refused' : 'a browser has to say that it comes from the console’s own origin, or one of server.origins', { at: at('gateway', ['server', 'origins']), ...refused })
    },

    limits: ({ method, identity }: Question, route: string) => {
      const caller = identity && { id: '', identity }
      const { rules } = compilePlan(limits)(route, method, caller)
      for (const { name, kind, max, windowMs, burst, enforced } of rules) {
        const whom = [limits.limits[name]?.by].flat().join(' and ')
        say('limit', `${name}: ${max} in ${time(windowMs)} by ${whom}${kind === 'bucket' ? `, ${burst} at once` : kind === 'sliding' ? ', sliding' : ''}${enforced ? '' : '; in shadow: refuses nobody'}`, { at: at('limits', ['limits', name]), limit: name })
      }
      if (route === 'login') {
        for (const whose of ['account', 'address'] as const) {
          const { mode, after, within, delay, longest } = limits.lockout[whose]
          if (mode !== 'off') say('lockout', `after ${after} failures of an ${whose} in ${time(within)}: ${time(delay)}, at most ${time(longest)}${mode === 'shadow' ? '; in shadow: locks nobody' : ''}`, { at: at('limits', ['lockout', whose]) })
        }
        for (const [name, limit] of Object.entries(limits.limits)) {
          if (limit.mode !== 'off' && isOfSignIn(limit)) say('limit', `${name}: ${limit.max} attempts in ${time(limit.window)} by ${[limit.by].flat().join(' and ')}${limit.refusedOnly ? ', only those that are refused' : ''}${limit.mode === 'shadow' ? '; in shadow: refuses nobody' : ''}`, { at: at('limits', ['limits', name]) })
        }
      }
      say('limit', `${limits.inFlightPerUser} requests of one ${identity === undefined ? 'address' : 'user'} at the same time`, { at: at('limits', ['inFlightPerUser']) })
      const most = limits.inFlightPerRoute[route]
      if (most !== undefined) say('limit', `${most} requests of this route at the same time`, { at: at('limits', ['inFlightPerRoute', route]) })
    },

    access: ({ identity }: Question, route: string) => {
      if (route === 'login' || route === 'logout' || route === 'console') return say('access', 'open to everyone')
      const access = isEndpoint(route) ? 'session' : routes.routes[route]?.access ?? 'session'
      const where = { at: at('routes', isEndpoint(route) ? ['endpoints', route] : ['routes', route, 'access']) }
      if (access === 'public') return say('access', 'public: nobody looks for a session', where)
      const wanted = access === 'session' ? 'needs a session' : `needs a session with the role ${access.roles.join(' or ')}`
      if (identity === undefined) return say('access', `${wanted}; nobody is signed in: ${rehearsed.code ?? ''}`, { ...where, ...refusedBy('session.none') })
      say('access', `${wanted}; ${identity.username} has ${identity.roles.length === 0 ? 'no roles' : identity.roles.join(', ')}${rehearsed.code === 'route.forbidden' ? ': route.forbidden' : ''}`, { ...where, ...refusedBy('route.forbidden') })
    },

    maintenance: (route: string) => {
      const { maintenance } = routes
      if (maintenance === undefined) return
      const refused = refusedBy('maintenance')
      const { methods, allowRoles, until } = maintenance
      if (refused || maintenance.routes.length === 0 || maintenance.routes.includes(route)) say('maintenance', `${refused ? 'closed' : 'open for this request'}${methods.length > 0 ? `; closed for ${methods.join(', ')}` : ''}${allowRoles.length > 0 ? `, but for ${allowRoles.join(', ')}` : ''}${until === undefined ? '' : `, until ${until}`}`, { at: at('routes', ['maintenance']), ...refused })
    },

    upstream: (route: string) => {
      for (const one of rehearsed.asked.toSorted((a, b) => Number(a.isPart) - Number(b.isPart))) tellAsked(one, route)
    },

    answer: (route: string) => {
      if (rehearsed.asked.length === 0) return
      const place = placeOf(route)
      const { shape, contract } = (isEndpoint(route) ? routes.endpoints.profile : routes.routes[route]) ?? {}
      const operations = shape === undefined ? [] : flatten(routes.shapes[shape] ?? [], routes.shapes).flatMap(step => Object.keys(step))
      say('answer', shape === undefined ? 'passes as it is, byte for byte' : `shape ${shape}: ${operations.join(', ')}`, { at: at('routes', shape === undefined ? place : ['shapes', shape]) })
      if (contract !== undefined && contract.mode !== 'off') say('answer', `held against its contract: ${contract.mode}`, { at: at('routes', [...place, 'contract']) })
      const { touch, dialect, errorStatus } = (isEndpoint(route) ? undefined : routes.routes[route]) ?? {}
      if (touch === 'never' || (touch === undefined && route === 'notices')) say('session', 'this call does not keep it from going idle', { at: at('routes', [...place, 'touch']) })
      if (dialect !== undefined || errorStatus !== undefined) say('answer', `envelope ${dialect ?? gateway.envelope.dialect}, status of errors ${errorStatus ?? gateway.envelope.errorStatus}`, { at: at('routes', [...place, dialect === undefined ? 'errorStatus' : 'dialect']) })
    }
  }

  function tellAsked ({ upstream: name, method, path, headers, timeoutMs, isPart }: Asked, route: string): void {
    const upstream = routes.upstreams[name]
    if (upstream === undefined) return
    const place = placeOf(route)
    const { rewrite, timeout, maxBody } = (isEndpoint(route) ? { maxBody: undefined, ...routes.endpoints.profile } : routes.routes[route]) ?? {}
    const what = isPart ? 'part' : 'upstream'
    if (isPart) return say(what, `${method} ${upstream.url.replace(/\/$/, '')}${path}${timeoutMs === undefined ? '' : `, within ${time(timeoutMs)}`}`, { at: at('routes', [...place, 'parts']) })
    say('rewrite', rewrite === undefined ? 'none: the public path is asked for' : `to ${path}`, { at: at('routes', rewrite === undefined ? place : [...place, 'rewrite']) })
    say(what, `${name}: ${method} ${upstream.url.replace(/\/$/, '')}${path}`, { at: at('routes', ['upstreams', name, 'url']) })
    say('time-out', `${timeoutMs === undefined ? '' : `first byte within ${time(timeoutMs)}; `}connection ${time(upstream.connectTimeout)}, a body that stalls ${time(upstream.idleTimeout)}`, { at: at('routes', timeout === undefined ? ['upstreams', name, 'responseTimeout'] : [...place, 'timeout']) })
    if (method !== 'GET' && method !== 'HEAD') say('body', `at most ${inUnits('x-size', maxBody ?? limits.sizes.body)}`, { at: maxBody === undefined ? at('limits', ['sizes', 'body']) : at('routes', [...place, 'maxBody']) })
    const own = Object.entries(headers).filter(([field, value]) => typeof value === 'string' && field !== 'accept-encoding' && field !== 'content-length' && field !== 'user-agent')
    say('fields', own.map(([field, value]) => `${field}: ${field === 'x-request-id' ? 'ID' : String(value)}`).join('; '), { at: at('routes', ['upstreams', name, upstream.credential === 'none' ? 'identity' : 'credential']) })
    say('fields', 'the client’s cookies, its Authorization and all that back-ends take as a proxy’s word stay here, but for passCookies and passAuthorization', { at: at('routes', place) })
  }

  return { about, at, steps }
}

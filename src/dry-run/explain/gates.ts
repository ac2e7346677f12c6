/** The decisions before every response: request, route, session, origin, access and maintenance. */
import { nearest } from '../../config/schema/faults.ts'
import {
  fromRouterPath,
  hasParameters,
  nearerFirst,
  takes
} from '../../config/schema/public-path.ts'
import { maintenanceInWords } from '../../config/schema/maintenance.ts'
import { mountOf } from '../../config/schema/resolved.ts'
import type { PublicPath, Traced } from '../traced-app.ts'
import { type Context, type Decision, endpoints, pathOfRoute } from './decision.ts'

/** @returns the step that refuses the request; undefined if none does */
export function refusingStep({
  trace,
  error,
  at,
  asked,
  answer
}: Traced): Decision['step'] | undefined {
  const refusal = trace.find(each => each.error !== undefined)
  if (refusal !== undefined) return refusal.step
  if (at === undefined) return answer.status >= 400 ? 'request' : undefined
  if (asked.length > 0 || error === undefined) return undefined
  if (error.code === 'route.unknown' || error.code === 'route.method') return 'route'
  // A path without a route is counted outside of the hooks.
  return error.code === 'limit.exceeded' || error.code === 'overloaded' ? 'limits' : 'answer'
}

export function requestDecision({
  traced: { answer, trace, error },
  refusedBy,
  request: { method, target }
}: Context): Decision {
  const step = 'request'
  if (refusedBy !== step) {
    return {
      step,
      result: 'passes',
      text: `${method} ${target}: well-formed, and its path has one reading`
    }
  }
  const thrown = trace.find(each => each.error !== undefined)?.error ?? error
  if (thrown === undefined) return { step, result: 'refuses', text: unparsedText(answer.body) }
  const cause = typeof thrown.detail.cause === 'string' ? `: ${thrown.detail.cause}` : ''
  return { step, result: 'refuses', text: `${thrown.message.replace(/\.$/, '')}${cause}` }
}

function unparsedText(body: string): string {
  return body.includes('"request.path"')
    ? 'The path contains an escape that cannot be decoded.'
    : 'The request cannot be parsed.'
}

/** @param paths all paths of the router */
export function routeDecisions(context: Context, paths: readonly PublicPath[]): Decision[] {
  const { traced, refusedBy, locate } = context
  if (traced.at === undefined || refusedBy === 'request') {
    return [{ step: 'route', result: 'skipped', text: 'no path, no route' }]
  }
  if (traced.at.route === undefined) return [unroutedDecision(context, paths)]
  if (traced.at.access === undefined) {
    return [
      {
        step: 'route',
        result: 'info',
        text: 'a file of the console',
        at: locate('gateway', ['console'])
      }
    ]
  }
  return routedDecisions(context, traced.at.route, fromRouterPath(traced.at.url ?? ''))
}

function unroutedDecision(context: Context, paths: readonly PublicPath[]): Decision {
  const {
    traced: { error },
    request: { method, target },
    locate
  } = context
  if (error === undefined && method === 'OPTIONS') {
    return {
      step: 'origin',
      result: 'info',
      text: 'a preflight (CORS), answered before any route: it allows only pages of server.origins',
      at: locate('gateway', ['server', 'origins'])
    }
  }
  const [path = ''] = target.split('?', 1)
  if (error?.code === 'route.method') {
    const decision = methodDecision(context, path, paths)
    if (decision !== undefined) return decision
  }
  if (error === undefined) {
    return {
      step: 'route',
      result: 'info',
      text: 'no route matches: the console’s page is sent',
      at: locate('gateway', ['console'])
    }
  }
  return { step: 'route', result: 'refuses', text: unknownPathText(context, path, paths) }
}

/** The path has a route, but not with this method. */
function methodDecision(
  { request: { method }, locate }: Context,
  path: string,
  paths: readonly PublicPath[]
): Decision | undefined {
  const [nearestPath] = paths
    .filter(({ url }) => takes(url, path))
    .toSorted((a, b) => nearerFirst(a.url, b.url))
  if (nearestPath === undefined) return undefined
  const { url, route } = nearestPath
  const methods = paths.filter(each => each.url === url).map(each => each.method)
  return {
    step: 'route',
    result: 'refuses',
    text: `${url} exists, but not with ${method}: it takes ${[...new Set(methods)].join(', ')}`,
    at: locate('routes', pathOfRoute(route))
  }
}

function unknownPathText({ config }: Context, path: string, paths: readonly PublicPath[]): string {
  const mount = mountOf(config)
  const hint = path.startsWith(`${mount}/api/api/`)
    ? ' The path begins with /api twice: leave it out of the console’s base URL.'
    : nearest(path, new Set(paths.map(({ url }) => url)))
  const outside = path.startsWith(`${mount}/`) ? '' : ` Every public path begins with ${mount}.`
  return `no route has this path.${hint}${outside}`
}

function routedDecisions({ config, locate }: Context, route: string, url: string): Decision[] {
  const { aliases } = config.routes
  const path = url.slice(mountOf(config).length)
  const isOpen = path.endsWith('*') || hasParameters(path)
  const decision: Decision = {
    step: 'route',
    result: 'passes',
    text: `${route}${isOpen ? ` (${url})` : ''}`,
    at: locate('routes', pathOfRoute(route))
  }
  const target = Object.hasOwn(aliases, path) ? aliases[path] : undefined
  if (target === undefined) return [decision]
  const alias: Decision = {
    step: 'alias',
    result: 'info',
    text: `${path} stands for ${target}`,
    at: locate('routes', ['aliases', path])
  }
  return [decision, alias]
}

export function gateDecisions(context: Context): Decision[] {
  const { traced, refusedBy } = context
  const { at } = traced
  if (at?.route === undefined || at.access === undefined || refusedBy === 'request') return []
  const route = { name: at.route, access: at.access }
  return [
    sessionDecision(context, route),
    originDecision(context),
    accessDecision(context, route),
    ...maintenanceDecisions(context)
  ]
}

interface Route {
  readonly name: string
  readonly access: NonNullable<NonNullable<Traced['at']>['access']>
}

function resultOf({ traced, refusedBy }: Context, step: Decision['step']): Decision['result'] {
  if (refusedBy === step) return 'refuses'
  return traced.trace.some(each => each.step === step) ? 'passes' : 'skipped'
}

function sessionDecision(
  { traced, refusedBy, request: { who } }: Context,
  { name, access }: Route
): Decision {
  const step = 'session'
  if (refusedBy === step) return { step, result: 'refuses', text: traced.error?.message ?? '' }
  const needsSession = access !== 'public' || endpoints.has(name)
  const signedIn = who?.description ?? 'nobody is signed in (--as USER or --role ROLE)'
  return { step, result: 'info', text: needsSession ? signedIn : 'no session is looked up' }
}

function originDecision(context: Context): Decision {
  return {
    step: 'origin',
    result: resultOf(context, 'origin'),
    text: originText(context),
    at: context.locate('gateway', ['server', 'origins'])
  }
}

const headersOfPage: ReadonlySet<string> = new Set(['sec-fetch-site', 'origin', 'referer'])

function originText({ config, traced, refusedBy, request }: Context): string {
  if (refusedBy === 'origin') {
    const origins = [...config.gateway.server.origins, 'its own origin'].join(', ')
    return `${traced.error?.message ?? ''} Pages of ${origins} may call.`
  }
  if (['GET', 'HEAD', 'OPTIONS'].includes(request.method)) {
    return `${request.method} changes nothing`
  }
  return Object.keys(request.headers).some(name => headersOfPage.has(name))
    ? 'the calling page is allowed'
    : 'called by a page of the console itself (set --header for another)'
}

function accessDecision(context: Context, { name, access }: Route): Decision {
  const { traced, refusedBy, locate } = context
  const refusal = refusedBy === 'access' ? `: ${traced.error?.message ?? ''}` : ''
  return {
    step: 'access',
    result: access === 'public' ? 'passes' : resultOf(context, 'access'),
    text: `${accessText(access)}${refusal}`,
    at: locate('routes', [...pathOfRoute(name), ...(endpoints.has(name) ? [] : ['access'])])
  }
}

function accessText(access: Route['access']): string {
  if (access === 'public') return 'public: anyone may call it'
  if (access === 'session') return 'every signed-in user'
  return `roles ${access.roles.join(', ')}`
}

/** None where neither config nor an operator closes anything. */
function maintenanceDecisions(context: Context): Decision[] {
  const { config, traced, refusedBy, locate, maintenance } = context
  const isOfConfig = config.routes.maintenance !== undefined
  if (!isOfConfig && maintenance.length === 0) return []
  const decision: Decision = {
    step: 'maintenance',
    result: resultOf(context, 'maintenance'),
    text:
      refusedBy === 'maintenance'
        ? `closed: ${traced.error?.message ?? ''}`
        : 'not closed for this request',
    ...(isOfConfig && { at: locate('routes', ['maintenance']) }),
    lines: maintenance.map(each => ({
      text: `operator ${each.author} ${maintenanceInWords(each)}`
    }))
  }
  return [decision]
}

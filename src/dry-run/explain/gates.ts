/** What stands before every answer: the request itself, the route, the session, the origin, who may, and maintenance. */
import { nearest } from '../../config/schema/faults.ts'
import { nearerFirst } from '../../config/schema/public-path.ts'
import type { LoadedConfig } from '../../config/schema/config.ts'
import type { PublicPath, Traced } from '../traced-app.ts'
import { type Decision, endpoints, type Explained, pathOfRoute, type Locate } from './decision.ts'

/** Which hook takes which decision. What is refused behind them all is the endpoint's. */
const steps: Readonly<Record<string, Decision['step']>> = {
  checkRequest: 'request',
  refuseTwoSessions: 'session',
  readSession: 'session',
  checkOrigin: 'origin',
  checkLimits: 'limits',
  guard: 'access',
  refuseClosed: 'maintenance'
}

export function refusingStep({
  trace,
  error,
  at,
  asked,
  answer
}: Traced): Decision['step'] | undefined {
  const refusal = trace.find(each => each.error !== undefined)
  if (refusal !== undefined) return steps[refusal.hook] ?? 'request'
  if (at === undefined) return answer.status >= 400 ? 'request' : undefined
  if (asked.length > 0) return undefined
  // Only what answers preflights refuses without an error of ours.
  if (error === undefined) return answer.status >= 400 ? 'origin' : undefined
  if (error.code === 'route.unknown' || error.code === 'route.method') return 'route'
  // For what no route has they are asked by the way.
  return error.code === 'limit.exceeded' || error.code === 'overloaded' ? 'limits' : 'answer'
}

export function requestDecision(
  { answer, trace, error }: Traced,
  refusedBy: Decision['step'] | undefined,
  { method, target }: Explained
): Decision {
  if (refusedBy !== 'request')
    return {
      step: 'request',
      outcome: 'passes',
      text: `${method} ${target}: well-formed, and its path has one reading`
    }
  const thrown = trace.find(each => each.error !== undefined)?.error ?? error
  const why = typeof thrown?.detail.cause === 'string' ? `: ${thrown.detail.cause}` : ''
  return {
    step: 'request',
    outcome: 'refuses',
    text: thrown === undefined ? unread(answer.body) : `${thrown.message.replace(/\.$/, '')}${why}`
  }
}

const preflight = (isAnswered: boolean, place: Locate): Decision => ({
  step: 'origin',
  outcome: isAnswered ? 'says' : 'refuses',
  text: isAnswered
    ? 'a preflight (CORS), answered before any route: only pages of server.origins are told that they may'
    : 'a preflight (CORS) names its Origin and Access-Control-Request-Method',
  at: place('gateway', ['server', 'origins'])
})

function unread(body: string) {
  return body.includes('"request.path"')
    ? 'The path holds an escape that cannot be decoded.'
    : 'The request cannot be parsed.'
}

export function routeDecisions(
  { gateway, routes }: LoadedConfig,
  { at, error, answer }: Traced,
  refusedBy: Decision['step'] | undefined,
  paths: readonly PublicPath[],
  { target, method }: Explained,
  place: Locate
): Decision[] {
  if (at === undefined || refusedBy === 'request')
    return [{ step: 'route', outcome: 'unasked', text: 'no path, no route' }]
  const mount = gateway.server.mount ?? ''
  const [path = ''] = target.split('?', 1)
  if (at.route === undefined) {
    if (method === 'OPTIONS' && error === undefined) return [preflight(answer.status < 400, place)]
    const nearer =
      error?.code === 'route.method'
        ? paths
            .filter(({ url }) => fits(url, path))
            .toSorted((a, b) => nearerFirst(a.url, b.url))[0]?.url
        : undefined
    const here = paths.filter(({ url }) => url === nearer)
    if (here.length > 0)
      return [
        {
          step: 'route',
          outcome: 'refuses',
          text: `${nearer} is there, but not with ${method}: it takes ${[...new Set(here.map(each => each.method))].join(', ')}`,
          at: placeOfRoute(here[0]?.route, place)
        }
      ]
    if (error === undefined)
      return [
        {
          step: 'route',
          outcome: 'says',
          text: 'no route has it: the console’s own page is sent',
          at: place('gateway', ['console'])
        }
      ]
    const doubled = path.startsWith(`${mount}/api/api/`)
      ? ' The path begins with /api twice: leave it out of the console’s base URL.'
      : ''
    return [
      {
        step: 'route',
        outcome: 'refuses',
        text: `no route has this path.${doubled === '' ? nearest(path, new Set(paths.map(({ url }) => url))) : doubled}${path.startsWith(`${mount}/`) ? '' : ` Every public path begins with ${mount}.`}`
      }
    ]
  }
  if (at.access === undefined)
    return [
      {
        step: 'route',
        outcome: 'says',
        text: 'a file of the console',
        at: place('gateway', ['console'])
      }
    ]
  const own = (at.url ?? '').slice(mount.length)
  const alias = Object.entries(routes.aliases).find(([name]) => name === own)
  return [
    {
      step: 'route',
      outcome: 'passes',
      text: `${at.route}${own.endsWith('*') ? ` (${at.url})` : ''}`,
      at: placeOfRoute(at.route, place)
    },
    ...(alias === undefined
      ? []
      : [
          {
            step: 'alias',
            outcome: 'says',
            text: `${alias[0]} stands for ${alias[1]}`,
            at: place('routes', ['aliases', alias[0]])
          } as const
        ])
  ]
}

/** Whether a path is one of those that a route's path stands for. */
function fits(url: string, path: string): boolean {
  if (url.endsWith('/*')) return path.startsWith(url.slice(0, -1))
  const [segments, given] = [url.split('/'), path.split('/')]
  return (
    segments.length === given.length &&
    segments.every((segment, index) => segment === given[index] || segment.startsWith(':'))
  )
}

function placeOfRoute(route: string | undefined, place: Locate) {
  return place('routes', pathOfRoute(route ?? ''))
}

export function gateDecisions(
  { gateway, routes: { maintenance } }: LoadedConfig,
  found: Traced,
  refusedBy: Decision['step'] | undefined,
  { method, who, headers }: Explained,
  place: Locate
): Decision[] {
  const { at, error } = found
  if (at?.route === undefined || at.access === undefined || refusedBy === 'request') return []
  const wasAsked = (hook: string) => found.trace.some(each => each.hook === hook)
  const outcome = (step: Decision['step'], hook: string) =>
    refusedBy === step ? 'refuses' : wasAsked(hook) ? 'passes' : 'unasked'
  const { access } = at
  const words =
    access === 'public'
      ? 'public: anyone may call it'
      : access === 'session'
        ? 'whoever is signed in'
        : `roles ${access.roles.join(', ')}`
  const isOpen = access === 'public'
  const refusal = (step: Decision['step']) =>
    refusedBy === step ? `: ${error?.message ?? ''}` : ''
  const looksForSession = !isOpen || endpoints.has(at.route)
  const isSafe = ['GET', 'HEAD', 'OPTIONS'].includes(method)
  return [
    {
      step: 'session',
      outcome: refusedBy === 'session' ? 'refuses' : 'says',
      text:
        refusedBy === 'session'
          ? (error?.message ?? '')
          : looksForSession
            ? (who?.told ?? 'nobody is signed in (--as USER or --role ROLE)')
            : 'nobody asks who is signed in'
    },
    {
      step: 'origin',
      outcome: outcome('origin', 'checkOrigin'),
      text:
        refusedBy === 'origin'
          ? `${error?.message ?? ''} Pages of ${[...gateway.server.origins, 'its own origin'].join(', ')} may call.`
          : isSafe
            ? `${method} changes nothing`
            : Object.keys(headers).some(name =>
                  ['sec-fetch-site', 'origin', 'referer'].includes(name)
                )
              ? 'the page that calls may'
              : 'called by a page of the console itself (say otherwise with --header)',
      at: place('gateway', ['server', 'origins'])
    },
    {
      step: 'access',
      outcome: isOpen ? 'passes' : outcome('access', 'guard'),
      text: `${words}${refusal('access')}`,
      at: place('routes', [
        ...pathOfRoute(at.route),
        ...(endpoints.has(at.route) ? [] : ['access'])
      ])
    },
    ...(maintenance === undefined
      ? []
      : [
          {
            step: 'maintenance',
            outcome: outcome('maintenance', 'refuseClosed'),
            text:
              refusedBy === 'maintenance'
                ? `closed: ${error?.message ?? ''}`
                : 'not closed for this request',
            at: place('routes', ['maintenance'])
          } as const
        ])
  ]
}

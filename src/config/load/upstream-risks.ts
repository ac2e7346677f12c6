/** The risks of changes in how back-ends are called: what ends, hides or delays responses. */
import { inUnits } from '../schema/primitives.ts'
import type { RouteConfig, RoutesConfig, UpstreamConfig } from '../schema/routes.ts'
import { ownMember } from '../schema/visit.ts'

const timeOuts = [
  'connectTimeout',
  'responseTimeout',
  'idleTimeout',
  'streamIdle',
  'totalTimeout'
] as const
/** The time-outs of a route, with the key of the upstream that holds without them. */
const ofRoutes = [
  ['timeout', 'responseTimeout'],
  ['idleTimeout', 'idleTimeout'],
  ['streamIdle', 'streamIdle'],
  ['totalTimeout', 'totalTimeout']
] as const

export function upstreamRisks(before: RoutesConfig, after: RoutesConfig): string[] {
  const upstreams = Object.entries(after.upstreams).flatMap(([name, now]) => {
    const old = ownMember(before.upstreams, name)
    return old === undefined ? [] : ofUpstream(`upstreams.${name}`, old, now)
  })
  const routes = Object.entries(after.routes).flatMap(([name, now]) => {
    const old = ownMember(before.routes, name)
    const place = `routes.${name}`
    return [
      ...stoodInFor(place, old, now),
      ...(old === undefined ? [] : ofRoute(place, [old, now], [before, after]))
    ]
  })
  return [...upstreams, ...routes]
}

function ofUpstream(place: string, old: UpstreamConfig, now: UpstreamConfig): string[] {
  return timeOuts.flatMap(key => shorter(`${place}.${key}`, old[key], now[key]))
}

/** What a route's own keys change; the upstream's are told of the upstream. */
function ofRoute(
  place: string,
  [old, now]: readonly [RouteConfig, RouteConfig],
  [before, after]: readonly [RoutesConfig, RoutesConfig]
): string[] {
  const oldUpstream = before.upstreams[old.upstream ?? '']
  const upstream = after.upstreams[now.upstream ?? '']
  return ofRoutes.flatMap(([key, ofAll]) =>
    old[key] === now[key]
      ? []
      : shorter(`${place}.${key}`, old[key] ?? oldUpstream?.[ofAll], now[key] ?? upstream?.[ofAll])
  )
}

function shorter(place: string, old = Infinity, now = Infinity): string[] {
  if (now >= old) return []
  const [is, was] = [now, old].map(ms => inUnits('x-duration', ms))
  return [`${place} is ${is}, it was ${was}: slower responses fail now`]
}

/** Responses that are not the back-end's, or not its latest, and connections that nobody reads. */
function stoodInFor(place: string, old: RouteConfig | undefined, now: RouteConfig): string[] {
  const of = `${place} (${now.path})`
  return [
    ...(old !== undefined && old.fallback === undefined && now.fallback !== undefined
      ? [`${of} has a fallback: users and monitors see no error when its upstream fails`]
      : []),
    ...(old?.cache === 'off' && now.cache === 'browser'
      ? [`${of} is kept by browsers: users see changes of others as late as its upstream allows`]
      : []),
    ...(old?.websocket === undefined && now.websocket !== undefined
      ? [`${of} takes WebSockets: limits count connections, not the messages`]
      : [])
  ]
}

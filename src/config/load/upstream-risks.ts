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
  return [
    ...timeOuts.flatMap(key => shorter(`${place}.${key}`, old[key], now[key])),
    ...otherRate(`${place}.minRate`, old.minRate, now.minRate)
  ]
}

/** What a route's own keys change; the upstream's are told of the upstream. */
function ofRoute(
  place: string,
  [old, now]: readonly [RouteConfig, RouteConfig],
  [before, after]: readonly [RoutesConfig, RoutesConfig]
): string[] {
  const oldUpstream = before.upstreams[old.upstream ?? '']
  const upstream = after.upstreams[now.upstream ?? '']
  return [
    ...ofRoutes.flatMap(([key, ofAll]) =>
      old[key] === now[key]
        ? []
        : shorter(
            `${place}.${key}`,
            old[key] ?? oldUpstream?.[ofAll],
            now[key] ?? upstream?.[ofAll]
          )
    ),
    ...(old.minRate === now.minRate
      ? []
      : otherRate(
          `${place}.minRate`,
          old.minRate ?? oldUpstream?.minRate,
          now.minRate ?? upstream?.minRate
        ))
  ]
}

function shorter(place: string, old = Infinity, now = Infinity): string[] {
  if (now >= old) return []
  const before = old === Infinity ? 'it had no bound' : `it was ${inUnits('x-duration', old)}`
  return [`${place} is ${inUnits('x-duration', now)}, ${before}: slower responses fail now`]
}

function otherRate(place: string, old = 0, now = 0): string[] {
  const rate = inUnits('x-size', now)
  if (now > old) return [`${place} is ${rate} a second: slower responses are ended now`]
  return now === 0 && old > 0
    ? [`${place} is 0B: a back-end that sends a byte now and then keeps its connections`]
    : []
}

/** Responses that are not the back-end's, or not its latest, and connections that nobody reads. */
function stoodInFor(place: string, old: RouteConfig | undefined, now: RouteConfig): string[] {
  const of = `${place} (${now.path})`
  return [
    ...(old !== undefined && old.fallback === undefined && now.fallback !== undefined
      ? [`${of} has a fallback: users and monitors see no error when its upstream fails`]
      : []),
    ...(old?.cache === 'off' && now.cache === 'private'
      ? [
          `${of} has a cache: users may see changes of others up to ` +
            `${inUnits('x-duration', now.cacheMaxAge)} late`
        ]
      : []),
    ...(old?.doubleClicks === 'run' && now.doubleClicks === 'share'
      ? [`${of} shares double clicks: an identical request that is meant twice may run once`]
      : []),
    ...(old?.websocket === undefined && now.websocket !== undefined
      ? [`${of} takes WebSockets: limits count connections, not the messages`]
      : [])
  ]
}

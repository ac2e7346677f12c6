/** Rules for the parts of a response: each has its own place, and all fit the route. */
import type { PartConfig } from '../schema/proxied.ts'
import { checkRewrite } from './paths.ts'
import type { RouteConfig } from '../schema/routes.ts'
import type { Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

export function checkParts(
  { routes: { routes, endpoints } }: Pick<CheckedConfig, 'routes'>,
  report: Report
): void {
  for (const [name, route] of Object.entries(routes)) {
    const place = ['routes', name]
    if (hasParts(route)) checkAggregated(route, place, report)
    if (route.websocket !== undefined && !route.methods.includes('GET')) {
      report([...place, 'websocket'], 'needs GET among the methods: a WebSocket begins as one')
    }
  }
  checkRewrites(endpoints.profile, ['endpoints', 'profile'], report)
  checkPlaces(endpoints.profile, ['endpoints', 'profile'], report)
}

function hasParts({ parts = {} }: RouteConfig) {
  return Object.keys(parts).length > 0
}

function checkAggregated(route: RouteConfig, place: Path, report: Report): void {
  if (route.methods.some(method => method !== 'GET')) {
    const message = 'a response made of parts can only be read: set methods: [GET]'
    report([...place, 'methods'], message)
  }
  if (route.websocket !== undefined) {
    report([...place, 'websocket'], 'cannot be combined with parts')
  }
  checkRewrites(route, place, report)
  checkPlaces(route, place, report)
}

interface Aggregated {
  readonly path: string
  readonly parts?: Readonly<Record<string, PartConfig>>
  /** The place of the response of the route's own upstream. */
  readonly into?: string
}

function checkRewrites({ path, parts = {} }: Aggregated, place: Path, report: Report): void {
  for (const [name, { rewrite }] of Object.entries(parts)) {
    checkRewrite(path, rewrite, [...place, 'parts', name, 'rewrite'], report)
  }
}

function checkPlaces({ parts = {}, into }: Aggregated, place: Path, report: Report): void {
  const places = [
    { by: 'the response of the route’s own upstream', into, where: [...place, 'into'] },
    ...Object.entries(parts).map(([name, part]) => ({
      by: `the part "${name}"`,
      into: part.into,
      where: [...place, 'parts', name, 'into']
    }))
  ].filter(each => each.into !== undefined)
  for (const [index, { into: path = '', where }] of places.entries()) {
    const other = places
      .slice(0, index)
      .find(({ into: taken = '' }) => isWithin(taken, path) || isWithin(path, taken))
    if (other === undefined) continue
    report(where, `"${other.into}" is taken by ${other.by}`, { also: other.where })
  }
}

function isWithin(path: string, above: string) {
  return `${path}.`.startsWith(`${above}.`)
}

/** Rules for the parts of a response: each has its own place, and all fit the route. */
import type { PartConfig } from '../schema/parts.ts'
import { checkParameters } from './paths.ts'
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
    report('routes', [...place, 'methods'], message)
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
    const where = [...place, 'parts', name, 'rewrite']
    if (rewrite.endsWith('/*') && !path.endsWith('/*')) {
      report('routes', where, 'must not end in /*, since the public path does not')
    }
    checkParameters(path, rewrite, where, report)
  }
}

interface TakenPlace {
  readonly by: string
  readonly into: string
  readonly where: Path
}

function checkPlaces(
  { parts = {}, into: placeOfRoute }: Aggregated,
  place: Path,
  report: Report
): void {
  const taken: TakenPlace[] = []
  if (placeOfRoute !== undefined) {
    taken.push({
      by: 'the response of the route’s own upstream',
      into: placeOfRoute,
      where: [...place, 'into']
    })
  }
  for (const [name, { into }] of Object.entries(parts)) {
    if (into === undefined) continue
    const where = [...place, 'parts', name, 'into']
    const other = taken.find(each => isWithin(each.into, into) || isWithin(into, each.into))
    if (other !== undefined) {
      const message = `"${other.into}" is taken by ${other.by}`
      report('routes', where, message, { also: other.where })
    }
    taken.push({ by: `the part "${name}"`, into, where })
  }
}

function isWithin(path: string, above: string) {
  return `${path}.`.startsWith(`${above}.`)
}

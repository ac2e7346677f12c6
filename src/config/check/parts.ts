/** Rules for the parts of a response: each has its own place, and all fit the route. */
import type { PartConfig } from '../schema/parts.ts'
import { checkRewrite } from './paths.ts'
import type { RouteConfig } from '../schema/routes.ts'
import type { Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

export function checkParts(
  config: Pick<CheckedConfig, 'gateway' | 'routes'>,
  report: Report
): void {
  const { routes, endpoints } = config.routes
  const { envelope } = config.gateway
  for (const [name, route] of Object.entries(routes)) {
    const place = ['routes', name]
    checkMissing(route, { ...envelope, dialect: route.dialect ?? envelope.dialect }, place, report)
    if ((route.upstream ?? route.answer) === undefined && !hasParts(route)) {
      report(place, 'needs an upstream, parts or an answer')
    }
    if (hasParts(route)) checkAggregated(route, place, report)
  }
  checkMissing(endpoints.profile, envelope, ['endpoints', 'profile'], report)
  checkRewrites(endpoints.profile, ['endpoints', 'profile'], report)
  checkPlaces(endpoints.profile, ['endpoints', 'profile'], report)
}

type EnvelopeConfig = CheckedConfig['gateway']['envelope']

/** The list of missing parts would replace another member of the response. */
function checkMissing(
  { parts, missing }: Pick<RouteConfig, 'parts' | 'missing'>,
  envelope: EnvelopeConfig,
  place: Path,
  report: Report
): void {
  if (!hasParts({ parts }) || !successNames(envelope).includes(missing)) return
  report([...place, 'missing'], `"${missing}" is a member of every success: take another`)
}

const standardNames = {
  'dual': ['ok', 'code', 'message', 'success', 'data'],
  'ant-design-pro': ['success', 'data'],
  'base-response': ['ok', 'code', 'message', 'data']
}
const besideLists = ['total', 'current', 'pageSize']

/** The members of a success that the gateway makes. */
function successNames({ dialect, custom }: EnvelopeConfig): ReadonlyArray<string | false> {
  if (dialect === 'problem' || dialect === 'none') return []
  if (dialect !== 'custom') return [...standardNames[dialect], ...besideLists]
  if (custom === undefined) return besideLists
  const { success, code, message, data } = custom.members
  // A value that is no object stands under `data` in any case.
  return [success, code, message, data === false ? 'data' : data, ...besideLists]
}

function hasParts({ parts }: Pick<RouteConfig, 'parts'>) {
  return Object.keys(parts).length > 0
}

function checkAggregated(route: RouteConfig, place: Path, report: Report): void {
  if (route.methods.some(method => method !== 'GET')) {
    const message = 'a response made of parts can only be read: set methods: [GET]'
    report([...place, 'methods'], message)
  }
  checkRewrites(route, place, report)
  checkPlaces(route, place, report)
}

interface Aggregated {
  readonly path: string
  readonly parts: Readonly<Record<string, PartConfig>>
  /** The place of the response of the route's own upstream. */
  readonly into?: string
}

function checkRewrites({ path, parts }: Aggregated, place: Path, report: Report): void {
  for (const [name, { rewrite }] of Object.entries(parts)) {
    checkRewrite(path, rewrite, [...place, 'parts', name, 'rewrite'], report)
  }
}

function checkPlaces({ parts, into }: Aggregated, place: Path, report: Report): void {
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

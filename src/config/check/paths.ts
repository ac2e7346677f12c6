/** Rules for public paths: each is well-formed and taken once, by an endpoint, a route or an alias. */
import { nearest } from '../schema/faults.ts'
import { endpointNames, ownEndpoints } from '../schema/own-endpoints.ts'
import { pathPattern } from '../schema/primitives.ts'
import { hasDotSegments } from '../schema/public-path.ts'
import type { RouteConfig } from '../schema/routes.ts'
import type { Path } from '../schema/visit.ts'
import type { Checked, Report } from './report.ts'

type Served = Pick<Checked, 'gateway' | 'routes' | 'limits'>

const dotSegments = 'must not contain empty or dot segments'

export function checkPaths(config: Served, report: Report): void {
  const taken = new TakenPaths(report)
  checkEndpoints(config, report, taken)
  checkRoutes(config, report, taken)
  checkAliases(config, report, taken)
}

/** The methods of each path, and what has them. */
class TakenPaths {
  readonly #report: Report
  readonly #owners = new Map<string, { readonly owner: string; readonly where: Path }>()
  constructor(report: Report) {
    this.#report = report
  }

  /** Reports a second owner of a path's method. */
  take(request: { readonly method: string; readonly path: string }, owner: string, where: Path) {
    const key = `${request.method} ${request.path}`
    const other = this.#owners.get(key)
    if (other === undefined) this.#owners.set(key, { owner, where })
    else this.#report('routes', where, `${key} is taken by ${other.owner}`, { also: other.where })
  }
}

/** HEAD comes with GET, so it is no clash of its own. */
const withoutHead = (methods: readonly string[]) => methods.filter(method => method !== 'HEAD')

function checkEndpoints({ routes: { endpoints } }: Served, report: Report, taken: TakenPaths) {
  for (const { name, path, methods } of ownEndpoints(endpoints)) {
    for (const method of withoutHead(methods)) {
      taken.take({ method, path }, `endpoints.${name}`, ['endpoints', name, 'path'])
    }
  }
  for (const [name, { path }] of Object.entries(endpoints)) {
    const place = ['endpoints', name, 'path']
    if (path.endsWith('*')) report('routes', place, 'must not end in *: an endpoint has one path')
    if (hasDotSegments(path)) report('routes', place, dotSegments)
  }
}

function checkRoutes(config: Served, report: Report, taken: TakenPaths): void {
  for (const [name, route] of Object.entries(config.routes.routes)) {
    const place = ['routes', name]
    const { path, methods, access } = route
    if (endpointNames.includes(name)) {
      report('routes', place, `"${name}" is the name of an endpoint: choose another name`)
    }
    if (hasDotSegments(path)) report('routes', [...place, 'path'], dotSegments)
    for (const method of methods) taken.take({ method, path }, `routes.${name}`, [...place, 'path'])
    checkRewrite(route, [...place, 'rewrite'], report)
    checkCookies(config, name, report)
    if (access === 'public' && /\/admin(\/|$)/.test(path)) {
      report(
        'routes',
        [...place, 'access'],
        'is public, although the path contains /admin: set access: session unless that is meant',
        'warning'
      )
    }
  }
}

function checkRewrite({ path, rewrite }: RouteConfig, place: Path, report: Report): void {
  if (rewrite === undefined) return
  if (rewrite.endsWith('/*') && !path.endsWith('/*')) {
    report('routes', place, 'must not end in /*, since the public path does not')
  }
  if (path.endsWith('/*') && !rewrite.endsWith('/*')) {
    report('routes', place, 'must end in /*, as the public path does')
  }
  if (hasDotSegments(rewrite)) report('routes', place, dotSegments)
}

function checkCookies({ gateway, routes, limits }: Served, name: string, report: Report): void {
  const ownCookies = new Set([gateway.session.cookie.name, limits.lockout.knownBrowser.cookie])
  for (const key of ['passCookies', 'setCookies'] as const) {
    const cookies = routes.routes[name]?.[key] ?? []
    if (!cookies.some(cookie => ownCookies.has(cookie.replace(/^__Host-/, '')))) continue
    report(
      'routes',
      ['routes', name, key],
      'the session cookie is the gateway’s alone, and so is that of known browsers'
    )
  }
}

// As the schema has it for paths; an alias is a key, of which the schema only asks that it begins with a slash.
const publicPath = new RegExp(pathPattern)

function checkAliases({ routes }: Served, report: Report, taken: TakenPaths): void {
  const methodsOf = aliasTargets(routes)
  for (const [alias, target] of Object.entries(routes.aliases)) {
    const place = ['aliases', alias]
    const methods = methodsOf.get(target)
    if (!publicPath.test(alias) || hasDotSegments(alias)) {
      const message =
        'expected a path as routes have it, with /* at its end at most, ' +
        'without empty and dot segments'
      report('routes', place, message)
    }
    if (methods === undefined) {
      report(
        'routes',
        place,
        `nothing has the path "${target}".${nearest(target, methodsOf.keys())}`
      )
    } else if (alias.endsWith('*') !== target.endsWith('*')) {
      report('routes', place, 'either both alias and target must end in /*, or neither')
    }
    for (const method of methods ?? []) {
      taken.take({ method, path: alias }, `the alias ${alias}`, place)
    }
  }
}

/** What an alias may stand for: the path of each route and endpoint, with the methods there. */
function aliasTargets({ endpoints, routes }: Served['routes']): Map<string, Set<string>> {
  const targets = new Map<string, Set<string>>()
  const ownPaths = new Set(Object.values(endpoints).map(({ path }) => path))
  const own = ownEndpoints(endpoints).filter(({ path }) => ownPaths.has(path))
  for (const { path, methods } of [...own, ...Object.values(routes)]) {
    // Two routes that clash have one method twice; the alias is no clash of its own.
    targets.set(path, new Set([...(targets.get(path) ?? []), ...withoutHead(methods)]))
  }
  return targets
}

/** Rules for public paths: each is well-formed and has one owner: endpoint, route or alias. */
import { knownBrowserCookie } from '../schema/lockout.ts'
import { nearest } from '../schema/faults.ts'
import { isEndpoint, ownEndpoints } from '../schema/own-endpoints.ts'
import { templatePattern } from '../schema/primitives.ts'
import { hasDotSegments, parametersOf } from '../schema/public-path.ts'
import type { RouteConfig } from '../schema/routes.ts'
import type { Path } from '../schema/node.ts'
import { opsCookie } from '../schema/ops.ts'
import { nameOfCookie } from '../schema/set-cookies.ts'
import type { CheckedConfig, Report } from './report.ts'

type PathsConfig = Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>

export function checkPaths(config: PathsConfig, report: Report): void {
  const taken = new TakenPaths(report)
  checkEndpoints(config, report, taken)
  checkRoutes(config, report, taken)
  checkAliases(config, report, taken)
}

/** The owner of each method of a path. */
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

/** GET brings HEAD, so a clash of GET would be reported twice. */
const withoutHead = (methods: readonly string[]) => methods.filter(method => method !== 'HEAD')

function checkEndpoints({ routes: { endpoints } }: PathsConfig, report: Report, taken: TakenPaths) {
  for (const { section, path, methods } of ownEndpoints(endpoints)) {
    for (const method of withoutHead(methods)) {
      taken.take({ method, path }, `endpoints.${section}`, ['endpoints', section, 'path'])
    }
  }
  for (const [name, { path }] of Object.entries(endpoints)) {
    const place = ['endpoints', name, 'path']
    if (path.endsWith('*')) report('routes', place, 'must not end in *: an endpoint has one path')
  }
}

function checkRoutes(config: PathsConfig, report: Report, taken: TakenPaths): void {
  for (const [name, route] of Object.entries(config.routes.routes)) {
    const place = ['routes', name]
    const { path, methods, access } = route
    if (isEndpoint(name)) {
      report('routes', place, `"${name}" is the name of an endpoint: choose another name`)
    }
    for (const method of methods) taken.take({ method, path }, `routes.${name}`, [...place, 'path'])
    checkNames(path, [...place, 'path'], report)
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

function checkNames(path: string, place: Path, report: Report): void {
  const names = parametersOf(path)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) report('routes', place, `must not contain :${twice} twice`)
}

/** Reports `:name` segments of a rewrite that its public path does not have. */
export function checkParameters(path: string, rewrite: string, place: Path, report: Report): void {
  const names = parametersOf(path)
  for (const name of parametersOf(rewrite)) {
    if (names.includes(name)) continue
    report('routes', place, `the public path has no :${name}.${nearest(name, names)}`)
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
  checkParameters(path, rewrite, place, report)
}

function checkCookies({ gateway, routes }: PathsConfig, name: string, report: Report): void {
  const ownCookies = new Set([gateway.session.cookie.name, knownBrowserCookie, opsCookie])
  for (const key of ['passCookies', 'setCookies'] as const) {
    const cookies = routes.routes[name]?.[key]?.map(each => nameOfCookie(each)) ?? []
    if (!cookies.some(cookie => ownCookies.has(cookie.replace(/^__Host-/, '')))) continue
    report(
      'routes',
      ['routes', name, key],
      'must not list the gateway’s own cookies, of the session and of known browsers'
    )
  }
}

// The schema's pattern for paths. Of an alias, which is a key, the schema checks the slash only.
const publicPath = new RegExp(templatePattern)

function checkAliases({ routes }: PathsConfig, report: Report, taken: TakenPaths): void {
  const methodsOf = aliasTargets(routes)
  for (const [alias, target] of Object.entries(routes.aliases)) {
    const place = ['aliases', alias]
    const methods = methodsOf.get(target)
    if (!publicPath.test(alias) || hasDotSegments(alias)) {
      const message =
        'expected a path such as routes have: :name as a whole segment, * only as /* at the end, ' +
        'no empty or dot segments'
      report('routes', place, message)
    }
    if (methods === undefined) {
      report(
        'routes',
        place,
        `no route or endpoint has the path "${target}".${nearest(target, methodsOf.keys())}`
      )
    } else if (alias.endsWith('*') !== target.endsWith('*')) {
      report('routes', place, 'either both alias and target must end in /*, or neither')
    } else if (parametersOf(alias).toSorted().join() !== parametersOf(target).toSorted().join()) {
      report('routes', place, 'alias and target must have the same :name segments')
    }
    for (const method of methods ?? []) {
      taken.take({ method, path: alias }, `the alias ${alias}`, place)
    }
  }
}

/** The possible targets of an alias: each route's and endpoint's path with its methods. */
function aliasTargets({ endpoints, routes }: PathsConfig['routes']): Map<string, Set<string>> {
  const targets = new Map<string, Set<string>>()
  const endpointPaths = new Set(Object.values(endpoints).map(({ path }) => path))
  const withPath = ownEndpoints(endpoints).filter(({ path }) => endpointPaths.has(path))
  for (const { path, methods } of [...withPath, ...Object.values(routes)]) {
    // A set: two clashing routes share a method, which must not be reported for the alias too.
    targets.set(path, new Set([...(targets.get(path) ?? []), ...withoutHead(methods)]))
  }
  return targets
}

import { nearest } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { oidcPath, oidcPaths } from '../schema/login.ts'
import { endpointNames, ownEndpoints } from '../schema/own-endpoints.ts'
import {
  contains,
  hasParameters,
  nearerFirst,
  overlapOf,
  parametersOf,
  pathsAround
} from '../schema/public-path.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

export function checkPaths({ gateway, routes }: CheckedConfig, report: Report): void {
  const served = servedPaths(routes, gateway)
  checkRoutes(routes, report)
  checkAliases(routes, report)
  checkOwners(served, report)
  checkClashes(served, report)
  checkNearer(routes, report)
}

interface Served {
  readonly path: string
  readonly segments: readonly string[]
  readonly methods: readonly string[]
  readonly owner: string
  readonly where: Path
}

function servedPaths({ endpoints, routes, aliases }: RoutesConfig, { login }: GatewayConfig) {
  const served = [
    ...ownEndpoints(endpoints).map(({ section, path, methods }) => ({
      path,
      // GET brings HEAD, so a clash of GET would be reported twice.
      methods: methods.filter(method => method !== 'HEAD'),
      owner: `endpoints.${section}`,
      where: ['endpoints', section, 'path']
    })),
    ...Object.entries(login.sources).flatMap(([name, source]) =>
      source.kind !== 'oidc'
        ? []
        : Object.entries(oidcPaths).map(([below, methods]) => ({
            path: oidcPath(name, source) + below,
            methods: [...methods],
            owner: `login.sources.${name}`,
            where: ['login', 'sources', name, 'path']
          }))
    ),
    ...Object.entries(routes).map(([name, { path, methods }]) => ({
      path,
      methods,
      owner: `routes.${name}`,
      where: ['routes', name, 'path']
    }))
  ]
  const ofAliases = Object.entries(aliases).map(([path, target]) => ({
    path,
    methods: served.flatMap(each => (each.path === target ? each.methods : [])),
    owner: `the alias ${path}`,
    where: ['aliases', path]
  }))
  return [...served, ...ofAliases].map(each => ({
    ...each,
    // Two clashing routes share a method, which must not be reported for their alias too.
    methods: [...new Set(each.methods)],
    segments: each.path.split('/')
  }))
}

function checkOwners(served: readonly Served[], report: Report): void {
  const owners = new Map<string, Served>()
  for (const each of served) {
    for (const method of each.methods) {
      const request = `${method} ${each.path}`
      const other = owners.get(request)
      if (other === undefined) owners.set(request, each)
      else report(each.where, `${request} is taken by ${other.owner}`, other.where)
    }
  }
}

/** Such as `/users/:id/reset` and `/users/export/*`, unless a third path takes what both take. */
function checkClashes(served: readonly Served[], report: Report): void {
  const templates = served.filter(({ path }) => hasParameters(path))
  const fixed = served.filter(({ path }) => !hasParameters(path))
  for (const [index, template] of templates.entries()) {
    for (const other of [...templates.slice(index + 1), ...fixed]) {
      const overlap = overlapOf(template.segments, other.segments)
      if (overlap === undefined) continue
      const message = clashOf(template.path, other.path, overlap, served)
      if (message !== undefined) report(template.where, message, other.where)
    }
  }
}

function clashOf(path: string, other: string, overlap: string, served: readonly Served[]) {
  const [holdsOther, isHeld] = [contains(path, other), contains(other, path)]
  if (path === other || holdsOther !== isHeld) return undefined
  if (holdsOther) return `is the same path as ${other}: use the same names in both`
  if (served.some(each => contains(each.path, overlap) && contains(overlap, each.path))) return
  return (
    `and ${other} both take ${overlap}, and neither is the nearer path: ` +
    `add a route with the path ${overlap}`
  )
}

/** Of `/api/*` and `/api/a` only the nearer path decides: it refuses methods that it lacks. */
function checkNearer({ routes }: RoutesConfig, report: Report): void {
  const byPath = Map.groupBy(Object.entries(routes), ([, { path }]) => path)
  const templates = [...byPath.keys()].filter(hasParameters)
  for (const [name, { path }] of Object.entries(routes)) {
    const here = new Set(byPath.get(path)?.flatMap(([, { methods }]) => methods as string[]))
    const outer = templates.filter(each => each !== path && contains(each, path))
    const [around] = [...outer, ...pathsAround(path)]
      .toSorted(nearerFirst)
      .flatMap(each => byPath.get(each) ?? [])
    const lost = around?.[1].methods.filter(method => !here.has(method)) ?? []
    if (around === undefined || lost.length === 0) continue
    const message =
      `${lost.join(', ')} ${path} is refused (405), although ${around[0]} takes it for ` +
      `${around[1].path}: only the nearer path decides; name the methods here too`
    report.warn(['routes', name, 'methods'], message)
  }
}

function checkRoutes({ routes }: RoutesConfig, report: Report): void {
  for (const [name, { path, rewrite, access, keys }] of Object.entries(routes)) {
    const fault = report.at('routes', name)
    if (keys && access === 'public') {
      fault(['keys'], 'protects nothing on a public route: set access: session')
    }
    if (endpointNames.has(name)) {
      fault([], `"${name}" is the name of an endpoint: choose another name`)
    }
    const names = parametersOf(path)
    const twice = names.find((each, index) => names.indexOf(each) !== index)
    if (twice !== undefined) fault(['path'], `must not contain :${twice} twice`)
    if (rewrite !== undefined) {
      checkRewrite(path, rewrite, fault.at('rewrite'))
      if (path.endsWith('/*') && !rewrite.endsWith('/*')) {
        fault(['rewrite'], 'must end in /*, as the public path does')
      }
    }
    if (access === 'public' && /\/admin(\/|$)/.test(path)) {
      const message = 'is public, although the path contains /admin: `access: session` is safer'
      fault.warn(['access'], message)
    }
  }
}

export function checkRewrite(path: string, rewrite: string, report: Report): void {
  if (rewrite.endsWith('/*') && !path.endsWith('/*')) {
    report([], 'must not end in /*, since the public path does not')
  }
  const names = parametersOf(path)
  for (const name of parametersOf(rewrite)) {
    if (names.includes(name)) continue
    report([], `the public path has no :${name}.${nearest(name, names)}`)
  }
  for (const name of names) {
    if (!new RegExp(`[^/]:${name}\\b`).test(rewrite)) continue
    report([], `:${name} must be a whole segment`)
  }
}

function checkAliases(routes: RoutesConfig, report: Report): void {
  const named = [...Object.values(routes.endpoints), ...Object.values(routes.routes)]
  const targets = new Set(named.map(({ path }) => path))
  for (const [alias, target] of Object.entries(routes.aliases)) {
    const place = ['aliases', alias]
    if (!targets.has(target)) {
      report(place, `no route or endpoint has the path "${target}".${nearest(target, targets)}`)
    } else if (alias.endsWith('*') !== target.endsWith('*')) {
      report(place, 'either both alias and target must end in /*, or neither')
    } else if (parametersOf(alias).toSorted().join() !== parametersOf(target).toSorted().join()) {
      report(place, 'alias and target must have the same :name segments')
    }
  }
}

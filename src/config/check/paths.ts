import { nearest } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { oidcPath, oidcPaths } from '../schema/login.ts'
import { ownEndpoints } from '../schema/own-endpoints.ts'
import {
  contains,
  hasParameters,
  nearestOf,
  overlapOf,
  variablesOf
} from '../schema/public-path.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

export function checkPaths({ gateway, routes }: CheckedConfig, report: Report): void {
  const served = servedPaths(routes, gateway)
  checkAliases(routes, report)
  checkOwners(served, report)
  checkClashes(served, report)
  checkNearer(routes, report)
}

interface Served {
  readonly path: string
  readonly segments: readonly string[]
  readonly methods: readonly string[]
  readonly where: Path
}

function servedPaths({ endpoints, routes, aliases }: RoutesConfig, { login }: GatewayConfig) {
  const served: Array<Omit<Served, 'segments'>> = [
    ...ownEndpoints(endpoints).map(({ section, ...endpoint }) => ({
      ...endpoint,
      where: ['endpoints', section, 'path']
    })),
    ...Object.entries(login.sources).flatMap(([name, source]) =>
      source.kind !== 'oidc'
        ? []
        : Object.entries(oidcPaths).map(([below, methods]) => ({
            path: oidcPath(name, source) + below,
            methods,
            where: ['login', 'sources', name, 'path']
          }))
    ),
    ...Object.entries(routes).map(([name, { path, methods }]) => ({
      path,
      methods,
      where: ['routes', name, 'path']
    }))
  ]
  const ofAliases = Object.entries(aliases).map(([path, target]) => ({
    path,
    methods: served.flatMap(each => (each.path === target ? each.methods : [])),
    where: ['aliases', path]
  }))
  return [...served, ...ofAliases].map(each => ({ ...each, segments: each.path.split('/') }))
}

function checkOwners(served: readonly Served[], report: Report): void {
  const owners = new Map<string, Path>()
  for (const { path, methods, where } of served) {
    const requests = methods.map(method => `${method} ${path}`)
    const taken = requests.find(request => owners.has(request)) ?? ''
    const owner = owners.get(taken)
    if (owner !== undefined) {
      report(where, `${taken} is taken by ${owner.slice(0, -1).join('.')}`, owner)
    }
    for (const request of requests) owners.set(request, where)
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
  const wide = [...byPath.keys()].filter(path => variablesOf(path).length > 0)
  for (const [path, ofPath] of byPath) {
    const others = wide.filter(each => each !== path)
    const outer = nearestOf(others, path) ?? ''
    const here = new Set(ofPath.flatMap(([, { methods }]) => methods))
    for (const [name, { methods }] of byPath.get(outer) ?? []) {
      const lost = methods.filter(method => !here.has(method)).join(', ')
      if (lost === '') continue
      const message =
        `${lost} ${path} is refused (405), although ${name} takes it for ${outer}: ` +
        'only the nearer path decides; name the methods here too'
      report.warn(['routes', ofPath[0]?.[0] ?? '', 'methods'], message)
    }
  }
}

function checkAliases(routes: RoutesConfig, report: Report): void {
  const named = [...Object.values(routes.endpoints), ...Object.values(routes.routes)]
  const targets = new Set(named.map(({ path }) => path))
  for (const [alias, target] of Object.entries(routes.aliases)) {
    const place = ['aliases', alias]
    if (!targets.has(target)) {
      report(place, `no route or endpoint has the path "${target}".${nearest(target, targets)}`)
    } else if (variablesOf(alias).toSorted().join() !== variablesOf(target).toSorted().join()) {
      report(place, 'alias and target must have the same :name segments, and both /* or neither')
    }
  }
}

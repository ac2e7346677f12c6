/** What stands in config and can never act: limits behind tighter ones, methods behind a nearer path, credentials that nobody has. */
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import { type GatewayConfig, type SourceConfig, sourceName } from '../schema/gateway.ts'
import type { LimitConfig, LimitsConfig } from '../schema/limits.ts'
import { inUnits } from '../schema/primitives.ts'
import { ownEndpoints } from '../schema/own-endpoints.ts'
import { pathsAround, withHead } from '../schema/public-path.ts'
import { credentialOf, type RoutesConfig } from '../schema/routes.ts'

interface Checked {
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
  readonly limits: LimitsConfig
}

export function checkReach(config: Checked, report: Report): void {
  for (const rule of [
    checkTighter,
    checkMethods,
    checkInFlight,
    checkNearerPaths,
    checkCredentials,
    checkUnusedTokens
  ]) {
    rule(config, report)
  }
}

const isOfSignIn = (limit: LimitConfig) => limit.refusedOnly || limit.by.includes('account')

/** A limit whose callers are stopped by another one before they get there. Two that differ in nothing but their numbers are told elsewhere. */
function checkTighter({ limits: { limits } }: Checked, report: Report): void {
  const counting = Object.entries(limits).filter(
    ([, limit]) => limit.mode !== 'off' && !isOfSignIn(limit)
  )
  for (const [name, limit] of counting) {
    const tighter = counting.find(
      ([other, its]) =>
        other !== name &&
        its.mode === 'enforce' &&
        !haveSameScope(its, limit) &&
        countsAll(its, limit) &&
        maxIn(its, limit.window) <= (limit.burst ?? limit.max)
    )
    if (tighter !== undefined) {
      report(
        'limits',
        ['limits', name, 'max'],
        `can never be reached: ${tighter[0]} lets the same callers have at most ${maxIn(tighter[1], limit.window)} in ${inUnits('x-duration', limit.window)}; lower it, or leave it out`,
        'warning'
      )
    }
  }
}

function haveSameScope(a: LimitConfig, b: LimitConfig) {
  return countsAll(a, b) && countsAll(b, a)
}

/** Whether whatever `one` counts under one key, `all` counts under one key too. */
function countsAll(all: LimitConfig, one: LimitConfig): boolean {
  const holds = (wide: readonly string[], narrow: readonly string[]) =>
    wide.length === 0 || (narrow.length > 0 && narrow.every(each => wide.includes(each)))
  const isOfAddress = (limit: LimitConfig) => limit.by.every(whom => whom === 'address')
  // Who is signed in is always a user, too.
  const keys = new Set<string>([...one.by, 'user'])
  const whom =
    isOfAddress(all) || isOfAddress(one)
      ? isOfAddress(all) && isOfAddress(one)
      : all.by.every(each => keys.has(each))
  return (
    whom &&
    holds(all.routes, one.routes) &&
    holds(all.methods, one.methods) &&
    holds(all.roles, one.roles)
  )
}

/** How many a limit lets pass in any stretch of time that is as long. */
function maxIn({ kind, burst, max, window }: LimitConfig, stretchMs: number): number {
  if (burst !== undefined) return burst + Math.floor((stretchMs / window) * max)
  const windows = Math.ceil(stretchMs / window)
  // A fixed one may begin anew in the middle of the stretch.
  return max * (kind === 'fixed' ? windows + 1 : windows)
}

function checkMethods({ routes, limits: { limits } }: Checked, report: Report): void {
  const own = Map.groupBy(ownEndpoints(routes.endpoints), ({ name }) => name)
  const methodsOf = (route: string) =>
    own.get(route)?.flatMap(({ methods }) => methods) ??
    (routes.routes[route] && withHead(routes.routes[route].methods))
  for (const [name, limit] of Object.entries(limits)) {
    const taken = limit.routes.map(methodsOf)
    if (limit.methods.length === 0 || taken.length === 0 || taken.includes(undefined)) continue
    if (!limit.methods.some(method => taken.some(methods => methods?.includes(method)))) {
      report(
        'limits',
        ['limits', name, 'methods'],
        `never applies: ${limit.routes.join(', ')} ${limit.routes.length > 1 ? 'take' : 'takes'} ${[...new Set(taken.flatMap(methods => methods ?? []))].join(', ')}`,
        'warning'
      )
    }
  }
}

function checkInFlight(
  { routes: { routes, upstreams }, limits: { inFlightPerRoute } }: Checked,
  report: Report
): void {
  for (const [route, max] of Object.entries(inFlightPerRoute)) {
    const name = routes[route]?.upstream
    const upstream = name === undefined ? undefined : upstreams[name]
    if (upstream !== undefined && max > upstream.connections + upstream.queue) {
      report(
        'limits',
        ['inFlightPerRoute', route],
        `can never be reached: the upstream ${name ?? ''} takes ${upstream.connections} at once and lets ${upstream.queue} wait (connections, queue)`,
        'warning'
      )
    }
  }
}

/** Of `/api/*` and `/api/a` the nearer path decides alone, with methods that it does not take too. */
function checkNearerPaths({ routes: { routes } }: Checked, report: Report): void {
  const byPath = Map.groupBy(Object.entries(routes), ([, { path }]) => path)
  for (const [name, { path }] of Object.entries(routes)) {
    const here = new Set(byPath.get(path)?.flatMap(([, { methods }]) => methods as string[]))
    const [around] = pathsAround(path).flatMap(each => byPath.get(each) ?? [])
    const lost = around?.[1].methods.filter(method => !here.has(method)) ?? []
    if (around !== undefined && lost.length > 0) {
      report(
        'routes',
        ['routes', name, 'methods'],
        `${lost.join(', ')} ${path} is refused (405), although ${around[0]} takes it for ${around[1].path}: the nearer path decides alone; name the methods here too`,
        'warning'
      )
    }
  }
}

/** A token that no upstream gets is one that the operator believes to be sent. */
function checkUnusedTokens(
  { gateway: { login }, routes: { upstreams } }: Checked,
  report: Report
): void {
  const credentials = Object.values(upstreams).map(({ credential }) => credentialOf(credential))
  // Without `from` the one source that gives such a credential is meant.
  const sends = (name: string, what: 'cookie' | 'token') =>
    credentials.some(({ as, from }) => {
      const sent = as === 'cookies' ? 'cookie' : 'token'
      return as !== 'none' && sent === what && (from === undefined || from === name)
    })
  login.sources.forEach((source, index) => {
    if (source.kind !== 'upstream-login') return
    const warn = (key: string, what: string) => {
      const message = `no upstream has a \`credential\` that sends ${what}: no back-end ever gets it`
      report('gateway', ['login', 'sources', index, key], message, 'warning')
    }
    if (source.token !== undefined && !sends(sourceName(source), 'token')) {
      warn('token', 'the token')
    }
    if (source.cookies.length > 0 && !sends(sourceName(source), 'cookie')) {
      warn('cookies', 'cookies')
    }
  })
}

function checkCredentials({ gateway, routes: { upstreams } }: Checked, report: Report): void {
  const { sources } = gateway.login
  for (const [name, upstream] of Object.entries(upstreams)) {
    const { as, from } = credentialOf(upstream.credential)
    if (as === 'none') continue
    const where = ['upstreams', name, 'credential']
    const what = as === 'cookies' ? 'cookie' : 'token'
    const giving = sources.filter(source => gives(source, what)).map(sourceName)
    if (giving.length === 0 && from === undefined) {
      const message = `no source of login.sources gives a ${what}: none is ever sent`
      report('routes', where, message, 'warning')
    }
    if (from === undefined && giving.length > 1) {
      const example = `{ from: ${giving[0] ?? ''}, as: ${as} }`
      const several = `${giving.join(' and ')} each give a ${what}`
      report('routes', where, `${several}: say whose goes to this upstream, such as ${example}`)
    }
    if (from === undefined || giving.includes(from)) continue
    const isKnown = sources.map(sourceName).includes(from)
    const problem = isKnown
      ? `the source "${from}" gives no ${what}`
      : `there is no credential source "${from}"`
    report('routes', [...where, 'from'], `${problem}.${nearest(from, giving)}`)
  }
}

function gives(source: SourceConfig, what: 'cookie' | 'token'): boolean {
  if (source.kind !== 'upstream-login') return false
  return what === 'cookie' ? source.cookies.length > 0 : source.token !== undefined
}

/** Warnings of config without effect: limits behind tighter ones, unreachable methods, tokens. */
import type { CheckedConfig, Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import { type SourceConfig, sourceName } from '../schema/gateway.ts'
import type { LimitConfig } from '../schema/limits.ts'
import { inUnits } from '../schema/primitives.ts'
import { ownEndpoints } from '../schema/own-endpoints.ts'
import {
  contains,
  hasParameters,
  nearerFirst,
  pathsAround,
  withHead
} from '../schema/public-path.ts'
import { credentialOf } from '../schema/routes.ts'
import { ownMember } from '../schema/visit.ts'

type Reachable = Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>

export function checkReach(config: Reachable, report: Report): void {
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

/**
 * Warns of a limit whose callers always reach another one first. checkLimits reports pairs that
 * differ in their numbers only.
 */
function checkTighter({ limits: { limits } }: Reachable, report: Report): void {
  const counting = Object.entries(limits).filter(([, { mode }]) => mode !== 'off')
  for (const [name, limit] of counting) {
    const tighter = counting.find(
      ([otherName, other]) =>
        otherName !== name &&
        other.mode === 'enforce' &&
        !haveSameScope(other, limit) &&
        countsAll(other, limit) &&
        maxIn(other, limit.window) <= (limit.burst ?? limit.max)
    )
    if (tighter === undefined) continue
    const [tighterName, tighterLimit] = tighter
    const window = inUnits('x-duration', limit.window)
    const message =
      `can never be reached: ${tighterName} lets the same callers have at most ` +
      `${maxIn(tighterLimit, limit.window)} in ${window}; lower it, or leave it out`
    report('limits', ['limits', name, 'max'], message, 'warning')
  }
}

function haveSameScope(a: LimitConfig, b: LimitConfig) {
  return countsAll(a, b) && countsAll(b, a)
}

/** Whether all requests that `inner` counts under one key share one key of `outer` too. */
function countsAll(outer: LimitConfig, inner: LimitConfig): boolean {
  const holds = (wide: readonly string[], narrow: readonly string[]) =>
    wide.length === 0 || (narrow.length > 0 && narrow.every(each => wide.includes(each)))
  const isOfAddress = (limit: LimitConfig) => limit.by.every(whom => whom === 'address')
  // A session always has a user.
  const keys = new Set<string>([...inner.by, 'user'])
  const shareKey =
    isOfAddress(outer) || isOfAddress(inner)
      ? isOfAddress(outer) && isOfAddress(inner)
      : outer.by.every(each => keys.has(each))
  return (
    shareKey &&
    holds(outer.routes, inner.routes) &&
    holds(outer.methods, inner.methods) &&
    holds(outer.roles, inner.roles)
  )
}

/** The maximum that a limit lets pass in any `durationMs`. */
function maxIn({ max, burst = max, window }: LimitConfig, durationMs: number): number {
  return burst + Math.floor((durationMs / window) * max)
}

function checkMethods({ routes, limits: { limits } }: Reachable, report: Report): void {
  const endpointsOf = Map.groupBy(ownEndpoints(routes.endpoints), ({ name }) => name)
  const methodsOf = (name: string) => {
    const route = ownMember(routes.routes, name)
    return (
      endpointsOf.get(name)?.flatMap(({ methods }) => methods) ?? (route && withHead(route.methods))
    )
  }
  for (const [name, limit] of Object.entries(limits)) {
    const taken = limit.routes.map(methodsOf)
    if (limit.methods.length === 0 || taken.length === 0 || taken.includes(undefined)) continue
    const all = new Set<string>(taken.flatMap(methods => methods ?? []))
    if (limit.methods.some(method => all.has(method))) continue
    const verb = limit.routes.length > 1 ? 'take' : 'takes'
    const message = `never applies: ${limit.routes.join(', ')} ${verb} ${[...all].join(', ')}`
    report('limits', ['limits', name, 'methods'], message, 'warning')
  }
}

function checkInFlight(
  { routes: { routes, upstreams }, limits: { inFlightPerRoute } }: Reachable,
  report: Report
): void {
  for (const [route, max] of Object.entries(inFlightPerRoute)) {
    const name = ownMember(routes, route)?.upstream
    const upstream = name === undefined ? undefined : ownMember(upstreams, name)
    if (upstream !== undefined && max > upstream.connections + upstream.queue) {
      report(
        'limits',
        ['inFlightPerRoute', route],
        `can never be reached: the upstream ${name ?? ''} takes ${upstream.connections} at once ` +
          `and lets ${upstream.queue} wait (connections, queue)`,
        'warning'
      )
    }
  }
}

/** Of `/api/*` and `/api/a` only the nearer path decides: it refuses methods that it lacks. */
function checkNearerPaths({ routes: { routes } }: Reachable, report: Report): void {
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
    report('routes', ['routes', name, 'methods'], message, 'warning')
  }
}

/** Warns of tokens that no upstream gets: the operator expects them to be sent. */
function checkUnusedTokens(
  { gateway: { login }, routes: { upstreams } }: Reachable,
  report: Report
): void {
  const credentials = Object.values(upstreams).map(({ credential }) => credentialOf(credential))
  // Without `from`, the only source with such a credential is meant.
  const sends = (name: string, what: 'cookie' | 'token') =>
    credentials.some(({ as, from }) => {
      const sent = as === 'cookies' ? 'cookie' : 'token'
      return as !== 'none' && sent === what && (from === undefined || from === name)
    })
  login.sources.forEach((source, index) => {
    if (source.kind !== 'upstream-login') return
    const warn = (key: string, what: string) => {
      const message = `no upstream has a \`credential\` that sends ${what}, so no back-end gets it`
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

function checkCredentials({ gateway, routes: { upstreams } }: Reachable, report: Report): void {
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
      report('routes', where, `${several}: name the source for this upstream, such as ${example}`)
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

/** Methods that a nearer path refuses, and credentials that no source gives. */
import type { CheckedConfig, Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { contains, hasParameters, nearerFirst, pathsAround } from '../schema/public-path.ts'
import { credentialOf } from '../schema/routes.ts'

type Reachable = Pick<CheckedConfig, 'gateway' | 'routes'>

export function checkReach(config: Reachable, report: Report): void {
  checkNearerPaths(config, report)
  checkCredentials(config, report)
  checkUnusedTokens(config, report)
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
  for (const [name, source] of Object.entries(login.sources)) {
    if (source.kind !== 'upstream-login') continue
    const warn = (key: string, what: string) => {
      const message = `no upstream has a \`credential\` that sends ${what}, so no back-end gets it`
      report('gateway', ['login', 'sources', name, key], message, 'warning')
    }
    if (source.token !== undefined && !sends(name, 'token')) warn('token', 'the token')
    if (source.cookies.length > 0 && !sends(name, 'cookie')) warn('cookies', 'cookies')
  }
}

function checkCredentials({ gateway, routes: { upstreams } }: Reachable, report: Report): void {
  const { sources } = gateway.login
  for (const [name, upstream] of Object.entries(upstreams)) {
    const { as, from } = credentialOf(upstream.credential)
    if (as === 'none') continue
    const where = ['upstreams', name, 'credential']
    const what = as === 'cookies' ? 'cookie' : 'token'
    const giving = Object.keys(sources).filter(source => gives(sources[source], what))
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
    const isKnown = Object.hasOwn(sources, from)
    const problem = isKnown
      ? `the source "${from}" gives no ${what}`
      : `there is no credential source "${from}"`
    report('routes', [...where, 'from'], `${problem}.${nearest(from, giving)}`)
  }
}

function gives(source: SourceConfig | undefined, what: 'cookie' | 'token'): boolean {
  if (source?.kind !== 'upstream-login') return false
  return what === 'cookie' ? source.cookies.length > 0 : source.token !== undefined
}

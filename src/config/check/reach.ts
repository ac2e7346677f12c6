/** Methods that a nearer path refuses, and credentials that no source gives. */
import type { CheckedConfig, Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import { type SourceConfig, sourceName } from '../schema/gateway.ts'
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
    report(['routes', name, 'methods'], message, { warning: true })
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
      report(['login', 'sources', index, key], message, { warning: true })
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
      report(where, message, { warning: true })
    }
    if (from === undefined && giving.length > 1) {
      const example = `{ from: ${giving[0] ?? ''}, as: ${as} }`
      const several = `${giving.join(' and ')} each give a ${what}`
      report(where, `${several}: name the source for this upstream, such as ${example}`)
    }
    if (from === undefined || giving.includes(from)) continue
    const isKnown = sources.map(sourceName).includes(from)
    const problem = isKnown
      ? `the source "${from}" gives no ${what}`
      : `there is no credential source "${from}"`
    report([...where, 'from'], `${problem}.${nearest(from, giving)}`)
  }
}

function gives(source: SourceConfig, what: 'cookie' | 'token'): boolean {
  if (source.kind !== 'upstream-login') return false
  return what === 'cookie' ? source.cookies.length > 0 : source.token !== undefined
}

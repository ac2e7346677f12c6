/** Rules for the tokens and cookies of back-ends: who gives one, which upstream gets it. */
import type { SourceConfig } from '../schema/gateway.ts'
import { credentialOf } from '../schema/routes.ts'
import { plainCookies } from '../schema/set-cookies.ts'
import type { CheckedConfig, Report } from './report.ts'

type CredentialsConfig = Pick<CheckedConfig, 'gateway' | 'routes'>

export function checkCredentials(config: CredentialsConfig, report: Report): void {
  checkUpstreams(config, report)
  checkUnused(config, report)
  checkShown(config, report)
}

const whatOf = (as: string) => (as === 'cookies' ? 'cookie' : 'token')

function gives(source: SourceConfig | undefined, what: 'cookie' | 'token'): boolean {
  if (source?.kind !== 'upstream-login') return false
  return what === 'cookie' ? source.cookies.length > 0 : source.token !== undefined
}

function checkUpstreams({ gateway, routes }: CredentialsConfig, report: Report): void {
  const { sources } = gateway.login
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const { as, from, scheme } = credentialOf(upstream.credential)
    const place = ['upstreams', name, 'credential']
    if (as === 'none') continue
    if (as === 'cookies' && scheme !== undefined) {
      report([...place, 'scheme'], 'cookies have no scheme: leave it out')
    }
    const what = whatOf(as)
    const giving = Object.keys(sources).filter(source => gives(sources[source], what))
    const isKnown = from !== undefined && Object.hasOwn(sources, from)
    if (isKnown && !giving.includes(from)) {
      report([...place, 'from'], `the source "${from}" gives no ${what}`)
    }
    if (from !== undefined) continue
    if (giving.length === 0) {
      const message = `no source of login.sources gives a ${what}: none is ever sent`
      report(place, message, { warning: true })
    } else if (giving.length > 1) {
      const example = `{ from: ${giving[0]}, as: ${as} }`
      const several = `${giving.join(' and ')} each give a ${what}`
      report(place, `${several}: name the source for this upstream, such as ${example}`)
    }
  }
}

/** Warns of tokens that no upstream gets: the operator expects them to be sent. */
function checkUnused({ gateway, routes }: CredentialsConfig, report: Report): void {
  const credentials = Object.values(routes.upstreams)
    .map(({ credential }) => credentialOf(credential))
    .filter(({ as }) => as !== 'none')
  for (const [name, source] of Object.entries(gateway.login.sources)) {
    for (const what of ['token', 'cookie'] as const) {
      // Without `from`, the only source with such a credential is meant.
      const isSent = credentials.some(({ as, from = name }) => whatOf(as) === what && from === name)
      if (isSent || !gives(source, what)) continue
      const [key, sent] = what === 'token' ? ['token', 'the token'] : ['cookies', 'cookies']
      const message = `no upstream has a \`credential\` that sends ${sent}, so no back-end gets it`
      report(['login', 'sources', name, key], message, { warning: true })
    }
  }
}

/** The gateway keeps the back-end's session itself: no browser needs its cookie. */
function checkShown({ gateway, routes }: CredentialsConfig, report: Report): void {
  for (const [name, { upstream, setCookies = [] }] of Object.entries(routes.routes)) {
    for (const source of Object.values(gateway.login.sources)) {
      if (source.kind !== 'upstream-login' || source.upstream !== upstream) continue
      const shown = plainCookies(setCookies).find(cookie => source.cookies.includes(cookie))
      if (shown === undefined) continue
      const message =
        `"${shown}" is in \`cookies\` of the sign-in: the browser would hold the back-end’s ` +
        'session. Remove it, or set `sealed: true`'
      const place = ['routes', name, 'setCookies', setCookies.indexOf(shown)]
      report(place, message, { warning: true })
    }
  }
}

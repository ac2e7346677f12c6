import { userNames } from '../schema/answer.ts'
import type { CheckedConfig, Report, Rule } from '../schema/config.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { credentialOf, type UpstreamConfig } from '../schema/routes.ts'
import { type CsrfConfig, type JwtConfig, urlsOf } from '../schema/upstreams.ts'
import { checkTemplate } from './answers.ts'
import { gives, sentBy } from './sources.ts'
import { privateKeyOf } from './tls.ts'

export const checkUpstreams: Rule = (config, report, warn) => {
  const { paging } = config.routes
  for (const [name, upstream] of Object.entries(config.routes.upstreams)) {
    const place = ['upstreams', name]
    checkAddresses(urlsOf(upstream), [...place, 'url'], report)
    checkPlaceholders(upstream, [...place, 'headers'], report)
    checkCredential(config, name, report, warn)
    // Each half of paging is checked by itself: the other one may come from a preset.
    const { page, offset } = upstream.paging ?? {}
    if (upstream.paging !== undefined && (page === undefined) === (offset === undefined)) {
      report([...place, 'paging'], 'needs one of page and offset')
    }
    if (offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      report(['paging'], `needs \`defaultSize\`, since the upstream "${name}" takes an offset`)
    }
  }
}

/** A placeholder that is none would be sent as it is written. */
function checkPlaceholders({ headers = {} }: UpstreamConfig, place: Path, report: Report): void {
  for (const [header, value] of Object.entries(headers)) {
    if (!/\{\s*\w+[^}]*\}/.test(value) || /^\{profile\.[\w.-]+\}$/.test(value)) continue
    report([...place, header], 'expected {profile.PATH} alone, or a text without placeholders')
  }
}

/** Requests may go to any of them: by the same protocol, with the same path before theirs. */
function checkAddresses(addresses: readonly string[], place: Path, report: Report): void {
  const [first, ...others] = addresses.map(address => new URL(address))
  if (first === undefined) return report(place, 'is missing: name the back-end’s address')
  const { protocol, pathname } = first
  const seen = new Set([first.origin])
  for (const [index, other] of others.entries()) {
    if (other.protocol !== protocol || other.pathname !== pathname) {
      const message = `must begin with ${protocol}// and have the path "${pathname}", as the first`
      report([...place, index + 1], message)
    }
    if (seen.has(other.origin)) report([...place, index + 1], `${other.origin} stands there twice`)
    seen.add(other.origin)
  }
}

function checkCredential(
  { gateway, routes }: CheckedConfig,
  name: string,
  report: Report,
  warn: Report
): void {
  const { sources } = gateway.login
  const credential = credentialOf(routes.upstreams[name]?.credential ?? 'none')
  const { as, from, exchange, jwt, csrf } = credential
  const place = ['upstreams', name, 'credential']
  const what = sentBy(credential)
  const giving = Object.keys(sources).filter(each => what && gives(sources[each], what))
  if (exchange !== undefined) {
    checkTemplate(exchange.body, [...place, 'exchange', 'body'], userNames, report)
  }
  if (jwt !== undefined) checkJwt(jwt, [...place, 'jwt'], report)
  if (jwt?.keys !== undefined && routes.endpoints.jwks === undefined) {
    const message = 'no `endpoints.jwks` shows the public keys, which the back-end needs'
    warn([...place, 'jwt', 'keys'], message)
  }
  const isApart = from !== undefined || (jwt !== undefined && gateway.identity.prefix)
  if (credential.hasOwnToken && !isApart && Object.keys(sources).length > 1) {
    const message =
      'two credential sources may give two people the same name or id, and this upstream takes ' +
      'them for one: name the source of its users, such as `from: SOURCE`'
    warn(place, message)
  }
  if (what === undefined) return
  if (csrf !== undefined) {
    const sent = Object.entries(sources).filter(([each]) => giving.includes(each))
    checkCsrf(csrf, sent, message => report([...place, 'csrf'], message))
  }
  if (from !== undefined) {
    if (!Object.hasOwn(sources, from) || giving.includes(from)) return
    report([...place, 'from'], `the source "${from}" gives no ${what}`)
  } else if (giving.length === 0) {
    warn(place, `no source of login.sources gives a ${what}: none is ever sent`)
  } else if (giving.length > 1) {
    const example = `{ from: ${giving[0]}, as: ${as} }`
    const several = `${giving.join(' and ')} each give a ${what}`
    report(place, `${several}: name the source for this upstream, such as ${example}`)
  }
}

function checkCsrf(
  { cookie }: CsrfConfig,
  sources: ReadonlyArray<readonly [string, SourceConfig]>,
  report: (message: string) => void
): void {
  for (const [name, source] of sources) {
    if (source.kind !== 'upstream-login') continue
    if (cookie === undefined && source.token === undefined) {
      report(`the source "${name}" has no \`token\``)
    } else if (cookie !== undefined && !source.cookies.includes(cookie)) {
      report(`"${cookie}" is not among \`cookies\` of the source "${name}"`)
    }
  }
}

function checkJwt({ secret, keys = [], claims }: JwtConfig, place: Path, report: Report): void {
  if ((secret === undefined) === (keys.length === 0)) {
    report(place, 'needs either `secret` (HS256) or `keys` (ES256)')
  }
  keys.forEach((pem, index) => {
    if (privateKeyOf(pem)?.asymmetricKeyDetails?.namedCurve === 'prime256v1') return
    const message = 'is no private key of the curve P-256: expected PEM without a password'
    report([...place, 'keys', index], message)
  })
  for (const name of ['iat', 'exp', 'nbf', 'jti'].filter(each => Object.hasOwn(claims, each))) {
    report([...place, 'claims', name], 'is set by the gateway itself: remove it')
  }
  checkTemplate(claims, [...place, 'claims'], userNames, report)
}

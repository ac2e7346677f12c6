import { userNames } from '../schema/answer.ts'
import type { CheckedConfig, Report, Rule } from '../schema/config.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { privateKeyIn } from '../schema/pem.ts'
import { credentialOf, type UpstreamConfig } from '../schema/routes.ts'
import type { CredentialConfig, CsrfConfig, JwtConfig } from '../schema/upstreams.ts'
import { checkTemplate } from './answers.ts'
import { gives, sentBy } from './sources.ts'
import { checkPair } from './tls.ts'

export const checkUpstreams: Rule = (config, report) => {
  const { paging } = config.routes
  for (const [name, upstream] of Object.entries(config.routes.upstreams)) {
    const ofUpstream = report.at('upstreams', name)
    checkAddresses(upstream.url ?? [], ofUpstream.at('url'))
    checkTlsOf(upstream, ofUpstream.at('tls'))
    checkCredential(config, upstream.credential, ofUpstream.at('credential'))
    // Each half of paging is checked by itself: the other one may come from a preset.
    const { page, offset } = upstream.paging ?? {}
    if (upstream.paging !== undefined && (page === undefined) === (offset === undefined)) {
      ofUpstream(['paging'], 'needs one of page and offset')
    }
    if (offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      report(['paging'], `needs \`defaultSize\`, since the upstream "${name}" takes an offset`)
    }
  }
}

/** Requests may go to any of them. */
function checkAddresses(addresses: readonly string[], report: Report): void {
  const [first, ...others] = addresses.map(address => new URL(address))
  if (first === undefined) return report([], 'is missing: name the back-end’s address')
  const { protocol, pathname } = first
  for (const [index, other] of others.entries()) {
    if (other.protocol === protocol && other.pathname === pathname) continue
    const message = `must begin with ${protocol}// and have the path "${pathname}", as the first`
    report([index + 1], message)
  }
}

function checkTlsOf(upstream: UpstreamConfig, report: Report): void {
  const { tls } = upstream
  if (tls === undefined) return
  if (upstream.url?.some(each => each.startsWith('http:'))) {
    report([], 'has no effect: the address begins with http://, not https://')
  }
  const { certificate, key } = tls
  if (certificate !== undefined && key !== undefined) checkPair({ certificate, key }, report)
  else if (certificate !== key) report([], '`certificate` and `key` need each other')
}

function checkCredential(
  { gateway }: CheckedConfig,
  written: CredentialConfig,
  report: Report
): void {
  const { sources } = gateway.login
  const credential = credentialOf(written)
  const { as, from, exchange, jwt, csrf } = credential
  const [what] = sentBy(credential)
  const giving = Object.keys(sources).filter(each => what && gives(sources[each], what))
  if (exchange !== undefined && jwt !== undefined) {
    report([], 'takes either `exchange` or `jwt`')
  }
  if (credential.hasOwnToken && (as === 'cookies' || csrf !== undefined)) {
    report([], 'a token by `exchange` or `jwt` is no cookie, and takes no `csrf`')
  }
  if (exchange !== undefined) {
    checkTemplate(exchange.body, userNames, report.at('exchange', 'body'))
  }
  if (jwt !== undefined) checkJwt(jwt, report.at('jwt'))
  const isApart = from !== undefined || (jwt !== undefined && gateway.identity.prefix)
  if (credential.hasOwnToken && !isApart && Object.keys(sources).length > 1) {
    const message = 'two sources may give two people one id: name that of its users, by `from`'
    report.warn([], message)
  }
  if (what === undefined) return
  if (csrf !== undefined && as !== 'cookies') {
    report(['csrf'], 'goes beside cookies alone: it needs `as: cookies`')
  }
  for (const name of giving) {
    const lack = lackOf(sources[name], csrf)
    if (lack !== undefined) report(['csrf'], `the source "${name}" has no ${lack}`)
  }
  if (from !== undefined) {
    if (!Object.hasOwn(sources, from) || giving.includes(from)) return
    report(['from'], `the source "${from}" gives no ${what}`)
  } else if (giving.length === 0) {
    report.warn([], `no source of login.sources gives a ${what}: none is ever sent`)
  } else if (giving.length > 1) {
    report([], `${giving.join(' and ')} each give a ${what}: name the source, as \`from: SOURCE\``)
  }
}

function lackOf(source: SourceConfig | undefined, csrf: CsrfConfig | undefined) {
  if (source?.kind !== 'upstream-login' || csrf === undefined) return undefined
  const { cookie } = csrf
  if (cookie === undefined) return gives(source, 'token') ? undefined : '`token`'
  return source.cookies.includes(cookie) ? undefined : `"${cookie}" among its \`cookies\``
}

function checkJwt({ secret, keys = [], claims }: JwtConfig, report: Report): void {
  if ((secret === undefined) === (keys.length === 0)) {
    report([], 'needs either `secret` (HS256) or `keys` (ES256)')
  }
  keys.forEach((pem, index) => {
    if (privateKeyIn(pem)?.asymmetricKeyDetails?.namedCurve === 'prime256v1') return
    report(['keys', index], 'is no private key of the curve P-256: expected PEM without a password')
  })
  for (const name of ['iat', 'exp', 'nbf', 'jti'].filter(each => Object.hasOwn(claims, each))) {
    report(['claims', name], 'is set by the gateway itself: remove it')
  }
  checkTemplate(claims, userNames, report.at('claims'))
}

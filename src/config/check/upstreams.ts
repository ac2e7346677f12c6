import { userNames } from '../schema/answer.ts'
import type { CheckedConfig, Report, Rule } from '../schema/config.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { privateKeyIn } from '../schema/pem.ts'
import { credentialOf } from '../schema/routes.ts'
import type { CredentialConfig, CsrfConfig, JwtConfig } from '../schema/upstreams.ts'
import { checkTemplate } from './answers.ts'
import { gives, sentBy } from './sources.ts'

export const checkUpstreams: Rule = (config, report) => {
  const { paging } = config.routes
  for (const [name, upstream] of Object.entries(config.routes.upstreams)) {
    const ofUpstream = report.at('upstreams', name)
    checkAddresses(upstream.url ?? [], ofUpstream.at('url'))
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
  const seen = new Set([first.origin])
  for (const [index, other] of others.entries()) {
    if (other.protocol !== protocol || other.pathname !== pathname) {
      const message = `must begin with ${protocol}// and have the path "${pathname}", as the first`
      report([index + 1], message)
    }
    if (seen.has(other.origin)) report([index + 1], `${other.origin} stands there twice`)
    seen.add(other.origin)
  }
}

function checkCredential(
  { gateway, routes }: CheckedConfig,
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
  if (jwt?.keys !== undefined && routes.endpoints.jwks === undefined) {
    report.warn(
      ['jwt', 'keys'],
      'no `endpoints.jwks` shows the public keys, which the back-end needs'
    )
  }
  const isApart = from !== undefined || (jwt !== undefined && gateway.identity.prefix)
  if (credential.hasOwnToken && !isApart && Object.keys(sources).length > 1) {
    const message =
      'two credential sources may give two people the same name or id, and this upstream takes ' +
      'them for one: name the source of its users, such as `from: SOURCE`'
    report.warn([], message)
  }
  if (what === undefined) return
  if (csrf !== undefined && as !== 'cookies') {
    report(['csrf'], 'goes beside cookies alone: it needs `as: cookies`')
  } else if (csrf !== undefined) {
    const sent = Object.entries(sources).filter(([each]) => giving.includes(each))
    checkCsrf(csrf, sent, message => report(['csrf'], message))
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

import { userNames } from '../schema/answer.ts'
import type { Path } from '../schema/node.ts'
import { credentialOf, type UpstreamConfig } from '../schema/routes.ts'
import { urlsOf, type JwtConfig } from '../schema/upstreams.ts'
import { checkTemplate } from './answers.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'
import { privateKeyOf } from './tls.ts'

type ReportKeys = (keys: Path, message: string) => void

export function checkUpstreams({ routes }: CheckedConfig, report: Report): void {
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const reportKeys: ReportKeys = (keys, message) => report(['upstreams', name, ...keys], message)
    checkAddresses(urlsOf(upstream), reportKeys)
    checkPlaceholders(upstream, reportKeys)
    // Each half of paging is checked by itself: the other one may come from a preset.
    const { page, offset } = upstream.paging ?? {}
    if (upstream.paging !== undefined && (page === undefined) === (offset === undefined)) {
      reportKeys(['paging'], 'needs one of page and offset')
    }
    if (offset !== undefined && routes.paging && routes.paging.defaultSize === undefined) {
      report(['paging'], `needs \`defaultSize\`, since the upstream "${name}" takes an offset`)
    }
  }
}

/** A placeholder that is none would be sent as it is written. */
function checkPlaceholders({ headers = {} }: UpstreamConfig, report: ReportKeys): void {
  for (const [header, value] of Object.entries(headers)) {
    if (!/\{\s*\w+[^}]*\}/.test(value) || /^\{profile\.[\w.-]+\}$/.test(value)) continue
    report(['headers', header], 'expected {profile.PATH} alone, or a text without placeholders')
  }
}

/** Requests may go to any of them: by the same protocol, with the same path before theirs. */
function checkAddresses(addresses: readonly string[], report: ReportKeys): void {
  const [first, ...others] = addresses.map(address => new URL(address))
  if (first === undefined) return report(['url'], 'is missing: name the back-end’s address')
  const seen = new Set([first.origin])
  for (const [index, { origin, protocol, pathname }] of others.entries()) {
    const keys = ['url', index + 1]
    if (protocol !== first.protocol || pathname !== first.pathname) {
      const { protocol: scheme, pathname: path } = first
      report(keys, `must begin with ${scheme}// and have the path "${path}", as the first does`)
    }
    if (seen.has(origin)) report(keys, `${origin} stands there twice`)
    seen.add(origin)
  }
}

const reserved = ['iat', 'exp', 'nbf', 'jti']

export function checkBackEndTokens({ gateway, routes }: CheckedConfig, report: Report): void {
  const hasSeveralSources = Object.keys(gateway.login.sources).length > 1
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const { from, exchange, jwt } = credentialOf(upstream.credential)
    const place = ['upstreams', name, 'credential']
    if (exchange !== undefined) {
      checkTemplate(exchange.body, [...place, 'exchange', 'body'], userNames, report)
    }
    if (jwt !== undefined) {
      checkJwt(jwt, [...place, 'jwt'], report)
      if (jwt.keys !== undefined && routes.endpoints.jwks === undefined) {
        const message = 'no `endpoints.jwks` shows the public keys, which the back-end needs'
        report([...place, 'jwt', 'keys'], message, { warning: true })
      }
    }
    const isApart = from !== undefined || (jwt !== undefined && gateway.identity.prefix)
    if ((exchange ?? jwt) === undefined || !hasSeveralSources || isApart) continue
    const message =
      'two credential sources may give two people the same name or id, and this upstream takes ' +
      'them for one: name the source of its users, such as `from: SOURCE`'
    report(place, message, { warning: true })
  }
}

function checkJwt({ secret, keys, claims }: JwtConfig, place: Path, report: Report): void {
  if ((secret === undefined) === (keys === undefined)) {
    report(place, 'needs either `secret` (HS256) or `keys` (ES256)')
  }
  for (const [index, pem] of (keys ?? []).entries()) {
    if (privateKeyOf(pem)?.asymmetricKeyDetails?.namedCurve === 'prime256v1') continue
    const message = 'is no private key of the curve P-256: expected PEM without a password'
    report([...place, 'keys', index], message)
  }
  for (const name of reserved) {
    if (!Object.hasOwn(claims, name)) continue
    report([...place, 'claims', name], 'is set by the gateway itself: remove it')
  }
  checkTemplate(claims, [...place, 'claims'], userNames, report)
}

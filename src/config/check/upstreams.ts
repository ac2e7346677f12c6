import { createPrivateKey, type KeyObject } from 'node:crypto'
import { userNames } from '../schema/answer.ts'
import type { Path } from '../schema/node.ts'
import { credentialOf, type UpstreamConfig } from '../schema/routes.ts'
import { urlsOf, type JwtConfig } from '../schema/upstreams.ts'
import { checkTemplate } from './answers.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

type ReportKeys = (keys: Path, message: string) => void

export function checkUpstreams(config: CheckedConfig, report: Report): void {
  for (const [name, upstream] of Object.entries(config.routes.upstreams)) {
    const reportKeys: ReportKeys = (keys, message) => report(['upstreams', name, ...keys], message)
    checkAddresses(urlsOf(upstream), reportKeys)
    checkTls(upstream, reportKeys)
    checkPlaceholders(upstream, reportKeys)
  }
  checkSharedPaging(config.routes, report)
}

function checkTls({ tls, ...upstream }: UpstreamConfig, report: ReportKeys): void {
  if (tls === undefined) return
  if (urlsOf(upstream).some(url => url.startsWith('http:'))) {
    report(['tls'], 'has no effect: the address begins with http://, not https://')
  }
  if ((tls.certificate === undefined) === (tls.key === undefined)) return
  const missing = tls.key === undefined ? 'key' : 'certificate'
  report(['tls'], `the key "${missing}" is missing: a certificate needs its private key`)
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
  if (first === undefined) {
    return report(['url'], 'is missing: name the back-end’s address')
  }
  const seen = new Set([first.origin])
  for (const [index, { origin, protocol, pathname }] of others.entries()) {
    const keys = ['url', index + 1]
    if (protocol !== first.protocol || pathname !== first.pathname) {
      report(
        keys,
        `must begin with ${first.protocol}// and have the path "${first.pathname}", ` +
          'as the first address does'
      )
    }
    if (seen.has(origin)) report(keys, `${origin} stands there twice`)
    seen.add(origin)
  }
}

/** Each half is checked by itself: the other one may come from a preset. */
function checkSharedPaging({ paging, upstreams }: CheckedConfig['routes'], report: Report): void {
  for (const [name, { paging: taken }] of Object.entries(upstreams)) {
    if (taken === undefined) continue
    if ((taken.page === undefined) === (taken.offset === undefined)) {
      report(['upstreams', name, 'paging'], 'needs one of page and offset')
    }
    if (taken.offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      const message =
        `the upstream "${name}" takes an offset, which needs \`paging.defaultSize\`: the ` +
        'console may send a page without a size'
      report(['paging'], message)
    }
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
    if (curveOf(pem) === 'prime256v1') continue
    report(
      [...place, 'keys', index],
      'is no private key of the curve P-256: expected PEM without a password'
    )
  }
  for (const name of reserved) {
    if (!Object.hasOwn(claims, name)) continue
    report([...place, 'claims', name], 'is set by the gateway itself: remove it')
  }
  checkTemplate(claims, [...place, 'claims'], userNames, report)
}

function curveOf(pem: string): string | undefined {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    return undefined
  }
  return key.asymmetricKeyDetails?.namedCurve
}

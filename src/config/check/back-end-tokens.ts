/** Rules for the tokens by which upstreams get to know users of any sign-in: `exchange`, `jwt`. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { userNames } from '../schema/answer.ts'
import type { JwtConfig } from '../schema/back-end-token.ts'
import type { Path } from '../schema/node.ts'
import { credentialOf } from '../schema/routes.ts'
import { checkTemplate } from './answers.ts'
import type { CheckedConfig, Report } from './report.ts'

type TokensConfig = Pick<CheckedConfig, 'gateway' | 'routes'>

/** Each token has its own. */
const reserved = ['iat', 'exp', 'nbf', 'jti']

export function checkBackEndTokens({ gateway, routes }: TokensConfig, report: Report): void {
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

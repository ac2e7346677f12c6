/** Rules for the PEM files of authorities (`ca`), of upstreams and Redis. */
import { X509Certificate } from 'node:crypto'
import { ownMember } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type Authorities = Pick<CheckedConfig, 'gateway' | 'routes' | 'authorities' | 'redisCa'>

/** TLS itself takes any text, and then trusts nobody: each connection would fail. */
export function checkAuthorities(config: Authorities, report: Report): void {
  const { gateway, routes, authorities, redisCa } = config
  const message = 'the file does not begin with a certificate: expected PEM'
  if (gateway.redis?.ca !== undefined && redisCa !== undefined && !isCertificate(redisCa)) {
    report(['redis', 'ca'], message)
  }
  for (const [name, { ca, tls }] of Object.entries(routes.upstreams)) {
    for (const [keys, file] of [[['ca'], ca] as const, [['tls', 'ca'], tls?.ca] as const]) {
      const text = file === undefined ? undefined : ownMember(authorities, file)
      if (text === undefined || isCertificate(text)) continue
      report(['upstreams', name, ...keys], message)
    }
  }
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0
  } catch {
    return false
  }
}

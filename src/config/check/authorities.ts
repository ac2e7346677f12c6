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
    report('gateway', ['redis', 'ca'], message)
  }
  for (const [name, { tls }] of Object.entries(routes.upstreams)) {
    const text = ownMember(authorities, tls?.ca ?? '')
    if (text === undefined || isCertificate(text)) continue
    report('routes', ['upstreams', name, 'tls', 'ca'], message)
  }
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).raw.length > 0
  } catch {
    return false
  }
}

import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { splitHostPort, splitPublicHost } from '../schema/host-port.ts'
import type { CheckedConfig, Report, ServerTls } from '../schema/config.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { privateKeyIn } from '../schema/pem.ts'

export function checkTls({ gateway, routes }: CheckedConfig, report: Report): void {
  for (const name of ['server', 'ops'] as const) {
    const { tls, hosts } = gateway[name]
    const ofPair = report.at(name, 'tls')
    const certificate = tls && checkPair(tls, ofPair)
    if (certificate) checkValidity(certificate, hosts, ofPair)
  }
  checkRedirect(gateway, report)
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const { certificate, key } = upstream.tls ?? {}
    const ofUpstream = report.at('upstreams', name, 'tls')
    if (upstream.tls !== undefined && upstream.url?.some(url => url.startsWith('http:'))) {
      ofUpstream([], 'has no effect: the address begins with http://, not https://')
    }
    if (certificate !== undefined && key !== undefined) {
      checkPair({ certificate, key }, ofUpstream)
    } else if (certificate !== key) {
      const missing = key === undefined ? 'key' : 'certificate'
      ofUpstream([], `the key "${missing}" is missing: a certificate needs its private key`)
    }
  }
}

function checkPair(pair: ServerTls, report: Report): X509Certificate {
  const certificate = new X509Certificate(pair.certificate)
  const key = privateKeyIn(pair.key)
  if (key === undefined) {
    report(['key'], 'is not a private key: expected PEM without a password')
    return certificate
  }
  if (!certificate.checkPrivateKey(key)) {
    const message = 'does not fit the certificate: it is the key of another one'
    report(['key'], message, ['certificate'])
    return certificate
  }
  try {
    createSecureContext({ cert: pair.certificate, key: pair.key })
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
    report(['certificate'], `cannot be used with its key (${reason})`)
  }
  return certificate
}

/** Warnings: a gateway with an expired certificate must be able to start, so that it is renewed. */
function checkValidity(
  certificate: X509Certificate,
  hosts: readonly string[],
  { warn: at }: Report
) {
  const warn = (message: string) => at(['certificate'], message)
  const { validTo, validFrom } = certificate
  const now = Date.now()
  if (now > Date.parse(validTo)) warn(`expired on ${validTo}: browsers refuse it`)
  if (now < Date.parse(validFrom)) warn(`is not valid before ${validFrom}: browsers refuse it`)
  for (const written of hosts) {
    const host = splitPublicHost(written).name
    const address = host.replace(/^\[|\]$/g, '')
    const isNamed = isIP(address) === 0 ? certificate.checkHost(host) : certificate.checkIP(address)
    if (isNamed === undefined) {
      warn(`does not name "${host}" of \`hosts\`: browsers refuse it there`)
    }
  }
}

function checkRedirect({ server, ops }: GatewayConfig, report: Report): void {
  const redirect = server.tls?.redirect
  if (redirect === undefined) return
  const fault = report.at('server', 'tls', 'redirect')
  if (splitHostPort(redirect).port !== 0 && [server.listen, ops.listen].includes(redirect)) {
    fault([], 'is the address of another listener: it needs a port of its own')
  }
  if (server.hosts.length > 0) return
  fault([], 'needs `server.hosts`: clients could be led to another site')
}

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { splitHostPort, splitPublicHost } from '../schema/host-port.ts'
import type { CheckedConfig, Report, ServerTls } from '../schema/config.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { urlsOf } from '../schema/upstreams.ts'

export function checkTls({ gateway, routes }: CheckedConfig, report: Report): void {
  for (const name of ['server', 'ops'] as const) {
    const { tls, hosts } = gateway[name]
    const ofPair = report.at(name, 'tls')
    const certificate = tls && checkPair(tls, ofPair)
    if (certificate) checkValidity(certificate, hosts, ofPair)
  }
  checkRedirect(gateway, report)
  checkAuthority(gateway.redis?.ca, report.at('redis', 'ca'))
  for (const [name, source] of Object.entries(gateway.login.sources)) {
    if (source.kind !== 'ldap') continue
    checkAuthority(source.ca, report.at('login', 'sources', name, 'ca'))
  }
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const { ca, certificate, key } = upstream.tls ?? {}
    const ofUpstream = report.at('upstreams', name, 'tls')
    checkAuthority(ca, ofUpstream.at('ca'))
    if (upstream.tls !== undefined && urlsOf(upstream).some(url => url.startsWith('http:'))) {
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

/** TLS itself takes any text, and then trusts nobody: each connection would fail. */
function checkAuthority(pem: string | undefined, report: Report): void {
  if (pem === undefined || parsed(() => new X509Certificate(pem)) !== undefined) return
  report([], 'the file does not begin with a certificate: expected PEM')
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

export const privateKeyOf = (pem: string) => parsed(() => createPrivateKey(pem))

function checkPair(pair: ServerTls, report: Report): X509Certificate | undefined {
  const certificate = parsed(() => new X509Certificate(pair.certificate))
  const key = privateKeyOf(pair.key)
  if (certificate === undefined) {
    const message = 'the file does not begin with a certificate: expected PEM, the own one first'
    report(['certificate'], message)
  }
  if (key === undefined) report(['key'], 'is not a private key: expected PEM without a password')
  if (certificate === undefined || key === undefined) return certificate
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
  const message = 'needs `server.hosts`: with other names, clients could be led to another site'
  fault([], message)
}

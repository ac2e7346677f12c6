import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { splitHostPort, splitPublicHost } from '../schema/host-port.ts'
import type { CheckedConfig, Report, ServerTls } from '../schema/config.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { Path } from '../schema/node.ts'
import { urlsOf } from '../schema/upstreams.ts'

export function checkTls({ gateway, routes }: CheckedConfig, report: Report): void {
  for (const name of ['server', 'ops'] as const) {
    const { tls, hosts } = gateway[name]
    const certificate = tls && checkPair(tls, [name, 'tls'], report)
    if (certificate) checkValidity(certificate, name, hosts, report)
  }
  checkRedirect(gateway, report)
  checkAuthority(['redis', 'ca'], gateway.redis?.ca, report)
  for (const [name, source] of Object.entries(gateway.login.sources)) {
    if (source.kind !== 'ldap') continue
    checkAuthority(['login', 'sources', name, 'ca'], source.ca, report)
  }
  for (const [name, upstream] of Object.entries(routes.upstreams)) {
    const { ca, certificate, key } = upstream.tls ?? {}
    const place = ['upstreams', name, 'tls']
    checkAuthority([...place, 'ca'], ca, report)
    if (upstream.tls !== undefined && urlsOf(upstream).some(url => url.startsWith('http:'))) {
      report(place, 'has no effect: the address begins with http://, not https://')
    }
    if (certificate !== undefined && key !== undefined) {
      checkPair({ certificate, key }, place, report)
    } else if (certificate !== key) {
      const missing = key === undefined ? 'key' : 'certificate'
      report(place, `the key "${missing}" is missing: a certificate needs its private key`)
    }
  }
}

/** TLS itself takes any text, and then trusts nobody: each connection would fail. */
function checkAuthority(place: Path, pem: string | undefined, report: Report): void {
  if (pem === undefined || parsed(() => new X509Certificate(pem)) !== undefined) return
  report(place, 'the file does not begin with a certificate: expected PEM')
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

export const privateKeyOf = (pem: string) => parsed(() => createPrivateKey(pem))

function checkPair(pair: ServerTls, at: Path, report: Report): X509Certificate | undefined {
  const place = [...at, 'certificate']
  const keyPlace = [...at, 'key']
  const certificate = parsed(() => new X509Certificate(pair.certificate))
  const key = privateKeyOf(pair.key)
  if (certificate === undefined) {
    report(place, 'the file does not begin with a certificate: expected PEM, the own one first')
  }
  if (key === undefined) report(keyPlace, 'is not a private key: expected PEM without a password')
  if (certificate === undefined || key === undefined) return certificate
  if (!certificate.checkPrivateKey(key)) {
    const message = 'does not fit the certificate: it is the key of another one'
    report(keyPlace, message, { also: place })
    return certificate
  }
  try {
    createSecureContext({ cert: pair.certificate, key: pair.key })
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
    report(place, `cannot be used with its key (${reason})`)
  }
  return certificate
}

/** Warnings: a gateway with an expired certificate must be able to start, so that it is renewed. */
function checkValidity(
  certificate: X509Certificate,
  name: string,
  hosts: readonly string[],
  report: Report
): void {
  const warn = (message: string) => report([name, 'tls', 'certificate'], message, { warning: true })
  const { validTo, validFrom } = certificate
  const now = Date.now()
  if (now > Date.parse(validTo)) warn(`expired on ${validTo}: browsers refuse it`)
  if (now < Date.parse(validFrom)) warn(`is not valid before ${validFrom}: browsers refuse it`)
  for (const written of hosts) {
    const host = splitPublicHost(written).name
    const address = host.replace(/^\[|\]$/g, '')
    const isNamed = isIP(address) === 0 ? certificate.checkHost(host) : certificate.checkIP(address)
    if (isNamed === undefined) {
      warn(`does not name "${host}" of ${name}.hosts: browsers refuse it there`)
    }
  }
}

function checkRedirect({ server, ops }: GatewayConfig, report: Report): void {
  const redirect = server.tls?.redirect
  if (redirect === undefined) return
  const place = ['server', 'tls', 'redirect']
  if (splitHostPort(redirect).port !== 0 && [server.listen, ops.listen].includes(redirect)) {
    report(place, 'is the address of another listener: it needs a port of its own')
  }
  if (server.hosts.length > 0) return
  const message = 'needs `server.hosts`: with other names, clients could be led to another site'
  report(place, message)
}

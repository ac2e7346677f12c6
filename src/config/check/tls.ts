import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { splitHostPort, splitPublicHost } from '../schema/host-port.ts'
import type { ServerTls, CheckedConfig, Report } from '../schema/config.ts'
import { ownMember, type Path } from '../schema/node.ts'

export function checkTls(config: CheckedConfig, report: Report): void {
  checkListener('server', config, report)
  checkListener('ops', config, report)
  checkRedirect(config, report)
  checkAuthority(['redis', 'ca'], config.redisCa, report)
  for (const [name, source] of Object.entries(config.gateway.login.sources)) {
    if (source.kind !== 'ldap') continue
    checkAuthority(['login', 'sources', name, 'ca'], pemOf(config, source.ca), report)
  }
  for (const [name, { tls }] of Object.entries(config.routes.upstreams)) {
    const place = ['upstreams', name, 'tls']
    checkAuthority([...place, 'ca'], pemOf(config, tls?.ca), report)
    const certificate = pemOf(config, tls?.certificate)
    if (certificate === undefined || tls?.key === undefined) continue
    checkPair({ certificate, key: tls.key }, place, report)
  }
}

function pemOf({ authorities }: CheckedConfig, file: string | undefined): string | undefined {
  return file === undefined ? undefined : ownMember(authorities, file)
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

function checkListener(name: 'server' | 'ops', config: CheckedConfig, report: Report): void {
  const pair = config[`${name}Tls`]
  if (pair === undefined) return
  const certificate = checkPair(pair, [name, 'tls'], report)
  if (certificate === undefined) return
  checkValidity(certificate, name, config.gateway[name].hosts, report)
}

function checkPair(pair: ServerTls, at: Path, report: Report): X509Certificate | undefined {
  const [place, keyPlace] = [
    [...at, 'certificate'],
    [...at, 'key']
  ]
  const certificate = parsed(() => new X509Certificate(pair.certificate))
  const key = parsed(() => createPrivateKey(pair.key))
  if (certificate === undefined) {
    const message = 'the file does not begin with a certificate: expected PEM, the own one first'
    report(place, message)
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

function checkRedirect({ gateway: { server, ops } }: CheckedConfig, report: Report): void {
  const redirect = server.tls?.redirect
  if (redirect === undefined) return
  const place = ['server', 'tls', 'redirect']
  const { port } = splitHostPort(redirect)
  if (port !== 0 && [server.listen, ops.listen].includes(redirect)) {
    report(place, 'is the address of another listener: it needs a port of its own')
  }
  if (server.hosts.length === 0) {
    const message =
      'needs `server.hosts`: only names that are listed there are redirected, ' +
      'since a name that the client made up could lead to another site'
    report(place, message)
  }
}

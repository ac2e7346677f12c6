/** Rules for `server.tls`: its certificate with the key, and the listener that redirects to it. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { isPort, splitHostPort } from '../schema/host-port.ts'
import type { CheckedConfig, Report } from './report.ts'

type TlsConfig = Pick<CheckedConfig, 'gateway' | 'serverTls' | 'opsTls'>
type Pair = NonNullable<TlsConfig['serverTls']>

/** A listener with TLS, and the place of a key of its `tls`. */
interface Listener {
  readonly name: 'server' | 'ops'
  readonly hosts: readonly string[]
  readonly report: (
    key: 'certificate' | 'key',
    message: string,
    how?: Parameters<Report>[2]
  ) => void
}

export function checkServerTls(config: TlsConfig, report: Report): void {
  const { gateway, serverTls, opsTls } = config
  for (const [name, pair] of [['server', serverTls] as const, ['ops', opsTls] as const]) {
    if (pair === undefined) continue
    checkListener(
      pair,
      {
        name,
        hosts: gateway[name].hosts,
        report: (key, message, how) => report([name, 'tls', key], message, how)
      },
      report
    )
  }
  checkRedirect(config, report)
}

function checkListener(pair: Pair, listener: Listener, report: Report): void {
  const parsed = parseCertificate(pair.certificate, listener)
  const privateKey = parseKey(pair.key, listener)
  if (parsed !== undefined && privateKey !== undefined) {
    checkPair(pair, { parsed, privateKey }, listener, report)
  }
  if (parsed !== undefined) checkValidity(parsed, listener)
}

function parseCertificate(text: string, { report }: Listener): X509Certificate | undefined {
  try {
    return new X509Certificate(text)
  } catch {
    report(
      'certificate',
      'the file does not begin with a certificate: expected PEM, the server’s own first'
    )
    return undefined
  }
}

function parseKey(text: string, { report }: Listener): KeyObject | undefined {
  try {
    return createPrivateKey(text)
  } catch {
    report('key', 'is not a private key: expected PEM without a password')
    return undefined
  }
}

interface Parsed {
  readonly parsed: X509Certificate
  readonly privateKey: KeyObject
}

function checkPair(
  { certificate, key }: Pair,
  { parsed, privateKey }: Parsed,
  listener: Listener,
  report: Report
): void {
  if (!parsed.checkPrivateKey(privateKey)) {
    const message = 'does not fit the certificate: it is the key of another one'
    const also = [listener.name, 'tls', 'certificate']
    return report([listener.name, 'tls', 'key'], message, { also })
  }
  try {
    createSecureContext({ cert: certificate, key })
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    listener.report('certificate', `cannot be used with its key (${code})`)
  }
}

/** Warnings: a gateway with an expired certificate must be able to start, so that it is renewed. */
function checkValidity(certificate: X509Certificate, { name, hosts, report }: Listener): void {
  const { validTo, validFrom } = certificate
  const now = Date.now()
  if (now > Date.parse(validTo)) {
    report('certificate', `expired on ${validTo}: browsers refuse it`, { warning: true })
  } else if (now < Date.parse(validFrom)) {
    report('certificate', `is not valid before ${validFrom}: browsers refuse it`, { warning: true })
  }
  const isNamed = (host: string) => {
    const address = host.replace(/^\[|\]$/g, '')
    const isAddress = isIP(address) !== 0
    return (isAddress ? certificate.checkIP(address) : certificate.checkHost(host)) !== undefined
  }
  for (const host of hosts.filter(each => !isNamed(each))) {
    const message = `does not name "${host}" of ${name}.hosts: browsers refuse it there`
    report('certificate', message, { warning: true })
  }
}

function checkRedirect({ gateway: { server, ops } }: TlsConfig, report: Report): void {
  const redirect = server.tls?.redirect
  if (redirect === undefined) return
  const place = ['server', 'tls', 'redirect']
  const { port } = splitHostPort(redirect)
  if (!isPort(port)) {
    report(place, `expected a port of at most 65535, found ${port}`)
  }
  if (port !== 0 && [server.listen, ops.listen].includes(redirect)) {
    report(place, 'is the address of another listener: it needs a port of its own')
  }
  if (server.hosts.length === 0) {
    const message =
      'needs `server.hosts`: only names that are listed there are redirected, ' +
      'since a name that the client made up could lead to another site'
    report(place, message)
  }
  const listenPort = splitHostPort(server.listen).port
  if (server.ports.length === 0 && listenPort !== 443 && listenPort !== 0) {
    const message =
      `redirects to port 443, but server.listen has ${listenPort}: ` +
      'name the port of the public address in server.ports (443 is fine, too)'
    report(place, message, { warning: true })
  }
}

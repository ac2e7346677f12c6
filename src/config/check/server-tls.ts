/** Rules for `server.tls`: its certificate with the key, and the listener that redirects to it. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { splitHostPort } from '../schema/host-port.ts'
import type { CheckedConfig, Report } from './report.ts'

type TlsConfig = Pick<CheckedConfig, 'gateway' | 'serverTls'>

export function checkServerTls(config: TlsConfig, report: Report): void {
  if (config.serverTls !== undefined) {
    const { certificate, key } = config.serverTls
    const parsed = parseCertificate(certificate, report)
    const privateKey = parseKey(key, report)
    if (parsed !== undefined && privateKey !== undefined) {
      checkPair({ certificate, key }, { parsed, privateKey }, report)
    }
    if (parsed !== undefined) checkValidity(parsed, config, report)
  }
  checkRedirect(config, report)
}

const keyPlace = ['server', 'tls', 'key']
const certificatePlace = ['server', 'tls', 'certificate']

function parseCertificate(text: string, report: Report): X509Certificate | undefined {
  try {
    return new X509Certificate(text)
  } catch {
    const message =
      'the file does not begin with a certificate: expected PEM, the server’s own first'
    report('gateway', certificatePlace, message)
    return undefined
  }
}

function parseKey(text: string, report: Report): KeyObject | undefined {
  try {
    return createPrivateKey(text)
  } catch {
    report('gateway', keyPlace, 'is not a private key: expected PEM without a password')
    return undefined
  }
}

interface Parsed {
  readonly parsed: X509Certificate
  readonly privateKey: KeyObject
}

function checkPair(
  { certificate, key }: NonNullable<TlsConfig['serverTls']>,
  { parsed, privateKey }: Parsed,
  report: Report
): void {
  if (!parsed.checkPrivateKey(privateKey)) {
    const message = 'does not fit the certificate: it is the key of another one'
    return report('gateway', keyPlace, message, { also: certificatePlace })
  }
  try {
    createSecureContext({ cert: certificate, key })
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    report('gateway', certificatePlace, `cannot be used with its key (${code})`)
  }
}

/** Warnings: a gateway with an expired certificate must be able to start, so that it is renewed. */
function checkValidity(certificate: X509Certificate, { gateway }: TlsConfig, report: Report): void {
  const { validTo, validFrom } = certificate
  const now = Date.now()
  if (now > Date.parse(validTo)) {
    const message = `expired on ${validTo}: browsers refuse it`
    report('gateway', certificatePlace, message, 'warning')
  } else if (now < Date.parse(validFrom)) {
    const message = `is not valid before ${validFrom}: browsers refuse it`
    report('gateway', certificatePlace, message, 'warning')
  }
  const isNamed = (host: string) => {
    const address = host.replace(/^\[|\]$/g, '')
    const isAddress = isIP(address) !== 0
    const name = isAddress ? certificate.checkIP(address) : certificate.checkHost(host)
    return name !== undefined
  }
  for (const host of gateway.server.hosts.filter(each => !isNamed(each))) {
    const message = `does not name "${host}" of server.hosts: browsers refuse it there`
    report('gateway', certificatePlace, message, 'warning')
  }
}

function checkRedirect({ gateway: { server, ops } }: TlsConfig, report: Report): void {
  const redirect = server.tls?.redirect
  if (redirect === undefined) return
  const place = ['server', 'tls', 'redirect']
  const { port } = splitHostPort(redirect)
  if (port > 65_535) {
    report('gateway', place, `expected a port of at most 65535, found ${port}`)
  }
  if (port !== 0 && [server.listen, ops.listen].includes(redirect)) {
    report('gateway', place, 'is the address of another listener: it needs a port of its own')
  }
  if (server.hosts.length === 0) {
    const message =
      'needs `server.hosts`: only names that are listed there are redirected, ' +
      'since a name that the client made up could lead to another site'
    report('gateway', place, message)
  }
  const listenPort = splitHostPort(server.listen).port
  if (server.ports.length === 0 && listenPort !== 443 && listenPort !== 0) {
    const message =
      `redirects to port 443, but server.listen has ${listenPort}: ` +
      'name the port of the public address in server.ports (443 is fine, too)'
    report('gateway', place, message, 'warning')
  }
}

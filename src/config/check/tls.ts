import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { splitPublicHost } from '../schema/host-port.ts'
import type { CheckedConfig, Report, ServerTls } from '../schema/config.ts'
import { reasonOf } from '../schema/faults.ts'

export function checkTls({ gateway }: CheckedConfig, report: Report): void {
  for (const name of ['server', 'ops'] as const) {
    const { tls, hosts } = gateway[name]
    if (tls === undefined) continue
    const ofPair = report.at(name, 'tls')
    checkPair(tls, ofPair)
    checkValidity(new X509Certificate(tls.certificate), hosts, ofPair)
  }
  if (gateway.server.tls?.redirect !== undefined && gateway.server.hosts.length === 0) {
    const message = 'needs `server.hosts`: clients could be led to another site'
    report(['server', 'tls', 'redirect'], message)
  }
}

export function checkPair({ certificate, key }: ServerTls, report: Report): void {
  let reason = 'it is the key of another one'
  try {
    createSecureContext({ cert: certificate, key })
    // OpenSSL compares no keys of different kinds.
    if (new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return
  } catch (error) {
    reason = reasonOf(error)
  }
  const message = `does not fit the certificate: expected its private key, PEM without a password (${reason})`
  report(['key'], message, ['certificate'])
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

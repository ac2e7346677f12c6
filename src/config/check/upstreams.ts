/** Rules for upstreams and for the profile that one of them knows. */
import { createSecureContext } from 'node:tls'
import type { UpstreamConfig } from '../schema/routes.ts'
import { urlsOf } from '../schema/upstream-addresses.ts'
import { ownMember, type Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type UpstreamsConfig = Pick<CheckedConfig, 'gateway' | 'routes' | 'authorities'>

export function checkUpstreams(config: UpstreamsConfig, report: Report): void {
  for (const [name, upstream] of Object.entries(config.routes.upstreams)) {
    const reportKeys = (keys: Path, message: string) =>
      report('routes', ['upstreams', name, ...keys], message)
    checkAddresses(upstream, reportKeys)
    checkTls(upstream, config.authorities, reportKeys)
  }
  checkProfile(config, report)
}

function checkAddresses(
  upstream: UpstreamConfig,
  report: (keys: Path, message: string) => void
): void {
  const { url, urls } = upstream
  if ((url === undefined) === (urls === undefined)) {
    // At `url`, so that it does not follow a value of `url` that could not be read.
    return url === undefined
      ? report(['url'], 'is missing: name the back-end’s address, or several in "urls"')
      : report([], 'has both "url" and "urls": write all addresses in "urls"')
  }
  const addresses = urlsOf(upstream)
  const keysOf = (index: number) => (urls === undefined ? ['url'] : ['urls', index])
  checkAlike(addresses, keysOf, report)
}

function checkTls(
  { ca, tls, ...upstream }: UpstreamConfig,
  pemFiles: CheckedConfig['authorities'],
  report: (keys: Path, message: string) => void
): void {
  if (tls === undefined) return
  if (urlsOf(upstream).some(url => url.startsWith('http:'))) {
    report(['tls'], 'has no effect: the address begins with http://, not https://')
  }
  if (ca !== undefined && tls.ca !== undefined) {
    report(['tls', 'ca'], 'stands beside "ca": write the file in one of them')
  }
  if ((tls.certificate === undefined) !== (tls.key === undefined)) {
    const missing = tls.key === undefined ? 'key' : 'certificate'
    return report(['tls'], `the key "${missing}" is missing: a certificate needs its private key`)
  }
  const { certificate, key } = tls
  const cert = certificate === undefined ? undefined : ownMember(pemFiles, certificate)
  if (cert === undefined || key === undefined) return
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    report(['tls', 'key'], `the certificate and the key do not fit each other (${code})`)
  }
}

/** Requests may go to any of them: by the same protocol, with the same path before theirs. */
function checkAlike(
  addresses: readonly string[],
  keysOf: (index: number) => Path,
  report: (keys: Path, message: string) => void
): void {
  const [first, ...others] = addresses.map(address => new URL(address))
  if (first === undefined) return
  const seen = new Set([first.origin])
  for (const [index, { origin, protocol, pathname }] of others.entries()) {
    const keys = keysOf(index + 1)
    if (protocol !== first.protocol || pathname !== first.pathname) {
      report(
        keys,
        `must begin with ${first.protocol}// and have the path "${first.pathname}", ` +
          'as the first address does'
      )
    }
    if (seen.has(origin)) report(keys, `${origin} stands there twice`)
    seen.add(origin)
  }
}

function checkProfile({ routes }: Pick<CheckedConfig, 'routes'>, report: Report): void {
  const { upstream, rewrite, timeout, shape, parts } = routes.endpoints.profile
  const ofUpstream = {
    rewrite,
    timeout,
    ...(Object.keys(parts).length === 0 && { shape })
  }
  for (const [key, value] of Object.entries(ofUpstream)) {
    if (upstream !== undefined || value === undefined) continue
    const message = 'has no effect: the session answers; name an `upstream` too'
    report('routes', ['endpoints', 'profile', key], message)
  }
}

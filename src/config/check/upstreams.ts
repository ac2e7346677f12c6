/** Rules for upstreams. */
import type { UpstreamConfig } from '../schema/routes.ts'
import { urlsOf } from '../schema/upstreams.ts'
import type { Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type UpstreamsConfig = Pick<CheckedConfig, 'routes'>
type ReportKeys = (keys: Path, message: string) => void

export function checkUpstreams(config: UpstreamsConfig, report: Report): void {
  for (const [name, upstream] of Object.entries(config.routes.upstreams)) {
    const reportKeys: ReportKeys = (keys, message) => report(['upstreams', name, ...keys], message)
    checkAddresses(urlsOf(upstream), reportKeys)
    checkTls(upstream, reportKeys)
    checkPlaceholders(upstream, reportKeys)
  }
  checkSharedPaging(config.routes, report)
}

function checkTls({ tls, ...upstream }: UpstreamConfig, report: ReportKeys): void {
  if (tls === undefined) return
  if (urlsOf(upstream).some(url => url.startsWith('http:'))) {
    report(['tls'], 'has no effect: the address begins with http://, not https://')
  }
  if ((tls.certificate === undefined) === (tls.key === undefined)) return
  const missing = tls.key === undefined ? 'key' : 'certificate'
  report(['tls'], `the key "${missing}" is missing: a certificate needs its private key`)
}

/** A placeholder that is none would be sent as it is written. */
function checkPlaceholders({ headers = {} }: UpstreamConfig, report: ReportKeys): void {
  for (const [header, value] of Object.entries(headers)) {
    if (!/\{\s*\w+[^}]*\}/.test(value) || /^\{profile\.[\w.-]+\}$/.test(value)) continue
    report(['headers', header], 'expected {profile.PATH} alone, or a text without placeholders')
  }
}

/** Requests may go to any of them: by the same protocol, with the same path before theirs. */
function checkAddresses(addresses: readonly string[], report: ReportKeys): void {
  const [first, ...others] = addresses.map(address => new URL(address))
  if (first === undefined) {
    return report(['url'], 'is missing: name the back-end’s address')
  }
  const seen = new Set([first.origin])
  for (const [index, { origin, protocol, pathname }] of others.entries()) {
    const keys = ['url', index + 1]
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

/** Each half is checked by itself: the other one may come from a preset. */
function checkSharedPaging({ paging, upstreams }: UpstreamsConfig['routes'], report: Report): void {
  for (const [name, { paging: taken }] of Object.entries(upstreams)) {
    if (taken === undefined) continue
    if ((taken.page === undefined) === (taken.offset === undefined)) {
      report(['upstreams', name, 'paging'], 'needs one of page and offset')
    }
    if (taken.offset !== undefined && paging !== undefined && paging.defaultSize === undefined) {
      const message =
        `the upstream "${name}" takes an offset, which needs \`paging.defaultSize\`: the ` +
        'console may send a page without a size'
      report(['paging'], message)
    }
  }
}

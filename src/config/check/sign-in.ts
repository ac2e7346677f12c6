/** Rules for the headers of a sign-in’s calls, and for what it passes on. */
import { knownBrowserCookie } from '../schema/lockout.ts'
import { validateHeaderName } from 'node:http'
import {
  builtByGateway,
  connectionBound,
  refusedFamilies,
  toldByGateway
} from '../schema/header-names.ts'
import type { SourceConfig } from '../schema/gateway.ts'
import { plainCookies, sealedCookiesOf } from '../schema/set-cookies.ts'
import { credentialOf } from '../schema/routes.ts'
import { opsCookie } from '../schema/ops.ts'
import { ownMember, type Path } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type SignInConfig = Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>
type UpstreamLogin = Extract<SourceConfig, { kind: 'upstream-login' }>

export function checkSignIn(config: SignInConfig, report: Report): void {
  for (const [sourceName, source] of Object.entries(config.gateway.login.sources)) {
    if (source.kind !== 'upstream-login') continue
    const at = ['login', 'sources', sourceName]
    checkHeaders(source, at, report)
    const kinds = {
      passHeaders: faultOfHeader(config, source),
      passCookies: faultOfCookie(config, source)
    }
    for (const key of ['passHeaders', 'passCookies'] as const) {
      source[key].forEach((name, place) => {
        const fault = kinds[key](name)
        if (fault === undefined) return
        report('gateway', [...at, key, place], `"${name}" ${fault}`)
      })
    }
  }
  checkSessionCookies(config, report)
}

type FaultOf = (name: string) => string | undefined

const tokenFault = (key: string) =>
  `is in \`envelope.${key}\`, so what a client sends in it is dropped: remove it here or there`

function faultOfHeader({ gateway, routes }: SignInConfig, source: UpstreamLogin): FaultOf {
  const { identity, envelope } = gateway
  const upstream = ownMember(routes.upstreams, source.upstream)
  const credential = credentialOf(upstream?.credential ?? 'none').as.replace(/^header:/, '')
  const identityNames = new Set(Object.values(identity))
  const fixedHeaders = { ...source.headers, ...upstream?.headers, ...upstream?.secretHeaders }
  const fixedNames = new Set(Object.keys(fixedHeaders).map(name => name.toLowerCase()))
  return name => {
    const isOfBody = /^(?:content-|transfer-|accept$|accept-encoding$)/.test(name)
    const isOwn = [connectionBound, builtByGateway, toldByGateway].some(names => names.has(name))
    if (isOwn || isOfBody) return 'is set by the gateway itself: remove it'
    if (identityNames.has(name)) return 'is a header of `identity`: clients could forge it'
    if (refusedFamilies.test(name)) {
      return 'is a header that back-ends trust as set by a proxy: clients could forge it'
    }
    if (envelope.tokenHeaders.includes(name)) return tokenFault('tokenHeaders')
    if (name === credential) return 'carries the credential of this upstream: remove it'
    return fixedNames.has(name) ? 'is among its fixed `headers`: remove one of them' : undefined
  }
}

function faultOfCookie({ gateway, routes }: SignInConfig, source: UpstreamLogin): FaultOf {
  const sealed = sealedCookiesOf(routes, source.upstream)
  const gatewayCookies = new Set([gateway.session.cookie.name, knownBrowserCookie, opsCookie])
  return name => {
    const bare = name.replace(/^__(?:Host|Secure)-/, '')
    if (gatewayCookies.has(bare)) {
      return 'is a cookie of the gateway itself, which no back-end gets'
    }
    if (gateway.envelope.tokenCookies.includes(name)) return tokenFault('tokenCookies')
    // Of a sealed one the back-end gets only what it has set itself.
    return source.cookies.includes(name) && !sealed.has(name)
      ? 'is in `cookies`, the back-end’s session: clients could choose it'
      : undefined
  }
}

/** Headers that a call's request has by itself; another value would break its framing. */
const framing = new Set([...connectionBound, 'host', 'content-length'])

function checkHeaders(source: UpstreamLogin, place: Path, report: Report): void {
  for (const [path, headers = {}] of [
    [[...place, 'headers'], source.headers],
    [[...place, 'refresh', 'headers'], source.refresh?.headers]
  ] as const) {
    for (const name of Object.keys(headers)) {
      if (!isHeaderName(name)) report('gateway', [...path, name], 'is no name of a header')
      if (!framing.has(name.toLowerCase())) continue
      report('gateway', [...path, name], `"${name}" is set by HTTP itself: remove it`)
    }
  }
}

function isHeaderName(name: string): boolean {
  try {
    validateHeaderName(name)
    return true
  } catch {
    return false
  }
}

/** The gateway keeps the back-end's session itself: no browser needs its cookie. */
function checkSessionCookies({ gateway, routes }: SignInConfig, report: Report): void {
  for (const [name, { upstream, setCookies }] of Object.entries(routes.routes)) {
    for (const source of Object.values(gateway.login.sources)) {
      if (source.kind !== 'upstream-login' || source.upstream !== upstream) continue
      const shown = plainCookies(setCookies).find(cookie => source.cookies.includes(cookie))
      if (shown === undefined) continue
      const message =
        `"${shown}" is in \`cookies\` of the sign-in: the browser would hold the back-end’s ` +
        'session. Remove it, or set `sealed: true`'
      report(
        'routes',
        ['routes', name, 'setCookies', setCookies.indexOf(shown)],
        message,
        'warning'
      )
    }
  }
}

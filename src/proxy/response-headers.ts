/** The headers of an upstream's response that the client gets. */
import { connectionBound } from '../config/schema/header-names.ts'
import { memoized } from '../bounded-map.ts'
import { cookieName } from '../session/cookie-header.ts'
import type { UpstreamResponse } from './response.ts'

type Headers = Record<string, string | string[]>

const banners = ['server', 'x-powered-by', 'x-runtime', 'via']
/** Addresses and files of the upstream's own. */
const places = ['location', 'content-location', 'refresh', 'x-accel-redirect', 'x-sendfile']
/** They hold for all of the origin, which is the gateway's. */
const ofOrigin = ['alt-svc', 'clear-site-data', 'service-worker-allowed', 'www-authenticate']
const setByGateway = ['strict-transport-security', 'x-content-type-options', 'referrer-policy']

/** Never copied. */
const droppedFromResponses = new Set([
  ...connectionBound,
  ...banners,
  ...places,
  ...ofOrigin,
  ...setByGateway,
  'x-request-id',
  'vary'
])
/** Also the renewed token of gin-vue-admin: no browser gets a credential. */
const droppedFamilies =
  /^(?:access-control-|content-security-policy|set-cookie|x-(?:aspnet|internal|envoy-|amzn-trace|debug)|new-token)/

const digests = ['content-md5', 'digest', 'content-digest', 'repr-digest']
const ranges = ['content-length', 'accept-ranges', 'content-range']

/** Of the upstream's body: wrong for a body that is made from it. */
const bodyHeaders = new Set([...digests, ...ranges, 'content-encoding', 'etag', 'last-modified'])

const cachingHeaders = new Set(['cache-control', 'expires', 'pragma', 'age'])

interface ResponseHeaderOptions {
  /** Names of cookies that this upstream may set. */
  readonly setCookies: readonly string[]
  /** Headers that no browser gets: they hold a credential. */
  readonly credentials: readonly string[]
  /** Whether the upstream may set caching headers; not for personal data. */
  readonly mayCache: boolean
  /** Whether the body is replaced by a shaped one. */
  readonly shaped: boolean
}

/** The response headers that the client gets; places and `Vary` are left to the caller. */
export function responseHeaders({
  setCookies,
  credentials,
  mayCache,
  shaped
}: ResponseHeaderOptions) {
  const crosses = memoized(
    (name: string) =>
      !droppedFromResponses.has(name) &&
      !droppedFamilies.test(name) &&
      !credentials.includes(name) &&
      (mayCache || !cachingHeaders.has(name)) &&
      !(shaped && bodyHeaders.has(name))
  )
  return (headers: UpstreamResponse['headers']): Headers => {
    const result: Headers = {}
    const listed = listedIn(headers['connection'])
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined && crosses(name) && listed?.includes(name) !== true) {
        result[name] = value
      }
    }
    const setCookie = headers['set-cookie']
    if (setCookies.length > 0 && setCookie !== undefined) {
      const kept = [setCookie].flat().filter(cookie => setCookies.includes(cookieName(cookie)))
      if (kept.length > 0) result['set-cookie'] = kept
    }
    return result
  }
}

/** Without `public`, `s-maxage` and what else is meant for caches that users share. */
const browserDirective =
  /^(?:no-store|no-cache|must-revalidate|immutable|no-transform|(?:max-age|stale-while-revalidate|stale-if-error)="?\d+"?)$/

/** An upstream's `Cache-Control` for the browser alone; undefined without one. */
export function privateCaching(control: string | string[] | undefined): string | undefined {
  if (control === undefined) return undefined
  const directives = String(control)
    .toLowerCase()
    .split(',')
    .map(directive => directive.trim())
    // A browser does not keep a response without some of its headers: it asks for all of it.
    .map(directive => directive.replace(/^no-cache=.*/, 'no-cache'))
    .filter(directive => browserDirective.test(directive))
  return ['private', ...directives].join(', ')
}

/** RFC 9110 §12.5.5. @param without a header that the response does not vary by any more */
export function joinedVary(
  gatewayVary: string | string[] | undefined,
  upstreamVary: string | string[] | undefined,
  without?: string
): string | undefined {
  const names = new Map<string, string>()
  for (const name of [gatewayVary, upstreamVary].flatMap(list => String(list ?? '').split(','))) {
    const trimmed = name.trim()
    const lowerCase = trimmed.toLowerCase()
    if (lowerCase !== '' && lowerCase !== without && !names.has(lowerCase)) {
      names.set(lowerCase, trimmed)
    }
  }
  if (names.has('*')) return '*'
  return names.size === 0 ? undefined : [...names.values()].join(', ')
}

/** Undefined for `keep-alive`, which never crosses anyway (RFC 9110 §7.6.1). */
export function listedIn(connection: string | string[] | undefined) {
  return connection === undefined || connection === 'keep-alive'
    ? undefined
    : String(connection)
        .toLowerCase()
        .split(',')
        .map(name => name.trim())
}

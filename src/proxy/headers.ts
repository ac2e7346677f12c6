/** Filters and builds the headers that cross the gateway, in both directions. */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { builtByGateway, connectionBound, refusedFamilies } from '../config/schema/header-names.ts'
import { memoized } from '../bounded-map.ts'
import { GatewayError } from '../errors.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Identity, Session } from '../session/record.ts'
import { cookieName, keepCookies } from './cookie-header.ts'
import type { TokenNames } from './token-names.ts'

type Headers = Record<string, string | string[]>

export interface RequestHeaderOptions {
  readonly identity: GatewayConfig['identity']
  /** Whether this upstream gets the user's identity. */
  readonly tellIdentity: boolean
  /** `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credential: string
  /** The word before the token. Without it: `Bearer` for `bearer`, none for a header. */
  readonly credentialScheme?: string | undefined
  /** The credential source whose sessions send their credential; any source without it. */
  readonly credentialFrom?: string | undefined
  readonly passAuthorization: boolean
  readonly passCookies: readonly string[]
  /** Of the upstream: only these headers of the client pass; else all that are not refused. */
  readonly passHeaders?: readonly string[] | undefined
  /** Of the route: names of refused families that pass nevertheless. */
  readonly passRefusedHeaders?: readonly string[]
  /** Never copied from the client, whatever passes otherwise. */
  readonly tokenNames: TokenNames
  /**
   * Whether the response will be shaped. A part of it cannot be shaped, a condition would compare
   * the unshaped response, and decompressing costs more than the network saves.
   */
  readonly shaped: boolean
}

export interface ForwardedFor {
  readonly address: string
  readonly protocol: string
  /** The request's `Host`, if config lists it; an unlisted one is not passed on. */
  readonly host: string | undefined
  readonly requestId: string
  readonly session: Session | undefined
}

const nameIsFree = memoized(
  (name: string) =>
    !name.includes('_') &&
    !refusedFamilies.test(name) &&
    !connectionBound.has(name) &&
    !builtByGateway.has(name)
)

/**
 * Builds the headers for the upstream: the gateway's own, and the client's except connection-bound
 * ones (and those listed in `Connection`, so that no client can drop what the gateway adds), those
 * that back-ends trust (unless the route allows them), and names with `_`. With `passHeaders` only
 * the client's headers that it names pass. The console's own token never passes.
 */
export function requestHeaders(
  options: RequestHeaderOptions
): (headers: IncomingHttpHeaders, by: ForwardedFor, hasBody: boolean, isRead: boolean) => Headers {
  const { identity, credential, tokenNames, shaped } = options
  const passAuthorization = options.passAuthorization && !tokenNames.headers.has('authorization')
  const passCookies = options.passCookies.filter(name => !tokenNames.cookies.has(name))
  const reopened = new Set(options.passRefusedHeaders)
  const allowed = options.passHeaders && new Set([...options.passHeaders, ...reopened])
  const ownNames = new Set([
    identity.id,
    identity.username,
    identity.roles,
    ...(identity.source === undefined ? [] : [identity.source]),
    ...(credential.startsWith('header:') ? [credential.slice(7)] : [])
  ])
  const sessionOptions = { ...options, tokenPrefix: tokenPrefixOf(options) }
  const bodyConditions = new Set(shaped ? ['accept-encoding', 'range', 'if-range'] : [])
  // In a change these headers say whether it may be made at all (RFC 9110 §13.1), so they pass.
  const readConditions = new Set(shaped ? ['if-none-match', 'if-modified-since'] : [])
  const crosses = memoized(
    (name: string) =>
      (nameIsFree(name) || reopened.has(name)) &&
      allowed?.has(name) !== false &&
      !ownNames.has(name) &&
      !tokenNames.headers.has(name) &&
      !bodyConditions.has(name)
  )
  const readCrosses = memoized((name: string) => crosses(name) && !readConditions.has(name))
  return (headers, caller, hasBody, isRead) => {
    const sent: Headers = {}
    const mayCross = isRead ? readCrosses : crosses
    const listed = listedIn(headers.connection)
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined && mayCross(name) && listed?.includes(name) !== true) {
        sent[name] = value
      }
    }
    if (hasBody && headers['content-length'] !== undefined) {
      sent['content-length'] = headers['content-length']
    }
    if (!hasBody) delete sent['content-type']
    if (shaped) sent['accept-encoding'] = 'identity'
    if (passAuthorization && headers.authorization !== undefined) {
      sent['authorization'] = headers.authorization
    }
    const kept =
      passCookies.length > 0 && headers.cookie !== undefined
        ? keepCookies(headers.cookie, passCookies)
        : ''
    if (kept !== '') sent['cookie'] = kept
    sent['x-request-id'] = caller.requestId
    sent['x-forwarded-for'] = caller.address
    sent['x-forwarded-proto'] = caller.protocol
    if (caller.host !== undefined) sent['x-forwarded-host'] = caller.host
    if (caller.session !== undefined) addSession(sent, caller.session, kept, sessionOptions)
    return sent
  }
}

type SessionHeaderOptions = RequestHeaderOptions & { readonly tokenPrefix: string }

function tokenPrefixOf({ credential, credentialScheme: scheme }: RequestHeaderOptions): string {
  if (scheme !== undefined) return `${scheme} `
  return credential === 'bearer' ? 'Bearer ' : ''
}

function addSession(
  sent: Headers,
  session: Session,
  keptCookies: string,
  { identity, tellIdentity, credential, credentialFrom, tokenPrefix }: SessionHeaderOptions
): void {
  if (tellIdentity) {
    const values = identityValues(session)
    sent[identity.id] = identity.prefix ? values.prefixedId : values.id
    if (identity.source !== undefined) sent[identity.source] = values.source
    sent[identity.username] = values.username
    sent[identity.roles] = values.roles
  }
  // The token of one back-end must not be sent to another.
  if (credentialFrom !== undefined && session.source !== credentialFrom) {
    throw new GatewayError('route.credential')
  }
  const { token, cookies } = session.credential ?? {}
  // Where the route passes the client's own header, that one wins.
  if (credential === 'bearer' && token !== undefined && sent['authorization'] === undefined) {
    sent['authorization'] = tokenPrefix + token
  }
  if (credential.startsWith('header:') && token !== undefined) {
    sent[credential.slice(7)] = tokenPrefix + token
  }
  if (credential === 'cookies' && cookies !== undefined) {
    sent['cookie'] = keptCookies === '' ? cookies : `${keptCookies}; ${cookies}`
  }
}

interface IdentityValues {
  readonly id: string
  readonly prefixedId: string
  readonly source: string
  readonly username: string
  readonly roles: string
}

/** Built once for each cached session. */
const identityCache = new WeakMap<Identity, IdentityValues>()

function identityValues({ source, identity }: Session): IdentityValues {
  const cached = identityCache.get(identity)
  if (cached !== undefined) return cached
  const values = {
    id: headerValue(identity.id),
    prefixedId: headerValue(identityKey({ source, identity })),
    source: headerValue(source),
    username: headerValue(identity.username),
    roles: identity.roles.map(role => headerValue(role).replaceAll(',', '%2C')).join(',')
  }
  identityCache.set(identity, values)
  return values
}

/**
 * Never copied from an upstream's response: connection-bound, banners, set by the gateway itself.
 */
const droppedFromResponses = new Set([
  ...connectionBound,
  'server',
  'x-powered-by',
  'x-aspnet-version',
  'x-aspnetmvc-version',
  'x-runtime',
  'via',
  'www-authenticate',
  'alt-svc',
  'clear-site-data',
  'strict-transport-security',
  'set-cookie',
  'set-cookie2',
  'location',
  'content-location',
  'x-request-id',
  'refresh',
  'service-worker-allowed',
  'x-accel-redirect',
  'x-sendfile',
  'x-content-type-options',
  'referrer-policy',
  'content-security-policy',
  'content-security-policy-report-only',
  'vary'
])
/** Also the renewed token of gin-vue-admin: no browser gets a credential. */
const droppedFamilies = /^(?:access-control-|x-(?:internal|envoy-|amzn-trace|debug)|new-token)/

/** Headers that describe the upstream's body: wrong for a body that is made from it. */
export const bodyHeaders: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'etag',
  'last-modified',
  'accept-ranges',
  'content-range',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest'
])

const cachingHeaders = new Set(['cache-control', 'expires', 'pragma', 'age'])

const responseNameCrosses = (name: string) =>
  !droppedFromResponses.has(name) && !droppedFamilies.test(name)

export interface ResponseHeaderOptions {
  /** Names of cookies that this upstream may set. */
  readonly setCookies: readonly string[]
  /** Whether the upstream may set caching headers; not for personal data. */
  readonly mayCache: boolean
  /** Whether the body is replaced by a shaped one. */
  readonly shaped?: boolean
}

/** The response headers that the client gets; `Location` and `Vary` are left to the caller. */
export function responseHeaders({
  setCookies,
  mayCache,
  shaped = false
}: ResponseHeaderOptions): (headers: Record<string, string | string[] | undefined>) => Headers {
  const crosses = memoized(
    (name: string) =>
      responseNameCrosses(name) &&
      (mayCache || !cachingHeaders.has(name)) &&
      !(shaped && bodyHeaders.has(name))
  )
  return headers => {
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
      const kept = (Array.isArray(setCookie) ? setCookie : [setCookie]).filter(cookie =>
        setCookies.includes(cookieName(cookie))
      )
      if (kept.length > 0) result['set-cookie'] = kept
    }
    return result
  }
}

/**
 * Joins the gateway's and the upstream's `Vary` into one list (RFC 9110 §12.5.5).
 * @param without a header that the response does not vary by any more
 */
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

/**
 * The header names that `Connection` binds to one connection (RFC 9110 §7.6.1). Most clients send
 * `keep-alive`, which never crosses.
 */
function listedIn(connection: string | string[] | undefined) {
  return connection === undefined || connection === 'keep-alive'
    ? undefined
    : String(connection)
        .toLowerCase()
        .split(',')
        .map(name => name.trim())
}

/**
 * Printable ASCII as it is, everything else percent-encoded, also blanks at the ends, which a
 * header would lose: a name must neither break a header nor become another name.
 */
function headerValue(value: string): string {
  return /^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(value)
    ? value
    : encodeURIComponent(value.toWellFormed())
}

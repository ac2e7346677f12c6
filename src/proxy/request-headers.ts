/** The headers that an upstream gets: of the client's those that pass, then the gateway's own. */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { builtByGateway, connectionBound, refusedFamilies } from '../config/schema/header-names.ts'
import { credentialOf, tokenHeaderOf, type UpstreamConfig } from '../config/schema/routes.ts'
import type { CsrfConfig } from '../config/schema/upstreams.ts'
import { memoized } from '../bounded-map.ts'
import { GatewayError } from '../errors/errors.ts'
import { textAt } from '../json/values.ts'
import { keyIn } from '../session/keys.ts'
import { type Credential, identityKey, type Session } from '../session/types.ts'
import { cookieText, decodedCookie, keepCookies } from '../session/cookie-header.ts'
import { listedIn } from './response-headers.ts'
import type { TokenNames } from './query.ts'

type Headers = Record<string, string | string[]>

export interface RequestHeaderOptions {
  readonly identity: GatewayConfig['identity']
  /** Never copied from the client, whatever passes otherwise. */
  readonly tokenNames: TokenNames
  readonly upstream: Pick<UpstreamConfig, 'identity' | 'credential' | 'passHeaders' | 'headers'>
  readonly credentialFor: (session: Session) => Credential | undefined
  readonly passCookies?: readonly string[] | undefined
  readonly passHeaders?: readonly string[] | undefined
  /**
   * A part cannot be shaped, a condition would compare the unshaped response, and decompressing
   * costs more than the network saves.
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

/** Where the response is shaped: they ask for a part, or a coding. */
const unshaped = new Set(['accept-encoding', 'range', 'if-range'])
/** They too, unless they say whether a change may be made at all (RFC 9110 §13.1). */
const readConditions = new Set(['if-none-match', 'if-modified-since'])

/** Built anew: what `Connection` lists is of the client's headers alone, not of the gateway's. */
export function requestHeaders(
  options: RequestHeaderOptions
): (headers: IncomingHttpHeaders, by: ForwardedFor, hasBody: boolean, isRead: boolean) => Headers {
  const { tokenNames, shaped } = options
  const passes = memoized(compilePassing(options))
  const passCookies = (options.passCookies ?? []).filter(name => !tokenNames.cookies.has(name))
  const addSession = compileSession(options)
  return (headers, caller, hasBody, isRead) => {
    const sent: Headers = {}
    const listed = listedIn(headers.connection)
    const isOfKey = caller.session?.key !== undefined
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined || !passes(name) || listed?.includes(name) === true) continue
      if (name === 'content-type' && !hasBody) continue
      if (name === 'authorization' && (isOfKey || keyIn(String(value)) !== undefined)) continue
      if (shaped && isRead && readConditions.has(name)) continue
      sent[name] = value
    }
    // The body passes byte for byte, so its length does too, even if `Connection` lists it.
    const length = headers['content-length']
    if (hasBody && length !== undefined) sent['content-length'] = length
    if (shaped) sent['accept-encoding'] = 'identity'
    if (passCookies.length > 0 && headers.cookie !== undefined) {
      const kept = keepCookies(headers.cookie, passCookies)
      if (kept !== '') sent['cookie'] = kept
    }
    sent['x-request-id'] = caller.requestId
    sent['x-forwarded-for'] = caller.address
    sent['x-forwarded-proto'] = caller.protocol
    if (caller.host !== undefined) sent['x-forwarded-host'] = caller.host
    if (caller.session !== undefined) addSession(sent, caller.session)
    return sent
  }
}

/** What a header can hold, and holds. */
export const headerText = /^[\x20-\x7e]+$/

const placeholder = /^\{profile\.([A-Za-z0-9_.-]+)\}$/

export function fixedHeadersOf({ headers = {} }: Pick<UpstreamConfig, 'headers'>) {
  const fixed = Object.entries(headers).filter(([, written]) => !placeholder.test(written))
  return fixed.length === 0 ? undefined : Object.fromEntries(fixed)
}

function compilePassing(options: RequestHeaderOptions): (name: string) => boolean {
  const { identity, tokenNames, upstream, passHeaders = [], shaped } = options
  const { as, csrf, hasOwnToken } = credentialOf(upstream.credential)
  const never = new Set<string | undefined>([
    ...tokenNames.headers,
    ...(shaped ? unshaped : []),
    // Those in which the upstream is told the user, the credential, and more of the session.
    identity.id,
    identity.username,
    identity.roles,
    identity.source,
    as === 'bearer' && !hasOwnToken ? undefined : tokenHeaderOf(as),
    csrf?.header,
    ...profileValues(upstream.headers).map(({ name }) => name)
  ])
  return name => {
    if (never.has(name)) return false
    const isListed = upstream.passHeaders?.includes(name) ?? true
    return passHeaders.includes(name) || (isListed && isHarmless(name))
  }
}

/** Names with `_` or `.` are `-` to CGI-like back-ends; others are trusted, or of a connection. */
function isHarmless(name: string): boolean {
  return (
    /^[a-z0-9-]+$/.test(name) &&
    !refusedFamilies.test(name) &&
    !connectionBound.has(name) &&
    !builtByGateway.has(name)
  )
}

/** Adds what the upstream is told of a session. */
function compileSession({ identity, upstream, credentialFor }: RequestHeaderOptions) {
  const ofProfile = profileValues(upstream.headers)
  const { as, scheme, from, csrf } = credentialOf(upstream.credential)
  const isBearer = as === 'bearer'
  const header = tokenHeaderOf(as) ?? ''
  const word = scheme ?? (isBearer ? 'Bearer' : '')
  const before = word === '' ? '' : `${word} `
  return (sent: Headers, session: Session): void => {
    if (upstream.identity) Object.assign(sent, identityHeaders(session, identity))
    for (const { name, valueOf } of ofProfile) {
      const value = valueOf(session)
      if (value !== undefined) sent[name] = value
    }
    // The token of one back-end must not be sent to another.
    if (from !== undefined && session.source !== from) throw new GatewayError('route.credential')
    if (as === 'none') return
    const credential = credentialFor(session)
    // A machine that calls with a token of `from` has no session there.
    if (credential === undefined && session.key !== undefined) {
      throw new GatewayError('route.credential')
    }
    const { token, cookies } = credential ?? {}
    if (csrf !== undefined) Object.assign(sent, csrfHeader(credential ?? {}, csrf))
    if (as === 'cookies') {
      // After those of the client that pass.
      if (cookies !== undefined) sent['cookie'] = [sent['cookie'] ?? [], cookies].flat().join('; ')
      return
    }
    // Where the route passes the client's own `Authorization`, that one wins.
    const isTaken = isBearer && sent[header] !== undefined
    if (token !== undefined && !isTaken) sent[header] = before + token
  }
}

/** Decoded, as scripts of browsers send it. */
export function csrfHeader({ token, cookies = '' }: Credential, csrf: CsrfConfig) {
  const { header, cookie } = csrf
  const value = cookie === undefined ? token : decodedCookie(cookieText(cookies, cookie) ?? '')
  return value !== undefined && headerText.test(value) ? { [header]: value } : {}
}

/** The headers of `identity` for a session. */
export function identityHeaders(session: Session, names: GatewayConfig['identity']) {
  const { source, identity } = session
  const roles = identity.roles.map(role => headerValue(role).replaceAll(',', '%2C'))
  return {
    [names.id]: headerValue(names.prefix ? identityKey(session) : identity.id),
    ...(names.source !== undefined && { [names.source]: headerValue(source) }),
    [names.username]: headerValue(identity.username),
    [names.roles]: roles.join(',')
  }
}

/** Of the fixed headers of an upstream those whose value is a member of the user's profile. */
function profileValues(headers: Readonly<Record<string, string>> = {}) {
  return Object.entries(headers).flatMap(([name, written]) => {
    const path = placeholder.exec(written)?.[1]
    if (path === undefined) return []
    // Undefined where the profile has no text, number or boolean there.
    const valueOf = ({ identity }: Session) => {
      const text = textAt(identity.profile, path)
      return text === undefined ? undefined : headerValue(text)
    }
    return [{ name: name.toLowerCase(), valueOf }]
  })
}

/** Percent-encoded, blanks at the ends too: a name must neither break a header nor be another's. */
function headerValue(value: string): string {
  return /^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(value)
    ? value
    : encodeURIComponent(value.toWellFormed())
}

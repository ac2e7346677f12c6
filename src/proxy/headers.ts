/** Which header fields cross the gateway, in each direction. */
import { recentlyUsed } from '../bounded-map.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { builtByGateway, connectionBound, refusedFamilies } from '../config/schema/header-names.ts'
import { GatewayError } from '../errors.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Identity, Session } from '../session/record.ts'

type Fields = Record<string, string | string[]>

export interface RequestFieldOptions {
  readonly identity: GatewayConfig['identity']
  /** Whether this upstream is told who asks. */
  readonly tellIdentity: boolean
  /** `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credential: string
  /** The credential source whose sessions send theirs; any without it. */
  readonly credentialFrom?: string | undefined
  readonly passAuthorization: boolean
  readonly passCookies: readonly string[]
  /** Of the upstream: with it, no other field of the client passes. */
  readonly passHeaders?: readonly string[] | undefined
  /** Of the route: names of refused families that pass all the same. */
  readonly passRefusedHeaders?: readonly string[]
  /**
   * Whether the answer will be shaped. A part of one cannot be, a condition would be about the unshaped one,
   * and one that is not compressed costs less to make and to read than it saves on the way.
   */
  readonly shaped: boolean
}

export interface ForwardedFor {
  readonly address: string
  readonly protocol: string
  /** The `Host` of the request, where config lists it; an unvetted one is not passed on. */
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
 * The fields for the upstream, built anew: the gateway's own, and of the client's those that are
 * neither connection-bound (nor listed in `Connection`, so that nobody makes us drop what we add),
 * nor trusted by back-ends (unless the route re-opens them), nor spelt with `_`. Console's own extra
 * fields pass, or with `passHeaders` only those that it names.
 */
export function requestFields(
  options: RequestFieldOptions
): (headers: IncomingHttpHeaders, from: ForwardedFor, hasBody: boolean, isRead: boolean) => Fields {
  const { identity, tellIdentity, credential, passAuthorization, passCookies, shaped } = options
  const reopened = new Set(options.passRefusedHeaders)
  const allowed = options.passHeaders && new Set([...options.passHeaders, ...reopened])
  const ownNames = new Set([
    identity.id,
    identity.username,
    identity.roles,
    ...(identity.source === undefined ? [] : [identity.source]),
    ...(credential.startsWith('header:') ? [credential.slice(7)] : [])
  ])
  const ofBytes = new Set(shaped ? ['accept-encoding', 'range', 'if-range'] : [])
  // Of a change the same fields say when it may be made at all (RFC 9110 §13.1).
  const ofRead = new Set(shaped ? ['if-none-match', 'if-modified-since'] : [])
  const crosses = memoized(
    (name: string) =>
      (nameIsFree(name) || reopened.has(name)) &&
      allowed?.has(name) !== false &&
      !ownNames.has(name) &&
      !ofBytes.has(name)
  )
  const readCrosses = memoized((name: string) => crosses(name) && !ofRead.has(name))
  return (headers, caller, hasBody, isRead) => {
    const fields: Fields = {}
    const mayCross = isRead ? readCrosses : crosses
    const listed = listedIn(headers.connection)
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined && mayCross(name) && listed?.includes(name) !== true) {
        fields[name] = value
      }
    }
    if (hasBody && headers['content-length'] !== undefined) {
      fields['content-length'] = headers['content-length']
    }
    if (!hasBody) delete fields['content-type']
    if (shaped) fields['accept-encoding'] = 'identity'
    if (passAuthorization && headers.authorization !== undefined) {
      fields['authorization'] = headers.authorization
    }
    const kept =
      passCookies.length > 0 && headers.cookie !== undefined
        ? keepCookies(headers.cookie, passCookies)
        : ''
    if (kept !== '') fields['cookie'] = kept
    fields['x-request-id'] = caller.requestId
    fields['x-forwarded-for'] = caller.address
    fields['x-forwarded-proto'] = caller.protocol
    if (caller.host !== undefined) fields['x-forwarded-host'] = caller.host
    if (caller.session !== undefined) addSession(fields, caller.session, kept)
    return fields
  }

  function addSession(fields: Fields, session: Session, keptCookies: string): void {
    if (tellIdentity) {
      const told = toldOf(session)
      fields[identity.id] = identity.prefix ? told.prefixedId : told.id
      if (identity.source !== undefined) fields[identity.source] = told.source
      fields[identity.username] = told.username
      fields[identity.roles] = told.roles
    }
    const { credentialFrom } = options
    // The token of one back-end is not another's to see.
    if (credentialFrom !== undefined && session.source !== credentialFrom) {
      throw new GatewayError('route.credential')
    }
    const { token, cookies } = session.credential ?? {}
    // The client's own, where the route passes it, is what the route asks for.
    if (credential === 'bearer' && token !== undefined && fields['authorization'] === undefined) {
      fields['authorization'] = `Bearer ${token}`
    }
    if (credential.startsWith('header:') && token !== undefined) fields[credential.slice(7)] = token
    if (credential === 'cookies' && cookies !== undefined) {
      fields['cookie'] = keptCookies === '' ? cookies : `${keptCookies}; ${cookies}`
    }
  }
}

interface Told {
  readonly id: string
  readonly prefixedId: string
  readonly source: string
  readonly username: string
  readonly roles: string
}

/** Written once for each session that this process remembers. */
const told = new WeakMap<Identity, Told>()

function toldOf({ source, identity }: Session): Told {
  const known = told.get(identity)
  if (known !== undefined) return known
  const fields = {
    id: fieldValue(identity.id),
    prefixedId: fieldValue(identityKey({ source, identity })),
    source: fieldValue(source),
    username: fieldValue(identity.username),
    roles: identity.roles.map(role => fieldValue(role).replaceAll(',', '%2C')).join(',')
  }
  told.set(identity, fields)
  return fields
}

/** Never copied from an upstream's answer: connection-bound, banners, and what is the gateway's own to say. */
const droppedFromAnswers = new Set([
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
const droppedFamilies = /^(?:access-control-|x-internal|x-envoy-|x-amzn-trace|x-debug)/

/** True of the upstream's body, not of one that is made of it. */
export const bodyFields: ReadonlySet<string> = new Set([
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

const cachingFields = new Set(['cache-control', 'expires', 'pragma', 'age'])

const answerNameCrosses = (name: string) =>
  !droppedFromAnswers.has(name) && !droppedFamilies.test(name)

export interface AnswerFieldOptions {
  /** Names of cookies that this upstream may set. */
  readonly setCookies: readonly string[]
  /** Whether the upstream may say how long its answer may be kept; personal data may not be. */
  readonly mayCache: boolean
  /** Whether another body is made of the upstream's. */
  readonly shaped?: boolean
}

/** The fields of an upstream's answer that the client may see; `Location` and `Vary` are the caller's to judge. */
export function answerFields({
  setCookies,
  mayCache,
  shaped = false
}: AnswerFieldOptions): (headers: Record<string, string | string[] | undefined>) => Fields {
  const crosses = memoized(
    (name: string) =>
      answerNameCrosses(name) &&
      (mayCache || !cachingFields.has(name)) &&
      !(shaped && bodyFields.has(name))
  )
  return headers => {
    const fields: Fields = {}
    const listed = listedIn(headers['connection'])
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined && crosses(name) && listed?.includes(name) !== true) {
        fields[name] = value
      }
    }
    const given = headers['set-cookie']
    if (setCookies.length > 0 && given !== undefined) {
      const kept = (Array.isArray(given) ? given : [given]).filter(cookie =>
        setCookies.includes(cookieName(cookie))
      )
      if (kept.length > 0) fields['set-cookie'] = kept
    }
    return fields
  }
}

/**
 * What two parties say of the fields that an answer varies by, in one list (RFC 9110 §12.5.5).
 * @param without a field that it does not vary by any more
 */
export function joinedVary(
  own: string | string[] | undefined,
  upstreams: string | string[] | undefined,
  without?: string
): string | undefined {
  const names = new Map<string, string>()
  for (const name of [own, upstreams].flatMap(list => String(list ?? '').split(','))) {
    const trimmed = name.trim()
    const known = trimmed.toLowerCase()
    if (known !== '' && known !== without && !names.has(known)) names.set(known, trimmed)
  }
  if (names.has('*')) return '*'
  return names.size === 0 ? undefined : [...names.values()].join(', ')
}

/** The field names that `Connection` binds to one connection (RFC 9110 §7.6.1). Most say `keep-alive`, which never crosses anyway. */
function listedIn(connection: string | string[] | undefined) {
  return connection === undefined || connection === 'keep-alive'
    ? undefined
    : String(connection)
        .toLowerCase()
        .split(',')
        .map(name => name.trim())
}

// Only blanks and tabs may stand around a name: JavaScript's trim() would accept a look-alike.
function cookieName(pair: string) {
  return trimBlanks(pair.slice(0, Math.max(0, pair.indexOf('='))))
}

function keepCookies(header: string, names: readonly string[]): string {
  const kept = header.split(';').filter(pair => names.includes(cookieName(pair)))
  return kept.map(trimBlanks).join('; ')
}

const isBlank = (letter: string | undefined) => letter === ' ' || letter === '\t'

/** A loop: the pattern /[ \t]+$/ is quadratic in a run of blanks before a letter. */
function trimBlanks(text: string): string {
  let start = 0
  let end = text.length
  while (isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

/** Printable ASCII as it is, everything else percent-encoded, also blanks at the ends, which a header loses: a name must not break it, nor become another's. */
function fieldValue(value: string): string {
  return /^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(value)
    ? value
    : encodeURIComponent(value.toWellFormed())
}

/** Remembers decisions about names: a console sends the same few with each request. Bounded, since clients choose the names. */
function memoized(decide: (name: string) => boolean): (name: string) => boolean {
  const decisions = recentlyUsed<boolean>(1000)
  return name => {
    let decision = decisions.get(name)
    if (decision === undefined) {
      decision = decide(name)
      decisions.set(name, decision)
    }
    return decision
  }
}

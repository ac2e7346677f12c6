/**
 * Credentials for an upstream's calls: renewed before, replaced where a response brings another one,
 * and given up where it refuses them (`sessionEnded` of the upstream).
 */
import { Readable } from 'node:stream'
import { BoundedMap } from '../../bounded-map.ts'
import { credentialOf, type UpstreamConfig } from '../../config/schema/routes.ts'
import { GatewayError, isOfUpstream } from '../../errors/errors.ts'
import { readJson } from '../../json/body.ts'
import { credentialHeaders } from '../../login/back-end-call.ts'
import { cookiesAfter } from '../../login/credential-cookies.ts'
import { matchesTest } from '../../login/response-values.ts'
import type { Trail } from '../../observability/trail.ts'
import type { Call } from '../../proxy/receiver.ts'
import { discard, type UpstreamResponse } from '../../proxy/response.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Live } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'

/** @returns gets a session the credential that an upstream takes, or renews one that expires */
export function createEnsuring(gateway: Gateway, name: string) {
  const { exchanges, tokenRefresh, sessions, upstream } = gateway
  const exchange = exchanges.get(name)
  const isNeeded = credentialOf(upstream(name).config.credential).as !== 'none'
  const ensure = async (live: Live, trail: Trail): Promise<Live> => {
    try {
      const fresh = await tokenRefresh.ensureFresh(live, trail)
      return exchange ? await tokenRefresh.ensureToken(fresh, exchange, trail) : fresh
    } catch (error) {
      if (isNeeded || !isOfUpstream(error)) throw error
      return live
    }
  }
  return (live: Live, trail: Trail): Live | Promise<Live> => {
    const isLasting = exchange === undefined && live.session.credential?.expiresAt === undefined
    return isLasting ? sessions.credentials.withHeld(live) : ensure(live, trail)
  }
}

/**
 * After a new token was refused none is asked for so long, and after a failure what the back-end
 * says of sessions is not believed.
 */
const distrustMs = 10_000

/**
 * For a token of the gateway's own (`exchange`, `jwt`) that the back-end does not take any more.
 * @returns what replaces a response to a refused token by that to a new one; undefined for an
 *   upstream without such tokens
 */
export function createOwnTokenReader(gateway: Gateway, upstreamName: string) {
  const { exchanges, credentialFor, tokenRefresh } = gateway
  const { credential, sessionEnded = { status: [401] } } = gateway.upstream(upstreamName).config
  const { as: credentialStyle, scheme: credentialScheme, hasOwnToken } = credentialOf(credential)
  if (!hasOwnToken) return undefined
  const exchange = exchanges.get(upstreamName)
  const tokenOf = credentialFor(upstreamName)
  let refusedAt = -Infinity

  /**
   * @param live whose token the request had
   * @param sendAgain missing where the request cannot be sent twice
   * @throws GatewayError `upstream.error`, which leaves the user signed in
   */
  return async <R extends UpstreamResponse>(
    live: Live,
    trail: Trail | undefined,
    response: R,
    sendAgain?: (headers: Record<string, string>) => Promise<R>
  ): Promise<R> => {
    if (!saysEnded(sessionEnded, response)) return response
    discard(response)
    if (exchange === undefined || performance.now() - refusedAt < distrustMs) throw refused()
    const former = tokenOf(live.session)
    const { session } = await tokenRefresh.ensureToken(live, exchange, trail, former?.token)
    if (sendAgain === undefined) throw unconfirmed()
    const style = { credentialStyle, credentialScheme }
    const second = await sendAgain(credentialHeaders(tokenOf(session) ?? {}, style))
    if (!saysEnded(sessionEnded, second)) return second
    discard(second)
    refusedAt = performance.now()
    throw refused()
  }
}

function refused(): GatewayError {
  const cause = new Error('the back-end refuses the token by which the gateway names the user')
  return new GatewayError('upstream.error', { cause })
}

export type EndedTest = NonNullable<UpstreamConfig['sessionEnded']>

/** A response that says so is short; a longer one is not read for it. */
const maxBytes = 16 * 1024

export function saysEnded(test: EndedTest, { status, headers, body }: UpstreamResponse): boolean {
  if (test.status !== undefined && !test.status.includes(status)) return false
  if (test.location !== undefined && !leadsTo(headers['location'], test.location)) return false
  if (test.path === undefined) return true
  if (!Buffer.isBuffer(body) || body.length > maxBytes) return false
  if (!mayHold(test, headers, body)) return false
  try {
    return matchesTest(test, status, readJson(body, headers, maxBytes))
  } catch {
    return false
  }
}

/** perf: most responses do not hold the value at all, so they need not be parsed for it. */
function mayHold(
  { in: values = [], startsWith = [] }: EndedTest,
  headers: UpstreamResponse['headers'],
  body: Buffer
): boolean {
  const texts = [...values, ...startsWith].map(String)
  // Others may be written as escapes.
  const arePlain = texts.length > 0 && texts.every(text => /^[\w .,-]+$/.test(text))
  const isPacked = headers['content-encoding'] !== undefined
  return isPacked || !arePlain || texts.some(text => body.includes(text))
}

function leadsTo(location: string | string[] | undefined, paths: readonly string[]): boolean {
  if (typeof location !== 'string' || !URL.canParse(location, 'http://upstream')) return false
  const { pathname } = new URL(location, 'http://upstream')
  return paths.some(path => pathname.startsWith(path))
}

/** Nobody is signed out yet: the page may try again. */
export function unconfirmed(): GatewayError {
  return new GatewayError('upstream.error', {
    status: 503,
    retryAfter: 1,
    cause: new Error('the response says that the back-end’s session has ended, once')
  })
}

/**
 * Reads the response to a call of a session.
 * @returns the response for the client
 * @throws GatewayError `session.upstream` where the session was ended
 */
export type ReadSession = (
  live: Live,
  call: Call,
  response: UpstreamResponse
) => Promise<UpstreamResponse>

const maxSuspects = 10_000

/** @returns what reads for the routes of an upstream; undefined where that gets no credential */
export function createBackEndSessions(gateway: Gateway): (name: string) => ReadSession | undefined {
  const judgeOf = createJudges(gateway.sessions)
  return name => {
    const upstream = gateway.upstream(name)
    const { credential, sessionEnded } = upstream.config
    if (credentialOf(credential).as === 'none') return undefined
    const readOwnToken = createOwnTokenReader(gateway, name)
    if (readOwnToken !== undefined) {
      return (live, call, response) => {
        const sendAgain = (headers: Call['headers']) =>
          upstream.send({ ...call, headers: { ...call.headers, ...headers } })
        const again = call.body instanceof Readable ? undefined : sendAgain
        return readOwnToken(live, call.recorded?.trail, response, again)
      }
    }
    const judge = sessionEnded && judgeOf(name, upstream, sessionEnded)
    return async (live, call, response) => {
      const judged = judge === undefined ? response : await judge(live, call, response)
      takeCredential(gateway, name, live, judged.headers)
      return judged
    }
  }
}

/**
 * A faulty back-end must not sign everybody out: two responses in a row say that a session has
 * ended, none while it fails, and none about a credential that is not the latest.
 * @returns what has the judges of several routes, which know of each other
 */
function createJudges(sessions: Sessions) {
  /** Sessions of which one response said so, by upstream and key. */
  const suspects = new BoundedMap<true>(maxSuspects)
  /** The last failure of an upstream, as of `performance.now()`. */
  const failures = new Map<string, number>()

  return (name: string, upstream: Upstream, test: EndedTest): ReadSession =>
    async (live, call, response) => {
      if (live.session.credential === undefined) return response
      const { token, cookies } = live.session.credential
      const key = `${name} ${live.key}`
      if (response.status >= 500) failures.set(name, performance.now())
      if (!saysEnded(test, response)) {
        if (response.status < 400) suspects.delete(key)
        return response
      }
      discard(response)
      const failedAt = failures.get(name) ?? -Infinity
      if (performance.now() - failedAt < distrustMs) throw unconfirmed()
      if (!suspects.has(key)) {
        suspects.set(key, true)
        if (call.method !== 'GET' || call.body !== null) throw unconfirmed()
        const second = await upstream.send(call)
        if (!saysEnded(test, second)) {
          suspects.delete(key)
          return second
        }
        discard(second)
      }
      suspects.delete(key)
      const current = await sessions.read(live.key)
      if ('live' in current) {
        const latest = sessions.credentials.withHeld(current.live)
        const held = latest.session.credential
        if (held?.token !== token || held?.cookies !== cookies) throw unconfirmed()
        await sessions.end(latest, 'upstream', { by: 'upstream' })
      }
      throw new GatewayError('session.upstream')
    }
}

/**
 * Back-ends renew a cookie with each response (PHP, ASP.NET, Laravel), or a token in a header.
 * @param upstream the credential of one back-end is none of another's to change
 */
function takeCredential(
  { config, sessions: { credentials } }: Gateway,
  upstream: string,
  asked: Live,
  headers: UpstreamResponse['headers']
): void {
  const source = config.gateway.login.sources[asked.session.source]
  if (source?.kind !== 'upstream-login' || source.upstream !== upstream) return
  const { cookies: names, renewedToken = '' } = source
  const setCookie = headers['set-cookie']
  const token = headers[renewedToken]
  if (setCookie === undefined && token === undefined) return
  // Another response may have changed it meanwhile: of two at once the later one counts.
  const live = credentials.withHeld(asked)
  const { credential = {} } = live.session
  const before = credential.cookies ?? ''
  const cookies = cookiesAfter(before, setCookie, names)
  const isNewToken = typeof token === 'string' && isSendable(token) && token !== credential.token
  const areNewCookies = cookies !== before && isSendable(cookies)
  if (!isNewToken && !areNewCookies) return
  credentials.take(live, {
    ...(areNewCookies && { cookies }),
    ...(isNewToken && { token })
  })
}

function isSendable(value: string): boolean {
  return /^[\x20-\x7e]+$/.test(value)
}

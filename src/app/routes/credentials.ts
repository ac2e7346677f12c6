/**
 * Credentials for an upstream's calls: renewed before, replaced where a response brings another,
 * and given up where it refuses them (`sessionEnded` of the upstream).
 */
import { Readable } from 'node:stream'
import { BoundedMap } from '../../bounded-map.ts'
import { credentialOf, tokenHeaderOf, type UpstreamConfig } from '../../config/schema/routes.ts'
import { GatewayError, isOfUpstream } from '../../errors/errors.ts'
import { tryJson } from '../../json/body.ts'
import { credentialHeaders } from '../../login/back-end-call.ts'
import { cookiesAfter, matchesTest, tokenIn } from '../../login/login-response.ts'
import type { Trail } from '../../observability/trail.ts'
import type { Call } from '../../proxy/receiver.ts'
import { headerText } from '../../proxy/request-headers.ts'
import { discard, type UpstreamResponse } from '../../proxy/response.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Live } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'

type Credentials = ReturnType<typeof createCredentials>
/** Compiles routes: all of an upstream, and its parts, share what they saw of credentials. */
export type Compiling = Gateway & { readonly credentialsOf: (upstream: string) => Credentials }

export function createCredentials(gateway: Gateway, name: string) {
  const upstream = gateway.upstream(name)
  const isNeeded = credentialOf(upstream.config.credential).as !== 'none'
  const readOwnToken = createOwnTokenReader(gateway, name)
  const readSession = createSessionReader(gateway, name, upstream, readOwnToken)
  return {
    /** Gets a session the credential that the upstream takes, or renews one that expires. */
    ensure: createEnsuring(gateway, name, isNeeded),
    readOwnToken,
    /** Undefined where the upstream gets no credential. */
    readSession: isNeeded ? readSession : undefined
  }
}

function createEnsuring(gateway: Gateway, name: string, isNeeded: boolean) {
  const { exchanges, tokenRefresh, sessions } = gateway
  const exchange = exchanges.get(name)
  return (live: Live, trail: Trail): Live | Promise<Live> => {
    const isLasting = exchange === undefined && live.session.credential?.expiresAt === undefined
    if (isLasting) return sessions.credentials.withHeld(live)
    return tokenRefresh.ensureFresh(live, trail, exchange).catch((error: unknown) => {
      if (isNeeded || !isOfUpstream(error)) throw error
      return live
    })
  }
}

/** After a refused new token none is asked for so long, and after a failure no end believed. */
const distrustMs = 10_000
const maxSuspects = 10_000

/** @returns replaces a response to a refused token of the gateway's own (`exchange`, `jwt`) */
function createOwnTokenReader(gateway: Gateway, upstreamName: string) {
  const { exchanges, credentialFor, tokenRefresh } = gateway
  const { config } = gateway.upstream(upstreamName)
  const { sessionEnded = { status: [401] } } = config
  if (!credentialOf(config.credential).hasOwnToken) return undefined
  const exchange = exchanges.get(upstreamName)
  const tokenOf = credentialFor(upstreamName)
  let refusedAt = -Infinity

  /**
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
    const second = await sendAgain(credentialHeaders(tokenOf(session) ?? {}, config))
    if (!saysEnded(sessionEnded, second)) return second
    discard(second)
    refusedAt = performance.now()
    throw refused()
  }
}

function refused(): GatewayError {
  const cause = 'the back-end refuses the token by which the gateway names the user'
  return new GatewayError('upstream.error', { cause })
}

type EndedTest = NonNullable<UpstreamConfig['sessionEnded']>

/** A response that says so is short; a longer one is not read for it. */
const maxBytes = 16 * 1024

function saysEnded(test: EndedTest, { status, headers, body }: UpstreamResponse): boolean {
  if (test.path === undefined) return matchesTest(test, { status, headers })
  if (!Buffer.isBuffer(body) || body.length > maxBytes) return false
  if (!mayHold(test, headers, body)) return false
  return matchesTest(test, { status, headers }, tryJson(body, headers, maxBytes))
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

/** Nobody is signed out yet: the page may try again. */
function unconfirmed(): GatewayError {
  return new GatewayError('upstream.error', {
    status: 503,
    retryAfter: 1,
    cause: 'the response says that the back-end’s session has ended, once'
  })
}

/** @returns gives the response for the client; throws `session.upstream` where it was ended */
function createSessionReader(
  gateway: Gateway,
  name: string,
  upstream: Upstream,
  readOwnToken: ReturnType<typeof createOwnTokenReader>
) {
  const judge = createJudge(gateway, upstream)
  return async (live: Live, call: Call, response: UpstreamResponse): Promise<UpstreamResponse> => {
    if (readOwnToken !== undefined) {
      const sendAgain = (headers: Call['headers']) =>
        upstream.send({ ...call, headers: { ...call.headers, ...headers } })
      const again = call.body instanceof Readable ? undefined : sendAgain
      return await readOwnToken(live, call.recorded?.trail, response, again)
    }
    const judged = await judge(live, call, response)
    takeCredential(gateway, name, live, judged.headers)
    return judged
  }
}

/**
 * A faulty back-end must not sign everybody out: two responses in a row say that a session has
 * ended, none while it fails, and none about a credential that is not the latest. A token that the
 * source renews is renewed first: back-ends end the former one while its renewal is under way.
 */
function createJudge({ sessions, sources, tokenRefresh }: Gateway, upstream: Upstream) {
  /** Keys of sessions of which one response said so, to a request that may not be repeated. */
  const suspects = new BoundedMap<true>(maxSuspects)
  let failedAt = -Infinity
  const { config } = upstream
  const test = config.sessionEnded
  const name = tokenHeaderOf(credentialOf(config.credential).as)
  const headersFor = (token: string) => credentialHeaders({ token }, config)

  /** @throws GatewayError `session.upstream` where the source refuses; `upstream.*` if it is away */
  async function withLatestToken(live: Live, { headers, recorded }: Call): Promise<Live> {
    const { token, expiresAt, refreshToken } = live.session.credential ?? {}
    const source = sources.find(each => each.name === live.session.source)
    const isRenewable = source?.renew !== undefined && (expiresAt ?? refreshToken) !== undefined
    if (!isRenewable || name === undefined || token === undefined) return live
    // A route may pass the client's own `Authorization`.
    if (headers[name] !== headersFor(token)[name]) return live
    return await tokenRefresh.ensureToken(live, source, recorded?.trail, token)
  }

  return async (live: Live, call: Call, response: UpstreamResponse): Promise<UpstreamResponse> => {
    const { credential } = live.session
    if (test === undefined || credential === undefined) return response
    if (response.status >= 500) failedAt = performance.now()
    if (!saysEnded(test, response)) {
      if (response.status < 400) suspects.delete(live.key)
      return response
    }
    discard(response)
    if (performance.now() - failedAt < distrustMs) throw unconfirmed()
    const { session } = await withLatestToken(live, call)
    const { token, cookies } = session.credential ?? {}
    const isRenewed = token !== undefined && token !== credential.token
    const mayRepeat = call.method === 'GET' && call.body === null
    if (isRenewed ? !(call.body instanceof Readable) : mayRepeat) {
      const headers = { ...call.headers, ...(isRenewed && headersFor(token)) }
      const second = await upstream.send({ ...call, headers })
      if (!saysEnded(test, second)) {
        suspects.delete(live.key)
        return second
      }
      discard(second)
    } else if (!suspects.has(live.key)) {
      suspects.set(live.key, true)
      throw unconfirmed()
    }
    suspects.delete(live.key)
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

/** Back-ends renew a cookie with each response (PHP, ASP.NET, Laravel), or a token in a header. */
function takeCredential(
  { config, sessions: { credentials } }: Gateway,
  upstream: string,
  asked: Live,
  headers: UpstreamResponse['headers']
): void {
  const source = config.gateway.login.sources[asked.session.source]
  if (source?.kind !== 'upstream-login' || source.upstream !== upstream) return
  const { cookies: names, renewedToken } = source
  const setCookie = headers['set-cookie']
  const token = tokenIn(headers, renewedToken)
  if (setCookie === undefined && token === undefined) return
  // Another response may have changed it meanwhile: of two at once the later one counts.
  const live = credentials.withHeld(asked)
  const { credential = {} } = live.session
  const before = credential.cookies ?? ''
  const cookies = cookiesAfter(before, setCookie, names)
  const isNewToken = token !== undefined && headerText.test(token) && token !== credential.token
  const areNewCookies = cookies !== before && headerText.test(cookies)
  if (!isNewToken && !areNewCookies) return
  credentials.take(live, {
    ...(areNewCookies && { cookies }),
    ...(isNewToken && { token })
  })
}

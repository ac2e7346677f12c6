/** Credentials for an upstream's calls: renewed before, and given up where the response refuses them. */
import { credentialOf, type UpstreamConfig } from '../../config/schema/routes.ts'
import { GatewayError, isOfUpstream } from '../../errors/errors.ts'
import { readJson } from '../../json/body.ts'
import { credentialHeaders } from '../../login/back-end-call.ts'
import { matchesTest } from '../../login/response-values.ts'
import type { Trail } from '../../observability/trail.ts'
import { discard, type UpstreamResponse } from '../../proxy/response.ts'
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

/** After a new token was refused, none is asked for so long. */
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

/** What an upstream needs of a session: a credential that is valid, or a token of the gateway's own. */
import { credentialOf } from '../../config/schema/routes.ts'
import { GatewayError } from '../../errors/errors.ts'
import { credentialHeaders } from '../../login/back-end-call.ts'
import type { Trail } from '../../observability/trail.ts'
import { discard, type UpstreamResponse } from '../../proxy/response.ts'
import type { Live } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { saysEnded, unconfirmed } from './ended.ts'

/** @returns gets a session the credential that an upstream takes, or renews one that expires */
export function createEnsuring({ exchanges, tokenRefresh, upstream }: Gateway, name: string) {
  const exchange = exchanges.get(name)
  const isNeeded = credentialOf(upstream(name).config.credential).as !== 'none'
  return async (live: Live, trail: Trail): Promise<Live> => {
    try {
      const fresh = await tokenRefresh.ensureFresh(live, trail)
      return exchange ? await tokenRefresh.ensureToken(fresh, exchange, trail) : fresh
    } catch (error) {
      const isAway = error instanceof GatewayError && error.code.startsWith('upstream.')
      if (isNeeded || !isAway) throw error
      return live
    }
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

/** Logout tokens, by which a provider ends sessions (OpenID Connect Back-Channel Logout 1.0 §2.4). */
import type { JWTPayload } from 'jose'
import { type GatewayError, malformed } from '../../errors/errors.ts'
import { isRecord } from '../../json/values.ts'
import { providerName } from '../../session/provider-sessions.ts'
import { clockTolerance, partOf, type Provider } from './provider.ts'

const event = 'http://schemas.openid.net/event/backchannel-logout'
const maxAgeSeconds = 600
/** When a token has been accepted, it is too old after this time. */
export const logoutTokenMs = (maxAgeSeconds + 2 * clockTolerance) * 1000

/** Providers older than the standard send no `typ`, or that of any token. */
const types = /^(?:undefined|jwt|(?:application\/)?logout\+jwt)$/i

/** A logout token names a session by the provider's (`sid`), or by the user. */
export function providerSession(source: string, { iss = '', sub = '', sid, iat = 0 }: JWTPayload) {
  const names = [providerName(source, iss, 'sub', sub)]
  if (typeof sid === 'string') names.push(providerName(source, iss, 'sid', sid))
  return { names, issuedAt: iat }
}

/** @throws GatewayError `request.malformed`; `upstream.*` with 503 where no keys can be read */
export async function readLogout(source: string, provider: Provider, token: string) {
  // Not `exp`: Ory Hydra, LemonLDAP and Keycloak before 23.0.4 send none, and `iat` bounds the age.
  const rules = { requiredClaims: ['iat', 'events'], maxTokenAge: maxAgeSeconds }
  const claims = await provider.verify(token, rules).catch((error: GatewayError) => {
    if (error.status >= 503) throw error
    return refuse(error)
  })
  const { iss = '', sub, sid, jti, iat = 0, events } = claims
  const { typ } = partOf(token, 0)
  if (!types.test(String(typ))) refuse('its type is another')
  if (!isRecord(events) || !isRecord(events[event])) refuse('it tells of no logout')
  if ('nonce' in claims) refuse('it has a nonce, as ID tokens have')
  if (typeof jti !== 'string') return refuse('it has no id')
  const id = providerName(source, iss, 'jti', jti)
  if (typeof sid === 'string') {
    return { name: providerName(source, iss, 'sid', sid), issuedAt: iat, id }
  }
  if (typeof sub !== 'string') return refuse('it names no session and no user')
  return { name: providerName(source, iss, 'sub', sub), issuedAt: iat, id }
}

function refuse(reason: unknown): never {
  const cause = reason instanceof Error ? reason : new Error(`The logout token: ${String(reason)}`)
  throw malformed('This is no valid logout token.', cause)
}

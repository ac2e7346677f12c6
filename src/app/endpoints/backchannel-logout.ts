/**
 * `POST …/backchannel-logout`, by which an OpenID provider ends sessions (OpenID Connect
 * Back-Channel Logout 1.0 §2.5).
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import { logoutTokenMs, readLogout } from '../../login/oidc/logout-token.ts'
import { OidcSource } from '../../login/oidc/source.ts'
import { endByProvider } from '../../session/provider-sessions.ts'
import type { Session } from '../../session/types.ts'
import { clientAddress } from '../hooks/address.ts'
import { readForms } from '../hooks/validation.ts'

/** Far more than a form with a token needs. */
const maxBody = 16 * 1024

/** @param scope reads no bodies yet */
export function addBackChannelLogout(scope: FastifyInstance): void {
  const { gateway } = scope
  readForms(scope, '')
  for (const source of gateway.sources.filter(each => each instanceof OidcSource)) {
    scope.route({
      method: 'POST',
      url: `${source.path}/backchannel-logout`,
      bodyLimit: maxBody,
      // Providers read the status.
      config: { route: 'backchannel-logout', access: 'public', maxBody, errorStatus: 'own' },
      handler: async (request, reply) => {
        const ended = await logout(request, source)
        const fields = { event: 'logout.provider', source: source.name, closed: ended.length }
        request.log.info(fields, 'the provider has signed a user out')
        signOutAtSource(gateway, ended, request)
        return reply.send()
      }
    })
  }
}

/**
 * @returns the sessions that were alive; the store has confirmed their ends
 * @throws GatewayError `request.malformed` for what is no logout token, or was used before;
 *   `session.unavailable`, `upstream.*`
 */
async function logout(request: FastifyRequest, source: OidcSource): Promise<Session[]> {
  const { sessions } = request.server.gateway
  const { logout_token: token = '' } = (request.body ?? {}) as Record<string, string>
  const { name, issuedAt, id } = await readLogout(source.name, source.provider, token)
  const { store } = sessions
  // Not used before its ends are confirmed: else the provider could not send it again.
  if ((await store.addTo(id, 'seen', logoutTokenMs)).includes('used')) {
    throw new GatewayError('request.malformed', { message: 'The logout token was used before.' })
  }
  const by = { by: 'upstream', address: clientAddress(request), requestId: request.id } as const
  const ended = await endByProvider(sessions, name, issuedAt, by)
  await store.addTo(id, 'used', logoutTokenMs)
  return ended
}

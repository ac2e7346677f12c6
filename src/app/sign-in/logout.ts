/**
 * Sign-out: always a success, also without a session. Only a store that cannot answer
 * makes it 503, since the session may live on.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { writeJson } from '../../json/body.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import { addOwn, sendJsonText } from '../endpoints/own.ts'
import { clientAddress } from '../hooks/address.ts'
import { recordSignOut } from '../hooks/audit.ts'
import { requireOrigin } from '../hooks/same-origin.ts'
import { closeSession, expireTokenCookies } from '../hooks/session.ts'

/** @param scope ignores bodies */
export function addLogout(scope: FastifyInstance): void {
  const { gateway } = scope
  const { config, answers, envelope } = gateway
  const answer = answers.logout
  const text = writeJson(envelope.success(answer?.render() ?? {}, undefined, answer?.placement))
  addOwn(scope, 'logout', {
    config: { access: 'public' },
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      // A page of another origin must not sign out, by GET as well.
      requireOrigin(request, config.gateway.server.origins)
      const session = request.live?.session
      await closeSession(request, reply)
      expireTokenCookies(reply)
      if (session !== undefined) {
        recordSignOut(request)
        const { id: userId, username: user } = session.identity
        const fields = { user, userId, session: session.id, address: clientAddress(request) }
        request.log.info({ event: 'logout', ...fields }, 'signed out')
        signOutAtSource(gateway, session, request)
      }
      return sendJsonText(reply, 200, text)
    }
  })
}

/**
 * Sign-out: always a success, also without a session. Only a store that cannot answer
 * makes it 503, since the session may live on.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, toGatewayError } from '../../errors/errors.ts'
import { writeJson } from '../../json/body.ts'
import { signOutAtSource } from '../../login/credential-source.ts'
import type { Session } from '../../session/record.ts'
import { addOwn, sendJsonText } from '../endpoints/own.ts'
import { clientAddress } from '../hooks/address.ts'
import { recordSignOut } from '../hooks/audit.ts'
import { sameOrigin } from '../hooks/same-origin.ts'
import { closeSession, expireTokenCookies, liveSession } from '../hooks/session.ts'

/** @param scope ignores bodies */
export function addLogout(scope: FastifyInstance): void {
  const { config, answers, envelope } = scope.gateway
  const answer = answers.logout
  const status = answer?.status ?? 200
  const text = writeJson(envelope.success(answer?.render() ?? {}, undefined, answer?.placement))
  addOwn(scope, 'logout', {
    config: { access: 'public' },
    // A page of another origin must not sign out, by GET as well.
    onRequest: sameOrigin(config.gateway.server.origins, { always: true }),
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      await signOut(request, reply)
      return sendJsonText(reply, status, text)
    }
  })
}

async function signOut(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const session = liveSession(request)
  try {
    await closeSession(request, reply)
  } catch (error) {
    // The session may have ended all the same: a repetition would not know whose it was.
    if (session !== undefined) completeSignOut(request, session, toGatewayError(error).code)
    throw error
  }
  expireTokenCookies(reply)
  if (session === undefined) return
  request.actor = session.identity.username
  completeSignOut(request, session)
}

/** @param code of the error, where the store did not confirm the end of the session */
function completeSignOut(request: FastifyRequest, session: Session, code?: ErrorCode): void {
  const { gateway } = request.server
  if (gateway.ledger !== undefined) recordSignOut(gateway.ledger, request, session, code)
  const { id: userId, username: user } = session.identity
  const address = clientAddress(request)
  request.log.info(
    { event: 'logout', user, userId, session: session.id, address, code },
    code === undefined ? 'signed out' : 'signed out, not confirmed by the session store'
  )
  signOutAtSource(gateway, session, request)
}

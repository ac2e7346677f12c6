/**
 * Sign-out: always a success, also without a session. Only a store that cannot answer
 * makes it 503, since the session may live on.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { type ErrorCode, toGatewayError } from '../../errors.ts'
import { clientAddress } from '../hooks/address.ts'
import { closeSession, liveSession, type SessionCookie } from '../hooks/session.ts'
import { type CredentialSource, signOutAtSource } from '../../login/credential-source.ts'
import type { Session } from '../../session/record.ts'
import type { Sessions } from '../../session/session.ts'
import { writeJson } from '../../json/body.ts'
import { ignoreBodies } from './ignored-bodies.ts'
import { sendJsonText } from './send-answer.ts'

interface Options {
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  /** The whole body, and its status. */
  readonly answer: { readonly status: number; readonly body: unknown }
  readonly sources: readonly CredentialSource[]
  readonly sessions: Sessions
  readonly cookie: SessionCookie
  readonly expireTokenCookies: (reply: FastifyReply) => void
  /**
   * Called when a user has signed out.
   * @param code of the error, where the store did not confirm the end of the session
   */
  readonly onSignedOut: (request: FastifyRequest, session: Session, code?: ErrorCode) => void
  /** Refuses a sign-out from another origin, by GET as well. */
  readonly checkOrigin: (
    request: FastifyRequest,
    reply: unknown,
    done: (error?: Error) => void
  ) => void
}

export function addLogout(
  scope: FastifyInstance,
  { paths, methods, answer, checkOrigin, ...options }: Options
): void {
  const { sources, sessions, cookie, expireTokenCookies, onSignedOut } = options
  const text = writeJson(answer.body)
  scope.register(async inner => {
    ignoreBodies(inner)
    for (const url of paths) {
      inner.route({
        method: [...methods],
        url,
        config: { route: ownRoutes.logout.name, access: 'public' },
        onRequest: checkOrigin,
        handler: signOut
      })
    }
  })

  async function signOut(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const session = liveSession(request)
    try {
      await closeSession(request, reply, cookie)
    } catch (error) {
      // The session may have ended all the same: a repetition would not know whose it was.
      if (session !== undefined) completeSignOut(request, session, toGatewayError(error).code)
      throw error
    }
    expireTokenCookies(reply)
    if (session !== undefined) {
      request.actor = session.identity.username
      completeSignOut(request, session)
    }
    return sendJsonText(reply, answer.status, text)
  }

  /** @param code of the error, where the store did not confirm the end of the session */
  function completeSignOut(request: FastifyRequest, session: Session, code?: ErrorCode): void {
    onSignedOut(request, session, code)
    const { id: userId, username: user } = session.identity
    const address = clientAddress(request)
    request.log.info(
      { event: 'logout', user, userId, session: session.id, address, code },
      code === undefined ? 'signed out' : 'signed out, not confirmed by the session store'
    )
    signOutAtSource({ sources, sessions }, session, request)
  }
}

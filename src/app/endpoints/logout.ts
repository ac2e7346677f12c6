/**
 * Sign-out: always a success, also without a session. Only a store that cannot answer
 * makes it 503, since the session may live on.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { clientAddress } from '../hooks/address.ts'
import { closeSession, type SessionCookie } from '../hooks/session.ts'
import { type CredentialSource, signOutAtSource } from '../../login/credential-source.ts'
import type { Session } from '../../session/record.ts'
import { writeJson } from '../../json/body.ts'
import { ignoreBodies } from './ignored-bodies.ts'
import { sendJsonText } from './send-answer.ts'

interface Options {
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  /** The whole body, and its status. */
  readonly answer: { readonly status: number; readonly body: unknown }
  readonly sources: readonly CredentialSource[]
  readonly cookie: SessionCookie
  readonly expireTokenCookies: (reply: FastifyReply) => void
  /** Called when a session was closed. */
  readonly onSignedOut: (request: FastifyRequest, session: Session) => void
  /** Refuses a sign-out from another origin, by GET as well. */
  readonly checkOrigin: (
    request: FastifyRequest,
    reply: unknown,
    done: (error?: Error) => void
  ) => void
}

export function addLogout(
  scope: FastifyInstance,
  { paths, methods, answer, sources, cookie, expireTokenCookies, checkOrigin, onSignedOut }: Options
): void {
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
    const session = await closeSession(request, reply, cookie)
    expireTokenCookies(reply)
    if (session !== undefined) {
      request.actor = session.identity.username
      onSignedOut(request, session)
      const { id: userId, username: user } = session.identity
      const address = clientAddress(request)
      request.log.info(
        { event: 'logout', user, userId, session: session.id, address },
        'signed out'
      )
      signOutAtSource(sources, session, request)
    }
    return sendJsonText(reply, answer.status, text)
  }
}

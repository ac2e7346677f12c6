/**
 * `GET` and `POST` sign-out: always 200, also without a session. Only a store that cannot answer
 * makes it 503, since the session may live on.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { clientAddress } from '../hooks/address.ts'
import { closeSession, type SessionCookie } from '../hooks/session.ts'
import { type CredentialSource, signOutAtSource } from '../../login/credential-source.ts'

interface Options {
  readonly paths: readonly string[]
  readonly sources: readonly CredentialSource[]
  readonly cookie: SessionCookie
  readonly expireTokenCookies: (reply: FastifyReply) => void
  readonly envelope: Envelope
  /** Refuses a sign-out from another origin, by GET as well. */
  readonly checkOrigin: (
    request: FastifyRequest,
    reply: unknown,
    done: (error?: Error) => void
  ) => void
}

export function addLogout(
  scope: FastifyInstance,
  { paths, sources, cookie, expireTokenCookies, envelope, checkOrigin }: Options
): void {
  scope.register(async inner => {
    // Consoles send all sorts of bodies, or an empty one that claims to be JSON; none is read.
    inner.removeAllContentTypeParsers()
    inner.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume()
      done(null)
    })
    for (const url of paths) {
      inner.route({
        method: [...ownRoutes.logout.methods],
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
      const { id: userId, username: user } = session.identity
      const address = clientAddress(request)
      request.log.info(
        { event: 'logout', user, userId, session: session.id, address },
        'signed out'
      )
      signOutAtSource(sources, session, request.log)
    }
    return envelope.success({})
  }
}

/**
 * `GET` profile, answered from the session. (From an upstream it is a proxied route like others.)
 */
import type { FastifyInstance } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import { liveSession, sessionError } from '../hooks/session.ts'
import { fillCurrentUser } from '../../shaping/current-user.ts'

interface Options {
  readonly paths: readonly string[]
  readonly envelope: Envelope
  /** Checks the response before it is sent; may throw a GatewayError. */
  readonly contract?: (read: () => unknown) => void
}

export function addProfile(scope: FastifyInstance, { paths, envelope, contract }: Options): void {
  for (const url of paths) {
    scope.get(
      url,
      { config: { route: ownRoutes.profile.name, access: 'session' } },
      async request => {
        const session = liveSession(request)
        if (session === undefined) throw sessionError(request)
        const answer = envelope.success(fillCurrentUser(session.identity.profile, session.identity))
        contract?.(() => answer)
        return answer
      }
    )
  }
}

/** `GET` and `HEAD` profile from the session. (From an upstream it is a proxied route.) */
import type { FastifyInstance, FastifyRequest } from 'fastify'
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
  const { name, methods } = ownRoutes.profile
  const config = { route: name, access: 'session' as const }
  for (const url of paths) scope.route({ method: [...methods], url, config, handler: show })

  async function show(request: FastifyRequest): Promise<unknown> {
    const session = liveSession(request)
    if (session === undefined) throw sessionError(request)
    const answer = envelope.success(fillCurrentUser(session.identity.profile, session.identity))
    contract?.(() => answer)
    return answer
  }
}

/**
 * `GET` check, for proxies that ask before they pass a request on (`auth_request` of nginx,
 * `forward_auth` of Caddy): 204 with the identity headers, 401, or 403.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import { GatewayError } from '../../errors.ts'
import { identityHeaders } from '../../proxy/identity-values.ts'
import { isHarmless, requireOrigin } from '../hooks/same-origin.ts'
import { liveOf, sessionError } from '../hooks/session.ts'
import { ignoreBodies } from './ignored-bodies.ts'

interface Options {
  readonly paths: readonly string[]
  readonly identity: GatewayConfig['identity']
  readonly origins: readonly string[]
}

export function addCheck(scope: FastifyInstance, { paths, identity, origins }: Options): void {
  const { name, methods } = ownRoutes.check
  scope.register(async inner => {
    ignoreBodies(inner)
    for (const url of paths) {
      inner.route({
        method: [...methods],
        url,
        config: { route: name, access: 'session' },
        handler: (request, reply) => {
          if (changesSomething(request)) requireOrigin(request, origins)
          return answer(request, reply)
        }
      })
    }
  })

  function answer(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const live = liveOf(request)
    if (live === undefined) throw sessionError(request)
    // Any of those that the proxy asks for.
    const query = new URL(request.raw.url ?? '', 'http://gateway').searchParams
    const roles = query.getAll('role')
    const { identity: user } = live.session
    if (roles.length > 0 && !roles.some(role => user.roles.includes(role))) {
      request.trail.needsRoles = roles
      throw new GatewayError('route.forbidden')
    }
    return reply.code(204).headers(identityHeaders(live.session, identity)).send()
  }
}

/** A proxy asks with GET, and names the method of the client's request in a header. */
function changesSomething({ headers }: FastifyRequest): boolean {
  const asked = [headers['x-forwarded-method'], headers['x-original-method']].flat()
  return asked.some(method => method !== undefined && !isHarmless(method.toUpperCase()))
}

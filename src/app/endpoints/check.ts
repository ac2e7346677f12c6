/**
 * `GET` check, for proxies that ask before they pass a request on (`auth_request` of nginx,
 * `forward_auth` of Caddy): 204 with the identity headers, 401, or 403.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { identityHeaders } from '../../proxy/request-headers.ts'
import { isHarmless, requireOrigin } from '../hooks/same-origin.ts'
import { mustLive } from '../hooks/session.ts'
import { addOwn } from './own.ts'

/** @param scope ignores bodies */
export function addCheck(scope: FastifyInstance): void {
  const { identity, server } = scope.gateway.config.gateway
  addOwn(scope, 'check', {
    handler: (request: FastifyRequest, reply: FastifyReply) => {
      if (changesSomething(request)) requireOrigin(request, server.origins)
      const { session } = mustLive(request)
      // Any of those that the proxy asks for.
      const roles = new URL(request.raw.url ?? '', 'http://gateway').searchParams.getAll('role')
      if (roles.length > 0 && !roles.some(role => session.identity.roles.includes(role))) {
        request.trail.needsRoles = roles
        throw new GatewayError('route.forbidden')
      }
      return reply.code(204).headers(identityHeaders(session, identity)).send()
    }
  })
}

/** A proxy asks with GET, and names the method of the client's request in a header. */
function changesSomething({ headers }: FastifyRequest): boolean {
  const asked = [headers['x-forwarded-method'], headers['x-original-method']].flat()
  return asked.some(method => method !== undefined && !isHarmless(method.toUpperCase()))
}

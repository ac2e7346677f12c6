/** The public keys of the tokens that the gateway signs for back-ends. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addOwn, sendAnswer } from './own.ts'

/**
 * `GET` key set (RFC 7517 §5), for back-ends, which have no session.
 * @param scope ignores bodies
 */
export function addJwks(scope: FastifyInstance): void {
  const { publicKeys: keys } = scope.gateway
  addOwn(scope, 'jwks', {
    config: { access: 'public' },
    handler: (_request: FastifyRequest, reply: FastifyReply) =>
      sendAnswer(reply.header('cache-control', 'public, max-age=300'), { keys })
  })
}

import type { FastifyContextConfig, FastifyInstance, FastifyReply, RouteOptions } from 'fastify'
import { ownEndpoints, type OwnKey } from '../../config/schema/own-endpoints.ts'
import { pathsOf } from '../../config/schema/resolved.ts'
import { writeJson } from '../../json/body.ts'
import { jsonType } from '../../shaping/envelope.ts'

export function addOwn(
  scope: FastifyInstance,
  key: OwnKey,
  options: Omit<RouteOptions, 'method' | 'url'>
): void {
  const { routes } = scope.gateway.config
  const own = ownEndpoints(routes.endpoints).find(each => each.key === key)
  if (own === undefined) return
  const config: FastifyContextConfig = { route: own.name, access: 'session', ...options.config }
  const method = [...own.methods]
  const { maxBody: bodyLimit } = config
  for (const url of pathsOf(routes, own.path)) {
    scope.route({ ...(bodyLimit && { bodyLimit }), ...options, config, method, url })
  }
}

/** Bodies are dropped: consoles send all sorts, or an empty one that claims to be JSON. */
export function addBodiless(scope: FastifyInstance, add: (inner: FastifyInstance) => void): void {
  scope.register(async inner => {
    inner.removeAllContentTypeParsers()
    inner.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume()
      done(null)
    })
    add(inner)
  })
}

/** Any value is JSON here: Fastify would send a text as text/plain, and null as nothing. */
export function sendAnswer(reply: FastifyReply, body: unknown): FastifyReply {
  return reply.header('content-type', jsonType).send(writeJson(body))
}

/** `GET` public keys of the tokens that the gateway signs for back-ends (RFC 7517 §5). */
export function addJwks(scope: FastifyInstance): void {
  const { publicKeys: keys } = scope.gateway
  addOwn(scope, 'jwks', {
    config: { access: 'public' },
    handler: (_request, reply) =>
      sendAnswer(reply.header('cache-control', 'public, max-age=300'), { keys })
  })
}

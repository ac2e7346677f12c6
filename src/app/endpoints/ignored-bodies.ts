/** Endpoints that read no body: consoles send all sorts, or an empty one that claims to be JSON. */
import type { FastifyInstance } from 'fastify'

/** Takes bodies of any type on the routes of a scope, and drops them. */
export function ignoreBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume()
    done(null)
  })
}
